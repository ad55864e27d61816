/* The tables of the text report: memory, both accounts, communication, groups. */
#include "sim/report/report_priv.h"

#include <math.h>
#include <string.h>

#define BAR_COLUMNS 30

static void bar(OrrOut *out, double frac) {
    int n = (int)lround(CLAMP(frac, 0, 1) * BAR_COLUMNS);
    if (n > 0)
        orr_out_puts(out, "  ");
    for (int i = 0; i < n; i++)
        orr_out_puts(out, "#");
}

static bool mem_kind_used(const OrrRecord *r, int kind) {
    for (uint32_t s = 0; s < r->n_stages; s++)
        if (r->stages[s].mem_bytes[kind] > 0)
            return true;
    return false;
}

static void memory_row(const OrrRecord *r, const OrrRecordStage *s, OrrOut *out) {
    double headroom = (double)(r->capacity_bytes - s->peak_bytes);
    OrrFixed peak = orr_report__fixed((double)s->peak_bytes / 0x1p30, 2);
    OrrFixed room = orr_report__fixed(headroom / 0x1p30, 2);
    orr_out_printf(out, "  %5u %6u %8s %9s  %-12s", s->stage, s->layers, peak.text, room.text,
                   orr_verdict_name(s->verdict));
    for (int m = 0; m < ORR_N_MEM_KINDS; m++) {
        if (!mem_kind_used(r, m))
            continue;
        OrrFixed v = orr_report__fixed((double)s->mem_bytes[m] / 0x1p30, 2);
        orr_out_printf(out, " %7s", v.text);
    }
    orr_out_puts(out, "\n");
}

void orr_report__memory(const OrrRecord *r, OrrOut *out) {
    OrrFixed capacity = orr_report__gib((double)r->capacity_bytes);
    orr_out_printf(out, "\nMemory by stage, GiB at the peak of its worst rank (capacity %s)\n",
                   capacity.text);
    orr_out_printf(out, "  %5s %6s %8s %9s  %-12s", "stage", "layers", "peak", "headroom",
                   "verdict");
    for (int m = 0; m < ORR_N_MEM_KINDS; m++)
        if (mem_kind_used(r, m))
            orr_out_printf(out, " %7s", orr_report__mem_words((OrrMemKind)m));
    orr_out_puts(out, "\n");
    for (uint32_t s = 0; s < r->n_stages; s++)
        memory_row(r, &r->stages[s], out);
}

/* Ids of the non-zero parts, largest first, the smaller id of equals first. */
static uint32_t by_size(const int64_t *parts, uint32_t n, uint32_t *ids) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i] == 0)
            continue;
        uint32_t at = used++;
        for (; at > 0 && parts[ids[at - 1]] < parts[i]; at--)
            ids[at] = ids[at - 1];
        ids[at] = i;
    }
    return used;
}

static void account_row(OrrOut *out, const char *name, int64_t ns, int64_t total_ns) {
    double frac = (double)ns / (double)total_ns;
    OrrFixed ms = orr_report__fixed((double)ns * 1e-6, 3), percent = orr_report__percent(frac);
    orr_out_printf(out, "  %-26s %13s %8s", name, ms.text, percent.text);
    bar(out, frac);
    orr_out_puts(out, "\n");
}

static void account_total(OrrOut *out, int64_t total_ns) {
    OrrFixed ms = orr_report__fixed((double)total_ns * 1e-6, 3);
    orr_out_printf(out, "  %-26s %13s %8s  = step time\n", "total", ms.text, "100.0 %");
}

void orr_report__time_account(const OrrRecord *r, OrrOut *out) {
    uint32_t ids[ORR_N_OWNERS];
    uint32_t n = by_size(r->time_account_ns, ORR_N_OWNERS, ids);
    orr_out_printf(out, "\nTime account: the compute stream of a mean rank%29s %9s\n", "ms",
                   "of step");
    for (uint32_t i = 0; i < n; i++)
        account_row(out, orr_report__owner_words((OrrOwner)ids[i]), r->time_account_ns[ids[i]],
                    r->step_time_ns);
    account_total(out, r->step_time_ns);
}

