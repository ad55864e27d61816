/* What a tenth more of each thing that a machine has would do to the step, alone.
 *
 * Each is a run of its own on a copy of the cluster, prepared anew, so that what NCCL chooses and
 * what hides behind what may change with it: a difference, which no share of the critical path
 * tells (a path that gets shorter leaves another one the longest). Perturbations stay. */
#include "sim/api/step_priv.h"

#include "sim/base/parallel.h"

/* Gives @s @factor times as much of it; false: this machine has none. */
typedef bool Scale(OrrClusterSpec *s, double factor);

typedef struct {
    const char *name, *keys; /* of files and of --set */
    Scale *scale;
} Resource;

static bool scale_compute(OrrClusterSpec *s, double factor) {
    OrrGpu *g = s->node->gpu;
    for (int d = 0; d < ORR_N_DTYPES; d++)
        g->peak_flops_per_s[d] *= factor;
    g->vector_flops_per_s *= factor;
    return true;
}

static bool scale_memory(OrrClusterSpec *s, double factor) {
    s->node->gpu->hbm_bytes_per_s *= factor;
    return true;
}

static bool scale_nvlink(OrrClusterSpec *s, double factor) {
    OrrNode *n = s->node;
    n->gpu->nvlink_bytes_per_s *= factor;
    n->mesh_link_bytes_per_s *= factor;
    return n->nvlink != ORR_NVLINK_NONE;
}

static bool scale_pcie(OrrClusterSpec *s, double factor) {
    s->node->gpu->pcie_bytes_per_s *= factor;
    s->node->pcie_bytes_per_s *= factor;
    s->node->nic_pcie_bytes_per_s *= factor;
    return true;
}

static bool has_network(const OrrClusterSpec *s) {
    return s->n_gpus > s->node->gpus * s->node->domain_nodes;
}

static bool is_on_nics(const OrrClusterSpec *s) {
    return has_network(s) && s->fabric != ORR_FABRIC_NONE && s->node->nics > 0 &&
           !s->use_management;
}

static bool scale_nics(OrrClusterSpec *s, double factor) {
    s->node->nic_bytes_per_s *= factor;
    return is_on_nics(s);
}

static bool scale_management(OrrClusterSpec *s, double factor) {
    s->node->management_bytes_per_s *= factor;
    return has_network(s) && !is_on_nics(s);
}

/* Below 1 there is nothing to gain: a tier can't carry more than the one below it sends. */
static bool scale_tiers(OrrClusterSpec *s, double factor) {
    bool is_over = s->leaf_oversubscription > 1 || s->pod_oversubscription > 1;
    s->leaf_oversubscription = MAX(1, s->leaf_oversubscription / factor);
    s->pod_oversubscription = MAX(1, s->pod_oversubscription / factor);
    return is_on_nics(s) && s->fabric != ORR_FABRIC_FLAT && is_over;
}

static bool scale_latency(OrrClusterSpec *s, double factor) {
    s->hop_latency_ns /= factor;
    s->nic_latency_ns /= factor;
    s->node->nvlink_latency_ns /= factor;
    s->node->pcie_latency_ns /= factor;
    return true;
}

static bool scale_host(OrrClusterSpec *s, double factor) {
    s->node->host_speed *= factor;
    return true;
}

static const Resource resources[] = {
    {"tensor cores, vector units", "gpu.peak_*, gpu.vector", scale_compute},
    {"memory bandwidth", "gpu.memory_bandwidth", scale_memory},
    {"NVLink bandwidth", "gpu.nvlink, node.mesh_link", scale_nvlink},
    {"PCIe bandwidth", "gpu.pcie, node.pcie, node.nic_pcie", scale_pcie},
    {"NIC and fabric bandwidth", "node.nic", scale_nics},
    {"management network", "node.management", scale_management},
    {"bandwidth above NICs", "cluster.*_oversubscription", scale_tiers},
    {"latency of links", "cluster.*_latency, node.*_latency", scale_latency},
    {"host speed", "node.host_speed", scale_host},
};
#define N_RESOURCES G_N_ELEMENTS(resources)

