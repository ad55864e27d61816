/* nccl-tests as text. */
#include "calibrate/nccl_tests_priv.h"

#include <math.h>
#include <string.h>

#define MAX_COLUMNS 24 /* the widest known layout has 13 */

typedef enum { C_SIZE, C_COUNT, C_TYPE, C_REDOP, C_ROOT, C_TIME, C_ALGBW, C_BUSBW, C_WRONG } Column;

/* Names of the columns in all layouts; that of 2018 says bytes, N, op, res. */
static const struct {
    const char *name;
    Column column;
} column_names[] = {
    {"size", C_SIZE},   {"bytes", C_SIZE},  {"count", C_COUNT}, {"N", C_COUNT},
    {"type", C_TYPE},   {"redop", C_REDOP}, {"op", C_REDOP},    {"root", C_ROOT},
    {"time", C_TIME},   {"algbw", C_ALGBW}, {"busbw", C_BUSBW}, {"#wrong", C_WRONG},
    {"wrong", C_WRONG}, {"error", C_WRONG}, {"res", C_WRONG},
};

typedef struct {
    const OrrImport *import;
    GPtrArray *drafts;
    OrrTableDraft *draft; /* NULL: outside of a table */
    Column columns[MAX_COLUMNS];
    guint n_columns, n_lead;    /* n_lead: before the first time */
    bool is_delta;              /* the check is a largest difference, not a count */
    char *pending[MAX_COLUMNS]; /* a row that another line interrupted */
    guint n_pending;
    uint32_t pending_line;
    /* Of the test that comes next. */
    char *version, *gpu, *nccl;
    int32_t last_rank;
    GHashTable *hosts; /* set */
    char *pid;         /* of the first rank */
    bool has_pids;     /* more than one */
    guint n_rank_lines;
    bool has_kind, is_named_bad;
    OrrCollective kind;
    guint n_foreign, n_empty; /* lines between rows; rows of no bytes */
} Reader;

static void forget_test(Reader *r) {
    g_clear_pointer(&r->gpu, g_free);
    g_clear_pointer(&r->pid, g_free);
    r->has_pids = false;
    g_hash_table_remove_all(r->hosts);
    r->last_rank = -1;
    r->n_rank_lines = 0;
    r->has_kind = r->is_named_bad = false;
}

static void drop_pending(Reader *r) {
    for (guint i = 0; i < r->n_pending; i++)
        g_free(r->pending[i]);
    r->n_pending = 0;
}

/* Ends the table: @is_whole tells whether its own last lines were seen. */
static void end_table(Reader *r, bool is_whole) {
    if (!r->draft)
        return;
    if (r->n_pending > 0)
        orr_calibrate__note(r->import, r->pending_line, "the row is cut and left out");
    drop_pending(r);
    if (r->n_empty > 0)
        orr_calibrate__note(r->import, r->draft->line, "%u rows of size 0 are left out",
                            r->n_empty);
    if (!is_whole) {
        orr_calibrate__note(r->import, r->draft->line,
                            "the table has no end (\"Avg bus bandwidth\"): used as far as it is "
                            "whole, %u rows",
                            r->draft->rows->len);
        r->draft->table->is_cut = true;
    }
    r->draft = NULL;
    r->n_empty = 0;
    forget_test(r);
}

