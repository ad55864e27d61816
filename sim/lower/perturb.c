/* Perturbations in a bound program. Ranks get a speed, links what is left of their capacity
 * (bind_links.c), the bytes of a missing NIC go over the next one of its node. Before links that
 * cannot saturate are left out, so that a weak link stays in; plans keep the rates of a sound
 * machine, and the weak link limits them. */
#include "sim/lower/lower_priv.h"

#include <math.h>

uint32_t orr_lower__speed(const OrrLowering *in, uint32_t rank) {
    return (uint32_t)llround(orr_perturbs_speed(in->perturbs, rank, in->seed) * ORR_RATE_ONE);
}

void orr_lower__perturb_ranks(const OrrBinder *k) {
    const OrrLowering *in = k->in;
    if (!in->perturbs || !orr_perturbs_have_speeds(in->perturbs))
        return;
    g_autofree uint32_t *speed = g_new(uint32_t, k->bound->n_ranks);
    for (uint32_t i = 0; i < k->bound->n_ranks; i++)
        speed[i] = orr_lower__speed(in, orr_cells_rank(k->cells, i));
    orr_bound_set_speeds(k->bound, speed);
}

void orr_lower__take_detours(const OrrLowering *in, GArray *uses) {
    bool is_any = false;
    if (!in->perturbs || !orr_perturbs_have_missing(in->perturbs))
        return;
    for (guint i = 0; i < uses->len; i++) {
        OrrUse *use = &g_array_index(uses, OrrUse, i);
        uint32_t detour = orr_perturbs_detour(in->perturbs, in->cluster, use->constraint);
        is_any |= detour != use->constraint;
        use->constraint = detour;
    }
    if (is_any)
        orr_lower__merge_uses(uses);
}
