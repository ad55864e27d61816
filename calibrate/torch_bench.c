/* all_reduce_bench, PyTorch's all-reduce in a loop, in the three forms it has printed since 2021:
 * per trial and rank ("duration: 0.1234 sec", "algo throughput: ... Gbps", where the throughput
 * counts each byte twice), one mean ("with a 4.0GB payload (5 trials, 16 ranks): algbw: 176.590
 * GBps"), a table by payload ("|   32KiB |   1.18GBps |   0.79GBps |": busbw first). */
#include "calibrate/nccl_tests_priv.h"

#include <math.h>
#include <string.h>

#include "sim/base/stats.h"

typedef struct {
    const OrrImport *import;
    OrrTableDraft *draft;
    OrrMeasuredCollective row; /* of a mean that is being read */
    double duration_s;         /* of a trial that is being read */
    double bytes;
    GArray *trials; /* double, ns */
} Reader;

static void add(Reader *r, double bytes, double algbw, double busbw, uint32_t line) {
    OrrMeasuredCollective row = {.root = -1, .dtype = ORR_FP32, .line = line};
    g_strlcpy(row.dtype_name, "float", sizeof row.dtype_name);
    row.bytes = bytes > 0 && bytes < 1e15 ? (int64_t)(bytes + 0.5) : 0;
    row.count = row.bytes / 4;
    row.out_of_place.n_wrong = row.in_place.n_wrong = -1;
    /* all_reduce in PyTorch works in place */
    row.in_place.time_ns = bytes / algbw * 1e9;
    row.in_place.algbw_bytes_per_s = algbw;
    row.in_place.busbw_bytes_per_s = busbw;
    orr_calibrate__judge_row(&row);
    if (row.bytes == 0)
        return;
    if (row.flaw)
        orr_calibrate__note(r->import, line, "%s: the row is left out", row.flaw);
    g_array_append_val(r->draft->rows, row);
}

/* "32KiB", "4.0GB" in bytes; NAN: neither. */
static double payload_bytes(const char *text) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"GiB", 1073741824.}, {"MiB", 1048576.}, {"KiB", 1024.}, {"GB", 1e9},
                 {"MB", 1e6},          {"KB", 1e3},       {"B", 1}};
    double value;
    const char *end;
    if (!orr_log_number(text, &value, &end))
        return NAN;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++)
        if (g_str_has_prefix(end, units[i].unit))
            return value * units[i].bytes;
    return NAN;
}

static double number_behind(const char *line, const char *word) {
    const char *at = strstr(line, word);
    double value;
    if (!at)
        return NAN;
    at += strlen(word);
    while (*at == ' ' || *at == ':' || *at == '(')
        at++;
    return orr_log_number(at, &value, NULL) ? value : NAN;
}

/* The number in front of @word: "16 ranks". */
static double number_before(const char *line, const char *word) {
    const char *at = strstr(line, word);
    double value;
    while (at && at > line && at[-1] == ' ')
        at--;
    const char *start = at;
    while (start && start > line && g_ascii_isdigit(start[-1]))
        start--;
    return start < at && orr_log_number(start, &value, NULL) ? value : NAN;
}

static void read_table_row(Reader *r, const char *line, uint32_t number) {
    g_auto(GStrv) cells = g_strsplit(line, "|", 6);
    if (g_strv_length(cells) < 5)
        return;
    for (int i = 1; i < 4; i++)
        g_strstrip(cells[i]);
    double bytes = payload_bytes(cells[1]), busbw, algbw;
    if (isnan(bytes) || !orr_log_number(cells[2], &busbw, NULL) ||
        !orr_log_number(cells[3], &algbw, NULL))
        return;
    add(r, bytes, algbw * 1e9, busbw * 1e9, number);
}

static void read_line(Reader *r, const char *line, uint32_t number) {
    const char *payload = strstr(line, "with a ");
    double value = number_before(line, " ranks");
    if (strstr(line, "The average bandwidth of all_reduce")) {
        if (value >= 1 && value < 1e7)
            r->draft->table->n_ranks = (uint32_t)value;
        r->bytes = payload ? payload_bytes(payload + strlen("with a ")) : NAN;
    } else if (line[0] == '|') {
        read_table_row(r, line, number);
    } else if (!isnan(value = number_behind(line, "algbw:"))) {
        r->row.out_of_place.algbw_bytes_per_s = value * 1e9;
    } else if (!isnan(value = number_behind(line, "duration:"))) {
        r->duration_s = value;
    } else if (!isnan(value = number_behind(line, "algo throughput:")) && r->duration_s > 0) {
        double bits = strstr(line, " bps") ? value : value * 1e9;
        r->bytes = bits / 8 / 2 * r->duration_s; /* each byte is counted twice, in bits */
        double ns = r->duration_s * 1e9;
        g_array_append_val(r->trials, ns);
        r->duration_s = 0;
    } else if (!isnan(value = number_behind(line, "busbw:")) && isfinite(r->bytes) &&
               r->row.out_of_place.algbw_bytes_per_s > 0) {
        add(r, r->bytes, r->row.out_of_place.algbw_bytes_per_s, value * 1e9, number);
        r->row.out_of_place.algbw_bytes_per_s = 0;
    } else if (g_str_has_prefix(line, "- hardware:") && strstr(line, "name='")) {
        const char *name = strstr(line, "name='") + strlen("name='");
        g_free(r->draft->table->gpu);
        r->draft->table->gpu = g_strndup(name, strcspn(name, "'"));
    }
}

bool orr_calibrate__read_torch_bench(const OrrImport *import, const OrrLog *log, GPtrArray *drafts,
                                     GError **error) {
    Reader r = {
        .import = import, .bytes = NAN, .trials = g_array_new(FALSE, FALSE, sizeof(double))};
    r.draft = orr_calibrate__draft_new(drafts, import->path, 0);
    r.draft->has_kind = r.draft->has_redop = true;
    r.draft->table->kind = ORR_ALL_REDUCE;
    r.draft->table->source = g_strdup("all_reduce_bench (PyTorch)");
    for (guint i = 0; i < log->n_lines; i++)
        read_line(&r, log->lines[i], i + 1);
    if (r.trials->len > 0) {
        double median =
            orr_stats_median((const double *)(const void *)r.trials->data, r.trials->len);
        /* rounded to the payload's own unit: it is N x M x 4 bytes with round N and M */
        double bytes = round(r.bytes / 1e6) * 1e6;
        if (bytes > 0)
            add(&r, bytes, bytes / median * 1e9, 0, 0);
        orr_calibrate__note(import, 0, "the median of %u timings of ranks and trials is taken",
                            r.trials->len);
    }
    g_array_unref(r.trials);
    if (r.draft->rows->len == 0) {
        return orr_fail_input(error,
                              "%s: %u lines of a launcher, but no result of all_reduce_bench "
                              "(algbw and busbw, or duration and algo throughput)",
                              import->path, log->n_lines);
    }
    return true;
}
