/* The three renderings of a record: the JSON is as its schema says and adds up, the CSV holds the
 * same, the text states denominators and stays within its columns. */
#include "sim/report/formats.h"
#include "tests/record_fixture.h"
#include "tests/schema_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char *render(const char *format, const OrrRecord *r) {
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    orr_report_format_find(format)->write(r, out);
    assert_true(orr_out_commit(out, NULL));
    return g_string_free(text, FALSE);
}

static OrrRecord *full_record(void) {
    OrrRecord *r = fixture_record();
    orr_record_add_warning(r, "some_warning", "M is %d", 4);
    orr_record_add_finding(r, "mfu_low", "evidence, with a \"quote\"", "do this");
    orr_record_add_override(r, "layout.tp=8");
    return r;
}

static void test_json_is_as_the_schema_says(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    g_autofree char *json = render("json", r);
    g_autoptr(JsonParser) record = json_parser_new(), schema = json_parser_new();
    assert_true(json_parser_load_from_data(record, json, -1, NULL));
    assert_true(json_parser_load_from_file(schema, ORR_SRCDIR "/doc/schema/step-1.json", NULL));
    JsonObject *s = json_node_get_object(json_parser_get_root(schema));
    g_autofree char *flaw = schema_flaw(s, json_parser_get_root(record), "$");
    if (flaw)
        fail_msg("%s", flaw);
}

static void test_schema_check_finds_a_missing_key(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    g_autofree char *json = render("json", r);
    g_autoptr(JsonParser) record = json_parser_new(), schema = json_parser_new();
    assert_true(json_parser_load_from_data(record, json, -1, NULL));
    assert_true(json_parser_load_from_file(schema, ORR_SRCDIR "/doc/schema/step-1.json", NULL));
    JsonObject *o = json_node_get_object(json_parser_get_root(record));
    json_object_remove_member(o, "step_time_ns");
    g_autofree char *flaw = schema_flaw(json_node_get_object(json_parser_get_root(schema)),
                                        json_parser_get_root(record), "$");
    assert_string_equal(flaw, "$ lacks step_time_ns");
}

static gint64 sum_of(JsonObject *o, const char *key) {
    JsonArray *a = json_object_get_array_member(o, key);
    gint64 sum = 0;
    for (guint i = 0; i < json_array_get_length(a); i++)
        sum += json_object_get_int_member(json_array_get_object_element(a, i), "ns");
    return sum;
}

static void test_json_accounts_add_up_to_the_step(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    g_autofree char *json = render("json", r);
    g_autoptr(JsonParser) parser = json_parser_new();
    assert_true(json_parser_load_from_data(parser, json, -1, NULL));
    JsonObject *o = json_node_get_object(json_parser_get_root(parser));
    assert_int_equal(sum_of(o, "time_account"), 1000000001);
    assert_int_equal(sum_of(o, "critical_path"), 1000000001);
    assert_int_equal(json_object_get_int_member(o, "step_time_ns"), 1000000001);
}

static void test_csv_quotes_and_holds_accounts(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    g_autofree char *csv = render("csv", r);
    assert_true(g_str_has_prefix(csv, "section,item,key,value,unit\nrun,,schema,orrery.step/1,\n"));
    assert_non_null(strstr(csv, "\ntime_account,,gemm,550000001,ns\n"));
    assert_non_null(
        strstr(csv, "\nfindings,mfu_low,evidence,\"evidence, with a \"\"quote\"\"\",\n"));
}

static void test_text_states_denominators(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    g_autofree char *text = render("text", r);
    static const char *const needed[] = {"of the dense bf16 peak, 989.4 TFLOP/s",
                                         "per GPU; 19.2 PFLOP a step by formula megatron",
                                         "of the step; 17.6 % over the ideal time",
                                         "tokens/s per GPU, of 64 GPUs",
                                         "for 131,072 tokens",
                                         "inside one node",
                                         "leaves the node: 2 nodes, roce",
                                         NULL};
    for (int i = 0; needed[i]; i++)
        if (!strstr(text, needed[i]))
            fail_msg("the report lacks '%s':\n%s", needed[i], text);
}

static void test_text_says_why_a_slow_part_makes_a_step_shorter(void **state) {
    (void)state;
    for (int is_shorter = 0; is_shorter < 2; is_shorter++) {
        g_autoptr(OrrRecord) r = full_record();
        orr_record_add_perturb(r, "gpu:3:speed", "0.9");
        r->sound_step_time_ns = r->step_time_ns + (is_shorter ? 1000000 : -1000000);
        g_autofree char *text = render("text", r);
        assert_int_equal(strstr(text, "it costs 1.000 ms") != NULL, !is_shorter);
        assert_int_equal(strstr(text, "1.000 ms longer") != NULL, is_shorter);
        assert_int_equal(strstr(text, "comes later to a shared link") != NULL, is_shorter);
    }
}

static void test_text_says_once_what_all_ranks_wait(void **state) {
    (void)state;
    for (int is_drawn = 0; is_drawn < 2; is_drawn++) {
        g_autoptr(OrrRecord) r = full_record();
        orr_record_add_perturb(r, "jitter", "0.02");
        r->sound_step_time_ns = r->step_time_ns - 1000000;
        r->waits = (OrrRecordWaits){.least_ns = 2000000, .median_ns = 2000000, .most_ns = 2000000};
        r->waits.most_ns += is_drawn;
        g_autofree char *text = render("text", r);
        assert_int_equal(strstr(text, "each rank idles 2.000 ms") != NULL, !is_drawn);
        assert_int_equal(strstr(text, "--unfold draws it") != NULL, !is_drawn);
        assert_int_equal(strstr(text, "half of them") != NULL, is_drawn);
    }
}

static void test_text_keeps_to_its_columns(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    g_autofree char *text = render("text", r);
    if (g_getenv("ORRERY_SHOW_REPORT"))
        print_message("%s", text);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (strlen(lines[i]) > 100)
            fail_msg("too wide: %s", lines[i]);
}

static void test_same_record_gives_same_bytes(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = full_record();
    for (int i = 0; orr_report_formats[i]; i++) {
        g_autofree char *a = render(orr_report_formats[i]->name, r);
        g_autofree char *b = render(orr_report_formats[i]->name, r);
        assert_string_equal(a, b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_is_as_the_schema_says),
        cmocka_unit_test(test_schema_check_finds_a_missing_key),
        cmocka_unit_test(test_json_accounts_add_up_to_the_step),
        cmocka_unit_test(test_csv_quotes_and_holds_accounts),
        cmocka_unit_test(test_text_states_denominators),
        cmocka_unit_test(test_text_says_why_a_slow_part_makes_a_step_shorter),
        cmocka_unit_test(test_text_says_once_what_all_ranks_wait),
        cmocka_unit_test(test_text_keeps_to_its_columns),
        cmocka_unit_test(test_same_record_gives_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
