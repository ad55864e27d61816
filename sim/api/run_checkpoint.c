/* Checkpoints of a run: sizes, and times over links that they share. A store on the training's own
 * network takes its share of NICs and leaf switches by max-min fairness (sim/job/traffic.h); what
 * is left for the training is priced by the step simulation with NICs and leaf switches that much
 * narrower, once for each share. */
#include "sim/api/run_priv.h"
#include "sim/api/step_priv.h"
#include "sim/job/checkpoint.h"
#include "sim/job/traffic.h"

#include <math.h>
#include <string.h>

/* Who writes, and what their nodes have. */
typedef struct {
    uint32_t n_nodes;  /* that write */
    double writers;    /* of one of them */
    OrrTraffic node;   /* its links; no flows */
    double *leaf_frac; /* [n_leaves] share of a leaf's capacity that a byte per second of each
                          writing node takes */
    uint32_t n_leaves;
    double busy_frac; /* of a step, in which the training sends over the NICs */
} Paths;

static void paths_clear(Paths *p) {
    g_free(p->leaf_frac);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Paths, paths_clear)

/* Writers are spread evenly over the nodes. */
static uint32_t nth_writer(const OrrRun *run, const Paths *p, uint32_t i) {
    return (uint32_t)((uint64_t)i * run->shape.nodes / p->n_nodes);
}

/* What leaves the nodes: mean over ranks, side by side at worst. */
static double busy_frac(const OrrRecord *r) {
    double sum = 0;
    for (uint32_t i = 0; i < r->n_comms; i++) {
        const OrrRecordComm *c = &r->comms[i];
        bool leaves = false;
        for (uint32_t g = 0; g < r->n_groups; g++) {
            bool is_its = c->kind == ORR_COMM_PP ? r->groups[g].kind == ORR_GROUP_PP
                                                 : r->groups[g].size == c->group_size;
            leaves |= is_its && r->groups[g].nodes > 1;
        }
        sum += leaves ? (double)c->transfer_ns : 0;
    }
    return fmin(sum / (double)r->step_time_ns, 1);
}

static void find_leaves(const OrrRun *run, Paths *p) {
    const OrrCluster *c = run->step->cluster;
    const OrrNode *node = orr_cluster_spec(c)->node;
    p->n_leaves = orr_cluster_n_leaves(c);
    p->leaf_frac = g_new0(double, p->n_leaves + 1);
    g_autofree double *capacity = g_new0(double, p->n_leaves + 1);
    for (uint32_t l = 0; l < orr_cluster_n_links(c); l++) {
        uint32_t leaf, index;
        if (orr_cluster_link_kind(c, l) != ORR_LINK_LEAF_UP)
            continue;
        orr_cluster_link_owner(c, l, &leaf, &index);
        capacity[leaf] += orr_cluster_link_bytes_per_s(c, l);
    }
    for (uint32_t i = 0; i < p->n_nodes; i++)
        for (uint32_t g = 0; g < node->gpus; g++) {
            uint32_t gpu = nth_writer(run, p, i) * node->gpus + g;
            if (gpu >= run->shape.gpus)
                continue;
            uint32_t leaf = orr_cluster_leaf_of_gpu(c, gpu);
            if (leaf < p->n_leaves && capacity[leaf] > 0)
                p->leaf_frac[leaf] += 1.0 / node->gpus / capacity[leaf];
        }
    double most = 0;
    for (uint32_t l = 0; l < p->n_leaves; l++)
        most = fmax(most, p->leaf_frac[l]);
    p->node.leaf = most > 0 ? 1 / most : 0;
}

static void find_paths(const OrrRun *run, const OrrSave *save, Paths *p) {
    *p = (Paths){.n_nodes = MIN(run->shape.nodes, MAX(save->writers, 1))};
    p->writers = (double)save->writers / p->n_nodes;
    p->node.front = run->file->checkpoint.front_bytes_per_s;
    if (!run->step)
        return;
    const OrrNode *node = orr_cluster_spec(run->step->cluster)->node;
    p->node.nics = node->nics * node->nic_bytes_per_s;
    find_leaves(run, p);
    p->busy_frac = busy_frac(orr_step_record(run->step));
}

