/* Which calls can be taken as passes: what an island does in them is a static recursion over its
 * members and their items.
 *
 * A call is such a pass if its segment has kernels on the compute stream and collectives of the
 * island on the TP stream, beside what external streams do, and no host synchronisation; if these
 * two streams wait for other calls at its begin only, and for no external stream within it; if its
 * members meet in it; if its last kernels come after all its collectives; and if what others wait
 * for in it comes after its members have met.
 *
 * It can be taken to its end at once if until that it sets off no communication that slows kernels
 * and the island's next collective waits for all its kernels. It can be taken piece by piece, as
 * others see it, if no external stream waits for one of its collectives but the last. */
#include "sim/exec/pass.h"

#include "sim/base/large.h"

#include <stdlib.h>

/* Waits of @item for the other stream of a pass, as items that must have ended. */
static uint32_t need_of(const OrrExec *x, const OrrItem *item, uint32_t other) {
    uint32_t need = 0;
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *w = &x->compiled->waits[item->first_wait + i];
        if (w->stream == other)
            need = MAX(need, w->count);
    }
    return need;
}

static bool waits_outside(const OrrExec *x, const OrrItem *item) {
    for (uint32_t i = 0; i < item->n_waits; i++) {
        uint32_t s = x->compiled->waits[item->first_wait + i].stream;
        if (s != ORR_STREAM_COMPUTE && s != ORR_STREAM_TP)
            return true;
    }
    return false;
}

/* Operands that the recursion knows: kernels on one stream, collectives on the other. */
static bool has_known_items(const OrrExec *x, const OrrCompiledSegment *cs) {
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        if (s != ORR_STREAM_COMPUTE && s != ORR_STREAM_TP && !x->is_external[s] &&
            cs->n_items[s] > 0)
            return false;
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++) {
        const OrrItem *item = orr_pass__item(x, cs, ORR_STREAM_COMPUTE, i);
        if (item->is_step_end || item->type != ORR_ITEM_BLOCK || waits_outside(x, item))
            return false;
    }
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_TP]; i++) {
        const OrrItem *item = orr_pass__item(x, cs, ORR_STREAM_TP, i);
        if (item->type != ORR_ITEM_COLL || waits_outside(x, item))
            return false;
    }
    return cs->n_syncs == 0 && cs->n_items[ORR_STREAM_COMPUTE] > 0;
}

/* Collectives until all members, on both streams, must have begun: the first that waits for kernels
 * is the last of them. Beyond all if there is none. */
static uint32_t meeting_of(const OrrExec *x, const OrrCompiledSegment *cs) {
    uint32_t n = 0;
    if (x->passes->most_members == 1 && cs->n_items[ORR_STREAM_TP] == 0)
        return 0; /* alone, on one stream */
    while (n < cs->n_items[ORR_STREAM_TP] &&
           need_of(x, orr_pass__item(x, cs, ORR_STREAM_TP, n), ORR_STREAM_COMPUTE) == 0)
        n++;
    return n + 1;
}

/* The members move on when all have begun: a local stream of another call may wait for the last
 * item of a stream only, an external one only for what ends after the members have met. */
static bool has_known_waiters(const OrrExec *x, const OrrCompiledSegment *cs,
                              const uint8_t *is_awaited) {
    uint32_t meeting = meeting_of(x, cs), need = 0;
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++) {
        const OrrItem *item = orr_pass__item(x, cs, ORR_STREAM_COMPUTE, i);
        need = MAX(need, need_of(x, item, ORR_STREAM_TP));
        if (need < meeting && (item->waiters & x->external_mask))
            return false;
    }
    for (uint32_t i = 0; i + 1 < meeting && i < cs->n_items[ORR_STREAM_TP]; i++)
        if (orr_pass__item(x, cs, ORR_STREAM_TP, i)->waiters & x->external_mask)
            return false;
    for (uint32_t k = 0; k < ORR_PASS_LANES; k++)
        for (uint32_t i = 0; i + 1 < cs->n_items[orr_pass_lane[k]]; i++)
            if (is_awaited[cs->first_item[orr_pass_lane[k]] + i])
                return false;
    return true;
}

