#include "sim/api/share_price.h"

#include "sim/api/step_priv.h"
#include "topologies/loader.h"
#include "workloads/loader_run.h"

#include <math.h>
#include <string.h>

/* A job file with its overrides and number of GPUs: what several jobs may have in common. */
typedef struct {
    uint32_t first, asked_gpus; /* job; what the table says */
    char *cluster_ref;
    GPtrArray *texts;
    GArray *overrides; /* OrrOverride */
    OrrStepRequest request;
    OrrStepRun *step;    /* loaded, never executed: what the others borrow from */
    OrrCluster *cluster; /* the whole of it; NULL: the job's own */
    GArray *priced;      /* Priced */
    int64_t peak_bytes, capacity_bytes;
} Model;

typedef struct {
    uint32_t racks, blocks;
    int64_t step_ns;
} Priced;

struct OrrSharePrices {
    const OrrShareSpec *spec;
    GPtrArray *models;  /* Model* */
    uint32_t *model_of; /* of each job; ORR_SHARE_NONE: it has no file */
    GMutex lock;
    GError *error;
};

static void model_free(gpointer data) {
    Model *m = data;
    if (!m)
        return;
    orr_step_free(m->step);
    orr_cluster_free(m->cluster);
    g_array_unref(m->priced);
    g_array_unref(m->overrides);
    g_ptr_array_unref(m->texts);
    g_free(m->cluster_ref);
    g_free(m);
}

/* @ref with @gpus GPUs: "NAME", "NAME:512" or "clos:64 node:8 ...". */
static char *cluster_of(const char *ref, uint32_t gpus) {
    g_auto(GStrv) words = g_strsplit(ref, " ", 2);
    char *colon = strrchr(words[0], ':');
    if (colon && g_ascii_isdigit(colon[1]))
        *colon = '\0';
    return g_strdup_printf("%s:%u%s%s", words[0], gpus, words[1] ? " " : "",
                           words[1] ? words[1] : "");
}

static void override(Model *m, const char *group, const char *key, const char *value) {
    OrrOverride o = {group, key, value};
    g_array_append_val(m->overrides, o);
}

static uint32_t world_of(const Model *m) {
    return (uint32_t)orr_layout_world(&m->step->job->layout);
}

/* The whole cluster as this job sees it: its own overrides of the file apply. */
static bool load_cluster(Model *m, const OrrShareSpec *s, GError **error) {
    uint32_t n;
    g_autofree OrrOverride *all =
        orr_workload_job_overrides(m->step->job, m->request.overrides, m->request.n_overrides, &n);
    g_autofree OrrTopologySet *sets = g_new0(OrrTopologySet, n + 1);
    for (uint32_t i = 0; i < n; i++)
        sets[i] = (OrrTopologySet){all[i].group, all[i].key, all[i].value};
    if (*m->step->job->routing)
        sets[n++] = (OrrTopologySet){"cluster", "routing", m->step->job->routing};
    OrrTopologyOptions options = {sets, n, NULL};
    m->cluster = orr_topology_cluster(s->cluster_ref, &options, error);
    return m->cluster != NULL;
}

static void note_sources(const OrrStepRun *step, OrrSources *sources) {
    for (guint i = 0; i < step->sources->inputs->len; i++) {
        const OrrInput *in = step->sources->inputs->pdata[i];
        bool is_known = false;
        for (guint k = 0; k < sources->inputs->len && !is_known; k++)
            is_known = strcmp(((OrrInput *)sources->inputs->pdata[k])->name, in->name) == 0;
        if (is_known)
            continue;
        OrrInput *copy = g_new(OrrInput, 1);
        *copy = (OrrInput){g_strdup(in->name), g_strdup(in->sha256)};
        g_ptr_array_add(sources->inputs, copy);
    }
}

