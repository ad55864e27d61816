/* Compilation of segments into items and blocks.
 *
 * A kernel starts a new block where it waits for another stream (or is waited at by a call wait),
 * where a host synchronisation lies before it, or where the operation before it on the stream is
 * one that somebody waits for. Cost: linear in operations and calls. */
#include "sim/exec/compile.h"

#include "sim/base/large.h"

#include <glib.h>
#include <string.h>

typedef struct {
    OrrCompiled *c;
    const OrrProgram *p;
    GArray *items, *waits, *blocks, *kernels;
    uint8_t *cut_before, *cut_after; /* [n_ops] */
    uint32_t *item_of;               /* [n_ops] item within its segment's stream */
} Compiler;

static bool is_memory_bound(const OrrKernel *k) {
    return !(k->kind == ORR_K_GEMM || k->kind == ORR_K_GROUPED_GEMM || k->kind == ORR_K_ATTENTION ||
             k->kind == ORR_K_BATCHED_GEMM);
}

static void mark_cuts(Compiler *k) {
    const OrrProgram *p = k->p;
    for (uint32_t s = 0; s < p->n_segments; s++) {
        const OrrSegment *seg = &p->segments[s];
        for (uint32_t i = 0; i < seg->n_ops; i++) {
            const OrrOp *op = &p->ops[seg->first_op + i];
            if (op->n_waits > 0)
                k->cut_before[seg->first_op + i] = 1;
            for (uint32_t w = 0; w < op->n_waits; w++)
                k->cut_after[seg->first_op + op->wait[w]] = 1;
            if (op->flags & ORR_OP_STEP_END)
                k->cut_after[seg->first_op + i] = 1;
        }
    }
    for (uint32_t r = 0; r < p->n_roles; r++) {
        const OrrCall *calls = p->calls + p->roles[r].first_call;
        for (uint32_t i = 0; i < p->roles[r].n_calls; i++) {
            const OrrSegment *seg = &p->segments[calls[i].segment];
            for (uint32_t w = 0; w < calls[i].n_waits; w++) {
                const OrrCallWait *wait = &p->call_waits[calls[i].first_wait + w];
                const OrrSegment *src = &p->segments[calls[wait->src_call].segment];
                uint32_t src_op = wait->src_op == UINT32_MAX ? src->n_ops - 1 : wait->src_op;
                k->cut_before[seg->first_op + wait->op] = 1;
                k->cut_after[src->first_op + src_op] = 1;
            }
        }
    }
}

typedef struct {
    int64_t host_ns;
    uint32_t n_syncs;
    int open_block; /* index of item that may still grow, or -1 */
} StreamState;

static void add_waits(Compiler *k, OrrItem *item, const OrrOp *op, const OrrSegment *seg) {
    item->first_wait = k->waits->len;
    for (uint32_t w = 0; w < op->n_waits; w++) {
        uint32_t src = seg->first_op + op->wait[w];
        const OrrOp *src_op = &k->p->ops[src];
        if (src_op->stream == op->stream && op->kind != ORR_OP_HOST)
            continue;
        OrrItemWait wait = {src_op->stream, k->item_of[src] + 1};
        g_array_append_val(k->waits, wait);
    }
    item->n_waits = k->waits->len - item->first_wait;
}

static uint32_t add_kernel(Compiler *k, uint32_t op_index, int64_t issue_ns) {
    uint32_t what = k->p->ops[op_index].what;
    OrrBlockKernel bk = {op_index, what, is_memory_bound(&k->p->kernels[what]), issue_ns};
    g_array_append_val(k->kernels, bk);
    return k->kernels->len - 1;
}

/* Items of one stream of a segment; host times are those of the whole segment. */
static void compile_stream(Compiler *k, uint32_t s, uint32_t stream, const int64_t *issue,
                           const uint32_t *syncs) {
    const OrrSegment *seg = &k->p->segments[s];
    OrrCompiledSegment *cs = &k->c->segments[s];
    bool is_open = false;
    cs->first_item[stream] = k->items->len;
    for (uint32_t i = 0; i < seg->n_ops; i++) {
        uint32_t index = seg->first_op + i;
        const OrrOp *op = &k->p->ops[index];
        if (op->stream != stream || (op->kind == ORR_OP_HOST && op->n_waits == 0))
            continue;
        OrrItem *last = is_open ? &g_array_index(k->items, OrrItem, k->items->len - 1) : NULL;
        if (op->kind == ORR_OP_KERNEL && last && !k->cut_before[index] &&
            last->n_syncs_before == syncs[i]) {
            add_kernel(k, index, issue[i]);
            g_array_index(k->blocks, OrrBlock, last->what).n_kernels++;
            last->is_step_end |= op->flags & ORR_OP_STEP_END;
        } else {
            OrrItem item = {.stream = stream,
                            .what = op->what,
                            .op = index,
                            .issue_ns = issue[i],
                            .is_step_end = op->flags & ORR_OP_STEP_END,
                            .n_syncs_before = syncs[i]};
            item.type = op->kind == ORR_OP_COLL   ? ORR_ITEM_COLL
                        : op->kind == ORR_OP_P2P  ? ORR_ITEM_P2P
                        : op->kind == ORR_OP_HOST ? ORR_ITEM_SYNC
                                                  : ORR_ITEM_BLOCK;
            if (item.type == ORR_ITEM_BLOCK) {
                OrrBlock block = {add_kernel(k, index, issue[i]), 1};
                item.what = k->blocks->len;
                g_array_append_val(k->blocks, block);
            }
            add_waits(k, &item, op, seg);
            g_array_append_val(k->items, item);
        }
        k->item_of[index] = k->items->len - 1 - cs->first_item[stream];
        is_open = op->kind == ORR_OP_KERNEL && !k->cut_after[index];
    }
    cs->n_items[stream] = k->items->len - cs->first_item[stream];
}

