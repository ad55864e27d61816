/* Orders of all schedules: sound, as long as the closed forms say, holding as much as they say. The
 * step time comes from an evaluator of its own (tests/longest_path.h). */
#include "sim/schedule/schedules.h"
#include "tests/longest_path.h"
#include "tests/near.h"

#include <string.h>

enum { MAX_P = 8, MAX_M = 16, MAX_V = 4, F_NS = 100 };

static OrrOrder *order_of(const char *name, uint32_t p, uint32_t v, uint32_t m) {
    OrrPipeShape shape = {p, v, m};
    GError *error = NULL;
    const OrrSchedule *schedule = orr_schedule_find(name, &error);
    assert_non_null(schedule);
    OrrOrder *order = schedule->order(&shape, &error);
    if (order == NULL)
        fail_msg("%s P=%u V=%u M=%u: %s", name, p, v, m, error->message);
    return order;
}

/* Equal stages, B = 2F, I = W = F, no communication. */
static int64_t step_ns(const OrrOrder *order, int64_t p2p_ns) {
    uint32_t n = order->shape.n_stages * order->shape.n_chunks;
    int64_t one[MAX_P * MAX_V], two[MAX_P * MAX_V];
    for (uint32_t v = 0; v < n; v++)
        one[v] = F_NS, two[v] = 2 * F_NS;
    LongestPathTimes times = {{one, two, one, one}, p2p_ns};
    return longest_path_ns(order, &times);
}

static int64_t work_ns(const OrrPipeShape *shape) {
    return (int64_t)3 * F_NS * shape->n_chunks * shape->n_micro_batches;
}

/* Most chunk activations held: from F until B, or until W where the backward is split. */
static uint32_t replayed_in_flight(const OrrOrder *o, uint32_t stage) {
    uint32_t held = 0, most = 0;
    for (uint32_t i = o->first[stage]; i < o->first[stage + 1]; i++) {
        if (o->slots[i].pass == ORR_F)
            held++;
        else if (o->slots[i].pass != ORR_I)
            held--;
        most = MAX(most, held);
    }
    assert_int_equal(held, 0);
    return most;
}

static void check_order(const OrrSchedule *schedule, const OrrPipeShape *shape) {
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrOrder) order = schedule->order(shape, &error);
    if (order == NULL) {
        assert_int_equal(error->code, ORR_ERROR_INPUT);
        return;
    }
    g_autofree char *flaw = orr_order_flaw(order);
    if (flaw != NULL)
        fail_msg("%s P=%u V=%u M=%u: %s", schedule->name, shape->n_stages, shape->n_chunks,
                 shape->n_micro_batches, flaw);
    int64_t step = step_ns(order, 0);
    double bubble = schedule->bubble(shape);
    if (!isnan(bubble)) {
        double expected = (double)work_ns(shape) * (1 + bubble);
        if (fabs((double)step - expected) > 1e-6 * expected)
            fail_msg("%s P=%u V=%u M=%u: %g ns, closed form %g", schedule->name, shape->n_stages,
                     shape->n_chunks, shape->n_micro_batches, (double)step, expected);
    }
    assert_true(step >= work_ns(shape));
    for (uint32_t s = 0; s < shape->n_stages; s++) {
        uint32_t held = replayed_in_flight(order, s), closed = schedule->in_flight(shape, s);
        if (closed != 0 && held != closed)
            fail_msg("%s P=%u V=%u M=%u stage %u holds %u, closed form %u", schedule->name,
                     shape->n_stages, shape->n_chunks, shape->n_micro_batches, s, held, closed);
    }
}

static void test_all_orders_are_sound_and_meet_their_closed_forms(void **state) {
    (void)state;
    for (const OrrSchedule *const *s = orr_schedules; *s != NULL; s++)
        for (uint32_t p = 1; p <= MAX_P; p++)
            for (uint32_t v = 1; v <= MAX_V; v++)
                for (uint32_t m = 1; m <= MAX_M; m++)
                    check_order(*s, &(OrrPipeShape){p, v, m});
}

