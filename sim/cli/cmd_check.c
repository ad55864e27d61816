/* orrery check: a measured log of collectives against what the machine should do. */
#include "sim/cli/commands.h"

#include "calibrate/nccl_tests.h"
#include "sim/base/units.h"
#include "sim/cluster/cluster.h"
#include "sim/collective/nccl_env.h"
#include "sim/collective/place.h"
#include "sim/cli/listing.h"
#include "sim/io/csv.h"
#include "sim/io/file.h"
#include "sim/io/json_write.h"
#include "sim/judge/check.h"
#include "topologies/loader.h"

#include <math.h>
#include <stdio.h>

#define MAX_LOG_BYTES (256u << 20) /* as the reader of the tables has it */
#define DEFAULT_TOLERANCE_FRAC 0.2 /* ours: twice what the model is off on sound machines */

static const OrrOption options[] = {
    ORR_OPTION_JSON,
    ORR_OPTION_CSV,
    ORR_OPTION_OUTPUT,
    {"tolerance", 0, "FRACTION", false, "how far the plateau may be off; default: 20 %"},
    {"nodes", 0, "N", false, "how many nodes took part, where the log does not say"},
    {"gpus", 0, "N", false, "how many GPUs took part, where the log does not say"},
    {"gpu", 0, "NAME", false, "of a listing that does not name its GPUs (orrery list gpus)"},
    {"nic", 0, "RATE", false, "of a listing that does not say it, such as 400G"},
    {"op", 0, "KIND", false, "the collective, where the log does not say"},
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

typedef struct {
    OrrMeasuredTables *tables;
    char *text; /* of the log, and the settings that it tells */
} Log;

typedef struct {
    OrrCheckCase what;
    OrrCheck *check;
    uint32_t n_nodes, node_nics; /* node_nics: of one node of the machine */
} Answer;

typedef struct {
    Log *logs;
    guint n_logs;
    Answer *answers;
    uint32_t n;
    OrrCheckCauses all; /* of all tables together, if there are several and one is out */
} Answers;

static OrrCluster *load_cluster(const OrrCli *cli, const OrrMeasuredTable *t, int64_t n_nodes,
                                GError **error) {
    const char *ref = orr_cli_argument(cli, 0);
    if (!orr_cli_is_listing(ref))
        return orr_topology_cluster(ref, NULL, error);
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = ref,
                        .gpu = orr_cli_value(cli, "gpu"),
                        .nic = orr_cli_value(cli, "nic"),
                        .n_nodes = (guint)n_nodes,
                        .notes = notes};
    OrrCluster *cluster = orr_cli_listing_cluster(&import, t->n_ranks, error);
    fputs(notes->str, stderr);
    return cluster;
}

