/* orrery calibrate: records and logs of a machine to a calibration. */
#include "sim/cli/commands.h"

#include "calibrate/nccl_tests.h"
#include "sim/base/units.h"
#include "sim/base/words.h"
#include "sim/cli/calibrate_parts.h"
#include "sim/collective/place.h"
#include "sim/io/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOG_LIMIT_BYTES ((gsize)256 << 20) /* ours: as the reader of logs has it */

static const char *const kinds[] = {"fit", NULL};

static const OrrOption options[] = {
    {"cluster", 'c', "CLUSTER", false, "the machine that was measured; required for logs"},
    {"gpu", 0, "NAME|FILE", false, "records: the GPU; default: by its name, or as they tell it"},
    {"nodes", 0, "N", false, "logs: how many nodes took part, where they do not say"},
    {"op", 0, "KIND", false, "logs: the collective, where they do not say"},
    {"sizes", 0, "LOW..HIGH", false, "collectives: fit these sizes, tell the error on the others"},
    {"files", 0, "DIR", false, "write gpu.ini, node.ini and cluster.ini of the machine too"},
    {"plot", 0, "DIR", false, "draw measured against fitted"},
    ORR_OPTION_OUTPUT,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

static bool place_table(const OrrCli *cli, const OrrCluster *c, const OrrMeasuredTable *t,
                        OrrCommPlace *place, GError **error) {
    uint32_t node = orr_cluster_spec(c)->node->gpus;
    int64_t n_nodes = t->n_nodes ? t->n_nodes : (t->n_ranks + node - 1) / node;
    if (!orr_cli_int(cli, "nodes", 1, MAX(t->n_ranks, 1), &n_nodes, error))
        return false;
    if (t->n_ranks < 2 || t->n_ranks % n_nodes != 0 || t->n_ranks / n_nodes > node ||
        n_nodes * node > orr_cluster_spec(c)->n_gpus)
        return orr_fail_input(error,
                              "%s: %u GPUs on %" G_GINT64_FORMAT " nodes do not fit the "
                              "cluster; --nodes or another cluster would do",
                              t->name, t->n_ranks, n_nodes);
    uint32_t per_node = t->n_ranks / (uint32_t)n_nodes;
    g_autofree uint32_t *gpus = g_new(uint32_t, t->n_ranks);
    for (uint32_t r = 0; r < t->n_ranks; r++)
        gpus[r] = r / per_node * node + r % per_node;
    orr_comm_place_from_cluster(c, gpus, t->n_ranks, place);
    return true;
}

static bool read_log(const OrrCli *cli, OrrCalibrateFit *f, const char *path, GError **error) {
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = path, .op = orr_cli_value(cli, "op"), .notes = notes};
    OrrMeasuredTables *tables = orr_nccl_tests_read(&import, error);
    fputs(notes->str, stderr);
    if (!tables)
        return false;
    g_ptr_array_add(f->logs, tables);
    for (uint32_t t = 0; t < tables->n_tables; t++) {
        OrrFitTable fit = {.table = tables->tables[t],
                           .force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS}};
        if (!place_table(cli, f->cluster, fit.table, &fit.place, error))
            return false;
        g_array_append_val(f->tables, fit);
    }
    return true;
}

static void tell(const GPtrArray *notes) {
    for (guint i = 0; i < notes->len; i++)
        fprintf(stderr, "%s\n", (const char *)notes->pdata[i]);
}

static bool is_readable(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(path, LOG_LIMIT_BYTES, &length, error);
    return text != NULL;
}

