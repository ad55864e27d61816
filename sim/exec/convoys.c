/* Convoys: which sends may go in one, and whether their ends may be told of late. */
#include "sim/base/large.h"
#include "sim/exec/convoy.h"
#include "sim/exec/pass.h"

#include <stdlib.h>
#include <string.h>

static const OrrProgram *program(const OrrExec *x) {
    return x->bound->program;
}

/* Streams of sends and receives one at a time, launched ahead, for which only local streams and
 * each other wait. */
static uint16_t find_streams(const OrrExec *x) {
    const OrrProgram *p = program(x);
    uint16_t found = x->external_mask, local = 1u << ORR_STREAM_COMPUTE | 1u << ORR_STREAM_TP;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        bool is_single = op->kind == ORR_OP_P2P && p->p2ps[op->what].n_parts == 1 &&
                         x->is_early[op->what] && !(op->flags & ORR_OP_STEP_END);
        if (!is_single)
            found &= ~(1u << op->stream);
    }
    for (uint16_t before = 0; before != found;) {
        before = found;
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            if (x->compiled->waiters[s] & ~(local | before))
                found &= ~(1u << s);
    }
    return found;
}

/* Whether both sides of the communicator are on such streams. */
static bool is_eligible(const OrrExec *x, uint32_t kind, uint32_t comm) {
    const OrrProgram *p = program(x);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        if (op->kind != ORR_OP_P2P || (x->convoys->streams & 1u << op->stream))
            continue;
        const OrrP2p *batch = &p->p2ps[op->what];
        for (uint32_t k = 0; k < batch->n_parts; k++) {
            const OrrP2pPart *part = &p->parts[batch->first_part + k];
            if (part->group == kind && part->comm == comm)
                return false;
        }
    }
    return true;
}

/* Whether the local streams of the call wait for nothing external but call @receive. */
static bool waits_only_for(const OrrExec *x, const OrrCompiledRole *r, uint32_t call,
                           uint32_t receive) {
    for (uint32_t i = r->rows[call].first_cross; i < r->rows[call + 1].first_cross; i++) {
        const OrrCrossWait *w = &r->cross[i];
        bool is_receive = w->steps_back == 0 &&
                          w->src_count > r->rows[receive].base[w->src_stream] &&
                          w->src_count <= r->rows[receive + 1].base[w->src_stream];
        bool is_local = w->stream == ORR_STREAM_COMPUTE || w->stream == ORR_STREAM_TP;
        if (is_local && x->is_external[w->src_stream] && !is_receive)
            return false;
    }
    return true;
}

/* The call of a pass that waits for call @c of the role, a receive, with both its streams, and for
 * nothing else from outside, and begins behind a pass whose kernels its collectives wait for: its
 * streams are at rest until then. Plus 1; 0: none. */
static uint32_t late_call(const OrrExec *x, uint32_t role, uint32_t c, const uint32_t *waiting) {
    const OrrCompiledRole *r = &x->compiled->roles[role];
    const uint8_t *kinds = x->passes->calls[role];
    uint32_t call = waiting[c];
    if (call == 0 || !kinds[call - 1] || !waits_only_for(x, r, call - 1, c))
        return 0;
    for (uint32_t before = call - 1; before-- > 0;)
        for (int k = 0; k < ORR_PASS_LANES; k++)
            if (r->rows[before + 1].base[orr_pass_lane[k]] > r->rows[before].base[orr_pass_lane[k]])
                return kinds[before] && orr_pass__is_tight(x, r, before) ? call : 0;
    return 0;
}

#define NOT_ONE UINT32_MAX /* several calls wait for it, or one of another step */

/* By call of the role: the one call, plus 1, whose both local streams wait for it. */
static uint32_t *waiting_calls(const OrrExec *x, const OrrCompiledRole *r) {
    uint32_t *waiting = g_new0(uint32_t, r->n_calls + 1);
    g_autofree uint8_t *lanes = g_new0(uint8_t, r->n_calls + 1);
    for (uint32_t call = 0; call < r->n_calls; call++)
        for (uint32_t i = r->rows[call].first_cross; i < r->rows[call + 1].first_cross; i++) {
            const OrrCrossWait *w = &r->cross[i];
            if (!(x->convoys->streams & 1u << w->src_stream))
                continue;
            uint32_t low = orr_pass__call_of(r, w->src_stream, w->src_count);
            bool is_local = w->stream == ORR_STREAM_COMPUTE || w->stream == ORR_STREAM_TP;
            if (!is_local || w->steps_back > 0 || (waiting[low] != 0 && waiting[low] != call + 1))
                waiting[low] = NOT_ONE;
            else
                waiting[low] = call + 1;
            lanes[low] |= 1u << (w->stream == ORR_STREAM_TP);
        }
    for (uint32_t c = 0; c < r->n_calls; c++)
        if (waiting[c] == NOT_ONE || lanes[c] != 3)
            waiting[c] = 0;
    return waiting;
}

