#include "calibrate/nccl_tests.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "calibrate/nccl_tests_priv.h"
#include "sim/base/words.h"
#include "sim/io/csv.h"

#define LIMIT_BYTES ((gsize)256 << 20) /* ours: a sweep has kilobytes */

OrrTableDraft *orr_calibrate__draft_new(GPtrArray *drafts, const char *name, uint32_t line) {
    OrrTableDraft *draft = g_new0(OrrTableDraft, 1);
    draft->table = g_new0(OrrMeasuredTable, 1);
    draft->table->name = g_strdup(name);
    draft->table->kind = ORR_N_COLLECTIVES;
    draft->rows = g_array_new(FALSE, FALSE, sizeof(OrrMeasuredCollective));
    draft->line = line;
    g_ptr_array_add(drafts, draft);
    return draft;
}

void orr_calibrate__draft_free(gpointer data) {
    OrrTableDraft *draft = data;
    if (draft->table) {
        OrrMeasuredTables *one = g_new0(OrrMeasuredTables, 1);
        one->tables = g_new(OrrMeasuredTable *, 1);
        one->tables[0] = draft->table;
        one->n_tables = 1;
        orr_measured_tables_free(one);
    }
    if (draft->rows)
        g_array_unref(draft->rows);
    g_free(draft);
}

void orr_calibrate__note(const OrrImport *import, uint32_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_string_append(import->notes, import->path);
    if (line > 0)
        g_string_append_printf(import->notes, ":%u", line);
    g_string_append_printf(import->notes, ": %s\n", text);
}

OrrDtype orr_calibrate__dtype(const char *name, uint32_t *bytes) {
    static const struct {
        const char *name;
        OrrDtype dtype;
        uint32_t bytes;
    } types[] = {
        {"float", ORR_FP32, 4},      {"half", ORR_FP16, 2},       {"bfloat16", ORR_BF16, 2},
        {"int8", ORR_INT8, 1},       {"uint8", ORR_INT8, 1},      {"f8e4m3", ORR_FP8, 1},
        {"f8e5m2", ORR_FP8, 1},      {"fp8_e4m3", ORR_FP8, 1},    {"fp8_e5m2", ORR_FP8, 1},
        {"int32", ORR_N_DTYPES, 4},  {"uint32", ORR_N_DTYPES, 4}, {"int64", ORR_N_DTYPES, 8},
        {"uint64", ORR_N_DTYPES, 8}, {"double", ORR_N_DTYPES, 8},
    };
    for (guint i = 0; i < G_N_ELEMENTS(types); i++)
        if (strcmp(types[i].name, name) == 0) {
            *bytes = types[i].bytes;
            return types[i].dtype;
        }
    *bytes = 0;
    return ORR_N_DTYPES;
}

bool orr_calibrate__collective(const char *name, OrrCollective *kind) {
    static const char *const names[ORR_N_COLLECTIVES] = {
        [ORR_ALL_REDUCE] = "allreduce",         [ORR_ALL_GATHER] = "allgather",
        [ORR_REDUCE_SCATTER] = "reducescatter", [ORR_ALL_TO_ALL] = "alltoall",
        [ORR_BROADCAST] = "broadcast",          [ORR_REDUCE] = "reduce",
        [ORR_SEND_RECV] = "sendrecv",
    };
    char plain[32];
    guint n = 0;
    for (const char *c = name; *c; c++)
        if (g_ascii_isalnum(*c)) {
            if (n == sizeof plain - 1)
                return false;
            plain[n++] = g_ascii_tolower(*c);
        }
    plain[n] = 0;
    if (n > 4 && strcmp(plain + n - 4, "perf") == 0)
        plain[n - 4] = 0;
    for (int k = 0; k < ORR_N_COLLECTIVES; k++)
        if (strcmp(plain, names[k]) == 0) {
            *kind = (OrrCollective)k;
            return true;
        }
    return false;
}

