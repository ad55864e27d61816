/* Tables of published measurements: which kind a table is, and the training runs in it. Collectives
 * and kernels are read by published_kernels.c. */
#include "workloads/published.h"

#include "sim/io/csv.h"
#include "sim/io/data.h"
#include "workloads/published_priv.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MAX_BYTES (256u << 20) /* ours: the largest table of the field is a few MB */

typedef enum { CELL_TEXT, CELL_COUNT, CELL_NUMBER } CellKind;

/* A column and the member of OrrPublishedRun that it fills. */
typedef struct {
    const char *name;
    CellKind kind;
    size_t offset;
    double scale; /* NUMBER: to SI */
} Column;

#define RUN(member) offsetof(OrrPublishedRun, member)
static const Column run_columns[] = {
    {"id", CELL_TEXT, RUN(id), 0},
    {"source", CELL_TEXT, RUN(source), 0},
    {"gpu", CELL_TEXT, RUN(gpu), 0},
    {"interconnect", CELL_TEXT, RUN(interconnect), 0},
    {"model", CELL_TEXT, RUN(model), 0},
    {"framework", CELL_TEXT, RUN(framework), 0},
    {"schedule", CELL_TEXT, RUN(schedule), 0},
    {"recompute", CELL_TEXT, RUN(recompute), 0},
    {"precision", CELL_TEXT, RUN(precision), 0},
    {"zero_stage", CELL_TEXT, RUN(zero), 0},
    {"note", CELL_TEXT, RUN(note), 0},
    {"after_pp_fix", CELL_TEXT, RUN(after_pp_fix), 0},
    {"gpus", CELL_COUNT, RUN(gpus), 0},
    {"nodes", CELL_COUNT, RUN(nodes), 0},
    {"layers", CELL_COUNT, RUN(layers), 0},
    {"hidden", CELL_COUNT, RUN(hidden), 0},
    {"heads", CELL_COUNT, RUN(heads), 0},
    {"kv_heads", CELL_COUNT, RUN(kv_heads), 0},
    {"ffn_hidden", CELL_COUNT, RUN(ffn), 0},
    {"vocab", CELL_COUNT, RUN(vocab), 0},
    {"seq_len", CELL_COUNT, RUN(sequence_tokens), 0},
    {"experts", CELL_COUNT, RUN(experts), 0},
    {"global_batch_seqs", CELL_COUNT, RUN(global_sequences), 0},
    {"micro_batch", CELL_COUNT, RUN(micro_sequences), 0},
    {"grad_accum", CELL_COUNT, RUN(micro_batches), 0},
    {"tp", CELL_COUNT, RUN(tp), 0},
    {"pp", CELL_COUNT, RUN(pp), 0},
    {"vpp", CELL_COUNT, RUN(vpp), 0},
    {"cp", CELL_COUNT, RUN(cp), 0},
    {"ep", CELL_COUNT, RUN(ep), 0},
    {"dp", CELL_COUNT, RUN(dp), 0},
    {"params_b", CELL_NUMBER, RUN(params), 1e9},
    {"step_time_s", CELL_NUMBER, RUN(step_time_ns), 1e9},
    {"tokens_per_s_per_gpu", CELL_NUMBER, RUN(tokens_per_gpu_per_s), 1},
    {"tok_s_gpu", CELL_NUMBER, RUN(tokens_per_gpu_per_s), 1},
    {"tflops_per_gpu", CELL_NUMBER, RUN(tflops_per_gpu), 1},
    {"mem_gb", CELL_NUMBER, RUN(memory_bytes), 0x1p30},          /* frameworks print GiB as GB */
    {"mem_reserved_gb", CELL_NUMBER, RUN(memory_bytes), 0x1p30}, /* the same */
};

double orr_published__number(const OrrCsv *csv, guint row, int column, double max, char **flaw) {
    const char *cell = column < 0 ? "" : orr_csv_cell(csv, row, column);
    if (!*cell)
        return 0;
    char *end;
    double number = g_ascii_strtod(cell, &end);
    bool is_plain = g_ascii_isdigit(*cell) || *cell == '.';
    if (is_plain && !*end && isfinite(number) && number >= 0 && number <= max)
        return number;
    if (!*flaw)
        *flaw = g_strdup_printf("column %s is no number", orr_csv_columns(csv)[column]);
    return 0;
}

static void read_cell(const OrrCsv *csv, guint row, const Column *c, int column,
                      OrrPublishedRun *run) {
    void *member = (char *)run + c->offset;
    if (c->kind == CELL_TEXT) {
        char **text = member;
        *text = g_strdup(column < 0 ? "" : orr_csv_cell(csv, row, column));
        return;
    }
    if (column < 0)
        return;
    double max = c->kind == CELL_COUNT ? UINT32_MAX : 1e18;
    double value = orr_published__number(csv, row, column, max, &run->flaw);
    if (c->kind == CELL_COUNT)
        *(uint32_t *)member = (uint32_t)value;
    else if (value > 0)
        *(double *)member = value * c->scale;
}

