/* Every shipped model, framework and job loads; models have the published number of parameters;
 * what was assumed and read is on record; overrides reach the file that they name. */
#include "sim/model/params.h"
#include "tests/near.h"
#include "topologies/loader.h"
#include "workloads/loader.h"

#include <stdio.h>
#include <string.h>

static const char *assumed(const OrrSources *s, const char *key, const char **origin) {
    for (guint i = 0; i < s->assumptions->len; i++) {
        const OrrAssumption *a = s->assumptions->pdata[i];
        if (strcmp(a->key, key) == 0) {
            *origin = a->origin;
            return a->value;
        }
    }
    return NULL;
}

static GPtrArray *listed(const char *folder) {
    GError *error = NULL;
    GPtrArray *list = orr_workload_list(folder, &error);
    if (list == NULL)
        fail_msg("%s", error->message);
    assert_true(list->len > 0);
    for (guint i = 0; i < list->len; i++) {
        const OrrListed *l = list->pdata[i];
        if (*l->summary == '\0' || *l->source == '\0')
            fail_msg("%s/%s has no summary or no source", folder, l->name);
    }
    return list;
}

/* The files state expect_parameters and the loader compares; here that each one does state it. */
static void test_models_load_with_their_parameters(void **state) {
    (void)state;
    g_autoptr(GPtrArray) list = listed("models");
    for (guint i = 0; i < list->len; i++) {
        const OrrListed *l = list->pdata[i];
        GError *error = NULL;
        g_autoptr(OrrSources) sources = orr_sources_new();
        g_autoptr(OrrModel) m = orr_workload_model(l->name, NULL, 0, sources, &error);
        if (m == NULL)
            fail_msg("%s", error->message);
        assert_string_equal(m->name, l->name);
        if (sources->assumptions->len > 0)
            fail_msg("%s leaves %s to a default", l->name,
                     ((OrrAssumption *)sources->assumptions->pdata[0])->key);
        assert_int_equal(sources->inputs->len, 1);
    }
}

static void test_published_parameter_counts(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t total;
    } rows[] = {
        {"gpt2", 124439808},             /* files/README.md */
        {"llama2-7b", 6738415616},       /* files/README.md */
        {"llama2-13b", 13015864320},     /* files/README.md */
        {"llama2-70b", 68976648192},     /* files/README.md */
        {"llama3-8b", 8030261248},       /* files/README.md */
        {"llama3.1-405b", 405853388800}, /* released checkpoint */
        {"bloom-176b", 176247271424},    /* BLOOM paper, model card */
        {"mpt-13b", 12853954560},        /* llm-foundry benchmark table */
        {"mpt-70b", 64862437376},        /* llm-foundry benchmark table */
        {"gpt-neox-20b", 20554567680},   /* model card */
        {"qwen2.5-1.5b", 1543714304},    /* released checkpoint */
        {"qwen3-8b", 8190735360},        /* released checkpoint */
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(OrrModel) m = orr_workload_model(rows[i].name, NULL, 0, NULL, NULL);
        assert_non_null(m);
        OrrParams p;
        orr_params_count(m, &p);
        assert_int_equal(p.total, rows[i].total);
    }
}

static void test_frameworks_are_complete(void **state) {
    (void)state;
    g_autoptr(GPtrArray) list = listed("frameworks");
    for (guint i = 0; i < list->len; i++) {
        const OrrListed *l = list->pdata[i];
        GError *error = NULL;
        g_autoptr(OrrSources) sources = orr_sources_new();
        g_autoptr(OrrFramework) f = orr_workload_framework(l->name, NULL, 0, sources, &error);
        if (f == NULL)
            fail_msg("%s", error->message);
        assert_int_equal(sources->assumptions->len, 0);
        for (int k = 0; k < ORR_N_COMM_KINDS; k++)
            assert_true(f->compute_rate_frac[k] > 0 && f->memory_rate_frac[k] <= 1);
    }
}