static Model *model_new(const OrrShareSpec *s, uint32_t job, const OrrOverride *overrides,
                        uint32_t n_overrides, const char *calibration) {
    const OrrShareJob *j = &s->jobs[job];
    Model *m = g_new0(Model, 1);
    m->first = job;
    m->asked_gpus = j->gpus;
    m->texts = g_ptr_array_new_with_free_func(g_free);
    m->overrides = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    m->priced = g_array_new(FALSE, FALSE, sizeof(Priced));
    for (uint32_t i = 0; i < n_overrides; i++)
        override(m, overrides[i].group, overrides[i].key, overrides[i].value);
    uint32_t gpus = j->gpus > 0 ? j->gpus : j->slices > 0 ? 1 : 0;
    if (*s->cluster_ref && gpus > 0)
        m->cluster_ref = cluster_of(s->cluster_ref, gpus);
    if (m->cluster_ref)
        override(m, "job", "cluster", m->cluster_ref);
    m->request =
        (OrrStepRequest){.job = j->job_ref, .calibration = calibration, .is_unbound = true};
    return m;
}

static bool load(Model *m, OrrShareSpec *s, OrrSources *sources, GError **error) {
    OrrShareJob *j = &s->jobs[m->first];
    if (!orr_run_parse_sets(j->sets, m->texts, m->overrides, error))
        return false;
    m->request.overrides = (const OrrOverride *)(void *)m->overrides->data;
    m->request.n_overrides = m->overrides->len;
    m->step = orr_step_prepare(&m->request, error);
    if (!m->step || (*s->cluster_ref && !load_cluster(m, s, error)))
        return false;
    uint32_t world = world_of(m);
    if ((j->gpus > 0 && j->gpus != world) || (j->slices > 0 && world != 1))
        return orr_fail_input(error, "its layout has %u ranks for %u GPUs", world,
                              j->slices > 0 ? 1 : j->gpus);
    if (sources)
        note_sources(m->step, sources);
    return true;
}

/* Nodes spread evenly over so many racks, and the racks over so many blocks: the first ones of the
 * cluster, whose places are all alike. */
static uint32_t *gpus_over(const OrrShareSpec *s, uint32_t n_ranks, uint32_t racks,
                           uint32_t blocks) {
    uint32_t nodes = (n_ranks + s->gpus_per_node - 1) / s->gpus_per_node, n = 0;
    uint32_t *gpus = g_new(uint32_t, n_ranks + 1);
    for (uint32_t r = 0; r < racks; r++) {
        uint32_t first = (uint32_t)((uint64_t)r * blocks / racks); /* block of rack r */
        uint32_t in_block = r - (uint32_t)(((uint64_t)first * racks + blocks - 1) / blocks);
        uint32_t rack = first * s->racks_per_block + in_block;
        uint32_t from = (uint32_t)((uint64_t)r * nodes / racks);
        uint32_t to = (uint32_t)((uint64_t)(r + 1) * nodes / racks);
        for (uint32_t i = from; i < to; i++)
            for (uint32_t g = 0; g < s->gpus_per_node && n < n_ranks; g++)
                gpus[n++] = (rack * s->nodes_per_rack + i - from) * s->gpus_per_node + g;
    }
    return gpus;
}

static int64_t price(Model *m, const OrrShareSpec *s, uint32_t racks, uint32_t blocks,
                     GError **error) {
    OrrStepRequest request = m->request;
    OrrStepSpecs specs = {m->step->job, m->step->model,       m->step->framework,
                          m->cluster,   m->step->calibration, NULL};
    request.is_unbound = false;
    g_autoptr(OrrPlacement) placement = NULL;
    if (m->cluster) {
        uint32_t n = world_of(m);
        g_autofree uint32_t *gpus = gpus_over(s, n, racks, blocks);
        placement = orr_placement_explicit(m->cluster, gpus, n, error);
        if (!placement)
            return -1;
        specs.placement = placement;
        request.specs = &specs;
    }
    g_autoptr(OrrStepRun) step = orr_step_prepare(&request, error);
    if (!step || !orr_step_execute(step, NULL, NULL, 0, error))
        return -1;
    if (orr_step_record(step)->verdict == ORR_DOES_NOT_FIT) {
        orr_fail_input(error, "its step does not fit in the memory of %s; orrery step tells more",
                       orr_step_record(step)->gpu);
        return -1;
    }
    const OrrRecord *r = orr_step_record(step);
    Priced p = {racks, blocks, r->step_time_ns};
    m->capacity_bytes = r->capacity_bytes;
    for (uint32_t i = 0; i < r->n_stages; i++)
        m->peak_bytes = MAX(m->peak_bytes, r->stages[i].peak_bytes);
    g_array_append_val(m->priced, p);
    return p.step_ns;
}

