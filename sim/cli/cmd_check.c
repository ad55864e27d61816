/* orrery check: a measured log of collectives against what the machine should do. */
#include "sim/cli/commands.h"

#include "calibrate/nccl_tests.h"
#include "sim/base/units.h"
#include "sim/cluster/cluster.h"
#include "sim/collective/nccl_env.h"
#include "sim/collective/place.h"
#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "sim/judge/check.h"
#include "topologies/loader.h"

#include <stdio.h>

#define DEFAULT_TOLERANCE_FRAC 0.2 /* ours: twice what the model is off on sound machines */

static const OrrOption options[] = {
    ORR_OPTION_JSON,
    ORR_OPTION_CSV,
    ORR_OPTION_OUTPUT,
    {"tolerance", 0, "FRACTION", false, "how far the plateau may be off; default: 20 %"},
    {"nodes", 0, "N", false, "how many nodes took part, where the log does not say"},
    {"gpus", 0, "N", false, "how many GPUs took part, where the log does not say"},
    {"op", 0, "KIND", false, "the collective, where the log does not say"},
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

typedef struct {
    const OrrMeasuredTable *table;
    OrrCheck *check;
    uint32_t n_nodes;
} Answer;

/* As many GPUs of each node as took part, on the first nodes of a machine large enough. */
static OrrCluster *place_table(const OrrCli *cli, const OrrMeasuredTable *t, uint32_t *n_nodes,
                               OrrCommPlace *place, GError **error) {
    const char *ref = orr_cli_argument(cli, 0);
    g_autoptr(OrrCluster) whole = orr_topology_cluster(ref, NULL, error);
    if (!whole)
        return NULL;
    uint32_t node = orr_cluster_spec(whole)->node->gpus;
    int64_t asked = t->n_nodes ? t->n_nodes : (t->n_ranks + node - 1) / node;
    if (!orr_cli_int(cli, "nodes", 1, t->n_ranks, &asked, error))
        return NULL;
    *n_nodes = (uint32_t)asked;
    uint32_t per_node = (t->n_ranks + *n_nodes - 1) / *n_nodes;
    if (per_node > node || t->n_ranks % *n_nodes != 0 ||
        *n_nodes * node > orr_cluster_spec(whole)->n_gpus) {
        orr_fail_input(error,
                       "%s: %u GPUs on %u nodes do not fit %s, which has nodes of %u and %u GPUs; "
                       "--nodes or another cluster would do",
                       t->name, t->n_ranks, *n_nodes, ref, node, orr_cluster_spec(whole)->n_gpus);
        return NULL;
    }
    g_autofree uint32_t *gpus = g_new(uint32_t, t->n_ranks);
    for (uint32_t r = 0; r < t->n_ranks; r++)
        gpus[r] = r / per_node * node + r % per_node;
    orr_comm_place_from_cluster(whole, gpus, t->n_ranks, place);
    return g_steal_pointer(&whole);
}

static OrrCheck *check_table(const OrrCli *cli, Answer *a, double tolerance, GError **error) {
    OrrCommPlace place;
    OrrNcclForce force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};
    g_autoptr(OrrCluster) c = place_table(cli, a->table, &a->n_nodes, &place, error);
    if (!c)
        return NULL;
    return orr_judge_check(a->table, &place, &force,
                           orr_cluster_spec(c)->node->management_bytes_per_s, tolerance, error);
}

static const char *put_number(char buffer[32], const char *format, double value) {
    return g_ascii_formatd(buffer, 32, format, value);
}

