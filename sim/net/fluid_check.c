/* The invariants of the fluid, and its counters. Cost of the check: one visit a use. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

#include <glib.h>
#include <inttypes.h>

static char *link_flaw(const OrrFluid *f, uint32_t link) {
    const OrrLinkState *l = &f->links[link];
    OrrWide usage = 0, potential = 0;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        const OrrActivity *a = &f->activities[f->records[r].activity];
        const OrrUse *use = &a->uses[r - a->first_record];
        usage += (OrrWide)orr_fluid__factor(use) * a->rate;
        potential += (OrrWide)orr_fluid__factor(use) * a->top;
    }
    if (usage != f->rooms[link].usage || potential != l->potential)
        return g_strdup_printf(
            "link %u: its activities use %" PRIu64 " bytes/s, and its sum is %" PRIu64, link,
            (uint64_t)(usage / ORR_COEF_ONE), (uint64_t)(f->rooms[link].usage / ORR_COEF_ONE));
    if (usage > l->capacity)
        return g_strdup_printf(
            "link %u carries %" PRIu64 " bytes/s, more than its capacity of %" PRIu64, link,
            (uint64_t)(usage / ORR_COEF_ONE), (uint64_t)(l->capacity / ORR_COEF_ONE));
    return NULL;
}

char *orr_fluid_flaw(const OrrFluid *f) {
    if (f->lost_bytes > 0)
        return g_strdup_printf("%" PRIu64 " bytes are lost: activities were ended before they were "
                               "due",
                               f->lost_bytes);
    for (uint32_t l = 0; l < f->n_links; l++) {
        char *flaw = link_flaw(f, l);
        if (flaw != NULL)
            return flaw;
    }
    for (uint32_t i = 0; i < f->n_activities; i++) {
        const OrrActivity *a = &f->activities[i];
        if (!a->is_live)
            continue;
        OrrActivity fresh = *a;
        orr_fluid__find_stop(f, &fresh);
        if (fresh.stop != a->stop || a->rate != orr_fluid__rate_at(a, a->stop))
            return g_strdup_printf("activity %u runs at %" PRIu64
                                   " bytes/s; its links let it have %" PRIu64,
                                   i, a->rate, orr_fluid__rate_at(a, fresh.stop));
    }
    return NULL;
}

void orr_fluid_stats(const OrrFluid *f, OrrFluidStats *stats) {
    *stats = f->stats;
}