static void test_closed_forms_cover_what_they_must(void **state) {
    (void)state;
    static const char *const flat[] = {"naive", "gpipe", "1f1b"};
    for (size_t i = 0; i < G_N_ELEMENTS(flat); i++) {
        for (uint32_t p = 1; p <= MAX_P; p++) {
            for (uint32_t m = 1; m <= MAX_M; m++) {
                OrrPipeShape shape = {p, 1, m};
                g_autoptr(OrrOrder) order = order_of(flat[i], p, 1, m);
                double bubble = i == 0 ? p - 1.0 : (p - 1.0) / m;
                assert_near((double)step_ns(order, 0), 3.0 * F_NS * m * (1 + bubble), 1e-12);
                for (uint32_t s = 0; s < p; s++) {
                    uint32_t held[] = {1, m, MIN(p - s, m)};
                    assert_int_equal(replayed_in_flight(order, s), held[i]);
                    const OrrSchedule *schedule = orr_schedule_find(flat[i], NULL);
                    assert_int_equal(schedule->in_flight(&shape, s), held[i]);
                }
            }
        }
    }
    for (uint32_t p = 2; p <= MAX_P; p++) {
        for (uint32_t v = 2; v <= MAX_V; v++) {
            for (uint32_t m = p; m <= MAX_M; m += p) {
                g_autoptr(OrrOrder) order = order_of("interleaved", p, v, m);
                assert_near((double)step_ns(order, 0), 3.0 * F_NS * v * m + 3.0 * F_NS * (p - 1),
                            1e-12);
                for (uint32_t s = 0; s < p; s++)
                    assert_int_equal(replayed_in_flight(order, s),
                                     MIN(2 * (p - s - 1) + (v - 1) * p + 1, v * m));
            }
        }
    }
}

/* Scenario S03: share of the step, equal stages, B = 2F. */
static void test_bubbles_of_eight_stages_are_those_of_scenario_s03(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t v, m;
        double of_step_frac;
    } rows[] = {{"1f1b", 1, 8, 0.467},
                {"1f1b", 1, 32, 0.179},
                {"1f1b", 1, 128, 0.052},
                {"interleaved", 2, 8, 0.304},
                {"interleaved", 4, 8, 0.179}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(OrrOrder) order = order_of(rows[i].name, 8, rows[i].v, rows[i].m);
        double step = (double)step_ns(order, 0);
        double of_step = 1 - (double)work_ns(&order->shape) / step;
        assert_true(fabs(of_step - rows[i].of_step_frac) < 0.0005); /* three digits are given */
    }
}

static void test_interleaved_order_of_two_stages_is_megatrons(void **state) {
    (void)state;
    /* P = 2, V = 2, M = 4 by hand from the schedule table: warm-up 2 + 2 on stage 0, 2 on stage 1.
     */
    static const char *const expected[] = {
        "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3",
        "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3"};
    g_autoptr(OrrOrder) order = order_of("interleaved", 2, 2, 4);
    for (uint32_t s = 0; s < 2; s++) {
        g_autoptr(GString) text = g_string_new(NULL);
        for (uint32_t i = order->first[s]; i < order->first[s + 1]; i++)
            g_string_append_printf(text, "%s%s%u.%u", text->len > 0 ? " " : "",
                                   orr_pass_name(order->slots[i].pass), order->slots[i].chunk,
                                   order->slots[i].micro_batch);
        assert_string_equal(text->str, expected[s]);
    }
}

static void test_padded_is_megatrons_order_where_p_divides_m(void **state) {
    (void)state;
    g_autoptr(OrrOrder) a = order_of("interleaved", 4, 3, 8);
    g_autoptr(OrrOrder) b = order_of("interleaved_padded", 4, 3, 8);
    assert_int_equal(a->first[4], b->first[4]);
    for (uint32_t i = 0; i < a->first[4]; i++)
        assert_memory_equal(&a->slots[i], &b->slots[i], sizeof a->slots[i]);
}

