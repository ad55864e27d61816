/* hwloc 2 XML: objects nest from the machine to PCI devices, whose OS devices have names. NVLink
 * shows as NVSwitch devices or as a matrix of bandwidths. */
#include "topologies/import_priv.h"

#include <string.h>

#include "sim/io/log.h"

#define NVLINK_GEN1_MBYTES                                                                         \
    20000 /* hwloc 2, topology-nvml.c: MB/s a link of the first generation                         \
           */

typedef struct {
    const OrrImport *import;
    GPtrArray *gpus, *nics; /* OrrXml: PCIDev */
    const OrrXml *distances;
    guint n_switches;
} Reader;

static bool has_type(const OrrXml *xml, const char *type) {
    const char *value = orr_xml_get(xml, "type");
    return value && strcmp(value, type) == 0;
}

static const OrrXml *os_device(const OrrXml *pci, const char *prefix) {
    for (guint i = 0; i < pci->children->len; i++) {
        const OrrXml *child = pci->children->pdata[i];
        const char *name = orr_xml_get(child, "name");
        if (has_type(child, "OSDev") && name && g_str_has_prefix(name, prefix))
            return child;
    }
    return NULL;
}

/* GPUs are display or accelerator devices (0300, 0302, 0380) of a vendor of GPUs that CUDA, NVML or
 * ROCm knows; NICs those with an InfiniBand device. */
static void collect(Reader *r, OrrXml *xml) {
    const char *type = orr_xml_get(xml, "pci_type"), *sub = orr_xml_get(xml, "subtype");
    if (has_type(xml, "PCIDev") && type) {
        bool is_nvidia_compute = g_str_has_prefix(type, "0302 [10de:");
        if (is_nvidia_compute || os_device(xml, "cuda") || os_device(xml, "nvml") ||
            os_device(xml, "rsmi"))
            g_ptr_array_add(r->gpus, xml);
        if (os_device(xml, "mlx") || os_device(xml, "hfi") || g_str_has_prefix(type, "0207"))
            g_ptr_array_add(r->nics, xml);
        r->n_switches += sub && strcmp(sub, "NVSwitch") == 0;
    }
    if (strcmp(xml->name, "distances2hetero") == 0 && orr_xml_get(xml, "name") &&
        strcmp(orr_xml_get(xml, "name"), "NVLinkBandwidth") == 0)
        r->distances = xml;
    for (guint i = 0; i < xml->children->len; i++)
        collect(r, xml->children->pdata[i]);
}

/* "10de:1db8" of "0302 [10de:1db8] [10de:131d] a1 00". */
static char *model_of(const OrrXml *pci) {
    const char *type = orr_xml_get(pci, "pci_type");
    const char *open = type ? strchr(type, '[') : NULL;
    return open && strlen(open) > 10 ? g_strndup(open + 1, 9) : NULL;
}

static double slot_rate(const OrrXml *pci) {
    double gbytes;
    const char *speed = orr_xml_get(pci, "pci_link_speed"); /* GB/s */
    return speed && orr_log_number(speed, &gbytes, NULL) && gbytes > 0 ? gbytes * 1e9 : 0;
}

static OrrNear distance(const OrrXml *gpu, const OrrXml *nic) {
    const OrrXml *meet = gpu;
    for (bool is_above = false; meet; meet = meet->parent) {
        for (const OrrXml *up = nic; up && !is_above; up = up->parent)
            is_above = up == meet;
        if (is_above)
            break;
    }
    if (!meet || has_type(meet, "Machine"))
        return ORR_NEAR_SYS;
    const char *kind = orr_xml_get(meet, "bridge_type");
    return has_type(meet, "Bridge") && kind && kind[0] == '1' ? ORR_NEAR_PXB : ORR_NEAR_PHB;
}

/* Index of the GPU whose OS device has the number behind "OSDev:"; -1. */
static int gpu_of(const Reader *r, const char *word) {
    if (!g_str_has_prefix(word, "OSDev:"))
        return -1;
    for (guint i = 0; i < r->gpus->len; i++) {
        const OrrXml *pci = r->gpus->pdata[i];
        for (guint k = 0; k < pci->children->len; k++) {
            const char *id = orr_xml_get(pci->children->pdata[k], "gp_index");
            if (id && strcmp(id, word + 6) == 0)
                return (int)i;
        }
    }
    return -1;
}

