/* Peak memory of roles. The caching allocator of the framework works in host order: an effect
 * counts when the host comes to its operation, whatever the device has done by then. Fragmentation
 * is the allocator category's business (sim/lower annotates it). Cost: a few ns an effect. */
#include "sim/program/check.h"

#include <glib.h>
#include <string.h>

typedef struct {
    int64_t held[ORR_N_MEM_KINDS], at_peak[ORR_N_MEM_KINDS];
    int64_t total, peak;
} Ledger;

static void apply(Ledger *l, const OrrMem *mem) {
    l->held[mem->kind] += mem->delta_bytes;
    l->total += mem->delta_bytes;
    if (l->total > l->peak) {
        l->peak = l->total;
        memcpy(l->at_peak, l->held, sizeof l->held);
    }
}

static void run_segment(Ledger *l, const OrrProgram *p, const OrrSegment *segment) {
    for (uint32_t i = segment->first_op; i < segment->first_op + segment->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        for (int is_after = 0; is_after < 2 && op->n_mem > 0; is_after++)
            for (uint32_t m = op->first_mem; m < op->first_mem + op->n_mem; m++)
                if (p->mems[m].is_after == is_after)
                    apply(l, &p->mems[m]);
    }
}

void orr_program_memory(const OrrProgram *program, int64_t *peak,
                        int64_t (*by_kind)[ORR_N_MEM_KINDS]) {
    for (uint32_t r = 0; r < program->n_roles; r++) {
        const OrrRole *role = &program->roles[r];
        Ledger l = {.total = 0};
        for (int k = 0; k < ORR_N_MEM_KINDS; k++) {
            l.held[k] = l.at_peak[k] = role->static_bytes[k];
            l.total += role->static_bytes[k];
        }
        l.peak = l.total;
        for (int step = 0; step < 2; step++) /* what outlives a step shows in the second */
            for (uint32_t c = 0; c < role->n_calls; c++)
                run_segment(&l, program,
                            &program->segments[program->calls[role->first_call + c].segment]);
        peak[r] = l.peak;
        memcpy(by_kind[r], l.at_peak, sizeof l.at_peak);
    }
}
