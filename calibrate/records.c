/* The file of measurements. Rows are written whole with one call each; what
 * a full disk left of a row is cut off again. */
#include "calibrate/records.h"

#include "sim/io/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct OrrRecords {
    char *path;
    int fd;
    bool is_stdout;
    guint n_unsynced; /* rows that the system has, but perhaps not the disk */
    GHashTable *keys; /* set of char *: cases that have a row */
    const OrrDeviceFacts *facts;
};

/* Largest file of records that is read: a million rows. */
#define LIMIT_BYTES ((gsize)512 << 20)

/* Rows that a machine that loses power may take with it; a program that ends takes none. */
#define SYNC_ROWS 64

static const char *const result_columns[] = {
    "status",
    "time_ns",
    "min_ns",
    "mean_ns",
    "p10_ns",
    "p90_ns",
    "spread_frac",
    "n_samples",
    "n_repeats",
    "error_frac",
    "flops",
    "moved_bytes",
    "flops_per_s",
    "algbw_bytes_per_s",
    "busbw_bytes_per_s",
    "compute_ns",
    "compute_beside_ns",
    "algo",
    "proto",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "power_watts",
    "temperature_c",
    "device",
    "n_gpus",
    "gpus_per_node",
    "driver",
    "cuda",
    "cublas",
    "cudnn",
    "nccl",
    "capability",
    "sms",
    "boost_mhz",
    "hbm_bytes_per_s",
    "memory_bytes",
    "l2_bytes",
    "date",
    "reason",
    NULL,
};
/* Columns that must be the same in all rows of a file. */
static const char *const same_columns[] = {"device", "n_gpus", "gpus_per_node", "driver", "cuda",
                                           "cublas", "cudnn",  "nccl",          NULL};

static const char *const status_names[] = {"ok", "wrong", "refused"};

char *orr_records_header(void) {
    g_autofree char *of_case = g_strjoinv(",", (char **)orr_case_columns);
    g_autofree char *of_result = g_strjoinv(",", (char **)result_columns);
    return g_strconcat(of_case, ",", of_result, NULL);
}

static void facts_texts(const OrrDeviceFacts *f, char *texts[G_N_ELEMENTS(same_columns)]) {
    texts[0] = g_strdup(f->device);
    texts[1] = g_strdup_printf("%d", f->n_gpus);
    texts[2] = g_strdup_printf("%d", f->n_per_node);
    texts[3] = g_strdup(f->driver);
    texts[4] = g_strdup(f->cuda);
    texts[5] = g_strdup(f->cublas);
    texts[6] = g_strdup(f->cudnn);
    texts[7] = g_strdup(f->nccl);
    texts[8] = NULL;
}

static bool check_row(const OrrRecords *r, const OrrCsv *csv, guint row, char **texts,
                      GError **error) {
    for (guint i = 0; same_columns[i]; i++) {
        int column = orr_csv_column(csv, same_columns[i]);
        const char *there = orr_csv_cell(csv, row, column);
        if (strcmp(there, texts[i]) != 0)
            return orr_csv_fail(csv, row, column, error,
                                "this machine has '%s'; another -o FILE would do", texts[i]);
    }
    g_autoptr(GString) key = g_string_new(NULL);
    for (guint i = 0; i < ORR_N_CASE_COLUMNS; i++)
        g_string_append_printf(key, "%s%s", i ? "," : "", orr_csv_cell(csv, row, (int)i));
    g_hash_table_add(r->keys, g_strdup(key->str));
    return true;
}

