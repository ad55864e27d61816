/* What a listing shows as a cluster file of ours. */
#include "topologies/import_priv.h"

#include <string.h>

#include "sim/base/units.h"
#include "topologies/loader_priv.h"

typedef struct {
    const OrrImport *import;
    const OrrFoundNode *found;
    OrrGpu *gpu;
    GString *text;
    uint32_t n_nics; /* those that GPUs use */
} Writer;

static void put_rate(Writer *w, const char *key, double bytes_per_s, const char *comment) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(digits, sizeof digits, "%.6g", bytes_per_s / 1e9);
    g_string_append_printf(w->text, "%s = %s GB/s%s\n", key, digits, comment);
}

/* The name of the GPU file: as asked, else by the PCI device. g_free. */
static char *gpu_name(const OrrImport *import, const OrrFoundNode *found, GError **error) {
    if (import->gpu)
        return g_strdup(import->gpu);
    const char *model = found->gpus[0].model;
    const OrrPciDevice *device = orr_topologies__pci_device(model);
    if (device && device->file)
        return g_strdup(device->file);
    orr_fail_input(error, "%s: %u GPUs%s%s%s%s%s: %s; say --gpu NAME (orrery list gpus)",
                   import->path, found->n_gpus, model ? " of PCI device " : "", model ? model : "",
                   device ? " (" : "", device ? device->name : "", device ? ")" : "",
                   model ? "not among the GPU files" : "the listing does not name them");
    return NULL;
}

/* NICs that every GPU reaches only across the sockets, while others are nearer, carry storage or
 * management. */
static uint32_t count_nics(const OrrImport *import, const OrrFoundNode *found) {
    uint32_t n_near = 0, n_far = 0;
    for (uint32_t k = 0; k < found->n_nics; k++) {
        OrrNear best = ORR_NEAR_UNKNOWN;
        for (uint32_t i = 0; i < found->n_gpus; i++)
            best = MIN(best, found->near[i * found->n_nics + k]);
        n_near += best <= ORR_NEAR_PHB;
        n_far += best == ORR_NEAR_SYS;
    }
    if (n_near == 0 || n_far == 0)
        return found->n_nics;
    orr_topologies__note(import, 0,
                         "%u of %u NICs are across the sockets from every GPU and others are "
                         "nearer: taken for storage, left out",
                         n_far, found->n_nics);
    return found->n_nics - n_far;
}

static bool is_all_to_all(const OrrFoundNode *found) {
    uint32_t first = found->n_gpus > 1 ? found->links[1] : 0;
    for (uint32_t i = 0; i < found->n_gpus; i++)
        for (uint32_t k = 0; k < found->n_gpus; k++)
            if (i != k && found->links[i * found->n_gpus + k] != first)
                return false;
    return first > 0;
}

static uint32_t most_direct_links(const OrrFoundNode *found) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < found->n_gpus; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < found->n_gpus; k++)
            sum += found->links[i * found->n_gpus + k];
        most = MAX(most, sum);
    }
    return most;
}

static bool put_mesh(Writer *w, GError **error) {
    const OrrFoundNode *found = w->found;
    uint32_t n = found->n_gpus;
    if (w->gpu->nvlink_links == 0)
        return orr_fail_input(error, "%s: the listing has links between GPUs, but %s has none",
                              w->import->path, w->gpu->name);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (found->links[i * n + k] != found->links[k * n + i])
                return orr_fail_input(error, "%s: %u links from %s to %s, but %u back",
                                      w->import->path, found->links[i * n + k], found->gpus[i].id,
                                      found->gpus[k].id, found->links[k * n + i]);
    g_string_append(w->text, "nvlink = mesh\nmesh = ");
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            g_string_append_printf(w->text, "%u%s", found->links[i * n + k],
                                   k + 1 < n   ? " "
                                   : i + 1 < n ? "; "
                                               : "\n");
    put_rate(w, "mesh_link", w->gpu->nvlink_bytes_per_s / w->gpu->nvlink_links, "");
    return true;
}