static void write_text(const Answer *a, OrrOut *out) {
    const OrrCheck *c = a->check;
    char x[32], y[32], z[32], u[32], v[32];
    orr_out_printf(out, "# %s: %s over %u GPUs on %u nodes\n", a->table->name,
                   orr_collective_name(a->table->kind), a->table->n_ranks, a->n_nodes);
    orr_out_printf(out, "#%12s %12s %12s %9s %9s %6s  %s\n", "size", "expected", "measured",
                   "expected", "measured", "ratio", "expected to run");
    orr_out_printf(out, "#%12s %12s %12s %9s %9s %6s\n", "(B)", "(us)", "(us)", "(GB/s)", "(GB/s)",
                   "");
    for (uint32_t i = 0; i < c->n_rows; i++) {
        const OrrCheckRow *r = &c->rows[i];
        orr_out_printf(out, "%13" G_GINT64_FORMAT " %12s %12s %9s %9s %6s  %s %s\n", r->bytes,
                       put_number(x, "%.2f", r->expected_ns * 1e-3),
                       put_number(y, "%.2f", r->measured_ns * 1e-3),
                       put_number(z, "%.2f", r->expected_busbw_bytes_per_s * 1e-9),
                       put_number(u, "%.2f", r->measured_busbw_bytes_per_s * 1e-9),
                       put_number(v, "%.2f", r->ratio), orr_algo_name(r->algo),
                       orr_proto_name(r->proto));
    }
    orr_out_printf(out, "Plateau: %s of the expected bus bandwidth, %s\n",
                   put_number(x, "%.2f", c->plateau_ratio),
                   c->is_within ? "within the tolerance" : "out of tolerance");
    if (c->is_faster_than_wire)
        orr_out_printf(out,
                       "Faster than a ring could be (%s GB/s): legal where the reduction is "
                       "hierarchical, a tree or in the switch\n",
                       put_number(x, "%.1f", c->wire_bytes_per_s * 1e-9));
    for (uint32_t i = 0; i < c->n_causes; i++)
        orr_out_printf(out, "%s: %s; %s\n", i == 0 ? "Likely cause" : "Or", c->causes[i].words,
                       c->causes[i].evidence);
    if (!c->is_within && c->n_causes == 0)
        orr_out_puts(out, c->plateau_ratio < 1
                              ? "No single fault that is known explains it\n"
                              : "Faster than expected: is the cluster the right one?\n");
}

