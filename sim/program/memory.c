/* Peak memory of roles. The caching allocator of the framework works in host order: an effect
 * counts when the host comes to its operation, whatever the device has done by then. What it holds
 * of the device, in use or not, comes from a model of that allocator (allocator.h), which gets each
 * effect as a tensor. A tensor that a collective on a stream of its own has read is not used again
 * before the device is past that collective (torch.Tensor.record_stream). How far the host is ahead
 * is followed with the durations that the caller knows; without any it is as far ahead as it can
 * be. Optimizers make their moments in the first update.
 *
 * Left out: what other ranks make this one wait for. Cost: some 100 ns an effect; calls that repeat
 * are run a few times. */
#include "sim/program/allocator.h"
#include "sim/program/check.h"

#include <glib.h>
#include <string.h>

#define DEPTH 1024    /* launches a host can be ahead (NVIDIA developer forum 68937: about 1,000) */
#define N_SURE 8      /* ours: periods after which nothing new comes */
#define MOST_CALLS 64 /* in a period that is looked for */

/* Blocks of one kind and size that are in use, the last on top. */
typedef struct {
    int64_t bytes;
    OrrMemKind kind;
    GArray *ids; /* uint32_t */
} Stack;

/* Given back by the framework; the device is past its last reader at ready_ns. */
typedef struct {
    uint32_t id;
    int64_t ready_ns;
} Pending;

typedef struct {
    const OrrProgram *program;
    const OrrRole *role;
    int64_t held[ORR_N_MEM_KINDS], at_peak[ORR_N_MEM_KINDS];
    int64_t total, peak;
    OrrAllocator *allocator;
    GArray *stacks;   /* Stack */
    GArray *pending;  /* Pending, in order */
    guint n_returned; /* of these */
    bool has_moments;
    const OrrRolePace *pace; /* NULL: the device is never done before the host must wait */
    int64_t host_ns, stream_ns[ORR_N_STREAMS]; /* when each has done what it was given */
    int64_t *end_ns;                           /* of the operations of the segment in hand */
    int64_t launch_end_ns[DEPTH];              /* of the last launches, a ring */
    uint64_t n_launches;
} Ledger;

static void return_pending(Ledger *l) {
    for (; l->n_returned < l->pending->len; l->n_returned++) {
        const Pending *p = &g_array_index(l->pending, Pending, l->n_returned);
        if (p->ready_ns > l->host_ns)
            return;
        orr_allocator_give(l->allocator, p->id);
    }
    g_array_set_size(l->pending, 0);
    l->n_returned = 0;
}

static Stack *stack_of(Ledger *l, OrrMemKind kind, int64_t bytes) {
    for (guint i = 0; i < l->stacks->len; i++) {
        Stack *s = &g_array_index(l->stacks, Stack, i);
        if (s->bytes == bytes && s->kind == kind)
            return s;
    }
    Stack s = {bytes, kind, g_array_new(FALSE, FALSE, sizeof(uint32_t))};
    g_array_append_val(l->stacks, s);
    return &g_array_index(l->stacks, Stack, l->stacks->len - 1);
}

static void take(Ledger *l, OrrMemKind kind, int64_t bytes) {
    return_pending(l);
    if (!orr_allocator_has(l->allocator, bytes)) { /* the allocator waits for all events */
        for (int s = 0; s < ORR_N_STREAMS; s++)
            l->host_ns = MAX(l->host_ns, l->stream_ns[s]);
        return_pending(l);
    }
    uint32_t id = orr_allocator_take(l->allocator, bytes);
    g_array_append_val(stack_of(l, kind, bytes)->ids, id);
}

static void give_top(Ledger *l, Stack *s, bool is_shared) {
    uint32_t id = g_array_index(s->ids, uint32_t, s->ids->len - 1);
    g_array_set_size(s->ids, s->ids->len - 1);
    if (is_shared) {
        Pending p = {id, l->stream_ns[ORR_STREAM_TP]};
        g_array_append_val(l->pending, p);
    } else
        orr_allocator_give(l->allocator, id);
}

