/* What is not as it should be, in the text report: what was said, what it costs, who is waited for.
 */
#include "sim/report/report_priv.h"

#include <string.h>

static void percentiles(const OrrRecord *r, OrrOut *out) {
    const OrrRecordPercentiles *p = &r->percentiles;
    if (p->n_seeds == 0)
        return;
    OrrFixed p5 = orr_report__time((double)p->p5_ns), p50 = orr_report__time((double)p->p50_ns);
    OrrFixed p95 = orr_report__time((double)p->p95_ns), mean = orr_report__time((double)p->mean_ns);
    OrrFixed ci = orr_report__time((double)p->ci95_ns);
    orr_out_printf(
        out,
        "\nOver %u seeds\n  step time %s (5 %%), %s (50 %%), %s (95 %%); mean %s, within "
        "%s of that at 95 %%\n",
        p->n_seeds, p5.text, p50.text, p95.text, mean.text, ci.text);
}

#define SHOWN 3u /* ours: at either end of the order of a meeting */

static void arrivals(const OrrRecord *r, OrrOut *out) {
    if (r->n_arrivals > 0)
        orr_out_puts(out, "  who came first and last to the meetings that cost most, and how much "
                          "after the first\n");
    for (uint32_t i = 0; i < r->n_arrivals; i++) {
        const OrrRecordArrival *a = &r->arrivals[i];
        uint32_t last = a->group_size - MIN(SHOWN, a->group_size);
        if (a->order == 0)
            orr_out_printf(out, "    %s (%s, %u ranks)\n", a->what, orr_group_name(a->group),
                           a->group_size);
        if (a->order >= SHOWN && a->order < last)
            continue;
        OrrFixed late = orr_report__time((double)a->late_ns);
        orr_out_printf(out, "    %6u. %8u %16s\n", a->order + 1, a->rank, late.text);
    }
}

static void price(const OrrRecord *r, OrrOut *out) {
    double cost = (double)(r->step_time_ns - r->sound_step_time_ns);
    OrrFixed sound = orr_report__time((double)r->sound_step_time_ns);
    OrrFixed more = orr_report__time(cost < 0 ? -cost : cost);
    OrrFixed percent =
        orr_report__percent((cost < 0 ? -cost : cost) / (double)r->sound_step_time_ns);
    if (cost >= 0)
        orr_out_printf(out, "  without it a step takes %s; it costs %s (%s)\n", sound.text,
                       more.text, percent.text);
    else
        orr_out_printf(
            out,
            "  without it a step takes %s, %s longer (%s):\n"
            "  what comes later to a shared link leaves it to others meanwhile, so a slow "
            "part can\n  move a step either way\n",
            sound.text, more.text, percent.text);
}

/* Jitter of a folded step is its mean, the same for all: a draw would tell them apart. */
static void waits_alike(const OrrRecord *r, OrrOut *out) {
    OrrFixed each = orr_report__time((double)r->waits.most_ns);
    bool has_jitter = false;
    for (uint32_t i = 0; i < r->n_perturbs; i++)
        has_jitter |= strcmp(r->perturbs[i].what, "jitter") == 0;
    orr_out_printf(out, "  each rank idles %s for communication and peers%s\n", each.text,
                   has_jitter ? ": jitter is the mean of all here;\n"
                                "  --unfold draws it, and tells who waits for whom"
                              : "");
}

static void waits(const OrrRecord *r, OrrOut *out) {
    if (r->waits.least_ns == r->waits.most_ns) {
        waits_alike(r, out);
        return;
    }
    OrrFixed least = orr_report__time((double)r->waits.least_ns);
    OrrFixed median = orr_report__time((double)r->waits.median_ns);
    OrrFixed most = orr_report__time((double)r->waits.most_ns);
    orr_out_printf(out,
                   "  ranks idle for communication and peers from %s (rank %u) to %s (rank %u),\n"
                   "  half of them at most %s\n",
                   least.text, r->waits.least_rank, most.text, r->waits.most_rank, median.text);
}

void orr_report__perturbs(const OrrRecord *r, OrrOut *out) {
    percentiles(r, out);
    if (r->n_perturbs == 0)
        return;
    orr_out_puts(out, "\nNot as it should be\n");
    for (uint32_t i = 0; i < r->n_perturbs; i++)
        orr_out_printf(out, "  %s %s\n", r->perturbs[i].what, r->perturbs[i].value);
    price(r, out);
    waits(r, out);
    if (r->n_stragglers > 0)
        orr_out_printf(out, "  %8s %16s\n", "rank", "waited for, ms");
    for (uint32_t i = 0; i < r->n_stragglers; i++) {
        OrrFixed ms = orr_report__fixed((double)r->stragglers[i].waited_for_ns * 1e-6, 3);
        orr_out_printf(out, "  %8u %16s\n", r->stragglers[i].rank, ms.text);
    }
    arrivals(r, out);
}
