/* Grids of collectives: which groups of GPUs, which of them at the same time, which sizes. */
#include "calibrate/grid_priv.h"

typedef struct {
    OrrRanksShape shape;
    int group_gpus, stride;
    bool is_crowd;    /* all groups at once, else the first alone */
    bool is_detailed; /* all sizes, in place and not, with compute beside it */
} Group;

/* nccl-tests' range, from 8 bytes to 8 GiB. */
#define SMALLEST_BYTES ((int64_t)8)
#define LARGEST_BYTES ((int64_t)8 << 30)
/* Beyond this --quick would need more than its two minutes on a slow network. */
#define LARGEST_QUICK_BYTES ((int64_t)1 << 30)

static void add_group(GArray *groups, const OrrDeviceFacts *facts, Group g) {
    int n = orr_ranks_n_groups(facts->n_gpus, g.group_gpus, g.stride);
    if (g.group_gpus < 2 || n < (g.is_crowd ? 2 : 1))
        return;
    for (guint i = 0; i < groups->len; i++) {
        const Group *o = &g_array_index(groups, Group, i);
        if (o->group_gpus == g.group_gpus && o->stride == g.stride && o->is_crowd == g.is_crowd)
            return;
    }
    g_array_append_val(groups, g);
}

/* The world; powers of two within a node, alone and all at once; rails; strides. */
static GArray *find_groups(const OrrDeviceFacts *facts, bool is_full) {
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(Group));
    int n = facts->n_gpus, per_node = facts->n_per_node, n_nodes = n / per_node;
    add_group(groups, facts, (Group){ORR_RANKS_WORLD, n, 1, false, true});
    for (int size = per_node; size >= 2; size = size > 2 ? (size + 1) / 2 : 0)
        for (int crowd = 0; crowd < 2; crowd++)
            add_group(groups, facts, (Group){ORR_RANKS_NODE, size, 1, crowd, !crowd});
    for (int size = n_nodes; size >= 2; size = is_full && size > 2 ? (size + 1) / 2 : 0)
        for (int crowd = 0; crowd < 2; crowd++)
            add_group(groups, facts, (Group){ORR_RANKS_RAIL, size, per_node, crowd, !crowd});
    for (int stride = 2; is_full && stride < per_node; stride *= 2)
        for (int crowd = 0; crowd < 2; crowd++)
            add_group(groups, facts, (Group){ORR_RANKS_STRIDE, n / stride, stride, crowd, false});
    return groups;
}

static bool is_measured(OrrCollective op, bool is_crowd) {
    static const bool alone[ORR_N_COLLECTIVES] = {
        [ORR_ALL_REDUCE] = true, [ORR_ALL_GATHER] = true, [ORR_REDUCE_SCATTER] = true,
        [ORR_ALL_TO_ALL] = true, [ORR_BROADCAST] = true,  [ORR_SEND_RECV] = true,
    };
    static const bool crowd[ORR_N_COLLECTIVES] = {
        [ORR_ALL_REDUCE] = true,
        [ORR_ALL_GATHER] = true,
        [ORR_REDUCE_SCATTER] = true,
        [ORR_ALL_TO_ALL] = true,
    };
    return is_crowd ? crowd[op] : alone[op];
}

static void add_sizes(const OrrGridWish *wish, const OrrDeviceFacts *facts, const Group *g,
                      OrrCollective op, GArray *cases) {
    OrrCase c = {.kind = ORR_CASE_COLLECTIVE,
                 .op = (int)op,
                 .dtype = ORR_BF16,
                 .ranks = g->shape,
                 .group_gpus = g->group_gpus,
                 .stride = g->stride};
    c.n_groups = g->is_crowd ? orr_ranks_n_groups(facts->n_gpus, g->group_gpus, g->stride) : 1;
    int64_t least = g->is_detailed ? SMALLEST_BYTES : 1 << 20;
    int64_t most = wish->is_full ? LARGEST_BYTES : LARGEST_QUICK_BYTES;
    for (c.bytes = least; c.bytes <= most; c.bytes *= wish->is_full ? 2 : 8)
        for (int variant = 0; variant < 3; variant++) {
            c.is_in_place = variant == 1;
            c.has_compute = variant == 2;
            bool is_wanted = variant == 0 || (wish->is_full && variant == 1) ||
                             (variant == 2 && c.bytes >= 1 << 20);
            bool can = op != ORR_ALL_TO_ALL && op != ORR_SEND_RECV;
            if (is_wanted && (variant != 1 || can))
                orr_grid__add(cases, c);
        }
}

void orr_grid__collectives(const OrrGridWish *wish, const OrrDeviceFacts *facts, GArray *cases) {
    g_autoptr(GArray) groups = find_groups(facts, wish->is_full);
    for (guint i = 0; i < groups->len; i++) {
        const Group *g = &g_array_index(groups, Group, i);
        for (int op = 0; op < ORR_N_COLLECTIVES; op++)
            if (is_measured((OrrCollective)op, g->is_crowd))
                add_sizes(wish, facts, g, (OrrCollective)op, cases);
    }
}
