/* JSON: strictness with places, getters, and a writer whose output is read back. */
#include "tests/near.h"

#include <string.h>

#include "sim/io/json.h"
#include "sim/io/json_write.h"

static OrrJson *parse(const char *text, OrrJsonFlags flags) {
    g_autoptr(GError) error = NULL;
    OrrJson *json = orr_json_parse("c.json", text, strlen(text), flags, &error);
    if (!json)
        fail_msg("%s: %s", text, error->message);
    return json;
}

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "c.json:1:1: the text ends"},
    {"  \n ", "c.json:2:2: the text ends"},
    {"{\"a\":NaN}", "c.json:1:6: NaN is not JSON"},
    {"{\"a\":\n -Infinity}", "c.json:2:2: -Infinity is not JSON"},
    {"{\"a\":1,}", "c.json:1:8: a comma before the closing brace"},
    {"[1,2,\n]", "c.json:2:1: a comma before the closing bracket"},
    {"[1 2]", "c.json:1:4: a comma or ] should stand here"},
    {"{\"a\" 1}", "c.json:1:6: a colon"},
    {"{a:1}", "c.json:1:2: a key in quotes"},
    {"{'a':1}", "c.json:1:2: a key in quotes"},
    {"{\"a\":1,\n\"b\":2,\n\"a\":3}", "c.json:3:1: key \"a\" stands twice"},
    {"{\"a\":{\"b\":1,\"b\":1}}", "key \"b\" stands twice"},
    {"[01]", "begins with 0"},
    {"[1.]", "without digits behind its point"},
    {"[1e]", "without digits in its exponent"},
    {"[+1]", "is not JSON"},
    {"[-]", "is not JSON"},
    {"[.5]", "is not JSON"},
    {"[9223372036854775808]", "beyond 64 bits"},
    {"[-9223372036854775809]", "beyond 64 bits"},
    {"[\"a\nb\"]", "c.json:1:4: a bare control character"},
    {"[\"a]", "c.json:1:2: a string that does not end"},
    {"[\"\\x\"]", "unknown escape"},
    {"[\"\\u12\"]", "\\u without a character"},
    {"[\"\\ud800\"]", "half a character"},
    {"[\"\\udc00\"]", "\\u without"},
    {"[1] x", "c.json:1:5: text behind the end"},
    {"// c\n[1]", "is not JSON"},
    {"[1", "a comma or ] should stand here"},
    {"{\"a\":1", "a comma or } should stand here"},
    {"[True]", "True is not JSON"},
    {"[\"\xff\"]", "c.json:1: bytes that are not UTF-8"},
};

static void test_json_refuses_what_is_not_json_with_the_place(void **state) {
    (void)state;
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(OrrJson) json =
            orr_json_parse("c.json", bad[i].text, strlen(bad[i].text), ORR_JSON_STRICT, &error);
        if (json)
            fail_msg("%s was accepted", bad[i].text);
        assert_int_equal(error->code, ORR_ERROR_INPUT);
        if (!strstr(error->message, bad[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].text, error->message, bad[i].says);
    }
}

static void test_json_deep_nesting_is_refused(void **state) {
    (void)state;
    g_autofree char *text = g_strnfill(100000, '[');
    g_autoptr(GError) error = NULL;
    assert_null(orr_json_parse("c.json", text, 100000, ORR_JSON_STRICT, &error));
    assert_non_null(strstr(error->message, "nested deeper than 200"));
}

static void test_json_many_keys_are_checked_too(void **state) {
    (void)state;
    g_autoptr(GString) text = g_string_new("{");
    for (int i = 0; i < 100; i++)
        g_string_append_printf(text, "\"k%d\":%d,", i, i);
    gsize length = text->len;
    g_string_append(text, "\"z\":1}");
    orr_json_free(parse(text->str, ORR_JSON_STRICT));
    for (int i = 0; i < 100; i += 33) {
        g_string_truncate(text, length);
        g_string_append_printf(text, "\"k%d\":1}", i);
        assert_null(orr_json_parse("c", text->str, text->len, ORR_JSON_STRICT, NULL));
    }
}

static void test_json_infinity_of_python_reads_as_null_on_request(void **state) {
    (void)state;
    g_autoptr(OrrJson) json =
        parse("{\"a\": [0.0, Infinity], \"b\": -Infinity, \"c\": 1}", ORR_JSON_INFINITY);
    JsonObject *root = orr_json_root_object(json, NULL);
    assert_false(orr_json_has(root, "b"));
    assert_true(orr_json_has(root, "c"));
}

