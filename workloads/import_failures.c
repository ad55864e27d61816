/* Four forms of a history of failures:
 * - a table of counts: columns component (or cause) and count; the window and the GPUs are asked
 * for;
 * - a table of events: a column time_h, time_s or time_d, and one of component, cause or kind;
 * - the accounting of Slurm, `sacct -P`: NODE_FAIL and FAILED jobs over the node-days of all;
 * - the same of a table of jobs: columns state, node_num (nodes) and duration in seconds.
 *
 * Counts become rates of a GPU (or of the job where the component is software). Events become the
 * rate of the job, exponential, or Weibull where the gaps between them say so: shape by maximum
 * likelihood, more than two of its deviations (0.78 k / sqrt(n), Cohen 1965) away from 1. */
#include "workloads/import_failures.h"

#include "sim/base/units.h"
#include "sim/io/csv.h"

#include <math.h>
#include <string.h>

#define LIMIT_BYTES (1u << 26) /* ours: the accounting of a year is some megabytes */
#define LEAST_SHAPE 0.05       /* the ranges of failure files */
#define MOST_SHAPE 20.0
#define MOST_MTBF_H 2.5e6
#define MIN_FIT 8            /* ours: gaps below which a shape says nothing */
#define SHAPE_DEVIATION 0.78 /* Cohen 1965, asymptotic: 0.7797 k / sqrt(n) */

static void number(GString *to, double value) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(to, g_ascii_formatd(text, sizeof text, "%.6g", value));
}

/* "GPU HBM3 Memory" -> "gpu_hbm3_memory"; g_free. */
static char *group_name(const char *text) {
    GString *name = g_string_new(NULL);
    for (const char *c = text; *c; c++) {
        if (g_ascii_isalnum(*c))
            g_string_append_c(name, g_ascii_tolower(*c));
        else if (name->len > 0 && name->str[name->len - 1] != '_')
            g_string_append_c(name, '_');
    }
    while (name->len > 0 && name->str[name->len - 1] == '_')
        g_string_truncate(name, name->len - 1);
    if (name->len == 0 || strcmp(name->str, "failures") == 0)
        g_string_append(name, "_cause");
    return g_string_free(name, FALSE);
}

/* What no fail-stop is, with the time to find it that topologies/failures/llama3-54d.ini has. */
#define CORRUPT                                                                                    \
    "corrupt\ndetect = 2 h                     # assumed: a loss spike or a periodic check"
#define HANG "hang\ndetect = 10 min                  # PyTorch's default NCCL timeout since 2.2"

/* What is known of a component by its words. */
typedef struct {
    const char *word, *component, *unit;
    int nodes;
    const char *effect; /* and its detect; NULL: stop */
} Word;
static const Word words[] = {
    {"hbm", "hbm", "gpu", 1, NULL},
    {"corruption", "gpu", "gpu", 1, CORRUPT},
    {"gpu", "gpu", "gpu", 1, NULL},
    {"nvlink", "nvlink", "gpu", 1, NULL},
    {"software", "software", "job", 0, NULL},
    {"bug", "software", "job", 0, NULL},
    {"dependency", "software", "job", 0, NULL},
    {"timeout", "software", "job", 0, HANG},
    {"watchdog", "software", "job", 0, HANG},
    {"hang", "software", "job", 0, HANG},
    {"switch", "switch", "gpu", 1, NULL},
    {"cable", "cable", "gpu", 1, NULL},
    {"nic", "nic", "gpu", 1, NULL},
    {"ssd", "storage", "gpu", 1, NULL},
    {"disk", "storage", "gpu", 1, NULL},
    {"power", "power", "gpu", 1, NULL},
};

static Word word_of(const char *name) {
    g_autofree char *lower = g_ascii_strdown(name, -1);
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(lower, words[i].word))
            return words[i];
    return (Word){"", "host", "gpu", 1, NULL};
}

/* The file as it grows: causes apart from the head, which lists them. */
typedef struct {
    GString *causes, *groups;
    GHashTable *names;
} File;