static int64_t host_cost(const OrrBound *b, const OrrOp *op) {
    switch ((OrrOpKind)op->kind) {
    case ORR_OP_KERNEL:
        return (int64_t)b->host_launch_ns * b->program->kernels[op->what].launches;
    case ORR_OP_COLL:
    case ORR_OP_P2P:
        return b->host_comm_ns;
    case ORR_OP_HOST:
        return op->what;
    case ORR_N_OP_KINDS:
        break;
    }
    return 0;
}

static void note_waiter(Compiler *k, uint32_t segment, uint32_t src_op, uint8_t stream) {
    uint8_t src_stream = k->p->ops[src_op].stream;
    uint32_t item = k->c->segments[segment].first_item[src_stream] + k->item_of[src_op];
    g_array_index(k->items, OrrItem, item).waiters |= 1u << stream;
    k->c->waiters[src_stream] |= 1u << stream;
}

static void note_waiters(Compiler *k, uint32_t s) {
    const OrrSegment *seg = &k->p->segments[s];
    for (uint32_t i = 0; i < seg->n_ops; i++) {
        const OrrOp *op = &k->p->ops[seg->first_op + i];
        for (uint32_t w = 0; w < op->n_waits; w++)
            note_waiter(k, s, seg->first_op + op->wait[w], op->stream);
    }
}

static void compile_segments(Compiler *k) {
    g_autoptr(GArray) issue = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autoptr(GArray) syncs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t s = 0; s < k->p->n_segments; s++) {
        const OrrSegment *seg = &k->p->segments[s];
        int64_t host = 0;
        uint32_t n_syncs = 0;
        g_array_set_size(issue, seg->n_ops);
        g_array_set_size(syncs, seg->n_ops);
        for (uint32_t i = 0; i < seg->n_ops; i++) {
            const OrrOp *op = &k->p->ops[seg->first_op + i];
            host += host_cost(k->c->bound, op);
            g_array_index(issue, int64_t, i) = host;
            g_array_index(syncs, uint32_t, i) = n_syncs;
            n_syncs += op->kind == ORR_OP_HOST && op->n_waits > 0;
        }
        k->c->segments[s].host_ns = host;
        k->c->segments[s].n_syncs = n_syncs;
        /* The host's items wait for those of all streams, so its stream comes last; waits between
         * other streams point backwards in host order, hence a first pass that numbers items. */
        for (int pass = 0; pass < 2; pass++) {
            uint32_t items = k->items->len, waits = k->waits->len, blocks = k->blocks->len,
                     kernels = k->kernels->len;
            for (uint32_t stream = 0; stream < ORR_N_STREAMS; stream++)
                compile_stream(k, s, stream, (int64_t *)issue->data, (uint32_t *)syncs->data);
            if (pass == 0) {
                g_array_set_size(k->items, items);
                g_array_set_size(k->waits, waits);
                g_array_set_size(k->blocks, blocks);
                g_array_set_size(k->kernels, kernels);
            }
        }
        note_waiters(k, s);
    }
}

static void compile_cross(Compiler *k, const OrrCall *call, const OrrCall *calls,
                          const OrrCompiledRole *role, GArray *cross) {
    const OrrProgram *p = k->p;
    const OrrSegment *seg = &p->segments[call->segment];
    for (uint32_t w = 0; w < call->n_waits; w++) {
        const OrrCallWait *wait = &p->call_waits[call->first_wait + w];
        const OrrSegment *src = &p->segments[calls[wait->src_call].segment];
        uint32_t src_op =
            src->first_op + (wait->src_op == UINT32_MAX ? src->n_ops - 1 : wait->src_op);
        uint32_t op = seg->first_op + wait->op;
        uint8_t src_stream = p->ops[src_op].stream;
        OrrCrossWait x = {.stream = p->ops[op].stream,
                          .src_stream = src_stream,
                          .item = k->item_of[op],
                          .steps_back = wait->steps_back,
                          .src_count =
                              role->rows[wait->src_call].base[src_stream] + k->item_of[src_op] + 1};
        g_array_append_val(cross, x);
        note_waiter(k, calls[wait->src_call].segment, src_op, x.stream);
        uint32_t at = k->c->segments[call->segment].first_item[x.stream] + x.item;
        g_array_index(k->items, OrrItem, at).has_cross = 1;
    }
}