/* "#  size count type ..." begins a table; false: it is another comment. */
static bool read_header(Reader *r, const char *line, uint32_t number) {
    Column columns[MAX_COLUMNS];
    guint n = 0, n_words, n_time = 0, n_size = 0;
    bool is_delta = false;
    g_auto(GStrv) words = orr_log_words(line, &n_words);
    for (guint i = 0; i < n_words; i++) {
        guint k = 0;
        while (k < G_N_ELEMENTS(column_names) && strcmp(column_names[k].name, words[i]) != 0)
            k++;
        if (k == G_N_ELEMENTS(column_names))
            continue;
        if (n == MAX_COLUMNS)
            return false;
        columns[n++] = column_names[k].column;
        n_time += column_names[k].column == C_TIME;
        n_size += column_names[k].column == C_SIZE;
        is_delta |= strcmp(words[i], "error") == 0 || strcmp(words[i], "res") == 0;
    }
    if (n < 6 || columns[0] != C_SIZE || n_size != 1 || n_time == 0)
        return false;
    end_table(r, false);
    memcpy(r->columns, columns, sizeof columns);
    r->n_columns = n;
    r->n_lead = 0;
    while (columns[r->n_lead] != C_TIME)
        r->n_lead++;
    r->is_delta = is_delta;
    OrrTableDraft *draft = orr_calibrate__draft_new(r->drafts, r->import->path, number);
    OrrMeasuredTable *table = draft->table;
    table->source = g_strdup(r->version ? r->version : "nccl-tests");
    table->gpu = g_strdup(r->gpu);
    table->nccl_version = g_strdup(r->nccl);
    table->n_ranks = (uint32_t)(r->last_rank + 1);
    /* of a list that is cut the hosts can't be counted */
    if (r->n_rank_lines == table->n_ranks)
        table->n_nodes = g_hash_table_size(r->hosts);
    if (table->n_ranks > 1 && table->n_nodes == 1 && r->pid && !r->has_pids)
        table->timed = ORR_TIMED_ONE_PROCESS;
    draft->has_kind = r->has_kind;
    draft->is_named_bad = r->is_named_bad;
    table->kind = r->kind;
    r->draft = draft;
    return true;
}

/* "#  Rank  3 Group  0 Pid 1 on HOST device  3 [0000:66:00] NAME" */
static void read_rank(Reader *r, char **words, guint n_words) {
    int64_t rank;
    if (n_words < 3 || !orr_log_int(words[2], &rank) || rank < 0 || rank > 10000000)
        return;
    if (rank <= r->last_rank) /* each process printed its own list, or another test begins */
        forget_test(r);
    r->last_rank = (int32_t)rank;
    r->n_rank_lines++;
    for (guint i = 3; i + 1 < n_words; i++) {
        if (strcmp(words[i], "on") == 0)
            g_hash_table_add(r->hosts, g_strdup(words[i + 1]));
        if (strcmp(words[i], "Pid") == 0) {
            r->has_pids = r->has_pids || (r->pid && strcmp(r->pid, words[i + 1]) != 0);
            if (!r->pid)
                r->pid = g_strdup(words[i + 1]);
        }
        if (words[i][0] == '[' && !r->gpu)
            r->gpu = g_strjoinv(" ", words + i + 1);
    }
}

/* What lines with "#" and lines of launchers tell about the test. */
static void read_comment(Reader *r, const char *line, char **words, guint n_words) {
    OrrCollective kind;
    const char *perf = strstr(line, "_perf");
    if (n_words > 2 && strcmp(words[0], "#") == 0 && strcmp(words[1], "Rank") == 0)
        read_rank(r, words, n_words);
    const char *rccl = strstr(line, "rccl-tests: Version "); /* "develop:448c4c7" behind it */
    if (rccl ||
        (n_words > 3 && (strstr(line, "nccl-tests version") || strstr(line, "rccl-tests")))) {
        const char *version = rccl ? rccl + strlen("rccl-tests: Version ") : words[3];
        g_free(r->version);
        r->version =
            g_strconcat(strstr(line, "rccl") ? "rccl-tests " : "nccl-tests ", version, NULL);
    }
    const char *library = strstr(line, "nccl-library=");
    guint64 code = library ? g_ascii_strtoull(library + 13, NULL, 10) : 0;
    if (code > 0 && code < 1000000) { /* 22807: 2.28.7, as nccl.h codes it since 2.9 */
        g_free(r->nccl);
        r->nccl = g_strdup_printf("%u.%u.%u", (guint)code / 10000, (guint)code / 100 % 100,
                                  (guint)code % 100);
    }
    if (n_words > 2 && strcmp(words[0], "NCCL") == 0 && strcmp(words[1], "version") == 0) {
        g_free(r->nccl);
        r->nccl = g_strdup(words[2]);
    }
    if (!perf || r->draft || (perf[5] && perf[5] != ' '))
        return;
    const char *start = perf;
    while (start > line && (g_ascii_isalnum(start[-1]) || start[-1] == '_'))
        start--;
    g_autofree char *name = g_strndup(start, (gsize)(perf - start));
    r->has_kind = orr_calibrate__collective(name, &kind);
    r->is_named_bad = !r->has_kind;
    if (r->has_kind)
        r->kind = kind;
}

