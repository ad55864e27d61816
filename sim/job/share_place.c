/* Room for one job: the tightest place that holds it, so that large holes stay whole. */
#include "sim/job/share_priv.h"

#include <string.h>

/* Profiles of MIG by compute slices: how many memory slices of 8 each takes, and where it may begin
 * (NVIDIA Multi-Instance GPU User Guide, placements of nvidia-smi mig -lgipp on A100 and H100). */
static const struct {
    uint32_t slices;
    uint8_t memory, n_starts, starts[7];
} mig[] = {
    {1, 1, 7, {6, 5, 4, 3, 2, 1, 0}},
    {2, 2, 3, {4, 2, 0}},
    {3, 4, 2, {4, 0}},
    {4, 4, 1, {0}},
    {7, 8, 1, {0}},
};

bool orr_share__mig_has(uint32_t slices) {
    for (size_t i = 0; i < G_N_ELEMENTS(mig); i++)
        if (mig[i].slices == slices)
            return true;
    return false;
}

double orr_share_memory_frac(const OrrShareSpec *s, const OrrShareJob *j) {
    if (j->gpus > 0 || s->slices_per_gpu == 1)
        return 1;
    for (size_t i = 0; s->slicing == ORR_SLICING_MIG && i < G_N_ELEMENTS(mig); i++)
        if (mig[i].slices == j->slices)
            return mig[i].memory / 8.0;
    return (double)j->slices / s->slices_per_gpu;
}

/* Memory slices that a profile would take on a GPU with @taken; 0: no place. From the end, so that
 * the one place of the large profiles stays free. */
static uint8_t mig_place(uint8_t taken, uint32_t slices) {
    for (size_t i = 0; i < G_N_ELEMENTS(mig); i++)
        for (int k = 0; mig[i].slices == slices && k < mig[i].n_starts; k++) {
            uint8_t mask = (uint8_t)(((1u << mig[i].memory) - 1) << mig[i].starts[k]);
            if (!(taken & mask))
                return mask;
        }
    return 0;
}

Floor orr_share__floor(const OrrShareSpec *s) {
    Floor f = {.spec = s, .free = g_new(uint32_t, s->n_nodes + 1)};
    f.is_out = g_new0(bool, s->n_nodes + 1);
    gsize gpus = (gsize)s->n_nodes * s->gpus_per_node;
    f.whole = s->slices_per_gpu == 1 ? f.free : g_new(uint32_t, s->n_nodes + 1);
    f.used = s->slices_per_gpu == 1 ? NULL : g_new0(uint32_t, gpus);
    f.places =
        s->slices_per_gpu == 1 || s->slicing != ORR_SLICING_MIG ? NULL : g_new0(uint8_t, gpus);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        f.whole[i] = s->gpus_per_node;
        f.free[i] = s->gpus_per_node * s->slices_per_gpu;
    }
    return f;
}

Floor orr_share__floor_copy(const Floor *from) {
    const OrrShareSpec *s = from->spec;
    gsize n = s->n_nodes, gpus = n * s->gpus_per_node;
    Floor f = {.spec = s, .free = g_memdup2(from->free, n * sizeof *from->free)};
    f.is_out = g_memdup2(from->is_out, n * sizeof *from->is_out);
    f.whole = from->used ? g_memdup2(from->whole, n * sizeof *from->whole) : f.free;
    f.used = from->used ? g_memdup2(from->used, gpus * sizeof *from->used) : NULL;
    f.places = from->places ? g_memdup2(from->places, gpus) : NULL;
    return f;
}

void orr_share__floor_clear(Floor *f) {
    if (f->whole != f->free)
        g_free(f->whole);
    g_free(f->free);
    g_free(f->used);
    g_free(f->places);
    g_free(f->is_out);
    *f = (Floor){0};
}

uint32_t orr_share__units_of_job(const OrrShareSpec *spec, const OrrShareJob *job) {
    return job->gpus > 0 ? job->gpus * spec->slices_per_gpu : job->slices;
}

static bool may_use(const Floor *f, const OrrShareJob *job, uint32_t node) {
    const OrrShareSpec *s = f->spec;
    return !f->is_out[node] && (*job->selector == '\0' ||
                                (s->node_class && strcmp(s->node_class[node], job->selector) == 0));
}

