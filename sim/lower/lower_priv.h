/* State of lowering one job; private to sim/lower. */
#ifndef ORR_LOWER_PRIV_H
#define ORR_LOWER_PRIV_H

#include "sim/lower/cells.h"
#include "sim/lower/lower.h"

/* Communicators of the DP group: gradients and parameters may run side by side. */
enum { ORR_COMM_ID_GRADIENT, ORR_COMM_ID_PARAMETER };
/* Communicators of the pipeline: activations forward, gradients backward. */
enum { ORR_COMM_ID_FORWARD, ORR_COMM_ID_BACKWARD };

/* A finished segment and the operations of it that others wait for. */
typedef struct {
    bool is_built;
    uint32_t segment;
    uint32_t first[ORR_N_STREAMS], last[ORR_N_STREAMS]; /* operation, or ORR_NONE */
    uint32_t n_units;  /* forward pieces: embedding, layers, head, as far as they are here */
    uint32_t *unit_op; /* first compute operation of each, or ORR_NONE */
} OrrPiece;

/* What a backward (or weight half) does with gradients besides computing them. */
enum {
    ORR_GRAD_FINAL = 1,  /* reduce: they are final (or this run of them is) */
    ORR_GRAD_FIRST = 2,  /* the sharded whole buffer comes to life */
    ORR_GATHER_KEEP = 4, /* ZeRO-3 without resharding: gathered parameters stay */
    ORR_N_VARIANTS = 8
};

typedef struct {
    const OrrLowering *in;
    OrrBuilder *b;
    OrrEmit emit;
    OrrLocalParams local;
    const OrrLayout *layout;
    const OrrFramework *fw;
    const OrrPrecision *precision;
    uint32_t n_micro_batches, n_virtual;
    OrrStagePart *parts;    /* [n_virtual] */
    uint32_t *stage_of;     /* [n_virtual] */
    uint32_t dp;            /* ranks over which gradients are reduced */
    OrrGroup dp_group;      /* their group; hybrid sharding: the shard group */
    uint32_t replicas;      /* shard groups that hold the same; 1: not hybrid */
    OrrPiece *pieces;       /* [n_virtual * ORR_N_PASSES * ORR_N_VARIANTS] */
    OrrPiece *building;     /* the piece of the open segment */
    int64_t boundary_bytes; /* of one stage-to-stage message of one rank */
} OrrLower;

/* Local parameters (one TP rank) of virtual stage @v. */
uint64_t orr_lower__params(const OrrLower *w, uint32_t v);
/* chunk.c: the segment of a pass of virtual stage @v, built at first use. */
const OrrPiece *orr_lower__piece(OrrLower *w, uint32_t v, OrrPass pass, uint32_t variant);
void orr_lower__piece_end(OrrLower *w, OrrPiece *piece);
/* gradients.c */
/* Appends the reduction of @n_params gradients that waits for operation @ready; returns its last.
 */
uint32_t orr_lower__reduce(OrrLower *w, uint64_t n_params, uint32_t ready);
OrrColl orr_lower__gather(const OrrLower *w, uint64_t n_params, const char *label);
bool orr_lower__reduces(const OrrLower *w); /* gradients meet other ranks at all */
/* Whole gradients of @n_params beside the shard, from the first backward to the end of their
 * reduction; 0: there is no such buffer. */
int64_t orr_lower__buffer_bytes(const OrrLower *w, uint64_t n_params);
bool orr_lower__reduces_inside(const OrrLower *w); /* within backward segments */
bool orr_lower__gathers_behind(const OrrLower *w); /* updated parameters, under the next forward */
uint32_t orr_lower__variant(const OrrLower *w, uint32_t stage, uint32_t slot);
/* pipeline.c: a role of each stage. */
void orr_lower__roles(OrrLower *w);
/* step.c */
void orr_lower__step_begin(OrrLower *w, OrrPiece *piece);
void orr_lower__step_end(OrrLower *w, uint32_t stage, OrrPiece *piece);
/* Which gather of the step's end (0, 1, ...) brings unit @unit of chunk @chunk. */
uint32_t orr_lower__gather_of_unit(const OrrLower *w, uint32_t stage, uint32_t chunk,
                                   uint32_t unit);

/* bind.c: a bound program in the making. */
typedef struct {
    const OrrLowering *in;
    const OrrProgram *program;
    const OrrCells *cells;
    OrrBound *bound;
    uint32_t *group_rank; /* [groups of the kind in hand] number of each among all of its kind */
    bool is_irregular;    /* like cells are loaded unlike: they cannot be left out after all */
} OrrBinder;
/* GPUs of a group in group order; @repeat: how many each stands for, or NULL. */
typedef struct {
    uint32_t n;
    uint32_t *gpus, *repeat;
} OrrMemberList;

static inline uint32_t orr_lower__gpu(const OrrLowering *in, uint32_t rank) {
    return in->placement ? orr_placement_gpu(in->placement, rank) : rank;
}
/* A plan per byte of @bytes becomes one per byte on the busiest resource; @shapes: load shapes so
 * far, or NULL for pairs. */
OrrPlan orr_lower__plan(const OrrCollPlan *plan, int64_t bytes, GArray *shapes);

/* bind_pairs.c: the pairs of a kind of group that send. */
void orr_lower__bind_pairs(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g);

/* bind_loads.c: adds the links that one unit of work over the group, or of a pair, uses to @uses
 * (OrrUse); coefficients in ORR_COEF_ONE; links are those of the cluster. */
typedef struct {
    OrrPattern pattern;
    double nvlink_ratio, nic_ratio; /* bytes per unit of work; the busiest is 1 */
} OrrLoadShape;
void orr_lower__group_uses(const OrrBinder *k, const OrrMemberList *list, const OrrLoadShape *shape,
                           uint32_t gpus_per_nic, GArray *uses);
void orr_lower__pair_uses(const OrrBinder *k, uint32_t src_gpu, uint32_t dst_gpu, uint64_t flow,
                          GArray *uses);
/* Of a group that reaches into every cell: leaves the links of cells that are kept, and those that
 * cells share. Returns whether like cells are loaded alike. */
bool orr_lower__keep_uses(const OrrBinder *k, GArray *uses);
/* How many equal groups, of @weight in all, meet on each link. */
void orr_lower__count_uses(const OrrBinder *k, uint32_t weight, GArray *uses);

void orr_lower__sort_uses(OrrUse *u, uint32_t n); /* by link; stable */

/* bind_links.c: numbers the links that can saturate, with what is left of their capacity, and
 * leaves out all others. */
void orr_lower__bind_links(OrrBinder *k);

/* perturb.c */
uint32_t orr_lower__speed(const OrrLowering *in, uint32_t rank); /* in 1/ORR_RATE_ONE */
void orr_lower__perturb_ranks(const OrrBinder *k);
/* Sends the uses of links that are missing elsewhere. */
void orr_lower__take_detours(const OrrLowering *in, GArray *uses);
/* Uses sorted by link, those of one link made one. */
void orr_lower__merge_uses(GArray *uses);

/* attention_rate.c: speed of @library's fused attention, heads of @head_dim elements, over the
 * kernels that sim/cost times. */
double orr_lower__attention_rate(OrrAttentionLibrary library, OrrArch arch, OrrKernelPass pass,
                                 double head_dim);
/* Time of a kernel as this framework runs it; ns. */
int64_t orr_lower__kernel_ns(const OrrLowering *in, const OrrKernel *kernel);

#endif