void orr_calibrate__judge_row(OrrMeasuredCollective *row) {
    OrrMeasuredCall *calls[] = {&row->out_of_place, &row->in_place};
    bool has_time = false;
    for (int i = 0; i < 2; i++) {
        if (calls[i]->n_wrong > 0)
            row->flaw = "the test found wrong values";
        if (!isfinite(calls[i]->time_ns) || calls[i]->time_ns < 0) {
            if (!row->flaw)
                row->flaw = "a time is not a number";
            calls[i]->time_ns = 0;
        }
        if (calls[i]->time_ns > 0 && calls[i]->time_ns < 1) {
            row->flaw = row->flaw ? row->flaw : "a time is below a nanosecond";
            calls[i]->time_ns = 0;
        }
        if (!isfinite(calls[i]->algbw_bytes_per_s))
            calls[i]->algbw_bytes_per_s = 0;
        if (!isfinite(calls[i]->busbw_bytes_per_s))
            calls[i]->busbw_bytes_per_s = 0;
        has_time |= calls[i]->time_ns > 0;
    }
    if (!row->flaw && !has_time)
        row->flaw = "there is no time";
}

static const OrrMeasuredCollective *row_of(const OrrTableDraft *draft, guint i) {
    return &g_array_index(draft->rows, OrrMeasuredCollective, i);
}

/* Ranks n such that busbw / algbw = share x (n-1)/n within what rounding to 0.01 GB/s leaves, in
 * every row; 0: none or several. */
static uint32_t infer_ranks(const OrrTableDraft *draft) {
    double most = draft->table->kind == ORR_ALL_REDUCE ? 2 : 1, low = 1, high = 1e9;
    for (guint i = 0; i < draft->rows->len; i++) {
        const OrrMeasuredCall *call = &row_of(draft, i)->out_of_place;
        double a = call->algbw_bytes_per_s / 1e9, b = call->busbw_bytes_per_s / 1e9;
        if (a < 1 || b <= 0)
            continue;
        double least_ratio = (b - 0.005) / (a + 0.005) / most;
        double most_ratio = (b + 0.005) / (a - 0.005) / most;
        low = MAX(low, 1 / (1 - CLAMP(least_ratio, 0, 1 - 1e-9)));
        high = MIN(high, most_ratio < 1 ? 1 / (1 - most_ratio) : 1e9);
    }
    double n = ceil(low);
    return n >= 2 && n <= high && n + 1 > high && n < 1e7 ? (uint32_t)n : 0;
}

/* The kinds that redop, root and count leave; how many. Count is in elements of what a rank sends
 * (all-gather) or receives (reduce-scatter): bytes = count x size x n there. */
static int possible_kinds(const OrrTableDraft *draft, OrrCollective kinds[2]) {
    const OrrMeasuredCollective *row = row_of(draft, draft->rows->len - 1);
    uint32_t element;
    orr_calibrate__dtype(row->dtype_name, &element);
    if (element == 0 || row->count <= 0 || row->count > INT64_MAX / element)
        return 0;
    bool is_whole = row->count * element == row->bytes;
    kinds[0] = draft->has_redop ? ORR_REDUCE : ORR_BROADCAST;
    if (row->root >= 0) /* scatter and gather have a count that is a share: none of ours */
        return is_whole ? 1 : 0;
    if (draft->has_redop) {
        kinds[0] = is_whole ? ORR_ALL_REDUCE : ORR_REDUCE_SCATTER;
        return 1;
    }
    kinds[0] = is_whole ? ORR_SEND_RECV : ORR_ALL_GATHER;
    kinds[1] = ORR_ALL_TO_ALL;
    return is_whole ? 1 : 2;
}

/* What the name of the file hints at, for a message; "" if nothing. g_free. */
static char *name_hint(const char *path) {
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *low = g_ascii_strdown(base, -1);
    static const char *const words[] = {"allgather", "all_gather", "alltoall", "all_to_all"};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(low, words[i]))
            return g_strdup_printf(" (its name suggests %s)", i < 2 ? "all_gather" : "all_to_all");
    return g_strdup("");
}

