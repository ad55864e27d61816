/* orrery list: what there is, with a sentence and a source for each. */
#include "sim/cli/commands.h"

#include "plots/plot.h"
#include "sim/base/words.h"
#include "sim/cli/importers.h"
#include "sim/collective/algorithms.h"
#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "sim/model/params.h"
#include "sim/report/findings.h"
#include "sim/report/formats.h"
#include "sim/schedule/schedules.h"
#include "topologies/loader.h"
#include "traces/exporters.h"
#include "workloads/loader_run.h"

#include <string.h>

typedef struct {
    char *name, *summary, *source;
} Entry;

static void entry_free(gpointer data) {
    Entry *e = data;
    g_free(e->name), g_free(e->summary), g_free(e->source);
    g_free(e);
}

static void add(GPtrArray *to, const char *name, const char *summary, const char *source) {
    Entry *e = g_new(Entry, 1);
    e->name = g_strdup(name);
    e->summary = g_strdup(summary ? summary : "");
    e->source = g_strdup(source ? source : "");
    g_ptr_array_add(to, e);
}

static bool add_topologies(GPtrArray *to, const char *kind, GError **error) {
    int k = 0;
    while (strcmp(orr_topology_kind_names[k], kind) != 0)
        k++;
    g_autoptr(GPtrArray) entries = orr_topology_list((OrrTopologyKind)k, error);
    for (guint i = 0; entries && i < entries->len; i++) {
        const OrrTopologyEntry *e = entries->pdata[i];
        add(to, e->name, e->summary, e->source);
    }
    return entries != NULL;
}

static bool add_workloads(GPtrArray *to, const char *kind, GError **error) {
    g_autoptr(GPtrArray) entries = orr_workload_list(kind, error);
    for (guint i = 0; entries && i < entries->len; i++) {
        const OrrListed *e = entries->pdata[i];
        add(to, e->name, e->summary, e->source);
    }
    return entries != NULL;
}

static bool add_runs(GPtrArray *to, const char *kind, GError **error) {
    g_autoptr(GPtrArray) entries = orr_run_list(kind, error);
    for (guint i = 0; entries && i < entries->len; i++) {
        const OrrListed *e = entries->pdata[i];
        add(to, e->name, e->summary, e->source);
    }
    return entries != NULL;
}

static bool add_schedules(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (int i = 0; orr_schedules[i]; i++)
        add(to, orr_schedules[i]->name, orr_schedules[i]->summary, orr_schedules[i]->source);
    return true;
}

static bool add_collectives(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (int a = 0; a < ORR_N_ALGOS; a++) {
        const OrrAlgorithm *algorithm = orr_algorithm((OrrAlgo)a);
        g_autoptr(GString) summary = g_string_new(algorithm->summary);
        g_string_append(summary, " For:");
        for (int c = 0; c < ORR_N_COLLECTIVES; c++)
            if (algorithm->collectives & ORR_BIT(c))
                g_string_append_printf(summary, " %s", orr_collective_name((OrrCollective)c));
        add(to, algorithm->name, summary->str, algorithm->source);
    }
    return true;
}

static bool add_formulas(GPtrArray *to, const char *kind, GError **error) {
    /* in the order of orr_flops_formulas; explained at length in doc/models/flops.md */
    static const char *const summaries[][3] = {
        {"megatron", "GEMMs, causal attention counted half, and the logits",
         "Narayanan et al. 2021, "
         "appendix; Megatron-LM num_floating_point_operations"},
        {"megatron-full", "as megatron, attention counted in full",
         "Narayanan et al. 2021, section 5.1"},
        {"palm", "6 N + 12 L H Q T a token", "PaLM (Chowdhery et al. 2022), appendix B"},
        {"palm-causal", "palm with attention counted half", "as palm; Dao 2023, section 4.1"},
        {"6n", "6 N a token, no attention", "Kaplan et al. 2020, section 2.1"},
        {"mpt", "6 N + 12 L H s a token, input table left out if the head has its own",
         "mosaicml/llm-foundry, scripts/train/benchmarking"},
        {"sc21", "megatron-full with the recomputed forward", "Narayanan et al. 2021, equation 3"},
        {"torchtitan", "6 (N - embedding) + 12 L H s a token", "pytorch/torchtitan, utils"},
    };
    (void)kind, (void)error;
    for (int i = 0; orr_flops_formulas[i]; i++) {
        const char *summary = "", *source = "";
        for (guint k = 0; k < G_N_ELEMENTS(summaries); k++)
            if (strcmp(summaries[k][0], orr_flops_formulas[i]) == 0)
                summary = summaries[k][1], source = summaries[k][2];
        add(to, orr_flops_formulas[i], summary, source);
    }
    return true;
}