static void test_jobs_load_and_their_layouts_are_legal(void **state) {
    (void)state;
    g_autoptr(GPtrArray) list = listed("jobs");
    for (guint i = 0; i < list->len; i++) {
        const OrrListed *l = list->pdata[i];
        GError *error = NULL;
        g_autoptr(OrrJob) j = orr_workload_job(l->name, NULL, 0, NULL, &error);
        if (j == NULL)
            fail_msg("%s", error->message);
        uint32_t n;
        g_autofree OrrOverride *sets = orr_workload_job_overrides(j, NULL, 0, &n);
        g_autoptr(OrrModel) m = orr_workload_model(j->model_ref, sets, n, NULL, &error);
        if (m == NULL)
            fail_msg("%s: %s", l->name, error->message);
        g_autoptr(OrrFramework) f = orr_workload_framework(j->framework_ref, sets, n, NULL, &error);
        if (f == NULL)
            fail_msg("%s: %s", l->name, error->message);
        g_autoptr(OrrCluster) c = orr_topology_cluster(j->cluster_ref, NULL, &error);
        if (c == NULL)
            fail_msg("%s: %s", l->name, error->message);
        assert_int_equal(orr_cluster_spec(c)->n_gpus, j->n_gpus);
        if (!orr_layout_check(m, &j->layout, &j->batch, f, j->n_gpus, &error))
            fail_msg("%s: %s", l->name, error->message);
    }
}

static void test_main_job_is_what_the_paper_says(void **state) {
    (void)state;
    g_autoptr(OrrSources) sources = orr_sources_new();
    g_autoptr(OrrJob) j = orr_workload_job("llama3-405b-16k", NULL, 0, sources, NULL);
    assert_non_null(j);
    const OrrLayout *l = &j->layout;
    assert_int_equal(l->tp * l->pp * l->dp, 16384);
    assert_int_equal(j->n_gpus, 16384);
    assert_int_equal(l->vpp, 8);
    assert_int_equal(l->zero_stage, 2);
    assert_int_equal(l->ends, ORR_ENDS_OWN_CHUNK);
    assert_true(l->sequence_parallel);
    assert_int_equal(j->batch.global_sequences, 2048);
    assert_int_equal(j->precision.gradients, ORR_FP32);
    assert_int_equal(j->precision.parameters, ORR_BF16);
    assert_true(j->precision.has_master);
    assert_string_equal(j->schedule_name, "interleaved");
    const char *origin;
    assert_string_equal(assumed(sources, "precision.parameters", &origin), "bf16");
    assert_string_equal(origin, "framework meta-llama3");
    assert_int_equal(sources->inputs->len, 1);
    const OrrInput *input = sources->inputs->pdata[0];
    assert_string_equal(input->name, "workloads/jobs/llama3-405b-16k.ini");
    assert_int_equal(strlen(input->sha256), 64);
}

static void test_overrides_reach_their_files(void **state) {
    (void)state;
    const OrrOverride sets[] = {
        {"layout", "tensor_parallel", "4"},
        {"batch", "global-batch-size", "1024"},
        {"model", "layers", "62"},
        {"framework", "attention", "unfused"},
        {"job", "cluster", "meta-24k-roce:8192"},
    };
    uint32_t n_sets = G_N_ELEMENTS(sets), n;
    GError *error = NULL;
    g_autoptr(OrrJob) j = orr_workload_job("llama3-405b-16k", sets, n_sets, NULL, &error);
    if (j == NULL)
        fail_msg("%s", error->message);
    assert_int_equal(j->layout.tp, 4);
    assert_int_equal(j->batch.global_sequences, 1024);
    assert_int_equal(j->n_gpus, 8192);
    g_autofree OrrOverride *rest = orr_workload_job_overrides(j, sets, n_sets, &n);
    assert_int_equal(n, 2);
    g_autoptr(OrrModel) m = orr_workload_model(j->model_ref, rest, n, NULL, &error);
    assert_int_equal(m->layers, 62);
    g_autoptr(OrrFramework) f = orr_workload_framework(j->framework_ref, rest, n, NULL, &error);
    assert_int_equal(f->attention, ORR_ATTENTION_UNFUSED);
}

static OrrJob *job_of(const char *text, OrrSources *sources) {
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "my.ini", NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    GError *error = NULL;
    OrrJob *j = orr_workload_job(path, NULL, 0, sources, &error);
    remove(path);
    remove(folder);
    if (j == NULL)
        fail_msg("%s", error->message);
    return j;
}

