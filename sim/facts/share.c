#include "sim/facts/share.h"

const char *const orr_share_policy_names[] = {"fcfs", "backfill", "priority", "preempt", NULL};
const char *const orr_slicing_names[] = {"mps", "mig", "time", NULL};
const char *const orr_place_names[] = {"any", "rack", "block", NULL};

OrrShareSpec *orr_share_spec_new(void) {
    OrrShareSpec *s = g_new0(OrrShareSpec, 1);
    s->slices_per_gpu = s->nodes_per_rack = s->racks_per_block = 1;
    return s;
}

void orr_share_spec_free(OrrShareSpec *s) {
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        g_free(s->jobs[i].name);
        g_free(s->jobs[i].job_ref);
        g_free(s->jobs[i].sets);
        g_free(s->jobs[i].selector);
    }
    g_strfreev(s->node_class);
    g_strfreev(s->spot_classes);
    g_free(s->cluster_ref);
    g_free(s->table);
    g_free(s->jobs);
    g_free(s);
}

bool orr_share_node_is_spot(const OrrShareSpec *s, uint32_t node) {
    return s->spot_classes && s->node_class &&
           g_strv_contains((const char *const *)s->spot_classes, s->node_class[node]);
}
