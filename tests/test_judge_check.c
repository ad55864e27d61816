/* Faults that a synthetic log has are the ones that are named, alone and in pairs; a sound
 * machine's log with the noise of real ones raises no alarm. */
#include "tests/near.h"

#include <string.h>

#include "tests/check_machines.h"

#define TOLERANCE_FRAC 0.2
static const CheckNoise quiet = {0};

static OrrCheck *check(const OrrCheckCase *c) {
    g_autoptr(GError) error = NULL;
    OrrCheck *k = orr_judge_check(c, TOLERANCE_FRAC, &error);
    if (!k)
        fail_msg("%s", error->message);
    return k;
}

static int rank_of(const OrrCheckCauses *found, const char *code) {
    for (uint32_t i = 0; i < found->n_causes; i++)
        if (strcmp(found->causes[i].code, code) == 0)
            return (int)i;
    return -1;
}

static void test_a_sound_log_is_within_and_has_no_cause(void **state) {
    (void)state;
    for (int m = 0; m < CHECK_N_MACHINES; m++) {
        CheckLog log;
        OrrCheckCase c;
        assert_true(check_log(&check_machines[m], (const char *[2]){NULL}, (double[2]){0}, quiet,
                              &log, &c));
        g_autoptr(OrrCheck) k = check(&c);
        assert_true(k->is_within);
        assert_int_equal(k->found.n_causes, 0);
        assert_near(k->plateau_ratio, 1, 1e-9);
    }
}

/* Noise as the published tables have it against the model (doc/accuracy.md): 5 % a system, 8 % a
 * size. */
static void test_false_alarms_are_rare(void **state) {
    (void)state;
    enum { SEEDS = 250 };
    uint32_t alarms = 0;
    for (int m = 0; m < CHECK_N_MACHINES; m++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            CheckLog log;
            OrrCheckCase c;
            CheckNoise noise = {.seed = seed, .common = 0.05, .each = 0.08};
            assert_true(check_log(&check_machines[m], (const char *[2]){NULL}, (double[2]){0},
                                  noise, &log, &c));
            g_autoptr(OrrCheck) k = check(&c);
            alarms += !k->is_within;
        }
    print_message("false alarms: %u of %d\n", alarms, SEEDS * CHECK_N_MACHINES);
    assert_true(alarms <= SEEDS * CHECK_N_MACHINES / 100);
}

/* Faults, where they are, and how far down the list they may stand: what one table cannot tell
 * apart (half a NIC's rate, 2:1, two flows on a link) may come in any order. */
typedef struct {
    int machine;
    const char *faults[2];
    double levels[2];
    int rank; /* at most */
} Case;

static const Case cases[] = {
    {CHECK_H100_64, {"sockets"}, {1}, 0},
    {CHECK_A100_48, {"sockets"}, {1}, 0},
    {CHECK_H100_PAIR, {"one_nic"}, {0}, 1},
    {CHECK_A100_48, {"one_nic"}, {0}, 1},
    {CHECK_H100_64, {"half_of_the_nics"}, {2}, 3},
    {CHECK_H100_64, {"nic_across_the_socket"}, {12e9}, 3},
    {CHECK_H100_PAIR, {"nic_across_the_socket"}, {9.5e9}, 3},
    {CHECK_A100_48, {"oversubscription"}, {2.5}, 3},
    {CHECK_H100_64, {"oversubscription"}, {4}, 5},
    {CHECK_A100_48, {"ecmp_collisions"}, {2.44}, 3},
    {CHECK_A100_48, {"slow_nic"}, {2}, 3},
    {CHECK_H100_NODE, {"nvls_off"}, {0}, 0},
    {CHECK_H100_NODE, {"no_p2p"}, {0}, 0},
    {CHECK_H100_64, {"protocol_ll"}, {0}, 0},
    {CHECK_A100_48, {"protocol_ll"}, {0}, 0},
    {CHECK_H100_NODE, {"protocol_ll"}, {0}, 0},
    {CHECK_H100_NODE, {"protocol_ll128"}, {0}, 2},
    {CHECK_H100_512, {"algorithm_ring"}, {0}, 1},
    {CHECK_H100_NODE, {"algorithm_tree"}, {0}, 1},
    {CHECK_H100_NODE, {"few_channels"}, {2}, 0},
    {CHECK_A100_48, {"few_channels"}, {1}, 1},
    {CHECK_A100_48, {"oversubscription", "protocol_ll"}, {2.5, 0}, 3},
    {CHECK_A100_48, {"one_nic", "protocol_ll"}, {0, 0}, 3},
    {CHECK_H100_64, {"one_nic", "nic_across_the_socket"}, {0, 12e9}, 3},
    {CHECK_H100_512, {"half_of_the_nics", "algorithm_ring"}, {2, 0}, 3},
    {CHECK_H100_NODE, {"nvls_off", "few_channels"}, {0, 8}, 3},
    {CHECK_A100_48, {"oversubscription", "one_nic"}, {2, 0}, 5},
};