static bool ask_for_op(const OrrImport *import, const OrrTableDraft *draft, guint n_tables,
                       GError **error) {
    g_autofree char *list = orr_words_list(orr_collective_names);
    g_autofree char *hint = name_hint(import->path);
    if (n_tables > 1)
        return orr_fail_input(error,
                              "%s:%u: %u tables and none names its collective: say --op with %u "
                              "names, comma-separated, of %s",
                              import->path, draft->line, n_tables, n_tables, list);
    return orr_fail_input(error,
                          "%s:%u: the table does not name its collective and redop, root and "
                          "count leave several%s: say --op %s",
                          import->path, draft->line, hint, list);
}

static bool find_kind(const OrrImport *import, OrrTableDraft *draft, guint n_tables,
                      GError **error) {
    OrrCollective kinds[2];
    if (draft->has_kind)
        return true;
    if (draft->is_named_bad)
        return orr_fail_input(error,
                              "%s:%u: a collective that is not modelled (gather, scatter, "
                              "hypercube)",
                              import->path, draft->line);
    if (n_tables > 1 || draft->rows->len == 0 || possible_kinds(draft, kinds) != 1)
        return ask_for_op(import, draft, n_tables, error);
    draft->table->kind = kinds[0];
    draft->table->is_kind_inferred = true;
    orr_calibrate__note(import, draft->line,
                        "the table does not name its collective; redop, root and count leave %s",
                        orr_collective_name(kinds[0]));
    return true;
}

/* --op: one name for all tables, or one each. */
static bool apply_op(const OrrImport *import, GPtrArray *drafts, GError **error) {
    if (!import->op)
        return true;
    g_auto(GStrv) names = g_strsplit(import->op, ",", -1);
    guint n = g_strv_length(names);
    if (n != 1 && n != drafts->len)
        return orr_fail_usage(error, "--op names %u collectives, but %s has %u tables", n,
                              import->path, drafts->len);
    for (guint i = 0; i < drafts->len; i++) {
        OrrTableDraft *draft = drafts->pdata[i];
        const char *name = g_strstrip(names[n == 1 ? 0 : i]);
        OrrCollective kind;
        if (!orr_calibrate__collective(name, &kind)) {
            g_autofree char *hint = orr_words_hint(name, orr_collective_names);
            return orr_fail_usage(error, "--op: unknown collective '%s'; %s", name, hint);
        }
        if (draft->has_kind && draft->table->kind != kind)
            return orr_fail_usage(error, "--op says %s, but %s:%u says %s",
                                  orr_collective_name(kind), import->path, draft->line,
                                  orr_collective_name(draft->table->kind));
        draft->table->kind = kind;
        draft->has_kind = true;
    }
    return true;
}

static void find_ranks(const OrrImport *import, OrrTableDraft *draft) {
    OrrMeasuredTable *table = draft->table;
    if (import->n_ranks > 0 && table->n_ranks > 0 && import->n_ranks != table->n_ranks)
        orr_calibrate__note(import, draft->line, "--ranks %u is used; the file lists %u ranks",
                            import->n_ranks, table->n_ranks);
    if (import->n_ranks > 0) {
        if (table->n_ranks != import->n_ranks)
            table->n_nodes = 0;
        table->n_ranks = import->n_ranks;
        return;
    }
    double factor = orr_measured_bus_factor(table->kind, 1000);
    if (table->n_ranks > 0 || factor == 1)
        return;
    table->n_ranks = infer_ranks(draft);
    table->is_n_ranks_inferred = table->n_ranks > 0;
    if (table->n_ranks > 0)
        orr_calibrate__note(import, draft->line,
                            "the list of ranks is missing; busbw over algbw leaves %u of them",
                            table->n_ranks);
    else
        orr_calibrate__note(import, draft->line,
                            "the list of ranks is missing: say --ranks to use the table");
}