/* More racks than the closest place has are priced at 1, 2, 4, 8, ... more, rounded up: beyond the
 * first ones a rack more changes little, and each price is a step simulated. */
static uint32_t rounded_racks(const Model *m, const OrrShareSpec *s, uint32_t racks,
                              uint32_t blocks) {
    uint32_t nodes = (world_of(m) + s->gpus_per_node - 1) / s->gpus_per_node;
    uint32_t closest = (nodes + s->nodes_per_rack - 1) / s->nodes_per_rack, more = 1;
    if (racks <= closest)
        return racks;
    while (more < racks - closest)
        more *= 2;
    uint64_t most = MIN((uint64_t)blocks * s->racks_per_block, nodes);
    most = MIN(most, s->n_nodes / s->nodes_per_rack);
    return MAX(racks, (uint32_t)MIN(most, (uint64_t)closest + more));
}

static int64_t price_once(Model *m, const OrrShareSpec *s, uint32_t racks, uint32_t blocks,
                          GError **error) {
    if (!m->cluster)
        racks = blocks = 1;
    else
        racks = rounded_racks(m, s, racks, blocks);
    for (guint i = 0; i < m->priced->len; i++) {
        const Priced *p = &g_array_index(m->priced, Priced, i);
        if (p->racks == racks && p->blocks == blocks)
            return p->step_ns;
    }
    return price(m, s, racks, blocks, error);
}

static bool is_same(const OrrShareJob *a, const OrrShareJob *b) {
    return strcmp(a->job_ref, b->job_ref) == 0 && strcmp(a->sets, b->sets) == 0 &&
           (a->slices > 0) == (b->slices > 0);
}

/* What the table leaves to the job file. */
static bool fill_job(const Model *m, OrrShareJob *j, GError **error) {
    if (j->gpus == 0 && j->slices == 0)
        j->gpus = world_of(m);
    double steps = j->steps > 0 ? j->steps : (double)j->work_ns / (double)j->step_ns;
    if (j->tokens > 0) {
        const OrrBatch *b = &m->step->job->batch;
        steps = ceil(j->tokens / ((double)b->global_sequences * b->sequence_tokens));
    }
    if (!(steps * (double)j->step_ns < 3e18))
        return orr_fail_input(error, "takes more than a century");
    if (j->work_ns == 0)
        j->work_ns = (int64_t)steps * j->step_ns;
    j->steps = steps;
    return true;
}

/* Of a job in slices: its part of the memory, too. */
static bool check_memory(const Model *m, const OrrShareSpec *s, const OrrShareJob *j,
                         GError **error) {
    double has = (double)m->capacity_bytes * orr_share_memory_frac(s, j);
    if ((double)m->peak_bytes <= has)
        return true;
    g_autofree char *needs = orr_units_bytes((double)m->peak_bytes);
    g_autofree char *there = orr_units_bytes(has);
    return orr_fail_input(error, "its step needs %s, and %u of %u slices have %s", needs, j->slices,
                          s->slices_per_gpu, there);
}