/* The call whose items of stream @s item number @count of a step is among, counted from 1. */
uint32_t orr_pass__call_of(const OrrCompiledRole *role, uint32_t s, uint32_t count) {
    uint32_t low = 0, high = role->n_calls;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (role->rows[middle].base[s] < count)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Items that a local stream of another call waits for, the host included. */
static uint8_t *awaited_items(const OrrExec *x, uint32_t n_items) {
    uint8_t *is_awaited = g_new0(uint8_t, n_items + 1);
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++) {
        const OrrCompiledRole *role = &x->compiled->roles[r];
        const OrrCallRow *rows = role->rows;
        for (uint32_t i = 0; i < rows[role->n_calls].first_cross; i++) {
            const OrrCrossWait *c = &role->cross[i];
            if (x->is_external[c->stream])
                continue;
            uint32_t low = orr_pass__call_of(role, c->src_stream, c->src_count);
            const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[low].segment];
            is_awaited[cs->first_item[c->src_stream] + c->src_count - 1 -
                       rows[low].base[c->src_stream]] = 1;
        }
    }
    return is_awaited;
}

bool orr_pass__is_one_role_each(const OrrExec *x) {
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    for (uint32_t g = 0; x->is_local_group[ORR_GROUP_TP] && g < tp->n_groups; g++)
        for (uint32_t m = tp->first_member[g]; m < tp->first_member[g + 1]; m++)
            if (x->bound->role[tp->members[m]] != x->bound->role[tp->members[tp->first_member[g]]])
                return false;
    return true;
}

/* External streams by whether their communication slows kernels. */
static void find_loud(const OrrExec *x, uint16_t *loud, uint16_t *quiet) {
    const OrrProgram *p = x->bound->program;
    *quiet = 1u << ORR_STREAM_HOST;
    *loud = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        if ((op->kind != ORR_OP_COLL && op->kind != ORR_OP_P2P) || !x->is_external[op->stream])
            continue;
        OrrItem item = {.type = op->kind == ORR_OP_COLL ? ORR_ITEM_COLL : ORR_ITEM_P2P,
                        .what = op->what};
        bool takes_sms;
        uint32_t purpose = orr_exec__purpose(x, &item, &takes_sms);
        bool is_loud = takes_sms && orr_exec__slows_kernels(x, purpose);
        *(is_loud ? loud : quiet) |= 1u << op->stream;
    }
}

/* An external communication that slows kernels is told before it starts unless it waits for another
 * that slows none (or for the host): then it could begin in the middle of a pass, unawares. */
static bool can_surprise(const OrrExec *x, uint16_t loud, uint16_t quiet) {
    if (loud & quiet)
        return true;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        if ((quiet & 1u << s) && (x->compiled->waiters[s] & loud))
            return true;
    return false;
}

/* Whether a step ends on another stream than the compute stream (replayed traces): its account is
 * closed when that ends, whatever pass is under way. */
static bool ends_elsewhere(const OrrExec *x) {
    const OrrProgram *p = x->bound->program;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if ((p->ops[i].flags & ORR_OP_STEP_END) && p->ops[i].stream != ORR_STREAM_COMPUTE)
            return true;
    return false;
}

/* Whether the next collective of the island behind call @c of the role, in this step or the next,
 * waits for all kernels of the call: else it could slow the last of them. */
bool orr_pass__is_tight(const OrrExec *x, const OrrCompiledRole *role, uint32_t c) {
    uint32_t next = role->next_call[(c + 1) * ORR_N_STREAMS + ORR_STREAM_TP];
    uint32_t n_kernels = role->rows[c + 1].base[ORR_STREAM_COMPUTE];
    bool is_later = next == role->n_calls;
    if (is_later)
        next = role->next_call[ORR_STREAM_TP];
    if (next == role->n_calls)
        return true; /* there is none */
    const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[next].segment];
    if (need_of(x, orr_pass__item(x, cs, ORR_STREAM_TP, 0), ORR_STREAM_COMPUTE) > 0)
        return true;
    for (uint32_t i = role->rows[next].first_cross; i < role->rows[next + 1].first_cross; i++) {
        const OrrCrossWait *w = &role->cross[i];
        if (w->stream != ORR_STREAM_TP || w->item != 0 || w->src_stream != ORR_STREAM_COMPUTE)
            continue;
        if (w->steps_back < is_later || (w->steps_back == is_later && w->src_count >= n_kernels))
            return true;
    }
    return false;
}

