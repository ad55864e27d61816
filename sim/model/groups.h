/* Ranks to TP, CP, EP, DP and PP groups, by rank order; micro-batches; refusals. */
#ifndef ORR_MODEL_GROUPS_H
#define ORR_MODEL_GROUPS_H

#include "sim/model/spec.h"

typedef struct {
    uint32_t tp, cp, ep, dp, pp; /* coordinates; ep is the position inside DP x CP for experts */
} OrrCoords;

/* TP x PP x CP x DP. */
uint64_t orr_layout_world(const OrrLayout *layout);
OrrCoords orr_layout_coords(const OrrLayout *layout, uint32_t rank);
uint32_t orr_layout_rank(const OrrLayout *layout, OrrCoords c);
/* Ranks of a group; 1 if the kind does not exist in this layout. EMBEDDING: 2 if pp > 1 else 1. */
uint32_t orr_layout_group_size(const OrrLayout *layout, OrrGroup kind);
/* Index of the group of @rank and its position in it; ORR_NONE if it is in none (EMBEDDING: middle
 * stages). Members of group g in position order: orr_layout_members. */
uint32_t orr_layout_n_groups(const OrrLayout *layout, OrrGroup kind);
uint32_t orr_layout_group_of(const OrrLayout *layout, OrrGroup kind, uint32_t rank,
                             uint32_t *position);
void orr_layout_members(const OrrLayout *layout, OrrGroup kind, uint32_t group, uint32_t *members);
/* M = GBS / (MBS x DP). */
uint32_t orr_layout_micro_batches(const OrrLayout *layout, const OrrBatch *batch);

/**
 * orr_layout_check: every reason why this layout is illegal, the world size first; one error
 * (ORR_ERROR_INPUT), a line a reason, with group and key names of the job file.
 * @n_gpus: GPUs asked for; 0: not stated.
 */
bool orr_layout_check(const OrrModel *model, const OrrLayout *layout, const OrrBatch *batch,
                      const OrrFramework *framework, uint32_t n_gpus, GError **error);

/* What virtual stage v of P*V holds. Never drops a layer. */
typedef struct {
    uint32_t first_layer, n_layers;
    bool has_embedding, has_head;
} OrrStagePart;
/* @parts [pp * vpp]. Errors: a split that the policy cannot make, with what would do. */
bool orr_layout_split(const OrrModel *model, const OrrLayout *layout, OrrStagePart *parts,
                      GError **error);

#endif
