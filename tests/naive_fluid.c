#include "tests/naive_fluid.h"

#include <glib.h>

#include "sim/net/level.h"

typedef struct {
    const OrrFlow *flow;
    uint64_t top, top_level, scale;
    bool is_stopped;
} Riser;

static OrrWide load(const OrrUse *u, uint64_t rate) {
    return (OrrWide)u->count * u->coef * rate;
}

static Riser make_riser(const OrrFlow *flow, const uint64_t *capacity) {
    Riser x = {.flow = flow, .top = flow->cap_bytes_per_s};
    uint32_t largest = 0;
    for (uint32_t u = 0; u < flow->n_uses; u++) {
        OrrWide alone = (OrrWide)capacity[flow->uses[u].constraint] * ORR_COEF_ONE;
        x.top = MIN(x.top, (uint64_t)(alone / flow->uses[u].coef));
        largest = MAX(largest, flow->uses[u].coef);
    }
    x.scale = largest == 0 ? 1 : orr_level__scale(flow->weight, largest);
    x.top_level = orr_level__of_cap(x.top, x.scale);
    return x;
}

/* The level at which the link is full as things are, or none. */
static uint64_t level_of(const Riser *risers, uint32_t n, const uint64_t *rate, uint32_t link,
                         uint64_t capacity) {
    OrrWide left = (OrrWide)capacity * ORR_COEF_ONE, slope = 0, potential = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < risers[i].flow->n_uses; k++) {
            const OrrUse *u = &risers[i].flow->uses[k];
            if (u->constraint != link)
                continue;
            potential += load(u, risers[i].top);
            if (risers[i].is_stopped)
                left -= load(u, rate[i]);
            else
                slope += load(u, risers[i].scale);
        }
    if (potential <= (OrrWide)capacity * ORR_COEF_ONE || slope == 0)
        return ORR_LEVEL_NONE;
    return orr_level__of_constraint(left, slope);
}

static bool uses_link_at(const Riser *x, const uint64_t *level, uint64_t at) {
    for (uint32_t u = 0; u < x->flow->n_uses; u++)
        if (level[x->flow->uses[u].constraint] == at)
            return true;
    return false;
}

void naive_rates(const OrrFlow *const *flows, uint32_t n, const uint64_t *capacity,
                 uint32_t n_links, uint64_t *rate) {
    g_autofree Riser *risers = g_new(Riser, n + 1);
    g_autofree uint64_t *level = g_new(uint64_t, n_links + 1);
    for (uint32_t i = 0; i < n; i++)
        risers[i] = make_riser(flows[i], capacity);
    for (uint32_t n_left = n; n_left > 0;) {
        uint64_t lowest = ORR_LEVEL_NONE;
        for (uint32_t l = 0; l < n_links; l++) {
            level[l] = level_of(risers, n, rate, l, capacity[l]);
            lowest = MIN(lowest, level[l]);
        }
        for (uint32_t i = 0; i < n; i++)
            if (!risers[i].is_stopped)
                lowest = MIN(lowest, risers[i].top_level);
        for (uint32_t i = 0; i < n; i++) {
            Riser *x = &risers[i];
            bool is_at_top = x->top_level == lowest;
            if (x->is_stopped || (!is_at_top && !uses_link_at(x, level, lowest)))
                continue;
            rate[i] = is_at_top ? x->top : orr_level__rate(x->scale, lowest);
            x->is_stopped = true;
            n_left--;
        }
    }
}

static uint64_t top_of(const OrrFlow *x, const uint64_t *capacity) {
    uint64_t top = x->cap_bytes_per_s;
    for (uint32_t u = 0; u < x->n_uses; u++) {
        OrrWide alone = (OrrWide)capacity[x->uses[u].constraint] * ORR_COEF_ONE;
        top = MIN(top, (uint64_t)(alone / x->uses[u].coef));
    }
    return top;
}

void solved_rates(const OrrFlow *const *flows, uint32_t n, const uint64_t *capacity,
                  uint32_t n_links, uint64_t *rate) {
    g_autofree OrrWide *wide = g_new(OrrWide, n_links + 1);
    g_autofree OrrWide *potential = g_new0(OrrWide, n_links + 1);
    g_autofree OrrSolveActivity *activities = g_new0(OrrSolveActivity, n + 1);
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    for (uint32_t l = 0; l < n_links; l++)
        wide[l] = (OrrWide)capacity[l] * ORR_COEF_ONE;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t u = 0; u < flows[i]->n_uses; u++)
            potential[flows[i]->uses[u].constraint] +=
                load(&flows[i]->uses[u], top_of(flows[i], capacity));
    for (uint32_t i = 0; i < n; i++) {
        OrrSolveActivity *a = &activities[i];
        *a = (OrrSolveActivity){uses->len, 0, flows[i]->weight, 0, top_of(flows[i], capacity)};
        for (uint32_t u = 0; u < flows[i]->n_uses; u++) {
            OrrUse use = flows[i]->uses[u];
            a->scale_coef = MAX(a->scale_coef, use.coef);
            if (potential[use.constraint] > wide[use.constraint])
                g_array_append_val(uses, use);
        }
        a->n_uses = uses->len - a->first_use;
    }
    OrrSolver *s = orr_solver_new();
    orr_solver_run(s, &(OrrSolveProblem){.activities = activities,
                                         .n = n,
                                         .uses = (const OrrUse *)uses->data,
                                         .capacity = wide,
                                         .n_constraints = n_links,
                                         .rate = rate});
    orr_solver_free(s);
}