static void test_each_fault_and_pair_is_named(void **state) {
    (void)state;
    uint32_t missed = 0, first = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *w = &cases[i];
        CheckLog log;
        OrrCheckCase c;
        CheckNoise noise = {.seed = i, .common = 0.02, .each = 0.03};
        assert_true(check_log(&check_machines[w->machine], w->faults, w->levels, noise, &log, &c));
        g_autofree char *code = w->faults[1] ? g_strdup_printf("%s+%s", w->faults[0], w->faults[1])
                                             : g_strdup(w->faults[0]);
        g_autoptr(OrrCheck) k = check(&c);
        int rank = rank_of(&k->found, code);
        first += rank == 0;
        if (!k->is_within && rank >= 0 && rank <= w->rank)
            continue;
        print_message("%s, %s: within %d, rank %d\n", check_machines[w->machine].name, code,
                      k->is_within, rank);
        for (uint32_t j = 0; j < k->found.n_causes; j++)
            print_message("    %s %.3f error %.3f\n", k->found.causes[j].code,
                          k->found.causes[j].likelihood_frac, k->found.causes[j].error_frac);
        missed++;
    }
    print_message("named first: %u of %zu\n", first, G_N_ELEMENTS(cases));
    assert_int_equal(missed, 0);
}

/* S13: 40 of 100 GB/s on six nodes of eight 100 Gb/s NICs: 2.5 to 1, or colliding flows. */
static void test_s13_a_thin_fabric_or_collisions_not_nccl(void **state) {
    (void)state;
    CheckLog log;
    OrrCheckCase c;
    assert_true(check_log(&check_machines[CHECK_A100_48], (const char *[2]){NULL}, (double[2]){0},
                          quiet, &log, &c));
    log.table.n_rows = 0;
    for (int64_t bytes = 1 << 28; bytes <= INT64_C(1) << 31; bytes *= 2) {
        OrrMeasuredCollective *row = &log.rows[log.table.n_rows++];
        row->bytes = bytes;
        row->out_of_place.time_ns = (double)bytes / 40e9 * 1e9 * 2 * 47 / 48;
    }
    g_autoptr(OrrCheck) k = check(&c);
    assert_false(k->is_within);
    assert_near(k->plateau_ratio, 0.42, 0.05);
    assert_true(rank_of(&k->found, "oversubscription") >= 0);
    assert_true(rank_of(&k->found, "ecmp_collisions") >= 0);
    int thin = rank_of(&k->found, "oversubscription");
    assert_non_null(strstr(k->found.causes[thin].words, "2.50:1"));
}

