/* Key files: values, every error at once with its place, agreement with GKeyFile. */
#include "tests/near.h"

#include <string.h>

#include "sim/io/keys.h"

static OrrKeys *parse(const char *text) {
    g_autoptr(GError) error = NULL;
    OrrKeys *keys = orr_keys_parse("f.ini", text, strlen(text), &error);
    if (!keys)
        fail_msg("%s", error->message);
    return keys;
}

static void check_says(OrrKeys *keys, const char *expected) {
    g_autoptr(GError) error = NULL;
    assert_false(orr_keys_finish(keys, &error));
    assert_true(g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT));
    assert_string_equal(error->message, expected);
}

static void test_keys_values_and_comments(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", "interleaved", NULL};
    g_autoptr(OrrKeys) keys = parse("# head\n[gpu]   # a group\r\n name = h100 # a comment\n"
                                    "url = a#b\n\n bw=3.35 TB/s\nn = 8 GPUs\nuse = Yes\n"
                                    "kind = 1F1B\nlist = a, b;c,\nempty =\n");
    assert_string_equal(orr_keys_string(keys, "gpu", "name", NULL, 0), "h100");
    assert_string_equal(orr_keys_string(keys, "gpu", "url", NULL, 0), "a#b");
    assert_string_equal(orr_keys_string(keys, "gpu", "empty", "x", 0), "");
    assert_near(orr_keys_number(keys, "gpu", "bw", ORR_DIM_RATE, 0, 1e15, 0, 0), 3.35e12, 1e-15);
    assert_int_equal(orr_keys_int(keys, "gpu", "n", "GPU", 1, 16, 0, 0), 8);
    assert_true(orr_keys_bool(keys, "gpu", "use", false, 0));
    assert_int_equal(orr_keys_enum(keys, "gpu", "kind", names, 0, 0), 1);
    g_auto(GStrv) list = orr_keys_strings(keys, "gpu", "list", 0);
    assert_int_equal(g_strv_length(list), 3);
    assert_string_equal(list[2], "c");
    assert_true(orr_keys_finish(keys, NULL));
}

static void test_keys_defaults_are_remembered_once(void **state) {
    (void)state;
    g_autoptr(OrrKeys) keys = parse("[a]\n");
    for (int i = 0; i < 2; i++) {
        orr_keys_number(keys, "a", "bw", ORR_DIM_RATE, 0, 1e12, 5e10, 0);
        orr_keys_bool(keys, "a", "quiet", true, ORR_KEY_QUIET);
        orr_keys_int(keys, "a", "n", NULL, 0, 9, 3, 0);
    }
    guint n;
    const OrrKeyDefault *d = orr_keys_defaults(keys, &n);
    assert_int_equal(n, 2);
    assert_string_equal(d[0].key, "bw");
    assert_string_equal(d[0].value, "50 GB/s");
    assert_string_equal(d[1].value, "3");
    assert_true(orr_keys_finish(keys, NULL));
}

static void test_keys_all_errors_at_once_in_line_order(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", NULL};
    g_autoptr(OrrKeys) keys = parse("x = 1\n[layout]\ntp = 8\ntp = 4\npp = many\ndpp = 2\n"
                                    "bw = 400\nvpp = 99\nn = 8 cats\nname = gpip\nsp = maybe\n"
                                    "[layuot]\nq = 1\n[broken\njunk\n[layout]\n1f = 2.5\n");
    assert_int_equal(orr_keys_int(keys, "layout", "tp", NULL, 1, 64, 1, 0), 8);
    assert_int_equal(orr_keys_int(keys, "layout", "pp", NULL, 1, 64, 7, 0), 7);
    orr_keys_int(keys, "layout", "dp", NULL, 1, 64, 1, ORR_KEY_REQUIRED);
    orr_keys_number(keys, "layout", "bw", ORR_DIM_RATE, 0, 1e12, 1, 0);
    orr_keys_int(keys, "layout", "vpp", NULL, 1, 64, 1, 0);
    orr_keys_int(keys, "layout", "n", "GPU", 1, 64, 1, 0);
    orr_keys_int(keys, "layout", "1f", NULL, 1, 64, 1, 0);
    orr_keys_enum(keys, "layout", "name", names, 0, 0);
    orr_keys_bool(keys, "layout", "sp", false, 0);
    check_says(
        keys,
        "f.ini:1: \"x = 1\" stands before any [group]; write [name] above it\n"
        "f.ini:4: [layout] tp = 4: this key stands in line 3 already (8); keep one\n"
        "f.ini:5: [layout] pp = many: \"many\" is not a number; a whole number will do, 1 to 64\n"
        "f.ini:6: [layout] dpp = 2: unknown key; did you mean pp?\n"
        "f.ini:7: [layout] bw = 400: \"400\" lacks its unit; B/s, kB/s, MB/s, GB/s, TB/s, "
        "KiB/s, MiB/s, GiB/s, TiB/s or in bits b/s, kb/s, Mb/s, Gb/s, Tb/s will do\n"
        "f.ini:8: [layout] vpp = 99: is out of range; 1 to 64 will do\n"
        "f.ini:9: [layout] n = 8 cats: \"cats\" does not fit here; GPU will do\n"
        "f.ini:10: [layout] name = gpip: is unknown; did you mean gpipe? gpipe or 1f1b "
        "will do\n"
        "f.ini:11: [layout] sp = maybe: is not a yes or a no; yes, no, true, false, on, "
        "off, 1 or 0 will do\n"
        "f.ini:12: [layuot]: unknown group; did you mean layout?\n"
        "f.ini:14: \"[broken\" is not a group; write [name]\n"
        "f.ini:15: \"junk\" is neither a group nor a key; write [group] or key = value\n"
        "f.ini:16: [layout]: this group stands in line 2 already; put its keys there\n"
        "f.ini:17: [layout] 1f = 2.5: is not a whole number; 1 to 64 will do\n"
        "f.ini: [layout] dp: is missing; 1 to 64 would do");
}