void orr_report__critical_path(const OrrRecord *r, OrrOut *out) {
    uint32_t ids[ORR_N_PATH_OWNERS];
    uint32_t n = by_size(r->critical_path_ns, ORR_N_PATH_OWNERS, ids);
    if (n == 0)
        return;
    orr_out_puts(out, "\nCritical path: what the end of the step hung on\n");
    for (uint32_t i = 0; i < n; i++) {
        OrrFixed words = orr_report__path_words(ids[i]);
        account_row(out, words.text, r->critical_path_ns[ids[i]], r->step_time_ns);
    }
    account_total(out, r->step_time_ns);
}

void orr_report__sensitivities(const OrrRecord *r, OrrOut *out) {
    if (r->n_sensitivities == 0)
        return;
    OrrFixed more = orr_report__fixed((r->sensitivity_factor - 1) * 100, 0);
    orr_out_printf(
        out,
        "\nSensitivity: what %s %% more of each, alone, would make of the step (a run each)\n"
        "  %-26s %12s %13s %8s  %s\n",
        more.text, "more of", "step time", "saved", "of step", "keys");
    for (uint32_t i = 0; i < r->n_sensitivities; i++) {
        const OrrRecordSensitivity *s = &r->sensitivities[i];
        double saved = (double)(r->step_time_ns - s->step_time_ns);
        OrrFixed time = orr_report__time((double)s->step_time_ns);
        OrrFixed less = orr_report__time(fabs(saved));
        OrrFixed share = orr_report__percent(saved / (double)r->step_time_ns);
        orr_out_printf(out, "  %-26s %12s %1s%12s %8s  %s\n", s->name, time.text,
                       saved < 0 ? "-" : "", less.text, share.text, s->keys);
    }
    orr_out_puts(out, "  Latencies are divided by as much. Negative: on shared links what comes "
                      "sooner can be in the way.\n");
}

static void communication_row(const OrrRecord *r, const OrrRecordComm *c, OrrOut *out) {
    OrrFixed count = orr_report__count((double)c->count);
    OrrFixed bytes = orr_report__fixed((double)c->bytes / 0x1p30, 3);
    OrrFixed transfer = orr_report__fixed((double)c->transfer_ns * 1e-6, 2);
    OrrFixed wait = orr_report__fixed((double)c->wait_ns * 1e-6, 2);
    OrrFixed exposed = orr_report__fixed((double)c->exposed_ns * 1e-6, 2);
    OrrFixed share = orr_report__percent((double)c->exposed_ns / (double)r->step_time_ns);
    g_autofree char *how =
        g_strdup_printf("%s%s%s", c->algorithm, *c->protocol ? "/" : "", c->protocol);
    orr_out_printf(out, "  %-12s %-14s %5u %-13s %6s %8s %8s %8s %8s %7s\n",
                   orr_comm_kind_name(c->kind), orr_collective_name(c->collective), c->group_size,
                   how, count.text, bytes.text, transfer.text, wait.text, exposed.text, share.text);
}

void orr_report__communication(const OrrRecord *r, OrrOut *out) {
    if (r->n_comms == 0)
        return;
    orr_out_puts(
        out, "\nCommunication: mean per rank and step; wait is from the own launch to the last "
             "arrival;\nexposed is wait or move with the compute stream idle for it, so a wait for "
             "another stage,\nwhich the time account calls pipeline bubble, counts here too\n");
    orr_out_printf(out, "  %-12s %-14s %5s %-13s %6s %8s %8s %8s %8s %7s\n", "kind", "collective",
                   "ranks", "algorithm", "calls", "GiB", "move ms", "wait ms", "exposed",
                   "of step");
    for (uint32_t i = 0; i < r->n_comms; i++)
        communication_row(r, &r->comms[i], out);
}

void orr_report__groups(const OrrRecord *r, OrrOut *out) {
    if (r->n_groups == 0)
        return;
    orr_out_puts(out, "\nGroups, shown by the one of rank 0\n");
    orr_out_printf(out, "  %-12s %6s %7s  %-34s members\n", "group", "ranks", "groups", "where");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const OrrRecordGroup *g = &r->groups[i];
        g_autofree char *where =
            g->nodes <= 1 ? g_strdup("inside one node")
            : g->domains <= 1
                ? g_strdup_printf("%u nodes of one NVLink domain", g->nodes)
                : g_strdup_printf("leaves the node: %u nodes, %s", g->nodes, g->network);
        orr_out_printf(out, "  %-12s %6u %7u  %-34s %s\n", orr_group_name(g->kind), g->size,
                       g->n_groups, where, g->members);
    }
}