static bool add_importers(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (int i = 0; orr_importers[i]; i++)
        add(to, orr_importers[i]->name, orr_importers[i]->summary, orr_importers[i]->source);
    return true;
}

static bool add_exporters(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (int i = 0; orr_exporters[i]; i++)
        add(to, orr_exporters[i]->name, orr_exporters[i]->summary, orr_exporters[i]->source);
    return true;
}

static bool add_reports(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (int i = 0; orr_report_formats[i]; i++)
        add(to, orr_report_formats[i]->name, orr_report_formats[i]->summary,
            orr_report_formats[i]->source);
    return true;
}

static bool add_findings(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (uint32_t i = 0; orr_finding_kind(i); i++)
        add(to, orr_finding_kind(i)->code, orr_finding_kind(i)->summary,
            orr_finding_kind(i)->source);
    return true;
}

static bool add_plots(GPtrArray *to, const char *kind, GError **error) {
    (void)kind, (void)error;
    for (const OrrPlot *p = orr_plots; p->name; p++)
        add(to, p->name, p->summary, "DESIGN.md, section 8");
    for (const OrrPlot *p = orr_run_plots; p->name; p++)
        add(to, p->name, p->summary, "orrery run --plots; doc/models/runs.md");
    for (const OrrPlot *p = orr_share_plots; p->name; p++)
        add(to, p->name, p->summary, "orrery run --shared --plots; doc/models/sharing.md");
    return true;
}

static const struct {
    const char *name, *what;
    bool (*add)(GPtrArray *to, const char *kind, GError **error);
} tables[] = {
    {"gpus", "GPUs (topologies/gpus)", add_topologies},
    {"nodes", "nodes (topologies/nodes)", add_topologies},
    {"clusters", "clusters (topologies/clusters)", add_topologies},
    {"models", "models (workloads/models)", add_workloads},
    {"jobs", "jobs (workloads/jobs)", add_workloads},
    {"frameworks", "framework profiles (workloads/frameworks)", add_workloads},
    {"runs", "whole runs (workloads/runs)", add_runs},
    {"failures", "rates of failures (topologies/failures)", add_runs},
    {"prices", "prices (workloads/prices)", add_runs},
    {"shares", "shared clusters (workloads/shares)", add_runs},
    {"schedules", "pipeline schedules", add_schedules},
    {"collectives", "algorithms of collectives", add_collectives},
    {"formulas", "FLOP formulas", add_formulas},
    {"findings", "findings of the report", add_findings},
    {"reports", "forms of the report", add_reports},
    {"exporters", "forms of a trace", add_exporters},
    {"importers", "files of other programs that are read", add_importers},
    {"plots", "plots", add_plots},
};
static const char *const kinds[] = {"gpus",       "nodes",       "clusters", "models",   "jobs",
                                    "frameworks", "runs",        "failures", "prices",   "shares",
                                    "schedules",  "collectives", "formulas", "findings", "reports",
                                    "exporters",  "importers",   "plots",    NULL};
_Static_assert(G_N_ELEMENTS(kinds) == G_N_ELEMENTS(tables) + 1, "kinds are the names of tables");

