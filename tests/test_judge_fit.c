/* A synthetic machine's tables give its constants back. */
#include "tests/near.h"

#include <string.h>

#include "sim/collective/constant_names.h"
#include "sim/collective/timed.h"
#include "sim/judge/fit.h"

#define N_TABLES 3
#define N_ROWS 20

static OrrCommPlace node(uint32_t n) {
    return (OrrCommPlace){.n_ranks = n,
                          .n_domains = 1,
                          .min_per_domain = n,
                          .max_per_domain = n,
                          .n_nodes = 1,
                          .max_per_node = n,
                          .arch = ORR_ARCH_AMPERE,
                          .nvlink = ORR_NVLINK_SWITCH,
                          .nvlink_bytes_per_s = 300e9,
                          .pcie_bytes_per_s = 32e9,
                          .gpus_per_nic = 1};
}

typedef struct {
    OrrMeasuredCollective rows[N_TABLES][N_ROWS];
    OrrMeasuredTable tables[N_TABLES];
    OrrFitTable fits[N_TABLES];
} Machine;

/* All-gather on 2, 4 and 8 GPUs by ring and Simple, priced by @truth. */
static void synthesize(Machine *m, const OrrCollConstants *truth) {
    memset(m, 0, sizeof *m);
    for (uint32_t t = 0; t < N_TABLES; t++) {
        m->tables[t] = (OrrMeasuredTable){.name = (char *)"log",
                                          .kind = ORR_ALL_GATHER,
                                          .n_ranks = 2u << t,
                                          .rows = m->rows[t],
                                          .n_rows = N_ROWS};
        m->fits[t].table = &m->tables[t];
        m->fits[t].place = node(2u << t);
        m->fits[t].force = (OrrNcclForce){.algo = ORR_ALGO_RING, .proto = ORR_PROTO_SIMPLE};
        OrrNcclForce force = m->fits[t].force;
        force.constants = truth;
        for (int i = 0; i < N_ROWS; i++) {
            OrrMeasuredCollective *row = &m->rows[t][i];
            OrrCollPlan plan;
            row->bytes = INT64_C(1) << (11 + i);
            row->dtype = ORR_FP32;
            assert_true(orr_collective_plan(ORR_ALL_GATHER, row->bytes, ORR_FP32, &m->fits[t].place,
                                            &force, &plan, NULL));
            row->out_of_place.time_ns = (double)orr_collective_ns(&plan, row->bytes);
        }
    }
}

static double fitted(const OrrFit *fit, const char *name) {
    for (uint32_t i = 0; i < fit->n_parameters; i++)
        if (strcmp(fit->parameters[i].name, name) == 0)
            return fit->parameters[i].after;
    fail_msg("%s was not fitted", name);
    return 0;
}

static void test_constants_come_back_within_2_percent(void **state) {
    (void)state;
    OrrCollConstants truth = *orr_coll_constants_default();
    OrrCollLaw *law = &truth.arch[ORR_ARCH_AMPERE].ring[ORR_PROTO_SIMPLE];
    law->launch_ns *= 1.4, law->step_ns *= 0.7, law->eff_frac *= 0.8;
    Machine m;
    synthesize(&m, &truth);
    g_autoptr(OrrFit) fit = orr_judge_fit(m.fits, N_TABLES, NULL, NULL);
    assert_non_null(fit);
    assert_true(fit->before_frac > 0.05);
    assert_true(fit->after_frac < 0.005);
    assert_near(fitted(fit, "ampere.ring.simple.launch_ns"), law->launch_ns, 0.02);
    assert_near(fitted(fit, "ampere.ring.simple.step_ns"), law->step_ns, 0.02);
    assert_near(fitted(fit, "ampere.ring.simple.eff_frac"), law->eff_frac, 0.02);
    for (uint32_t i = 0; i < fit->n_parameters; i++) { /* a file finds each by its name */
        double *at = orr_coll_constant(&fit->constants, fit->parameters[i].name);
        assert_non_null(at);
        assert_near(*at, fit->parameters[i].after, 1e-12);
    }
}

static void test_what_no_row_tells_stays(void **state) {
    (void)state;
    Machine m;
    synthesize(&m, NULL);
    g_autoptr(OrrFit) fit = orr_judge_fit(m.fits, N_TABLES, NULL, NULL);
    for (uint32_t i = 0; i < fit->n_parameters; i++)
        assert_null(strstr(fit->parameters[i].name, "nvls"));
    assert_near(fit->constants.arch[ORR_ARCH_AMPERE].nvls.launch_ns,
                orr_coll_constants_default()->arch[ORR_ARCH_AMPERE].nvls.launch_ns, 1e-12);
    assert_true(fit->after_frac < 0.001);
}

