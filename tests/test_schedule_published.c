/* Orders against published bubble rates (Qi et al. 2023, tables 5 and 6: times of F, B, W and of a
 * transfer are given, so that nothing but the order decides), and custom orders from CSV. The rows
 * are read where the shared folder is; skipped without it. */
#include "sim/io/csv.h"
#include "sim/schedule/schedules.h"
#include "tests/longest_path.h"
#include "tests/near.h"

#include <stdlib.h>
#include <string.h>

static char *shared_path(const char *name) {
    const char *shared = g_getenv("ORRERY_SHARED"), *source = g_getenv("top_srcdir");
    char *path = shared != NULL
                     ? g_build_filename(shared, name, NULL)
                     : g_build_filename(source != NULL ? source : ".", "..", "shared", name, NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_free(path);
        return NULL;
    }
    return path;
}

enum { P, M, SCHEDULE, RATE, T_F, T_B, T_W, T_COMM, N_COLUMNS };
static const char *const columns[] = {"p",      "m",      "schedule",  "bubble_rate", "T_F_ms",
                                      "T_B_ms", "T_W_ms", "T_comm_ms", NULL};

/* Chunks a stage in the paper's 1F1B-I: a layer a chunk, where the first and the last stage hold
 * one layer less (section 4.1): (layers + 2) / P for its models of 22, 30, 46 and 62 layers. */
static uint32_t chunks_of(const char *model) {
    static const struct {
        const char *model;
        uint32_t n_chunks;
    } table[] = {
        {"gpt-1.5B", 24 / 8}, {"gpt-6.2B", 32 / 8}, {"gpt-14.6B", 48 / 16}, {"gpt-28.3B", 64 / 32}};
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (strcmp(table[i].model, model) == 0)
            return table[i].n_chunks;
    return 0;
}

/* Step in the longest-path evaluator, of passes and transfers alone; @ms: F, B (input half), W,
 * transfer. */
static double step_ms(const char *name, uint32_t p, uint32_t v, uint32_t m, const double *ms) {
    OrrPipeShape shape = {p, v, m};
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrOrder) order = orr_schedule_find(name, NULL)->order(&shape, &error);
    assert_non_null(order);
    uint32_t n = p * v;
    int64_t *ns = g_new(int64_t, 4 * n);
    for (uint32_t i = 0; i < n; i++) {
        ns[i] = (int64_t)(1e6 * ms[0] / v);
        ns[n + i] = (int64_t)(1e6 * (ms[1] + ms[2]) / v);
        ns[2 * n + i] = (int64_t)(1e6 * ms[1] / v);
        ns[3 * n + i] = (int64_t)(1e6 * ms[2] / v);
    }
    LongestPathTimes times = {{ns, ns + n, ns + 2 * n, ns + 3 * n}, (int64_t)(1e6 * ms[3])};
    double step = (double)longest_path_ns(order, &times) / 1e6;
    g_free(ns);
    return step;
}

static const char *our_name(const char *schedule) {
    return strcmp(schedule, "1F1B") == 0     ? "1f1b"
           : strcmp(schedule, "1F1B-I") == 0 ? "interleaved"
           : strcmp(schedule, "ZB-H1") == 0  ? "zb_h1"
                                             : NULL;
}

static void test_bubble_rates_are_the_published_ones(void **state) {
    (void)state;
    g_autofree char *path = shared_path("published/E_bubble_rates.csv");
    if (path == NULL)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, &error);
    assert_non_null(csv);
    int at[N_COLUMNS], n_rows = 0, model = orr_csv_column(csv, "model");
    assert_true(orr_csv_need(csv, columns, at, &error));
    for (guint r = 0; r < orr_csv_n_rows(csv); r++) {
        const char *name = our_name(orr_csv_cell(csv, r, at[SCHEDULE]));
        if (name == NULL)
            continue;
        double x[N_COLUMNS] = {0};
        for (int c = 0; c < N_COLUMNS; c++)
            if (c != SCHEDULE)
                assert_true(orr_csv_number(csv, r, at[c], 0, 1e6, &x[c], &error));
        uint32_t v = strcmp(name, "interleaved") == 0 ? chunks_of(orr_csv_cell(csv, r, model)) : 1;
        double work_ms = x[M] * (x[T_F] + x[T_B] + x[T_W]);
        double rate = 1 - work_ms / step_ms(name, (uint32_t)x[P], v, (uint32_t)x[M], &x[T_F]);
        /* The paper's 1F1B-I is P transfers shorter than Megatron's order; all others agree to the
         * four digits that are printed. */
        double tolerance = v > 1 ? 1.02 * x[P] * x[T_COMM] / work_ms : 0;
        if (fabs(rate - x[RATE]) > tolerance + 0.00006)
            fail_msg("%s P=%g V=%u M=%g: %.4f, published %.4f", name, x[P], v, x[M], rate, x[RATE]);
        n_rows++;
    }
    assert_true(n_rows > 0);
}