static void compile_crosses(Compiler *k, OrrCompiledRole *role) {
    uint32_t n = role->n_calls;
    GArray *cross = g_array_new(FALSE, FALSE, sizeof(OrrCrossWait));
    g_autoptr(GArray) mine = g_array_new(FALSE, FALSE, sizeof(OrrCrossWait));
    role->first_cross = g_new(uint32_t, (gsize)n * ORR_N_STREAMS + 1);
    for (uint32_t i = 0; i < n; i++) {
        role->rows[i].first_cross = cross->len;
        g_array_set_size(mine, 0);
        compile_cross(k, &role->calls[i], role->calls, role, mine);
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++) {
            role->first_cross[i * ORR_N_STREAMS + s] = cross->len;
            for (uint32_t w = 0; w < mine->len; w++)
                if (g_array_index(mine, OrrCrossWait, w).stream == s)
                    g_array_append_val(cross, g_array_index(mine, OrrCrossWait, w));
        }
    }
    role->rows[n].first_cross = role->first_cross[n * ORR_N_STREAMS] = cross->len;
    role->cross = (OrrCrossWait *)g_array_free(cross, FALSE);
}

/* Who asks for which item of a step, call by call: OrrItem.waiters says it of any call. */
static void note_asked(Compiler *k, OrrCompiledRole *role) {
    uint32_t n = role->n_calls;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        role->asked[s] = g_new0(uint16_t, role->rows[n].base[s] + 1);
    for (uint32_t c = 0; c < n; c++) {
        const OrrCompiledSegment *cs = &k->c->segments[role->calls[c].segment];
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            for (uint32_t i = 0; i < cs->n_items[s]; i++) {
                const OrrItem *item = &g_array_index(k->items, OrrItem, cs->first_item[s] + i);
                for (uint32_t w = 0; w < item->n_waits; w++) {
                    const OrrItemWait *wait =
                        &g_array_index(k->waits, OrrItemWait, item->first_wait + w);
                    uint32_t at = role->rows[c].base[wait->stream] + wait->count - 1;
                    role->asked[wait->stream][at] |= 1u << s;
                }
            }
    }
    for (uint32_t i = 0; i < role->rows[n].first_cross; i++) {
        const OrrCrossWait *w = &role->cross[i];
        role->asked[w->src_stream][w->src_count - 1] |= 1u << w->stream;
    }
}

static void compile_role(Compiler *k, uint32_t r) {
    const OrrProgram *p = k->p;
    OrrCompiledRole *role = &k->c->roles[r];
    uint32_t n = role->n_calls = p->roles[r].n_calls;
    role->calls = p->calls + p->roles[r].first_call;
    role->rows = g_new0(OrrCallRow, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const OrrCompiledSegment *cs = &k->c->segments[role->calls[i].segment];
        OrrCallRow *row = &role->rows[i], *next = row + 1;
        next->host_ns = row->host_ns + cs->host_ns;
        next->syncs_before = row->syncs_before + cs->n_syncs;
        for (int s = 0; s < ORR_N_STREAMS; s++)
            next->base[s] = row->base[s] + cs->n_items[s];
        role->n_ops += p->segments[role->calls[i].segment].n_ops;
        role->n_blocks += cs->n_items[ORR_STREAM_COMPUTE];
    }
    role->next_call = g_new(uint32_t, (n + 1) * ORR_N_STREAMS);
    for (uint32_t i = n + 1; i-- > 0;)
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++) {
            bool has_items = i < n && role->rows[i + 1].base[s] > role->rows[i].base[s];
            role->next_call[i * ORR_N_STREAMS + s] =
                i == n || has_items ? i : role->next_call[(i + 1) * ORR_N_STREAMS + s];
        }
    compile_crosses(k, role);
    note_asked(k, role);
}

