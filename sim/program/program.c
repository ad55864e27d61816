/* The program's owner and its structural invariants. Cost of the check: one pass over operations
 * and calls. */
#include "sim/program/program.h"

#include <glib.h>
#include <string.h>

void orr_program_free(OrrProgram *program) {
    if (program == NULL)
        return;
    g_free(program->kernels);
    g_free(program->colls);
    g_free(program->p2ps);
    g_free(program->parts);
    g_free(program->ops);
    g_free(program->mems);
    g_free(program->segments);
    g_free(program->calls);
    g_free(program->call_waits);
    g_free(program->roles);
    g_free(program);
}

static const char *kernel_flaw(const OrrKernel *k) {
    if (k->kind >= ORR_N_KERNEL_KINDS || k->pass >= ORR_N_KERNEL_PASSES || k->dtype >= ORR_N_DTYPES)
        return "its kernel has an unknown kind, pass or dtype";
    if (k->launches == 0)
        return "its kernel launches nothing";
    if (!(k->flops >= 0) || !(k->bytes_read >= 0) || !(k->bytes_written >= 0))
        return "its kernel has negative work";
    return NULL;
}

static const char *coll_flaw(const OrrColl *c) {
    if (c->kind >= ORR_N_COLLECTIVES || c->group >= ORR_N_GROUPS ||
        c->purpose >= ORR_N_COMM_KINDS || c->dtype >= ORR_N_DTYPES)
        return "its collective has an unknown kind, group, purpose or dtype";
    return c->bytes < 0 ? "its collective has negative bytes" : NULL;
}

static const char *p2p_flaw(const OrrProgram *p, const OrrP2p *x) {
    if (x->n_parts == 0 || x->first_part > p->n_parts || x->n_parts > p->n_parts - x->first_part)
        return "its point-to-point kernel has no parts, or parts out of range";
    for (uint32_t i = x->first_part; i < x->first_part + x->n_parts; i++) {
        const OrrP2pPart *part = &p->parts[i];
        if (part->group >= ORR_N_GROUPS || part->purpose >= ORR_N_COMM_KINDS || part->is_send > 1)
            return "a part of it has an unknown group, purpose or direction";
        if (part->bytes < 0)
            return "a part of it has negative bytes";
        if (part->group == ORR_GROUP_PP && part->peer >= p->n_roles)
            return "a part of it names a stage that does not exist";
    }
    return NULL;
}

static const char *what_flaw(const OrrProgram *p, const OrrOp *op) {
    switch ((OrrOpKind)op->kind) {
    case ORR_OP_KERNEL:
        return op->what < p->n_kernels ? kernel_flaw(&p->kernels[op->what]) : "no such kernel";
    case ORR_OP_COLL:
        return op->what < p->n_colls ? coll_flaw(&p->colls[op->what]) : "no such collective";
    case ORR_OP_P2P:
        return op->what < p->n_p2ps ? p2p_flaw(p, &p->p2ps[op->what]) : "no such p2p kernel";
    case ORR_OP_HOST:
    case ORR_N_OP_KINDS:
        break;
    }
    return NULL;
}

static const char *op_flaw(const OrrProgram *p, const OrrSegment *segment, uint32_t id) {
    const OrrOp *op = &p->ops[segment->first_op + id];
    if (op->kind >= ORR_N_OP_KINDS)
        return "unknown kind";
    if (op->stream >= ORR_N_STREAMS)
        return "unknown stream";
    if ((op->kind == ORR_OP_HOST) != (op->stream == ORR_STREAM_HOST))
        return "host work belongs on the host stream, and only that";
    if (op->n_waits > ORR_MAX_WAITS)
        return "too many waits";
    for (uint8_t i = 0; i < op->n_waits; i++)
        if (op->wait[i] >= id)
            return "waits for an operation that is not earlier";
    if (op->first_mem > p->n_mems || op->n_mem > p->n_mems - op->first_mem)
        return "memory effects out of range";
    for (uint32_t i = op->first_mem; i < op->first_mem + op->n_mem; i++)
        if (p->mems[i].kind >= ORR_N_MEM_KINDS)
            return "a memory effect of unknown kind";
    return what_flaw(p, op);
}

