/* Ranks and their groups.
 *
 * The world is TP x CP x DP x PP, enumerated with the first dimension of rank_order fastest. A
 * group kind lets some dimensions vary; its members are enumerated in rank order, and the groups
 * of a kind by the dimensions that stay, in rank order too. EP does not multiply the world: expert
 * groups are runs of EP ranks inside DP x CP (Megatron-LM, core/parallel_state.py, RankGenerator),
 * and so are the shard groups of hybrid sharding (PyTorch FSDP, HYBRID_SHARD). */
#include "sim/model/groups.h"

typedef struct {
    uint32_t n_varying, n_staying; /* sizes of the two products */
    uint32_t position, group;      /* of one rank */
} Split;

static uint32_t dim_size(const OrrLayout *layout, OrrRankDim dim) {
    switch (dim) {
    case ORR_DIM_TP:
        return layout->tp;
    case ORR_DIM_CP:
        return layout->cp;
    case ORR_DIM_EP:
        return 1;
    case ORR_DIM_DP:
        return layout->dp;
    case ORR_DIM_PP:
        return layout->pp;
    }
    g_assert_not_reached();
}

static uint32_t *coord_of(OrrCoords *c, OrrRankDim dim) {
    switch (dim) {
    case ORR_DIM_TP:
        return &c->tp;
    case ORR_DIM_CP:
        return &c->cp;
    case ORR_DIM_EP:
        return &c->ep;
    case ORR_DIM_DP:
        return &c->dp;
    case ORR_DIM_PP:
        return &c->pp;
    }
    g_assert_not_reached();
}

#define BIT(dim) (1u << (dim))
/* Dimensions that vary inside one group of each kind. */
static const uint8_t varying[ORR_N_GROUPS] = {
    [ORR_GROUP_TP] = BIT(ORR_DIM_TP),
    [ORR_GROUP_CP] = BIT(ORR_DIM_CP),
    [ORR_GROUP_EP] = BIT(ORR_DIM_DP) | BIT(ORR_DIM_CP),
    [ORR_GROUP_DP] = BIT(ORR_DIM_DP),
    [ORR_GROUP_PP] = BIT(ORR_DIM_PP),
    [ORR_GROUP_DP_CP] = BIT(ORR_DIM_DP) | BIT(ORR_DIM_CP),
    [ORR_GROUP_EDP] = BIT(ORR_DIM_DP) | BIT(ORR_DIM_CP),
    [ORR_GROUP_EMBEDDING] = BIT(ORR_DIM_PP),
    [ORR_GROUP_MODEL] = BIT(ORR_DIM_TP) | BIT(ORR_DIM_PP),
    [ORR_GROUP_HSDP_SHARD] = BIT(ORR_DIM_DP) | BIT(ORR_DIM_CP),
    [ORR_GROUP_HSDP_REPLICA] = BIT(ORR_DIM_DP) | BIT(ORR_DIM_CP),
    [ORR_GROUP_WORLD] = BIT(ORR_DIM_TP) | BIT(ORR_DIM_CP) | BIT(ORR_DIM_DP) | BIT(ORR_DIM_PP),
};

/* Run length of the kinds that cut DP x CP into runs; 0 for the others. */
static uint32_t run_of(const OrrLayout *layout, OrrGroup kind) {
    if (kind == ORR_GROUP_EP || kind == ORR_GROUP_EDP)
        return layout->ep;
    if (kind == ORR_GROUP_HSDP_SHARD || kind == ORR_GROUP_HSDP_REPLICA)
        return layout->hsdp_shard ? layout->hsdp_shard : layout->dp * layout->cp;
    return 0;
}

static bool is_across_runs(OrrGroup kind) {
    return kind == ORR_GROUP_EDP || kind == ORR_GROUP_HSDP_REPLICA;
}

uint64_t orr_layout_world(const OrrLayout *layout) {
    return (uint64_t)layout->tp * layout->pp * layout->cp * layout->dp;
}

OrrCoords orr_layout_coords(const OrrLayout *layout, uint32_t rank) {
    OrrCoords c = {0};
    uint32_t data = 0, data_stride = 1; /* position inside DP x CP */
    for (int i = 0; i < ORR_MAX_DIMS; i++) {
        OrrRankDim dim = layout->rank_order[i];
        uint32_t size = dim_size(layout, dim), at = rank % size;
        rank /= size;
        *coord_of(&c, dim) = at;
        if (dim == ORR_DIM_DP || dim == ORR_DIM_CP) {
            data += at * data_stride;
            data_stride *= size;
        }
    }
    c.ep = data % layout->ep;
    return c;
}

