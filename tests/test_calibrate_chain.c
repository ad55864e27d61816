/* The whole chain on a machine whose parameters are known: the fake device is measured by the
 * runner, its records are fitted by the program, and the simulator with that calibration gives the
 * machine's own times. */
#include "tests/near.h"

#include "calibrate/device_fake.h"
#include "calibrate/flow.h"
#include "sim/api/calibration.h"
#include "sim/api/step.h"
#include "sim/collective/place.h"
#include "sim/facts/forms.h"
#include "tests/calibrate_helpers.h"
#include "topologies/loader.h"

#include <math.h>
#include <sys/wait.h>

/* Unlike the shipped H100 in everything. */
static OrrFakeMachine truth_of(void) {
    OrrFakeMachine m = orr_fake_default;
    m.n_gpus = 16;
    m.bf16_flops_per_s = 610e12;
    m.hbm_bytes_per_s = 2.4e12;
    m.host_bytes_per_s = 22e9;
    m.kernel_ns = 3100;
    m.launch_ns = 5200;
    m.graph_launch_ns = 1700;
    m.link_bytes_per_s = 310e9;
    m.link_step_ns = 1900;
    m.nic_bytes_per_s = 21e9;
    m.nic_step_ns = 7000;
    m.compute_slowdown_frac = 0.25;
    return m;
}

static bool never(void *data) {
    (void)data;
    return false;
}

static void measure(const OrrFakeMachine *m, char *path) {
    OrrCalibrateOptions o = {.output = path, .minutes = 1000};
    for (int k = 0; k < ORR_N_CASE_KINDS; k++)
        o.kinds[k] = true;
    OrrRanks *ranks = orr_ranks_alone();
    OrrDevice *d = orr_device_fake(m, ranks);
    assert_true(orr_calibrate(&o, d, ranks, never, NULL, NULL));
    d->kind->close(d);
    ranks->close(ranks);
}

/* Exit status of `orrery` with @words; *@says (g_free) its standard error. */
static int run_orrery(const char *const *words, char **says) {
    const char *folder = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(folder ? folder : ".", "orrery", NULL);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, program);
    for (int i = 0; words[i]; i++)
        g_ptr_array_add(argv, (gpointer)words[i]);
    g_ptr_array_add(argv, NULL);
    int status = -1;
    if (!g_spawn_sync(NULL, (char **)argv->pdata, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL,
                      NULL, says, &status, NULL))
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Folder with records.csv, mine.ini, gpu.ini, node.ini and cluster.ini; made once. */
typedef struct {
    OrrFakeMachine truth;
    char *folder, *records, *calibration, *cluster;
} Chain;

static int make_chain(void **state) {
    Chain *c = g_new0(Chain, 1);
    c->truth = truth_of();
    c->folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    c->records = g_build_filename(c->folder, "records.csv", NULL);
    c->calibration = g_build_filename(c->folder, "mine.ini", NULL);
    c->cluster = g_build_filename(c->folder, "cluster.ini", NULL);
    g_setenv("NCCL_ALGO", "Ring", TRUE); /* the fake has rings only, and its records say so */
    measure(&c->truth, c->records);
    g_unsetenv("NCCL_ALGO");
    const char *const words[] = {"calibrate",    "fit",     c->records, "-o",
                                 c->calibration, "--files", c->folder,  NULL};
    g_autofree char *says = NULL;
    if (run_orrery(words, &says) != 0)
        fail_msg("%s", says);
    *state = c;
    return 0;
}

static int drop_chain(void **state) {
    Chain *c = *state;
    static const char *const names[] = {"records.csv", "mine.ini",    "gpu.ini",
                                        "node.ini",    "cluster.ini", "job.ini"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(c->folder, names[i], NULL);
        g_unlink(path);
    }
    g_rmdir(c->folder);
    g_free(c->folder);
    g_free(c->records);
    g_free(c->calibration);
    g_free(c->cluster);
    g_free(c);
    return 0;
}