static void find_late_calls(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    uint32_t n_roles = program(x)->n_roles;
    v->late_call = g_new0(uint32_t *, n_roles + 1);
    for (uint32_t r = 0; r < n_roles; r++) {
        uint32_t n = x->compiled->roles[r].n_calls;
        v->late_call[r] = g_new0(uint32_t, n + 1);
        if (!x->passes)
            continue;
        g_autofree uint32_t *waiting = waiting_calls(x, &x->compiled->roles[r]);
        for (uint32_t c = 0; c < n; c++)
            v->late_call[r][c] = late_call(x, r, c, waiting);
    }
}

bool orr_convoy__can_be_late(const OrrExec *x, const OrrConvoy *c) {
    const OrrConvoys *v = x->convoys;
    const OrrPlace *place = &x->places[c->first_place];
    uint16_t local = 1u << ORR_STREAM_COMPUTE | 1u << ORR_STREAM_TP;
    uint32_t r = place->ends[1];
    if (!x->passes || x->compiled->waiters[place->stream] ||
        (x->compiled->waiters[place->receive_stream] & ~local) ||
        !(v->single[c->role[0]] & 1u << place->stream) ||
        !(v->single[c->role[1]] & 1u << place->receive_stream))
        return false;
    const OrrLane *l = orr_exec__lane(x, r, place->receive_stream);
    uint32_t call = v->late_call[c->role[1]][l->call];
    return call > 0 && x->passes->islands[c->island[1]].released <
                           l->step * orr_exec__role(x, r)->n_calls + call;
}

int64_t orr_convoy__next_send_ns(const OrrExec *x, const OrrConvoy *c) {
    const OrrPlace *place = &x->places[c->first_place];
    const uint32_t *list;
    uint32_t n = orr_convoy__members(x, c->island[0], &list), s = place->stream;
    uint32_t call = orr_exec__lane(x, list[0], s)->call;
    int64_t first_ns = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const OrrPredecessor *pred = orr_exec__pred(x, list[i], s);
        if (pred->is_issue_bound || pred->pred != ORR_PRED_WAIT ||
            pred->stream != ORR_STREAM_COMPUTE)
            return INT64_MIN;
        first_ns = MIN(first_ns, *orr_exec__start_ns(x, list[i], s));
    }
    return first_ns + x->convoys->gap_ns[c->role[0]][call * ORR_N_STREAMS + s];
}

/* The place of the send like @id by member @i of the island that begins with its sender, if it goes
 * to member @i of the island that begins with its receiver. */
static uint32_t place_of(const OrrExec *x, uint32_t id, uint32_t i, const uint32_t *list[2]) {
    const OrrPlace *place = &x->places[id];
    const OrrBoundGroup *g = &x->bound->groups[place->group];
    uint32_t of_first = g->group_of[list[0][0]], of_this = g->group_of[list[0][i]];
    if (of_first == ORR_NONE || of_this == ORR_NONE)
        return ORR_NONE;
    uint32_t other = id + of_this - of_first;
    const OrrPlace *o = &x->places[other];
    return o->ends[0] == list[0][i] && o->ends[1] == list[1][i] ? other : ORR_NONE;
}

static void add_convoy(OrrExec *x, uint32_t id) {
    OrrConvoys *v = x->convoys;
    const uint32_t *list[2];
    uint32_t n[2];
    for (int k = 0; k < 2; k++)
        n[k] = orr_convoy__members(x, x->island_of[x->places[id].ends[k]], &list[k]);
    bool is_first = list[0][0] == x->places[id].ends[0] && list[1][0] == x->places[id].ends[1];
    if (!is_first || n[0] < 2 || n[0] != n[1] || list[0] == list[1])
        return;
    for (uint32_t i = 0; i < n[0]; i++) {
        uint32_t other = place_of(x, id, i, list);
        if (other == ORR_NONE)
            return;
        v->places[v->n_places + i] = other;
    }
    OrrConvoy *c = &v->convoys[v->n];
    *c = (OrrConvoy){.island = {x->island_of[list[0][0]], x->island_of[list[1][0]]},
                     .role = {x->bound->role[list[0][0]], x->bound->role[list[1][0]]},
                     .n = n[0],
                     .first = v->n_places,
                     .joint_what = ORR_NONE,
                     .flow = ORR_NONE,
                     .first_place = v->places[v->n_places],
                     .onward = ORR_NONE,
                     .next_late = ORR_NONE};
    for (uint32_t i = 0; i < c->n; i++)
        x->places[v->places[c->first + i]].convoy = v->n;
    v->n_places += c->n;
    v->n++;
}

