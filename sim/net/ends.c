/* Who ends next. Members of a bundle lie in a heap by the work of the bundle at which they are
 * over, so a change of its rate moves none of them; bundles and activities that are alone lie in a
 * heap by time. There the time of a bundle may be too early: it is put right when it comes to the
 * top, so an end that moves later costs nothing.
 *
 * Cost: a step down each heap for an activity that is over. */
#include "sim/net/fluid.h"

#include "sim/base/large.h"
#include "sim/net/fluid_priv.h"

void orr_fluid__progress(OrrBundle *b, int64_t now_ns) {
    b->work += (OrrWide)b->rate * (uint64_t)(now_ns - b->since_ns);
    b->since_ns = now_ns;
}

int64_t orr_fluid__end_of(OrrWide left, uint64_t rate, int64_t since_ns) {
    if (left == 0)
        return since_ns;
    if (rate == 0)
        return INT64_MAX;
    OrrWide ns;
    if (left >> 63 == 0) /* 64-bit division is fast */
        ns = ((uint64_t)left - 1) / rate + 1;
    else
        ns = (left - 1) / rate + 1;
    return ns > (OrrWide)(INT64_MAX - since_ns) ? INT64_MAX : since_ns + (int64_t)ns;
}

static uint32_t *position(OrrFluid *f, uint32_t id) {
    return id & ORR_FLUID_IS_BUNDLE ? &f->bundles[id & ~ORR_FLUID_IS_BUNDLE].at
                                    : &f->activities[id].at;
}

static void put(OrrFluid *f, uint32_t at, OrrEnd e) {
    f->ends[at] = e;
    *position(f, e.id) = at;
}

static void rise(OrrFluid *f, uint32_t at, OrrEnd e) {
    for (; at > 0 && f->ends[(at - 1) / 2].end_ns > e.end_ns; at = (at - 1) / 2)
        put(f, at, f->ends[(at - 1) / 2]);
    put(f, at, e);
}

static void sink(OrrFluid *f, uint32_t at, OrrEnd e) {
    for (uint32_t child; (child = 2 * at + 1) < f->n_ends; at = child) {
        if (child + 1 < f->n_ends && f->ends[child + 1].end_ns < f->ends[child].end_ns)
            child++;
        if (f->ends[child].end_ns >= e.end_ns)
            break;
        put(f, at, f->ends[child]);
    }
    put(f, at, e);
}

void orr_fluid__set_end(OrrFluid *f, uint32_t id, int64_t end_ns) {
    uint32_t at = *position(f, id);
    if (at != ORR_FLUID_NIL) {
        if (end_ns < f->ends[at].end_ns)
            rise(f, at, (OrrEnd){end_ns, id});
        return;
    }
    if (end_ns == INT64_MAX && id & ORR_FLUID_IS_BUNDLE)
        return;
    if (f->n_ends == f->cap_ends) {
        f->cap_ends = MAX(64, 2 * f->cap_ends);
        f->ends = g_renew(OrrEnd, f->ends, f->cap_ends);
    }
    rise(f, f->n_ends++, (OrrEnd){end_ns, id});
}

void orr_fluid__no_end(OrrFluid *f, uint32_t id) {
    uint32_t at = *position(f, id);
    if (at == ORR_FLUID_NIL)
        return;
    *position(f, id) = ORR_FLUID_NIL;
    OrrEnd last = f->ends[--f->n_ends];
    if (at == f->n_ends)
        return;
    if (at > 0 && last.end_ns < f->ends[(at - 1) / 2].end_ns)
        rise(f, at, last);
    else
        sink(f, at, last);
}

void orr_fluid__find_end(OrrFluid *f, uint32_t bundle) {
    OrrBundle *b = &f->bundles[bundle];
    b->end_ns = INT64_MAX;
    b->is_end_late = false;
    if (b->n_heap > 0) {
        OrrWide finish = f->members[b->first_member].finish;
        OrrWide left = finish > b->work ? finish - b->work : 0;
        b->end_ns = orr_fluid__end_of(left, b->rate, b->since_ns);
    }
    orr_fluid__set_end(f, bundle | ORR_FLUID_IS_BUNDLE, b->end_ns);
}

static void put_member(OrrFluid *f, const OrrBundle *b, uint32_t at, OrrMember m) {
    f->members[b->first_member + at] = m;
    f->activities[m.activity].at = at;
}

static void rise_member(OrrFluid *f, const OrrBundle *b, uint32_t at, OrrMember m) {
    const OrrMember *heap = f->members + b->first_member;
    for (; at > 0 && heap[(at - 1) / 2].finish > m.finish; at = (at - 1) / 2)
        put_member(f, b, at, heap[(at - 1) / 2]);
    put_member(f, b, at, m);
}