typedef struct {
    const OrrStepRun *run;
    uint32_t n, which[N_RESOURCES]; /* those that the machine has */
    double factor;
    int64_t step_ns[N_RESOURCES];
    GError *errors[N_RESOURCES];
} Work;

/* Folded, as that is the same: but not where jitter was drawn. */
static bool simulate(const OrrStepRun *run, OrrCluster *cluster, int64_t *step_ns, GError **error) {
    const OrrStepSpecs *own = run->request->specs;
    OrrStepSpecs specs = {.job = run->job,
                          .model = run->model,
                          .framework = run->framework,
                          .cluster = cluster,
                          .calibration = run->calibration,
                          .placement = own ? own->placement : NULL};
    bool is_drawn = run->request->is_unfolded && orr_perturbs_jitter(run->perturbs) > 0;
    OrrStepRequest request = {.specs = &specs, .is_unfolded = is_drawn};
    g_autoptr(OrrStepRun) again = orr_step_prepare(&request, error);
    if (!again)
        return false;
    OrrExecOptions options = {.self_check = run->request->self_check};
    orr_step__set_jitter(again, is_drawn, run->job->seed, &options);
    const OrrBound *bound = again->folded ? again->folded : again->bound;
    g_autoptr(OrrExecResult) result = orr_exec_run(bound, &options, error);
    if (result)
        *step_ns = result->step_time_ns;
    return result != NULL;
}

static void run_piece(void *data, uint32_t i) {
    Work *w = data;
    OrrClusterSpec spec = orr_cluster_spec_copy(orr_cluster_spec(w->run->cluster));
    resources[w->which[i]].scale(&spec, w->factor);
    g_autoptr(OrrCluster) cluster = orr_cluster_new(&spec, &w->errors[i]);
    if (cluster)
        simulate(w->run, cluster, &w->step_ns[i], &w->errors[i]);
}

static void find_resources(Work *w) {
    for (uint32_t i = 0; i < N_RESOURCES; i++) {
        OrrClusterSpec spec = orr_cluster_spec_copy(orr_cluster_spec(w->run->cluster));
        if (resources[i].scale(&spec, w->factor))
            w->which[w->n++] = i;
        orr_cluster_spec_clear(&spec);
    }
}

/* Into the record, most saved first, equals as they stand above. */
static void fill(const Work *w, OrrRecord *record) {
    bool is_there[N_RESOURCES] = {false};
    record->sensitivity_factor = w->factor;
    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t best = w->n;
        for (uint32_t i = 0; i < w->n; i++)
            if (!is_there[i] && (best == w->n || w->step_ns[i] < w->step_ns[best]))
                best = i;
        is_there[best] = true;
        const Resource *r = &resources[w->which[best]];
        orr_record_add_sensitivity(record, r->name, r->keys, w->step_ns[best]);
    }
}

uint32_t orr_step_n_sensitivities(const OrrStepRun *run) {
    Work w = {.run = run, .factor = ORR_SENSITIVITY_FACTOR};
    find_resources(&w);
    return w.n;
}

bool orr_step_run_sensitivity(OrrStepRun *run, const OrrStepSensitivity *in, GError **error) {
    Work w = {.run = run, .factor = in->factor > 0 ? in->factor : ORR_SENSITIVITY_FACTOR};
    find_resources(&w);
    OrrParallelProgress progress = {in->progress, in->progress_data};
    orr_parallel(w.n, in->n_threads, run_piece, &w, &progress);
    bool is_fine = true;
    for (uint32_t i = 0; i < w.n; i++) {
        if (w.errors[i] && is_fine)
            g_propagate_error(error, g_steal_pointer(&w.errors[i]));
        is_fine &= w.errors[i] == NULL && w.step_ns[i] > 0;
        g_clear_error(&w.errors[i]);
    }
    if (is_fine)
        fill(&w, run->record);
    return is_fine;
}
