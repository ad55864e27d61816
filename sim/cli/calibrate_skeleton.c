/* GPU, node and cluster files of the machine that was measured. What no record tells is the shipped
 * file's, or stands there with a word that says so: a skeleton is to be completed. */
#include "sim/cli/calibrate_parts.h"

#include <math.h>
#include <string.h>

static void value(OrrOut *out, const char *key, double number, double scale, const char *unit,
                  const char *comment) {
    char text[40];
    if (!(number > 0))
        return;
    g_ascii_formatd(text, sizeof text, "%.6g", number / scale);
    orr_out_printf(out, "%s = %s%s%s%s\n", key, text, unit, comment ? " # " : "",
                   comment ? comment : "");
}

static void write_peaks(const OrrGpu *g, OrrOut *out) {
    for (int d = 0; d < ORR_N_DTYPES; d++) {
        g_autofree char *key = g_strdup_printf("peak_%s", orr_dtype_name((OrrDtype)d));
        value(out, key, g->peak_flops_per_s[d], 1e12, " TFLOP/s", NULL);
    }
}

/* @surfaces: what the file is to name, or "". */
static void write_gpu(const OrrCalibrateFit *f, const OrrGpu *g, const char *surfaces,
                      OrrOut *out) {
    static const char guess[] = "not measured: the data sheet's would do";
    const OrrRecordFit *k = f->kernels;
    const OrrKernelRates *rates = k ? &k->set->rates : NULL;
    bool has_power = g->power_watts > 0, has_pcie = g->pcie_bytes_per_s > 0;
    double streamed = rates && rates->stream_frac > 0 ? rates->stream_frac : g->mem_eff_frac;
    double fixed_ns = rates && rates->fixed_ns > 0 ? rates->fixed_ns : g->kernel_fixed_ns;
    double h2d = k ? k->copy_bytes_per_s[ORR_COPY_H2D] : 0;
    orr_out_printf(out, "[gpu]\nsummary = %s as measured\nsource = %s; orrery calibrate fit\n",
                   g->name, g->source);
    orr_out_printf(out, "arch = %s\nsms = %u SMs\n", orr_arch_names[g->arch], g->n_sms);
    value(out, "boost", g->boost_hz, 1e6, " MHz", NULL);
    value(out, "sustained", g->sustained_hz, 1e6, " MHz",
          has_power ? NULL : "not measured: as boost; what the power limit leaves would do");
    write_peaks(g, out);
    value(out, "vector", g->vector_flops_per_s, 1e12, " TFLOP/s", NULL);
    value(out, "memory", g->hbm_bytes, 1 << 30, " GiB", NULL);
    value(out, "memory_bandwidth", g->hbm_bytes_per_s, 1e9, " GB/s", NULL);
    value(out, "memory_efficiency", fmax(0.1, streamed), 0.01, " %",
          rates && rates->stream_frac > 0 ? "measured" : guess);
    value(out, "l2", fmax(1e5, g->l2_bytes), 1, " B", g->l2_bytes > 0 ? NULL : guess);
    value(out, "nvlink", g->nvlink_bytes_per_s, 1e9, " GB/s", NULL);
    if (g->nvlink_links)
        orr_out_printf(out, "nvlink_links = %u links\n", g->nvlink_links);
    value(out, "pcie", fmax(1e9, has_pcie ? g->pcie_bytes_per_s : h2d), 1e9, " GB/s",
          has_pcie ? NULL : "best copy from the host");
    value(out, "power", has_power ? g->power_watts : 700, 1, " W", has_power ? NULL : guess);
    orr_out_printf(out, "kernel_fixed = %.0f ns%s\n", fixed_ns,
                   rates && rates->fixed_ns > 0 ? " # measured" : "");
    value(out, "context", g->context_bytes > 0 ? g->context_bytes : 2147483648.0, 1 << 30, " GiB",
          g->context_bytes > 0 ? NULL : "not measured: 2 GiB, as the shipped GPUs have it");
    if (*surfaces)
        orr_out_printf(out, "surfaces = %s\n", surfaces);
}

static void write_mesh(const OrrNode *n, OrrOut *out) {
    value(out, "mesh_link", n->mesh_link_bytes_per_s, 1e9, " GB/s", NULL);
    if (!n->mesh_links)
        return;
    orr_out_puts(out, "mesh = ");
    for (uint32_t i = 0; i < n->gpus * n->gpus; i++)
        orr_out_printf(out, "%s%u", i == 0 ? "" : i % n->gpus == 0 ? "; " : " ", n->mesh_links[i]);
    orr_out_puts(out, "\n");
}