uint64_t orr_share__units_free(const Floor *floor, const OrrShareJob *job) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < floor->spec->n_nodes; i++)
        if (may_use(floor, job, i))
            sum += floor->free[i];
    return sum;
}

void orr_share__grant_clear(Grant *grant) {
    g_free(grant->nodes);
    g_free(grant->units);
    g_free(grant->gpus);
    *grant = (Grant){0};
}

void orr_share__give(Floor *f, const Grant *g) {
    for (uint32_t i = 0; i < g->n; i++)
        f->free[g->nodes[i]] += g->units[i];
    for (uint32_t i = 0; i < g->n_gpus; i++) {
        f->used[g->gpus[i]] -= g->units_per_gpu;
        f->whole[g->gpus[i] / f->spec->gpus_per_node] += f->used[g->gpus[i]] == 0;
        if (f->places)
            f->places[g->gpus[i]] &= (uint8_t)~g->places;
    }
}

void orr_share__grant_span(const OrrShareSpec *s, const Grant *g, uint32_t *racks,
                           uint32_t *blocks) {
    uint32_t rack_before = UINT32_MAX, block_before = UINT32_MAX;
    *racks = *blocks = 0;
    for (uint32_t i = 0; i < g->n; i++) { /* nodes are in order but for the last */
        uint32_t rack = g->nodes[i] / s->nodes_per_rack, block = rack / s->racks_per_block;
        bool is_rack = rack != rack_before, is_block = block != block_before;
        for (uint32_t k = 0; i + 1 == g->n && k + 1 < i; k++) {
            uint32_t other = g->nodes[k] / s->nodes_per_rack;
            is_rack = is_rack && other != rack;
            is_block = is_block && other / s->racks_per_block != block;
        }
        *racks += is_rack;
        *blocks += is_block;
        rack_before = rack;
        block_before = block;
    }
}

/* The most used GPU of @node that has room for the slices; ORR_SHARE_NONE: none. */
static uint32_t gpu_for(const Floor *f, const OrrShareJob *job, uint32_t node) {
    const OrrShareSpec *s = f->spec;
    uint32_t best = ORR_SHARE_NONE;
    for (uint32_t g = node * s->gpus_per_node; g < (node + 1) * s->gpus_per_node; g++) {
        uint32_t used = f->used ? f->used[g] : 0;
        bool has_room = used + job->slices <= s->slices_per_gpu &&
                        (!f->places || mig_place(f->places[g], job->slices) != 0);
        if (has_room && (best == ORR_SHARE_NONE || used > f->used[best]))
            best = g;
    }
    return best;
}

/* Whether the rest of a job, @gpus whole ones or its slices, goes on @node. */
static bool holds_rest(const Floor *f, const OrrShareJob *job, uint32_t gpus, uint32_t node) {
    if (gpus > 0)
        return f->whole[node] >= gpus;
    return f->free[node] >= job->slices && (!f->used || gpu_for(f, job, node) != ORR_SHARE_NONE);
}

/* Nodes [from, to) that hold @job: whole nodes, then the rest on the tightest of the others.
 * Returns how many nodes, 0 if there is no room; @nodes and @units have room for them. */
static uint32_t fit(const Floor *f, const OrrShareJob *job, uint32_t from, uint32_t to,
                    uint32_t *nodes, uint32_t *units) {
    const OrrShareSpec *s = f->spec;
    uint32_t per_node = s->gpus_per_node, n = 0;
    uint32_t whole = job->gpus / per_node, rest = job->gpus % per_node;
    for (uint32_t i = from; i < to && n < whole; i++)
        if (f->whole[i] == per_node && may_use(f, job, i)) {
            nodes[n] = i;
            units[n++] = per_node * s->slices_per_gpu;
        }
    if (n < whole)
        return 0;
    if (rest == 0 && job->gpus > 0)
        return n;
    uint32_t best = UINT32_MAX, after = whole > 0 ? nodes[n - 1] : 0;
    for (uint32_t i = from; i < to; i++) {
        bool is_taken = whole > 0 && f->whole[i] == per_node && i <= after;
        if (is_taken || !may_use(f, job, i) || !holds_rest(f, job, rest, i))
            continue;
        if (best == UINT32_MAX || f->free[i] < f->free[best])
            best = i;
    }
    if (best == UINT32_MAX)
        return 0;
    nodes[n] = best;
    units[n++] = rest > 0 ? rest * s->slices_per_gpu : job->slices;
    return n;
}

