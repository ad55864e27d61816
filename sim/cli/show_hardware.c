/* orrery show gpu, node, cluster. */
#include "sim/cli/show.h"

#include "sim/base/units.h"
#include "topologies/loader.h"
#include "topologies/show.h"

#include <stdarg.h>

void orr_cli_line(OrrOut *out, const char *name, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *value = g_strdup_vprintf(format, args);
    va_end(args);
    orr_out_printf(out, "  %-22s %s\n", name, value);
}

static void number(OrrOut *out, const char *name, double value, OrrDim dim) {
    g_autofree char *text = orr_units_format(value, dim);
    orr_cli_line(out, name, "%s", text);
}

static void gpu_peaks(const OrrGpu *g, OrrOut *out) {
    for (int d = 0; d < ORR_N_DTYPES; d++) {
        if (g->peak_flops_per_s[d] <= 0)
            continue;
        g_autofree char *peak = orr_units_format(g->peak_flops_per_s[d], ORR_DIM_FLOPS_RATE);
        g_autofree char *name = g_strdup_printf("peak %s (dense)", orr_dtype_name((OrrDtype)d));
        g_autofree char *ridge = orr_units_count(g->peak_flops_per_s[d] / g->hbm_bytes_per_s);
        orr_cli_line(out, name, "%s; reached from %s FLOP a byte on", peak, ridge);
    }
}

bool orr_cli_show_gpu(const OrrCli *cli, OrrOut *out, GError **error) {
    OrrGpu *g = orr_topology_gpu(orr_cli_argument(cli, 1), NULL, error);
    if (!g)
        return false;
    orr_out_printf(out, "%s\n", g->name);
    orr_cli_line(out, "architecture", "%s, %u SMs", orr_arch_names[g->arch], g->n_sms);
    number(out, "boost clock", g->boost_hz, ORR_DIM_FREQ);
    number(out, "sustained clock", g->sustained_hz, ORR_DIM_FREQ);
    gpu_peaks(g, out);
    number(out, "vector units (FP32)", g->vector_flops_per_s, ORR_DIM_FLOPS_RATE);
    g_autofree char *memory = orr_units_bytes(g->hbm_bytes);
    orr_cli_line(out, "memory", "%s", memory);
    number(out, "memory bandwidth", g->hbm_bytes_per_s, ORR_DIM_RATE);
    number(out, "of it streamed", g->mem_eff_frac, ORR_DIM_FRACTION);
    number(out, "L2", g->l2_bytes, ORR_DIM_BYTES);
    number(out, "NVLink, a direction", g->nvlink_bytes_per_s, ORR_DIM_RATE);
    number(out, "PCIe, a direction", g->pcie_bytes_per_s, ORR_DIM_RATE);
    number(out, "power", g->power_watts, ORR_DIM_POWER);
    number(out, "a kernel at least", g->kernel_fixed_ns, ORR_DIM_TIME);
    number(out, "context", g->context_bytes, ORR_DIM_BYTES);
    orr_cli_line(out, "efficiency surfaces", "%s", *g->surfaces ? g->surfaces : "none: roofline");
    orr_cli_line(out, "source", "%s", g->source);
    orr_gpu_free(g);
    return true;
}

bool orr_cli_show_node(const OrrCli *cli, OrrOut *out, GError **error) {
    OrrNode *n = orr_topology_node(orr_cli_argument(cli, 1), NULL, error);
    if (!n)
        return false;
    orr_out_printf(out, "%s\n", n->name);
    orr_cli_line(out, "GPUs", "%u x %s", n->gpus, n->gpu->name);
    orr_cli_line(out, "NVLink", "%s%s; a domain is %u node%s", orr_nvlink_names[n->nvlink],
                 n->has_nvls ? " with NVLink SHARP" : "", n->domain_nodes,
                 n->domain_nodes > 1 ? "s" : "");
    g_autofree char *nic = orr_units_format(n->nic_bytes_per_s, ORR_DIM_RATE);
    orr_cli_line(out, "NICs", "%u x %s a direction, %s%s", n->nics, nic, orr_net_names[n->net],
                 n->has_sharp ? " with SHARP" : "");
    number(out, "PCIe, a direction", n->pcie_bytes_per_s, ORR_DIM_RATE);
    number(out, "management network", n->management_bytes_per_s, ORR_DIM_RATE);
    number(out, "NVLink latency", n->nvlink_latency_ns, ORR_DIM_TIME);
    number(out, "PCIe latency", n->pcie_latency_ns, ORR_DIM_TIME);
    orr_cli_line(out, "source", "%s", n->source);
    orr_node_free(n);
    return true;
}

bool orr_cli_show_cluster(const OrrCli *cli, OrrOut *out, GError **error) {
    g_autoptr(OrrCluster) c = orr_topology_cluster(orr_cli_argument(cli, 1), NULL, error);
    if (!c)
        return false;
    g_autoptr(GString) text = g_string_new(NULL);
    const char *svg = orr_cli_value(cli, "svg");
    if (svg) {
        orr_topology_show_svg(c, text);
        if (!orr_file_write(svg, text->str, error))
            return false;
        g_string_truncate(text, 0);
    }
    orr_topology_show_text(c, text);
    orr_out_puts(out, text->str);
    return true;
}