static void write_node(const OrrNode *n, OrrOut *out) {
    orr_out_printf(out,
                   "[node]\nsummary = %u GPUs, as measured\nsource = %s; orrery calibrate fit\n"
                   "gpu = ./gpu.ini\ngpus = %u GPUs\nnvlink = %s\nnvls = %s\n",
                   n->gpus, n->source, n->gpus, orr_nvlink_names[n->nvlink],
                   n->has_nvls ? "yes" : "no");
    if (n->domain_nodes > 1)
        orr_out_printf(out, "domain_nodes = %u nodes\n", n->domain_nodes);
    write_mesh(n, out);
    orr_out_printf(out, "nics = %u NICs\nnet = %s\n", n->nics, orr_net_names[n->net]);
    value(out, "nic", n->nic_bytes_per_s, 1e9, " GB/s", NULL);
    value(out, "nic_pcie", n->nic_pcie_bytes_per_s, 1e9, " GB/s", NULL);
    value(out, "pcie", n->pcie_bytes_per_s, 1e9, " GB/s", NULL);
    if (n->management_bytes_per_s > 0)
        value(out, "management", n->management_bytes_per_s, 1e9, " GB/s", NULL);
    else
        orr_out_puts(out, "management = 0 GB/s # not measured\n");
    value(out, "nvlink_latency", n->nvlink_latency_ns, 1, " ns", NULL);
    value(out, "pcie_latency", n->pcie_latency_ns, 1, " ns", NULL);
    value(out, "host_speed", n->host_speed, 1, "", NULL);
}

static void write_cluster(const OrrClusterSpec *s, OrrOut *out) {
    bool is_rail = s->fabric == ORR_FABRIC_RAIL, is_clos = s->fabric == ORR_FABRIC_CLOS;
    orr_out_printf(out,
                   "[cluster]\nsummary = as measured\nsource = %s; orrery calibrate fit\n"
                   "node = ./node.ini\ngpus = %u GPUs\nfabric = %s\n",
                   s->source, s->max_gpus, orr_fabric_names[s->fabric]);
    if (is_rail)
        orr_out_printf(out, "nodes_per_leaf = %u nodes\n", s->gpus_per_leaf);
    if (is_clos)
        orr_out_printf(out, "gpus_per_leaf = %u GPUs\n", s->gpus_per_leaf);
    if (s->gpus_per_pod)
        orr_out_printf(out, "gpus_per_pod = %u GPUs\n", s->gpus_per_pod);
    value(out, "leaf_oversubscription", s->leaf_oversubscription, 1, "", NULL);
    value(out, "pod_oversubscription", s->pod_oversubscription, 1, "", NULL);
    if (s->leaf_uplinks && (is_rail || is_clos))
        orr_out_printf(out, "leaf_uplinks = %u links\n", s->leaf_uplinks);
    if (s->pod_uplinks && (is_rail || is_clos))
        orr_out_printf(out, "pod_uplinks = %u links\n", s->pod_uplinks);
    if (s->node->has_sharp)
        orr_out_puts(out, "sharp = yes\n");
    orr_out_printf(out, "nic_latency = %.0f ns\nhop_latency = %.0f ns\nrouting = %s\n",
                   s->nic_latency_ns, s->hop_latency_ns, orr_routing_names[s->routing]);
}

/* The calibration as gpu.ini names it: without its folder where it lies beside. */
static char *name_from(const char *folder, const char *calibration) {
    if (!calibration || strcmp(calibration, "-") == 0)
        return g_strdup("");
    g_autofree char *there = g_path_get_dirname(calibration);
    g_autofree char *a = g_canonicalize_filename(there, NULL);
    g_autofree char *b = g_canonicalize_filename(folder, NULL);
    g_autofree char *base = g_path_get_basename(calibration);
    return strcmp(a, b) == 0 ? g_strdup_printf("./%s", base)
                             : g_canonicalize_filename(calibration, NULL);
}

static OrrOut *open_in(const char *folder, const char *name, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return orr_out_open(path, error);
}

bool orr_cli_fit_skeletons(const OrrCalibrateFit *f, const char *folder, const char *calibration,
                           GError **error) {
    const OrrClusterSpec *s = f->cluster ? orr_cluster_spec(f->cluster) : NULL;
    const OrrGpu *gpu = f->gpu ? f->gpu : s->node->gpu;
    g_autofree char *surfaces = name_from(folder, calibration);
    g_autoptr(OrrFolder) made = orr_folder_make(folder, error);
    if (!made)
        return false;
    g_autoptr(OrrOut) out = open_in(folder, "gpu.ini", error);
    if (!out)
        return false;
    write_gpu(f, gpu, *surfaces ? surfaces : gpu->surfaces, out);
    if (!orr_out_commit(out, error) || !s)
        return s == NULL;
    g_autoptr(OrrOut) node = open_in(folder, "node.ini", error);
    if (!node)
        return false;
    write_node(s->node, node);
    g_autoptr(OrrOut) cluster =
        orr_out_commit(node, error) ? open_in(folder, "cluster.ini", error) : NULL;
    if (!cluster)
        return false;
    write_cluster(s, cluster);
    return orr_out_commit(cluster, error);
}