static const OrrOption options[] = {
    ORR_OPTION_JSON, ORR_OPTION_CSV, ORR_OPTION_OUTPUT, ORR_OPTION_HELP, ORR_OPTION_END,
};

static void write_text(const GPtrArray *entries, OrrOut *out) {
    int width = 0;
    for (guint i = 0; i < entries->len; i++)
        width = MAX(width, (int)strlen(((Entry *)entries->pdata[i])->name));
    for (guint i = 0; i < entries->len; i++) {
        const Entry *e = entries->pdata[i];
        orr_out_printf(out, "%-*s  %s\n%*s  [%s]\n", width, e->name, e->summary, width, "",
                       e->source);
    }
}

static void write_csv(const char *kind, const GPtrArray *entries, OrrCsvWriter *w) {
    for (guint i = 0; i < entries->len; i++) {
        const Entry *e = entries->pdata[i];
        const char *const row[] = {kind, e->name, e->summary, e->source, "orrery.list/1", NULL};
        orr_csv_put_row(w, row);
    }
}

static void write_json(const char *kind, const GPtrArray *entries, OrrJsonWriter *w) {
    orr_json_begin_array(w, kind);
    for (guint i = 0; i < entries->len; i++) {
        const Entry *e = entries->pdata[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "name", e->name);
        orr_json_put_string(w, "summary", e->summary);
        orr_json_put_string(w, "source", e->source);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static bool check_kind(const char *kind, GError **error) {
    if (!kind || g_strv_contains(kinds, kind))
        return true;
    g_autofree char *hint = orr_words_hint(kind, kinds);
    return orr_fail_usage(error, "orrery list: unknown kind '%s'; %s", kind, hint);
}

static void write_kinds(OrrOut *out) {
    orr_out_puts(out, "usage: orrery list KIND\n\n");
    for (guint t = 0; t < G_N_ELEMENTS(tables); t++)
        orr_out_printf(out, "  %-12s %s\n", tables[t].name, tables[t].what);
}

static bool run(OrrCli *cli, GError **error) {
    const char *kind = orr_cli_argument(cli, 0);
    bool is_json = orr_cli_has(cli, "json"), is_csv = orr_cli_has(cli, "csv");
    if (is_json && is_csv)
        return orr_fail_usage(error, "orrery list: --json or --csv, not both");
    if (!check_kind(kind, error))
        return false;
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    OrrJsonWriter json = {.out = out, .is_pretty = true};
    OrrCsvWriter csv = {.out = out};
    static const char *const header[] = {"kind", "name", "summary", "source", "schema", NULL};
    if (is_json) {
        orr_cli_json_begin(&json, "orrery.list/1");
    } else if (is_csv)
        orr_csv_put_row(&csv, header);
    else if (!kind)
        write_kinds(out);
    for (guint t = 0; t < G_N_ELEMENTS(tables); t++) {
        if ((kind && strcmp(kind, tables[t].name) != 0) || (!kind && !is_json && !is_csv))
            continue;
        g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(entry_free);
        if (!tables[t].add(entries, tables[t].name, error))
            return false;
        if (is_json)
            write_json(tables[t].name, entries, &json);
        else if (is_csv)
            write_csv(tables[t].name, entries, &csv);
        else
            write_text(entries, out);
    }
    if (is_json) {
        orr_json_end_object(&json);
        orr_out_puts(out, "\n");
    }
    return orr_out_commit(out, error);
}

const OrrCommand orr_cmd_list = {
    .name = "list",
    .summary = "what there is of a kind: name, a sentence, its source",
    .synopsis = "[KIND]",
    .description = "KIND is gpus, nodes, clusters, models, jobs, frameworks, runs, failures, "
                   "prices, shares, schedules, "
                   "collectives, formulas, findings, reports, exporters, importers or plots; "
                   "without one, the kinds are "
                   "listed. `orrery show` tells more about one thing.",
    .kinds = kinds,
    .min_arguments = 0,
    .max_arguments = 1,
    .options = options,
    .run = run,
};
