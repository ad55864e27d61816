/* Sweeps: each row is the step with these values set, in order, whatever the threads; what cannot
 * be is told. */
#include "tests/near.h"

#include "sim/api/sweep.h"
#include "sim/io/csv.h"
#include "sim/report/sweep.h"
#include "tests/schema_check.h"
#include "tests/step_helpers.h"

#include <string.h>

#define BASE                                                                                       \
    "job.cluster=clos:16 node:8 gpu:h100 leaf:16;schedule.name=1f1b;layout.vpp=1;"                 \
    "batch.global=16 sequences;"

typedef struct {
    OrrOverride overrides[16];
    OrrStepRequest request;
    OrrSweep *sweep;
    char **words;
} Sweep;

/* @axes: "key=v1,v2;key=v1,v2". */
static Sweep *sweep_new(const char *sets, const char *axes) {
    Sweep *s = g_new0(Sweep, 1);
    s->words = g_strsplit_set(sets, ";=.", -1); /* no value here has a dot or a sign of equality */
    for (uint32_t i = 0; s->words[i] && s->words[i + 1] && s->words[i + 2]; i += 3)
        s->overrides[s->request.n_overrides++] =
            (OrrOverride){s->words[i], s->words[i + 1], s->words[i + 2], NULL};
    s->request.job = "tiny-pipeline";
    s->request.overrides = s->overrides;
    s->sweep = orr_sweep_new();
    g_auto(GStrv) texts = g_strsplit(axes, ";", -1);
    for (guint i = 0; texts[i]; i++) {
        g_auto(GStrv) sides = g_strsplit(texts[i], "=", 2);
        g_auto(GStrv) values = g_strsplit(sides[1], ",", -1);
        orr_sweep_add_axis(s->sweep, sides[0], (const char *const *)values);
    }
    return s;
}

static void sweep_free(Sweep *s) {
    orr_sweep_free(s->sweep);
    g_strfreev(s->words);
    g_free(s);
}

static Sweep *sweep_run(const char *sets, const char *axes, uint32_t n_threads) {
    g_autoptr(GError) error = NULL;
    Sweep *s = sweep_new(sets, axes);
    OrrSweepRequest in = {.request = &s->request, .n_threads = n_threads};
    if (!orr_sweep_run(s->sweep, &in, &error))
        fail_msg("%s: %s", axes, error->message);
    return s;
}

static void test_each_row_is_the_step_with_its_values_set(void **state) {
    (void)state;
    Sweep *s = sweep_run(BASE "layout.dp=auto", "layout.tp=1,2,4;batch.micro=1,2", 0);
    static const char *const tp[] = {"1", "2", "4"}, *const micro[] = {"1", "2"};
    uint32_t best = 0;
    assert_int_equal(s->sweep->n_rows, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const OrrSweepRow *row = &s->sweep->rows[i];
        assert_string_equal(orr_sweep_value(s->sweep, i, 0), tp[i / 2]);
        assert_string_equal(orr_sweep_value(s->sweep, i, 1), micro[i % 2]);
        g_autofree char *sets = g_strdup_printf(BASE "layout.dp=auto;layout.tp=%s;batch.micro=%s",
                                                tp[i / 2], micro[i % 2]);
        Step *step = step_new("tiny-pipeline", sets, 0);
        const OrrRecord *r = step->record;
        int64_t peak = 0;
        for (uint32_t k = 0; k < r->n_stages; k++)
            peak = MAX(peak, r->stages[k].peak_bytes);
        assert_null(row->refused);
        assert_int_equal(row->step_time_ns, r->step_time_ns);
        assert_int_equal(row->n_gpus, 16);
        assert_true(row->mfu_frac == r->mfu[0].mfu_frac);
        assert_true(row->tokens_per_s == r->tokens_per_s);
        assert_int_equal(row->peak_bytes, peak);
        assert_int_equal(row->verdict, r->verdict);
        assert_string_equal(row->flops_formula, r->flops_formula);
        assert_int_equal(row->dp, r->layout.dp);
        if (row->tokens_per_s > s->sweep->rows[best].tokens_per_s)
            best = i;
        step_free(step);
    }
    assert_int_equal(s->sweep->fastest, best);
    sweep_free(s);
}

