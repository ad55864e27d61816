/* Faults that a synthetic log has are the ones that are named. */
#include "tests/near.h"

#include <string.h>

#include "sim/judge/check.h"

static const OrrCommPlace two_nodes = {.n_ranks = 16,
                                       .n_domains = 2,
                                       .min_per_domain = 8,
                                       .max_per_domain = 8,
                                       .n_nodes = 2,
                                       .max_per_node = 8,
                                       .arch = ORR_ARCH_AMPERE,
                                       .nvlink = ORR_NVLINK_SWITCH,
                                       .nvlink_bytes_per_s = 300e9,
                                       .pcie_bytes_per_s = 32e9,
                                       .net = ORR_NET_ROCE,
                                       .nic_bytes_per_s = 12.5e9,
                                       .nics_per_domain = 8,
                                       .gpus_per_nic = 1,
                                       .net_latency_ns = 3000};
static const OrrNcclForce unforced = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};

/* A log as a machine at @place would print it, times stretched by @stretch. */
static OrrCheck *check_of(const OrrCommPlace *place, const OrrNcclForce *force, double stretch) {
    OrrMeasuredCollective rows[12] = {{0}};
    OrrMeasuredTable table = {.name = (char *)"log",
                              .kind = ORR_ALL_REDUCE,
                              .n_ranks = 16,
                              .n_nodes = 2,
                              .rows = rows,
                              .n_rows = 12};
    for (int i = 0; i < 12; i++) {
        OrrCollPlan plan;
        rows[i].bytes = INT64_C(1) << (19 + i);
        rows[i].dtype = ORR_FP32;
        assert_true(orr_collective_plan(ORR_ALL_REDUCE, rows[i].bytes, ORR_FP32, place, force,
                                        &plan, NULL));
        rows[i].out_of_place.time_ns = stretch * (double)orr_collective_ns(&plan, rows[i].bytes);
    }
    OrrCheck *c = orr_judge_check(&table, &two_nodes, &unforced, 1.25e9, 0.2, NULL);
    assert_non_null(c);
    return c;
}

static void test_a_sound_log_is_within_and_has_no_cause(void **state) {
    (void)state;
    g_autoptr(OrrCheck) c = check_of(&two_nodes, &unforced, 1.1);
    assert_true(c->is_within);
    assert_int_equal(c->n_causes, 0);
    assert_near(c->plateau_ratio, 1 / 1.1, 1e-3);
}

static void test_one_nic_for_all_gpus_is_named(void **state) {
    (void)state;
    OrrCommPlace place = two_nodes;
    place.nics_per_domain = 1, place.gpus_per_nic = 8;
    g_autoptr(OrrCheck) c = check_of(&place, &unforced, 1.02);
    assert_false(c->is_within);
    assert_string_equal(c->causes[0].code, "one_nic");
}

static void test_sockets_are_named(void **state) {
    (void)state;
    OrrCommPlace place = two_nodes;
    OrrNcclForce force = unforced;
    force.use_sockets = true;
    place.net = ORR_NET_ETHERNET, place.nic_bytes_per_s = 1.25e9;
    place.nics_per_domain = 1, place.gpus_per_nic = 8;
    g_autoptr(OrrCheck) c = check_of(&place, &force, 0.98);
    assert_false(c->is_within);
    assert_string_equal(c->causes[0].code, "sockets");
}

/* S13: 40 of 100 GB/s on six nodes of eight 100 Gb/s NICs: 2.5 to 1, or colliding flows. */
static void test_a_thin_fabric_gives_its_ratio(void **state) {
    (void)state;
    OrrCommPlace place = two_nodes;
    place.fabric_bytes_per_s = 12.5e9 / 2.5;
    g_autoptr(OrrCheck) c = check_of(&place, &unforced, 1);
    assert_false(c->is_within);
    assert_near(c->plateau_ratio, 0.45, 0.1); /* a little above 1 / 2.5: NVLink counts too */
    bool has_ratio = false, has_collisions = false;
    for (uint32_t i = 0; i < c->n_causes; i++) {
        has_ratio = has_ratio || strcmp(c->causes[i].code, "oversubscription") == 0;
        has_collisions = has_collisions || strcmp(c->causes[i].code, "ecmp_collisions") == 0;
    }
    assert_true(has_ratio && has_collisions);
}

static void test_a_table_without_sound_rows_is_an_error(void **state) {
    (void)state;
    OrrMeasuredCollective row = {.bytes = 1 << 20, .flaw = "wrong values"};
    row.out_of_place.time_ns = 100;
    OrrMeasuredTable table = {
        .name = (char *)"log", .kind = ORR_ALL_REDUCE, .n_ranks = 16, .rows = &row, .n_rows = 1};
    g_autoptr(GError) error = NULL;
    assert_null(orr_judge_check(&table, &two_nodes, &unforced, 0, 0.2, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sound_log_is_within_and_has_no_cause),
        cmocka_unit_test(test_one_nic_for_all_gpus_is_named),
        cmocka_unit_test(test_sockets_are_named),
        cmocka_unit_test(test_a_thin_fabric_gives_its_ratio),
        cmocka_unit_test(test_a_table_without_sound_rows_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
