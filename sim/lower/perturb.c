/* Perturbations in a bound program. Ranks get a speed, links what is left of their capacity, the
 * bytes of a missing NIC go over the next one of its node. Before links that cannot saturate are
 * left out, so that a weak link stays in; plans keep the rates of a sound machine, and the weak
 * link limits them. */
#include "sim/lower/lower_priv.h"

#include <math.h>

static void set_speeds(const OrrLowering *in, OrrBound *b) {
    if (!orr_perturbs_have_speeds(in->perturbs))
        return;
    g_autofree uint32_t *speed = g_new(uint32_t, b->n_ranks);
    for (uint32_t r = 0; r < b->n_ranks; r++)
        speed[r] = (uint32_t)llround(orr_perturbs_speed(in->perturbs, r, in->seed) * ORR_RATE_ONE);
    orr_bound_set_speeds(b, speed);
}

static int by_link(const void *a, const void *b) {
    const OrrUse *x = a, *y = b;
    return (x->constraint > y->constraint) - (x->constraint < y->constraint);
}

/* Sends uses of missing links elsewhere; uses of one link become one. */
static void take_detours(OrrLoads *l, uint32_t n_places, const uint32_t *detour) {
    uint32_t out = 0, begin = 0;
    for (uint32_t v = 0; v < n_places * l->n_loads; v++) {
        uint32_t first = out, end = l->first[v + 1];
        l->first[v] = out;
        for (uint32_t i = begin; i < end; i++)
            l->uses[i].constraint = detour[l->uses[i].constraint];
        qsort(l->uses + begin, end - begin, sizeof *l->uses, by_link);
        for (uint32_t i = begin; i < end; i++)
            if (out > first && l->uses[out - 1].constraint == l->uses[i].constraint)
                l->uses[out - 1].coef += l->uses[i].coef;
            else
                l->uses[out++] = l->uses[i];
        begin = end;
    }
    l->first[n_places * l->n_loads] = out;
}

static void set_links(const OrrLowering *in, OrrBound *b) {
    g_autofree double *factor = g_new(double, b->n_links + 1);
    g_autofree uint32_t *detour = g_new(uint32_t, b->n_links + 1);
    bool is_any_missing = false;
    for (uint32_t l = 0; l < b->n_links; l++)
        factor[l] = 1;
    orr_perturbs_links(in->perturbs, in->cluster, factor);
    for (uint32_t l = 0; l < b->n_links; l++) {
        detour[l] = l;
        if (factor[l] == 1)
            continue;
        b->capacity[l] = (uint64_t)fmax((double)b->capacity[l] * factor[l], 1);
        is_any_missing |= factor[l] == 0;
        detour[l] = orr_perturbs_detour(in->cluster, factor, l);
    }
    for (int k = 0; is_any_missing && k < ORR_N_GROUPS; k++) {
        OrrBoundGroup *g = &b->groups[k];
        if (g->n_groups > 0 && g->loads.n_loads > 0)
            take_detours(&g->loads, g->n_groups, detour);
        if (g->n_pairs > 0)
            take_detours(&g->pair_loads, g->n_groups * g->n_pairs, detour);
    }
}

void orr_lower__perturb(const OrrLowering *in, OrrBound *bound) {
    set_speeds(in, bound);
    set_links(in, bound);
}
