/* Builds a program in growing arrays: no allocation an operation, equal descriptors and equal
 * segments stored once. What the caller passes is copied field by field into cleared structs, so
 * that padding and the tails of labels never tell equal descriptors apart.
 * Cost: about 50 ns an operation (a hash of its descriptor and a compare). */
#include "sim/program/builder.h"

#include "sim/program/intern.h"

#include <string.h>

typedef struct {
    uint32_t call;
    OrrCallWait wait;
} PendingWait;

struct OrrBuilder {
    OrrProgram *program;
    uint32_t cap_kernels, cap_colls, cap_p2ps, cap_parts, cap_ops, cap_mems, cap_segments,
        cap_calls, cap_call_waits, cap_roles;
    OrrIntern kernels, colls, p2ps, segments;
    bool in_segment, in_role;
    OrrSegment open;    /* the open segment */
    uint32_t first_mem; /* of the open segment */
    uint32_t last_on[ORR_N_STREAMS];
    PendingWait *pending; /* waits of the open role, in order of request */
    uint32_t n_pending, cap_pending;
};

#define GROW(b, array, n_more)                                                                     \
    ((b)->program->array =                                                                         \
         orr_program__grow((b)->program->array, &(b)->cap_##array,                                 \
                           (b)->program->n_##array + (n_more), sizeof *(b)->program->array))

OrrBuilder *orr_builder_new(void) {
    OrrBuilder *b = g_new0(OrrBuilder, 1);
    b->program = g_new0(OrrProgram, 1);
    return b;
}

void orr_builder_free(OrrBuilder *b) {
    if (b == NULL)
        return;
    orr_program_free(b->program);
    orr_program__intern_clear(&b->kernels);
    orr_program__intern_clear(&b->colls);
    orr_program__intern_clear(&b->p2ps);
    orr_program__intern_clear(&b->segments);
    g_free(b->pending);
    g_free(b);
}

OrrProgram *orr_builder_finish(OrrBuilder *b) {
    g_assert(!b->in_segment && !b->in_role);
    OrrProgram *program = b->program;
    b->program = NULL;
    orr_builder_free(b);
    return program;
}

void orr_builder_segment_begin(OrrBuilder *b, const char *label) {
    g_assert(!b->in_segment);
    b->in_segment = true;
    memset(&b->open, 0, sizeof b->open);
    b->open.first_op = b->program->n_ops;
    b->first_mem = b->program->n_mems;
    g_strlcpy(b->open.label, label, sizeof b->open.label);
    for (int s = 0; s < ORR_N_STREAMS; s++)
        b->last_on[s] = ORR_NONE;
}

static uint64_t segment_hash(const OrrProgram *p, const OrrSegment *s) {
    uint64_t h = orr_program__hash(s->label, sizeof s->label, s->n_ops);
    for (uint32_t i = s->first_op; i < s->first_op + s->n_ops; i++) {
        OrrOp op = p->ops[i];
        if (op.n_mem > 0)
            h = orr_program__hash(p->mems + op.first_mem, op.n_mem * sizeof *p->mems, h);
        op.first_mem = 0;
        h = orr_program__hash(&op, sizeof op, h);
    }
    return h;
}

static bool segments_equal(const OrrProgram *p, const OrrSegment *a, const OrrSegment *b) {
    if (a->n_ops != b->n_ops || memcmp(a->label, b->label, sizeof a->label) != 0)
        return false;
    for (uint32_t i = 0; i < a->n_ops; i++) {
        OrrOp x = p->ops[a->first_op + i], y = p->ops[b->first_op + i];
        if (x.n_mem != y.n_mem)
            return false;
        if (x.n_mem > 0 &&
            memcmp(p->mems + x.first_mem, p->mems + y.first_mem, x.n_mem * sizeof *p->mems) != 0)
            return false;
        x.first_mem = y.first_mem = 0;
        if (memcmp(&x, &y, sizeof x) != 0)
            return false;
    }
    return true;
}

uint32_t orr_builder_segment_end(OrrBuilder *b) {
    OrrProgram *p = b->program;
    g_assert(b->in_segment);
    b->in_segment = false;
    b->open.n_ops = p->n_ops - b->open.first_op;
    uint64_t hash = segment_hash(p, &b->open);
    uint32_t cursor = 0, id;
    while ((id = orr_program__intern_next(&b->segments, hash, &cursor)) != ORR_NONE) {
        if (segments_equal(p, &p->segments[id], &b->open)) {
            p->n_ops = b->open.first_op;
            p->n_mems = b->first_mem;
            return id;
        }
    }
    GROW(b, segments, 1);
    p->segments[p->n_segments] = b->open;
    orr_program__intern_add(&b->segments, hash, p->n_segments);
    return p->n_segments++;
}

uint32_t orr_builder_n_ops(const OrrBuilder *b) {
    return b->program->n_ops - b->open.first_op;
}

uint32_t orr_builder_last_on(const OrrBuilder *b, OrrStream stream) {
    return b->last_on[stream];
}

OrrStream orr_builder_stream(const OrrBuilder *b, uint32_t op) {
    g_assert(b->in_segment && op < orr_builder_n_ops(b));
    return b->program->ops[b->open.first_op + op].stream;
}

uint32_t orr_builder_first_on(const OrrBuilder *b, OrrStream stream) {
    for (uint32_t i = 0; i < orr_builder_n_ops(b); i++)
        if (b->program->ops[b->open.first_op + i].stream == stream)
            return i;
    return ORR_NONE;
}

static uint32_t append_op(OrrBuilder *b, OrrOpKind kind, OrrStream stream, uint32_t what) {
    g_assert(b->in_segment && (unsigned)stream < ORR_N_STREAMS);
    GROW(b, ops, 1);
    OrrOp *op = &b->program->ops[b->program->n_ops++];
    memset(op, 0, sizeof *op);
    op->kind = (uint8_t)kind;
    op->stream = (uint8_t)stream;
    op->what = what;
    op->first_mem = b->program->n_mems;
    uint32_t id = orr_builder_n_ops(b) - 1;
    b->last_on[stream] = id;
    return id;
}

uint32_t orr_builder_kernel(OrrBuilder *b, OrrStream stream, const OrrKernel *kernel) {
    OrrKernel k;
    memset(&k, 0, sizeof k);
    k.kind = kernel->kind, k.pass = kernel->pass, k.dtype = kernel->dtype;
    k.is_causal = kernel->is_causal;
    k.heads = kernel->heads, k.kv_heads = kernel->kv_heads;
    k.m = kernel->m, k.n = kernel->n, k.k = kernel->k, k.k2 = kernel->k2, k.batch = kernel->batch;
    k.flops = kernel->flops;
    k.bytes_read = kernel->bytes_read, k.bytes_written = kernel->bytes_written;
    k.launches = kernel->launches;
    g_strlcpy(k.label, kernel->label, sizeof k.label);

    OrrProgram *p = b->program;
    uint64_t hash = orr_program__hash(&k, sizeof k, 0);
    uint32_t cursor = 0, id;
    while ((id = orr_program__intern_next(&b->kernels, hash, &cursor)) != ORR_NONE)
        if (memcmp(&p->kernels[id], &k, sizeof k) == 0)
            return append_op(b, ORR_OP_KERNEL, stream, id);
    GROW(b, kernels, 1);
    p->kernels[p->n_kernels] = k;
    orr_program__intern_add(&b->kernels, hash, p->n_kernels);
    return append_op(b, ORR_OP_KERNEL, stream, p->n_kernels++);
}

uint32_t orr_builder_coll(OrrBuilder *b, OrrStream stream, const OrrColl *coll) {
    OrrColl c;
    memset(&c, 0, sizeof c);
    c.kind = coll->kind, c.group = coll->group, c.comm = coll->comm, c.purpose = coll->purpose;
    c.dtype = coll->dtype, c.on_copy_engine = coll->on_copy_engine;
    c.bytes = coll->bytes;
    g_strlcpy(c.label, coll->label, sizeof c.label);

    OrrProgram *p = b->program;
    uint64_t hash = orr_program__hash(&c, sizeof c, 0);
    uint32_t cursor = 0, id;
    while ((id = orr_program__intern_next(&b->colls, hash, &cursor)) != ORR_NONE)
        if (memcmp(&p->colls[id], &c, sizeof c) == 0)
            return append_op(b, ORR_OP_COLL, stream, id);
    GROW(b, colls, 1);
    p->colls[p->n_colls] = c;
    orr_program__intern_add(&b->colls, hash, p->n_colls);
    return append_op(b, ORR_OP_COLL, stream, p->n_colls++);
}

static void copy_part(OrrP2pPart *to, const OrrP2pPart *from) {
    memset(to, 0, sizeof *to);
    to->is_send = from->is_send, to->group = from->group, to->comm = from->comm;
    to->purpose = from->purpose, to->peer = from->peer, to->bytes = from->bytes;
    to->chunk = from->chunk, to->micro_batch_tag = from->micro_batch_tag;
}

static bool p2ps_equal(const OrrProgram *p, const OrrP2p *a, const OrrP2p *b) {
    return a->n_parts == b->n_parts && a->is_eager == b->is_eager &&
           memcmp(a->label, b->label, sizeof a->label) == 0 &&
           memcmp(p->parts + a->first_part, p->parts + b->first_part,
                  a->n_parts * sizeof *p->parts) == 0;
}

uint32_t orr_builder_p2p(OrrBuilder *b, OrrStream stream, const char *label, bool is_eager,
                         const OrrP2pPart *parts, uint32_t n_parts) {
    OrrProgram *p = b->program;
    OrrP2p op;
    g_assert(n_parts > 0);
    memset(&op, 0, sizeof op);
    op.first_part = p->n_parts;
    op.n_parts = n_parts;
    op.is_eager = is_eager;
    g_strlcpy(op.label, label, sizeof op.label);
    GROW(b, parts, n_parts);
    for (uint32_t i = 0; i < n_parts; i++)
        copy_part(&p->parts[op.first_part + i], &parts[i]);

    uint64_t hash = orr_program__hash(op.label, sizeof op.label, op.is_eager);
    hash = orr_program__hash(p->parts + op.first_part, n_parts * sizeof *parts, hash);
    uint32_t cursor = 0, id;
    while ((id = orr_program__intern_next(&b->p2ps, hash, &cursor)) != ORR_NONE)
        if (p2ps_equal(p, &p->p2ps[id], &op))
            return append_op(b, ORR_OP_P2P, stream, id);
    p->n_parts += n_parts;
    GROW(b, p2ps, 1);
    p->p2ps[p->n_p2ps] = op;
    orr_program__intern_add(&b->p2ps, hash, p->n_p2ps);
    return append_op(b, ORR_OP_P2P, stream, p->n_p2ps++);
}

uint32_t orr_builder_host(OrrBuilder *b, uint32_t host_ns) {
    return append_op(b, ORR_OP_HOST, ORR_STREAM_HOST, host_ns);
}

void orr_builder_wait(OrrBuilder *b, uint32_t op) {
    g_assert(b->in_segment && orr_builder_n_ops(b) > 0);
    orr_builder_op_wait(b, orr_builder_n_ops(b) - 1, op);
}

/* Kept ascending, one wait a stream: the later operation of a stream implies the earlier. A host
 * operation is over before anything after it is issued, so nobody need wait for it. */
void orr_builder_op_wait(OrrBuilder *b, uint32_t op, uint32_t for_op) {
    if (for_op == ORR_NONE)
        return;
    g_assert(b->in_segment && op < orr_builder_n_ops(b) && for_op < op);
    OrrOp *ops = b->program->ops + b->open.first_op, *o = &ops[op];
    uint8_t stream = ops[for_op].stream;
    if (stream == o->stream || stream == ORR_STREAM_HOST)
        return;
    for (uint8_t i = 0; i < o->n_waits; i++) {
        if (ops[o->wait[i]].stream != stream)
            continue;
        if (o->wait[i] >= for_op)
            return;
        for (o->n_waits--; i < o->n_waits; i++)
            o->wait[i] = o->wait[i + 1];
        o->wait[o->n_waits] = 0;
    }
    g_assert(o->n_waits < ORR_MAX_WAITS);
    uint8_t at = o->n_waits++;
    for (; at > 0 && o->wait[at - 1] > for_op; at--)
        o->wait[at] = o->wait[at - 1];
    o->wait[at] = for_op;
}

void orr_builder_mem(OrrBuilder *b, OrrMemKind kind, bool is_after, int64_t delta_bytes) {
    if (delta_bytes == 0)
        return;
    g_assert(b->in_segment && orr_builder_n_ops(b) > 0);
    GROW(b, mems, 1);
    OrrMem *mem = &b->program->mems[b->program->n_mems++];
    memset(mem, 0, sizeof *mem);
    mem->kind = (uint8_t)kind;
    mem->is_after = is_after;
    mem->delta_bytes = delta_bytes;
    b->program->ops[b->program->n_ops - 1].n_mem++;
}

void orr_builder_mem_shared(OrrBuilder *b, OrrMemKind kind, int64_t bytes) {
    if (bytes == 0)
        return;
    orr_builder_mem(b, kind, true, -bytes);
    b->program->mems[b->program->n_mems - 1].is_shared = true;
}

void orr_builder_step_end(OrrBuilder *b) {
    g_assert(b->in_segment && orr_builder_n_ops(b) > 0);
    b->program->ops[b->program->n_ops - 1].flags |= ORR_OP_STEP_END;
}

void orr_builder_role_begin(OrrBuilder *b, const char *label, uint32_t stage) {
    g_assert(!b->in_role);
    b->in_role = true;
    GROW(b, roles, 1);
    OrrRole *role = &b->program->roles[b->program->n_roles++];
    memset(role, 0, sizeof *role);
    role->first_call = b->program->n_calls;
    role->stage = stage;
    g_strlcpy(role->label, label, sizeof role->label);
    b->n_pending = 0;
}

static OrrRole *open_role(OrrBuilder *b) {
    g_assert(b->in_role);
    return &b->program->roles[b->program->n_roles - 1];
}

void orr_builder_role_static(OrrBuilder *b, OrrMemKind kind, int64_t bytes) {
    open_role(b)->static_bytes[kind] += bytes;
}

void orr_builder_role_late(OrrBuilder *b, int64_t bytes, uint32_t n) {
    OrrRole *role = open_role(b);
    role->late_bytes = bytes;
    role->n_late = n;
}

uint32_t orr_builder_call(OrrBuilder *b, uint32_t segment, OrrPass pass, uint32_t chunk,
                          uint32_t micro_batch) {
    OrrRole *role = open_role(b);
    g_assert(segment < b->program->n_segments && chunk <= UINT16_MAX);
    GROW(b, calls, 1);
    OrrCall *call = &b->program->calls[b->program->n_calls++];
    memset(call, 0, sizeof *call);
    call->segment = segment;
    call->chunk = (uint16_t)chunk;
    call->pass = (uint8_t)pass;
    call->micro_batch = micro_batch;
    return role->n_calls++;
}

void orr_builder_call_wait(OrrBuilder *b, uint32_t call, uint32_t op, uint32_t src_call,
                           uint32_t src_op, uint32_t steps_back) {
    const OrrRole *role = open_role(b);
    g_assert(call < role->n_calls);
    b->pending =
        orr_program__grow(b->pending, &b->cap_pending, b->n_pending + 1, sizeof *b->pending);
    PendingWait *w = &b->pending[b->n_pending++];
    w->call = call;
    w->wait = (OrrCallWait){op, src_call, src_op, steps_back};
}

/* Sorts the waits of the role by call (stable) and resolves "the last operation". */
void orr_builder_role_end(OrrBuilder *b) {
    OrrProgram *p = b->program;
    OrrRole *role = open_role(b);
    OrrCall *calls = p->calls + role->first_call;
    GROW(b, call_waits, b->n_pending);
    for (uint32_t i = 0; i < b->n_pending; i++)
        calls[b->pending[i].call].n_waits++;
    uint32_t at = p->n_call_waits;
    for (uint32_t c = 0; c < role->n_calls; c++) {
        calls[c].first_wait = at;
        at += calls[c].n_waits;
        calls[c].n_waits = 0;
    }
    for (uint32_t i = 0; i < b->n_pending; i++) {
        OrrCallWait w = b->pending[i].wait;
        OrrCall *call = &calls[b->pending[i].call];
        g_assert(w.src_call < role->n_calls);
        const OrrSegment *source = &p->segments[calls[w.src_call].segment];
        g_assert(source->n_ops > 0);
        if (w.src_op == ORR_LAST_OP)
            w.src_op = source->n_ops - 1;
        p->call_waits[call->first_wait + call->n_waits++] = w;
    }
    p->n_call_waits = at;
    b->in_role = false;
}