/* The matrix of NVLink bandwidths, in MB/s; the diagonal is no link. */
static void read_distances(Reader *r, OrrFoundNode *found) {
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GString) values = g_string_new(NULL);
    for (guint i = 0; i < r->distances->children->len; i++) {
        const OrrXml *child = r->distances->children->pdata[i];
        GString *to = strcmp(child->name, "indexes") == 0 ? names : values;
        g_string_append_printf(to, "%s ", child->text ? child->text : "");
    }
    guint n, n_values;
    g_auto(GStrv) name = orr_log_words(g_strdelimit(names->str, "\n", ' '), &n);
    g_auto(GStrv) value = orr_log_words(g_strdelimit(values->str, "\n", ' '), &n_values);
    if (n > ORR_MAX_FOUND || n_values != n * n) {
        orr_topologies__note(r->import, r->distances->line,
                             "the NVLink matrix has %u values for %u objects: left out", n_values,
                             n);
        return;
    }
    for (guint i = 0; i < n; i++)
        for (guint k = 0; k < n; k++) {
            int a = gpu_of(r, name[i]), b = gpu_of(r, name[k]);
            int64_t mbytes;
            if (a >= 0 && b >= 0 && a != b && orr_log_int(value[i * n + k], &mbytes) &&
                mbytes >= NVLINK_GEN1_MBYTES && mbytes < 255 * NVLINK_GEN1_MBYTES)
                found->links[(guint)a * found->n_gpus + (guint)b] =
                    (uint32_t)(mbytes / NVLINK_GEN1_MBYTES);
        }
    found->has_links = true;
}

static char *busid_of(const OrrXml *pci) {
    const char *busid = orr_xml_get(pci, "pci_busid");
    return g_strdup(busid ? busid : "?");
}

static OrrFoundNode *read(Reader *r, const OrrXml *root, GError **error) {
    if (r->gpus->len == 0 || r->gpus->len > ORR_MAX_FOUND || r->nics->len > ORR_MAX_FOUND) {
        orr_fail_input(error, "%s:%u: %u GPUs and %u NICs found", r->import->path, root->line,
                       r->gpus->len, r->nics->len);
        return NULL;
    }
    OrrFoundNode *found = orr_topologies__found_new("hwloc XML", r->gpus->len, r->nics->len);
    for (uint32_t i = 0; i < found->n_gpus; i++) {
        const OrrXml *pci = r->gpus->pdata[i];
        found->gpus[i] = (OrrFoundGpu){.id = busid_of(pci),
                                       .model = model_of(pci),
                                       .pcie_bytes_per_s = slot_rate(pci),
                                       .switch_links = r->n_switches > 0,
                                       .line = pci->line};
    }
    for (uint32_t k = 0; k < found->n_nics; k++) {
        const OrrXml *pci = r->nics->pdata[k], *os = os_device(pci, "mlx");
        found->nics[k] = (OrrFoundNic){.id = os ? g_strdup(orr_xml_get(os, "name")) : busid_of(pci),
                                       .model = model_of(pci),
                                       .line = pci->line};
        found->net = "ib";
        for (uint32_t i = 0; i < found->n_gpus; i++)
            found->near[i * found->n_nics + k] = distance(r->gpus->pdata[i], pci);
    }
    found->has_links = r->n_switches > 0;
    if (r->distances)
        read_distances(r, found);
    return found;
}

OrrFoundNode *orr_topologies__read_hwloc(const OrrImport *import, const OrrXml *root,
                                         GError **error) {
    g_autoptr(GPtrArray) gpus = g_ptr_array_new();
    g_autoptr(GPtrArray) nics = g_ptr_array_new();
    Reader r = {.import = import, .gpus = gpus, .nics = nics};
    collect(&r, (OrrXml *)root);
    return read(&r, root, error);
}
