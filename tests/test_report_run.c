/* Reports of whole runs: JSON by its schema and adding up seed by seed, text, CSV, events, trace.
 */
#include "tests/near.h"
#include "tests/schema_check.h"

#include "sim/api/orrery.h"
#include "sim/api/run.h"
#include "sim/report/run_report.h"

#include <string.h>

static OrrRun *run_of(OrrRunRequest *q, const char *name, uint32_t seeds) {
    *q = (OrrRunRequest){.run = name, .n_seeds = seeds, .seed = 5};
    g_autoptr(GError) error = NULL;
    OrrRun *run = orr_run_prepare(q, &error);
    if (!run || !orr_run_execute(run, NULL, NULL, NULL, &error))
        fail_msg("%s", error->message);
    return run;
}

static char *text_of(const OrrRun *run, const char *format) {
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    orr_run_format_find(format)->write(orr_run_record(run), out);
    return g_string_free(text, FALSE);
}

static int64_t sum_lost(JsonObject *o) {
    JsonArray *lost = json_object_get_array_member(o, "lost");
    int64_t sum = json_object_get_int_member(o, "useful_ns");
    for (guint i = 0; i < json_array_get_length(lost); i++)
        sum += json_object_get_int_member(json_array_get_object_element(lost, i), "ns");
    return sum - json_object_get_int_member(o, "wall_ns");
}

static void test_json_is_as_the_schema_says_and_adds_up(void **state) {
    (void)state;
    static const char *const names[] = {"llama3-405b-54d", "bloom-176b-saves",
                                        "save-64-two-failures"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        OrrRunRequest q;
        g_autoptr(OrrRun) run = run_of(&q, names[i], i == 2 ? 1 : 3);
        g_autofree char *json = text_of(run, "json");
        g_autoptr(JsonParser) record = json_parser_new(), schema = json_parser_new();
        assert_true(json_parser_load_from_data(record, json, -1, NULL));
        assert_true(json_parser_load_from_file(schema, ORR_SRCDIR "/doc/schema/run-1.json", NULL));
        g_autofree char *flaw = schema_flaw(json_node_get_object(json_parser_get_root(schema)),
                                            json_parser_get_root(record), "$");
        if (flaw)
            fail_msg("%s: %s", names[i], flaw);
        JsonObject *root = json_node_get_object(json_parser_get_root(record));
        assert_int_equal(sum_lost(root), 0);
        JsonArray *runs = json_object_get_array_member(root, "runs");
        assert_int_equal(json_array_get_length(runs), q.n_seeds);
        for (guint s = 0; s < json_array_get_length(runs); s++)
            assert_int_equal(sum_lost(json_array_get_object_element(runs, s)), 0);
    }
}

static double number(JsonObject *o, const char *key) {
    return json_object_get_double_member(o, key);
}

static void sum_spent(JsonArray *lost, double *hours, double *usd) {
    for (guint i = 0; i < json_array_get_length(lost); i++) {
        *hours += number(json_array_get_object_element(lost, i), "gpu_hours");
        *usd += number(json_array_get_object_element(lost, i), "usd");
    }
}

/* GPUs and spares, held for the wall time less the queues, are useful or lost to the last hour, and
 * so is the money. */
static void test_every_gpu_hour_and_dollar_is_booked(void **state) {
    (void)state;
    static const char *const names[] = {"llama3-405b-54d", "llama70b-500b-1024-owned",
                                        "llama70b-500b-64-spot"};
    static const OrrOverride sets[] = {{"run", "queue", "3 h"},
                                       {"recovery", "requeue", "20 min"},
                                       {"recovery", "hot_spares", "4 nodes"}};
    for (guint i = 0; i < 2 * G_N_ELEMENTS(names); i++) { /* seed 7: all three queue again */
        OrrRunRequest q = {.run = names[i / 2], .seed = 7, .n_seeds = 4, .overrides = sets};
        q.n_overrides = i % 2 ? G_N_ELEMENTS(sets) : 0;
        g_autoptr(OrrRun) run = orr_run_prepare(&q, NULL);
        assert_true(run && orr_run_execute(run, NULL, NULL, NULL, NULL));
        g_autofree char *json = text_of(run, "json");
        g_autoptr(JsonParser) record = json_parser_new();
        assert_true(json_parser_load_from_data(record, json, -1, NULL));
        JsonObject *root = json_node_get_object(json_parser_get_root(record));
        double hours = number(root, "useful_gpu_hours");
        double usd = number(root, "useful_usd") + number(root, "storage_usd");
        sum_spent(json_object_get_array_member(root, "lost"), &hours, &usd);
        const OrrRunRecord *r = orr_run_record(run);
        double held_h = (double)(r->wall_ns - orr_run_record_queued(r)) / 3600e9;
        double gpus = r->n_gpus * (1 + (double)r->n_spare_nodes / r->n_nodes);
        assert_true(i % 2 == 0 || orr_run_record_queued(r) > INT64_C(10800) * 1000000000);
        assert_near(hours, gpus * held_h, 1e-9);
        assert_near(number(root, "gpu_hours"), hours, 1e-9);
        assert_near(number(root, "cost_usd"), usd, 1e-9);
    }
}

