/* Links that are the same in all that counts move as one.
 *
 * A ring over a hundred NICs, each of which holds it and one send of a pod besides: where these
 * links have one capacity and are used alike, and the sends are of one key but for them, all have
 * the same level at any time, and all sends the same rate. They are twins: the sends are one
 * bundle, and one link stands for all of theirs, with the ring on it and of the bundle one member.
 * It is a link like any other to whoever looks for levels; the twins themselves have none.
 *
 * A link is a twin from when its send is placed until that is taken out or somebody else comes;
 * a stand-in lives as long as its bundle, and until the ring has found its stop without it. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

/* The record of the only other activity on the link; ORR_FLUID_NIL: there are more, or none. */
static uint32_t other_record(const OrrFluid *f, const OrrLinkState *l, uint32_t activity) {
    if (l->n_records != 2)
        return ORR_FLUID_NIL;
    uint32_t r = l->head;
    return f->records[r].activity != activity ? r : f->records[r].next;
}

static const OrrUse *use_of(const OrrFluid *f, uint32_t record) {
    const OrrActivity *a = &f->activities[f->records[record].activity];
    return &a->uses[record - a->first_record];
}

static bool is_ring(const OrrFluid *f, const OrrActivity *a) {
    return a->bundle != ORR_FLUID_NIL && f->bundles[a->bundle].is_own;
}

uint32_t orr_fluid__ring_beside(const OrrFluid *f, const OrrActivity *a, uint32_t link) {
    const OrrLinkState *l = &f->links[link];
    bool has_level = l->level != ORR_LEVEL_NONE || l->goal != ORR_LEVEL_NONE;
    uint32_t r = other_record(f, l, (uint32_t)(a - f->activities));
    if (r == ORR_FLUID_NIL || has_level || f->n_stand_ins + ORR_FLUID_MAX_KEY > f->cap_stand_ins)
        return ORR_FLUID_NIL;
    const OrrActivity *ring = &f->activities[f->records[r].activity];
    /* alone it must not fill the link: then the stand-in can go when the sends have */
    OrrWide alone = (OrrWide)orr_fluid__factor(use_of(f, r)) * ring->top;
    return ring->is_placed && is_ring(f, ring) && alone <= orr_fluid__capacity(l) ? r
                                                                                  : ORR_FLUID_NIL;
}

/* The use of the ring that shares the link of @use with it; ORR_FLUID_NIL: there is more on it. */
static uint32_t ring_use_on(const OrrFluid *f, uint32_t use) {
    uint32_t link = f->uses[use].link;
    const OrrLinkState *l = &f->links[link];
    bool is_pair = orr_fluid__is_stand_in(f, link) || l->n_records == 2;
    return is_pair ? l->first[1] : ORR_FLUID_NIL;
}

bool orr_fluid__is_twin_of(const OrrFluid *f, uint32_t use, uint32_t link, uint32_t record) {
    const OrrUse *of_ring = use_of(f, record);
    uint32_t ring = ring_use_on(f, use);
    return ring != ORR_FLUID_NIL && f->uses[ring].coef == of_ring->coef &&
           f->uses[ring].factor == orr_fluid__factor(of_ring) &&
           f->uses[ring].bundle == f->activities[f->records[record].activity].bundle &&
           f->links[f->uses[use].link].capacity == f->links[link].capacity;
}

static void rename_link(OrrBundle *b, uint32_t from, uint32_t to) {
    b->stop_link = b->stop_link == from ? to : b->stop_link;
    b->next_link = b->next_link == from ? to : b->next_link;
}

/* What it shows of itself, whatever else still holds room on its twin. */
static void sum_up(const OrrFluid *f, OrrLinkState *l) {
    l->potential = l->slope = 0;
    l->unit = 0;
    for (int i = 0; i < 2; i++) {
        const OrrWatched *w = &f->uses[l->first[i]];
        l->potential += (OrrWide)w->factor * f->bundles[w->bundle].top;
        l->slope += (OrrWide)w->factor * f->bundles[w->bundle].scale;
        l->unit += w->factor;
    }
}

