#include "sim/facts/failures.h"

const char *const orr_failure_unit_names[] = {"gpu", "node", "switch", "rack", "job", NULL};
const char *const orr_failure_law_names[] = {"exponential", "weibull", "events", "periodic", NULL};
const char *const orr_effect_names[] = {"stop",  "hang",    "corrupt", "slow",
                                        "stall", "planned", "reclaim", NULL};
const char *const orr_scope_names[] = {"process", "node", "rack", "all", NULL};
const char *const orr_component_names[] = {"gpu",      "hbm",      "nvlink",  "pcie",    "nic",
                                           "cable",    "switch",   "network", "host",    "cpu",
                                           "memory",   "power",    "cooling", "storage", "software",
                                           "provider", "operator", "unknown", NULL};
const char *const orr_store_network_names[] = {"own", "compute", "peers", NULL};
const char *const orr_requeue_names[] = {"replaced", "all", NULL};
const char *const orr_elastic_names[] = {"no", "shrink", "shrink_keep_batch", NULL};

bool orr_effect_is_interruption(OrrEffect effect) {
    return effect != ORR_EFFECT_SLOW && effect != ORR_EFFECT_STALL;
}

OrrFailureSet *orr_failure_set_new(void) {
    OrrFailureSet *set = g_new0(OrrFailureSet, 1);
    set->name = g_strdup(""), set->summary = g_strdup(""), set->source = g_strdup("");
    return set;
}

void orr_failure_kind_clear(OrrFailureKind *kind) {
    g_free(kind->name);
    g_free(kind->component);
    g_free(kind->source);
    g_free(kind->event_ns);
    g_free(kind->slow_sets);
    g_free(kind->slow_part);
    g_free(kind->class_factor);
    g_free(kind->class_share);
    *kind = (OrrFailureKind){0};
}

void orr_failure_kind_copy(OrrFailureKind *to, const OrrFailureKind *from) {
    *to = *from;
    to->name = g_strdup(from->name);
    to->component = g_strdup(from->component);
    to->source = g_strdup(from->source);
    to->slow_sets = g_strdup(from->slow_sets);
    to->slow_part = g_strdup(from->slow_part);
    to->class_factor = g_memdup2(from->class_factor, from->n_classes * sizeof(double));
    to->class_share = g_memdup2(from->class_share, from->n_classes * sizeof(double));
    to->event_ns = g_memdup2(from->event_ns, from->n_events * sizeof *from->event_ns);
}

void orr_failure_set_free(OrrFailureSet *set) {
    if (!set)
        return;
    for (uint32_t i = 0; i < set->n; i++)
        orr_failure_kind_clear(&set->kinds[i]);
    g_free(set->kinds);
    g_free(set->name), g_free(set->summary), g_free(set->source);
    g_free(set);
}

OrrFailureKind *orr_failure_set_add(OrrFailureSet *set, const char *name) {
    set->kinds = g_renew(OrrFailureKind, set->kinds, set->n + 1);
    OrrFailureKind *kind = &set->kinds[set->n++];
    *kind = (OrrFailureKind){.name = g_strdup(name),
                             .component = g_strdup(""),
                             .source = g_strdup(""),
                             .shape = 1,
                             .slow_factor = 1,
                             .n_units = 1};
    return kind;
}