static void sink_member(OrrFluid *f, const OrrBundle *b, uint32_t at, OrrMember m) {
    const OrrMember *heap = f->members + b->first_member;
    for (uint32_t child; (child = 2 * at + 1) < b->n_heap; at = child) {
        if (child + 1 < b->n_heap && heap[child + 1].finish < heap[child].finish)
            child++;
        if (heap[child].finish >= m.finish)
            break;
        put_member(f, b, at, heap[child]);
    }
    put_member(f, b, at, m);
}

/* Room for one more. */
static void grow_members(OrrFluid *f, OrrBundle *b) {
    uint32_t old = b->first_member, class = b->member_class;
    bool is_first = old == ORR_FLUID_NIL;
    if (!is_first && b->n_heap < 1u << class)
        return;
    b->member_class = is_first ? 0 : class + 1;
    b->first_member = orr_fluid__take_block(&f->member_blocks, b->member_class);
    if (f->member_blocks.n > f->cap_members) {
        gsize had = f->cap_members * sizeof *f->members;
        f->cap_members = MAX(f->member_blocks.n, f->cap_members + f->cap_members / 2);
        f->members = orr_large_renew(f->members, had, f->cap_members * sizeof *f->members);
    }
    for (uint32_t i = 0; i < b->n_heap; i++)
        f->members[b->first_member + i] = f->members[old + i];
    if (!is_first)
        orr_fluid__give_block(&f->member_blocks, class, old);
}

void orr_fluid__add_member(OrrFluid *f, OrrBundle *b, uint32_t activity) {
    OrrActivity *a = &f->activities[activity];
    orr_fluid__progress(b, f->now_ns);
    a->finish += b->work;
    b->n_members++;
    grow_members(f, b);
    rise_member(f, b, b->n_heap++, (OrrMember){a->finish, activity});
}

static void drop_at(OrrFluid *f, OrrBundle *b, uint32_t at) {
    OrrMember last = f->members[b->first_member + --b->n_heap];
    if (at == b->n_heap)
        return;
    if (at > 0 && last.finish < f->members[b->first_member + (at - 1) / 2].finish)
        rise_member(f, b, at, last);
    else
        sink_member(f, b, at, last);
}

void orr_fluid__drop_member(OrrFluid *f, OrrBundle *b, uint32_t activity) {
    OrrActivity *a = &f->activities[activity];
    a->finish = orr_fluid__left(f, a);
    b->n_members--;
    if (a->at != ORR_FLUID_NIL)
        drop_at(f, b, a->at);
    a->at = ORR_FLUID_NIL;
}

int64_t orr_fluid_next_end(OrrFluid *f) {
    while (f->n_ends > 0) {
        OrrEnd e = f->ends[0];
        if (!(e.id & ORR_FLUID_IS_BUNDLE))
            return e.end_ns;
        uint32_t bundle = e.id & ~ORR_FLUID_IS_BUNDLE;
        if (f->bundles[bundle].is_end_late)
            orr_fluid__find_end(f, bundle);
        int64_t end_ns = f->bundles[bundle].end_ns;
        if (end_ns == e.end_ns)
            return end_ns;
        sink(f, 0, (OrrEnd){end_ns, e.id});
    }
    return INT64_MAX;
}

void orr_fluid_prefetch_flow(const OrrFluid *f, uint32_t activity) {
    __builtin_prefetch(&f->activities[activity], 1);
    __builtin_prefetch((const char *)&f->activities[activity] + 64, 1);
}

void orr_fluid_prefetch_end(const OrrFluid *f, uint32_t activity) {
    const OrrActivity *a = &f->activities[activity];
    for (uint32_t u = 0; u < a->n_uses && u < ORR_FLUID_MAX_KEY; u++) {
        __builtin_prefetch(&f->records[a->first_record + u], 1);
        orr_fluid_prefetch_use(f, a->uses[u].constraint);
    }
}

static void take_members(OrrFluid *f, uint32_t bundle, OrrFluidEnded ended, void *data) {
    OrrBundle *b = &f->bundles[bundle];
    orr_fluid__progress(b, f->now_ns);
    while (b->n_heap > 0) {
        OrrMember m = f->members[b->first_member];
        if (m.finish > b->work)
            break;
        drop_at(f, b, 0);
        f->activities[m.activity].at = ORR_FLUID_NIL;
        ended(data, m.activity, f->activities[m.activity].owner);
    }
    orr_fluid__find_end(f, bundle);
}

void orr_fluid_take_ended(OrrFluid *f, int64_t now_ns, OrrFluidEnded ended, void *data) {
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
    while (f->n_ends > 0 && orr_fluid_next_end(f) <= now_ns) {
        uint32_t id = f->ends[0].id;
        if (id & ORR_FLUID_IS_BUNDLE) {
            take_members(f, id & ~ORR_FLUID_IS_BUNDLE, ended, data);
            continue;
        }
        orr_fluid__no_end(f, id);
        ended(data, id, f->activities[id].owner);
    }
}