static void test_parameters_come_back_within_2_percent(void **state) {
    const Chain *c = *state;
    const OrrFakeMachine *m = &c->truth;
    g_autoptr(OrrCalibration) k = orr_calibration_load(c->calibration, NULL);
    assert_non_null(k);
    assert_near(k->rates.fixed_ns, m->kernel_ns, 0.02);
    assert_near(k->launch_ns, m->launch_ns, 0.02);
    assert_near(k->graph_launch_ns, m->graph_launch_ns, 0.02);
    assert_near(k->compute_rate_frac, 1 / (1 + m->compute_slowdown_frac), 0.02);
    const OrrSurface *s = orr_surface_find(k->surfaces, ORR_K_GEMM, ORR_BF16, "");
    assert_non_null(s);
    g_autoptr(OrrCluster) cluster = orr_topology_cluster(c->cluster, NULL, NULL);
    assert_non_null(cluster);
    const OrrNode *node = orr_cluster_spec(cluster)->node;
    assert_near(k->rates.stream_frac * node->gpu->hbm_bytes_per_s, m->hbm_bytes_per_s, 0.02);
    assert_near(node->gpu->mem_eff_frac * node->gpu->hbm_bytes_per_s, m->hbm_bytes_per_s, 0.02);
    assert_near(s->params[ORR_GEMM_PEAK] * s->params[ORR_GEMM_EFF], m->bf16_flops_per_s, 0.02);
    const OrrCollLaw *ring = &k->collectives->arch[node->gpu->arch].ring[ORR_PROTO_SIMPLE];
    assert_near(ring->eff_frac * node->gpu->nvlink_bytes_per_s, m->link_bytes_per_s, 0.02);
    assert_near(k->collectives->net[node->net].eff_frac * node->nic_bytes_per_s, m->nic_bytes_per_s,
                0.02);
}

/* A size between those of the grid, over rings of other lengths. */
static void test_collectives_between_the_measured_ones_are_met(void **state) {
    const Chain *c = *state;
    g_autoptr(OrrCalibration) k = orr_calibration_load(c->calibration, NULL);
    g_autoptr(OrrCluster) cluster = orr_topology_cluster(c->cluster, NULL, NULL);
    OrrNcclForce force = {
        .algo = ORR_ALGO_RING, .proto = ORR_N_PROTOS, .constants = k->collectives};
    const uint32_t sizes[] = {2, 4, 8, 16};
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++)
        for (int64_t bytes = 20000; bytes < 4000000000; bytes *= 20) {
            uint32_t gpus[16];
            OrrCommPlace place;
            OrrCollPlan plan;
            for (uint32_t g = 0; g < 16; g++)
                gpus[g] = g;
            orr_comm_place_from_cluster(cluster, gpus, sizes[i], &place);
            assert_true(
                orr_collective_plan(ORR_ALL_REDUCE, bytes, ORR_BF16, &place, &force, &plan, NULL));
            OrrCase truth = {.kind = ORR_CASE_COLLECTIVE,
                             .op = ORR_ALL_REDUCE,
                             .dtype = ORR_BF16,
                             .bytes = bytes,
                             .group_gpus = sizes[i],
                             .stride = 1,
                             .n_groups = 1};
            assert_near((double)orr_collective_ns(&plan, bytes),
                        orr_fake_time_ns(&c->truth, &truth), 0.10);
        }
}

/* What the machine takes for a kernel of the simulator. */
static double true_kernel_ns(const OrrFakeMachine *m, const OrrKernel *k) {
    OrrCase c = {.dtype = (OrrDtype)k->dtype, .pass = (OrrKernelPass)k->pass};
    bool is_product =
        k->kind == ORR_K_GEMM || k->kind == ORR_K_BATCHED_GEMM || k->kind == ORR_K_GROUPED_GEMM;
    if (is_product) {
        c.kind = k->batch > 1 ? ORR_CASE_BATCHED_GEMM : ORR_CASE_GEMM;
        c.m = k->m, c.n = k->n, c.k = k->k, c.batch = k->batch;
    } else if (k->kind == ORR_K_ATTENTION) {
        c.kind = ORR_CASE_ATTENTION;
        c.batch = k->batch, c.sequence = k->m, c.heads = k->heads;
        c.kv_heads = k->kv_heads, c.head_dim = k->k, c.is_causal = k->is_causal;
    } else {
        return k->launches * m->kernel_ns +
               (k->bytes_read + k->bytes_written) / m->hbm_bytes_per_s * 1e9;
    }
    return orr_fake_time_ns(m, &c);
}

