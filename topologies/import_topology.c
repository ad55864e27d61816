#include "topologies/import_topology.h"

#include <stdarg.h>
#include <string.h>

#include "sim/io/file.h"
#include "topologies/import_priv.h"

#define LIMIT_BYTES ((gsize)256 << 20) /* ours: a large subnet's listing has a hundred MB */

void orr_topologies__note(const OrrImport *import, uint32_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_string_append(import->notes, import->path);
    if (line > 0)
        g_string_append_printf(import->notes, ":%u", line);
    g_string_append_printf(import->notes, ": %s\n", text);
}

OrrFoundNode *orr_topologies__found_new(const char *source, uint32_t n_gpus, uint32_t n_nics) {
    OrrFoundNode *found = g_new0(OrrFoundNode, 1);
    found->source = g_strdup(source);
    found->n_gpus = n_gpus;
    found->n_nics = n_nics;
    found->gpus = g_new0(OrrFoundGpu, n_gpus);
    found->nics = g_new0(OrrFoundNic, n_nics);
    found->links = g_new0(uint32_t, n_gpus * n_gpus);
    found->near = g_new(OrrNear, (gsize)n_gpus * n_nics);
    found->path_bytes_per_s = g_new0(double, (gsize)n_gpus *n_nics);
    for (gsize i = 0; i < (gsize)n_gpus * n_nics; i++)
        found->near[i] = ORR_NEAR_UNKNOWN;
    return found;
}

double orr_topologies__pcie_rate(const char *speed, double lanes) {
    /* GT/s and the bytes a second of one lane behind line coding: PCI Express base specification */
    static const struct {
        const char *gt;
        double bytes_per_s;
    } rates[] = {{"2.5", 0.25e9},
                 {"5", 0.5e9},
                 {"8", 8e9 / 8 * 128 / 130},
                 {"16", 16e9 / 8 * 128 / 130},
                 {"32", 32e9 / 8 * 128 / 130},
                 {"64", 8e9}};
    if (!speed || !(lanes >= 1 && lanes <= 32))
        return 0;
    for (guint i = 0; i < G_N_ELEMENTS(rates); i++) {
        gsize n = strlen(rates[i].gt);
        if (g_str_has_prefix(speed, rates[i].gt) &&
            (speed[n] == ' ' || g_str_has_prefix(speed + n, ".0 ")))
            return rates[i].bytes_per_s * lanes;
    }
    return 0;
}

const OrrPciDevice *orr_topologies__pci_device(const char *id) {
    static const OrrPciDevice devices[] = {
        {"10de:1db1", "V100 SXM2 16 GB", "v100-sxm2-16", 0},
        {"10de:1db5", "V100 SXM2 32 GB", "v100-sxm2-32", 0},
        {"10de:1db8", "V100 SXM3 32 GB", NULL, 0},
        {"10de:15f9", "P100 SXM2 16 GB", NULL, 0},
        {"10de:1094", "Tesla M2075", NULL, 0},
        {"10de:20b0", "A100 SXM4 40 GB", "a100-sxm-40", 0},
        {"10de:20b2", "A100 SXM4 80 GB", "a100-sxm-80", 0},
        {"10de:20b5", "A100 PCIe 80 GB", "a100-pcie-80", 0},
        {"10de:2236", "A10", "a10-24", 0},
        {"10de:2237", "A10G", NULL, 0},
        {"10de:2330", "H100 SXM5 80 GB", "h100-sxm-80", 0},
        {"10de:2324", "H800 SXM5", "h800-sxm-80", 0},
        {"10de:2335", "H200 SXM 141 GB", "h200-sxm", 0},
        {"10de:2901", "B200", "b200-sxm", 0},
        {"10de:2941", "GB200", "gb200", 0},
        {"10de:3182", "B300 SXM6", "b300-sxm", 0},
        {"10de:31c2", "GB300", "gb300", 0},
        {"1002:738c", "Instinct MI100", NULL, 0},
        {"1002:740c", "Instinct MI250X/MI250", NULL, 0},
        {"1002:740f", "Instinct MI210", NULL, 0},
        {"1002:74a1", "Instinct MI300X", NULL, 0},
        {"1002:74b5", "Instinct MI300X VF", NULL, 0},
        {"15b3:1013", "ConnectX-4", NULL, 100},
        {"15b3:1017", "ConnectX-5", NULL, 100},
        {"15b3:1019", "ConnectX-5 Ex", NULL, 100},
        {"15b3:101b", "ConnectX-6", NULL, 200},
        {"15b3:1021", "ConnectX-7", NULL, 400},
        {"15b3:1023", "ConnectX-8", NULL, 800},
        {"1d0f:efa0", "Elastic Fabric Adapter of p4d", NULL, 100},
    };
    for (guint i = 0; id && i < G_N_ELEMENTS(devices); i++)
        if (strcmp(devices[i].id, id) == 0)
            return &devices[i];
    return NULL;
}

static OrrFoundNode *find_in_xml(const OrrImport *import, const char *text, gsize length,
                                 GError **error) {
    g_autoptr(OrrXml) root = orr_xml_parse(import->path, text, length, error);
    if (!root)
        return NULL;
    if (strcmp(root->name, "system") == 0)
        return orr_topologies__read_nccl(import, root, error);
    if (strcmp(root->name, "topology") == 0)
        return orr_topologies__read_hwloc(import, root, error);
    orr_fail_input(error,
                   "%s:%u: the root element is <%s>; <system> (NCCL) or <topology> (hwloc) would "
                   "do",
                   import->path, root->line, root->name);
    return NULL;
}

OrrFoundNode *orr_topology_find_in(const OrrImport *import, const char *text, gsize length,
                                   GError **error) {
    gsize at = 0;
    while (at < length && g_ascii_isspace(text[at]))
        at++;
    if (at < length && text[at] == '<')
        return find_in_xml(import, text, length, error);
    bool is_ib =
        g_strstr_len(text, (gssize)length, "switchguid=") ||
        g_strstr_len(text, (gssize)length, "caguid=") ||
        (at + 3 < length && (!strncmp(text + at, "CA ", 3) || !strncmp(text + at, "SW ", 3)));
    return is_ib ? orr_topologies__read_ib(import, text, length, error)
                 : orr_topologies__read_smi(import, text, length, error);
}

OrrFoundNode *orr_topology_find(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_topology_find_in(import, text, length, error) : NULL;
}

static char *run(const OrrImport *import, GError **error) {
    g_autoptr(OrrFoundNode) found = orr_topology_find(import, error);
    return found ? orr_topology_cluster_text(import, found, error) : NULL;
}

const OrrImporter orr_importer_topology = {
    .name = "topology",
    .summary =
        "NCCL topology XML, nvidia-smi topo -m, hwloc XML or ibnetdiscover to a cluster file",
    .source = "NCCL src/graph/xml.cc; nvidia-smi(1); hwloc 2 XML; ibnetdiscover(8)",
    .run = run,
};
