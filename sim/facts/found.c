#include "sim/facts/found.h"

void orr_found_node_free(OrrFoundNode *node) {
    if (!node)
        return;
    for (uint32_t i = 0; i < node->n_gpus; i++) {
        g_free(node->gpus[i].id);
        g_free(node->gpus[i].model);
    }
    for (uint32_t i = 0; i < node->n_nics; i++) {
        g_free(node->nics[i].id);
        g_free(node->nics[i].model);
    }
    g_free(node->source);
    g_free(node->gpus);
    g_free(node->nics);
    g_free(node->links);
    g_free(node->near);
    g_free(node->path_bytes_per_s);
    g_free(node);
}