/* The largest block in use of @kind that has no more than @bytes, or NULL. */
static Stack *largest(Ledger *l, OrrMemKind kind, int64_t bytes) {
    Stack *best = NULL;
    for (guint i = 0; i < l->stacks->len; i++) {
        Stack *s = &g_array_index(l->stacks, Stack, i);
        if (s->kind == kind && s->ids->len > 0 && s->bytes <= bytes &&
            (!best || s->bytes > best->bytes))
            best = s;
    }
    return best;
}

/* What is freed was taken as one tensor, or as several. */
static void give(Ledger *l, OrrMemKind kind, int64_t bytes, bool is_shared) {
    while (bytes > 0) {
        Stack *s = largest(l, kind, bytes);
        if (!s)
            return;
        bytes -= s->bytes;
        give_top(l, s, is_shared);
    }
}

static void apply(Ledger *l, const OrrMem *mem) {
    l->held[mem->kind] += mem->delta_bytes;
    l->total += mem->delta_bytes;
    if (mem->delta_bytes > 0)
        take(l, mem->kind, mem->delta_bytes);
    else
        give(l, mem->kind, -mem->delta_bytes, mem->is_shared);
    if (l->total > l->peak) {
        l->peak = l->total;
        memcpy(l->at_peak, l->held, sizeof l->held);
    }
}

static void make_moments(Ledger *l) {
    int64_t left = l->role->late_bytes;
    for (uint32_t n = l->role->n_late; n > 0 && left > 0; n--) {
        take(l, ORR_MEM_OPTIMIZER, left / n);
        left -= left / n;
    }
    l->has_moments = true;
}

static int64_t p2p_ns(const Ledger *l, const OrrP2p *p2p) {
    int64_t longest = 0;
    for (uint32_t i = 0; i < p2p->n_parts; i++)
        longest = MAX(longest, l->pace->part_ns[p2p->first_part + i]);
    return longest;
}

/* The host issues a launch: not before the one DEPTH launches ago has ended. */
static void launch(Ledger *l, int64_t end_ns) {
    int64_t *slot = &l->launch_end_ns[l->n_launches++ % DEPTH];
    l->host_ns = MAX(l->host_ns, *slot);
    *slot = end_ns;
}

/* Host and device on their way through @op, the @i-th of its segment. Waits for other calls are
 * those of their streams, for other ranks none. */
static void run_op(Ledger *l, const OrrOp *op, uint32_t i) {
    const OrrProgram *p = l->program;
    uint32_t n = op->kind == ORR_OP_KERNEL ? p->kernels[op->what].launches : 1;
    int64_t start = l->host_ns, took = 0;
    for (uint32_t w = 0; w < op->n_waits; w++)
        start = MAX(start, l->end_ns[op->wait[w]]);
    if (op->kind == ORR_OP_HOST) {
        l->host_ns = l->end_ns[i] = start + op->what;
        return;
    }
    l->host_ns += op->kind == ORR_OP_KERNEL ? n * l->pace->launch_ns : l->pace->comm_ns;
    if (op->kind == ORR_OP_KERNEL)
        took = l->pace->kernel_ns[op->what];
    else
        took = op->kind == ORR_OP_COLL ? l->pace->coll_ns[op->what] : p2p_ns(l, &p->p2ps[op->what]);
    start = MAX(MAX(start, l->host_ns), l->stream_ns[op->stream]);
    l->stream_ns[op->stream] = l->end_ns[i] = start + took;
    for (uint32_t k = 0; k < n; k++)
        launch(l, l->end_ns[i]);
}

/* Without durations: the device ends what it is given when the host must wait for it. */
static void run_op_blind(Ledger *l, const OrrOp *op) {
    uint32_t n = op->kind == ORR_OP_KERNEL ? l->program->kernels[op->what].launches : 1;
    if (op->kind == ORR_OP_HOST)
        l->host_ns += op->n_waits > 0 ? DEPTH : 0;
    else
        l->host_ns += n;
    l->stream_ns[ORR_STREAM_TP] = l->host_ns + DEPTH;
}