/* Files of records first: they tell what the machine is that the logs are of. */
static bool read_records(const OrrCli *cli, OrrCalibrateFit *f, GError **error) {
    const char *path;
    for (guint i = 1; (path = orr_cli_argument(cli, i)); i++) {
        if (!orr_record_rows_is(path)) {
            if (!orr_cli_value(cli, "cluster") && !is_readable(path, error))
                return false;
            continue;
        }
        if (!f->records)
            f->records = orr_record_rows_new();
        if (!orr_record_rows_add(f->records, path, error))
            return false;
    }
    if (!f->records)
        return true;
    if (!orr_cli_fit_gpu(cli, f, error))
        return false;
    orr_record_rows_judge(f->records, f->gpu);
    tell(f->records->notes);
    if (f->records->rows->len == 0)
        return orr_fail_input(error, "no row of the records that a fit could use");
    const char *output = orr_cli_value(cli, "output");
    g_autofree char *base = g_path_get_basename(output ? output : "calibration");
    char *suffix = g_strrstr(base, ".ini");
    if (suffix)
        *suffix = '\0';
    f->kernels = orr_fit_records(f->records, f->gpu, base);
    tell(f->kernels->notes);
    f->shipped_frac = orr_cli_fit_shipped(f, error);
    return f->shipped_frac != NULL;
}

static bool has_collectives(const OrrRecordRows *records) {
    for (guint i = 0; i < records->rows->len; i++)
        if (g_array_index(records->rows, OrrRecordRow, i).c.kind == ORR_CASE_COLLECTIVE)
            return true;
    return false;
}

static bool read_sizes(const OrrCli *cli, OrrFitSizes *sizes, GError **error) {
    const char *text = orr_cli_value(cli, "sizes");
    double low = 0, high = 0;
    if (!text)
        return true;
    g_auto(GStrv) ends = g_strsplit(text, "..", 2);
    if (!ends[0] || !ends[1] || !orr_units_parse(ends[0], ORR_DIM_BYTES, &low, NULL) ||
        !orr_units_parse(ends[1], ORR_DIM_BYTES, &high, NULL) || low > high || high > 0x1p50)
        return orr_fail_usage(error, "--sizes %s: LOW..HIGH such as 1MiB..1GiB would do", text);
    *sizes = (OrrFitSizes){(int64_t)low, (int64_t)high};
    return true;
}

static bool fit_collectives(const OrrCli *cli, OrrCalibrateFit *f, GError **error) {
    OrrFitSizes sizes = {0, 0};
    const char *path;
    if (!read_sizes(cli, &sizes, error))
        return false;
    if (f->records && has_collectives(f->records))
        orr_cli_fit_tables(f);
    for (guint i = 1; (path = orr_cli_argument(cli, i)); i++)
        if (!orr_record_rows_is(path) && !read_log(cli, f, path, error))
            return false;
    if (f->tables->len == 0)
        return true;
    f->collectives =
        orr_judge_fit((const OrrFitTable *)(void *)f->tables->data, f->tables->len, &sizes, error);
    if (f->collectives)
        tell(f->collectives->notes);
    return f->collectives != NULL;
}

static void say_percent(double frac) {
    char text[32];
    fputs(g_ascii_formatd(text, sizeof text, "%.1f", 100 * frac), stderr);
}

static void summarise(const OrrCalibrateFit *f) {
    for (guint i = 0; f->kernels && i < f->kernels->residuals->len; i++) {
        const OrrFitResidual *r = &g_array_index(f->kernels->residuals, OrrFitResidual, i);
        fprintf(stderr, "%-28s %5u rows, median error ", r->series, r->n);
        say_percent(r->median_frac);
        fputs(" %, 90th percentile ", stderr);
        say_percent(r->p90_frac);
        fputs(" %", stderr);
        if (isfinite(f->shipped_frac[i])) {
            fputs(", the shipped model's median ", stderr);
            say_percent(f->shipped_frac[i]);
            fputs(" %", stderr);
        }
        fputs("\n", stderr);
    }
    const OrrFit *c = f->collectives;
    if (!c)
        return;
    fprintf(stderr, "%-28s %5u rows, mean error ", "collectives", c->n_rows);
    say_percent(c->after_frac);
    fputs(" %, with the shipped constants ", stderr);
    say_percent(c->before_frac);
    fputs(" %\n", stderr);
    if (!c->n_held)
        return;
    fprintf(stderr, "%-28s %5u rows, mean error ", "collectives, held out", c->n_held);
    say_percent(c->held_after_frac);
    fputs(" %, with the shipped constants ", stderr);
    say_percent(c->held_before_frac);
    fputs(" %\n", stderr);
}