/* Of all pairs of a communicator. */
static void add_convoys(OrrExec *x, uint32_t kind, uint32_t comm) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    uint32_t first = x->pair_place[kind][comm], n = g->n_groups * g->n_pairs;
    if (first == ORR_NONE || !is_eligible(x, kind, comm))
        return;
    for (uint32_t i = 0; i < n; i++)
        add_convoy(x, first + i);
}

/* What events of a convoy ask for lies together. */
static void gather_uses(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    gsize n = 0;
    for (uint32_t i = 0; i < v->n_places; i++)
        n += x->places[v->places[i]].n_uses;
    OrrUse *to = v->uses = orr_large_new((n + 1) * sizeof *v->uses);
    for (uint32_t i = 0; i < v->n_places; i++) {
        OrrPlace *place = &x->places[v->places[i]];
        if (place->n_uses == 0)
            continue;
        memcpy(to, place->uses, place->n_uses * sizeof *to);
        place->uses = to;
        to += place->n_uses;
    }
}

static int64_t least_ns(const OrrExec *x) {
    const OrrProgram *p = program(x);
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const OrrBoundGroup *g = &x->bound->groups[p->parts[i].group];
        for (uint32_t c = 0; c < g->n_pair_classes; c++)
            least = MIN(least, orr_exec__private_ns(&g->pair_plans[(gsize)c * p->n_parts + i]));
    }
    return least;
}

/* Streams of the role whose sends or receives all are with one peer, and of one size: its transfers
 * follow each other on one place. */
static uint16_t single_streams(const OrrExec *x, const OrrCompiledRole *role) {
    const OrrProgram *p = program(x);
    const OrrP2pPart *of[ORR_N_STREAMS] = {0};
    uint16_t single = x->convoys->streams;
    for (uint32_t c = 0; c < role->n_calls; c++) {
        const OrrSegment *seg = &p->segments[role->calls[c].segment];
        for (uint32_t i = 0; i < seg->n_ops; i++) {
            const OrrOp *op = &p->ops[seg->first_op + i];
            if (!(single & 1u << op->stream))
                continue;
            const OrrP2pPart *part = &p->parts[p->p2ps[op->what].first_part];
            const OrrP2pPart **a = &of[op->stream];
            if (*a == NULL)
                *a = part;
            if ((*a)->is_send != part->is_send || (*a)->group != part->group ||
                (*a)->comm != part->comm || (*a)->peer != part->peer || (*a)->bytes != part->bytes)
                single &= ~(1u << op->stream);
        }
    }
    return single;
}

/* What the kernels of a block take at least, on any hardware. */
static int64_t *least_of_blocks(const OrrExec *x) {
    const OrrCompiled *c = x->compiled;
    int64_t *least_ns = g_new(int64_t, c->n_blocks + 1);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        least_ns[b] = INT64_MAX;
        for (uint32_t h = 0; h < x->bound->n_hw; h++)
            least_ns[b] = MIN(least_ns[b], c->times[(gsize)h * c->n_blocks + b].work_ns);
    }
    return least_ns;
}

/* Blocks and others of the compute stream: what those before number i of a step take at least. */
static int64_t *least_before(const OrrExec *x, const OrrCompiledRole *r, const int64_t *least_ns) {
    uint32_t at = 0;
    int64_t *before_ns = g_new0(int64_t, r->rows[r->n_calls].base[ORR_STREAM_COMPUTE] + 1);
    for (uint32_t c = 0; c < r->n_calls; c++) {
        const OrrCompiledSegment *cs = &x->compiled->segments[r->calls[c].segment];
        for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++, at++) {
            const OrrItem *item = &x->compiled->items[cs->first_item[ORR_STREAM_COMPUTE] + i];
            before_ns[at + 1] =
                before_ns[at] + (item->type == ORR_ITEM_BLOCK ? least_ns[item->what] : 0);
        }
    }
    return before_ns;
}

/* Items of the compute stream in the step that have ended when the only item of stream @s in the
 * call starts; 0: none that is known. */
