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

/* Where no ring closes over links alone, NCCL hands on through a GPU between (PATH_NVB, since 2.8):
 * a step then takes a link to that GPU and one from it. Takes the links of the ring it finds. */
static bool extend_between(Search *s, uint32_t depth);

static bool go_on(Search *s, uint32_t next, uint32_t depth) {
    if (next == 0)
        return true;
    s->is_used[next] = true;
    s->path[depth] = next;
    if (extend_between(s, depth + 1))
        return true;
    s->is_used[next] = false;
    return false;
}

static bool step_to(Search *s, uint32_t next, uint32_t depth) {
    uint32_t last = s->path[depth - 1];
    if (s->free[last][next] > 0) {
        s->free[last][next]--;
        if (go_on(s, next, depth))
            return true;
        s->free[last][next]++;
        return false;
    }
    for (uint32_t via = 0; via < s->n; via++) {
        if (via == last || via == next || s->free[last][via] < 1 || s->free[via][next] < 1)
            continue;
        s->free[last][via]--, s->free[via][next]--;
        if (go_on(s, next, depth))
            return true;
        s->free[last][via]++, s->free[via][next]++;
    }
    return false;
}

static bool extend_between(Search *s, uint32_t depth) {
    if (depth == s->n)
        return step_to(s, 0, depth);
    for (uint32_t next = 1; next < s->n; next++)
        if (!s->is_used[next] && step_to(s, next, depth))
            return true;
    return false;
}

/* Of a link's rate that such rings reach: five V100 of a DGX-1, of which the fifth has links to one
 * of the others only, 37.2 GB/s, where two rings over direct links have 45.1 (H0516 to H0537, three
 * V100 H0472 to H0493). */
#define BETWEEN_FRAC 0.825

static double rings_between(Search *s, const OrrNode *node) {
    uint32_t rings = 0;
    for (;; rings++) {
        for (uint32_t i = 0; i < s->n; i++)
            s->is_used[i] = false;
        s->path[0] = 0;
        if (s->n < 3 || !extend_between(s, 1))
            return rings * BETWEEN_FRAC * node->mesh_link_bytes_per_s;
    }
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
            return rings ? rings * node->mesh_link_bytes_per_s : rings_between(&s, node);
        for (uint32_t i = 0; i < n; i++)
            width = MIN(width, s.free[s.path[i]][s.path[(i + 1) % n]]);
        for (uint32_t i = 0; i < n; i++)
            s.free[s.path[i]][s.path[(i + 1) % n]] -= width;
        rings += (uint32_t)width;
    }
}