static bool write_all(const OrrCli *cli, const OrrCalibrateFit *f, GError **error) {
    const char *folder = orr_cli_value(cli, "files"), *plot = orr_cli_value(cli, "plot");
    g_autoptr(OrrFolder) files = folder ? orr_folder_make(folder, error) : NULL;
    g_autoptr(OrrFolder) pictures =
        plot && (files || !folder) ? orr_folder_make(plot, error) : NULL;
    if ((folder && !files) || (plot && !pictures))
        return false;
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    orr_cli_fit_write(cli, f, out);
    if ((folder && !orr_cli_fit_skeletons(f, folder, orr_cli_value(cli, "output"), error)) ||
        (plot && !orr_cli_fit_plot(f, plot, error)) || !orr_out_commit(out, error))
        return false;
    summarise(f);
    return true;
}

static void free_tables(void *tables) {
    orr_measured_tables_free(tables);
}

static void clear(OrrCalibrateFit *f) {
    orr_fit_free(f->collectives);
    g_array_unref(f->tables);
    g_ptr_array_unref(f->logs);
    orr_record_fit_free(f->kernels);
    g_free(f->shipped_frac);
    orr_record_rows_free(f->records);
    if (f->owns_gpu)
        orr_gpu_free(f->gpu);
    orr_cluster_free(f->cluster);
    g_free(f->cluster_name);
}

static bool run_calibrate(OrrCli *cli, GError **error) {
    const char *kind = orr_cli_argument(cli, 0);
    if (strcmp(kind, "fit") != 0) {
        g_autofree char *hint = orr_words_hint(kind, kinds);
        return orr_fail_usage(error, "orrery calibrate: unknown kind '%s'; %s", kind, hint);
    }
    OrrCalibrateFit f = {.logs = g_ptr_array_new_with_free_func(free_tables),
                         .tables = g_array_new(FALSE, FALSE, sizeof(OrrFitTable))};
    bool is_fine = read_records(cli, &f, error) && orr_cli_fit_cluster(cli, &f, error) &&
                   fit_collectives(cli, &f, error) && write_all(cli, &f, error);
    clear(&f);
    return is_fine;
}

const OrrCommand orr_cmd_calibrate = {
    .name = "calibrate",
    .summary = "fit a machine's kernels, copies, launches and collectives to its measurements",
    .synopsis = "fit FILE...",
    .description =
        "FILE is a CSV of orrery-calibrate, or output of nccl-tests or rccl-tests of the cluster "
        "that --cluster names; several of one machine may be given. Records give the surfaces of "
        "products and attention, the rates of memory-bound kernels, copies, launches and what "
        "overlap costs; records and logs the constants of collectives: launch, hop and share of "
        "the link of each algorithm that they show, and those of the network. What they do not "
        "tell keeps its shipped value. Rows that cannot be (faster than the peak or the link) "
        "are not used, and told with file and line. The result is a file for --calibration, with "
        "its residuals and where it was measured.\n\n"
        "  orrery-calibrate --quick -o node.csv\n"
        "  orrery calibrate fit node.csv -o mine/mine.ini --files mine --plot pictures\n"
        "  orrery calibrate fit all_reduce.log all_gather.log --cluster h100-ib -o mine.ini\n"
        "  orrery calibrate fit all_reduce.log -c h100-ib --sizes 1MiB..256MiB\n"
        "  orrery step my-job.ini --calibration ./mine.ini",
    .kinds = kinds,
    .min_arguments = 2,
    .max_arguments = 256,
    .options = options,
    .run = run_calibrate,
};