static bool read_row(const OrrCsv *csv, guint r, const int *at, const int *which, double *x) {
    for (; *which >= 0; which++)
        if (!orr_csv_number(csv, r, at[*which], 0, 1e6, &x[*which], NULL))
            return false;
    return true;
}

/* Times of F, B, W and transfer for a model and a number of micro-batches, whatever the schedule.
 */
static bool find_times(const OrrCsv *rates, const char *model, double m, double *x) {
    static const int which[] = {P, M, T_F, T_B, T_W, T_COMM, -1};
    int at[N_COLUMNS], model_at = orr_csv_column(rates, "model");
    assert_true(orr_csv_need(rates, columns, at, NULL));
    for (guint r = 0; r < orr_csv_n_rows(rates); r++)
        if (strcmp(orr_csv_cell(rates, r, model_at), model) == 0 &&
            read_row(rates, r, at, which, x) && fabs(x[M] - m) < 0.5)
            return true;
    return false;
}

/* Measured steps (table 4) hold the optimizer, the embedding and transfers that stop the compute
 * stream too, of which 1F1B-I has V times as many: passes alone are 92 to 97 % of 1F1B's steps and
 * 85 to 92 % of 1F1B-I's. */
static void test_steps_of_published_runs_are_a_little_longer_than_their_passes(void **state) {
    (void)state;
    g_autofree char *rates_path = shared_path("published/E_bubble_rates.csv");
    g_autofree char *steps_path = shared_path("published/E_pipeline_schedules.csv");
    if (rates_path == NULL || steps_path == NULL)
        skip();
    g_autoptr(OrrCsv) rates = orr_csv_load(rates_path, ORR_CSV_PLAIN, NULL);
    g_autoptr(OrrCsv) steps = orr_csv_load(steps_path, ORR_CSV_PLAIN, NULL);
    static const char *const names[] = {"global_batch_seqs", "micro_batch", "step_time_s", "model",
                                        "schedule",          NULL};
    int at[5], n_rows = 0;
    assert_true(orr_csv_need(steps, names, at, NULL));
    for (guint r = 0; r < orr_csv_n_rows(steps); r++) {
        const char *model = orr_csv_cell(steps, r, at[3]);
        const char *name = our_name(orr_csv_cell(steps, r, at[4]));
        double x[3], times[N_COLUMNS];
        static const int which[] = {0, 1, 2, -1};
        if (name == NULL || !read_row(steps, r, at, which, x) ||
            !find_times(rates, model, x[0] / x[1], times))
            continue;
        uint32_t v = strcmp(name, "interleaved") == 0 ? chunks_of(model) : 1;
        double ms = step_ms(name, (uint32_t)times[P], v, (uint32_t)times[M], &times[T_F]);
        if (!(ms <= 1000 * x[2] && ms >= (v > 1 ? 850 : 920) * x[2]))
            fail_msg("%s %s M=%g: %.1f ms, published %.1f", model, name, times[M], ms, 1000 * x[2]);
        n_rows++;
    }
    assert_true(n_rows > 0);
}

/* Cells as the loaders split them: what a custom schedule's file holds. */
static OrrOrder *order_of_csv(const char *name, const char *text, gsize length, GError **error) {
    g_autoptr(OrrCsv) csv =
        orr_csv_parse(name, text, length, ORR_CSV_NO_HEADER | ORR_CSV_RAGGED, error);
    if (csv == NULL)
        return NULL;
    guint n = orr_csv_n_rows(csv);
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    for (guint r = 0; r < n; r++) {
        char **row = g_new0(char *, orr_csv_row_length(csv, r) + 1);
        for (guint c = 0; c < orr_csv_row_length(csv, r); c++)
            row[c] = g_strdup(orr_csv_cell(csv, r, (int)c));
        g_ptr_array_add(rows, row);
    }
    return orr_schedule_custom(name, (char ***)rows->pdata, n, error);
}

static OrrOrder *order_of_text(const char *text, GError **error) {
    return order_of_csv("own.csv", text, strlen(text), error);
}