void orr_fluid__begin_stand_in(OrrFluid *f, uint32_t use) {
    uint32_t link = f->uses[use].link, ring = ring_use_on(f, use);
    if (orr_fluid__is_stand_in(f, link))
        return;
    uint32_t id = f->free_stand_ins.n > 0 ? f->free_stand_ins.ids[--f->free_stand_ins.n]
                                          : f->n_links + f->n_known_stand_ins++;
    f->n_stand_ins++;
    OrrLinkState *twin = &f->links[link], *l = &f->links[id];
    *l = *twin;
    l->head = ORR_FLUID_NIL;
    l->is_dirty = l->is_relaxed = l->is_sound = false;
    l->n_records = l->seen = 0;
    sum_up(f, l);
    twin->level = twin->goal = twin->shield = ORR_LEVEL_NONE;
    twin->first[0] = twin->first[1] = ORR_FLUID_NIL;
    twin->n_uses = 0;
    twin->is_sound = false;
    twin->is_twin = 1;
    f->stats.twins++;
    f->records[f->uses[ring].record].watched = ORR_FLUID_NIL;
    f->uses[ring].record = ORR_FLUID_NIL;
    f->uses[ring].link = f->uses[use].link = id;
    rename_link(&f->bundles[f->uses[ring].bundle], link, id);
    rename_link(&f->bundles[f->uses[use].bundle], link, id);
    orr_fluid__mark_dirty(f, id);
}

void orr_fluid__leave_stand_in(OrrFluid *f, const OrrBundle *b, uint32_t use) {
    uint32_t id = f->uses[use].link;
    OrrLinkState *l = &f->links[id];
    uint64_t factor = f->uses[use].factor;
    l->potential -= (OrrWide)factor * b->top;
    l->slope -= (OrrWide)factor * b->scale;
    l->unit -= factor;
    l->is_sound = false;
    orr_fluid__open_or_close(f, id);
    orr_fluid__mark_dirty(f, id);
    orr_fluid__relax(f, id);
}

void orr_fluid__end_stand_in(OrrFluid *f, uint32_t stand_in) {
    OrrLinkState *l = &f->links[stand_in];
    if (l->first[0] != ORR_FLUID_NIL)
        return; /* it stands for some */
    if (l->level != ORR_LEVEL_NONE || l->goal != ORR_LEVEL_NONE) {
        orr_fluid__relax(f, stand_in); /* its bundle has gone since: one more search */
        return;
    }
    if (l->first[1] != ORR_FLUID_NIL)
        orr_fluid__drop_use(f, l->first[1]);
    l->is_watched = false;
    f->n_stand_ins--;
    orr_fluid__push(&f->free_stand_ins, stand_in);
}

void orr_fluid__make_twin(OrrFluid *f, uint32_t link, uint32_t record) {
    f->links[link].is_twin = 1;
    f->stats.twins++;
    if (f->records[record].watched != ORR_FLUID_NIL)
        orr_fluid__drop_use(f, f->records[record].watched);
}

/* The ring on the twin: nobody else there has many uses and a place. */
static uint32_t ring_on(const OrrFluid *f, const OrrLinkState *l) {
    uint32_t r = l->head;
    while (!is_ring(f, &f->activities[f->records[r].activity]))
        r = f->records[r].next;
    return r;
}

void orr_fluid__end_twins(OrrFluid *f, const OrrActivity *a) {
    for (uint32_t u = 0; u < a->n_uses; u++) {
        uint32_t link = a->uses[u].constraint;
        OrrLinkState *l = &f->links[link];
        if (!l->is_twin)
            continue;
        l->is_twin = 0;
        uint32_t r = ring_on(f, l);
        OrrWide mine = (OrrWide)orr_fluid__factor(&a->uses[u]) * a->top;
        if (!a->is_live && l->potential - mine <= orr_fluid__capacity(l))
            l->is_watched = 0; /* the ring is alone there */
        if (!l->is_watched)
            continue;
        orr_fluid__close(f, link);
        orr_fluid__mark_dirty(f, link);
        orr_fluid__relax(f, link);
        orr_fluid__add_use(f, f->activities[f->records[r].activity].bundle, r, use_of(f, r));
    }
}

void orr_fluid__part_twins(OrrFluid *f, const OrrActivity *a) {
    for (uint32_t u = 0; u < a->n_uses; u++) {
        const OrrLinkState *l = &f->links[a->uses[u].constraint];
        uint32_t r = l->head;
        if (!l->is_twin)
            continue;
        while (!f->activities[f->records[r].activity].is_placed ||
               is_ring(f, &f->activities[f->records[r].activity]))
            r = f->records[r].next;
        orr_fluid__place_anew(f, f->records[r].activity);
    }
}
