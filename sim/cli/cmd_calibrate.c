/* orrery calibrate: measured tables to a calibration. */
#include "sim/cli/commands.h"

#include "calibrate/nccl_tests.h"
#include "sim/base/words.h"
#include "sim/cluster/cluster.h"
#include "sim/collective/place.h"
#include "sim/judge/fit.h"
#include "topologies/loader.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"fit", NULL};

static const OrrOption options[] = {
    {"cluster", 'c', "CLUSTER", false, "the machine that was measured; required"},
    {"nodes", 0, "N", false, "how many nodes took part, where the logs do not say"},
    {"op", 0, "KIND", false, "the collective, where the logs do not say"},
    ORR_OPTION_OUTPUT,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

typedef struct {
    GPtrArray *files; /* OrrMeasuredTables */
    GArray *tables;   /* OrrFitTable, borrowing from them */
} Measured;

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

static bool read_logs(const OrrCli *cli, const OrrCluster *c, Measured *m, GError **error) {
    const char *path;
    for (guint i = 1; (path = orr_cli_argument(cli, i)); i++) {
        g_autoptr(GString) notes = g_string_new(NULL);
        OrrImport import = {.path = path, .op = orr_cli_value(cli, "op"), .notes = notes};
        OrrMeasuredTables *tables = orr_nccl_tests_read(&import, error);
        fputs(notes->str, stderr);
        if (!tables)
            return false;
        g_ptr_array_add(m->files, tables);
        for (uint32_t t = 0; t < tables->n_tables; t++) {
            OrrFitTable fit = {.table = tables->tables[t],
                               .force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS}};
            if (!place_table(cli, c, fit.table, &fit.place, error))
                return false;
            g_array_append_val(m->tables, fit);
        }
    }
    return true;
}

static void put_number(OrrOut *out, const char *format, double value) {
    char text[32];
    orr_out_puts(out, g_ascii_formatd(text, sizeof text, format, value));
}

static void write_fit(const OrrCli *cli, const OrrFit *fit, OrrOut *out) {
    orr_out_puts(out,
                 "[calibration]\nsummary = constants of collectives, fitted to measured tables\n"
                 "source = orrery calibrate fit on");
    for (guint i = 1; orr_cli_argument(cli, i); i++) {
        g_autofree char *name = g_path_get_basename(orr_cli_argument(cli, i));
        orr_out_printf(out, " %s", name);
    }
    orr_out_printf(out, ", cluster %s\n# %u rows used, %u refused; mean error ",
                   orr_cli_value(cli, "cluster"), fit->n_rows, fit->n_refused);
    put_number(out, "%.1f", 100 * fit->before_frac);
    orr_out_puts(out, " % with the shipped constants, ");
    put_number(out, "%.1f", 100 * fit->after_frac);
    orr_out_puts(out, " % with these.\n[collectives]\n");
    for (uint32_t i = 0; i < fit->n_parameters; i++) {
        const OrrFitParameter *p = &fit->parameters[i];
        bool is_share = g_str_has_suffix(p->name, "eff_frac");
        orr_out_printf(out, "%s = ", p->name);
        put_number(out, is_share ? "%.4f" : "%.1f", p->after);
        orr_out_puts(out, is_share ? "  # shipped: " : " ns  # shipped: ");
        put_number(out, is_share ? "%.4f" : "%.1f", p->before);
        orr_out_puts(out, "\n");
    }
}

static bool fit_and_write(const OrrCli *cli, const Measured *m, GError **error) {
    g_autoptr(OrrFit) fit =
        orr_judge_fit((const OrrFitTable *)(void *)m->tables->data, m->tables->len, error);
    if (!fit)
        return false;
    for (guint i = 0; i < fit->notes->len; i++)
        fprintf(stderr, "%s\n", (const char *)fit->notes->pdata[i]);
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    write_fit(cli, fit, out);
    return orr_out_commit(out, error);
}

static void free_tables(void *tables) {
    orr_measured_tables_free(tables);
}

static bool run_calibrate(OrrCli *cli, GError **error) {
    const char *kind = orr_cli_argument(cli, 0), *ref = orr_cli_value(cli, "cluster");
    if (strcmp(kind, "fit") != 0) {
        g_autofree char *hint = orr_words_hint(kind, kinds);
        return orr_fail_usage(error, "orrery calibrate: unknown kind '%s'; %s", kind, hint);
    }
    if (!ref)
        return orr_fail_usage(error, "orrery calibrate fit: --cluster is missing; orrery list "
                                     "clusters names them");
    g_autoptr(OrrCluster) c = orr_topology_cluster(ref, NULL, error);
    if (!c)
        return false;
    Measured m = {g_ptr_array_new_with_free_func(free_tables),
                  g_array_new(FALSE, FALSE, sizeof(OrrFitTable))};
    bool is_fine = read_logs(cli, c, &m, error) && fit_and_write(cli, &m, error);
    g_array_unref(m.tables);
    g_ptr_array_unref(m.files);
    return is_fine;
}

const OrrCommand orr_cmd_calibrate = {
    .name = "calibrate",
    .summary = "fit the constants of collectives to measured logs",
    .synopsis = "fit LOG...",
    .description =
        "LOG is output of nccl-tests or rccl-tests of the cluster that --cluster names. Launch, "
        "hop "
        "and share of the link of each algorithm that the logs show are fitted, and those of the "
        "network; what they do not tell keeps its shipped value. Rows that are faster than the "
        "link "
        "are refused. The result is a file for --calibration.\n\n"
        "  orrery calibrate fit all_reduce.log all_gather.log --cluster h100-ib -o mine.ini\n"
        "  orrery step my-job.ini --calibration ./mine.ini",
    .kinds = kinds,
    .min_arguments = 2,
    .max_arguments = 256,
    .options = options,
    .run = run_calibrate,
};