static void test_what_does_not_fit_or_cannot_be_is_not_the_fastest(void **state) {
    (void)state;
    Sweep *s = sweep_run(BASE "layout.dp=auto", "layout.tp=2,3;gpu.memory=80 GiB,1 GiB", 2);
    const OrrSweepRow *rows = s->sweep->rows;
    assert_int_equal(rows[0].verdict, ORR_FITS);
    assert_int_equal(rows[1].verdict, ORR_DOES_NOT_FIT);
    assert_int_equal(rows[1].step_time_ns, rows[0].step_time_ns);
    assert_non_null(strstr(rows[2].refused, "TP 3"));
    assert_null(strchr(rows[2].refused, '\n'));
    assert_int_equal(s->sweep->fastest, 0);
    sweep_free(s);
    s = sweep_run(BASE "layout.dp=auto", "gpu.memory=1 GiB,2 GiB", 2);
    assert_int_equal(s->sweep->fastest, ORR_SWEEP_NONE);
    sweep_free(s);
}

static void refused(const char *sets, const char *axes, int code, const char *says) {
    g_autoptr(GError) error = NULL;
    Sweep *s = sweep_new(sets, axes);
    OrrSweepRequest in = {.request = &s->request};
    assert_false(orr_sweep_run(s->sweep, &in, &error));
    assert_int_equal(error->code, code);
    if (!strstr(error->message, says))
        fail_msg("%s: \"%s\"", axes, error->message);
    sweep_free(s);
}

static void test_sweeps_that_cannot_be_are_told(void **state) {
    (void)state;
    refused("", "layout.tpp=1,2", ORR_ERROR_INPUT,
            "none of the 2 combinations can be; the first: ");
    refused("", "layout.tpp=1", ORR_ERROR_INPUT, "tpp");
    refused("", "layout.tp=3,5", ORR_ERROR_INPUT, "none of the 2");
    g_autoptr(GString) many = g_string_new("batch.global=1");
    for (int i = 2; i <= 400; i++)
        g_string_append_printf(many, ",%d", i);
    g_autofree char *axes = g_strdup_printf("%s;layout.tp=%s", many->str, many->str + 13);
    refused("", axes, ORR_ERROR_USAGE, "160000 combinations; at most 100000 would do");
}

static char *report(const OrrSweep *s, void (*write)(const OrrSweep *, OrrOut *)) {
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    write(s, out);
    return g_string_free(text, FALSE);
}

static void test_reports_do_not_depend_on_threads_and_are_as_the_schema_says(void **state) {
    (void)state;
    static void (*const writers[])(const OrrSweep *, OrrOut *) = {
        orr_report_sweep_text, orr_report_sweep_json, orr_report_sweep_csv};
    static const char axes[] = "layout.tp=1,2,3;batch.micro=1,2;gpu.memory=80 GiB,2 GiB";
    Sweep *one = sweep_run(BASE "layout.dp=auto", axes, 1);
    Sweep *many = sweep_run(BASE "layout.dp=auto", axes, 7);
    for (size_t i = 0; i < G_N_ELEMENTS(writers); i++) {
        g_autofree char *a = report(one->sweep, writers[i]), *b = report(many->sweep, writers[i]);
        assert_string_equal(a, b);
    }
    g_autoptr(JsonParser) schema = json_parser_new(), parser = json_parser_new();
    assert_true(json_parser_load_from_file(schema, ORR_SRCDIR "/doc/schema/sweep-1.json", NULL));
    g_autofree char *json = report(one->sweep, orr_report_sweep_json);
    assert_true(json_parser_load_from_data(parser, json, -1, NULL));
    g_autofree char *flaw = schema_flaw(json_node_get_object(json_parser_get_root(schema)),
                                        json_parser_get_root(parser), "sweep");
    if (flaw)
        fail_msg("%s", flaw);
    g_autofree char *csv = report(one->sweep, orr_report_sweep_csv);
    g_auto(GStrv) lines = g_strsplit(csv, "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 12 + 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrCsv) table = orr_csv_parse("sweep", csv, strlen(csv), ORR_CSV_PLAIN, &error);
    if (!table) /* rows as long as the header */
        fail_msg("%s", error->message);
    sweep_free(one);
    sweep_free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_is_the_step_with_its_values_set),
        cmocka_unit_test(test_what_does_not_fit_or_cannot_be_is_not_the_fastest),
        cmocka_unit_test(test_sweeps_that_cannot_be_are_told),
        cmocka_unit_test(test_reports_do_not_depend_on_threads_and_are_as_the_schema_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