static double true_call_ns(const OrrFakeMachine *m, const OrrColl *call, int64_t n_gpus) {
    OrrCase c = {.kind = ORR_CASE_COLLECTIVE,
                 .op = call->kind,
                 .dtype = ORR_BF16,
                 .bytes = call->bytes,
                 .group_gpus = n_gpus,
                 .stride = 1,
                 .n_groups = 1};
    return orr_fake_time_ns(m, &c);
}

/* One after another: all kernels, slower in a step as the simulator has it (doc/models/kernels.md),
 * and the collectives of tensor parallelism. */
static double true_step_ns(const OrrFakeMachine *m, const OrrProgram *p, int64_t tp) {
    double kernels = 0, calls = 0;
    const OrrRole *role = &p->roles[0];
    for (uint32_t c = role->first_call; c < role->first_call + role->n_calls; c++) {
        const OrrSegment *s = &p->segments[p->calls[c].segment];
        for (uint32_t o = s->first_op; o < s->first_op + s->n_ops; o++) {
            const OrrOp *op = &p->ops[o];
            if (op->kind == ORR_OP_KERNEL)
                kernels += true_kernel_ns(m, &p->kernels[op->what]);
            else if (op->kind == ORR_OP_COLL && p->colls[op->what].group == ORR_GROUP_TP)
                calls += true_call_ns(m, &p->colls[op->what], tp);
        }
    }
    return kernels / 0.89 + calls; /* sim/cost/cost.c: in a step, from Hopper on */
}

static void check_step(const Chain *c, uint32_t tp, double tolerance) {
    g_autofree char *path = g_build_filename(c->folder, "job.ini", NULL);
    g_autofree char *text = g_strdup_printf(
        "[job]\nsummary = a test\nmodel = llama3.2-1b\ncluster = %s:%u\n"
        "framework = megatron-2021\nsource = a test\n[layout]\ntp = %u\npp = 1\ndp = 1\n"
        "sequence_parallel = no\nzero_stage = 0\n[batch]\nglobal = 8 sequences\n"
        "micro = 8 sequences\nsequence = 4096 tokens\n[precision]\ncompute = bf16\n"
        "[nccl]\nNCCL_ALGO = Ring\n",
        c->cluster, tp, tp);
    assert_true(orr_file_write(path, text, NULL));
    OrrStepRequest request = {.job = path, .calibration = c->calibration};
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrStepRun) run = orr_step_prepare(&request, &error);
    if (!run)
        fail_msg("%s", error->message);
    assert_true(orr_step_execute(run, NULL, NULL, 0, NULL));
    const OrrRecord *r = orr_step_record(run);
    double expected = true_step_ns(&c->truth, orr_step_program(run), tp);
    print_message("tp %u: step %.1f ms, the machine's %.1f ms\n", tp, (double)r->step_time_ns / 1e6,
                  expected / 1e6);
    assert_near((double)r->step_time_ns, expected, tolerance);
    assert_non_null(strstr(r->calibration, "mine"));
}

static void test_step_on_one_gpu_takes_what_the_machine_takes(void **state) {
    check_step(*state, 1, 0.03);
}

static void test_step_with_tensor_parallelism_takes_what_the_machine_takes(void **state) {
    check_step(*state, 8, 0.05);
}

/* The GPU file names the calibration: no option is needed. */
static void test_the_gpu_file_brings_its_calibration(void **state) {
    const Chain *c = *state;
    g_autofree char *gpu_path = g_build_filename(c->folder, "gpu.ini", NULL);
    OrrGpu *gpu = orr_topology_gpu(gpu_path, NULL, NULL);
    assert_non_null(gpu);
    OrrCalibration *own = NULL;
    assert_true(orr_calibration_for(NULL, gpu, &own, NULL));
    assert_non_null(own->surfaces);
    assert_non_null(own->collectives);
    assert_string_equal(own->name, "mine");
    orr_calibration_free(own);
    orr_gpu_free(gpu);
}