/* As many GPUs of each node as took part, on the first nodes of a machine large enough. */
static OrrCluster *place_table(const OrrCli *cli, const OrrMeasuredTable *t, uint32_t *n_nodes,
                               OrrCommPlace *place, GError **error) {
    const char *ref = orr_cli_argument(cli, 0);
    int64_t told = t->n_nodes;
    if (!orr_cli_int(cli, "nodes", 1, t->n_ranks, &told, error))
        return NULL;
    g_autoptr(OrrCluster) whole = load_cluster(cli, t, told, error);
    if (!whole)
        return NULL;
    uint32_t node = orr_cluster_spec(whole)->node->gpus;
    *n_nodes = (uint32_t)(told ? told : (t->n_ranks + node - 1) / node);
    uint32_t per_node = (t->n_ranks + *n_nodes - 1) / *n_nodes;
    if (per_node > node || t->n_ranks % *n_nodes != 0 ||
        (*n_nodes - 1) * node + per_node > orr_cluster_spec(whole)->n_gpus) {
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

static bool check_table(const OrrCli *cli, Answer *a, double tolerance, GError **error) {
    a->what.force = (OrrNcclForce){.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};
    g_autoptr(OrrCluster) c = place_table(cli, a->what.table, &a->n_nodes, &a->what.place, error);
    if (!c)
        return false;
    a->node_nics = orr_cluster_spec(c)->node->nics;
    a->what.management_bytes_per_s = orr_cluster_spec(c)->node->management_bytes_per_s;
    a->check = orr_judge_check(&a->what, tolerance, error);
    return a->check != NULL;
}

static const char *put_number(char buffer[32], const char *format, double value) {
    return g_ascii_formatd(buffer, 32, format, value);
}

static void write_causes(const OrrCheckCauses *causes, OrrOut *out) {
    char x[32];
    for (uint32_t i = 0; i < causes->n_causes; i++) {
        const OrrCheckCause *cause = &causes->causes[i];
        orr_out_printf(out, "%s (%s %%): %s.\n    Evidence: %s.\n    Look at: %s.\n",
                       i == 0 ? "Likely cause" : "Or",
                       put_number(x, "%.0f", 100 * cause->likelihood_frac), cause->words,
                       cause->evidence, cause->advice);
    }
}

static void write_verdict(const OrrCheck *c, OrrOut *out) {
    char x[32];
    orr_out_printf(out, "Plateau: %s of the expected bus bandwidth, %s\n",
                   put_number(x, "%.2f", c->plateau_ratio),
                   c->is_within ? "within the tolerance" : "out of tolerance");
    if (!c->is_plateau)
        orr_out_puts(out, "The bandwidth still rises at the largest size, which is judged alone: "
                          "larger messages would tell more\n");
    if (isfinite(c->middle_ratio))
        orr_out_printf(out, "Between 64 KiB and the plateau: %s of it\n",
                       put_number(x, "%.2f", c->middle_ratio));
    if (c->is_faster_than_wire)
        orr_out_printf(out,
                       "Faster than a ring could be (%s GB/s): legal where the reduction is "
                       "hierarchical, a tree or in the switch\n",
                       put_number(x, "%.1f", c->wire_bytes_per_s * 1e-9));
    write_causes(&c->found, out);
    if (!c->is_within && c->found.n_causes == 0)
        orr_out_puts(out, c->plateau_ratio < 1
                              ? "No fault that is known, and no pair of them, explains it\n"
                              : "Faster than expected: is the cluster the right one?\n");
}

static void write_group(const Answer *a, OrrOut *out) {
    const OrrCommPlace *p = &a->what.place;
    double nodes = fmax(1, (double)p->n_nodes / p->n_domains);
    double nics = p->nics_per_domain / nodes;
    char x[32];
    orr_out_printf(out, "# %s: %s over %u GPUs, a group on %u node%s, %s\n", a->what.table->name,
                   orr_collective_name(a->what.table->kind), p->n_ranks, a->n_nodes,
                   a->n_nodes == 1 ? "" : "s",
                   p->n_domains > 1 ? "which leaves the node"
                   : a->n_nodes > 1 ? "all in one NVLink domain"
                                    : "which no traffic leaves");
    if (p->n_domains > 1 && nics < a->node_nics)
        orr_out_printf(out,
                       "# It reaches %s of the %u NICs of a node: a GPU uses those on its own "
                       "PCIe switch\n",
                       put_number(x, "%.0f", nics), a->node_nics);
}

static void write_text(const Answer *a, OrrOut *out) {
    const OrrCheck *c = a->check;
    char x[32], y[32], z[32], u[32], v[32];
    write_group(a, out);
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
    write_verdict(c, out);
}

static void put_causes(OrrJsonWriter *w, const OrrCheckCauses *causes) {
    orr_json_begin_array(w, "causes");
    for (uint32_t i = 0; i < causes->n_causes; i++) {
        const OrrCheckCause *c = &causes->causes[i];
        orr_json_begin_object(w, NULL);
        orr_json_put_string(w, "code", c->code);
        orr_json_put_string(w, "words", c->words);
        orr_json_put_string(w, "evidence", c->evidence);
        orr_json_put_string(w, "advice", c->advice);
        orr_json_put_double(w, "error_frac", c->error_frac);
        orr_json_put_double(w, "likelihood_frac", c->likelihood_frac);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_rows(OrrJsonWriter *w, const OrrCheck *c) {
    orr_json_begin_array(w, "rows");
    for (uint32_t i = 0; i < c->n_rows; i++) {
        const OrrCheckRow *r = &c->rows[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_int(w, "size_bytes", r->bytes);
        orr_json_put_double(w, "expected_ns", r->expected_ns);
        orr_json_put_double(w, "measured_ns", r->measured_ns);
        orr_json_put_double(w, "expected_busbw_bytes_per_s", r->expected_busbw_bytes_per_s);
        orr_json_put_double(w, "measured_busbw_bytes_per_s", r->measured_busbw_bytes_per_s);
        orr_json_put_double(w, "ratio", r->ratio);
        orr_json_put_string(w, "algorithm", orr_algo_name(r->algo));
        orr_json_put_string(w, "protocol", orr_proto_name(r->proto));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_table(OrrJsonWriter *w, const Answer *a) {
    const OrrCheck *c = a->check;
    orr_json_begin_object(w, NULL);
    orr_json_put_string(w, "name", a->what.table->name);
    orr_json_put_string(w, "collective", orr_collective_name(a->what.table->kind));
    orr_json_put_int(w, "n_ranks", a->what.table->n_ranks);
    orr_json_put_int(w, "n_nodes", a->n_nodes);
    orr_json_put_bool(w, "leaves_node", a->what.place.n_domains > 1);
    orr_json_put_double(w, "plateau_ratio", c->plateau_ratio);
    orr_json_put_bool(w, "is_plateau", c->is_plateau);
    if (isfinite(c->middle_ratio))
        orr_json_put_double(w, "middle_ratio", c->middle_ratio);
    orr_json_put_bool(w, "is_within", c->is_within);
    orr_json_put_bool(w, "is_faster_than_wire", c->is_faster_than_wire);
    put_causes(w, &c->found);
    put_rows(w, c);
    orr_json_end_object(w);
}

static void write_json(const OrrCli *cli, const Answers *all, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_cli_json_begin(&w, "orrery.check/1");
    orr_json_put_string(&w, "cluster", orr_cli_argument(cli, 0));
    orr_json_begin_array(&w, "tables");
    for (uint32_t t = 0; t < all->n; t++)
        put_table(&w, &all->answers[t]);
    orr_json_end_array(&w);
    put_causes(&w, &all->all);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

static void write_csv(const Answers *all, OrrOut *out) {
    static const char *const header[] = {"schema",     "collective",  "n_ranks",     "n_nodes",
                                         "size_bytes", "expected_ns", "measured_ns", "ratio",
                                         "algorithm",  "protocol",    NULL};
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    for (uint32_t t = 0; t < all->n; t++)
        for (uint32_t i = 0; i < all->answers[t].check->n_rows; i++) {
            const Answer *a = &all->answers[t];
            const OrrCheckRow *r = &a->check->rows[i];
            orr_csv_put(&w, "orrery.check/1");
            orr_csv_put(&w, orr_collective_name(a->what.table->kind));
            orr_csv_put_int(&w, a->what.table->n_ranks);
            orr_csv_put_int(&w, a->n_nodes);
            orr_csv_put_int(&w, r->bytes);
            orr_csv_put_double(&w, r->expected_ns);
            orr_csv_put_double(&w, r->measured_ns);
            orr_csv_put_double(&w, r->ratio);
            orr_csv_put(&w, orr_algo_name(r->algo));
            orr_csv_put(&w, orr_proto_name(r->proto));
            orr_csv_end_row(&w);
        }
}

static bool write_answers(const OrrCli *cli, const Answers *all, GError **error) {
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        write_json(cli, all, out);
    else if (orr_cli_has(cli, "csv"))
        write_csv(all, out);
    else {
        for (uint32_t t = 0; t < all->n; t++)
            write_text(&all->answers[t], out);
        if (all->all.n_causes > 0)
            orr_out_puts(out, "# All tables together, as of one machine\n");
        write_causes(&all->all, out);
    }
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

static bool read_logs(const OrrCli *cli, Answers *all, GError **error) {
    int64_t n_ranks = 0, n_nodes = 0;
    if (!orr_cli_int(cli, "gpus", 1, 1 << 24, &n_ranks, error) ||
        !orr_cli_int(cli, "nodes", 1, 1 << 24, &n_nodes, error))
        return false;
    for (guint i = 0; i < all->n_logs; i++) {
        g_autoptr(GString) notes = g_string_new(NULL);
        OrrImport import = {.path = orr_cli_argument(cli, i + 1),
                            .op = orr_cli_value(cli, "op"),
                            .n_ranks = (guint)n_ranks,
                            .n_nodes = (guint)n_nodes,
                            .notes = notes};
        Log *log = &all->logs[i];
        log->tables = orr_nccl_tests_read(&import, error);
        fputs(notes->str, stderr);
        if (!log->tables)
            return false;
        all->n += log->tables->n_tables;
        log->text = orr_file_read(import.path, MAX_LOG_BYTES, NULL, error);
        if (!log->text)
            return false;
    }
    return true;
}

static bool check_all(const OrrCli *cli, double tolerance, Answers *all, bool *is_within,
                      GError **error) {
    uint32_t n = 0;
    all->answers = g_new0(Answer, all->n + 1);
    *is_within = true;
    for (guint i = 0; i < all->n_logs; i++)
        for (uint32_t t = 0; t < all->logs[i].tables->n_tables; t++) {
            Answer *a = &all->answers[n++];
            a->what.table = all->logs[i].tables->tables[t];
            a->what.log = all->logs[i].text;
            if (!check_table(cli, a, tolerance, error))
                return false;
            *is_within = *is_within && a->check->is_within;
        }
    if (*is_within || n < 2)
        return true;
    g_autofree OrrCheckCase *cases = g_new(OrrCheckCase, n);
    for (uint32_t i = 0; i < n; i++)
        cases[i] = all->answers[i].what;
    orr_judge_causes(cases, n, &all->all);
    return true;
}

static void clear_answers(Answers *all) {
    for (uint32_t i = 0; all->answers && i < all->n; i++)
        orr_check_free(all->answers[i].check);
    g_free(all->answers);
    for (guint i = 0; i < all->n_logs; i++) {
        orr_measured_tables_free(all->logs[i].tables);
        g_free(all->logs[i].text);
    }
    g_free(all->logs);
    orr_check_causes_clear(&all->all);
}

static bool run_check(OrrCli *cli, GError **error) {
    double tolerance;
    bool is_within = true;
    if (orr_cli_has(cli, "json") && orr_cli_has(cli, "csv"))
        return orr_fail_usage(error, "orrery check: --json or --csv, not both");
    if (!read_tolerance(cli, &tolerance, error))
        return false;
    Answers all = {.n_logs = cli->arguments->len - 1};
    all.logs = g_new0(Log, all.n_logs + 1);
    bool is_fine = read_logs(cli, &all, error) &&
                   check_all(cli, tolerance, &all, &is_within, error) &&
                   write_answers(cli, &all, error);
    clear_answers(&all);
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
    .synopsis = "CLUSTER LOG...",
    .description =
        "CLUSTER is a name (orrery list clusters), the path of a cluster file, a one-line shape, "
        "or "
        "a listing of a node as orrery import topology takes it (NCCL XML, nvidia-smi topo -m); "
        "LOG the "
        "output of nccl-tests, rccl-tests or PyTorch's all_reduce_bench, with or without NCCL's "
        "own "
        "lines. Prints expected and measured time and bandwidth by size and their ratio at the "
        "plateau; where it is out of tolerance, the faults, alone and in pairs, that would explain "
        "it, likeliest first, each with the evidence and where to look. Several tables are also "
        "judged together, as of one machine. Exit status 1: out of tolerance.\n\n"
        "  orrery check h100-ib all_reduce.log\n"
        "  orrery check h100-ib one-node.log two-nodes.log\n"
        "  orrery check \"fat_tree:48 node:8 gpu:a100 nic:100G net:roce\" all_reduce.log --nodes 6",
    .min_arguments = 2,
    .max_arguments = 64,
    .options = options,
    .run = run_check,
};