static void write_json(const Answer *answers, guint n, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    orr_json_put_string(&w, "schema", "orrery.check/1");
    orr_json_begin_array(&w, "tables");
    for (guint t = 0; t < n; t++) {
        const OrrCheck *c = answers[t].check;
        orr_json_begin_object(&w, NULL);
        orr_json_put_string(&w, "name", answers[t].table->name);
        orr_json_put_string(&w, "collective", orr_collective_name(answers[t].table->kind));
        orr_json_put_int(&w, "n_ranks", answers[t].table->n_ranks);
        orr_json_put_int(&w, "n_nodes", answers[t].n_nodes);
        orr_json_put_double(&w, "plateau_ratio", c->plateau_ratio);
        orr_json_put_bool(&w, "is_within", c->is_within);
        orr_json_put_bool(&w, "is_faster_than_wire", c->is_faster_than_wire);
        orr_json_begin_array(&w, "causes");
        for (uint32_t i = 0; i < c->n_causes; i++) {
            orr_json_begin_object(&w, NULL);
            orr_json_put_string(&w, "code", c->causes[i].code);
            orr_json_put_string(&w, "words", c->causes[i].words);
            orr_json_put_string(&w, "evidence", c->causes[i].evidence);
            orr_json_put_double(&w, "error_frac", c->causes[i].error_frac);
            orr_json_end_object(&w);
        }
        orr_json_end_array(&w);
        orr_json_begin_array(&w, "rows");
        for (uint32_t i = 0; i < c->n_rows; i++) {
            const OrrCheckRow *r = &c->rows[i];
            orr_json_begin_object_inline(&w, NULL);
            orr_json_put_int(&w, "size_bytes", r->bytes);
            orr_json_put_double(&w, "expected_ns", r->expected_ns);
            orr_json_put_double(&w, "measured_ns", r->measured_ns);
            orr_json_put_double(&w, "expected_busbw_bytes_per_s", r->expected_busbw_bytes_per_s);
            orr_json_put_double(&w, "measured_busbw_bytes_per_s", r->measured_busbw_bytes_per_s);
            orr_json_put_double(&w, "ratio", r->ratio);
            orr_json_end_object(&w);
        }
        orr_json_end_array(&w);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

static void write_csv(const Answer *answers, guint n, OrrOut *out) {
    static const char *const header[] = {"schema",     "collective",  "n_ranks",     "n_nodes",
                                         "size_bytes", "expected_ns", "measured_ns", "ratio",
                                         "algorithm",  "protocol",    NULL};
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    for (guint t = 0; t < n; t++)
        for (uint32_t i = 0; i < answers[t].check->n_rows; i++) {
            const OrrCheckRow *r = &answers[t].check->rows[i];
            orr_csv_put(&w, "orrery.check/1");
            orr_csv_put(&w, orr_collective_name(answers[t].table->kind));
            orr_csv_put_int(&w, answers[t].table->n_ranks);
            orr_csv_put_int(&w, answers[t].n_nodes);
            orr_csv_put_int(&w, r->bytes);
            orr_csv_put_double(&w, r->expected_ns);
            orr_csv_put_double(&w, r->measured_ns);
            orr_csv_put_double(&w, r->ratio);
            orr_csv_put(&w, orr_algo_name(r->algo));
            orr_csv_put(&w, orr_proto_name(r->proto));
            orr_csv_end_row(&w);
        }
}

static bool write_answers(const OrrCli *cli, const Answer *answers, guint n, GError **error) {
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        write_json(answers, n, out);
    else if (orr_cli_has(cli, "csv"))
        write_csv(answers, n, out);
    else
        for (guint t = 0; t < n; t++)
            write_text(&answers[t], out);
    return orr_out_commit(out, error);
}

static bool read_tolerance(const OrrCli *cli, double *tolerance, GError **error) {
    const char *text = orr_cli_value(cli, "tolerance");
    *tolerance = DEFAULT_TOLERANCE_FRAC;
    if (!text)
        return true;
    g_autoptr(GError) flaw = NULL;
    if (!orr_units_parse(text, ORR_DIM_FRACTION, tolerance, &flaw))
        return orr_fail_usage(error, "orrery check: --tolerance %s: %s", text, flaw->message);
    if (!(*tolerance > 0 && *tolerance < 1))
        return orr_fail_usage(error, "orrery check: --tolerance %s: 0 to 100 %% would do", text);
    return true;
}

static bool run_check(OrrCli *cli, GError **error) {
    double tolerance;
    int64_t n_ranks = 0, n_nodes = 0;
    if (!read_tolerance(cli, &tolerance, error) ||
        !orr_cli_int(cli, "gpus", 1, 1 << 24, &n_ranks, error) ||
        !orr_cli_int(cli, "nodes", 1, 1 << 24, &n_nodes, error))
        return false;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = orr_cli_argument(cli, 1),
                        .op = orr_cli_value(cli, "op"),
                        .n_ranks = (guint)n_ranks,
                        .n_nodes = (guint)n_nodes,
                        .notes = notes};
    g_autoptr(OrrMeasuredTables) tables = orr_nccl_tests_read(&import, error);
    fputs(notes->str, stderr);
    if (!tables)
        return false;
    g_autofree Answer *answers = g_new0(Answer, tables->n_tables + 1);
    bool is_fine = true, is_within = true;
    for (uint32_t t = 0; t < tables->n_tables && is_fine; t++) {
        answers[t].table = tables->tables[t];
        answers[t].check = check_table(cli, &answers[t], tolerance, error);
        is_fine = answers[t].check != NULL;
        is_within = is_within && is_fine && answers[t].check->is_within;
    }
    is_fine = is_fine && write_answers(cli, answers, tables->n_tables, error);
    for (uint32_t t = 0; t < tables->n_tables; t++)
        orr_check_free(answers[t].check);
    if (is_fine && !is_within) {
        g_set_error_literal(error, ORR_ERROR, ORR_ERROR_NO,
                            "the answer is no: measured bandwidth is out of tolerance");
        return false;
    }
    return is_fine;
}

const OrrCommand orr_cmd_check = {
    .name = "check",
    .summary = "hold a log of collectives against what the machine should do",
    .synopsis = "CLUSTER LOG",
    .description =
        "CLUSTER is a name (orrery list clusters), the path of a cluster file, or a one-line "
        "shape; "
        "LOG the output of nccl-tests, rccl-tests or PyTorch's all_reduce_bench. Prints expected "
        "and measured time and bandwidth by size, their ratio at the plateau and, where it is out "
        "of tolerance, the faults that would explain it, with the evidence. Exit status 1: out of "
        "tolerance.\n\n"
        "  orrery check h100-ib all_reduce.log\n"
        "  orrery check \"fat_tree:48 node:8 gpu:a100 nic:100G net:roce\" all_reduce.log --nodes 6",
    .min_arguments = 2,
    .max_arguments = 2,
    .options = options,
    .run = run_check,
};