static void put_switch(Writer *w) {
    const OrrFoundNode *found = w->found;
    g_string_append(w->text, "nvlink = switch\n");
    if (w->gpu->arch >= ORR_ARCH_HOPPER)
        g_string_append(w->text,
                        "nvls = yes # NVSwitch of the third generation and later has it\n");
    for (uint32_t i = 0; i < found->n_gpus; i++)
        if (found->gpus[i].switch_links > 1 && found->gpus[i].switch_links < w->gpu->nvlink_links)
            orr_topologies__note(w->import, found->gpus[i].line,
                                 "%s has %u NVLinks, its kind %u: slower than simulated",
                                 found->gpus[i].id, found->gpus[i].switch_links,
                                 w->gpu->nvlink_links);
    if (found->is_switch_outside) {
        uint32_t nodes = 72 / found->n_gpus; /* NVL72, the only such product so far */
        g_string_append_printf(w->text,
                               "domain_nodes = %u nodes # NVSwitch outside of the node: 72 "
                               "GPUs\n",
                               MAX(nodes, 1));
    }
}

/* What NVLink is between the GPUs. */
static bool put_nvlink(Writer *w, GError **error) {
    const OrrFoundNode *found = w->found;
    uint32_t direct = most_direct_links(found);
    bool has_switch = found->gpus[0].switch_links > 0;
    /* more links to all others than the GPU has: the table counts those to the switch */
    if (has_switch || (direct > w->gpu->nvlink_links && is_all_to_all(found))) {
        put_switch(w);
        return true;
    }
    if (direct > 0)
        return put_mesh(w, error);
    bool is_assumed = !found->has_links && w->gpu->nvlink_links > 0 && found->n_gpus > 1 &&
                      w->gpu->arch != ORR_ARCH_VOLTA;
    if (!found->has_links && found->n_gpus > 1)
        orr_topologies__note(w->import, 0, "the listing does not show NVLink: %s assumed",
                             is_assumed ? "an NVSwitch is" : "none is");
    if (is_assumed)
        put_switch(w);
    else
        g_string_append(w->text, "nvlink = none\n");
    return true;
}

/* Of each GPU the fastest path among its nearest NICs; of the GPUs the slowest: a collective waits
 * for it. 0: not known. */
static double nic_path(const OrrFoundNode *found) {
    double slowest = 0;
    for (uint32_t i = 0; i < found->n_gpus; i++) {
        OrrNear nearest = ORR_NEAR_UNKNOWN;
        double best = 0;
        for (uint32_t k = 0; k < found->n_nics; k++)
            nearest = MIN(nearest, found->near[i * found->n_nics + k]);
        for (uint32_t k = 0; k < found->n_nics; k++)
            if (found->near[i * found->n_nics + k] == nearest)
                best = MAX(best, found->path_bytes_per_s[i * found->n_nics + k]);
        if (best > 0 && (slowest == 0 || best < slowest))
            slowest = best;
    }
    return slowest;
}

static bool nic_rate(const Writer *w, double *rate, GError **error) {
    if (w->import->nic) {
        g_autofree char *plain = NULL;
        const char *text = w->import->nic;
        gsize n = strlen(text);
        if (n > 0 && text[n - 1] == 'G')
            text = plain = g_strdup_printf("%.*s Gb/s", (int)n - 1, text);
        if (orr_units_parse(text, ORR_DIM_RATE, rate, NULL) && *rate > 0 && *rate <= 1e12)
            return true;
        return orr_fail_usage(error, "--nic %s: a rate such as 400G or 50 GB/s would do",
                              w->import->nic);
    }
    for (uint32_t k = 0; k < w->found->n_nics; k++) {
        const OrrPciDevice *device = orr_topologies__pci_device(w->found->nics[k].model);
        double known = w->found->nics[k].bytes_per_s;
        if (known == 0 && device && device->gbit_per_s > 0) {
            known = device->gbit_per_s * 1e9 / 8;
            if (*rate == 0)
                orr_topologies__note(w->import, w->found->nics[k].line,
                                     "the rate of the NICs is that of a %s", device->name);
        }
        if (known > 0 && (*rate == 0 || known < *rate))
            *rate = known;
    }
    return *rate > 0 || orr_fail_input(error,
                                       "%s: the listing does not give the rate of its %u NICs: say "
                                       "--nic 200G",
                                       w->import->path, w->found->n_nics);
}