/* Replaces the first @from in the records by @to, and fits them. */
static char *fit_with(const Chain *c, const char *kind, double factor, int *status) {
    g_autofree char *text = scratch_read(c->records);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 1; lines[i]; i++) {
        if (!g_str_has_prefix(lines[i], kind))
            continue;
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        g_free(cells[24]); /* time_ns */
        cells[24] = g_strdup_printf("%.0f", factor);
        g_free(lines[i]);
        lines[i] = g_strjoinv(",", cells);
        break;
    }
    char *path = scratch_file("bad.csv");
    g_autofree char *all = g_strjoinv("\n", lines);
    assert_true(orr_file_write(path, all, NULL));
    const char *const words[] = {"calibrate", "fit", path, NULL};
    char *says = NULL;
    *status = run_orrery(words, &says);
    scratch_remove(path);
    return says;
}

static void test_rows_that_cannot_be_are_told_with_their_line(void **state) {
    int status;
    g_autofree char *product =
        fit_with(*state, "gemm,,bf16,forward,,8192,8192,8192", 1000, &status);
    assert_int_equal(status, 0);
    assert_non_null(strstr(product, "bad.csv:"));
    assert_non_null(strstr(product, "the peak"));
    g_autofree char *copy = fit_with(
        *state, "collective,all_gather,bf16,,node,,,,,,,,,,,,1073741824,,8,1,1,,", 1e6, &status);
    assert_int_equal(status, 0);
    assert_non_null(strstr(copy, "faster than the link"));
    g_autofree char *slow = fit_with(*state, "gemm,,bf16,forward,,2048,2048,2048", 9e8, &status);
    assert_int_equal(status, 0);
    assert_non_null(strstr(slow, "an outlier, not used"));
    g_autofree char *broken = fit_with(*state, "gemm,", -5, &status);
    assert_int_equal(status, 3);
    assert_non_null(strstr(broken, "time_ns"));
}

/* The records without the last @n_bytes, fitted into @output; what the program says. */
static char *fit_cut(const Chain *c, gsize n_bytes, const char *output, const char *plot,
                     int *status) {
    g_autofree char *text = NULL;
    char *path = scratch_file("cut.csv"), *says = NULL;
    gsize length;
    assert_true(g_file_get_contents(c->records, &text, &length, NULL));
    text[length - n_bytes] = 0;
    assert_true(orr_file_write(path, text, NULL));
    const char *const words[] = {"calibrate", "fit", path, "-o", output, "--plot", plot, NULL};
    *status = run_orrery(words, &says);
    scratch_remove(path);
    return says;
}

static void test_a_last_row_that_is_cut_is_left_out(void **state) {
    const Chain *c = *state;
    g_autofree char *folder = g_build_filename(c->folder, "records.csv", "plots", NULL);
    g_autofree char *output = g_build_filename(c->folder, "cut.ini", NULL);
    int status;
    const char *const words[] = {"calibrate", "fit", c->records, NULL};
    g_autofree char *whole = NULL;
    assert_int_equal(run_orrery(words, &whole), 0);
    assert_null(strstr(whole, "cut"));
    g_autofree char *says = fit_cut(c, 5, output, folder, &status);
    assert_non_null(strstr(says, "cut.csv: the last row is cut; not used"));
    /* the folder of the plots is below a file: nothing is written */
    assert_int_equal(status, 4);
    assert_false(g_file_test(output, G_FILE_TEST_EXISTS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_come_back_within_2_percent),
        cmocka_unit_test(test_collectives_between_the_measured_ones_are_met),
        cmocka_unit_test(test_step_on_one_gpu_takes_what_the_machine_takes),
        cmocka_unit_test(test_step_with_tensor_parallelism_takes_what_the_machine_takes),
        cmocka_unit_test(test_the_gpu_file_brings_its_calibration),
        cmocka_unit_test(test_rows_that_cannot_be_are_told_with_their_line),
        cmocka_unit_test(test_a_last_row_that_is_cut_is_left_out),
    };
    return cmocka_run_group_tests(tests, make_chain, drop_chain);
}
