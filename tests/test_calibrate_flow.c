/* The whole flow of the calibrator on the fake device: records, resume, interruption, a device that
 * vanishes, wrong results, a full disk; and that the records hold the machine's parameters. */
#include "calibrate/device_fake.h"
#include "calibrate/flow.h"

#include "sim/base/stats.h"
#include "tests/calibrate_helpers.h"
#include "tests/near.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct {
    int left; /* questions until the answer is yes; below 0: never */
} Stop;

static bool is_stopped(void *data) {
    Stop *stop = data;
    return stop->left >= 0 && stop->left-- == 0;
}

static bool calibrate_on(const OrrFakeMachine *machine, OrrCalibrateOptions *o, int stop_after,
                         GError **error) {
    OrrRanks *ranks = orr_ranks_alone();
    OrrDevice *d = orr_device_fake(machine, ranks);
    Stop stop = {stop_after};
    bool is_good = orr_calibrate(o, d, ranks, is_stopped, &stop, error);
    d->kind->close(d);
    ranks->close(ranks);
    return is_good;
}

static OrrCalibrateOptions options_for(char *path, OrrCaseKind first, OrrCaseKind last) {
    OrrCalibrateOptions o = {.output = path, .minutes = 1000};
    for (OrrCaseKind k = first; k <= last; k++)
        o.kinds[k] = true;
    return o;
}

static guint count_status(const OrrCsv *csv, const char *status) {
    guint n = 0;
    for (guint row = 0; row < orr_csv_n_rows(csv); row++)
        n += strcmp(cell(csv, row, "status"), status) == 0;
    return n;
}