static void test_keys_override_names_its_origin(void **state) {
    (void)state;
    g_autoptr(OrrKeys) keys = parse("[a]\nn = 1\n");
    orr_keys_override(keys, "a", "n", "2", "--set");
    orr_keys_override(keys, "b", "m", "x", "--set");
    assert_int_equal(orr_keys_int(keys, "a", "n", NULL, 0, 9, 0, 0), 2);
    orr_keys_int(keys, "b", "m", NULL, 0, 9, 0, 0);
    check_says(keys,
               "f.ini:--set: [b] m = x: \"x\" is not a number; a whole number will do, 0 to 9");
}

static void test_keys_refuse_what_is_not_text(void **state) {
    (void)state;
    static const struct {
        const char *text;
        gsize length;
        const char *says;
    } cases[] = {{"[a]\nx = \0\n", 10, "f.ini:2: a NUL byte"},
                 {"[a]\n\n\xff", 6, "f.ini:3: bytes that are not UTF-8"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(orr_keys_parse("f.ini", cases[i].text, cases[i].length, &error));
        assert_non_null(strstr(error->message, cases[i].says));
    }
    g_autoptr(OrrKeys) keys = parse("\xef\xbb\xbf[a]\nx=1\n");
    assert_true(orr_keys_has(keys, "a", "x"));
}

/* Random texts from pieces that matter; accepted by both, they must hold the same. */
static char *random_text(GRand *rand) {
    static const char *const pieces[] = {"[a]\n",
                                         "[b c]\n",
                                         "x = 1\n",
                                         "y=two words\n",
                                         "\n",
                                         "# c\n",
                                         "  z = 3",
                                         "\n",
                                         "k.l-m =\n",
                                         "=",
                                         "[",
                                         "]\n",
                                         "q",
                                         "\r\n",
                                         " ",
                                         "w = a#b\n",
                                         "v = \xc3\xa9\n",
                                         "\t",
                                         "u = a=b\n",
                                         "[d] \n"};
    GString *text = g_string_new("[g]\n");
    for (int n = g_rand_int_range(rand, 0, 12); n > 0; n--)
        g_string_append(text, pieces[g_rand_int_range(rand, 0, G_N_ELEMENTS(pieces))]);
    return g_string_free(text, FALSE);
}

static void check_same(OrrKeys *keys, GKeyFile *theirs, const char *text) {
    g_auto(GStrv) groups = g_key_file_get_groups(theirs, NULL);
    for (guint i = 0; groups[i]; i++) {
        g_auto(GStrv) names = g_key_file_get_keys(theirs, groups[i], NULL, NULL);
        g_auto(GStrv) ours = orr_keys_list(keys, groups[i]);
        if (!orr_keys_has_group(keys, groups[i]) ||
            !g_strv_equal((const char *const *)names, (const char *const *)ours))
            fail_msg("keys of [%s] differ in:\n%s", groups[i], text);
        for (guint j = 0; names[j]; j++) {
            g_autofree char *value = g_key_file_get_value(theirs, groups[i], names[j], NULL);
            for (char *c = value; *c; c++) /* comments and blanks behind a value are ours */
                if (*c == '#' && c > value && g_ascii_isspace(c[-1]))
                    *c = 0;
            g_strchomp(value);
            if (*value == '#') /* comment or not: depends on a blank that GKeyFile drops */
                continue;
            if (strcmp(value, orr_keys_string(keys, groups[i], names[j], NULL, 0)) != 0)
                fail_msg("[%s] %s differs in:\n%s", groups[i], names[j], text);
        }
    }
}

static void test_keys_agree_with_gkeyfile_on_accepted_texts(void **state) {
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    int n_both = 0;
    for (int i = 0; i < 20000; i++) {
        g_autofree char *text = random_text(rand);
        g_autoptr(OrrKeys) keys = parse(text);
        g_autoptr(GKeyFile) theirs = g_key_file_new();
        bool is_theirs = g_key_file_load_from_data(theirs, text, strlen(text), 0, NULL);
        g_autoptr(OrrKeys) strict = parse(text);
        g_auto(GStrv) groups = is_theirs ? g_key_file_get_groups(theirs, NULL) : NULL;
        for (guint j = 0; groups && groups[j]; j++)
            g_strfreev(orr_keys_list(strict, groups[j]));
        if (!is_theirs || !orr_keys_finish(strict, NULL))
            continue;
        n_both++;
        check_same(keys, theirs, text);
    }
    assert_true(n_both > 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_values_and_comments),
        cmocka_unit_test(test_keys_defaults_are_remembered_once),
        cmocka_unit_test(test_keys_all_errors_at_once_in_line_order),
        cmocka_unit_test(test_keys_override_names_its_origin),
        cmocka_unit_test(test_keys_refuse_what_is_not_text),
        cmocka_unit_test(test_keys_agree_with_gkeyfile_on_accepted_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