static void test_json_getters_tell_the_place(void **state) {
    (void)state;
    g_autoptr(OrrJson) json = parse("{\"a\": 1,\n \"n\": {\"x\": \"8\",\n  \"deep\": [0,\n"
                                    "   {\"y\": 2.5, \"z\": 4096.0, \"s\": \"t\", \"b\": true}]}}",
                                    ORR_JSON_STRICT);
    JsonObject *root = orr_json_root_object(json, NULL), *n;
    JsonArray *deep;
    assert_true(orr_json_object(json, root, "n", &n, NULL));
    assert_true(orr_json_array(json, n, "deep", &deep, NULL));
    JsonObject *in = json_array_get_object_element(deep, 1);
    int64_t i;
    double d;
    const char *s;
    bool b;
    assert_true(orr_json_int(json, in, "z", 0, 5000, &i, NULL) && i == 4096);
    assert_true(orr_json_double(json, in, "y", 0, 3, &d, NULL) && d == 2.5);
    assert_true(orr_json_string(json, in, "s", &s, NULL) && strcmp(s, "t") == 0);
    assert_true(orr_json_bool(json, in, "b", &b, NULL) && b);
    GError *e[5] = {NULL};
    assert_false(orr_json_int(json, in, "y", 0, 3, &i, &e[0]));
    assert_string_equal(e[0]->message,
                        "c.json:4: n.deep[1].y = 2.5: is not a whole number; 0 to 3 will do");
    assert_false(orr_json_int(json, n, "x", 0, 3, &i, &e[1]));
    assert_string_equal(e[1]->message,
                        "c.json:2: n.x = \"8\": is not a whole number; 0 to 3 will do");
    assert_false(orr_json_int(json, root, "a", 2, 3, &i, &e[2]));
    assert_string_equal(e[2]->message, "c.json:1: a = 1: is out of range; 2 to 3 will do");
    assert_false(orr_json_int(json, n, "deeep", 0, 3, &i, &e[3]));
    assert_string_equal(e[3]->message,
                        "c.json:2: n.deeep: is missing; there is deep; 0 to 3 would do");
    assert_false(orr_json_bool(json, n, "x", &b, &e[4]));
    assert_non_null(strstr(e[4]->message, "is not true or false"));
    for (int k = 0; k < 5; k++)
        g_clear_error(&e[k]);
}

static void write_sample(OrrJsonWriter *w) {
    orr_json_begin_object(w, NULL);
    orr_json_put_string(w, "q\"", "a\\b\n\t\x01\xc3\xa9");
    orr_json_put_string(w, "broken", "\xff!");
    orr_json_put_int(w, "min", INT64_MIN);
    orr_json_put_double(w, "d", 0.1);
    orr_json_put_double(w, "nan", NAN);
    orr_json_put_us(w, "ts", 1234567);
    orr_json_put_us(w, "neg", -5);
    orr_json_begin_array(w, "list");
    orr_json_put_bool(w, NULL, true);
    orr_json_begin_object_inline(w, NULL);
    orr_json_put_null(w, "x");
    orr_json_put_int(w, "y", 1);
    orr_json_end_object(w);
    orr_json_end_array(w);
    orr_json_begin_array(w, "empty");
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void test_json_written_is_exact_and_reads_back(void **state) {
    (void)state;
    static const char *const expected[] = {
        "{\"q\\\"\":\"a\\\\b\\n\\t\\u0001\xc3\xa9\",\"broken\":\"\xef\xbf\xbd!\","
        "\"min\":-9223372036854775808,\"d\":0.1,\"nan\":null,\"ts\":1234.567,\"neg\":-0.005,"
        "\"list\":[true,{\"x\":null,\"y\":1}],\"empty\":[]}",
        "{\n  \"q\\\"\": \"a\\\\b\\n\\t\\u0001\xc3\xa9\",\n  \"broken\": \"\xef\xbf\xbd!\",\n"
        "  \"min\": -9223372036854775808,\n  \"d\": 0.1,\n  \"nan\": null,\n  \"ts\": 1234.567,\n"
        "  \"neg\": -0.005,\n  \"list\": [\n    true,\n    {\"x\": null, \"y\": 1}\n  ],\n"
        "  \"empty\": []\n}\n"};
    for (int pretty = 0; pretty < 2; pretty++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(OrrOut) out = orr_out_to_string(text);
        OrrJsonWriter w = {.out = out, .is_pretty = pretty};
        write_sample(&w);
        assert_string_equal(text->str, expected[pretty]);
        g_autoptr(OrrJson) json = parse(text->str, ORR_JSON_STRICT);
        JsonObject *root = orr_json_root_object(json, NULL);
        int64_t min;
        const char *s;
        assert_true(orr_json_int(json, root, "min", INT64_MIN, 0, &min, NULL) && min == INT64_MIN);
        assert_true(orr_json_string(json, root, "q\"", &s, NULL));
        assert_string_equal(s, "a\\b\n\t\x01\xc3\xa9");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_refuses_what_is_not_json_with_the_place),
        cmocka_unit_test(test_json_deep_nesting_is_refused),
        cmocka_unit_test(test_json_many_keys_are_checked_too),
        cmocka_unit_test(test_json_infinity_of_python_reads_as_null_on_request),
        cmocka_unit_test(test_json_getters_tell_the_place),
        cmocka_unit_test(test_json_written_is_exact_and_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