static bool put_nics(Writer *w, GError **error) {
    double rate = 0, path = nic_path(w->found), pcie = 0;
    g_string_append_printf(w->text, "nics = %u NICs\n", w->n_nics);
    if (w->n_nics == 0)
        g_string_append(w->text, "net = none\n");
    if (w->n_nics == 0 && w->import->nic) {
        if (!nic_rate(w, &rate, error))
            return false;
        orr_topologies__note(w->import, 0, "no NIC is in it: --nic is not used");
    }
    if (w->n_nics > 0) {
        if (!nic_rate(w, &rate, error))
            return false;
        put_rate(w, "nic", rate, "");
        g_string_append_printf(w->text, "net = %s\n", w->found->net ? w->found->net : "ib");
        if (!w->found->net)
            orr_topologies__note(w->import, 0, "the kind of network is not in it: ib is assumed");
        if (path > 0)
            put_rate(w, "nic_pcie", path, " # slowest link between a GPU and its NIC");
    }
    for (uint32_t i = 0; i < w->found->n_gpus; i++) {
        double slot = w->found->gpus[i].pcie_bytes_per_s;
        if (slot > 0 && (pcie == 0 || slot < pcie))
            pcie = slot;
    }
    if (pcie > 0)
        put_rate(w, "pcie", pcie, "");
    g_string_append(w->text, "management = 10 Gb/s # assumed: the listing does not show it\n");
    return true;
}

static void put_cluster(Writer *w, const char *base) {
    const OrrFoundNode *found = w->found;
    uint32_t nodes = w->import->n_nodes         ? w->import->n_nodes
                     : found->n_nodes           ? found->n_nodes
                     : found->is_switch_outside ? MAX(1, 72 / found->n_gpus)
                                                : 1;
    uint32_t n_gpus = nodes * found->n_gpus;
    g_string_append_printf(w->text,
                           "[cluster]\nsummary = Imported: %u nodes of %u GPUs\n"
                           "source = %s (%s)\ngpus = %u GPUs\n",
                           nodes, found->n_gpus, base, found->source, n_gpus);
    if (nodes == 1) {
        g_string_append(w->text, "fabric = none\n");
    } else if (found->leaf_oversubscription > 0 && found->is_rail) {
        g_string_append_printf(w->text, "fabric = rail\nnodes_per_leaf = %u nodes\n",
                               found->nodes_per_leaf);
    } else if (found->leaf_oversubscription > 0) {
        g_string_append_printf(w->text, "fabric = clos\ngpus_per_leaf = %u GPUs\n",
                               found->nodes_per_leaf * found->n_gpus);
    } else {
        g_string_append(w->text, "fabric = flat\n");
    }
    if (nodes > 1 && found->leaf_oversubscription > 1) {
        char digits[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(digits, sizeof digits, "%.4g", found->leaf_oversubscription);
        g_string_append_printf(w->text, "leaf_oversubscription = %s\n", digits);
    }
    /* NCCL 2.19, src/graph/tuning.cc: 5.0 us of hardware latency for a network in LL */
    g_string_append(w->text, "nic_latency = 5 us # NCCL's own constant for a network\n"
                             "hop_latency = 300 ns # a switch and its cable, assumed\n");
}

/* The text must load: what is impossible in it is the listing's fault, and is told as such. */
static bool check(const Writer *w, GError **error) {
    g_autoptr(OrrKeys) keys = orr_keys_parse(w->import->path, w->text->str, w->text->len, error);
    OrrCluster *cluster = keys ? orr_topologies__cluster(keys, "import", 0, NULL, error) : NULL;
    if (cluster)
        orr_cluster_free(cluster);
    else
        g_prefix_error(error, "%s: the listing makes no cluster: ", w->import->path);
    return cluster != NULL;
}

char *orr_topology_cluster_text(const OrrImport *import, const OrrFoundNode *found,
                                GError **error) {
    Writer w = {.import = import, .found = found};
    g_autofree char *name = gpu_name(import, found, error);
    w.gpu = name ? orr_topology_gpu(name, NULL, error) : NULL;
    if (!w.gpu)
        return NULL;
    g_autofree char *base = g_path_get_basename(import->path);
    g_strdelimit(base, "#\n\r", '_');
    w.text = g_string_new(NULL);
    w.n_nics = count_nics(import, found);
    put_cluster(&w, base);
    g_string_append_printf(w.text,
                           "[node]\nsummary = Imported: %u GPUs\nsource = %s (%s)\ngpu = %s\n"
                           "gpus = %u GPUs\n",
                           found->n_gpus, base, found->source, name, found->n_gpus);
    bool is_written = put_nvlink(&w, error) && put_nics(&w, error) && check(&w, error);
    orr_gpu_free(w.gpu);
    return g_string_free(w.text, !is_written);
}
