/* Units: a table of texts and what they must read as, and round trips. */
#include "tests/near.h"

#include <string.h>

#include "sim/base/units.h"

static const struct {
    const char *text;
    OrrDim dim;
    double value;
} good[] = {
    {"400 Gb/s", ORR_DIM_RATE, 5e10},
    {"400Gb/s", ORR_DIM_RATE, 5e10},
    {"50 GB/s", ORR_DIM_RATE, 5e10},
    {"3.35 TB/s", ORR_DIM_RATE, 3.35e12},
    {"1 GiB/s", ORR_DIM_RATE, 0x1p30},
    {"80 GiB", ORR_DIM_BYTES, 80 * 0x1p30},
    {"80 GB", ORR_DIM_BYTES, 80e9},
    {"1.5 us", ORR_DIM_TIME, 1500},
    {"2 min", ORR_DIM_TIME, 120e9},
    {"1 d", ORR_DIM_TIME, 86400e9},
    {"0.5 ms", ORR_DIM_TIME, 5e5},
    {"989.4 TFLOP/s", ORR_DIM_FLOPS_RATE, 989.4e12},
    {"1 PFLOP/s", ORR_DIM_FLOPS_RATE, 1e15},
    {"3 ZFLOP", ORR_DIM_FLOPS, 3e21},
    {"700 W", ORR_DIM_POWER, 700},
    {"1.98 GHz", ORR_DIM_FREQ, 1.98e9},
    {"7 %", ORR_DIM_FRACTION, 0.07},
    {"7%", ORR_DIM_FRACTION, 0.07},
    {"0.07", ORR_DIM_FRACTION, 0.07},
    {"1e3", ORR_DIM_NONE, 1000},
    {"-2.5", ORR_DIM_NONE, -2.5},
    {".5", ORR_DIM_NONE, 0.5},
    {"8 GPUs", ORR_DIM_COUNT, 8},
    {"2048 sequences", ORR_DIM_COUNT, 2048},
    {"16384", ORR_DIM_COUNT, 16384},
    {"  12 s  ", ORR_DIM_TIME, 12e9},
};

static const struct {
    const char *text;
    OrrDim dim;
    const char *says;
} bad[] = {
    {"400", ORR_DIM_RATE, "lacks its unit"}, {"400 GB", ORR_DIM_RATE, "Gb/s"},
    {"400 Gbs", ORR_DIM_RATE, "\"Gbs\""},    {"80 gb", ORR_DIM_BYTES, "GiB"},
    {"80 Gb", ORR_DIM_BYTES, "GiB"},         {"0", ORR_DIM_TIME, "ns, us, ms"},
    {"fast", ORR_DIM_RATE, "not a number"},  {"", ORR_DIM_NONE, "not a number"},
    {"nan s", ORR_DIM_TIME, "not a number"}, {"inf s", ORR_DIM_TIME, "not a number"},
    {"-inf", ORR_DIM_NONE, "not a number"},  {"0x10 B", ORR_DIM_BYTES, "hexadecimal"},
    {"1e999 B", ORR_DIM_BYTES, "too large"}, {"1e308 PiB", ORR_DIM_BYTES, "too large"},
    {"1,5 s", ORR_DIM_TIME, "separator"},    {"1_000 B", ORR_DIM_BYTES, "separator"},
    {"1.5 GPUs", ORR_DIM_COUNT, "whole"},    {"8 GPUs!", ORR_DIM_COUNT, "noun"},
    {"12 m", ORR_DIM_TIME, "min"},           {"5 %", ORR_DIM_NONE, "a bare number"},
};

static void test_units_read_as_si_base(void **state) {
    (void)state;
    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(GError) error = NULL;
        double value = -1;
        if (!orr_units_parse(good[i].text, good[i].dim, &value, &error))
            fail_msg("%s: %s", good[i].text, error->message);
        assert_near(value, good[i].value, 1e-15);
    }
}

static void test_units_refuse_and_say_what_would_do(void **state) {
    (void)state;
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        double value = -1;
        if (orr_units_parse(bad[i].text, bad[i].dim, &value, &error))
            fail_msg("\"%s\" was accepted", bad[i].text);
        assert_true(g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT));
        if (!strstr(error->message, bad[i].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", bad[i].text, error->message,
                     bad[i].says);
        assert_true(value == -1);
    }
}

static void check_text(char *text, const char *expected) {
    assert_string_equal(text, expected);
    g_free(text);
}

static void test_units_print_for_people(void **state) {
    (void)state;
    check_text(orr_units_bytes(1.5 * 0x1p30), "1.5 GiB");
    check_text(orr_units_bytes(1023.9999 * 1024), "1 MiB");
    check_text(orr_units_bytes(0), "0 B");
    check_text(orr_units_bytes_si(80e9), "80 GB");
    check_text(orr_units_time(12345678), "12.3 ms");
    check_text(orr_units_time(999999), "1 ms");
    check_text(orr_units_time(90000000000), "90 s");
    check_text(orr_units_time(150000000000), "2.5 min");
    check_text(orr_units_time(-1500), "-1.5 us");
    check_text(orr_units_rate(5e10), "50 GB/s");
    check_text(orr_units_count(1234567), "1,234,567");
    check_text(orr_units_count(-999), "-999");
    check_text(orr_units_count(405853388800.0), "405,853,388,800");
    check_text(orr_units_format(0.07, ORR_DIM_FRACTION), "7 %");
    check_text(orr_units_format(989.4e12, ORR_DIM_FLOPS_RATE), "989 TFLOP/s");
    check_text(orr_units_format(8, ORR_DIM_COUNT), "8");
}

static void test_units_shortest_double_reads_back(void **state) {
    (void)state;
    check_text(orr_units_double(0.1), "0.1");
    check_text(orr_units_double(1e22), "1e+22");
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (int i = 0; i < 20000; i++) {
        union {
            guint64 bits;
            double value;
        } u = {((guint64)g_rand_int(rand) << 32) | g_rand_int(rand)};
        if (!isfinite(u.value))
            continue;
        g_autofree char *text = orr_units_double(u.value);
        assert_true(g_ascii_strtod(text, NULL) == u.value);
    }
}

static void test_units_printed_value_is_accepted_again(void **state) {
    (void)state;
    static const double values[] = {1, 999, 1000, 1023, 1024, 12345, 5e9, 80e9, 8e10, 1e12};
    for (OrrDim dim = ORR_DIM_TIME; dim < ORR_DIM_FRACTION; dim++)
        for (guint i = 0; i < G_N_ELEMENTS(values); i++) {
            g_autofree char *text = orr_units_format(values[i], dim);
            double back;
            assert_true(orr_units_parse(text, dim, &back, NULL));
            assert_near(back, values[i], 5e-3); /* three digits are printed */
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_read_as_si_base),
        cmocka_unit_test(test_units_refuse_and_say_what_would_do),
        cmocka_unit_test(test_units_print_for_people),
        cmocka_unit_test(test_units_shortest_double_reads_back),
        cmocka_unit_test(test_units_printed_value_is_accepted_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
