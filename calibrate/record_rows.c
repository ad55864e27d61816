#include "calibrate/record_rows.h"

#include "sim/io/csv.h"
#include "sim/io/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_BYTES ((gsize)512 << 20) /* ours, as for the runner */
#define MAX_NS 1e13                    /* three hours: no case lasts so long */
#define DOUBTFUL_SPREAD_FRAC 1         /* ours: 10th and 90th percentile a whole median apart */
/* Clocks may lie above the one at which the data sheet states its peak: H100 1980 of 1830 MHz. */
#define CLOCK_MARGIN 1.10
#define RATE_MARGIN 1.02 /* rounding of times and nominal rates */

OrrRecordRows *orr_record_rows_new(void) {
    OrrRecordRows *r = g_new0(OrrRecordRows, 1);
    r->files = g_ptr_array_new_with_free_func(g_free);
    r->rows = g_array_new(FALSE, FALSE, sizeof(OrrRecordRow));
    r->notes = g_ptr_array_new_with_free_func(g_free);
    return r;
}

void orr_record_rows_free(OrrRecordRows *r) {
    if (!r)
        return;
    OrrRecordFacts *f = &r->facts;
    char *texts[] = {f->device, f->driver,     f->cuda,       f->cublas,   f->cudnn,
                     f->nccl,   f->capability, f->first_date, f->last_date};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    g_ptr_array_unref(r->files);
    g_array_unref(r->rows);
    g_ptr_array_unref(r->notes);
    g_free(r);
}

bool orr_record_rows_is(const char *path) {
    static const char begin[] = "kind,op,dtype,pass,ranks,", mark[] = "\xef\xbb\xbf"; /* UTF-8 */
    char head[sizeof mark + sizeof begin] = "";
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t n = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[n] = '\0';
    return g_str_has_prefix(g_str_has_prefix(head, mark) ? head + strlen(mark) : head, begin);
}

typedef struct {
    const OrrCsv *csv;
    int of_case[ORR_N_CASE_COLUMNS];
    int status, time, spread, compute, beside, clock, algo, proto, reason;
    guint file;
} Reader;