static void test_text_and_csv_say_what_was_lost(void **state) {
    (void)state;
    OrrRunRequest q;
    g_autoptr(OrrRun) run = run_of(&q, "bloom-176b-saves", 3);
    g_autofree char *text = text_of(run, "text"), *csv = text_of(run, "csv");
    static const char *const said[] = {"384 GPUs on 48 nodes", "goodput", "gpu_failure",
                                       "total = wall time",    "Young",   "/1000 n-days"};
    for (guint i = 0; i < G_N_ELEMENTS(said); i++)
        if (!strstr(text, said[i]))
            fail_msg("'%s' is not in: %s", said[i], text);
    assert_true(g_str_has_prefix(csv, "section,item,key,value,unit\nrun,,schema,orrery.run/1,\n"));
    assert_non_null(strstr(csv, "\nseed,7,wall_ns,10195200000000000,ns\n"));
}

static const char *cause_name(const void *run, uint32_t cause) {
    return orr_run_cause_name(run, cause);
}

static char *events_of(const OrrRun *run, bool is_trace) {
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    OrrRunNames names = {"a run", cause_name, run};
    OrrRunEventWriter *w =
        is_trace ? orr_run_events_trace(out, &names) : orr_run_events_csv(out, &names);
    OrrRunProbe probe = {orr_run_events_write, w};
    OrrRunSeed seed;
    orr_run_seed_init(&seed, 5, orr_run_n_causes(orr_run_spec(run)));
    orr_run_simulate(orr_run_spec(run), 5, &probe, &seed);
    orr_run_events_close(w);
    orr_run_seed_clear(&seed);
    return g_string_free(text, FALSE);
}

static void test_events_and_trace_tell_the_seed(void **state) {
    (void)state;
    OrrRunRequest q;
    g_autoptr(OrrRun) run = run_of(&q, "save-64-two-failures", 1);
    g_autofree char *csv = events_of(run, false), *trace = events_of(run, true);
    guint strikes = 0;
    for (const char *at = csv; (at = strstr(at, "\nstrike,")); at++)
        strikes++;
    assert_int_equal(strikes, 2);
    assert_non_null(strstr(csv, "\nstrike,18600000120000,18600000120000,node_failure,"));
    g_autoptr(JsonParser) parser = json_parser_new();
    assert_true(json_parser_load_from_data(parser, trace, -1, NULL));
    JsonArray *events = json_object_get_array_member(
        json_node_get_object(json_parser_get_root(parser)), "traceEvents");
    double end = 0;
    for (guint i = 0; i < json_array_get_length(events); i++) {
        JsonObject *e = json_array_get_object_element(events, i);
        if (strcmp(json_object_get_string_member(e, "ph"), "X") != 0)
            continue;
        assert_near(json_object_get_double_member(e, "ts"), end, 1e-12); /* no gap, no overlap */
        end = json_object_get_double_member(e, "ts") + json_object_get_double_member(e, "dur");
    }
    assert_near(end, 86400e6, 1e-9);
}

static void test_library_reports_as_the_program_does(void **state) {
    (void)state;
    OrrRunRequest q;
    g_autoptr(OrrRun) run = run_of(&q, "bloom-176b-saves", 3);
    g_autofree char *json = text_of(run, "json");
    OrreryOptions options = {.seed = 5, .has_seed = true};
    char *same = orrery_run_report("bloom-176b-saves", 3, 2, "json", &options, NULL);
    assert_string_equal(json, same);
    orrery_free(same);
    OrreryError *error = NULL;
    assert_null(orrery_run_report("tiny", 1, 1, "json", NULL, &error));
    assert_int_equal(error->status, ORRERY_BAD_INPUT);
    assert_non_null(strstr(error->message, "no end"));
    orrery_error_free(error);
    assert_null(orrery_run_report("tiny", 0, 1, "json", NULL, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_is_as_the_schema_says_and_adds_up),
        cmocka_unit_test(test_every_gpu_hour_and_dollar_is_booked),
        cmocka_unit_test(test_text_and_csv_say_what_was_lost),
        cmocka_unit_test(test_library_reports_as_the_program_does),
        cmocka_unit_test(test_events_and_trace_tell_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
