/* Findings about what is not as it should be: what it costs, and who kept others waiting. */
#include "sim/report/findings_priv.h"

#include "sim/report/report_priv.h"

#define COST_FRAC 0.001 /* of the step: below, it is not worth a sentence; ours */

static void straggler(OrrRuleCase *k) {
    const OrrRecord *r = k->r;
    if (r->n_stragglers == 0)
        return;
    const OrrRecordStraggler *s = &r->stragglers[0];
    double frac = (double)s->cost_ns / (double)r->sound_step_time_ns;
    if (frac < COST_FRAC)
        return;
    OrrFixed cost = orr_report__time((double)s->cost_ns), percent = orr_report__percent(frac);
    OrrFixed waited = orr_report__time((double)s->waited_for_ns);
    g_string_append_printf(k->evidence,
                           "the step takes %s (%s) longer than with all machines as they should "
                           "be; rank %u waits least for others, they %s longer than it "
                           "does.",
                           cost.text, percent.text, s->rank, waited.text);
    g_string_append_printf(k->advice,
                           "Look at the machine of rank %u first. A spare in its place gives back "
                           "up to %s of the throughput of all %u GPUs.",
                           s->rank, percent.text, r->world_size);
}

const OrrRule orr_findings__perturbs[] = {
    {{"straggler", "A slow GPU or link makes the others wait.",
      "Llama 3 paper (arXiv:2407.21783), section 3.3.4: slow GPUs found by who waits least"},
     straggler},
    {{NULL, NULL, NULL}, NULL},
};