/* Stores that are written whenever this one is share the links with it. @own is its place. */
static OrrTraffic traffic_of(const OrrRun *run, const Paths *p, uint32_t tier, uint32_t *own) {
    const OrrRunFile *f = run->file;
    OrrTraffic t = p->node;
    for (uint32_t i = 0; i < f->n_stores; i++) {
        const OrrRunStore *s = &f->stores[i];
        if (f->stores[tier].every % s->every != 0)
            continue;
        double whole = s->bytes_per_s > 0 ? s->bytes_per_s / p->n_nodes : INFINITY;
        double own_writers =
            s->writer_bytes_per_s > 0 ? s->writer_bytes_per_s * p->writers : INFINITY;
        if (i == tier)
            *own = t.n;
        double node = s->node_bytes_per_s > 0 ? s->node_bytes_per_s : INFINITY;
        t.flows[t.n].network = s->network;
        t.flows[t.n++].cap = fmin(fmin(whole, own_writers), node);
    }
    return t;
}

/* Everything that is written to the network of the training, a node. */
static double on_fabric(const OrrTraffic *t, const double *rate) {
    double sum = 0;
    for (uint32_t i = 0; i < t->n; i++)
        sum += t->flows[i].network != ORR_STORE_OWN ? rate[i] : 0;
    return sum;
}

static void add_factor(GPtrArray *texts, const char *what, double frac) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof text, "%.6f", MAX(1 - frac, 0.001)); /* of perturbations */
    g_ptr_array_add(texts, g_strdup_printf("%s:bandwidth=%s", what, text));
}

/* NICs and leaf switches narrower by what @bytes_per_s of each writing node take; NULL at the end.
 */
static GPtrArray *narrower(const OrrRun *run, const Paths *p, double bytes_per_s) {
    const OrrCluster *c = run->step->cluster;
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    uint32_t nics = orr_cluster_spec(c)->node->nics;
    bool is_all = p->n_nodes == run->shape.nodes;
    for (uint32_t i = 0; i < (is_all ? 1 : p->n_nodes); i++)
        for (uint32_t k = 0; k < nics; k++) {
            g_autofree char *what = is_all ? g_strdup_printf("nic:*:%u", k)
                                           : g_strdup_printf("nic:%u:%u", nth_writer(run, p, i), k);
            add_factor(texts, what, bytes_per_s / p->node.nics);
        }
    for (uint32_t l = 0; l < orr_cluster_n_links(c); l++) {
        uint32_t leaf, index;
        OrrLinkKind kind = orr_cluster_link_kind(c, l);
        if (kind != ORR_LINK_LEAF_UP && kind != ORR_LINK_LEAF_DOWN)
            continue;
        orr_cluster_link_owner(c, l, &leaf, &index);
        g_autofree char *name = orr_cluster_link_name(c, l);
        g_autofree char *what = g_strconcat("link:", name, NULL);
        if (p->leaf_frac[leaf] > 0)
            add_factor(texts, what, bytes_per_s * p->leaf_frac[leaf]);
    }
    g_ptr_array_add(texts, NULL);
    return texts;
}