/* Calls of a role that are passes: their waits for other calls are at their begin. */
static uint8_t *find_calls(const OrrExec *x, const OrrCompiledRole *role) {
    uint8_t *kinds = g_new0(uint8_t, role->n_calls + 1);
    for (uint32_t c = 0; c < role->n_calls; c++) {
        uint32_t segment = role->calls[c].segment;
        bool is_pass = x->passes->is_pass[segment], is_whole = x->passes->is_quiet[segment];
        for (uint32_t i = role->rows[c].first_cross; i < role->rows[c + 1].first_cross; i++)
            is_pass &= role->cross[i].item == 0 || x->is_external[role->cross[i].stream];
        bool has_tp = x->compiled->segments[segment].n_items[ORR_STREAM_TP] > 0;
        is_whole &= orr_pass__is_tight(x, role, c);
        is_pass &= has_tp || orr_pass__is_tight(x, role, c);
        if (is_pass)
            kinds[c] =
                (is_whole ? ORR_PASS_WHOLE : 0) | (x->passes->is_open[segment] ? ORR_PASS_OPEN : 0);
    }
    return kinds;
}

/* Whether cross wait @i, of some stream, is beside one for the last kernels of call @c. */
static bool has_kernels_beside(const OrrCompiledRole *role, const uint32_t *first, uint32_t i,
                               uint32_t c) {
    const OrrCrossWait *w = &role->cross[i];
    for (uint32_t j = first[0]; j < first[1]; j++) {
        const OrrCrossWait *other = &role->cross[j];
        if (other->item == w->item && other->steps_back == w->steps_back &&
            other->src_stream == ORR_STREAM_COMPUTE &&
            other->src_count == role->rows[c + 1].base[ORR_STREAM_COMPUTE])
            return true;
    }
    return false;
}

/* External streams that ask for collectives of a call without its last kernels, which end later. */
static uint16_t *find_tp_askers(const OrrExec *x, const OrrCompiledRole *role) {
    uint16_t *askers = g_new0(uint16_t, role->n_calls + 1);
    for (uint32_t d = 0; d < role->n_calls; d++)
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++) {
            const uint32_t *first = &role->first_cross[d * ORR_N_STREAMS + s];
            for (uint32_t i = first[0]; x->is_external[s] && i < first[1]; i++) {
                if (role->cross[i].src_stream != ORR_STREAM_TP)
                    continue;
                uint32_t c = orr_pass__call_of(role, ORR_STREAM_TP, role->cross[i].src_count);
                if (!has_kernels_beside(role, first, i, c))
                    askers[c] |= 1u << s;
            }
        }
    for (uint32_t c = 0; c < role->n_calls; c++) {
        const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[c].segment];
        for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
            for (uint32_t i = 0; x->is_external[q] && i < cs->n_items[q]; i++)
                if (need_of(x, orr_pass__item(x, cs, q, i), ORR_STREAM_TP) > 0)
                    askers[c] |= 1u << q;
    }
    return askers;
}

/* Whether its last kernels come after all its collectives, and after the members have met. */
static bool ends_with_kernels(const OrrExec *x, const OrrCompiledSegment *cs) {
    uint32_t need = 0;
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++)
        need = MAX(need, need_of(x, orr_pass__item(x, cs, ORR_STREAM_COMPUTE, i), ORR_STREAM_TP));
    return need == cs->n_items[ORR_STREAM_TP] && need >= meeting_of(x, cs);
}

static bool is_open(const OrrExec *x, const OrrCompiledSegment *cs) {
    for (uint32_t i = 0; i + 1 < cs->n_items[ORR_STREAM_TP]; i++)
        if (orr_pass__item(x, cs, ORR_STREAM_TP, i)->waiters & x->external_mask)
            return false;
    return true;
}

