/* NCCL's and RCCL's topology XML: system > cpu > pci (nested) > gpu > nvlink, nic > net. */
#include "topologies/import_priv.h"

#include <string.h>

#include "sim/io/log.h"

typedef struct {
    const OrrImport *import;
    GPtrArray *gpus, *nics; /* OrrXml: pci elements of GPUs; net elements, or pci ones without */
    bool has_gpu_tags, has_net_tags, has_links, has_classes;
} Reader;

static bool is_class(const OrrXml *pci, const char *prefix) {
    const char *value = orr_xml_get(pci, "class");
    return value && g_str_has_prefix(value, prefix);
}

static const OrrXml *child_named(const OrrXml *xml, const char *name) {
    for (guint i = 0; i < xml->children->len; i++) {
        const OrrXml *child = xml->children->pdata[i];
        if (strcmp(child->name, name) == 0)
            return child;
    }
    return NULL;
}

static bool is_link(const OrrXml *xml) {
    return strcmp(xml->name, "nvlink") == 0 || strcmp(xml->name, "xgmi") == 0;
}

static void survey(Reader *r, const OrrXml *xml) {
    r->has_gpu_tags |= strcmp(xml->name, "gpu") == 0;
    r->has_net_tags |= strcmp(xml->name, "net") == 0;
    r->has_links |= is_link(xml);
    r->has_classes |= strcmp(xml->name, "pci") == 0 && orr_xml_get(xml, "class");
    for (guint i = 0; i < xml->children->len; i++)
        survey(r, xml->children->pdata[i]);
}

/* Where tags are present they tell which devices NCCL uses; else the PCI classes do: 0x03
 * displays and accelerators, 0x02 networks. */
static void collect(Reader *r, OrrXml *xml) {
    bool is_pci = strcmp(xml->name, "pci") == 0;
    bool is_gpu =
        is_pci && (r->has_gpu_tags ? child_named(xml, "gpu") != NULL : is_class(xml, "0x03"));
    if (is_gpu)
        g_ptr_array_add(r->gpus, xml);
    if (r->has_net_tags ? strcmp(xml->name, "net") == 0 : is_pci && is_class(xml, "0x02"))
        g_ptr_array_add(r->nics, xml);
    for (guint i = 0; i < xml->children->len; i++)
        collect(r, xml->children->pdata[i]);
}

static const OrrXml *pci_above(const OrrXml *xml) {
    while (xml && strcmp(xml->name, "pci") != 0)
        xml = xml->parent;
    return xml;
}

static double link_rate(const OrrXml *pci) {
    double lanes = 0;
    const char *width = orr_xml_get(pci, "link_width");
    if (!width || !orr_log_number(width, &lanes, NULL))
        return 0;
    return orr_topologies__pcie_rate(orr_xml_get(pci, "link_speed"), lanes);
}

static char *model_of(const OrrXml *pci) {
    const char *vendor = orr_xml_get(pci, "vendor"), *device = orr_xml_get(pci, "device");
    if (!vendor || !device || strlen(vendor) < 3 || strlen(device) < 3)
        return NULL;
    return g_strdup_printf("%s:%s", vendor + 2, device + 2); /* both have 0x */
}

static bool is_above(const OrrXml *high, const OrrXml *low) {
    for (; low; low = low->parent)
        if (low == high)
            return true;
    return false;
}

/* The slowest known link from @pci up to, not including, @top. Counts the steps. */
static double slowest_below(const OrrXml *pci, const OrrXml *top, guint *n_steps) {
    double slowest = 0;
    for (; pci && pci != top; pci = pci->parent) {
        double rate = strcmp(pci->name, "pci") == 0 ? link_rate(pci) : 0;
        *n_steps += strcmp(pci->name, "pci") == 0;
        if (rate > 0 && (slowest == 0 || rate < slowest))
            slowest = rate;
    }
    return slowest;
}

/* How far GPU and NIC are apart, and the slowest PCIe link between them. */
static OrrNear path_between(const OrrXml *gpu, const OrrXml *nic, double *rate) {
    const OrrXml *card = pci_above(nic);
    if (!card) /* a NIC that hangs at the CPU: nothing else is known */
        return ORR_NEAR_PHB;
    const OrrXml *meet = gpu;
    guint n_steps = 0;
    while (meet && !is_above(meet, card))
        meet = meet->parent;
    double up = slowest_below(gpu, meet, &n_steps), down = slowest_below(card, meet, &n_steps);
    *rate = up > 0 && down > 0 ? MIN(up, down) : MAX(up, down);
    if (!meet || strcmp(meet->name, "system") == 0)
        return ORR_NEAR_SYS;
    if (strcmp(meet->name, "cpu") == 0)
        return ORR_NEAR_PHB;
    return n_steps <= 2 ? ORR_NEAR_PIX : ORR_NEAR_PXB;
}

/* Links of GPU @i: to other GPUs into the matrix, others end at a switch. */
static void read_links(Reader *r, OrrFoundNode *found, uint32_t i) {
    const OrrXml *pci = r->gpus->pdata[i], *gpu = child_named(pci, "gpu");
    for (guint k = 0; gpu && k < gpu->children->len; k++) {
        const OrrXml *link = gpu->children->pdata[k];
        const char *target = orr_xml_get(link, "target"), *count = orr_xml_get(link, "count");
        int64_t n;
        if (!is_link(link) || !target || !count || !orr_log_int(count, &n) || n < 1 || n > 255)
            continue;
        uint32_t peer = 0;
        while (peer < found->n_gpus && strcmp(found->gpus[peer].id, target) != 0)
            peer++;
        if (peer == i) {
            orr_topologies__note(r->import, link->line,
                                 "%s: the GPU's links lead to itself (a virtual machine hides "
                                 "their peers): left out",
                                 found->gpus[i].id);
        } else if (peer < found->n_gpus) {
            found->links[i * found->n_gpus + peer] += (uint32_t)n;
        } else {
            found->gpus[i].switch_links += (uint32_t)n;
            found->is_switch_outside |= strcmp(target, "fffffff:ffff:ff") == 0;
        }
    }
}