static bool is_time(const char *word) {
    double value;
    const char *end;
    return (orr_log_number(word, &value, &end) && *end == 0) || strcmp(word, "N/A") == 0 ||
           strstr(word, "nan") || strstr(word, "inf");
}

/* Whether @word can stand in column @at of a row. */
static bool fits_column(const Reader *r, guint at, const char *word) {
    int64_t number;
    switch (r->columns[at]) {
    case C_SIZE:
    case C_COUNT:
        return orr_log_int(word, &number) && number >= 0 && number <= ORR_CALIBRATE_MAX_BYTES;
    case C_ROOT:
        return orr_log_int(word, &number) && number >= -1;
    case C_TYPE:
    case C_REDOP:
        return g_ascii_isalpha(word[0]) && strlen(word) < 16;
    case C_TIME:
    case C_ALGBW:
    case C_BUSBW:
    case C_WRONG:
        return is_time(word);
    }
    return false;
}

/* NAN where the word is no plain number. */
static double number_of(const char *word) {
    double value;
    const char *end;
    return orr_log_number(word, &value, &end) && *end == 0 ? value : NAN;
}

static void set_call(Reader *r, OrrMeasuredCall *call, Column column, const char *word) {
    double value = number_of(word);
    if (column == C_TIME)
        call->time_ns = value * 1e3; /* us */
    else if (column == C_ALGBW)
        call->algbw_bytes_per_s = value * 1e9;
    else if (column == C_BUSBW)
        call->busbw_bytes_per_s = value * 1e9;
    else if (isnan(value))
        call->n_wrong = -1; /* N/A: not checked */
    else /* a difference is rounding unless the tool itself said that the test failed */
        call->n_wrong = r->is_delta ? 0 : (int64_t)CLAMP(value, 0, 9e18);
}

static void add_row(Reader *r, char *const *words, uint32_t line) {
    OrrMeasuredCollective row = {.root = -1, .line = line, .dtype = ORR_N_DTYPES};
    row.out_of_place.n_wrong = row.in_place.n_wrong = -1;
    int n_time = 0;
    int64_t root;
    for (guint i = 0; i < r->n_columns; i++) {
        Column column = r->columns[i];
        n_time += column == C_TIME;
        if (column == C_SIZE)
            orr_log_int(words[i], &row.bytes);
        else if (column == C_COUNT)
            orr_log_int(words[i], &row.count);
        else if (column == C_TYPE)
            g_strlcpy(row.dtype_name, words[i], sizeof row.dtype_name);
        else if (column == C_ROOT && orr_log_int(words[i], &root))
            row.root = (int32_t)CLAMP(root, -1, INT32_MAX);
        else if (column == C_REDOP && strcmp(words[i], "none") != 0)
            r->draft->has_redop = true;
        else if (column >= C_TIME)
            set_call(r, n_time < 2 ? &row.out_of_place : &row.in_place, column, words[i]);
    }
    uint32_t element_bytes;
    row.dtype = orr_calibrate__dtype(row.dtype_name, &element_bytes);
    if (row.bytes == 0) {
        r->n_empty++;
        return;
    }
    orr_calibrate__judge_row(&row);
    if (row.flaw)
        orr_calibrate__note(r->import, line, "%s: the row is left out", row.flaw);
    g_array_append_val(r->draft->rows, row);
}

/* Length of what a row begins with in a word that NCCL's output was printed onto: "-1node7:3:3". */
static gsize glued_length(const char *word) {
    static const char *const last[] = {"-1", "none", "sum", "prod", "max", "min", "avg", "float"};
    for (guint i = 0; word && i < G_N_ELEMENTS(last); i++)
        if (g_str_has_prefix(word, last[i]))
            return strlen(last[i]);
    return 0;
}