static void expect_refusal(const char *name, OrrPipeShape shape, const char *text) {
    GError *error = NULL;
    const OrrSchedule *schedule = orr_schedule_find(name, &error);
    assert_non_null(schedule);
    assert_null(schedule->order(&shape, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (strstr(error->message, text) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error->message, text);
    g_error_free(error);
}

static void test_illegal_shapes_are_refused_with_their_rule(void **state) {
    (void)state;
    expect_refusal("interleaved", (OrrPipeShape){4, 2, 6}, "6 is not a multiple of 4");
    expect_refusal("interleaved", (OrrPipeShape){4, 2, 6}, "take 8 micro-batches");
    expect_refusal("interleaved", (OrrPipeShape){8, 2, 3}, "3 is not a multiple of 8");
    expect_refusal("interleaved", (OrrPipeShape){4, 1, 8}, "vpp of 2 or more");
    expect_refusal("interleaved", (OrrPipeShape){1, 2, 8}, "pp of 2 or more");
    expect_refusal("1f1b", (OrrPipeShape){4, 2, 8}, "one chunk a stage");
    expect_refusal("gpipe", (OrrPipeShape){4, 2, 8}, "one chunk a stage");
    expect_refusal("naive", (OrrPipeShape){4, 2, 8}, "one chunk a stage");
    expect_refusal("interleaved_padded", (OrrPipeShape){4, 1, 8}, "vpp of 2 or more");
}

static void test_names_and_aliases_find_their_schedule(void **state) {
    (void)state;
    for (const OrrSchedule *const *s = orr_schedules; *s != NULL; s++) {
        assert_ptr_equal(orr_schedule_find((*s)->name, NULL), *s);
        assert_true(strlen((*s)->summary) > 0 && strlen((*s)->source) > 0);
    }
    assert_string_equal(orr_schedule_find("Interleaved1F1B", NULL)->name, "interleaved");
    assert_string_equal(orr_schedule_find("GPipe", NULL)->name, "gpipe");
    g_autoptr(GError) error = NULL;
    assert_null(orr_schedule_find("zig-zag", &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, "interleaved_padded"));
}

static void test_flaw_spells_out_the_cycle(void **state) {
    (void)state;
    g_autoptr(OrrOrder) order = order_of("1f1b", 2, 1, 2);
    /* stage 0: F0 F1 B0 B1; run B0 before F1's turn is fine, F1 of stage 1 before F0 is too; but
     * stage 0 wanting B0 before F0 is not. */
    OrrSlot first = order->slots[0];
    order->slots[0] = order->slots[2];
    order->slots[2] = first;
    g_autofree char *flaw = orr_order_flaw(order);
    assert_non_null(flaw);
    assert_non_null(strstr(flaw, "stage 0 waits before 0B0 for 0F0 of stage 0"));
    assert_int_equal(step_ns(order, 0), -1);
}

static void test_flaw_finds_a_cycle_across_stages(void **state) {
    (void)state;
    /* stage 1 wants micro-batch 1 first, stage 0 wants the backward of 0 before it sends 1. */
    g_autoptr(OrrOrder) order = order_of("naive", 2, 1, 2);
    for (uint32_t i = order->first[1]; i < order->first[2]; i++)
        order->slots[i].micro_batch = 1 - order->slots[i].micro_batch;
    g_autofree char *flaw = orr_order_flaw(order);
    assert_non_null(flaw);
    assert_non_null(strstr(flaw, "stage 0 waits before 0B0 for 1B0 of stage 1"));
    assert_non_null(strstr(flaw, "stage 1 waits before 1F1 for 0F1 of stage 0"));
}

static void test_flaw_finds_passes_that_are_missing_or_twice(void **state) {
    (void)state;
    g_autoptr(OrrOrder) order = order_of("gpipe", 2, 1, 2);
    order->slots[1].micro_batch = 0;
    g_autofree char *twice = orr_order_flaw(order);
    assert_non_null(strstr(twice, "0F0 comes twice"));
    order->slots[1].micro_batch = 1;
    order->slots[2].pass = ORR_I;
    g_autofree char *missing = orr_order_flaw(order);
    assert_non_null(strstr(missing, "0W0 is missing"));
}

static void test_transfers_lengthen_the_drain_once_a_hop(void **state) {
    (void)state;
    g_autoptr(OrrOrder) order = order_of("gpipe", 4, 1, 8);
    assert_int_equal(step_ns(order, 10), 3 * F_NS * (8 + 3) + 2 * 3 * 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orders_are_sound_and_meet_their_closed_forms),
        cmocka_unit_test(test_closed_forms_cover_what_they_must),
        cmocka_unit_test(test_bubbles_of_eight_stages_are_those_of_scenario_s03),
        cmocka_unit_test(test_interleaved_order_of_two_stages_is_megatrons),
        cmocka_unit_test(test_padded_is_megatrons_order_where_p_divides_m),
        cmocka_unit_test(test_illegal_shapes_are_refused_with_their_rule),
        cmocka_unit_test(test_names_and_aliases_find_their_schedule),
        cmocka_unit_test(test_flaw_spells_out_the_cycle),
        cmocka_unit_test(test_flaw_finds_a_cycle_across_stages),
        cmocka_unit_test(test_flaw_finds_passes_that_are_missing_or_twice),
        cmocka_unit_test(test_transfers_lengthen_the_drain_once_a_hop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