static void note(OrrRecordRows *r, guint file, guint line, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static void note(OrrRecordRows *r, guint file, guint line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_ptr_array_add(r->notes,
                    g_strdup_printf("%s:%u: %s", (const char *)r->files->pdata[file], line, what));
}

static bool read_case(const Reader *d, guint row, OrrCase *c, GError **error) {
    *c = (OrrCase){0};
    for (guint i = 0; i < ORR_N_CASE_COLUMNS; i++) {
        g_autoptr(GError) why = NULL;
        if (!orr_case_read(c, i, orr_csv_cell(d->csv, row, d->of_case[i]), &why))
            return orr_csv_fail(d->csv, row, d->of_case[i], error, "%s", why->message);
    }
    g_autofree char *flaw = orr_case_flaw(c);
    return !flaw || orr_csv_fail(d->csv, row, d->of_case[0], error, "%s", flaw);
}

/* A number, or NAN where the cell is empty or there is no such column. */
static bool read_number(const Reader *d, guint row, int column, double min, double max,
                        double *value, GError **error) {
    *value = NAN;
    if (column < 0 || !*orr_csv_cell(d->csv, row, column))
        return true;
    return orr_csv_number(d->csv, row, column, min, max, value, error);
}

static int place_of(const char *word, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (g_ascii_strcasecmp(word, names[i]) == 0)
            return i;
    return -1;
}

/* What was forced: one name of NCCL's; lists and "chosen" leave the choice open. */
static void read_forced(const Reader *d, guint row, OrrRecordRow *out) {
    static const char *const nccl[] = {"Ring",          "Tree",         "NVLS", "NVLSTree",
                                       "CollnetDirect", "CollnetChain", NULL};
    int algo = d->algo < 0 ? -1 : place_of(orr_csv_cell(d->csv, row, d->algo), nccl);
    int proto = d->proto < 0 ? -1 : place_of(orr_csv_cell(d->csv, row, d->proto), orr_proto_names);
    out->algo = algo >= 0 ? (OrrAlgo)algo : ORR_N_ALGOS;
    out->proto = proto >= 0 ? (OrrProto)proto : ORR_N_PROTOS;
}

static bool read_row(OrrRecordRows *r, const Reader *d, guint row, GError **error) {
    OrrRecordRow out = {.file = d->file, .line = orr_csv_line(d->csv, row)};
    const char *status = orr_csv_cell(d->csv, row, d->status);
    double clock_mhz;
    if (!read_case(d, row, &out.c, error))
        return false;
    if (strcmp(status, "ok") != 0) {
        if (strcmp(status, "wrong") != 0 && strcmp(status, "refused") != 0)
            return orr_csv_fail(d->csv, row, d->status, error, "ok, wrong or refused would do");
        r->n_refused++;
        if (*status == 'w')
            note(r, out.file, out.line, "the runner found a wrong result; not used");
        return true;
    }
    if (!orr_csv_number(d->csv, row, d->time, 1e-3, MAX_NS, &out.ns, error) ||
        !read_number(d, row, d->spread, 0, 1e6, &out.spread_frac, error) ||
        !read_number(d, row, d->compute, 1e-3, MAX_NS, &out.compute_ns, error) ||
        !read_number(d, row, d->beside, 1e-3, MAX_NS, &out.compute_beside_ns, error) ||
        !read_number(d, row, d->clock, 0, 1e5, &clock_mhz, error))
        return false;
    out.sm_clock_hz = clock_mhz > 0 ? 1e6 * clock_mhz : NAN;
    read_forced(d, row, &out);
    g_array_append_val(r->rows, out);
    return true;
}

/* Text facts must be the same in all rows of all files. */
static bool same_text(const Reader *d, guint row, const char *name, char **fact, GError **error) {
    int column = orr_csv_column(d->csv, name);
    if (column < 0) /* records of an older runner */
        return true;
    const char *text = orr_csv_cell(d->csv, row, column);
    if (!*fact)
        *fact = g_strdup(text);
    return strcmp(*fact, text) == 0 ||
           orr_csv_fail(d->csv, row, column, error,
                        "the rows before have '%s'; one machine with one set of libraries a fit "
                        "would do",
                        *fact);
}

static bool same_number(const Reader *d, guint row, const char *name, double *fact,
                        GError **error) {
    int column = orr_csv_column(d->csv, name);
    double value;
    if (!read_number(d, row, column, 0, 1e18, &value, error))
        return false;
    if (!isfinite(value))
        return true;
    if (*fact == 0)
        *fact = value;
    return *fact == value || orr_csv_fail(d->csv, row, column, error,
                                          "differs from the rows before; one machine a fit would "
                                          "do");
}

static void take_date(OrrRecordFacts *f, const Reader *d, guint row) {
    int column = orr_csv_column(d->csv, "date");
    const char *date = column < 0 ? "" : orr_csv_cell(d->csv, row, column);
    if (!*date)
        return;
    if (!f->first_date || strcmp(date, f->first_date) < 0) {
        g_free(f->first_date);
        f->first_date = g_strdup(date);
    }
    if (!f->last_date || strcmp(date, f->last_date) > 0) {
        g_free(f->last_date);
        f->last_date = g_strdup(date);
    }
}

static bool read_facts(OrrRecordFacts *f, const Reader *d, guint row, GError **error) {
    const struct {
        const char *name;
        char **fact;
    } texts[] = {{"device", &f->device},        {"driver", &f->driver}, {"cuda", &f->cuda},
                 {"cublas", &f->cublas},        {"cudnn", &f->cudnn},   {"nccl", &f->nccl},
                 {"capability", &f->capability}};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        if (!same_text(d, row, texts[i].name, texts[i].fact, error))
            return false;
    double sms = f->n_sms, boost_mhz = f->boost_hz / 1e6, gpus = 0, per_node = 0;
    if (!same_number(d, row, "sms", &sms, error) ||
        !same_number(d, row, "boost_mhz", &boost_mhz, error) ||
        !same_number(d, row, "hbm_bytes_per_s", &f->hbm_bytes_per_s, error) ||
        !same_number(d, row, "memory_bytes", &f->memory_bytes, error) ||
        !same_number(d, row, "l2_bytes", &f->l2_bytes, error) ||
        !same_number(d, row, "n_gpus", &gpus, error) ||
        !same_number(d, row, "gpus_per_node", &per_node, error))
        return false;
    f->n_sms = (uint32_t)sms;
    f->boost_hz = boost_mhz * 1e6;
    f->n_gpus = MAX(f->n_gpus, (uint32_t)gpus); /* a node alone, and then all of them */
    f->gpus_per_node = MAX(f->gpus_per_node, (uint32_t)per_node);
    take_date(f, d, row);
    return true;
}

/* A last row without an end is what an interruption left; the runner drops it, too. */
static OrrCsv *load(OrrRecordRows *r, const char *path, GError **error) {
    gsize length = 0;
    g_autofree char *text = orr_file_read(path, LIMIT_BYTES, &length, error);
    const char *end = text ? strrchr(text, '\n') : NULL;
    gsize whole = end ? (gsize)(end - text) + 1 : length;
    OrrCsv *csv = text ? orr_csv_parse(path, text, whole, ORR_CSV_PLAIN, error) : NULL;
    if (csv && whole < length)
        g_ptr_array_add(r->notes, g_strdup_printf("%s: the last row is cut; not used", path));
    return csv;
}

bool orr_record_rows_add(OrrRecordRows *r, const char *path, GError **error) {
    g_autoptr(OrrCsv) csv = load(r, path, error);
    static const char *const needed[] = {"status", "time_ns", "device", NULL};
    int at[3];
    Reader d = {.csv = csv, .file = r->files->len};
    if (!csv || !orr_csv_need(csv, orr_case_columns, d.of_case, error) ||
        !orr_csv_need(csv, needed, at, error))
        return false;
    g_ptr_array_add(r->files, g_strdup(path));
    d.status = at[0];
    d.time = at[1];
    d.spread = orr_csv_column(csv, "spread_frac");
    d.compute = orr_csv_column(csv, "compute_ns");
    d.beside = orr_csv_column(csv, "compute_beside_ns");
    d.clock = orr_csv_column(csv, "sm_clock_mhz");
    d.algo = orr_csv_column(csv, "algo");
    d.proto = orr_csv_column(csv, "proto");
    for (guint row = 0; row < orr_csv_n_rows(csv); row++)
        if (!read_facts(&r->facts, &d, row, error) || !read_row(r, &d, row, error))
            return false;
    return true;
}

/* What a row moves or computes against what the GPU can; *@what NULL: nothing to hold it against.
 */
static double limit_of(const OrrRecordRow *row, const OrrGpu *gpu, double *is, const char **what) {
    const OrrCase *c = &row->c;
    double bytes = orr_case_bytes(c);
    *what = NULL;
    *is = 0;
    if (orr_case_flops(c) > 0) {
        double peak = gpu->peak_flops_per_s[c->dtype];
        if (c->dtype == ORR_FP32 && peak <= 0)
            peak = gpu->vector_flops_per_s;
        *is = orr_case_flops(c) / row->ns;
        *what = peak > 0 ? "the peak" : NULL;
        return peak / 1e9 * CLOCK_MARGIN;
    }
    *is = bytes / row->ns;
    if (c->kind == ORR_CASE_KERNEL || (c->kind == ORR_CASE_COPY && c->op == ORR_COPY_D2D)) {
        bool is_cached = !c->flushes_l2 && bytes < 4 * gpu->l2_bytes;
        *what = is_cached ? NULL : "the memory's rate";
        return gpu->hbm_bytes_per_s / 1e9 * RATE_MARGIN;
    }
    if (c->kind == ORR_CASE_COPY) {
        bool is_peer = c->op == ORR_COPY_P2P && gpu->nvlink_bytes_per_s > 0;
        *what = is_peer ? "NVLink's rate" : gpu->pcie_bytes_per_s > 0 ? "PCIe's rate" : NULL;
        return (is_peer ? gpu->nvlink_bytes_per_s : gpu->pcie_bytes_per_s) / 1e9 * RATE_MARGIN;
    }
    return 0;
}

void orr_record_rows_judge(OrrRecordRows *r, const OrrGpu *gpu) {
    guint n = 0;
    for (guint i = 0; i < r->rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(r->rows, OrrRecordRow, i);
        const char *what;
        double is, limit = limit_of(row, gpu, &is, &what);
        g_autofree char *key = orr_case_key(&row->c);
        if (what && is > limit) {
            r->n_impossible++;
            note(r, row->file, row->line, "%s: %.0f %% of %s of %s; impossible, not used", key,
                 100 * is / limit, what, gpu->name);
            continue;
        }
        if (row->spread_frac > DOUBTFUL_SPREAD_FRAC) {
            r->n_doubtful++;
            note(r, row->file, row->line, "%s: its samples spread over %.0f %% of the median; kept",
                 key, 100 * row->spread_frac);
        }
        g_array_index(r->rows, OrrRecordRow, n++) = *row;
    }
    g_array_set_size(r->rows, n);
}

/* FLOP a clock and SM, dense, of FP16 with FP32 sums; FP8 and FP4 over that. Volta, Ampere, Hopper
 * and Blackwell white papers, tables of throughput by architecture. */
static const struct {
    const char *capability;
    OrrArch arch;
    double fp16, tf32_over, fp8_over, fp4_over, int8_over, vector;
} chips[] = {
    {"7.0", ORR_ARCH_VOLTA, 1024, 0, 0, 0, 0, 128},
    {"8.0", ORR_ARCH_AMPERE, 2048, 0.5, 0, 0, 2, 128},
    {"9.0", ORR_ARCH_HOPPER, 4096, 0.5, 2, 0, 2, 256},
    {"10.0", ORR_ARCH_BLACKWELL, 8192, 0.5, 2, 4, 2, 256},
    {"10.3", ORR_ARCH_BLACKWELL_ULTRA, 8192, 0.5, 2, 6, 0, 256},
};

OrrGpu *orr_record_rows_gpu(const OrrRecordRows *r, GError **error) {
    const OrrRecordFacts *f = &r->facts;
    guint i = 0;
    while (i < G_N_ELEMENTS(chips) && g_strcmp0(chips[i].capability, f->capability) != 0)
        i++;
    if (i == G_N_ELEMENTS(chips) || !f->n_sms || !(f->boost_hz > 0) || !(f->hbm_bytes_per_s > 0) ||
        !(f->memory_bytes > 0)) {
        orr_fail_input(error,
                       "the GPU '%s' is none that ships, and the records do not tell enough of it "
                       "(capability '%s'); --gpu NAME|FILE would do",
                       f->device ? f->device : "", f->capability ? f->capability : "");
        return NULL;
    }
    OrrGpu *gpu = g_new0(OrrGpu, 1);
    double sm_rate = f->n_sms * f->boost_hz, half = sm_rate * chips[i].fp16;
    gpu->name = g_strdup(f->device);
    gpu->source = g_strdup("what the driver tells, in records of orrery-calibrate");
    gpu->surfaces = g_strdup("");
    gpu->arch = chips[i].arch;
    gpu->n_sms = f->n_sms;
    gpu->boost_hz = gpu->sustained_hz = f->boost_hz;
    gpu->peak_flops_per_s[ORR_FP16] = half;
    gpu->peak_flops_per_s[ORR_BF16] = chips[i].arch == ORR_ARCH_VOLTA ? 0 : half;
    gpu->peak_flops_per_s[ORR_TF32] = half * chips[i].tf32_over;
    gpu->peak_flops_per_s[ORR_FP8] = half * chips[i].fp8_over;
    gpu->peak_flops_per_s[ORR_FP4] = half * chips[i].fp4_over;
    gpu->peak_flops_per_s[ORR_INT8] = half * chips[i].int8_over;
    gpu->vector_flops_per_s = sm_rate * chips[i].vector;
    gpu->hbm_bytes = f->memory_bytes;
    gpu->hbm_bytes_per_s = f->hbm_bytes_per_s;
    gpu->l2_bytes = f->l2_bytes;
    gpu->mem_eff_frac = 1;
    return gpu;
}