static void test_custom_order_of_split_passes_on_two_chunks_is_read(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrOrder) order = order_of_text("0F0,0F1,2F0,2F1,,2I0,2W0,0I0,2I1,2W1,0W0,0I1,0W1\n"
                                              "1F0,1F1,3F0,3B0,1I0,1W0,3F1,3B1,1B1\n",
                                              &error);
    if (order == NULL)
        fail_msg("%s", error->message);
    assert_int_equal(order->shape.n_stages, 2);
    assert_int_equal(order->shape.n_chunks, 2);
    assert_int_equal(order->shape.n_micro_batches, 2);
    assert_int_equal(order->first[1], 12);
    assert_int_equal(order->first[2], 21);
    static const uint32_t virtual_stage[] = {0, 2, 1, 3};
    assert_memory_equal(order->virtual_stage, virtual_stage, sizeof virtual_stage);
    assert_int_equal(order->slots[4].pass, ORR_I); /* the empty cell is gone */
    assert_int_equal(order->slots[4].chunk, 1);
    int64_t one[] = {1, 1, 1, 1}, two[] = {2, 2, 2, 2};
    LongestPathTimes times = {{one, two, one, one}, 0};
    assert_true(longest_path_ns(order, &times) >= 12);
}

static void test_the_sample_of_torchtitan_is_read_and_runs(void **state) {
    (void)state;
    g_autofree char *path = shared_path("files/train-configs/torchtitan-custom_schedule.csv");
    if (path == NULL)
        skip();
    g_autofree char *text = NULL;
    gsize length;
    g_autoptr(GError) error = NULL;
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    g_autoptr(OrrOrder) order = order_of_csv("sample.csv", text, length, &error);
    if (order == NULL)
        fail_msg("%s", error->message);
    assert_int_equal(order->shape.n_stages, 2);
    assert_int_equal(order->shape.n_chunks, 2);
    assert_int_equal(order->shape.n_micro_batches, 8);
    int64_t one[] = {1, 1, 1, 1};
    LongestPathTimes times = {{one, one, one, one}, 0};
    int64_t step = longest_path_ns(order, &times);
    assert_true(step >= 2 * 8 * 3 && step <= 2 * 8 * 3 + 4); /* F, I, W of 2 chunks, small bubble */
}

static void test_bad_custom_orders_are_refused_with_the_cell(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"0F0,0X0\n", "row 1, cell 2: '0X0' is no pass"},
        {"0F0,0B\n", "row 1, cell 2: '0B' is no pass"},
        {"0F0,0SEND_F0\n", "'0SEND_F0' is no pass"},
        {"0F0,0B0x\n", "'0B0x' is no pass"},
        {"0F99999999999,0B0\n", "is no pass"},
        {"0F0,0B999999999\n", "there are 2 cells"},
        {"0F0,0B0,0B0\n", "0B0 comes twice"},
        {"0F0,0B0,0F1,0I1\n", "0W1 is missing"},
        {"0F0,0B0,0I0,0W0\n", "0B0 is the whole backward, and 0I0 comes too"},
        {"0F0,0B0\n0F1,0B1\n", "1 virtual stages on 2 ranks"},
        {"0F0,0B0,1F0,1B0\n1F1,1B1,0F1,0B1\n", "is on row 1 and on row 2"},
        {"0F0,1F0,1B0,0B0\n2F0,2B0\n", "3 virtual stages on 2 ranks"},
        {"0F0,1F0,2F0,2B0,1B0,0B0\n3F0,3B0\n", "row 1 has more than 2 virtual stages"},
        {"0B0,0F0\n", "the order hangs: stage 0 waits before 0B0 for 0F0 of stage 0"},
        {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", "stage 0 waits before 0B0 for 1B0 of stage 1; stage "
                                               "1 waits before 1F1 for 0F1 of stage 0"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(OrrOrder) order = order_of_text(rows[i].text, &error);
        assert_null(order);
        assert_int_equal(error->code, ORR_ERROR_INPUT);
        if (strstr(error->message, rows[i].message) == NULL ||
            strstr(error->message, "own.csv") == NULL)
            fail_msg("'%s' gives \"%s\", which lacks \"%s\"", rows[i].text, error->message,
                     rows[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubble_rates_are_the_published_ones),
        cmocka_unit_test(test_steps_of_published_runs_are_a_little_longer_than_their_passes),
        cmocka_unit_test(test_custom_order_of_split_passes_on_two_chunks_is_read),
        cmocka_unit_test(test_the_sample_of_torchtitan_is_read_and_runs),
        cmocka_unit_test(test_bad_custom_orders_are_refused_with_the_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