/* S13 whole: 100, 70, 58, 58, 40 GB/s on 2 to 6 nodes. A protocol would slow two nodes too. */
static void test_s13_all_node_counts_leave_the_fabric_only(void **state) {
    (void)state;
    static const double busbw[] = {100e9, 70e9, 58e9, 58e9, 40e9};
    CheckLog logs[5];
    OrrCheckCase at[5];
    for (uint32_t i = 0; i < 5; i++) {
        CheckMachine m = check_machines[CHECK_A100_48];
        m.place.n_domains = m.place.n_nodes = i + 2;
        m.place.n_ranks = 8 * (i + 2);
        assert_true(
            check_log(&m, (const char *[2]){NULL}, (double[2]){0}, quiet, &logs[i], &at[i]));
        double n = m.place.n_ranks;
        logs[i].table.n_rows = 0;
        for (int64_t bytes = 1 << 28; bytes <= INT64_C(1) << 31; bytes *= 2) {
            OrrMeasuredCollective *row = &logs[i].rows[logs[i].table.n_rows++];
            row->bytes = bytes;
            row->out_of_place.time_ns = (double)bytes / busbw[i] * 1e9 * 2 * (n - 1) / n;
        }
    }
    OrrCheckCauses found;
    orr_judge_causes(at, 5, &found);
    assert_true(rank_of(&found, "oversubscription") >= 0 &&
                rank_of(&found, "oversubscription") < 2);
    assert_true(rank_of(&found, "ecmp_collisions") >= 0 && rank_of(&found, "ecmp_collisions") < 2);
    assert_true(rank_of(&found, "protocol_ll") < 0);
    orr_check_causes_clear(&found);
}

/* S14: two nodes of eight with one 100 Gb/s NIC each, busbw 22 GB/s: above the wire, and legal. */
static void test_s14_faster_than_the_wire_is_said_and_legal(void **state) {
    (void)state;
    CheckMachine m = check_machines[CHECK_A100_48];
    m.place.n_ranks = 16, m.place.n_domains = m.place.n_nodes = 2;
    m.place.nics_per_domain = 1, m.place.gpus_per_nic = 8;
    CheckLog log;
    OrrCheckCase c;
    assert_true(check_log(&m, (const char *[2]){NULL}, (double[2]){0}, quiet, &log, &c));
    for (uint32_t i = CHECK_ROWS - 3; i < CHECK_ROWS; i++)
        log.rows[i].out_of_place.time_ns = (double)log.rows[i].bytes / 22e9 * 1e9 * 2 * 15 / 16;
    g_autoptr(OrrCheck) k = check(&c);
    assert_true(k->is_faster_than_wire);
    assert_true(k->is_within);
}

/* S17: one GPU a node has its own NIC only: 46 of 50 GB/s is sound, whatever the other NICs. */
static void test_s17_one_gpu_has_one_nic(void **state) {
    (void)state;
    CheckMachine m = check_machines[CHECK_H100_PAIR];
    m.place.n_ranks = 2, m.place.min_per_domain = m.place.max_per_domain = 1;
    m.place.max_per_node = 1, m.place.nics_per_domain = 1;
    CheckLog log;
    OrrCheckCase c;
    assert_true(check_log(&m, (const char *[2]){NULL}, (double[2]){0}, quiet, &log, &c));
    for (uint32_t i = CHECK_ROWS - 3; i < CHECK_ROWS; i++)
        log.rows[i].out_of_place.time_ns = (double)log.rows[i].bytes / 46e9 * 1e9;
    g_autoptr(OrrCheck) k = check(&c);
    assert_true(k->is_within);
}