/* Whether busbw is what the kind makes of algbw; else says so. */
static void check_factor(const OrrImport *import, const OrrTableDraft *draft) {
    double factor = orr_measured_bus_factor(draft->table->kind, draft->table->n_ranks);
    if (draft->table->n_ranks < 2)
        return;
    for (guint i = draft->rows->len; i-- > 0;) {
        const OrrMeasuredCall *call = &row_of(draft, i)->out_of_place;
        if (call->algbw_bytes_per_s < 1e9 || call->busbw_bytes_per_s <= 0)
            continue;
        double seen = call->busbw_bytes_per_s / call->algbw_bytes_per_s;
        if (fabs(seen / factor - 1) > 0.02) { /* rounding to 0.01 GB/s is below 1 % there */
            char by_file[G_ASCII_DTOSTR_BUF_SIZE], ours[G_ASCII_DTOSTR_BUF_SIZE];
            g_ascii_formatd(by_file, sizeof by_file, "%.3f", seen);
            g_ascii_formatd(ours, sizeof ours, "%.3f", factor);
            orr_calibrate__note(import, row_of(draft, i)->line,
                                "busbw is %s times algbw, but %s on %u ranks makes it %s: wrong "
                                "collective or number of ranks?",
                                by_file, orr_collective_name(draft->table->kind),
                                draft->table->n_ranks, ours);
        }
        return;
    }
}

static void settle(OrrTableDraft *draft) {
    OrrMeasuredTable *table = draft->table;
    double factor = orr_measured_bus_factor(table->kind, table->n_ranks);
    for (guint i = 0; i < draft->rows->len; i++) {
        OrrMeasuredCollective *row = &g_array_index(draft->rows, OrrMeasuredCollective, i);
        OrrMeasuredCall *calls[] = {&row->out_of_place, &row->in_place};
        for (int k = 0; k < 2; k++) {
            if (calls[k]->time_ns <= 0)
                continue;
            if (calls[k]->algbw_bytes_per_s <= 0) /* printed as 0.00 */
                calls[k]->algbw_bytes_per_s = (double)row->bytes / calls[k]->time_ns * 1e9;
            if (calls[k]->busbw_bytes_per_s <= 0)
                calls[k]->busbw_bytes_per_s = calls[k]->algbw_bytes_per_s * factor;
        }
        table->n_flawed += row->flaw != NULL;
    }
    table->n_rows = draft->rows->len;
    table->rows = (OrrMeasuredCollective *)(void *)g_array_free(draft->rows, FALSE);
    draft->rows = NULL;
}

OrrMeasuredTables *orr_calibrate__finish(const OrrImport *import, GPtrArray *drafts,
                                         GError **error) {
    OrrMeasuredTables *result = NULL;
    guint n_sound = 0;
    if (!apply_op(import, drafts, error))
        goto done;
    for (guint i = 0; i < drafts->len; i++)
        if (!find_kind(import, drafts->pdata[i], drafts->len, error))
            goto done;
    for (guint i = 0; i < drafts->len; i++) {
        OrrTableDraft *draft = drafts->pdata[i];
        find_ranks(import, draft);
        check_factor(import, draft);
        settle(draft);
        n_sound += draft->table->n_rows - draft->table->n_flawed;
    }
    if (n_sound == 0) {
        orr_fail_input(error, "%s: the tables have no row that can be used", import->path);
        goto done;
    }
    result = g_new0(OrrMeasuredTables, 1);
    result->tables = g_new0(OrrMeasuredTable *, drafts->len);
    for (guint i = 0; i < drafts->len; i++)
        result->tables[result->n_tables++] =
            g_steal_pointer(&((OrrTableDraft *)drafts->pdata[i])->table);
done:
    g_ptr_array_unref(drafts);
    return result;
}