static bool read_rows(OrrRecords *r, const char *text, gsize length, GError **error) {
    g_autofree char *header = orr_records_header();
    if (!g_str_has_prefix(text, header) || text[strlen(header)] != '\n')
        return orr_fail_input(error,
                              "%s: not a file of orrery-calibrate of this version; another "
                              "-o FILE would do",
                              r->path);
    g_autoptr(OrrCsv) csv = orr_csv_parse(r->path, text, length, ORR_CSV_PLAIN, error);
    if (!csv)
        return false;
    char *texts[G_N_ELEMENTS(same_columns)];
    facts_texts(r->facts, texts);
    bool is_good = true;
    for (guint row = 0; is_good && row < orr_csv_n_rows(csv); row++)
        is_good = check_row(r, csv, row, texts, error);
    for (guint i = 0; texts[i]; i++)
        g_free(texts[i]);
    return is_good;
}

/* Writes all of @text or, with @error, nothing. */
static bool append(OrrRecords *r, const char *text, GError **error) {
    gsize length = strlen(text), done = 0;
    off_t before = r->is_stdout ? 0 : lseek(r->fd, 0, SEEK_END);
    while (done < length) {
        ssize_t n = write(r->fd, text + done, length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (gsize)n;
    }
    bool syncs = !r->is_stdout && ++r->n_unsynced >= SYNC_ROWS;
    if (done == length && (!syncs || fdatasync(r->fd) == 0 || errno == EINVAL)) {
        r->n_unsynced = syncs ? 0 : r->n_unsynced;
        return true;
    }
    int why = errno;
    if (!r->is_stdout && ftruncate(r->fd, before) < 0)
        why = errno;
    return orr_fail_env(error, "%s: %s; what was measured before is kept", r->path,
                        g_strerror(why));
}

/* A last line without an end is what an interruption left. */
static bool load(OrrRecords *r, GError **error) {
    struct stat s;
    if (fstat(r->fd, &s) < 0 || !S_ISREG(s.st_mode) || s.st_size == 0)
        return true;
    gsize length;
    g_autofree char *text = orr_file_read(r->path, LIMIT_BYTES, &length, error);
    if (!text)
        return false;
    const char *last = strrchr(text, '\n');
    gsize whole = last ? (gsize)(last - text) + 1 : 0;
    g_autofree char *header = orr_records_header();
    bool is_ours = whole ? true : g_str_has_prefix(header, text);
    if (!is_ours)
        return orr_fail_input(error, "%s: not a file of orrery-calibrate; another -o FILE would do",
                              r->path);
    text[whole] = 0;
    if (whole && !read_rows(r, text, whole, error))
        return false;
    if (whole < length && ftruncate(r->fd, (off_t)whole) < 0)
        return orr_fail_env(error, "%s: %s", r->path, g_strerror(errno));
    return true;
}

static bool begin(OrrRecords *r, GError **error) {
    if (!r->is_stdout) {
        r->fd = open(r->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (r->fd < 0)
            return orr_fail_env(error, "%s: %s", r->path, g_strerror(errno));
        if (flock(r->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
            return orr_fail_env(error, "%s: another run is writing it", r->path);
        if (!load(r, error))
            return false;
    }
    struct stat s;
    bool is_new = r->is_stdout || (fstat(r->fd, &s) == 0 && s.st_size == 0);
    g_autofree char *header = orr_records_header();
    g_autofree char *line = g_strconcat(header, "\n", NULL);
    return !is_new || append(r, line, error);
}

OrrRecords *orr_records_open(const char *path, const OrrDeviceFacts *facts, GError **error) {
    g_autoptr(OrrRecords) r = g_new0(OrrRecords, 1);
    r->is_stdout = !path || strcmp(path, "-") == 0;
    r->path = g_strdup(r->is_stdout ? "standard output" : path);
    r->fd = r->is_stdout ? STDOUT_FILENO : -1;
    r->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r->facts = facts;
    return begin(r, error) ? g_steal_pointer(&r) : NULL;
}

bool orr_records_has(const OrrRecords *r, const OrrCase *c) {
    g_autofree char *key = orr_case_key(c);
    return g_hash_table_contains(r->keys, key);
}

static void put_times(OrrCsvWriter *w, const OrrCase *c, const OrrCaseRecord *record) {
    const OrrSummary *s = &record->summary;
    bool is_timed = record->status != ORR_STATUS_REFUSED;
    double none = NAN, second = s->median_ns / 1e9;
    const double times[] = {s->median_ns, s->min_ns, s->mean_ns,
                            s->p10_ns,    s->p90_ns, s->spread_frac};
    for (guint i = 0; i < G_N_ELEMENTS(times); i++)
        orr_csv_put_double(w, is_timed ? times[i] : none);
    orr_csv_put_int(w, is_timed ? s->n_samples : 0);
    orr_csv_put_int(w, is_timed ? s->n_repeats : 0);
    orr_csv_put_double(w, is_timed ? record->error_frac : none);
    double flops = orr_case_flops(c), bytes = orr_case_bytes(c);
    bool is_collective = c->kind == ORR_CASE_COLLECTIVE;
    double factor = is_collective ? orr_case_bus_factor((OrrCollective)c->op, c->group_gpus) : none;
    orr_csv_put_double(w, flops);
    orr_csv_put_double(w, bytes);
    orr_csv_put_double(w, is_timed && flops > 0 ? flops / second : none);
    orr_csv_put_double(w, is_timed && bytes > 0 ? bytes / second : none);
    orr_csv_put_double(w, is_timed ? bytes * factor / second : none);
    orr_csv_put_double(w, is_timed ? s->compute_ns : none);
    orr_csv_put_double(w, is_timed ? s->compute_beside_ns : none);
    /* What NCCL was told; what it chose by itself it tells nobody but its log. */
    const char *algo = g_getenv("NCCL_ALGO"), *proto = g_getenv("NCCL_PROTO");
    orr_csv_put(w, !is_collective ? "" : algo ? algo : "chosen");
    orr_csv_put(w, !is_collective ? "" : proto ? proto : "chosen");
}

/* What the driver tells of the GPU, for machines that no file of ours describes; and the day. */
static void put_machine(OrrCsvWriter *w, const OrrDeviceFacts *f) {
    orr_csv_put(w, f->capability ? f->capability : "");
    orr_csv_put_int(w, f->n_sms);
    orr_csv_put_double(w, f->boost_mhz);
    orr_csv_put_double(w, f->hbm_bytes_per_s);
    orr_csv_put_int(w, f->memory_bytes);
    orr_csv_put_int(w, f->l2_bytes);
    orr_csv_put(w, f->date ? f->date : "");
}

bool orr_records_add(OrrRecords *r, const OrrCase *c, const OrrCaseRecord *record, GError **error) {
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(line);
    OrrCsvWriter w = {.out = out};
    for (guint i = 0; i < ORR_N_CASE_COLUMNS; i++) {
        g_autofree char *cell = orr_case_cell(c, i);
        orr_csv_put(&w, cell);
    }
    orr_csv_put(&w, status_names[record->status]);
    put_times(&w, c, record);
    orr_csv_put_double(&w, record->readings.sm_clock_mhz);
    orr_csv_put_double(&w, record->readings.memory_clock_mhz);
    orr_csv_put_double(&w, record->readings.power_watts);
    orr_csv_put_double(&w, record->readings.temperature_c);
    char *texts[G_N_ELEMENTS(same_columns)];
    facts_texts(r->facts, texts);
    for (guint i = 0; texts[i]; i++) {
        orr_csv_put(&w, texts[i]);
        g_free(texts[i]);
    }
    put_machine(&w, r->facts);
    orr_csv_put(&w, record->reason);
    orr_csv_end_row(&w);
    if (!append(r, line->str, error))
        return false;
    g_hash_table_add(r->keys, orr_case_key(c));
    return true;
}

void orr_records_free(OrrRecords *r) {
    if (!r)
        return;
    if (r->fd >= 0 && !r->is_stdout)
        close(r->fd);
    g_hash_table_unref(r->keys);
    g_free(r->path);
    g_free(r);
}
