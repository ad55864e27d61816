/* The machine that records were made on. A GPU that ships is found by its name; another is built
 * of what the driver told. Without --cluster the node is the shipped machine's with this GPU, or of
 * GPUs behind a switch whose rate peer copies showed. */
#include "sim/cli/calibrate_parts.h"

#include "sim/collective/place.h"
#include "sim/judge/names.h"
#include "topologies/loader.h"

#include <math.h>
#include <string.h>

/* Of the wire's rate that a copy between peers reaches: H100 390 of 450 GB/s, A100 262 of 300
 * (p2pBandwidthLatencyTest, as ml-engineering prints it). */
#define PEER_COPY_FRAC 0.87
/* Of a NIC's rate that long sends reach: nccl-tests issue 290, 46 to 48 of 50 GB/s. */
#define NIC_FRAC 0.95
#define LONG_SEND_BYTES (64 << 20)

bool orr_cli_fit_gpu(const OrrCli *cli, OrrCalibrateFit *f, GError **error) {
    const char *asked = orr_cli_value(cli, "gpu");
    const char *device = f->records->facts.device;
    g_autoptr(OrrPublishedNames) names = orr_published_names_load(error);
    if (!names)
        return false;
    const char *known = asked ? asked : device ? orr_judge_gpu(names, device) : NULL;
    f->gpu = known ? orr_topology_gpu(known, NULL, error) : orr_record_rows_gpu(f->records, error);
    if (!f->gpu && asked)
        g_prefix_error(error, "--gpu %s: ", asked);
    f->owns_gpu = f->gpu != NULL;
    return f->owns_gpu;
}

/* Best rate that one NIC's GPU showed in long sends or all-gathers along a rail. */
static double nic_rate(const OrrRecordRows *r) {
    double best = 0;
    for (guint i = 0; i < r->rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(r->rows, OrrRecordRow, i);
        const OrrCase *c = &row->c;
        if (c->kind != ORR_CASE_COLLECTIVE || c->ranks != ORR_RANKS_RAIL ||
            c->bytes < LONG_SEND_BYTES || c->has_compute)
            continue;
        double factor = orr_case_bus_factor((OrrCollective)c->op, c->group_gpus);
        best = fmax(best, (double)c->bytes * factor / row->ns * 1e9);
    }
    return best;
}

static OrrNode *unknown_node(OrrCalibrateFit *f) {
    OrrNode *node = g_new0(OrrNode, 1);
    OrrGpu *gpu = f->gpu;
    const OrrRecordFacts *facts = &f->records->facts;
    double h2d = f->kernels->copy_bytes_per_s[ORR_COPY_H2D];
    double p2p = f->kernels->copy_bytes_per_s[ORR_COPY_P2P];
    bool is_known = gpu->nvlink_bytes_per_s > 0;
    if (gpu->pcie_bytes_per_s <= 0)
        gpu->pcie_bytes_per_s = h2d > 0 ? h2d : 1e9;
    if (!is_known && p2p > 1.2 * gpu->pcie_bytes_per_s) {
        gpu->nvlink_bytes_per_s = p2p / PEER_COPY_FRAC;
        gpu->nvlink_links = 1; /* how many share it is not told */
    }
    node->name = g_strdup("node");
    node->source = g_strdup("records of orrery-calibrate");
    node->gpu = gpu;
    node->gpus = MAX(1, facts->gpus_per_node);
    node->domain_nodes = 1;
    node->nvlink = gpu->nvlink_bytes_per_s > 0 ? ORR_NVLINK_SWITCH : ORR_NVLINK_NONE;
    node->has_nvls = node->nvlink == ORR_NVLINK_SWITCH && gpu->arch >= ORR_ARCH_HOPPER;
    node->pcie_bytes_per_s = gpu->pcie_bytes_per_s;
    node->nvlink_latency_ns = 600, node->pcie_latency_ns = 500; /* the loader's defaults */
    node->host_speed = 1;
    double nic = nic_rate(f->records);
    if (facts->n_gpus > node->gpus && nic > 0) {
        node->nics = node->gpus;
        node->nic_bytes_per_s = nic / NIC_FRAC;
        node->net = ORR_NET_IB;
    }
    return node;
}

static OrrCluster *unknown_cluster(OrrCalibrateFit *f, GError **error) {
    OrrNode *node = unknown_node(f);
    OrrClusterSpec spec = {.name = g_strdup("cluster"),
                           .source = g_strdup("records of orrery-calibrate"),
                           .node = node,
                           .n_gpus = f->records->facts.n_gpus,
                           .max_gpus = f->records->facts.n_gpus,
                           .fabric = node->nics ? ORR_FABRIC_FLAT : ORR_FABRIC_NONE,
                           .leaf_oversubscription = 1,
                           .pod_oversubscription = 1,
                           .hop_latency_ns = 300, /* as h100-ib has them */
                           .nic_latency_ns = 1700};
    if (!node->nics)
        spec.n_gpus = spec.max_gpus = node->gpus;
    f->owns_gpu = false;
    return orr_cluster_new(&spec, error);
}