/* Counts the step ends of each segment on the way. */
static char *segments_flaw(const OrrProgram *p, uint32_t *step_ends) {
    for (uint32_t s = 0; s < p->n_segments; s++) {
        const OrrSegment *segment = &p->segments[s];
        if (segment->first_op > p->n_ops || segment->n_ops > p->n_ops - segment->first_op)
            return g_strdup_printf("segment %u: operations out of range", s);
        for (uint32_t i = 0; i < segment->n_ops; i++) {
            const char *flaw = op_flaw(p, segment, i);
            if (flaw != NULL)
                return g_strdup_printf("segment %u \"%s\", operation %u: %s", s, segment->label, i,
                                       flaw);
            step_ends[s] += (p->ops[segment->first_op + i].flags & ORR_OP_STEP_END) != 0;
        }
    }
    return NULL;
}

static const char *wait_flaw(const OrrProgram *p, const OrrRole *role, uint32_t c,
                             const OrrCallWait *w) {
    const OrrCall *calls = p->calls + role->first_call;
    if (w->src_call >= role->n_calls)
        return "waits for a call that does not exist";
    if (w->steps_back > 1)
        return "waits further back than one step";
    if (w->steps_back == 0 && w->src_call >= c)
        return "waits for a call that is not earlier";
    if (w->op >= p->segments[calls[c].segment].n_ops ||
        w->src_op >= p->segments[calls[w->src_call].segment].n_ops)
        return "a wait names an operation that does not exist";
    return NULL;
}

static const char *call_flaw(const OrrProgram *p, const OrrRole *role, uint32_t c) {
    const OrrCall *call = &p->calls[role->first_call + c];
    if (call->segment >= p->n_segments)
        return "no such segment";
    if (call->pass > ORR_N_PASSES)
        return "unknown pass";
    if (call->first_wait > p->n_call_waits || call->n_waits > p->n_call_waits - call->first_wait)
        return "waits out of range";
    return NULL;
}

static char *role_flaw(const OrrProgram *p, uint32_t r, const uint32_t *step_ends) {
    const OrrRole *role = &p->roles[r];
    if (role->first_call > p->n_calls || role->n_calls > p->n_calls - role->first_call)
        return g_strdup_printf("role %u \"%s\": calls out of range", r, role->label);
    if (role->stage >= p->n_roles)
        return g_strdup_printf("role %u \"%s\": stage %u of %u", r, role->label, role->stage,
                               p->n_roles);
    uint64_t n_ends = 0;
    for (uint32_t c = 0; c < role->n_calls; c++) {
        const char *flaw = call_flaw(p, role, c);
        const OrrCall *call = &p->calls[role->first_call + c];
        for (uint32_t i = 0; flaw == NULL && i < call->n_waits; i++)
            flaw = wait_flaw(p, role, c, &p->call_waits[call->first_wait + i]);
        if (flaw != NULL)
            return g_strdup_printf("role %u \"%s\", call %u: %s", r, role->label, c, flaw);
        n_ends += step_ends[call->segment];
    }
    if (n_ends != 1)
        return g_strdup_printf("role %u \"%s\": %" G_GUINT64_FORMAT
                               " operations end its step, not 1",
                               r, role->label, n_ends);
    return NULL;
}

char *orr_program_flaw(const OrrProgram *program) {
    g_autofree uint32_t *step_ends = g_new0(uint32_t, program->n_segments + 1);
    g_autofree bool *is_taken = g_new0(bool, program->n_roles + 1);
    char *flaw = segments_flaw(program, step_ends);
    for (uint32_t r = 0; flaw == NULL && r < program->n_roles; r++) {
        flaw = role_flaw(program, r, step_ends);
        uint32_t stage = program->roles[r].stage;
        if (flaw == NULL && is_taken[stage])
            flaw = g_strdup_printf("role %u \"%s\": stage %u has a role already", r,
                                   program->roles[r].label, stage);
        if (flaw == NULL)
            is_taken[stage] = true;
    }
    return flaw;
}