static uint64_t free_in(const Floor *f, uint32_t from, uint32_t to) {
    uint64_t sum = 0;
    for (uint32_t i = from; i < to; i++)
        sum += f->is_out[i] ? 0 : f->free[i];
    return sum;
}

/* The tightest group of @span nodes that holds the job. */
static uint32_t fit_group(const Floor *f, const OrrShareJob *job, uint32_t span, uint32_t *nodes,
                          uint32_t *units) {
    uint32_t best_from = UINT32_MAX, n_nodes = f->spec->n_nodes;
    uint64_t best_free = 0;
    for (uint32_t from = 0; from < n_nodes; from += MIN(span, n_nodes - from)) {
        uint32_t to = from + MIN(span, n_nodes - from);
        uint64_t left = free_in(f, from, to);
        if (left >= orr_share__units_of_job(f->spec, job) &&
            (best_from == UINT32_MAX || left < best_free) &&
            fit(f, job, from, to, nodes, units) > 0) {
            best_from = from;
            best_free = left;
        }
    }
    if (best_from == UINT32_MAX)
        return 0;
    return fit(f, job, best_from, best_from + MIN(span, n_nodes - best_from), nodes, units);
}

/* Which GPUs a job gets where they are sliced. */
static void choose_gpus(const Floor *f, const OrrShareJob *job, Grant *g) {
    const OrrShareSpec *s = f->spec;
    g->gpus = g_new(uint32_t, MAX(job->gpus, 1));
    g->units_per_gpu = job->gpus > 0 ? s->slices_per_gpu : job->slices;
    g->places = 0xff; /* all of it */
    if (job->gpus == 0) {
        uint32_t gpu = g->gpus[g->n_gpus++] = gpu_for(f, job, g->nodes[0]);
        g->places = f->places ? mig_place(f->places[gpu], job->slices) : 0;
    }
    for (uint32_t i = 0; job->gpus > 0 && i < g->n; i++) {
        uint32_t want = g->units[i] / s->slices_per_gpu, gpu = g->nodes[i] * s->gpus_per_node;
        for (; want > 0; gpu++)
            if (f->used[gpu] == 0) {
                g->gpus[g->n_gpus++] = gpu;
                want--;
            }
    }
}

void orr_share__take(Floor *f, const Grant *g) {
    for (uint32_t i = 0; i < g->n; i++)
        f->free[g->nodes[i]] -= g->units[i];
    for (uint32_t i = 0; i < g->n_gpus; i++) {
        f->whole[g->gpus[i] / f->spec->gpus_per_node] -= f->used[g->gpus[i]] == 0;
        f->used[g->gpus[i]] += g->units_per_gpu;
        if (f->places)
            f->places[g->gpus[i]] |= g->places;
    }
}

bool orr_share__place(Floor *f, const OrrShareJob *job, Grant *grant) {
    const OrrShareSpec *s = f->spec;
    g_autofree uint32_t *nodes = g_new(uint32_t, s->n_nodes + 1);
    g_autofree uint32_t *units = g_new(uint32_t, s->n_nodes + 1);
    uint32_t rack = s->nodes_per_rack;
    uint32_t block = (uint32_t)MIN((uint64_t)rack * s->racks_per_block, s->n_nodes);
    uint32_t n = 0, whole = job->gpus / s->gpus_per_node;
    if (whole <= rack)
        n = fit_group(f, job, rack, nodes, units);
    if (n == 0 && job->place != ORR_PLACE_RACK && whole <= block)
        n = fit_group(f, job, block, nodes, units);
    if (n == 0 && job->place == ORR_PLACE_ANY)
        n = fit(f, job, 0, s->n_nodes, nodes, units);
    if (n == 0)
        return false;
    if (!grant)
        return true;
    *grant = (Grant){.nodes = g_memdup2(nodes, n * sizeof *nodes),
                     .units = g_memdup2(units, n * sizeof *units),
                     .n = n};
    if (f->used)
        choose_gpus(f, job, grant);
    orr_share__take(f, grant);
    return true;
}