/* Which blocks a step of the role runs on the compute stream, and how often. */
static void count_blocks(OrrCompiled *c, OrrCompiledRole *role) {
    g_autofree uint32_t *times = g_new0(uint32_t, c->n_blocks + 1);
    for (uint32_t i = 0; i < role->n_calls; i++) {
        const OrrCompiledSegment *cs = &c->segments[role->calls[i].segment];
        const OrrItem *item = &c->items[cs->first_item[ORR_STREAM_COMPUTE]];
        for (uint32_t k = 0; k < cs->n_items[ORR_STREAM_COMPUTE]; k++)
            if (item[k].type == ORR_ITEM_BLOCK && times[item[k].what]++ == 0)
                role->n_step_blocks++;
    }
    role->step_blocks = g_malloc_n(role->n_step_blocks + 1, sizeof *role->step_blocks);
    for (uint32_t b = 0, n = 0; b < c->n_blocks; b++)
        if (times[b] > 0) {
            role->step_blocks[n].block = b;
            role->step_blocks[n++].times = times[b];
        }
}

static void compile_block_times(OrrCompiled *c) {
    const OrrBound *b = c->bound;
    g_autoptr(GArray) shares = g_array_new(FALSE, TRUE, sizeof(OrrShare));
    c->times = orr_large_new(((gsize)b->n_hw * c->n_blocks + 1) * sizeof *c->times);
    for (uint32_t hw = 0; hw < b->n_hw; hw++) {
        const int64_t *ns = b->kernel_ns + (gsize)hw * b->program->n_kernels;
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            const OrrBlock *block = &c->blocks[i];
            OrrBlockTime *time = &c->times[(gsize)hw * c->n_blocks + i];
            int64_t by_kind[ORR_N_KERNEL_KINDS] = {0};
            for (uint32_t j = block->n_kernels; j-- > 0;) {
                const OrrBlockKernel *bk = &c->kernels[block->first_kernel + j];
                time->work_ns += ns[bk->kernel];
                time->host_ns = MAX(time->host_ns, bk->issue_ns + time->work_ns);
                by_kind[b->program->kernels[bk->kernel].kind] += ns[bk->kernel];
            }
            time->first_share = shares->len;
            for (int kind = 0; kind < ORR_N_KERNEL_KINDS; kind++) {
                OrrShare share = {kind, by_kind[kind]};
                if (by_kind[kind] > 0)
                    g_array_append_val(shares, share);
            }
            time->n_shares = shares->len - time->first_share;
        }
    }
    c->shares = orr_large_dup(shares->data, shares->len * sizeof *c->shares);
}

OrrCompiled *orr_compile_shape(const OrrBound *bound) {
    const OrrProgram *p = bound->program;
    OrrCompiled *c = g_new0(OrrCompiled, 1);
    Compiler k = {.c = c, .p = p};
    c->bound = bound;
    c->segments = g_new0(OrrCompiledSegment, p->n_segments + 1);
    c->roles = g_new0(OrrCompiledRole, p->n_roles + 1);
    k.items = g_array_new(FALSE, TRUE, sizeof(OrrItem));
    k.waits = g_array_new(FALSE, TRUE, sizeof(OrrItemWait));
    k.blocks = g_array_new(FALSE, TRUE, sizeof(OrrBlock));
    k.kernels = g_array_new(FALSE, TRUE, sizeof(OrrBlockKernel));
    k.cut_before = g_new0(uint8_t, p->n_ops + 1);
    k.cut_after = g_new0(uint8_t, p->n_ops + 1);
    k.item_of = g_new0(uint32_t, p->n_ops + 1);
    mark_cuts(&k);
    compile_segments(&k);
    for (uint32_t r = 0; r < p->n_roles; r++)
        compile_role(&k, r);
    c->n_blocks = k.blocks->len;
    c->items = (OrrItem *)g_array_free(k.items, FALSE);
    c->waits = (OrrItemWait *)g_array_free(k.waits, FALSE);
    c->blocks = (OrrBlock *)g_array_free(k.blocks, FALSE);
    c->kernels = (OrrBlockKernel *)g_array_free(k.kernels, FALSE);
    for (uint32_t r = 0; r < p->n_roles; r++)
        count_blocks(c, &c->roles[r]);
    g_free(k.cut_before);
    g_free(k.cut_after);
    g_free(k.item_of);
    return c;
}

OrrCompiled *orr_compile(const OrrBound *bound) {
    OrrCompiled *c = orr_compile_shape(bound);
    compile_block_times(c);
    return c;
}

void orr_compiled_free(OrrCompiled *c) {
    if (!c)
        return;
    for (uint32_t r = 0; r < c->bound->program->n_roles; r++) {
        g_free(c->roles[r].rows);
        g_free(c->roles[r].cross);
        g_free(c->roles[r].first_cross);
        g_free(c->roles[r].next_call);
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            g_free(c->roles[r].asked[s]);
        g_free(c->roles[r].step_blocks);
    }
    g_free(c->roles);
    g_free(c->segments);
    g_free(c->items);
    g_free(c->waits);
    g_free(c->blocks);
    g_free(c->kernels);
    g_free(c->times);
    g_free(c->shares);
    g_free(c);
}