static void keep_pending(Reader *r, char **words, guint n, uint32_t line) {
    drop_pending(r);
    for (; r->n_pending < n; r->n_pending++)
        r->pending[r->n_pending] = g_strdup(words[r->n_pending]);
    gsize length = n < r->n_lead ? glued_length(words[n]) : 0;
    g_autofree char *last = g_strndup(length > 0 ? words[n] : "", length);
    if (length > 0 && fits_column(r, n, last))
        r->pending[r->n_pending++] = g_steal_pointer(&last);
    r->pending_line = line;
}

/* A line within a table: a row, its beginning, its rest, or something else. */
static void read_row(Reader *r, char **words, guint n_words, uint32_t line) {
    guint n = 0;
    /* the rest of a row that NCCL's own output interrupted */
    guint n_rest = r->n_columns - r->n_pending;
    if (r->n_pending > 0 && n_words >= n_rest && n_words <= n_rest + 2) { /* 2: a time stamp */
        guint k = 0;
        while (r->n_pending + k < r->n_columns && fits_column(r, r->n_pending + k, words[k]))
            k++;
        if (r->n_pending + k == r->n_columns) {
            char *all[MAX_COLUMNS];
            memcpy(all, r->pending, sizeof all);
            memcpy(all + r->n_pending, words, k * sizeof *words);
            add_row(r, all, r->pending_line);
            drop_pending(r);
            return;
        }
    }
    while (n < n_words && n < r->n_columns && fits_column(r, n, words[n]))
        n++;
    if (n == r->n_columns) {
        if (r->n_pending > 0)
            orr_calibrate__note(r->import, r->pending_line, "the row is cut and left out");
        drop_pending(r);
        add_row(r, words, line);
    } else if (n >= 2) {
        if (r->n_pending > 0)
            orr_calibrate__note(r->import, r->pending_line, "the row is cut and left out");
        keep_pending(r, words, n, line);
    } else {
        r->n_foreign++;
    }
}

static void read_line(Reader *r, const char *line, uint32_t number) {
    guint n_words;
    g_auto(GStrv) words = orr_log_words(line, &n_words);
    if (n_words == 0)
        return;
    if (words[0][0] == '#' && read_header(r, line, number))
        return;
    bool is_end = strstr(line, "Avg bus bandwidth") || strstr(line, "Out of bounds values");
    if (words[0][0] != '#' && r->draft && !is_end) { /* the ends of 2018 have no '#' */
        read_row(r, words, n_words, number);
        return;
    }
    if (strstr(line, "Out of bounds values") && strstr(line, "FAILED") && r->drafts->len > 0) {
        OrrTableDraft *last = r->drafts->pdata[r->drafts->len - 1];
        last->is_failed = true;
        orr_calibrate__note(r->import, number, "the test itself says: %s", line);
    }
    if (strstr(line, "Avg bus bandwidth"))
        end_table(r, true);
    read_comment(r, line, words, n_words);
}

bool orr_calibrate__read_text(const OrrImport *import, const OrrLog *log, GPtrArray *drafts,
                              GError **error) {
    Reader r = {.import = import, .drafts = drafts, .last_rank = -1};
    r.hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < log->n_lines; i++)
        read_line(&r, log->lines[i], i + 1);
    end_table(&r, false);
    if (drafts->len > 0 && r.n_foreign > 0)
        orr_calibrate__note(import, 0, "%u lines between the rows are no rows", r.n_foreign);
    g_hash_table_unref(r.hosts);
    g_free(r.version);
    g_free(r.gpu);
    g_free(r.pid);
    g_free(r.nccl);
    if (drafts->len == 0)
        return orr_fail_input(error,
                              "%s: %u lines, but no table of nccl-tests (a line \"# size count "
                              "type ... time algbw busbw\") and no result of all_reduce_bench",
                              import->path, log->n_lines);
    return true;
}
