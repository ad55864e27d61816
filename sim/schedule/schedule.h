/* A pipeline schedule: the order of passes of every stage. Pure; no time, no network. */
#ifndef ORR_SCHEDULE_SCHEDULE_H
#define ORR_SCHEDULE_SCHEDULE_H

#include "sim/base/error.h"
#include "sim/terms/terms.h"

typedef struct {
    uint32_t n_stages;        /* P, at least 1 */
    uint32_t n_chunks;        /* V chunks a stage, at least 1 */
    uint32_t n_micro_batches; /* M, at least 1 */
} OrrPipeShape;

typedef struct {
    uint8_t pass;          /* OrrPass: F, B (whole backward), I (input half), W (weight half) */
    uint8_t is_overlapped; /* runs together with the next entry as one (DualPipe pairs) */
    uint8_t shares_batch;  /* frameworks that batch messages send its output with that of the entry
                            * before it, and receive its input with the other's */
    uint16_t chunk;        /* chunk of this stage, 0..V-1 */
    uint32_t micro_batch;  /* 0..M-1 */
} OrrSlot;

/* The order of one stage is slots[first[s] .. first[s+1]). virtual_stage[s * V + c] is the place
 * of chunk c of stage s in the model, 0..P*V-1; F of virtual stage v needs F of v-1, B of v needs
 * B of v+1 and F of v. */
typedef struct {
    OrrPipeShape shape;
    OrrSlot *slots;
    uint32_t *first;         /* P + 1 */
    uint32_t *virtual_stage; /* P * V */
} OrrOrder;

void orr_order_free(OrrOrder *order);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrOrder, orr_order_free)

/* One file a variant exports one descriptor. */
typedef struct {
    const char *name, *summary, *source;
    bool needs_chunks; /* V > 1 makes sense */
    bool splits_backward;
    /* Fails (ORR_ERROR_INPUT, naming the rule) where the framework itself refuses the shape. */
    OrrOrder *(*order)(const OrrPipeShape *shape, GError **error);
    /* Closed form of the bubble over ideal time for equal stages, B = 2F, no communication: idle /
     * work; NAN where none holds. */
    double (*bubble)(const OrrPipeShape *shape);
    /* Most micro-batch activations (in chunk units) that stage s holds; 0: no closed form. */
    uint32_t (*in_flight)(const OrrPipeShape *shape, uint32_t stage);
} OrrSchedule;

#endif