static uint32_t blocks_before(const OrrExec *x, const OrrCompiledRole *r, uint32_t call,
                              uint32_t s) {
    const OrrCompiledSegment *cs = &x->compiled->segments[r->calls[call].segment];
    const uint32_t *first = &r->first_cross[call * ORR_N_STREAMS + s];
    uint32_t n = 0;
    for (uint32_t i = first[0]; i < first[1] && cs->n_items[s] == 1; i++)
        if (r->cross[i].src_stream == ORR_STREAM_COMPUTE && r->cross[i].steps_back == 0)
            n = MAX(n, r->cross[i].src_count);
    return n;
}

static int64_t *find_gaps(const OrrExec *x, const OrrCompiledRole *r, const int64_t *least_ns) {
    uint32_t n = r->n_calls, n_step = r->rows[n].base[ORR_STREAM_COMPUTE];
    int64_t *gap_ns = g_new0(int64_t, (gsize)(n + 1) * ORR_N_STREAMS);
    g_autofree int64_t *before_ns = least_before(x, r, least_ns);
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++) {
            if (!(x->convoys->streams & 1u << s) || blocks_before(x, r, c, s) == 0)
                continue;
            uint32_t next = r->next_call[(c + 1) * ORR_N_STREAMS + s];
            bool is_later = next == n;
            uint32_t to = blocks_before(x, r, is_later ? r->next_call[s] : next, s);
            int64_t ns = before_ns[to] + (is_later ? before_ns[n_step] : 0);
            if (to > 0)
                gap_ns[c * ORR_N_STREAMS + s] = MAX(ns - before_ns[blocks_before(x, r, c, s)], 0);
        }
    return gap_ns;
}

static void gaps_new(OrrExec *x) {
    uint32_t n_roles = program(x)->n_roles;
    g_autofree int64_t *least_ns = least_of_blocks(x);
    x->convoys->gap_ns = g_new0(int64_t *, n_roles + 1);
    for (uint32_t r = 0; r < n_roles; r++)
        x->convoys->gap_ns[r] = find_gaps(x, &x->compiled->roles[r], least_ns);
}

void orr_exec__convoys_new(OrrExec *x) {
    if (x->jitter || x->options->is_plain || !x->is_local_group[ORR_GROUP_TP] ||
        !orr_pass__is_one_role_each(x))
        return;
    uint16_t streams = find_streams(x);
    if (streams == 0)
        return;
    OrrConvoys *v = x->convoys = g_new0(OrrConvoys, 1);
    v->streams = streams;
    v->convoys = orr_large_new((x->n_places + 1) * sizeof *v->convoys);
    v->places = orr_large_new((x->n_places + 1) * sizeof *v->places);
    v->over = g_new(uint32_t, x->n_places + 1);
    v->told = g_new(uint32_t, x->n_places + 1);
    v->ended = g_new(uint32_t, x->n_places + 1);
    v->late = g_new(uint32_t, x->n_islands + 1);
    v->of = orr_large_new(((gsize)x->n_islands + 1) * ORR_CONVOY_STREAMS * sizeof *v->of);
    v->arrived = g_new(uint32_t, x->n_islands + 1);
    for (uint32_t i = 0; i < x->n_islands; i++)
        v->late[i] = v->arrived[i] = ORR_NONE;
    for (uint32_t kind = 0; kind < ORR_N_GROUPS; kind++)
        for (uint32_t comm = 0; comm < 256; comm++)
            add_convoys(x, kind, comm);
    gather_uses(x);
    orr_convoy__joints_new(x);
    v->least_ns = least_ns(x);
    v->single = g_new0(uint16_t, program(x)->n_roles + 1);
    for (uint32_t r = 0; r < program(x)->n_roles; r++)
        v->single[r] = single_streams(x, &x->compiled->roles[r]);
    find_late_calls(x);
    gaps_new(x);
}

void orr_exec__convoys_clear(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    if (!v)
        return;
    for (uint32_t r = 0; r < program(x)->n_roles; r++) {
        g_free(v->late_call[r]);
        g_free(v->gap_ns[r]);
    }
    g_free(v->late_call);
    g_free(v->gap_ns);
    g_free(v->over);
    g_free(v->told);
    g_free(v->ended);
    g_free(v->late);
    free(v->of);
    g_free(v->arrived);
    g_free(v->single);
    orr_convoy__joints_clear(v);
    free(v->convoys);
    free(v->places);
    free(v->uses);
    g_free(v);
}