/* How much longer a step is while the tier is written behind it. */
static bool price_step(OrrRun *run, const Paths *p, double bytes_per_s, OrrTier *tier,
                       GError **error) {
    const OrrRunSpec *s = run->spec;
    double nominal = (double)s->phases[s->n_phases - 1].step_ns[0];
    g_autoptr(GPtrArray) texts = narrower(run, p, bytes_per_s);
    int64_t step_ns;
    if (!orr_run__perturbed_ns(run, (char *const *)texts->pdata, &step_ns, error))
        return false;
    tier->write_slow_frac = MAX(0, (double)step_ns / nominal - 1);
    g_autofree char *key = g_strdup_printf("%s.step_while_written", tier->name);
    char percent[G_ASCII_DTOSTR_BUF_SIZE], gb[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(percent, sizeof percent, "%.2f", 100 * tier->write_slow_frac);
    g_ascii_formatd(gb, sizeof gb, "%.1f", bytes_per_s / 1e9);
    g_autofree char *value = g_strdup_printf("%s %% longer", percent);
    g_autofree char *origin = g_strdup_printf(
        "a step simulated with %s GB/s less for the NICs of each of %u nodes", gb, p->n_nodes);
    orr_record_add_assumption(run->head, key, value, origin);
    return true;
}

/* Rates of a tier: @alone while the training stands or computes, @beside while it sends. */
static bool set_tier(OrrRun *run, const OrrSave *save, const Paths *p, uint32_t i, GError **error) {
    const OrrRunStore *s = &run->file->stores[i];
    OrrTier *tier = &run->spec->checkpoint.tiers[i];
    OrrStore store = {.bytes_per_s = s->bytes_per_s,
                      .writer_bytes_per_s = s->writer_bytes_per_s,
                      .read_bytes_per_s = s->read_bytes_per_s,
                      .latency_ns = s->latency_ns};
    bool is_own = s->network == ORR_STORE_OWN;
    if (!is_own && !run->step)
        return orr_fail_input(error,
                              "%s: [%s] network = %s: needs a job to simulate; network = own "
                              "would do",
                              run->file->name, s->name, orr_store_network_names[s->network]);
    bool has_way = p->node.nics > 0 && (s->network == ORR_STORE_COMPUTE || run->shape.nodes > 1);
    if (!is_own && !has_way)
        return orr_fail_input(error,
                              "%s: [%s] network = %s: %u nodes with %s NICs have no way there; "
                              "network = own would do",
                              run->file->name, s->name, orr_store_network_names[s->network],
                              run->shape.nodes, p->node.nics > 0 ? "their" : "no");
    uint32_t own = 0;
    OrrTraffic t = traffic_of(run, p, i, &own);
    double alone[ORR_MAX_TIERS], beside[ORR_MAX_TIERS],
        link = is_own ? p->node.front : p->node.nics;
    orr_traffic_share(&t, alone, NULL);
    t.has_job = true;
    orr_traffic_share(&t, beside, NULL);
    double busy = save->is_async && !is_own ? p->busy_frac : 0;
    link = link > 0 ? link : INFINITY;
    link = s->node_bytes_per_s > 0 ? fmin(link, s->node_bytes_per_s) : link;
    if (isfinite(link)) {
        double rate = busy * beside[own] + (1 - busy) * alone[own];
        double read = is_own ? link : fmin(link, p->node.leaf > 0 ? p->node.leaf : INFINITY);
        store.path_bytes_per_s = rate * p->n_nodes;
        store.read_path_bytes_per_s = read * p->n_nodes;
    }
    orr_store_times(save, &store, tier);
    if (is_own || !save->is_async)
        return true;
    tier->traffic_ns = tier->write_ns - (int64_t)s->latency_ns;
    return price_step(run, p, on_fabric(&t, beside), tier, error);
}

bool orr_run__set_checkpoint(OrrRun *run, GError **error) {
    const OrrRunFile *f = run->file;
    OrrCheckpointPlan *c = &run->spec->checkpoint;
    double per = f->checkpoint.bytes_per_parameter > 0 ? f->checkpoint.bytes_per_parameter
                                                       : run->shape.state_bytes_per_parameter;
    c->bytes = f->checkpoint.bytes > 0
                   ? f->checkpoint.bytes
                   : per * run->shape.parameters + f->checkpoint.loader_bytes * run->shape.gpus;
    c->interval_ns = (int64_t)f->checkpoint.interval_ns;
    c->interval_steps = f->checkpoint.interval_steps;
    OrrSave save = {.bytes = c->bytes,
                    .writers = f->checkpoint.writers > 0 ? f->checkpoint.writers : run->shape.gpus,
                    .is_async = f->checkpoint.is_async,
                    .copy_bytes_per_s = f->checkpoint.copy_bytes_per_s > 0
                                            ? f->checkpoint.copy_bytes_per_s
                                            : run->shape.copy_bytes_per_s};
    if (save.writers > run->shape.gpus)
        return orr_fail_input(error, "%s: [checkpoint] writers = %u: the run has %u ranks to write",
                              f->name, f->checkpoint.writers, run->shape.gpus);
    if (save.is_async && f->n_stores > 0 && !(save.copy_bytes_per_s > 0))
        return orr_fail_input(error,
                              "%s: [checkpoint] copy: the speed from device to host is "
                              "needed; copy = 25 GB/s would do",
                              f->name);
    g_auto(Paths) paths = {0};
    find_paths(run, &save, &paths);
    for (uint32_t i = 0; i < f->n_stores; i++) {
        const OrrRunStore *s = &f->stores[i];
        c->tiers[c->n_tiers++] = (OrrTier){
            .name = g_strdup(s->name), .every = s->every, .keep = s->keep, .survives = s->survives};
        if (!set_tier(run, &save, &paths, i, error))
            return false;
    }
    return true;
}