static void test_flow_records_every_case_of_a_many_gpu_machine(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.n_gpus = 32;
    char *path = scratch_file("all.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_GEMM, ORR_CASE_COLLECTIVE);
    OrrDeviceFacts facts = {.device = "fake", .n_gpus = 32, .n_per_node = 8};
    g_autoptr(GArray) cases = orr_calibrate_cases(&o, &facts, NULL);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    assert_non_null(csv);
    assert_int_equal(orr_csv_n_rows(csv), cases->len);
    /* 64k tokens of 128k logits are more than the memory. */
    assert_int_equal(count_status(csv, "ok") + count_status(csv, "refused"), cases->len);
    assert_true(count_status(csv, "refused") < 5);
    assert_string_equal(cell(csv, 0, "device"), "fake");
    assert_string_equal(cell(csv, 0, "n_gpus"), "32");
    scratch_remove(path);
}

static void test_flow_interrupted_and_resumed_has_the_rows_of_one_run(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.noise_frac = 0;
    char *whole = scratch_file("whole.csv"), *parts = scratch_file("parts.csv");
    OrrCalibrateOptions o = options_for(whole, ORR_CASE_COPY, ORR_CASE_LAUNCH);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    o.output = parts;
    bool is_good = false;
    for (int run = 0; run < 100 && !is_good; run++) {
        g_autoptr(GError) error = NULL;
        is_good = calibrate_on(&machine, &o, 3, &error);
        if (!is_good)
            assert_int_equal(error->code, ORR_ERROR_ENV);
    }
    assert_true(is_good);
    g_autofree char *a = scratch_read(whole), *b = scratch_read(parts);
    assert_string_equal(a, b);
    scratch_remove(whole);
    scratch_remove(parts);
}

static void test_flow_drops_a_row_that_was_cut_off(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.noise_frac = 0;
    char *path = scratch_file("cut.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_COPY, ORR_CASE_LAUNCH);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autofree char *whole = scratch_read(path);
    g_file_set_contents(path, whole, (gssize)strlen(whole) - 40, NULL);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autofree char *again = scratch_read(path);
    assert_string_equal(whole, again);
    g_file_set_contents(path, whole, 20, NULL); /* even the header */
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autofree char *anew = scratch_read(path);
    assert_string_equal(whole, anew);
    scratch_remove(path);
}

static void test_flow_refuses_records_of_another_machine_or_file(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    char *path = scratch_file("other.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_LAUNCH, ORR_CASE_LAUNCH);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    machine.n_gpus = 4;
    machine.n_per_node = 4;
    g_autoptr(GError) error = NULL;
    assert_false(calibrate_on(&machine, &o, -1, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, ":2: n_gpus = 8"));
    g_clear_error(&error);
    g_file_set_contents(path, "a,b\n1,2\n", -1, NULL);
    assert_false(calibrate_on(&machine, &o, -1, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    g_autofree char *text = scratch_read(path);
    assert_string_equal(text, "a,b\n1,2\n");
    scratch_remove(path);
}

static void test_flow_device_that_vanishes_keeps_what_was_measured(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.vanishes_after = 100;
    char *path = scratch_file("lost.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_GEMM, ORR_CASE_COLLECTIVE);
    g_autoptr(GError) error = NULL;
    assert_false(calibrate_on(&machine, &o, -1, &error));
    assert_int_equal(error->code, ORR_ERROR_ENV);
    assert_non_null(strstr(error->message, "lost"));
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    assert_true(orr_csv_n_rows(csv) > 2 && orr_csv_n_rows(csv) < 50);
    machine.vanishes_after = 0;
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    scratch_remove(path);
}

static void test_flow_wrong_results_are_marked_and_end_with_no(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.wrong_every = 5;
    char *path = scratch_file("wrong.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_COPY, ORR_CASE_COPY);
    g_autoptr(GError) error = NULL;
    assert_false(calibrate_on(&machine, &o, -1, &error));
    assert_int_equal(error->code, ORR_ERROR_NO);
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    assert_int_equal(count_status(csv, "wrong"), orr_csv_n_rows(csv) / 5);
    scratch_remove(path);
}

static void test_flow_what_does_not_fit_is_a_row_with_its_reason(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.memory_bytes = 1 << 26;
    char *path = scratch_file("small.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_COPY, ORR_CASE_COPY);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    guint n_refused = count_status(csv, "refused");
    assert_true(n_refused > 0 && n_refused < orr_csv_n_rows(csv));
    for (guint row = 0; row < orr_csv_n_rows(csv); row++) {
        bool is_refused = strcmp(cell(csv, row, "status"), "refused") == 0;
        assert_string_equal(cell(csv, row, "reason"), is_refused ? "out of GPU memory" : "");
        assert_int_equal(*cell(csv, row, "time_ns") == 0, is_refused);
    }
    scratch_remove(path);
}

static void test_flow_full_disk_is_told_and_ends(void **state) {
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    OrrFakeMachine machine = orr_fake_default;
    OrrCalibrateOptions o = options_for((char *)"/dev/full", ORR_CASE_LAUNCH, ORR_CASE_LAUNCH);
    g_autoptr(GError) error = NULL;
    assert_false(calibrate_on(&machine, &o, -1, &error));
    assert_int_equal(error->code, ORR_ERROR_ENV);
    assert_non_null(strstr(error->message, "/dev/full"));
}

static void test_flow_time_is_over_and_the_rest_follows_later(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    char *path = scratch_file("budget.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_GEMM, ORR_CASE_COLLECTIVE);
    o.is_full = TRUE;
    o.minutes = 1;
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autoptr(OrrCsv) first = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    guint n = orr_csv_n_rows(first);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autoptr(OrrCsv) second = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    assert_true(n > 100 && orr_csv_n_rows(second) > n);
    scratch_remove(path);
}

/* Slope and intercept of time over bytes, from two sizes of one collective. */
static void test_flow_records_hold_the_machines_parameters(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.noise_frac = 0;
    char *path = scratch_file("fit.csv");
    OrrCalibrateOptions o = options_for(path, ORR_CASE_COLLECTIVE, ORR_CASE_COLLECTIVE);
    assert_true(calibrate_on(&machine, &o, -1, NULL));
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    double small_ns = NAN, bus = NAN;
    for (guint row = 0; row < orr_csv_n_rows(csv); row++) {
        bool is_it = strcmp(cell(csv, row, "op"), "all_reduce") == 0 &&
                     strcmp(cell(csv, row, "ranks"), "world") == 0 &&
                     *cell(csv, row, "compute") == 0 && *cell(csv, row, "in_place") == 0;
        if (is_it && strcmp(cell(csv, row, "bytes"), "8") == 0)
            small_ns = g_ascii_strtod(cell(csv, row, "time_ns"), NULL);
        if (is_it && strcmp(cell(csv, row, "bytes"), "1073741824") == 0)
            bus = g_ascii_strtod(cell(csv, row, "busbw_bytes_per_s"), NULL);
    }
    assert_near(small_ns, machine.kernel_ns + 14 * machine.link_step_ns, 1e-3);
    assert_near(bus, machine.link_bytes_per_s, 0.02);
    scratch_remove(path);
}

static void test_sample_median_is_near_the_truth_and_spread_shows_the_noise(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.noise_frac = 0.05;
    OrrRanks *ranks = orr_ranks_alone();
    OrrDevice *d = orr_device_fake(&machine, ranks);
    OrrCase c = {.kind = ORR_CASE_GEMM, .dtype = ORR_BF16, .m = 1024, .n = 1024, .k = 1024};
    OrrWork *w = d->kind->prepare(d, &c, NULL);
    OrrSampling sampling = orr_sampling_full;
    sampling.n_samples = 201;
    OrrSummary s;
    assert_true(orr_sample(d, w, ranks, &sampling, false, &s, NULL));
    assert_int_equal(s.n_samples, 201);
    assert_near(s.median_ns, orr_fake_time_ns(&machine, &c), 0.02);
    /* From the 10th to the 90th percentile of a normal distribution: 2.56 deviations. */
    assert_near(s.spread_frac, 2.56 * machine.noise_frac, 0.25);
    assert_true(s.min_ns <= s.p10_ns && s.p10_ns <= s.median_ns && s.median_ns <= s.p90_ns);
    assert_true(orr_sample(d, w, ranks, &sampling, true, &s, NULL));
    assert_int_equal(s.n_repeats, 1); /* a flushed cache allows no repeats */
    d->kind->release(d, w);
    d->kind->close(d);
    ranks->close(ranks);
}

static void test_sample_of_slow_work_ends_with_few_samples(void **state) {
    (void)state;
    OrrFakeMachine machine = orr_fake_default;
    machine.bf16_flops_per_s = 1e9; /* a product of the size below lasts 2 s */
    OrrRanks *ranks = orr_ranks_alone();
    OrrDevice *d = orr_device_fake(&machine, ranks);
    OrrCase c = {.kind = ORR_CASE_GEMM, .dtype = ORR_BF16, .m = 1024, .n = 1024, .k = 1024};
    OrrWork *w = d->kind->prepare(d, &c, NULL);
    OrrSummary s;
    assert_true(orr_sample(d, w, ranks, &orr_sampling_quick, false, &s, NULL));
    assert_int_equal(s.n_samples, orr_sampling_quick.n_min_samples);
    d->kind->release(d, w);
    d->kind->close(d);
    ranks->close(ranks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow_records_every_case_of_a_many_gpu_machine),
        cmocka_unit_test(test_flow_interrupted_and_resumed_has_the_rows_of_one_run),
        cmocka_unit_test(test_flow_drops_a_row_that_was_cut_off),
        cmocka_unit_test(test_flow_refuses_records_of_another_machine_or_file),
        cmocka_unit_test(test_flow_device_that_vanishes_keeps_what_was_measured),
        cmocka_unit_test(test_flow_wrong_results_are_marked_and_end_with_no),
        cmocka_unit_test(test_flow_what_does_not_fit_is_a_row_with_its_reason),
        cmocka_unit_test(test_flow_full_disk_is_told_and_ends),
        cmocka_unit_test(test_flow_time_is_over_and_the_rest_follows_later),
        cmocka_unit_test(test_flow_records_hold_the_machines_parameters),
        cmocka_unit_test(test_sample_median_is_near_the_truth_and_spread_shows_the_noise),
        cmocka_unit_test(test_sample_of_slow_work_ends_with_few_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