static bool add_job(OrrSharePrices *p, OrrShareSpec *s, uint32_t job, const OrrOverride *overrides,
                    uint32_t n_overrides, const char *calibration, OrrSources *sources,
                    GError **error) {
    OrrShareJob *j = &s->jobs[job];
    Model *m = NULL;
    for (guint i = 0; i < p->models->len && !m; i++) {
        Model *other = p->models->pdata[i];
        if (is_same(&s->jobs[other->first], j) && other->asked_gpus == j->gpus)
            m = other;
        p->model_of[job] = i;
    }
    if (!m) {
        m = model_new(s, job, overrides, n_overrides, calibration);
        p->model_of[job] = p->models->len;
        g_ptr_array_add(p->models, m);
        if (!load(m, s, sources, error))
            return false;
    }
    uint32_t racks, blocks;
    OrrShareJob sized = *j;
    sized.gpus = j->slices > 0 ? 0 : world_of(m);
    orr_share_closest(s, &sized, &racks, &blocks);
    if (m->cluster && world_of(m) > orr_cluster_spec(m->cluster)->n_gpus)
        return orr_fail_input(error, "%u GPUs are more than the cluster has", world_of(m));
    j->step_ns = price_once(m, s, racks, blocks, error);
    return j->step_ns > 0 && check_memory(m, s, j, error) && fill_job(m, j, error);
}

OrrSharePrices *orr_share_prices_new(OrrShareSpec *spec, const OrrOverride *overrides,
                                     uint32_t n_overrides, const char *calibration,
                                     OrrSources *sources, GError **error) {
    OrrSharePrices *p = g_new0(OrrSharePrices, 1);
    p->spec = spec;
    p->models = g_ptr_array_new_with_free_func(model_free);
    p->model_of = g_new(uint32_t, spec->n_jobs + 1);
    g_mutex_init(&p->lock);
    for (uint32_t i = 0; i < spec->n_jobs; i++) {
        p->model_of[i] = ORR_SHARE_NONE;
        if (*spec->jobs[i].job_ref == '\0' ||
            add_job(p, spec, i, overrides, n_overrides, calibration, sources, error))
            continue;
        g_prefix_error(error, "%s:%u: job %s: ", spec->table, spec->jobs[i].line,
                       spec->jobs[i].name);
        orr_share_prices_free(p);
        return NULL;
    }
    return p;
}

void orr_share_prices_free(OrrSharePrices *p) {
    if (!p)
        return;
    g_ptr_array_unref(p->models);
    g_mutex_clear(&p->lock);
    g_clear_error(&p->error);
    g_free(p->model_of);
    g_free(p);
}

int64_t orr_share_prices_step_ns(void *prices, uint32_t job, uint32_t racks, uint32_t blocks) {
    OrrSharePrices *p = prices;
    Model *m = p->models->pdata[p->model_of[job]];
    g_mutex_lock(&p->lock);
    g_autoptr(GError) flaw = NULL;
    int64_t step_ns = price_once(m, p->spec, racks, blocks, &flaw);
    if (step_ns <= 0) {
        step_ns = p->spec->jobs[job].step_ns;
        if (!p->error) {
            p->error = g_steal_pointer(&flaw);
            g_prefix_error(&p->error,
                           "job %s over %u racks and %u blocks: ", p->spec->jobs[job].name, racks,
                           blocks);
        }
    }
    g_mutex_unlock(&p->lock);
    return step_ns;
}

bool orr_share_prices_sound(OrrSharePrices *p, GError **error) {
    if (!p->error)
        return true;
    g_propagate_error(error, g_steal_pointer(&p->error));
    return false;
}

static gint by_spread(gconstpointer a, gconstpointer b) {
    const Priced *x = a, *y = b;
    if (x->racks != y->racks)
        return x->racks < y->racks ? -1 : 1;
    return x->blocks < y->blocks ? -1 : x->blocks > y->blocks;
}

void orr_share_prices_each(const OrrSharePrices *p,
                           void (*each)(void *data, uint32_t job, uint32_t racks, uint32_t blocks,
                                        int64_t step_ns),
                           void *data) {
    for (guint i = 0; i < p->models->len; i++) {
        Model *m = p->models->pdata[i];
        g_array_sort(m->priced, by_spread);
        for (guint k = 0; k < m->priced->len; k++) {
            const Priced *x = &g_array_index(m->priced, Priced, k);
            each(data, m->first, x->racks, x->blocks, x->step_ns);
        }
    }
}
