/* orrery show run, failure, price, share: what the files of whole runs say, with rates in the three
 * ways that people state them. */
#include "sim/cli/show.h"

#include "sim/base/units.h"
#include "sim/facts/prices.h"
#include "sim/job/money.h"
#include "sim/job/spec.h"
#include "workloads/loader_run.h"
#include "workloads/loader_share.h"

#include <math.h>

typedef struct {
    char text[64];
} Number;

static Number number(double value, int decimals) {
    Number n;
    char format[8];
    g_snprintf(format, sizeof format, "%%.%df", decimals);
    g_ascii_formatd(n.text, sizeof n.text, format, value);
    return n;
}

bool orr_cli_show_run(const OrrCli *cli, OrrOut *out, GError **error) {
    g_autoptr(OrrRunFile) f = orr_workload_run(orr_cli_argument(cli, 1), NULL, 0, NULL, error);
    if (!f)
        return false;
    g_autofree char *interval = orr_units_time((int64_t)f->checkpoint.interval_ns);
    orr_out_printf(out, "%s: %s\n", f->name, f->summary);
    orr_cli_line(out, "source", "%s", f->source);
    if (*f->job_ref)
        orr_cli_line(out, "job", "%s %s", f->job_ref, f->sets);
    if (f->length_ns > 0)
        orr_cli_line(out, "length", "%s d", number(f->length_ns / 86400e9, 2).text);
    if (f->tokens > 0)
        orr_cli_line(out, "tokens", "%s", number(f->tokens, 0).text);
    if (f->steps > 0)
        orr_cli_line(out, "steps", "%s", number(f->steps, 0).text);
    orr_cli_line(out, "failures", "%s", *f->failures_ref ? f->failures_ref : "none");
    orr_cli_line(out, "prices", "%s (%s)", *f->prices_ref ? f->prices_ref : "none",
                 orr_contract_names[f->contract]);
    orr_cli_line(out, "checkpoints", "policy %s, %s",
                 orr_interval_policy_names[f->checkpoint.policy],
                 f->checkpoint.interval_ns > 0 ? interval : "in steps or worked out");
    for (uint32_t i = 0; i < f->n_stores; i++)
        orr_cli_line(out, "  store", "%s, survives the loss of: %s, network: %s", f->stores[i].name,
                     orr_scope_names[f->stores[i].survives],
                     orr_store_network_names[f->stores[i].network]);
    return true;
}

/* Mean hours between two strikes of a job of so many GPUs in nodes of eight, racks of 16. */
static double job_hours(const OrrFailureKind *kind, double gpus) {
    const double units[ORR_N_UNITS] = {gpus, gpus / 8, gpus / 16, gpus / 16, 1};
    return kind->mean_ns / fmax(units[kind->unit], 1) / 3600e9;
}

static void failure_row(OrrOut *out, const OrrFailureKind *k, const int *gpus, guint n) {
    orr_out_printf(out, "  %-24s %-10s %-8s %-7s", k->name, k->component,
                   orr_effect_names[k->effect], orr_failure_unit_names[k->unit]);
    if (k->law == ORR_LAW_EVENTS || !(k->mean_ns > 0)) {
        orr_out_puts(out, k->law == ORR_LAW_EVENTS ? " at given times\n" : " never seen\n");
        return;
    }
    orr_out_printf(out, " %14s", number(k->mean_ns / 3600e9, 0).text);
    double hours = job_hours(k, 16384);
    orr_out_printf(out, " %10s", number(24000 / (hours * 2048), 4).text);
    for (guint i = 0; i < n; i++)
        orr_out_printf(out, " %11s", number(job_hours(k, gpus[i]), 2).text);
    orr_out_puts(out, "\n");
}

bool orr_cli_show_failure(const OrrCli *cli, OrrOut *out, GError **error) {
    static const int gpus[] = {8, 64, 512, 1024, 4096, 16384, 131072};
    g_autoptr(OrrFailureSet) set =
        orr_workload_failures(orr_cli_argument(cli, 1), NULL, 0, NULL, error);
    if (!set)
        return false;
    orr_out_printf(out, "%s: %s\n", set->name, set->summary);
    orr_cli_line(out, "source", "%s", set->source);
    orr_out_printf(out,
                   "\n  %-24s %-10s %-8s %-7s %14s %10s  hours between two, of a job of so many "
                   "GPUs\n",
                   "cause", "component", "effect", "unit", "h of a unit", "/1000 n-d");
    orr_out_printf(out, "  %-24s %-10s %-8s %-7s %14s %10s", "", "", "", "", "", "");
    for (guint i = 0; i < G_N_ELEMENTS(gpus); i++)
        orr_out_printf(out, " %11d", gpus[i]);
    orr_out_puts(out, "\n");
    double rate[G_N_ELEMENTS(gpus)] = {0};
    for (uint32_t c = 0; c < set->n; c++) {
        failure_row(out, &set->kinds[c], gpus, G_N_ELEMENTS(gpus));
        if (set->kinds[c].mean_ns > 0 && orr_effect_is_interruption(set->kinds[c].effect))
            for (guint i = 0; i < G_N_ELEMENTS(gpus); i++)
                rate[i] += 1 / job_hours(&set->kinds[c], gpus[i]);
    }
    orr_out_printf(out, "  %-24s %-10s %-8s %-7s %14s %10s", "all that interrupt", "", "", "", "",
                   "");
    for (guint i = 0; i < G_N_ELEMENTS(gpus); i++)
        orr_out_printf(out, " %11s", rate[i] > 0 ? number(1 / rate[i], 3).text : "");
    orr_out_puts(out, "\n  (nodes of eight GPUs, racks and switches of 16)\n");
    return true;
}