static void test_data_parallel_size_is_derived_and_said(void **state) {
    (void)state;
    g_autoptr(OrrSources) sources = orr_sources_new();
    g_autoptr(OrrJob) j = job_of("[job]\nmodel = gpt2\ncluster = h100-ib:64\n"
                                 "framework = megatron-core-2024\nsource = test\n"
                                 "[layout]\ntp = 4\npp = 2\n[batch]\nmicro = 2 sequences\n"
                                 "micro_batches = 3\nsequence = 1024 tokens\n"
                                 "[model]\nlayers = 24\n",
                                 sources);
    assert_int_equal(j->layout.dp, 8);
    assert_int_equal(j->batch.global_sequences, 2 * 3 * 8);
    assert_int_equal(j->n_sets, 1);
    assert_string_equal(j->set_values[0], "24");
    const char *origin;
    assert_string_equal(assumed(sources, "layout.dp", &origin), "8");
    assert_string_equal(origin, "GPUs / (tp x pp x cp)");
    assert_string_equal(assumed(sources, "layout.zero_stage", &origin), "1");
    assert_string_equal(origin, "framework megatron-core-2024");
    assert_string_equal(assumed(sources, "schedule.name", &origin), "1f1b");
    assert_string_equal(origin, "default of job files");
    assert_string_equal(assumed(sources, "layout.vpp", &origin), "1");
}

static void test_paths_in_a_job_are_relative_to_it(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "my.ini", NULL);
    const char *text = "[job]\nmodel = my/model.ini\ncluster = my/cluster.ini:16\n"
                       "framework = megatron-2023\nsource = test\n"
                       "[batch]\nglobal = 16\nmicro = 1\nsequence = 8\n"
                       "[schedule]\nname = order.csv\n"
                       "[perturb]\nours = gpu:*:speed=@speeds.csv\n";
    assert_true(g_file_set_contents(path, text, -1, NULL));
    const OrrOverride here[] = {{"schedule", "name", "other.csv"},
                                {"perturb", "ours", "gpu:*:speed=@other.csv"}};
    g_autoptr(OrrJob) j = orr_workload_job(path, NULL, 0, NULL, NULL);
    g_autoptr(OrrJob) k = orr_workload_job(path, here, 2, NULL, NULL);
    remove(path);
    remove(folder);
    assert_non_null(j);
    assert_non_null(k);
    g_autofree char *model = g_build_filename(folder, "my", "model.ini", NULL);
    g_autofree char *order = g_build_filename(folder, "order.csv", NULL);
    assert_string_equal(j->model_ref, model);
    assert_string_equal(j->schedule_name, order);
    g_autofree char *speeds = g_strdup_printf("gpu:*:speed=@%s/speeds.csv", folder);
    assert_string_equal(j->perturbs[0], speeds);
    assert_true(g_str_has_suffix(j->cluster_ref, "/my/cluster.ini:16"));
    assert_int_equal(j->n_gpus, 16);
    assert_string_equal(k->schedule_name, "other.csv"); /* on the command line: where one stands */
    assert_string_equal(k->perturbs[0], "gpu:*:speed=@other.csv");
}

static void test_nccl_variables_are_kept(void **state) {
    (void)state;
    g_autoptr(OrrJob) j = job_of("[job]\nmodel = gpt2\ncluster = fat_tree:16 node:8 gpu:h100\n"
                                 "framework = pytorch-fsdp\nsource = test\n"
                                 "[batch]\nglobal = 16 sequences\nmicro = 1\nsequence = 8 tokens\n"
                                 "[nccl]\nNCCL_ALGO = Ring\nNCCL_IB_HCA = mlx5\n",
                                 NULL);
    assert_int_equal(j->n_gpus, 16);
    assert_int_equal(j->layout.dp, 16);
    assert_string_equal(j->nccl_names[1], "NCCL_IB_HCA");
    assert_string_equal(j->nccl_values[0], "Ring");
    assert_null(j->nccl_names[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_load_with_their_parameters),
        cmocka_unit_test(test_published_parameter_counts),
        cmocka_unit_test(test_frameworks_are_complete),
        cmocka_unit_test(test_jobs_load_and_their_layouts_are_legal),
        cmocka_unit_test(test_main_job_is_what_the_paper_says),
        cmocka_unit_test(test_overrides_reach_their_files),
        cmocka_unit_test(test_data_parallel_size_is_derived_and_said),
        cmocka_unit_test(test_paths_in_a_job_are_relative_to_it),
        cmocka_unit_test(test_nccl_variables_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
