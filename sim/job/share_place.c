/* Room for one job: the tightest place that holds it, so that large holes stay whole. */
#include "sim/job/share_priv.h"

#include <string.h>

Floor orr_share__floor(const OrrShareSpec *spec) {
    Floor f = {spec, g_new(uint32_t, spec->n_nodes + 1)};
    for (uint32_t i = 0; i < spec->n_nodes; i++)
        f.free[i] = spec->gpus_per_node * spec->slices_per_gpu;
    return f;
}

Floor orr_share__floor_copy(const Floor *floor) {
    Floor f = {floor->spec, g_memdup2(floor->free, floor->spec->n_nodes * sizeof *floor->free)};
    return f;
}

uint32_t orr_share__units_of_job(const OrrShareSpec *spec, const OrrShareJob *job) {
    return job->gpus > 0 ? job->gpus * spec->slices_per_gpu : job->slices;
}

static bool may_use(const OrrShareSpec *s, const OrrShareJob *job, uint32_t node) {
    return *job->selector == '\0' ||
           (s->node_class && strcmp(s->node_class[node], job->selector) == 0);
}

uint64_t orr_share__units_free(const Floor *floor, const OrrShareJob *job) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < floor->spec->n_nodes; i++)
        if (may_use(floor->spec, job, i))
            sum += floor->free[i];
    return sum;
}

void orr_share__grant_clear(Grant *grant) {
    g_free(grant->nodes);
    g_free(grant->units);
    *grant = (Grant){0};
}

void orr_share__release(Floor *floor, Grant *grant) {
    for (uint32_t i = 0; i < grant->n; i++)
        floor->free[grant->nodes[i]] += grant->units[i];
    orr_share__grant_clear(grant);
}

/* Nodes [from, to) that hold @job: whole nodes, then the rest on the tightest of the others.
 * Returns how many nodes, 0 if there is no room; @nodes and @units have room for them. */
static uint32_t fit(const Floor *f, const OrrShareJob *job, uint32_t from, uint32_t to,
                    uint32_t *nodes, uint32_t *units) {
    const OrrShareSpec *s = f->spec;
    uint32_t per_node = s->gpus_per_node * s->slices_per_gpu, n = 0;
    uint32_t whole = orr_share__units_of_job(s, job) / per_node;
    uint32_t rest = orr_share__units_of_job(s, job) % per_node;
    for (uint32_t i = from; i < to && n < whole; i++)
        if (f->free[i] == per_node && may_use(s, job, i)) {
            nodes[n] = i;
            units[n++] = per_node;
        }
    if (n < whole)
        return 0;
    uint32_t best = UINT32_MAX, after = whole > 0 ? nodes[n - 1] : 0;
    for (uint32_t i = from; rest > 0 && i < to; i++) {
        bool is_taken = whole > 0 && f->free[i] == per_node && i <= after;
        if (f->free[i] < rest || !may_use(s, job, i) || is_taken)
            continue;
        if (best == UINT32_MAX || f->free[i] < f->free[best])
            best = i;
    }
    if (rest == 0)
        return n;
    if (best == UINT32_MAX)
        return 0;
    nodes[n] = best;
    units[n++] = rest;
    return n;
}

static uint32_t free_in(const Floor *f, uint32_t from, uint32_t to) {
    uint32_t sum = 0;
    for (uint32_t i = from; i < to; i++)
        sum += f->free[i];
    return sum;
}

/* The tightest group of @span nodes that holds the job. */
static uint32_t fit_group(const Floor *f, const OrrShareJob *job, uint32_t span, uint32_t *nodes,
                          uint32_t *units) {
    uint32_t best_from = UINT32_MAX, best_free = 0, n_nodes = f->spec->n_nodes;
    for (uint32_t from = 0; from < n_nodes; from += span) {
        uint32_t to = MIN(from + span, n_nodes), left = free_in(f, from, to);
        if ((best_from == UINT32_MAX || left < best_free) &&
            fit(f, job, from, to, nodes, units) > 0) {
            best_from = from;
            best_free = left;
        }
    }
    if (best_from == UINT32_MAX)
        return 0;
    return fit(f, job, best_from, MIN(best_from + span, n_nodes), nodes, units);
}

bool orr_share__place(Floor *f, const OrrShareJob *job, Grant *grant) {
    const OrrShareSpec *s = f->spec;
    g_autofree uint32_t *nodes = g_new(uint32_t, s->n_nodes + 1);
    g_autofree uint32_t *units = g_new(uint32_t, s->n_nodes + 1);
    uint32_t rack = s->nodes_per_rack, block = rack * s->racks_per_block;
    uint32_t n = fit_group(f, job, rack, nodes, units);
    if (n == 0 && job->place != ORR_PLACE_RACK)
        n = fit_group(f, job, block, nodes, units);
    if (n == 0 && job->place == ORR_PLACE_ANY)
        n = fit(f, job, 0, s->n_nodes, nodes, units);
    if (n == 0)
        return false;
    if (!grant)
        return true;
    for (uint32_t i = 0; i < n; i++)
        f->free[nodes[i]] -= units[i];
    grant->nodes = g_memdup2(nodes, n * sizeof *nodes);
    grant->units = g_memdup2(units, n * sizeof *units);
    grant->n = n;
    return true;
}