OrrMeasuredTables *orr_nccl_tests_parse(const OrrImport *import, const char *text, gsize length,
                                        GError **error) {
    GPtrArray *drafts = g_ptr_array_new_with_free_func(orr_calibrate__draft_free);
    gsize at = 0;
    while (at < length && g_ascii_isspace(text[at]))
        at++;
    bool is_read;
    if (at < length && text[at] == '{') {
        is_read = orr_calibrate__read_json(import, text, length, drafts, error);
    } else {
        g_autoptr(OrrLog) log = orr_log_parse(import->path, text, length, error);
        bool is_torch = log && !g_strstr_len(text, (gssize)length, "algbw   busbw") &&
                        (g_strstr_len(text, (gssize)length, "all_reduce with a ") ||
                         g_strstr_len(text, (gssize)length, "bandwidth of all_reduce over") ||
                         g_strstr_len(text, (gssize)length, "algo throughput:") ||
                         g_strstr_len(text, (gssize)length, "torch.distributed"));
        is_read = log && (is_torch ? orr_calibrate__read_torch_bench(import, log, drafts, error)
                                   : orr_calibrate__read_text(import, log, drafts, error));
    }
    if (!is_read) {
        g_ptr_array_unref(drafts);
        return NULL;
    }
    return orr_calibrate__finish(import, drafts, error);
}

OrrMeasuredTables *orr_nccl_tests_read(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_nccl_tests_parse(import, text, length, error) : NULL;
}

static void put_call(OrrCsvWriter *w, const OrrMeasuredTable *table,
                     const OrrMeasuredCollective *row, bool is_in_place) {
    const OrrMeasuredCall *call = is_in_place ? &row->in_place : &row->out_of_place;
    if (call->time_ns <= 0)
        return;
    bool is_ours = row->dtype != ORR_N_DTYPES;
    orr_csv_put(w, table->source ? table->source : "");
    orr_csv_put(w, table->gpu ? table->gpu : "");
    orr_csv_put_int(w, table->n_ranks);
    orr_csv_put_double(w, table->n_nodes > 0 ? table->n_nodes : NAN);
    orr_csv_put(w, table->nccl_version ? table->nccl_version : "");
    orr_csv_put(w, orr_collective_name(table->kind));
    orr_csv_put_int(w, row->bytes);
    orr_csv_put_double(w, call->time_ns / 1e3);
    orr_csv_put_double(w, call->algbw_bytes_per_s / 1e9);
    orr_csv_put_double(w, call->busbw_bytes_per_s / 1e9);
    orr_csv_put_int(w, is_in_place);
    orr_csv_put(w, is_ours ? orr_dtype_name(row->dtype) : row->dtype_name);
    orr_csv_end_row(w);
}

char *orr_nccl_tests_format(const OrrMeasuredTables *tables) {
    static const char *const header[] = {
        "source",     "gpu",        "gpus",    "nodes",      "nccl_version",
        "collective", "size_bytes", "time_us", "algbw_GBps", "busbw_GBps",
        "in_place",   "dtype",      NULL};
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    for (uint32_t i = 0; i < tables->n_tables; i++)
        for (uint32_t k = 0; k < tables->tables[i]->n_rows; k++) {
            const OrrMeasuredTable *table = tables->tables[i];
            if (table->rows[k].flaw || table->n_ranks == 0)
                continue;
            put_call(&w, table, &table->rows[k], false);
            put_call(&w, table, &table->rows[k], true);
        }
    return g_string_free(text, FALSE);
}

static char *run(const OrrImport *import, GError **error) {
    g_autoptr(OrrMeasuredTables) tables = orr_nccl_tests_read(import, error);
    if (!tables)
        return NULL;
    for (uint32_t i = 0; i < tables->n_tables; i++)
        if (tables->tables[i]->n_ranks == 0) {
            orr_fail_input(error, "%s: how many ranks took part is not in the file: say --ranks",
                           import->path);
            return NULL;
        }
    return orr_nccl_tests_format(tables);
}

const OrrImporter orr_importer_nccl_tests = {
    .name = "nccl-tests",
    .summary = "tables of nccl-tests or rccl-tests (text, JSON) or all_reduce_bench to CSV",
    .source = "NVIDIA/nccl-tests, ROCm/rccl-tests, ml-engineering all_reduce_bench.py",
    .run = run,
};