static OrrOutcome outcome_of(const char *text) {
    if (strcmp(text, "OOM") == 0)
        return ORR_OUTCOME_OUT_OF_MEMORY;
    return strcmp(text, "Success") == 0 ? ORR_OUTCOME_RAN : ORR_OUTCOME_NONE;
}

static void read_runs(const OrrCsv *csv, uint32_t file, OrrPublished *into) {
    int column[G_N_ELEMENTS(run_columns)];
    for (size_t c = 0; c < G_N_ELEMENTS(run_columns); c++)
        column[c] = orr_csv_column(csv, run_columns[c].name);
    int sp = orr_csv_column(csv, "sp"), outcome = orr_csv_column(csv, "outcome"),
        recommended = orr_csv_column(csv, "recommended");
    for (guint r = 0; r < orr_csv_n_rows(csv); r++) {
        OrrPublishedRun run = {.file = file, .line = orr_csv_line(csv, r), .sp = -1};
        for (size_t c = 0; c < G_N_ELEMENTS(run_columns); c++)
            read_cell(csv, r, &run_columns[c], column[c], &run);
        const char *cell = sp < 0 ? "" : orr_csv_cell(csv, r, sp);
        if (*cell)
            run.sp = strcmp(cell, "0") != 0;
        run.is_recommended = recommended < 0 || !strcmp(orr_csv_cell(csv, r, recommended), "yes");
        run.is_trial = outcome >= 0;
        if (run.is_trial) {
            run.outcome = outcome_of(orr_csv_cell(csv, r, outcome));
            if (run.outcome == ORR_OUTCOME_NONE && !run.flaw)
                run.flaw = g_strdup("failed for another reason than memory");
        }
        g_array_append_val(into->runs, run);
    }
}

static bool has_columns(const OrrCsv *csv, const char *first, ...) {
    va_list args;
    bool has_all = true;
    va_start(args, first);
    for (const char *name = first; name && has_all; name = va_arg(args, const char *))
        has_all = orr_csv_column(csv, name) >= 0;
    va_end(args);
    return has_all;
}

static void read_table(const OrrCsv *csv, uint32_t file, OrrPublished *into) {
    const char *name = into->files[file];
    bool is_run = has_columns(csv, "gpus", "layers", "hidden", "micro_batch", NULL) &&
                  (has_columns(csv, "outcome", NULL) || has_columns(csv, "step_time_s", NULL) ||
                   has_columns(csv, "tokens_per_s_per_gpu", NULL) ||
                   has_columns(csv, "tflops_per_gpu", NULL));
    if (is_run)
        read_runs(csv, file, into);
    else if (has_columns(csv, "collective", "size_bytes", "time_us", "gpus", NULL) ||
             has_columns(csv, "op", "gpus", "bytes", "time_us", NULL))
        orr_published__calls(csv, file, into);
    else if (has_columns(csv, "m", "n", "k", "time_us", NULL) ||
             has_columns(csv, "M", "N", "K", "tflops", NULL) ||
             has_columns(csv, "mask", "seq_len", "head_dim", "time_us", NULL))
        orr_published__kernels(csv, file, into);
    else
        g_ptr_array_add(into->others,
                        g_strdup_printf("%s: no table of runs, collectives or kernels", name));
}

static char **append(char **list, char *text) {
    guint n = g_strv_length(list);
    list = g_renew(char *, list, n + 2);
    list[n] = text;
    list[n + 1] = NULL;
    return list;
}

static bool read_file(const char *path, OrrPublished *into, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(path, MAX_BYTES, &length, error);
    if (!text)
        return false;
    g_autoptr(OrrCsv) csv = orr_csv_parse(path, text, length, ORR_CSV_PLAIN, error);
    if (!csv)
        return false;
    uint32_t file = g_strv_length(into->files);
    into->files = append(into->files, g_path_get_basename(path));
    into->hashes = append(into->hashes, orr_file_sha256(text, length));
    read_table(csv, file, into);
    return true;
}

static gint by_text(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool orr_workload_published(const char *path, OrrPublished *into, GError **error) {
    if (!g_file_test(path, G_FILE_TEST_IS_DIR))
        return read_file(path, into, error);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        if (g_str_has_suffix(name, ".csv") || g_str_has_suffix(name, ".csv.gz"))
            g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_ptr_array_sort(names, by_text);
    if (names->len == 0)
        return orr_fail_input(error, "%s: no tables (*.csv) in it", path);
    for (guint i = 0; i < names->len; i++)
        if (!read_file(names->pdata[i], into, error))
            return false;
    return true;
}

char *orr_workload_published_shipped(GError **error) {
    g_auto(GStrv) roots = orr_data_roots();
    for (guint i = 0; roots[i]; i++) {
        g_autofree char *path = g_build_filename(roots[i], "workloads", "published", NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            return g_steal_pointer(&path);
    }
    g_autofree char *places = g_strjoinv(", ", roots);
    orr_fail_input(error, "no tables of published runs below %s; set ORRERY_DATA to their folder",
                   places);
    return NULL;
}
