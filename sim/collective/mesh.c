/* Packs Hamiltonian cycles into the multigraph of links, depth first, until the bound (half of the
 * least degree) is met or the search has taken enough steps. Source: NCCL, src/graph/search.cc,
 * searches rings alike; DGX-1 finds 6 directed rings over 8 V100 and 4 over a quad. */
#include "sim/collective/mesh.h"

#include <stdbool.h>
#include <string.h>

#define MAX_STEPS 200000 /* ours: keeps the worst mesh below a millisecond or so */

typedef struct {
    uint8_t left[ORR_MESH_MAX][ORR_MESH_MAX];
    uint32_t n, bound, best, steps;
} Search;

static void pack(Search *s, uint32_t found);

static void extend(Search *s, uint32_t found, uint32_t at, uint32_t visited, uint32_t count)
{
    if (s->best == s->bound || s->steps++ > MAX_STEPS)
        return;
    if (count == s->n) {
        if (!s->left[at][0])
            return;
        s->left[at][0]--;
        s->left[0][at]--;
        pack(s, found + 1);
        s->left[at][0]++;
        s->left[0][at]++;
        return;
    }
    for (uint32_t next = 1; next < s->n; next++) {
        if ((visited >> next & 1) || !s->left[at][next])
            continue;
        s->left[at][next]--;
        s->left[next][at]--;
        extend(s, found, next, visited | 1u << next, count + 1);
        s->left[at][next]++;
        s->left[next][at]++;
    }
}

static void pack(Search *s, uint32_t found)
{
    if (found > s->best)
        s->best = found;
    extend(s, found, 0, 1, 1);
}

double orr_mesh_rings(const uint8_t *links, uint32_t node_gpus, const uint32_t *members,
                      uint32_t n)
{
    Search s = {.n = n, .bound = UINT32_MAX};
    if (n == 2)
        return links[members[0] * node_gpus + members[1]] / 2.0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t degree = 0;
        for (uint32_t j = 0; j < n; j++) {
            s.left[i][j] = i == j ? 0 : links[members[i] * node_gpus + members[j]];
            degree += s.left[i][j];
        }
        if (degree / 2 < s.bound)
            s.bound = degree / 2;
    }
    pack(&s, 0);
    return s.best;
}
