/* GPU, node and cluster files and one-line shapes: the first byte says which. A cluster that is
 * accepted must hold together: it routes, names its links and can be drawn. */
#include "sim/cluster/group.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/loader_priv.h"
#include "topologies/shapes.h"
#include "topologies/show.h"

static void use_cluster(const OrrCluster *c) {
    uint32_t n = orr_cluster_spec(c)->n_gpus, links = orr_cluster_n_links(c);
    g_autoptr(GString) page = g_string_new(NULL);
    for (uint32_t i = 0; i < 8; i++) {
        OrrLinkShare route[ORR_MAX_ROUTE];
        uint32_t src = n / 8 * i, dst = n - 1 - n / 7 * (i % 3);
        uint32_t n_links = orr_cluster_route(c, src, dst, i, route);
        for (uint32_t j = 0; j < n_links; j++) {
            uint32_t back;
            g_autofree char *name = orr_cluster_link_name(c, route[j].link);
            g_assert(route[j].link < links);
            g_assert(orr_cluster_link_bytes_per_s(c, route[j].link) > 0);
            g_assert(orr_cluster_link_find(c, name, &back) && back == route[j].link);
        }
    }
    if (n < 1u << 16) /* the page looks for neighbours one by one */
        orr_topology_show_text(c, page);
    orr_topology_show_svg(c, page);
}

static void read_file(char kind, OrrKeys *keys, GError **error) {
    if (kind == 'g') {
        OrrGpu *gpu = orr_topologies__gpu(keys, "fuzz", NULL, error);
        fuzz_check_error(gpu, error);
        orr_gpu_free(gpu);
    } else if (kind == 'n') {
        OrrNode *node = orr_topologies__node(keys, "fuzz", NULL, error);
        fuzz_check_error(node, error);
        orr_node_free(node);
    } else {
        g_autoptr(OrrCluster) c = orr_topologies__cluster(keys, "fuzz", 0, NULL, error);
        fuzz_check_error(c, error);
        if (c)
            use_cluster(c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    if (size < 1)
        return 0;
    const char *text = (const char *)data + 1;
    if (data[0] == 's') {
        g_autofree char *shape = g_strndup(text, size - 1);
        if (!g_utf8_validate(shape, -1, NULL))
            return 0; /* the command line and job files are checked before */
        g_autoptr(OrrCluster) c = orr_shape_cluster(shape, NULL, &error);
        fuzz_check_error(c, &error);
        if (c)
            use_cluster(c);
        return 0;
    }
    g_autoptr(OrrKeys) keys = orr_keys_parse("fuzz.ini", text, size - 1, &error);
    fuzz_check_error(keys, &error);
    if (keys)
        read_file((char)data[0], keys, &error);
    return 0;
}