/* The shipped cluster with this GPU, if a node of it is like the records'. */
static OrrCluster *known_cluster(OrrCalibrateFit *f) {
    bool is_default;
    g_autoptr(OrrPublishedNames) names = orr_published_names_load(NULL);
    const char *name = names ? orr_judge_cluster(names, f->gpu->name, "", &is_default) : NULL;
    g_autoptr(OrrCluster) c = name ? orr_topology_cluster(name, NULL, NULL) : NULL;
    if (!c)
        return NULL;
    const OrrClusterSpec *s = orr_cluster_spec(c);
    if (s->node->gpus != f->records->facts.gpus_per_node || s->max_gpus < f->records->facts.n_gpus)
        return NULL;
    f->cluster_name = g_strdup(name);
    return g_steal_pointer(&c);
}

static bool fits_records(const OrrCalibrateFit *f, GError **error) {
    const OrrRecordFacts *facts = &f->records->facts;
    uint32_t per_node = orr_cluster_spec(f->cluster)->node->gpus;
    if (facts->n_gpus <= 1 || per_node == facts->gpus_per_node)
        return true;
    return orr_fail_input(error,
                          "--cluster %s: its nodes have %u GPUs, those of the records %u; without "
                          "--cluster the records' own machine is taken",
                          f->cluster_name, per_node, facts->gpus_per_node);
}

bool orr_cli_fit_cluster(const OrrCli *cli, OrrCalibrateFit *f, GError **error) {
    const char *asked = orr_cli_value(cli, "cluster");
    if (asked) {
        f->cluster_name = g_strdup(asked);
        f->cluster = orr_topology_cluster(asked, NULL, error);
        return f->cluster && (!f->records || fits_records(f, error));
    }
    if (!f->records)
        return orr_fail_usage(error, "orrery calibrate fit: --cluster is missing; orrery list "
                                     "clusters names them");
    f->cluster = known_cluster(f);
    if (!f->cluster)
        f->cluster = unknown_cluster(f, error);
    return f->cluster != NULL;
}

/* Rows of one table: the same collective over the same GPUs, forced alike, of one file. */
static bool is_same_table(const OrrRecordRow *a, const OrrRecordRow *b) {
    return a->file == b->file && a->c.op == b->c.op && a->c.dtype == b->c.dtype &&
           a->c.group_gpus == b->c.group_gpus && a->c.stride == b->c.stride && a->algo == b->algo &&
           a->proto == b->proto;
}

static bool is_alone(const OrrRecordRow *row) {
    return row->c.n_groups == 1 && !row->c.is_in_place && !row->c.has_compute;
}

static void place(const OrrCluster *cluster, const OrrCase *c, OrrCommPlace *place) {
    g_autofree uint32_t *gpus = g_new(uint32_t, c->group_gpus);
    for (int64_t i = 0; i < c->group_gpus; i++)
        gpus[i] = (uint32_t)(i * c->stride);
    orr_comm_place_from_cluster(cluster, gpus, (uint32_t)c->group_gpus, place);
}

static OrrMeasuredTable *make_table(const OrrCalibrateFit *f, guint first, bool *is_done) {
    const GArray *rows = f->records->rows;
    const OrrRecordRow *head = &g_array_index(rows, OrrRecordRow, first);
    OrrMeasuredTable *t = g_new0(OrrMeasuredTable, 1);
    g_autoptr(GArray) out = g_array_new(FALSE, TRUE, sizeof(OrrMeasuredCollective));
    t->name = g_strdup(f->records->files->pdata[head->file]);
    t->source = g_strdup("orrery-calibrate");
    t->kind = (OrrCollective)head->c.op;
    t->n_ranks = (uint32_t)head->c.group_gpus;
    for (guint i = first; i < rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(rows, OrrRecordRow, i);
        if (row->c.kind != ORR_CASE_COLLECTIVE || is_done[i] || !is_alone(row) ||
            !is_same_table(head, row))
            continue;
        is_done[i] = true;
        OrrMeasuredCollective m = {.bytes = row->c.bytes,
                                   .dtype = row->c.dtype,
                                   .root = -1,
                                   .out_of_place = {.time_ns = row->ns, .n_wrong = -1},
                                   .in_place = {.n_wrong = -1},
                                   .line = row->line};
        g_array_append_val(out, m);
    }
    t->n_rows = out->len;
    t->rows = (OrrMeasuredCollective *)(void *)g_array_free(g_steal_pointer(&out), FALSE);
    return t;
}

void orr_cli_fit_tables(OrrCalibrateFit *f) {
    const GArray *rows = f->records->rows;
    g_autofree bool *is_done = g_new0(bool, rows->len + 1);
    uint32_t n_gpus = orr_cluster_spec(f->cluster)->n_gpus;
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(rows, OrrRecordRow, i);
        if (row->c.kind != ORR_CASE_COLLECTIVE || is_done[i])
            continue;
        if (!is_alone(row) || (row->c.group_gpus - 1) * row->c.stride >= n_gpus) {
            f->n_apart++;
            continue;
        }
        OrrMeasuredTables *one = g_new0(OrrMeasuredTables, 1);
        one->tables = g_new0(OrrMeasuredTable *, 1);
        one->n_tables = 1;
        one->tables[0] = make_table(f, i, is_done);
        g_ptr_array_add(f->logs, one);
        /* NCCL_ALGO does not touch sends. */
        bool is_pairs = row->c.op == ORR_ALL_TO_ALL || row->c.op == ORR_SEND_RECV;
        OrrFitTable fit = {
            .table = one->tables[0],
            .force = {.algo = is_pairs ? ORR_N_ALGOS : row->algo, .proto = row->proto}};
        place(f->cluster, &row->c, &fit.place);
        g_array_append_val(f->tables, fit);
    }
}