static bool is_quiet(const OrrExec *x, const OrrCompiledSegment *cs) {
    for (uint32_t i = 0; i + 1 < cs->n_items[ORR_STREAM_COMPUTE]; i++)
        if (orr_pass__item(x, cs, ORR_STREAM_COMPUTE, i)->waiters & x->passes->loud_mask)
            return false;
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_TP]; i++)
        if (orr_pass__item(x, cs, ORR_STREAM_TP, i)->waiters & x->passes->loud_mask)
            return false;
    return true;
}

/* The first collective at whose end no member has anything under way: its kernels have come to one
 * that waits for it, and the next collective waits for that. Number of collectives up to it; 0:
 * there is none. */
static uint32_t tail_after(const OrrExec *x, const OrrCompiledSegment *cs) {
    const uint32_t *need_coll = x->passes->need + cs->first_item[ORR_STREAM_COMPUTE];
    const uint32_t *need_block = x->passes->need + cs->first_item[ORR_STREAM_TP];
    uint32_t n_colls = cs->n_items[ORR_STREAM_TP], done = 0;
    for (uint32_t j = 0; j < n_colls; j++) {
        done = MAX(done, need_block[j]);
        if (done == cs->n_items[ORR_STREAM_COMPUTE])
            return 0;
        if (need_coll[done] == j + 1 && (j + 1 == n_colls || need_block[j + 1] > done))
            return j + 1;
    }
    return 0;
}

static void find_passes(OrrExec *x) {
    OrrPasses *p = x->passes;
    uint32_t n = x->bound->program->n_segments, n_items = 0;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
            n_items = MAX(n_items, x->compiled->segments[s].first_item[q] +
                                       x->compiled->segments[s].n_items[q]);
    g_autofree uint8_t *is_awaited = awaited_items(x, n_items);
    bool may_open = !ends_elsewhere(x);
    p->need = g_new0(uint32_t, n_items + 1);
    p->shown = g_new0(uint32_t, n_items + 1);
    p->is_pass = g_new0(uint8_t, n + 1);
    p->is_open = g_new0(uint8_t, n + 1);
    p->is_quiet = g_new0(uint8_t, n + 1);
    p->meeting = g_new0(uint32_t, n + 1);
    p->tail_of = g_new0(uint32_t, n + 1);
    for (uint32_t s = 0; s < n; s++) {
        const OrrCompiledSegment *cs = &x->compiled->segments[s];
        for (uint32_t k = 0; k < ORR_PASS_LANES; k++) {
            uint32_t n_lane = cs->n_items[orr_pass_lane[k]], next = n_lane;
            for (uint32_t i = n_lane; i-- > 0;) {
                uint32_t at = cs->first_item[orr_pass_lane[k]] + i;
                p->need[at] = need_of(x, &x->compiled->items[at], orr_pass_lane[1 - k]);
                next = x->compiled->items[at].waiters & x->external_mask ? i : next;
                p->shown[at] = next;
            }
        }
        if (!has_known_items(x, cs) || !has_known_waiters(x, cs, is_awaited))
            continue;
        p->is_open[s] = may_open && is_open(x, cs);
        p->is_quiet[s] = is_quiet(x, cs);
        p->is_pass[s] = ends_with_kernels(x, cs);
        p->meeting[s] = tail_after(x, cs);
        p->tail_of[s] = p->n_tails;
        p->n_tails += p->meeting[s] > 0;
        p->most_items =
            MAX(p->most_items, MAX(cs->n_items[ORR_STREAM_COMPUTE], cs->n_items[ORR_STREAM_TP]));
    }
}

OrrPassWork *orr_pass__work_new(const OrrPasses *p) {
    gsize n = p->most_members, n_items = n * p->most_items;
    OrrPassWork *w =
        orr_large_new(sizeof *w + n * (sizeof *w->starts + sizeof *w->members) +
                      n_items * (ORR_PASS_LANES * sizeof(int64_t) + sizeof(OrrPassWait)));
    const OrrPassParts parts = orr_pass__parts(p, w);
    w->starts = parts.starts;
    w->members = parts.members;
    for (uint32_t m = 0; m < n; m++) {
        w->members[m].end_ns[0] = parts.ends + (gsize)2 * m * p->most_items;
        w->members[m].end_ns[1] = parts.ends + (gsize)(2 * m + 1) * p->most_items;
        w->members[m].waits = parts.waits + (gsize)m * p->most_items;
    }
    return w;
}

