/* Who moves alike: activities of one scale and top that use the same watched links alike always
 * stop together, so they are one bundle; k equal activities are exactly one whose uses have count
 * k. An activity with many uses (a ring) has a bundle of its own, whose uses come and go with the
 * links that are watched; others change bundles then. One with no watched links is at its top,
 * alone.
 *
 * This decides who is looked at, never a rate. Bundles are found by a hash of their keys, of which
 * nothing depends on the order. Cost: about 100 ns and 30 ns a watched use for a change. */
#include "sim/net/fluid.h"

#include "sim/base/large.h"
#include "sim/net/fluid_priv.h"

#include <string.h>

typedef struct {
    const OrrActivity *a;
    uint32_t n, hash;
    uint32_t at[ORR_FLUID_MAX_KEY];   /* uses of watched links */
    uint32_t ring[ORR_FLUID_MAX_KEY]; /* of twins: record of their ring; else ORR_FLUID_NIL */
} Key;

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
    return h ^ h >> 32;
}

static Key key_of(const OrrFluid *f, const OrrActivity *a) {
    Key key = {.a = a};
    uint64_t h = mix(mix(1, a->scale), a->top);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        if (!f->links[a->uses[u].constraint].is_watched)
            continue;
        uint32_t link = a->uses[u].constraint, ring = orr_fluid__ring_beside(f, a, link);
        key.at[key.n] = u;
        key.ring[key.n++] = ring;
        uint64_t which = link;
        if (ring != ORR_FLUID_NIL)
            which = UINT64_C(1) << 32 | f->activities[f->records[ring].activity].bundle;
        h = mix(mix(h, which), orr_fluid__factor(&a->uses[u]));
    }
    key.hash = (uint32_t)h;
    return key;
}

static bool has_key(const OrrFluid *f, const OrrBundle *b, const Key *key) {
    if (b->hash != key->hash || b->scale != key->a->scale || b->top != key->a->top ||
        b->n_uses != key->n)
        return false;
    for (uint32_t i = 0; i < key->n; i++) {
        const OrrUse *use = &key->a->uses[key->at[i]];
        const OrrWatched *w = &f->uses[b->first_use + i];
        bool is_same =
            key->ring[i] == ORR_FLUID_NIL
                ? w->link == use->constraint
                : orr_fluid__is_twin_of(f, b->first_use + i, use->constraint, key->ring[i]);
        if (!is_same || w->coef != use->coef || w->factor != orr_fluid__factor(use))
            return false;
    }
    return true;
}

static uint32_t find_bundle(const OrrFluid *f, const Key *key) {
    uint32_t id = f->table[key->hash & f->table_mask];
    while (id != ORR_FLUID_NIL && (!has_key(f, &f->bundles[id], key) ||
                                   f->bundles[id].n_members >= f->bundles[id].most_members))
        id = f->bundles[id].next_alike;
    return id;
}

static void grow_table(OrrFluid *f) {
    f->table_mask = 2 * f->table_mask + 1;
    f->table = g_renew(uint32_t, f->table, f->table_mask + 1);
    memset(f->table, 0xff, (f->table_mask + 1) * sizeof *f->table);
    for (uint32_t i = 0; i < f->n_bundles; i++) {
        OrrBundle *b = &f->bundles[i];
        if (!b->is_live || b->is_own)
            continue;
        b->next_alike = f->table[b->hash & f->table_mask];
        f->table[b->hash & f->table_mask] = i;
    }
}

static void enter_table(OrrFluid *f, uint32_t bundle, uint32_t hash) {
    OrrBundle *b = &f->bundles[bundle];
    b->hash = hash;
    b->next_alike = f->table[hash & f->table_mask];
    f->table[hash & f->table_mask] = bundle;
    if (++f->n_keys > f->table_mask)
        grow_table(f);
}

static void leave_table(OrrFluid *f, uint32_t bundle) {
    uint32_t *at = &f->table[f->bundles[bundle].hash & f->table_mask];
    while (*at != bundle)
        at = &f->bundles[*at].next_alike;
    *at = f->bundles[bundle].next_alike;
    f->n_keys--;
}

static void link_in(OrrFluid *f, uint32_t use) {
    OrrWatched *w = &f->uses[use];
    OrrLinkState *l = &f->links[w->link];
    uint32_t *first = &l->first[f->bundles[w->bundle].is_own];
    w->prev = ORR_FLUID_NIL;
    w->next = *first;
    if (*first != ORR_FLUID_NIL)
        f->uses[*first].prev = use;
    *first = use;
    l->n_uses++;
    f->n_uses++;
    f->use_level[use] = f->bundles[w->bundle].is_own ? l->shield : l->level;
    f->use_free[use] = l->mode == ORR_LINK_OPEN ? UINT64_MAX : 0;
}

static void link_out(OrrFluid *f, uint32_t use) {
    const OrrWatched *w = &f->uses[use];
    OrrLinkState *l = &f->links[w->link];
    if (w->prev != ORR_FLUID_NIL)
        f->uses[w->prev].next = w->next;
    else
        l->first[f->bundles[w->bundle].is_own] = w->next;
    if (w->next != ORR_FLUID_NIL)
        f->uses[w->next].prev = w->prev;
    l->n_uses--;
    f->n_uses--;
    if (w->record != ORR_FLUID_NIL)
        f->records[w->record].watched = ORR_FLUID_NIL;
}