static void read_gpu(Reader *r, OrrFoundNode *found, uint32_t i) {
    const OrrXml *pci = r->gpus->pdata[i];
    const char *busid = orr_xml_get(pci, "busid");
    found->gpus[i].id = busid ? g_strdup(busid) : g_strdup_printf("GPU%u", i);
    found->gpus[i].model = model_of(pci);
    found->gpus[i].pcie_bytes_per_s = link_rate(pci);
    found->gpus[i].line = pci->line;
}

static void read_nic(Reader *r, OrrFoundNode *found, uint32_t i) {
    const OrrXml *xml = r->nics->pdata[i], *pci = pci_above(xml);
    const char *name = orr_xml_get(xml, "name"), *speed = orr_xml_get(xml, "speed");
    double mbit;
    OrrFoundNic *nic = &found->nics[i];
    nic->id = g_strdup(name ? name : pci ? orr_xml_get(pci, "busid") : NULL);
    nic->model = pci ? model_of(pci) : NULL;
    nic->line = xml->line;
    if (speed && orr_log_number(speed, &mbit, NULL) && mbit > 0)
        nic->bytes_per_s = mbit * 1e6 / 8; /* NCCL's speed is in Mb/s */
    if (name && g_str_has_prefix(name, "eth"))
        found->net = "ethernet";
    else if (nic->model && g_str_has_prefix(nic->model, "1d0f:"))
        found->net = "efa";
    else if (pci)
        found->net = is_class(pci, "0x0207") ? "ib" : "roce";
}

/* PCIe links below what the same kind of device has elsewhere in the node. */
static void flag_degraded(const OrrImport *import, const OrrXml *xml, GHashTable *best) {
    const char *device = orr_xml_get(xml, "device");
    double rate = strcmp(xml->name, "pci") == 0 ? link_rate(xml) : 0;
    /* switches differ by their place: ports up and ports down are apart */
    g_autofree char *kind = g_strdup_printf(
        "%s %s", device ? device : "",
        orr_xml_get(xml, "subsystem_device") ? orr_xml_get(xml, "subsystem_device") : "");
    double *seen = device && rate > 0 ? g_hash_table_lookup(best, kind) : NULL;
    if (import && seen && rate < *seen * 0.99) {
        orr_topologies__note(import, xml->line,
                             "%s: PCIe link at %s x%s, others of its kind are %.0f times as fast: "
                             "trained down?",
                             orr_xml_get(xml, "busid"), orr_xml_get(xml, "link_speed"),
                             orr_xml_get(xml, "link_width"), *seen / rate);
    } else if (!import && device && rate > 0 && (!seen || rate > *seen)) {
        double *value = g_new(double, 1);
        *value = rate;
        g_hash_table_insert(best, g_strdup(kind), value);
    }
    for (guint i = 0; i < xml->children->len; i++)
        flag_degraded(import, xml->children->pdata[i], best);
}

static OrrFoundNode *read(Reader *r, const OrrXml *root, GError **error) {
    if (r->gpus->len == 0 || r->gpus->len > ORR_MAX_FOUND || r->nics->len > ORR_MAX_FOUND) {
        orr_fail_input(error, "%s:%u: %u GPUs and %u NICs found%s", r->import->path, root->line,
                       r->gpus->len, r->nics->len,
                       r->has_classes ? ""
                                      : ": the pci entries have no class and NCCL would look it up "
                                        "on the machine; what it found NCCL_TOPO_DUMP_FILE writes");
        return NULL;
    }
    OrrFoundNode *found =
        orr_topologies__found_new("NCCL topology XML", r->gpus->len, r->nics->len);
    for (uint32_t i = 0; i < found->n_gpus; i++)
        read_gpu(r, found, i);
    for (uint32_t i = 0; i < found->n_gpus; i++)
        read_links(r, found, i);
    for (uint32_t i = 0; i < found->n_nics; i++)
        read_nic(r, found, i);
    for (uint32_t i = 0; i < found->n_gpus; i++)
        for (uint32_t k = 0; k < found->n_nics; k++)
            found->near[i * found->n_nics + k] =
                path_between(r->gpus->pdata[i], r->nics->pdata[k],
                             &found->path_bytes_per_s[i * found->n_nics + k]);
    found->has_links = r->has_gpu_tags;
    g_autoptr(GHashTable) best = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    flag_degraded(NULL, root, best);
    flag_degraded(r->import, root, best);
    return found;
}

OrrFoundNode *orr_topologies__read_nccl(const OrrImport *import, const OrrXml *root,
                                        GError **error) {
    g_autoptr(GPtrArray) gpus = g_ptr_array_new();
    g_autoptr(GPtrArray) nics = g_ptr_array_new();
    Reader r = {.import = import, .gpus = gpus, .nics = nics};
    survey(&r, root);
    collect(&r, (OrrXml *)root);
    return read(&r, root, error);
}