uint32_t orr_layout_rank(const OrrLayout *layout, OrrCoords c) {
    uint32_t rank = 0, stride = 1;
    for (int i = 0; i < ORR_MAX_DIMS; i++) {
        OrrRankDim dim = layout->rank_order[i];
        if (dim == ORR_DIM_EP)
            continue;
        rank += *coord_of(&c, dim) * stride;
        stride *= dim_size(layout, dim);
    }
    return rank;
}

/* Before runs are cut: position among the varying dimensions, group among the others. */
static Split split_rank(const OrrLayout *layout, OrrGroup kind, uint32_t rank) {
    OrrCoords c = orr_layout_coords(layout, rank);
    Split s = {1, 1, 0, 0};
    for (int i = 0; i < ORR_MAX_DIMS; i++) {
        OrrRankDim dim = layout->rank_order[i];
        if (dim == ORR_DIM_EP)
            continue;
        uint32_t size = dim_size(layout, dim), at = *coord_of(&c, dim);
        if (varying[kind] & BIT(dim)) {
            s.position += at * s.n_varying;
            s.n_varying *= size;
        } else {
            s.group += at * s.n_staying;
            s.n_staying *= size;
        }
    }
    return s;
}

/* The rank at @position of the uncut group @group. */
static uint32_t join_rank(const OrrLayout *layout, OrrGroup kind, uint32_t group,
                          uint32_t position) {
    OrrCoords c = {0};
    for (int i = 0; i < ORR_MAX_DIMS; i++) {
        OrrRankDim dim = layout->rank_order[i];
        if (dim == ORR_DIM_EP)
            continue;
        uint32_t size = dim_size(layout, dim);
        uint32_t *from = varying[kind] & BIT(dim) ? &position : &group;
        *coord_of(&c, dim) = *from % size;
        *from /= size;
    }
    return orr_layout_rank(layout, c);
}

uint32_t orr_layout_group_size(const OrrLayout *layout, OrrGroup kind) {
    if (kind == ORR_GROUP_EMBEDDING)
        return layout->pp > 1 ? 2 : 1;
    uint32_t size = split_rank(layout, kind, 0).n_varying, run = run_of(layout, kind);
    if (run == 0)
        return size;
    return is_across_runs(kind) ? size / run : run;
}

uint32_t orr_layout_n_groups(const OrrLayout *layout, OrrGroup kind) {
    Split s = split_rank(layout, kind, 0);
    uint32_t run = run_of(layout, kind);
    if (run == 0)
        return s.n_staying;
    return s.n_staying * (is_across_runs(kind) ? run : s.n_varying / run);
}

uint32_t orr_layout_group_of(const OrrLayout *layout, OrrGroup kind, uint32_t rank,
                             uint32_t *position) {
    Split s = split_rank(layout, kind, rank);
    uint32_t run = run_of(layout, kind);
    if (kind == ORR_GROUP_EMBEDDING) {
        if (s.position != 0 && s.position != layout->pp - 1) {
            *position = ORR_NONE;
            return ORR_NONE;
        }
        *position = s.position == 0 ? 0 : 1;
        return s.group;
    }
    if (run == 0) {
        *position = s.position;
        return s.group;
    }
    uint32_t in_run = s.position % run, which_run = s.position / run;
    *position = is_across_runs(kind) ? which_run : in_run;
    return s.group + s.n_staying * (is_across_runs(kind) ? in_run : which_run);
}

void orr_layout_members(const OrrLayout *layout, OrrGroup kind, uint32_t group, uint32_t *members) {
    uint32_t n = orr_layout_group_size(layout, kind), run = run_of(layout, kind);
    uint32_t n_staying = split_rank(layout, kind, 0).n_staying;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t position = i, uncut = group;
        if (kind == ORR_GROUP_EMBEDDING)
            position = i == 0 ? 0 : layout->pp - 1;
        if (run != 0) {
            uint32_t cut = group / n_staying;
            uncut = group % n_staying;
            position = is_across_runs(kind) ? i * run + cut : cut * run + i;
        }
        members[i] = join_rank(layout, kind, uncut, position);
    }
}

uint32_t orr_layout_micro_batches(const OrrLayout *layout, const OrrBatch *batch) {
    return batch->global_sequences / (batch->micro_sequences * layout->dp);
}