bool orr_cli_show_price(const OrrCli *cli, OrrOut *out, GError **error) {
    g_autoptr(OrrPrices) p = orr_workload_prices(orr_cli_argument(cli, 1), NULL, 0, NULL, error);
    if (!p)
        return false;
    orr_out_printf(out, "%s: %s\n", p->name, p->summary);
    orr_cli_line(out, "source", "%s", p->source);
    orr_cli_line(out, "date", "%s", p->date);
    for (int c = ORR_CONTRACT_ON_DEMAND; c < ORR_N_CONTRACTS; c++) {
        double price = orr_price_gpu_h(p, (OrrContract)c);
        if (price >= 0)
            orr_cli_line(out, orr_contract_names[c], "%s USD a GPU-hour%s",
                         number(price + orr_price_power_gpu_h(p, (OrrContract)c), 3).text,
                         c == ORR_CONTRACT_ON_PREMISE ? ", electricity of busy GPUs with it" : "");
    }
    if (p->node_usd > 0 && p->usd_per_gpu_h[ORR_CONTRACT_ON_DEMAND] > 0) {
        double hours = orr_money_breakeven_h(p, ORR_CONTRACT_ON_DEMAND);
        if (isfinite(hours))
            orr_cli_line(out, "break-even", "buying is cheaper after %s h of use (%s months)",
                         number(hours, 0).text, number(hours / (365.25 * 2), 1).text);
    }
    orr_cli_line(out, "energy", "%s kW a node, PUE %s, %s kg CO2 a kWh",
                 number(p->node_watts / 1000, 1).text, number(p->pue, 2).text,
                 number(p->carbon_kg_per_kwh, 3).text);
    return true;
}

bool orr_cli_show_share(const OrrCli *cli, OrrOut *out, GError **error) {
    g_autoptr(OrrShareFile) f = orr_workload_share(orr_cli_argument(cli, 1), NULL, 0, NULL, error);
    if (!f)
        return false;
    const OrrShareSpec *s = f->spec;
    orr_out_printf(out, "%s: %s\n", f->name, f->summary);
    orr_cli_line(out, "source", "%s", f->source);
    orr_cli_line(out, "cluster", "%s%s%u nodes of %u GPUs, %u to a rack, %u racks to a block",
                 s->cluster_ref, *s->cluster_ref ? ": " : "", s->n_nodes, s->gpus_per_node,
                 s->nodes_per_rack, s->racks_per_block);
    if (s->slices_per_gpu > 1)
        orr_cli_line(out, "slices", "%u a GPU by %s", s->slices_per_gpu,
                     orr_slicing_names[s->slicing]);
    orr_cli_line(out, "policy", "%s", orr_share_policy_names[s->policy]);
    if (s->node_mtbf_ns > 0)
        orr_cli_line(out, "failures",
                     "of a node each %s h (%s per 1000 node-days), of any each %s h",
                     number(s->node_mtbf_ns / 3600e9, 1).text,
                     number(1000 * 86400e9 / s->node_mtbf_ns, 2).text,
                     number(s->node_mtbf_ns / 3600e9 / s->n_nodes, 2).text);
    if (s->store_bytes_per_s > 0)
        orr_cli_line(out, "store", "%s GB/s", number((double)s->store_bytes_per_s / 1e9, 1).text);
    if (*f->prices_ref)
        orr_cli_line(out, "prices", "%s, %s", f->prices_ref, orr_contract_names[f->contract]);
    double gpu_h = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++)
        gpu_h += (double)s->jobs[i].work_ns / 3600e9 * s->jobs[i].gpus;
    orr_cli_line(out, "jobs", "%u; those in hours of whole GPUs have %s GPU-hours of work",
                 s->n_jobs, number(gpu_h, 1).text);
    return true;
}