/* What NCCL printed outweighs what the curve alone says. */
static void test_words_of_nccl_are_evidence(void **state) {
    (void)state;
    CheckLog log;
    OrrCheckCase c;
    assert_true(check_log(&check_machines[CHECK_A100_48], (const char *[2]){"slow_nic"},
                          (double[2]){4}, quiet, &log, &c));
    c.log = "node1:1:1 [0] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.\n"
            "node1:1:1 [0] NCCL INFO GPU Direct RDMA Disabled for HCA 0\n";
    /* a quarter of 12.5 GB/s is no path across sockets; a tenth less than it is */
    assert_null(orr_fault_mark(check_fault("sockets"), c.log));
    assert_non_null(orr_fault_mark(check_fault("nvls_off"), c.log));
    assert_null(orr_fault_mark(check_fault("protocol_ll"), "NCCL_PROTO=LL128"));
    assert_non_null(orr_fault_mark(check_fault("protocol_ll128"), "NCCL_PROTO=LL128"));
    assert_non_null(
        orr_fault_mark(check_fault("protocol_ll"), "NCCL_PROTO set by environment to LL\n"));
    CheckLog other;
    assert_true(check_log(&check_machines[CHECK_H100_64], (const char *[2]){"oversubscription"},
                          (double[2]){4}, quiet, &other, &c));
    g_autoptr(OrrCheck) before = check(&c);
    c.log = "NCCL INFO GPU Direct RDMA Disabled for HCA 0";
    g_autoptr(OrrCheck) after = check(&c);
    assert_true(rank_of(&before->found, "nic_across_the_socket") > 0);
    assert_int_equal(rank_of(&after->found, "nic_across_the_socket"), 0);
    assert_non_null(strstr(after->found.causes[0].evidence, "GPU Direct RDMA Disabled"));
}

/* One node's table cannot show the network, two nodes' hide NVLS: together they tell both. */
static void test_tables_of_one_machine_tell_together(void **state) {
    (void)state;
    CheckLog logs[2];
    OrrCheckCase two[2];
    assert_true(check_log(&check_machines[CHECK_H100_NODE], (const char *[2]){"nvls_off"},
                          (double[2]){0}, quiet, &logs[0], &two[0]));
    assert_true(check_log(&check_machines[CHECK_H100_64], (const char *[2]){"sockets", "nvls_off"},
                          (double[2]){1, 0}, quiet, &logs[1], &two[1]));
    OrrCheckCauses found;
    orr_judge_causes(two, 2, &found);
    assert_int_equal(rank_of(&found, "sockets+nvls_off"), 0);
    orr_check_causes_clear(&found);
}

static void test_bandwidth_that_still_rises_is_no_plateau(void **state) {
    (void)state;
    CheckLog log;
    OrrCheckCase c;
    assert_true(check_log(&check_machines[CHECK_H100_PAIR], (const char *[2]){NULL}, (double[2]){0},
                          quiet, &log, &c));
    log.rows[CHECK_ROWS - 2].out_of_place.time_ns *= 1.5;
    log.rows[CHECK_ROWS - 3].out_of_place.time_ns *= 1.8;
    g_autoptr(OrrCheck) k = check(&c);
    assert_false(k->is_plateau);
    assert_true(k->is_within);
}

static void test_a_table_without_sound_rows_is_an_error(void **state) {
    (void)state;
    OrrMeasuredCollective row = {.bytes = 1 << 20, .flaw = "wrong values"};
    row.out_of_place.time_ns = 100;
    OrrMeasuredTable table = {
        .name = (char *)"log", .kind = ORR_ALL_REDUCE, .n_ranks = 16, .rows = &row, .n_rows = 1};
    OrrCheckCase c = {.table = &table,
                      .place = check_machines[CHECK_H100_PAIR].place,
                      .force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS}};
    g_autoptr(GError) error = NULL;
    assert_null(orr_judge_check(&c, TOLERANCE_FRAC, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sound_log_is_within_and_has_no_cause),
        cmocka_unit_test(test_false_alarms_are_rare),
        cmocka_unit_test(test_each_fault_and_pair_is_named),
        cmocka_unit_test(test_s13_a_thin_fabric_or_collisions_not_nccl),
        cmocka_unit_test(test_s13_all_node_counts_leave_the_fabric_only),
        cmocka_unit_test(test_s14_faster_than_the_wire_is_said_and_legal),
        cmocka_unit_test(test_s17_one_gpu_has_one_nic),
        cmocka_unit_test(test_words_of_nccl_are_evidence),
        cmocka_unit_test(test_tables_of_one_machine_tell_together),
        cmocka_unit_test(test_bandwidth_that_still_rises_is_no_plateau),
        cmocka_unit_test(test_a_table_without_sound_rows_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