static void test_rows_faster_than_the_link_are_refused(void **state) {
    (void)state;
    Machine m;
    synthesize(&m, NULL);
    m.rows[2][N_ROWS - 1].out_of_place.time_ns /= 3;
    g_autoptr(OrrFit) fit = orr_judge_fit(m.fits, N_TABLES, NULL, NULL);
    assert_int_equal(fit->n_refused, 1);
    assert_non_null(strstr(fit->notes->pdata[0], "faster than the link"));
    assert_true(fit->after_frac < 0.001);
}

/* One sample in thousands that a hiccup of the host made long, and the same everywhere. */
static void test_a_lone_row_far_off_is_told_and_not_fitted(void **state) {
    (void)state;
    OrrCollConstants truth = *orr_coll_constants_default();
    OrrCollLaw *law = &truth.arch[ORR_ARCH_AMPERE].ring[ORR_PROTO_SIMPLE];
    law->launch_ns *= 1.4, law->eff_frac *= 0.8;
    Machine m;
    synthesize(&m, &truth);
    m.rows[1][2].out_of_place.time_ns *= 4;
    g_autoptr(OrrFit) fit = orr_judge_fit(m.fits, N_TABLES, NULL, NULL);
    assert_int_equal(fit->n_outliers, 1);
    assert_int_equal(fit->notes->len, 1);
    assert_non_null(strstr(fit->notes->pdata[0], "times as long as the others let expect"));
    assert_true(fit->after_frac < 0.005);
    assert_near(fitted(fit, "ampere.ring.simple.eff_frac"), law->eff_frac, 0.02);
    for (uint32_t t = 0; t < N_TABLES; t++)
        for (uint32_t i = 0; i < N_ROWS; i++)
            m.rows[t][i].out_of_place.time_ns *= i % 3 ? 1 : 4; /* no accident: all are kept */
    g_autoptr(OrrFit) rough = orr_judge_fit(m.fits, N_TABLES, NULL, NULL);
    assert_int_equal(rough->n_outliers, 0);
}

/* The switch reduces: an all-reduce may show more than a wire carries, a gather may not. */
static void test_nvls_above_the_wire_is_legal_for_all_reduce_alone(void **state) {
    (void)state;
    OrrMeasuredCollective row = {.bytes = INT64_C(1) << 30, .dtype = ORR_FP32, .line = 7};
    OrrMeasuredTable table = {
        .name = (char *)"log", .kind = ORR_ALL_REDUCE, .n_ranks = 8, .rows = &row, .n_rows = 1};
    OrrFitTable fit = {
        .table = &table, .place = node(8), .force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS}};
    fit.place.arch = ORR_ARCH_HOPPER;
    fit.place.has_nvls = true;
    fit.place.nvlink_bytes_per_s = 450e9;
    row.out_of_place.time_ns = (double)row.bytes * 1.75 / 480e9 * 1e9; /* 480 GB/s on the bus */
    g_autoptr(OrrFit) sum = orr_judge_fit(&fit, 1, NULL, NULL);
    assert_non_null(sum);
    assert_int_equal(sum->n_refused, 0);
    table.kind = ORR_ALL_GATHER;
    row.out_of_place.time_ns = (double)row.bytes * 0.875 / 480e9 * 1e9;
    g_autoptr(GError) error = NULL;
    assert_null(orr_judge_fit(&fit, 1, NULL, &error));
}

/* Times that the launches of one process hide tell its host, not the kernels. */
static void test_one_process_shows_its_host_in_short_messages(void **state) {
    (void)state;
    Machine m;
    OrrCollConstants truth = *orr_coll_constants_default();
    truth.host_launch_ns = 7000;
    synthesize(&m, NULL);
    for (int t = 0; t < N_TABLES; t++) {
        m.tables[t].timed = ORR_TIMED_ONE_PROCESS;
        m.fits[t].force.proto = ORR_PROTO_LL; /* 10 to 15 us, less than the launches take */
        for (int i = 0; i < N_ROWS; i++) {
            OrrMeasuredCollective *row = &m.rows[t][i];
            OrrCollPlan plan;
            assert_true(orr_collective_plan(ORR_ALL_GATHER, row->bytes, ORR_FP32, &m.fits[t].place,
                                            &m.fits[t].force, &plan, NULL));
            row->out_of_place.time_ns = orr_collective_timed_ns(&plan, row->bytes, &m.fits[t].place,
                                                                ORR_TIMED_ONE_PROCESS, &truth);
        }
    }
    g_autoptr(OrrFit) fit = orr_judge_fit(m.fits, N_TABLES, NULL, NULL);
    assert_non_null(fit);
    assert_near(fitted(fit, "host.launch_ns"), 7000, 0.02);
    assert_true(fit->after_frac < 0.005);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_come_back_within_2_percent),
        cmocka_unit_test(test_what_no_row_tells_stays),
        cmocka_unit_test(test_rows_faster_than_the_link_are_refused),
        cmocka_unit_test(test_a_lone_row_far_off_is_told_and_not_fitted),
        cmocka_unit_test(test_nvls_above_the_wire_is_legal_for_all_reduce_alone),
        cmocka_unit_test(test_one_process_shows_its_host_in_short_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