static void run_segment(Ledger *l, const OrrSegment *segment) {
    const OrrProgram *p = l->program;
    for (uint32_t i = segment->first_op; i < segment->first_op + segment->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        if (op->flags & ORR_OP_STEP_END && !l->has_moments)
            make_moments(l);
        if (l->pace)
            run_op(l, op, i - segment->first_op);
        else
            run_op_blind(l, op);
        for (int is_after = 0; is_after < 2 && op->n_mem > 0; is_after++)
            for (uint32_t m = op->first_mem; m < op->first_mem + op->n_mem; m++)
                if (p->mems[m].is_after == is_after)
                    apply(l, &p->mems[m]);
    }
}

/* Calls from @c on that repeat the ones before them, as whole periods of @period; 0: too few. */
static uint32_t n_repeated(const Ledger *l, uint32_t c, uint32_t period) {
    const OrrCall *calls = l->program->calls + l->role->first_call;
    uint32_t n = 0;
    while (c + period + n < l->role->n_calls &&
           calls[c + n].segment == calls[c + period + n].segment)
        n++;
    return n / period >= 2 * N_SURE ? n / period * period : 0;
}

/* Runs the calls of a step; of a long run of periods the first few. */
static void run_step(Ledger *l) {
    const OrrCall *calls = l->program->calls + l->role->first_call;
    for (uint32_t c = 0; c < l->role->n_calls;) {
        uint32_t period = 1, n = 0;
        while (period <= MOST_CALLS && n == 0)
            n = n_repeated(l, c, period++);
        int64_t before = l->total;
        uint32_t end = n > 0 ? c + (period - 1) * N_SURE : c + 1, first = c;
        for (; c < end; c++)
            run_segment(l, &l->program->segments[calls[c].segment]);
        if (n > 0 && l->total == before)
            c = first + n;
    }
}

static uint32_t longest_segment(const OrrProgram *p) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->n_segments; i++)
        most = MAX(most, p->segments[i].n_ops);
    return most;
}

static void begin(Ledger *l, const OrrProgram *program, uint32_t r, const OrrMemoryTerms *terms) {
    const OrrRole *role = &program->roles[r];
    *l = (Ledger){.program = program,
                  .role = role,
                  .allocator = orr_allocator_new(terms->limit_bytes, terms->expands),
                  .stacks = g_array_new(FALSE, FALSE, sizeof(Stack)),
                  .pending = g_array_new(FALSE, FALSE, sizeof(Pending)),
                  .pace = terms->paces ? &terms->paces[r] : NULL,
                  .end_ns = g_new0(int64_t, longest_segment(program) + 1)};
    for (int k = 0; k < ORR_N_MEM_KINDS; k++) {
        int64_t bytes = role->static_bytes[k] - (k == ORR_MEM_OPTIMIZER ? role->late_bytes : 0);
        l->held[k] = l->at_peak[k] = role->static_bytes[k];
        l->total += role->static_bytes[k];
        if (bytes > 0)
            take(l, (OrrMemKind)k, bytes);
    }
    l->peak = l->total;
}

static void end(Ledger *l) {
    for (guint i = 0; i < l->stacks->len; i++)
        g_array_unref(g_array_index(l->stacks, Stack, i).ids);
    g_array_unref(l->stacks);
    g_array_unref(l->pending);
    g_free(l->end_ns);
    orr_allocator_free(l->allocator);
}

void orr_program_memory(const OrrProgram *program, const OrrMemoryTerms *terms, int64_t *peak,
                        int64_t (*by_kind)[ORR_N_MEM_KINDS]) {
    for (uint32_t r = 0; r < program->n_roles; r++) {
        Ledger l;
        begin(&l, program, r, terms);
        for (int step = 0; step < 2; step++) /* what outlives a step shows in the second */
            run_step(&l);
        int64_t beyond = MAX(orr_allocator_peak(l.allocator) - l.peak, 0);
        memcpy(by_kind[r], l.at_peak, sizeof l.at_peak);
        by_kind[r][ORR_MEM_ALLOCATOR] += beyond;
        peak[r] = l.peak + beyond;
        end(&l);
    }
}