/* The use goes to another place in the array. */
static void relocate(OrrFluid *f, uint32_t from, uint32_t to) {
    f->uses[to] = f->uses[from];
    f->use_level[to] = f->use_level[from];
    f->use_free[to] = f->use_free[from];
    const OrrWatched *w = &f->uses[to];
    if (w->prev != ORR_FLUID_NIL)
        f->uses[w->prev].next = to;
    else
        f->links[w->link].first[f->bundles[w->bundle].is_own] = to;
    if (w->next != ORR_FLUID_NIL)
        f->uses[w->next].prev = to;
    if (w->record != ORR_FLUID_NIL)
        f->records[w->record].watched = to;
}

static void grow_uses(OrrFluid *f) {
    if (f->use_blocks.n <= f->cap_uses)
        return;
    gsize old = f->cap_uses, n = MAX(f->use_blocks.n, old + old / 2);
    f->cap_uses = (uint32_t)n;
    f->uses = orr_large_renew(f->uses, old * sizeof *f->uses, n * sizeof *f->uses);
    f->use_level =
        orr_large_renew(f->use_level, old * sizeof *f->use_level, n * sizeof *f->use_level);
    f->use_free = orr_large_renew(f->use_free, old * sizeof *f->use_free, n * sizeof *f->use_free);
}

void orr_fluid__add_use(OrrFluid *f, uint32_t bundle, uint32_t record, const OrrUse *use) {
    OrrBundle *b = &f->bundles[bundle];
    if (b->n_uses == 1u << b->use_class) {
        uint32_t old = b->first_use;
        b->first_use = orr_fluid__take_block(&f->use_blocks, b->use_class + 1u);
        grow_uses(f);
        for (uint32_t u = 0; u < b->n_uses; u++)
            relocate(f, old + u, b->first_use + u);
        orr_fluid__give_block(&f->use_blocks, b->use_class, old);
        b->use_class++;
    }
    uint32_t at = b->first_use + b->n_uses++;
    f->uses[at] = (OrrWatched){.bundle = bundle,
                               .link = use->constraint,
                               .record = record,
                               .coef = use->coef,
                               .factor = orr_fluid__factor(use)};
    f->uses[at].total = f->uses[at].factor * b->n_members;
    if (record != ORR_FLUID_NIL)
        f->records[record].watched = at;
    link_in(f, at);
}

void orr_fluid__drop_use(OrrFluid *f, uint32_t use) {
    OrrBundle *b = &f->bundles[f->uses[use].bundle];
    link_out(f, use);
    uint32_t last = b->first_use + --b->n_uses;
    if (use != last)
        relocate(f, last, use);
}

static uint32_t new_bundle(OrrFluid *f, const Key *key, uint64_t ceiling) {
    const OrrActivity *a = key->a;
    uint32_t id = f->free_bundle;
    if (id != ORR_FLUID_NIL) {
        f->free_bundle = f->bundles[id].next_alike;
    } else {
        if (f->n_bundles == f->cap_bundles) {
            f->cap_bundles = MAX(64, f->cap_bundles + f->cap_bundles / 2);
            f->bundles = orr_large_renew(f->bundles, f->n_bundles * sizeof *f->bundles,
                                         f->cap_bundles * sizeof *f->bundles);
            f->live = g_renew(uint64_t, f->live, (f->cap_bundles + 63) / 64);
        }
        id = f->n_bundles++;
        if (id % 64 == 0)
            f->live[id / 64] = 0;
    }
    f->live[id / 64] |= UINT64_C(1) << id % 64;
    OrrBundle *b = &f->bundles[id];
    *b = (OrrBundle){.top_level = a->top_level,
                     .scale = a->scale,
                     .top = a->top,
                     .is_live = true,
                     .is_own = a->n_uses > ORR_FLUID_MAX_KEY,
                     .since_ns = f->now_ns,
                     .ceiling = ceiling,
                     .end_ns = INT64_MAX,
                     .at = ORR_FLUID_NIL,
                     .first_member = ORR_FLUID_NIL,
                     .weight = a->weight,
                     .largest_coef = a->largest_coef,
                     .most_members = UINT32_MAX,
                     .use_class = (uint8_t)orr_fluid__class(key->n)};
    b->first_use = orr_fluid__take_block(&f->use_blocks, b->use_class);
    grow_uses(f);
    for (uint32_t u = 0; u < a->n_uses; u++)
        if (f->links[a->uses[u].constraint].is_watched) {
            orr_fluid__add_use(f, id, b->is_own ? a->first_record + u : ORR_FLUID_NIL, &a->uses[u]);
            b->most_members = MIN(b->most_members, UINT32_MAX / a->uses[u].count);
        }
    orr_fluid__find_stop(f, b);
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
        if (f->links[f->uses[u].link].mode == ORR_LINK_QUIET)
            f->use_free[u] = orr_fluid__rate_at(b, b->stop) + 1;
    return id;
}