static File file_new(void) {
    return (File){g_string_new(NULL), g_string_new(NULL),
                  g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
}

/* Begins a group; false if there is one of that name. */
static bool begin_cause(File *f, const char *title, Word w) {
    char *name = group_name(title);
    if (!g_hash_table_add(f->names, name))
        return false;
    g_string_append_printf(f->causes, "%s%s", f->causes->len > 0 ? ", " : "", name);
    g_string_append_printf(f->groups,
                           "\n[%s]\ncomponent = %s\nunit = %s\neffect = %s\nnodes = %d %s\n", name,
                           w.component, w.unit, w.effect ? w.effect : "stop", w.nodes,
                           w.nodes == 1 ? "node" : "nodes");
    if (w.nodes == 0)
        g_string_append(f->groups, "only_running = yes\n");
    return true;
}

static char *finish(File *f, const OrrImport *import, const char *head) {
    g_autofree char *base = g_path_get_basename(import->path);
    for (char *c = base; *c; c++)
        if ((guchar)*c < ' ')
            *c = '?';
    char *text =
        g_strdup_printf("[failures]\nsummary = Failures imported from %s\nsource = %s, read "
                        "by orrery import failures\n%scauses = %s\n%s",
                        base, base, head, f->causes->str, f->groups->str);
    return text;
}

static void file_clear(File *f) {
    g_string_free(f->causes, TRUE);
    g_string_free(f->groups, TRUE);
    g_hash_table_unref(f->names);
}

static char *import_counts(const OrrImport *import, const OrrCsv *csv, int name, int count,
                           GError **error) {
    if (import->n_ranks == 0 || !(import->window_ns > 0)) {
        orr_fail_input(error,
                       "%s: counts need the GPUs and the time that they were made in: --ranks "
                       "16384 --window 54d would do",
                       import->path);
        return NULL;
    }
    File f = file_new();
    bool is_fine = true;
    for (guint i = 0; i < orr_csv_n_rows(csv) && is_fine; i++) {
        const char *title = orr_csv_cell(csv, i, name);
        double n;
        is_fine = orr_csv_number(csv, i, count, 0, 1e12, &n, error);
        if (!is_fine || n == 0)
            continue;
        is_fine = begin_cause(&f, title, word_of(title)) ||
                  orr_csv_fail(csv, i, name, error, "is there twice");
        g_string_append(f.groups, "count = ");
        number(f.groups, n);
        g_string_append_c(f.groups, '\n');
    }
    if (is_fine && f.causes->len == 0)
        is_fine = orr_fail_input(error, "%s: no row has a count above 0", import->path);
    g_autoptr(GString) head = g_string_new("window = ");
    number(head, import->window_ns / 3600e9);
    guint nodes = import->n_nodes ? import->n_nodes : (import->n_ranks + 7) / 8;
    g_string_append_printf(head, " h\ngpus = %u GPUs\nnodes = %u nodes\n", import->n_ranks, nodes);
    char *text = is_fine ? finish(&f, import, head->str) : NULL;
    file_clear(&f);
    return text;
}

bool orr_weibull_fit(const double *x, guint n, double *shape, double *scale) {
    double mean_log = 0, low = 0.02, high = 50, top = 0, bottom = INFINITY;
    for (guint i = 0; i < n; i++) {
        mean_log += log(x[i]) / n;
        top = fmax(top, x[i]), bottom = fmin(bottom, x[i]);
    }
    if (n < 2 || !(bottom > 0) || top <= bottom)
        return false;
    for (int step = 0; step < 200; step++) { /* the likelihood equation rises with the shape */
        double k = (low + high) / 2, sum = 0, weighted = 0;
        for (guint i = 0; i < n; i++) {
            double p = pow(x[i] / top, k);
            sum += p;
            weighted += p * log(x[i]);
        }
        if (weighted / sum - 1 / k - mean_log < 0)
            low = k;
        else
            high = k;
    }
    double sum = 0;
    *shape = (low + high) / 2;
    for (guint i = 0; i < n; i++)
        sum += pow(x[i] / top, *shape);
    *scale = top * pow(sum / n, 1 / *shape);
    return true;
}

static int by_size(gconstpointer a, gconstpointer b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rate and law of the events of one cause, times in hours. */
static void put_events(File *f, GArray *times, double window_h, const char *title,
                       const OrrImport *import) {
    g_array_sort(times, by_size);
    guint n = times->len, n_gaps = 0;
    const double *t = (const double *)(void *)times->data;
    g_autofree double *gaps = g_new(double, n + 1);
    for (guint i = 1; i < n; i++)
        if (t[i] > t[i - 1])
            gaps[n_gaps++] = t[i] - t[i - 1];
    double shape, scale;
    bool is_fit = n_gaps >= MIN_FIT && orr_weibull_fit(gaps, n_gaps, &shape, &scale) &&
                  shape >= LEAST_SHAPE && shape <= MOST_SHAPE &&
                  scale * tgamma(1 + 1 / shape) <= MOST_MTBF_H;
    if (is_fit && fabs(shape - 1) > 2 * SHAPE_DEVIATION * shape / sqrt(n_gaps)) {
        g_string_append(f->groups, "law = weibull\nshape = ");
        number(f->groups, shape);
        g_string_append(f->groups, "\nmtbf = ");
        number(f->groups, scale * tgamma(1 + 1 / shape));
        g_string_append_printf(import->notes, "orrery: %s: %u gaps are Weibull, not exponential\n",
                               title, n_gaps);
    } else {
        g_string_append(f->groups, "mtbf = ");
        number(f->groups, window_h / n);
    }
    g_string_append(f->groups, " h\n");
}

static char *import_events(const OrrImport *import, const OrrCsv *csv, int name, int time,
                           double to_hours, GError **error) {
    g_autoptr(GHashTable) by_name =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_array_unref);
    g_autoptr(GPtrArray) order = g_ptr_array_new(); /* first come, so no hash order shows */
    double last = 0;
    for (guint i = 0; i < orr_csv_n_rows(csv); i++) {
        const char *title = name >= 0 ? orr_csv_cell(csv, i, name) : "failure";
        double at;
        if (!orr_csv_number(csv, i, time, 0, 1e9, &at, error))
            return NULL;
        GArray *times = g_hash_table_lookup(by_name, title);
        if (!times) {
            times = g_array_new(FALSE, FALSE, sizeof(double));
            g_hash_table_insert(by_name, (gpointer)title, times);
            g_ptr_array_add(order, (gpointer)title);
        }
        at *= to_hours;
        last = fmax(last, at);
        g_array_append_val(times, at);
    }
    double window_h = import->window_ns > 0 ? import->window_ns / 3600e9 : last;
    if (order->len == 0 || !(window_h > 0)) {
        orr_fail_input(error, "%s: no event behind time 0", import->path);
        return NULL;
    }
    if (!(import->window_ns > 0))
        g_string_append(import->notes,
                        "orrery: the time observed is taken to end with the last event; "
                        "--window says better\n");
    File f = file_new();
    bool is_fine = true;
    for (guint i = 0; i < order->len && is_fine; i++) {
        const char *title = order->pdata[i];
        Word w = word_of(title);
        w.unit = "job"; /* which unit failed is not known of every table: the rate is the job's */
        is_fine = begin_cause(&f, title, w) ||
                  orr_fail_input(error, "%s: \"%s\" and another cause have the same name",
                                 import->path, title);
        if (is_fine)
            put_events(&f, g_hash_table_lookup(by_name, title), window_h, title, import);
    }
    char *text = is_fine ? finish(&f, import, "") : NULL;
    file_clear(&f);
    return text;
}

/* "1-07:38:45", "12:00:00", "38:45" in hours; false if it is none. */
static bool elapsed_hours(const char *text, double *hours) {
    const char *dash = strchr(text, '-');
    guint64 days = 0, part, seconds = 0;
    g_autofree char *before = dash ? g_strndup(text, (gsize)(dash - text)) : NULL;
    if (dash && !g_ascii_string_to_unsigned(before, 10, 0, 1000000, &days, NULL))
        return false;
    g_auto(GStrv) parts = g_strsplit(dash ? dash + 1 : text, ":", -1);
    guint n = g_strv_length(parts);
    if (n < 2 || n > 3)
        return false;
    for (guint i = 0; i < n; i++) {
        g_autofree char *whole = g_strdup(parts[i]);
        char *point = strchr(whole, '.'); /* sacct may give milliseconds */
        if (point)
            *point = '\0';
        if (!g_ascii_string_to_unsigned(whole, 10, 0, 1000000, &part, NULL))
            return false;
        seconds = seconds * 60 + part;
    }
    *hours = (double)days * 24 + (double)seconds / 3600;
    return true;
}

/* Columns of sacct that count. */
enum { JOB, NODES, STATE, ELAPSED, N_COLUMNS };
typedef struct {
    double node_hours, job_hours;
    guint jobs, node_fails, failed;
} Accounting;

static bool find_columns(const char *header, int *column) {
    static const char *const names[N_COLUMNS] = {"JobID", "NNodes", "State", "Elapsed"};
    g_auto(GStrv) cells = g_strsplit(header, "|", -1);
    for (int c = 0; c < N_COLUMNS; c++) {
        column[c] = -1;
        for (int i = 0; cells[i]; i++)
            if (strcmp(cells[i], names[c]) == 0)
                column[c] = i;
        if (column[c] < 0)
            return false;
    }
    return true;
}

/* A line of sacct; steps (1001.batch) are part of their job and don't count. */
static bool add_job(Accounting *a, const char *line, const int *column) {
    g_auto(GStrv) cells = g_strsplit(line, "|", -1);
    int n = (int)g_strv_length(cells);
    for (int c = 0; c < N_COLUMNS; c++)
        if (column[c] >= n)
            return false;
    if (strchr(cells[column[JOB]], '.'))
        return true;
    guint64 nodes;
    double hours;
    if (!g_ascii_string_to_unsigned(cells[column[NODES]], 10, 0, 10000000, &nodes, NULL) ||
        !elapsed_hours(cells[column[ELAPSED]], &hours))
        return false;
    a->jobs++;
    a->node_hours += (double)nodes * hours;
    a->job_hours += hours;
    a->node_fails += strcmp(cells[column[STATE]], "NODE_FAIL") == 0;
    a->failed += strcmp(cells[column[STATE]], "FAILED") == 0;
    return true;
}

static char *accounting_file(const OrrImport *import, const Accounting *a, GError **error) {
    if (!(a->node_hours > 0) || a->node_fails + a->failed == 0) {
        orr_fail_input(error,
                       "%s: %u jobs, %u of them ended by NODE_FAIL, %u FAILED: no rate follows",
                       import->path, a->jobs, a->node_fails, a->failed);
        return NULL;
    }
    File f = file_new();
    if (a->node_fails > 0) {
        begin_cause(&f, "node_failure", (Word){"", "host", "node", 1});
        g_string_append(f.groups, "per_1000_node_days = ");
        number(f.groups, 1000 * a->node_fails / (a->node_hours / 24));
        g_string_append_c(f.groups, '\n');
    }
    if (a->failed > 0) {
        begin_cause(&f, "job_failed", (Word){"", "software", "job", 0});
        g_string_append(f.groups, "mtbf = ");
        number(f.groups, a->job_hours / a->failed);
        g_string_append(f.groups, " h\n");
    }
    g_string_append_printf(import->notes,
                           "orrery: %u jobs, %u ended by NODE_FAIL, %u FAILED; steps are "
                           "part of their jobs; a rate from n events is uncertain by 1/sqrt(n)\n",
                           a->jobs, a->node_fails, a->failed);
    char *text = finish(&f, import, "");
    file_clear(&f);
    return text;
}

static char *import_sacct(const OrrImport *import, const char *text, gsize length, GError **error) {
    g_autofree char *copy = g_strndup(text, length);
    g_auto(GStrv) lines = g_strsplit(copy, "\n", -1);
    int column[N_COLUMNS];
    Accounting a = {0};
    if (!find_columns(g_strchomp(lines[0]), column)) {
        orr_fail_input(error,
                       "%s:1: sacct -P with the columns JobID, NNodes, State and Elapsed would "
                       "do",
                       import->path);
        return NULL;
    }
    for (guint i = 1; lines[i]; i++)
        if (*g_strchomp(lines[i]) && !add_job(&a, lines[i], column))
            g_string_append_printf(import->notes,
                                   "orrery: %s:%u: is no line of a job and is left out\n",
                                   import->path, i + 1);
    return accounting_file(import, &a, error);
}

/* Jobs as CSV: how each ended, its nodes, its seconds. */
static char *import_jobs(const OrrImport *import, const OrrCsv *csv, int state, int nodes,
                         int seconds, GError **error) {
    Accounting a = {0};
    for (guint i = 0; i < orr_csv_n_rows(csv); i++) {
        double n, s;
        if (!orr_csv_number(csv, i, nodes, 0, 1e7, &n, error) ||
            !orr_csv_number(csv, i, seconds, 0, 1e10, &s, error))
            return NULL;
        a.jobs++;
        a.node_hours += n * s / 3600;
        a.job_hours += s / 3600;
        a.node_fails += g_ascii_strcasecmp(orr_csv_cell(csv, i, state), "NODE_FAIL") == 0;
        a.failed += g_ascii_strcasecmp(orr_csv_cell(csv, i, state), "FAILED") == 0;
    }
    return accounting_file(import, &a, error);
}

static int any_column(const OrrCsv *csv, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (orr_csv_column(csv, names[i]) >= 0)
            return orr_csv_column(csv, names[i]);
    return -1;
}

char *orr_import_failures_text(const OrrImport *import, const char *text, gsize length,
                               GError **error) {
    static const char *const causes[] = {"component", "cause", "kind", NULL};
    static const struct {
        const char *name;
        double to_hours;
    } times[] = {{"time_h", 1}, {"time_s", 1 / 3600.0}, {"time_d", 24}};
    if (g_str_has_prefix(text, "JobID|"))
        return import_sacct(import, text, length, error);
    g_autoptr(OrrCsv) csv = orr_csv_parse(import->path, text, length, ORR_CSV_PLAIN, error);
    if (!csv)
        return NULL;
    int name = any_column(csv, causes), count = orr_csv_column(csv, "count");
    for (guint i = 0; i < G_N_ELEMENTS(times); i++) {
        int time = orr_csv_column(csv, times[i].name);
        if (time >= 0)
            return import_events(import, csv, name, time, times[i].to_hours, error);
    }
    static const char *const nodes[] = {"node_num", "nodes", "nnodes", NULL};
    static const char *const seconds[] = {"duration", "duration_s", "elapsed_s", NULL};
    int state = orr_csv_column(csv, "state"), n = any_column(csv, nodes);
    if (state >= 0 && n >= 0 && any_column(csv, seconds) >= 0)
        return import_jobs(import, csv, state, n, any_column(csv, seconds), error);
    if (name >= 0 && count >= 0)
        return import_counts(import, csv, name, count, error);
    orr_fail_input(error,
                   "%s: no history of failures: columns component and count, or time_h (time_s, "
                   "time_d) and component, or state, node_num and duration of jobs, or the lines "
                   "of sacct -P would do",
                   import->path);
    return NULL;
}

static char *run(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_import_failures_text(import, text, length, error) : NULL;
}

const OrrImporter orr_importer_failures = {
    .name = "failures",
    .summary = "counts, events or sacct -P of failures to a file of topologies/failures",
    .source = "Slurm, sacct(1); Cohen 1965 for the Weibull fit",
    .run = run,
};
