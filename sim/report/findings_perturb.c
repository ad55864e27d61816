/* Findings about what is not as it should be: what it costs, and who kept others waiting. */
#include "sim/report/findings_priv.h"

#include "sim/report/report_priv.h"

#include <string.h>

#define COST_FRAC 0.001 /* of the step: below, it is not worth a sentence; ours */

/* Whether a part of that kind is among what is not as it should be. */
static bool has_part(const OrrRecord *r, const char *prefix) {
    for (uint32_t i = 0; i < r->n_perturbs; i++)
        if (g_str_has_prefix(r->perturbs[i].what, prefix))
            return true;
    return false;
}

/* Whether one GPU is all that is not as it should be, so that what it costs is its own. */
static bool is_one_gpu(const OrrRecord *r) {
    uint32_t n_parts = 0;
    for (uint32_t i = 0; i < r->n_perturbs; i++) {
        const char *what = r->perturbs[i].what;
        if (g_str_has_prefix(what, "jitter"))
            continue;
        bool is_run = strpbrk(what, "*-") != NULL; /* gpu:*:speed, gpu:0-7:speed */
        n_parts += is_run ? 2 : 1;
    }
    return n_parts == 1;
}

/* Links are known by name: a spare machine would not help. */
static void slow_links(OrrRuleCase *k, const char *cost, const char *percent) {
    const OrrRecord *r = k->r;
    g_string_append_printf(k->evidence,
                           "the step takes %s (%s) longer than with all links as they should be.",
                           cost, percent);
    g_string_append(k->advice, "Mend");
    for (uint32_t i = 0; i < r->n_perturbs; i++)
        if (!g_str_has_prefix(r->perturbs[i].what, "jitter"))
            g_string_append_printf(k->advice, "%s %s", k->advice->len > 4 ? "," : "",
                                   r->perturbs[i].what);
    g_string_append_printf(k->advice, ": up to %s of the throughput of all %u GPUs comes back.",
                           percent, r->world_size);
}

static void straggler(OrrRuleCase *k) {
    const OrrRecord *r = k->r;
    int64_t cost_ns = r->step_time_ns - r->sound_step_time_ns;
    bool is_gpu = has_part(r, "gpu:"), is_link = has_part(r, "link:") || has_part(r, "nic:");
    if (r->sound_step_time_ns == 0 || (is_gpu ? r->n_stragglers == 0 : !is_link))
        return;
    double frac = (double)cost_ns / (double)r->sound_step_time_ns;
    if (frac < COST_FRAC)
        return;
    OrrFixed cost = orr_report__time((double)cost_ns), percent = orr_report__percent(frac);
    if (!is_gpu) {
        slow_links(k, cost.text, percent.text);
        return;
    }
    const OrrRecordStraggler *s = &r->stragglers[0];
    OrrFixed waited = orr_report__time((double)s->waited_for_ns);
    g_string_append_printf(k->evidence,
                           "the step takes %s (%s) longer than with all machines as they should "
                           "be; rank %u waits least for others, they %s longer than it "
                           "does.",
                           cost.text, percent.text, s->rank, waited.text);
    g_string_append_printf(k->advice, "Look at the machine of rank %u first. ", s->rank);
    if (is_one_gpu(r))
        g_string_append_printf(k->advice,
                               "A spare in its place gives back up to %s of the throughput of all "
                               "%u GPUs.",
                               percent.text, r->world_size);
    else
        g_string_append_printf(k->advice,
                               "With all parts as they should be up to %s of the throughput of "
                               "all %u GPUs comes back; one of them alone gives a share of that.",
                               percent.text, r->world_size);
}

const OrrRule orr_findings__perturbs[] = {
    {{"straggler", "A slow GPU or link makes the others wait.",
      "Llama 3 paper (arXiv:2407.21783), section 3.3.4: slow GPUs found by who waits least"},
     straggler},
    {{NULL, NULL, NULL}, NULL},
};
