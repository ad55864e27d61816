/* Greedy packing of directed rings: search for a ring (depth first, wide steps first, then lowest
 * id) through the members over links that are still free, take as many as its narrowest step
 * allows, repeat. On the DGX-1 cube mesh it finds the 6 rings that use all 6 links of each GPU, as
 * NCCL does (NVIDIA DGX-1 white paper). Cost: at most 8 members, so a few thousand steps. */
#include "sim/cluster/mesh.h"

enum { MAX_MEMBERS = ORR_MAX_MESH_GPUS };

typedef struct {
    uint32_t n;
    int free[MAX_MEMBERS][MAX_MEMBERS]; /* directed links left */
    uint32_t path[MAX_MEMBERS];
    bool is_used[MAX_MEMBERS];
} Search;

static bool extend(Search *s, uint32_t depth) {
    uint32_t last = s->path[depth - 1];
    if (depth == s->n)
        return s->free[last][0] > 0;
    for (int width = 2; width >= 1; width--) /* wide steps first: they leave more rings */
        for (uint32_t next = 1; next < s->n; next++) {
            if (s->is_used[next] ||
                (width == 2 ? s->free[last][next] < 2 : s->free[last][next] != 1))
                continue;
            s->is_used[next] = true;
            s->path[depth] = next;
            if (extend(s, depth + 1))
                return true;
            s->is_used[next] = false;
        }
    return false;
}

double orr_mesh_ring_bytes_per_s(const OrrNode *node, const uint32_t *locals, uint32_t n) {
    Search s = {.n = n};
    uint32_t rings = 0;
    if (n < 2 || n > MAX_MEMBERS)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (i != j)
                s.free[i][j] =
                    node->mesh_links ? node->mesh_links[locals[i] * node->gpus + locals[j]] : 1;
    for (;;) {
        int width = UINT8_MAX;
        for (uint32_t i = 0; i < n; i++)
            s.is_used[i] = false;
        s.path[0] = 0;
        if (!extend(&s, 1))
            return rings * node->mesh_link_bytes_per_s;
        for (uint32_t i = 0; i < n; i++)
            width = MIN(width, s.free[s.path[i]][s.path[(i + 1) % n]]);
        for (uint32_t i = 0; i < n; i++)
            s.free[s.path[i]][s.path[(i + 1) % n]] -= width;
        rings += (uint32_t)width;
    }
}
