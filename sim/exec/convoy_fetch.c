/* What convoys will touch soon is fetched ahead: transfers that start or end in the fluid are many
 * at a time, each with places, flows and links that nothing has touched since the last one. Nothing
 * here is needed for a result. */
#include "sim/exec/convoy.h"

/* Transfers between one whose memory is asked for and the one in hand. */
#define AHEAD 8u

static void fetch_place(const OrrPlace *place) {
    __builtin_prefetch(place, 1);
    __builtin_prefetch((const char *)place + 64, 1);
}

static void fetch_convoy(const OrrConvoy *c) {
    __builtin_prefetch(c, 1);
    __builtin_prefetch((const char *)c + 64, 1);
}

/* What transfers of the convoy, whose places come by now, touch when they come to the fluid. */
static void fetch_links(const OrrExec *x, const OrrConvoy *c) {
    const OrrUse *shared = x->convoys->joint_uses + c->first_joint;
    for (uint32_t u = 0; c->has_rows && u < c->n_shared; u++)
        orr_fluid_prefetch_use(x->fluid, shared[u].constraint);
    if (c->has_rows)
        return;
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = &x->places[x->convoys->places[c->first + i]];
        for (uint32_t u = 0; u < place->n_uses && !place->is_booked; u++)
            orr_fluid_prefetch_use(x->fluid, place->uses[u].constraint);
    }
}

void orr_convoy__fetch_starts(const OrrExec *x, const OrrConvoy *c) {
    for (uint32_t i = 0; i < c->n; i++)
        fetch_place(&x->places[x->convoys->places[c->first + i]]);
    fetch_links(x, c);
}

/* A transfer starts in the fluid: as a rule those of the other members do soon. */
void orr_convoy__starts(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[x->places[id].convoy];
    if (c->has_started || c->n_unknown == 0)
        return;
    c->has_started = true;
    orr_convoy__fetch_starts(x, c);
}

/* A transfer of the convoy is over in the fluid: as a rule the others are soon. */
void orr_convoy__fetch_ends(const OrrExec *x, OrrConvoy *c) {
    const uint32_t *places = x->convoys->places + c->first;
    if (c->has_ended)
        return;
    c->has_ended = true;
    const OrrUse *rows = x->convoys->joint_uses + c->first_joint + c->n_shared;
    for (uint32_t u = 0; c->has_rows && u < c->n_rows; u++)
        orr_fluid_prefetch_row(x->fluid, rows[u].constraint);
    for (uint32_t i = 0; i < c->n; i++)
        fetch_place(&x->places[places[i]]);
    for (uint32_t i = 0; i < c->n; i++)
        if (x->places[places[i]].is_flowing)
            orr_fluid_prefetch_flow(x->fluid, x->places[places[i]].flow);
    for (uint32_t i = 0; i < c->n; i++)
        if (x->places[places[i]].is_flowing)
            orr_fluid_prefetch_end(x->fluid, x->places[places[i]].flow);
}

void orr_convoy__note_onward(const OrrExec *x, uint32_t id) {
    uint32_t before = x->convoys->arrived[x->convoys->convoys[id].island[0]];
    if (before != ORR_NONE)
        x->convoys->convoys[before].onward = id;
}

void orr_convoy__fetch_told(const OrrExec *x, uint32_t k) {
    const OrrConvoys *v = x->convoys;
    uint32_t next = k + AHEAD < v->n_told ? v->told[k + AHEAD] : ORR_NONE;
    if (next == ORR_NONE)
        return;
    if (next & ORR_JOINT_OWNER)
        fetch_convoy(&v->convoys[next & ~ORR_JOINT_OWNER]);
    else
        fetch_place(&x->places[next]);
    next = v->told[k + AHEAD / 2];
    if (next & ORR_JOINT_OWNER)
        orr_fluid_prefetch_flow(x->fluid, v->convoys[next & ~ORR_JOINT_OWNER].flow);
}

void orr_convoy__fetch_ended(const OrrExec *x, uint32_t k) {
    const OrrConvoys *v = x->convoys;
    for (uint32_t ahead = 1; ahead <= 3 && k + ahead * AHEAD < v->n_ended; ahead++) {
        const OrrPlace *place = &x->places[v->ended[k + ahead * AHEAD]];
        if (ahead == 3)
            fetch_place(place);
        else if (ahead == 2)
            orr_fluid_prefetch_flow(x->fluid, place->flow);
        else if (place->is_flowing)
            orr_fluid_prefetch_end(x->fluid, place->flow);
    }
}