static void drop_bundle(OrrFluid *f, uint32_t id) {
    OrrBundle *b = &f->bundles[id];
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++) {
        link_out(f, u);
        if (!b->is_own && orr_fluid__is_stand_in(f, f->uses[u].link))
            orr_fluid__leave_stand_in(f, b, u);
    }
    orr_fluid__give_block(&f->use_blocks, b->use_class, b->first_use);
    if (b->first_member != ORR_FLUID_NIL)
        orr_fluid__give_block(&f->member_blocks, b->member_class, b->first_member);
    orr_fluid__no_end(f, id | ORR_FLUID_IS_BUNDLE);
    if (!b->is_own)
        leave_table(f, id);
    b->is_live = b->is_moved = false;
    f->live[id / 64] &= ~(UINT64_C(1) << id % 64);
    b->next_alike = f->free_bundle;
    f->free_bundle = id;
}

static void join(OrrFluid *f, uint32_t activity, uint32_t bundle) {
    OrrBundle *b = &f->bundles[bundle];
    f->activities[activity].bundle = bundle;
    f->activities[activity].is_placed = true;
    orr_fluid__add_member(f, b, activity);
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
        if (b->is_own || !orr_fluid__is_stand_in(f, f->uses[u].link))
            orr_fluid__count_in(f, u);
    b->has_other = true;
    orr_fluid__move(f, bundle);
}

/* It is to join the bundle. */
static void make_twins(OrrFluid *f, const Key *key, uint32_t bundle) {
    for (uint32_t i = 0; i < key->n; i++) {
        if (key->ring[i] == ORR_FLUID_NIL)
            continue;
        orr_fluid__begin_stand_in(f, f->bundles[bundle].first_use + i);
        orr_fluid__make_twin(f, key->a->uses[key->at[i]].constraint, key->ring[i]);
    }
}

static void stand_alone(OrrFluid *f, uint32_t activity) {
    OrrActivity *a = &f->activities[activity];
    a->is_placed = true;
    a->since_ns = f->now_ns;
    orr_fluid__set_end(f, activity, orr_fluid__end_of(a->finish, a->top, f->now_ns));
}

static uint32_t count_watched(const OrrFluid *f, const OrrActivity *a) {
    uint32_t n = 0;
    for (uint32_t u = 0; u < a->n_uses; u++)
        n += f->links[a->uses[u].constraint].is_watched;
    return n;
}

/* Pledges it the ceiling of the bundle, or its top if it is to be alone; whether that brought more
 * links into sight, so that it belongs elsewhere. */
static bool pledge_anew(OrrFluid *f, const OrrActivity *a, uint64_t *ceiling, uint64_t wanted) {
    bool is_more = wanted > *ceiling;
    if (wanted != *ceiling)
        orr_fluid__pledge(f, a, *ceiling, wanted);
    *ceiling = wanted;
    return is_more && orr_fluid__watch_full(f, a);
}

void orr_fluid__place(OrrFluid *f, uint32_t activity, uint64_t ceiling) {
    OrrActivity *a = &f->activities[activity];
    bool is_small = a->n_uses <= ORR_FLUID_MAX_KEY;
    orr_fluid__watch_full(f, a);
    for (;;) {
        Key key = {.a = a};
        if (is_small)
            key = key_of(f, a);
        else
            key.n = count_watched(f, a);
        uint32_t bundle = is_small && key.n > 0 ? find_bundle(f, &key) : ORR_FLUID_NIL;
        uint64_t wanted = key.n == 0                ? a->top
                          : bundle != ORR_FLUID_NIL ? f->bundles[bundle].ceiling
                                                    : ceiling;
        if (pledge_anew(f, a, &ceiling, wanted))
            continue;
        if (key.n == 0) {
            stand_alone(f, activity);
            return;
        }
        if (bundle == ORR_FLUID_NIL) {
            bundle = new_bundle(f, &key, ceiling);
            if (is_small)
                enter_table(f, bundle, key.hash);
        } else {
            make_twins(f, &key, bundle);
        }
        join(f, activity, bundle);
        return;
    }
}

void orr_fluid__unplace(OrrFluid *f, uint32_t activity) {
    OrrActivity *a = &f->activities[activity];
    a->is_placed = false;
    if (a->n_uses > ORR_FLUID_MAX_KEY)
        orr_fluid__part_twins(f, a);
    if (a->bundle == ORR_FLUID_NIL) {
        a->finish = orr_fluid__left(f, a);
        orr_fluid__no_end(f, activity);
        return;
    }
    uint32_t bundle = a->bundle;
    OrrBundle *b = &f->bundles[bundle];
    orr_fluid__drop_member(f, b, activity);
    a->bundle = ORR_FLUID_NIL;
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
        if (b->is_own || !orr_fluid__is_stand_in(f, f->uses[u].link))
            orr_fluid__count_out(f, u);
    if (!b->is_own)
        orr_fluid__end_twins(f, a);
    if (b->n_members == 0) {
        drop_bundle(f, bundle);
        return;
    }
    b->has_other = true;
    orr_fluid__move(f, bundle);
}