/* What is always the same of the island of @r. */
static void note_island(const OrrExec *x, uint32_t r) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    pass->calls = x->passes->calls[x->bound->role[r]];
    pass->needs = x->passes->needs[x->bound->role[r]];
    if (!x->is_local_group[ORR_GROUP_TP]) {
        pass->first = r;
        pass->list = &pass->first;
        pass->n = 1;
        return;
    }
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    uint32_t g = x->island_of[r];
    pass->list = tp->members + tp->first_member[g];
    pass->n = tp->first_member[g + 1] - tp->first_member[g];
    pass->first = pass->list[0];
}

static OrrPassOwners *find_owners(const OrrExec *x) {
    const OrrProgram *p = x->bound->program;
    OrrPassOwners *owners = g_new0(OrrPassOwners, p->n_colls + 1);
    for (uint32_t i = 0; i < p->n_colls; i++) {
        OrrEnded e = {.type = ORR_ITEM_COLL, .what = i};
        owners[i] = (OrrPassOwners){orr_exec__wait_owner(x, &e),
                                    ORR_OWN_EXPOSED_FIRST + p->colls[i].purpose};
    }
    return owners;
}

void orr_exec__passes_new(OrrExec *x) {
    uint16_t loud, quiet;
    find_loud(x, &loud, &quiet);
    if (x->draws || x->jitter || x->options->probe || x->options->is_plain ||
        x->is_external[ORR_STREAM_TP] || !orr_pass__is_one_role_each(x) ||
        can_surprise(x, loud, quiet))
        return;
    OrrPasses *p = x->passes = g_new0(OrrPasses, 1);
    p->loud_mask = loud;
    p->most_members = 1;
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    for (uint32_t g = 0; x->is_local_group[ORR_GROUP_TP] && g < tp->n_groups; g++)
        p->most_members = MAX(p->most_members, tp->first_member[g + 1] - tp->first_member[g]);
    find_passes(x);
    p->calls = g_new0(uint8_t *, x->bound->program->n_roles + 1);
    p->tp_askers = g_new0(uint16_t *, x->bound->program->n_roles + 1);
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++) {
        p->calls[r] = find_calls(x, &x->compiled->roles[r]);
        p->tp_askers[r] = find_tp_askers(x, &x->compiled->roles[r]);
    }
    orr_pass__needs_new(x);
    p->islands = orr_large_new(x->n_islands * sizeof *p->islands);
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        note_island(x, r);
    p->taken = orr_large_new(((gsize)x->n_islands * p->n_tails + 1) * sizeof *p->taken);
    for (uint32_t i = 0; i < x->n_islands; i++)
        p->islands[i].taken = p->taken + (gsize)i * p->n_tails;
    orr_pass__classes_new(x);
    orr_pass__begins_new(x);
    p->owners = find_owners(x);
    p->whole = orr_pass__work_new(p);
}

void orr_exec__passes_clear(OrrExec *x) {
    OrrPasses *p = x->passes;
    if (!p)
        return;
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++) {
        g_free(p->calls[r]);
        g_free(p->tp_askers[r]);
    }
    for (uint32_t i = 0; i < x->n_islands; i++) {
        g_free(p->islands[i].changes);
        free(p->islands[i].work);
    }
    for (OrrPassWork *w = p->spare, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    orr_pass__classes_clear(x);
    orr_pass__needs_clear(x);
    free(p->whole);
    g_free(p->calls);
    g_free(p->tp_askers);
    g_free(p->owners);
    g_free(p->is_pass);
    g_free(p->is_open);
    g_free(p->is_quiet);
    g_free(p->meeting);
    g_free(p->tail_of);
    g_free(p->need);
    g_free(p->shown);
    free(p->islands);
    free(p->taken);
    orr_pass__begins_clear(x);
    g_free(p);
}
