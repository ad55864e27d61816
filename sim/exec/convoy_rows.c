/* Transfers of a convoy that are in the fluid each by itself, on the links that they share only.
 *
 * As a rule an uplink is full then, while the links that only one of them uses (NICs) have room.
 * Room there is held for all as one, as for transfers that are booked (convoy_joint.c), and the
 * fluid knows of each only what it uses of the others: its top and its share are the same, and a
 * link with room stops nobody, so its rate is. When one of those links may bind the fluid says so
 * before it solves, and each goes on with all its links. Cost: a third of the links of each. */
#include "sim/exec/convoy.h"

/* What is held of rows. */
static OrrReserve rows_of(const OrrExec *x, const OrrConvoy *c) {
    const OrrTop *top = &x->tops[c->rows_top];
    return (OrrReserve){.uses = x->convoys->joint_uses + c->first_joint + c->n_shared,
                        .n_rows = c->n_rows,
                        .top_bytes_per_s = top->bytes_per_s,
                        .scale = top->scale};
}

static void drop_rows(OrrExec *x, OrrConvoy *c) {
    OrrReserve rows = rows_of(x, c);
    orr_fluid_release(x->fluid, &rows);
    c->has_rows = false;
    c->n_narrow = 0;
}

/* Whether it can have them, for transfers of @top. */
static bool can_have_rows(const OrrExec *x, const OrrConvoy *c, uint32_t top) {
    return c->n_shared > 0 && c->n_rows > 0 && !c->has_rows && x->tops[top].ns < INT64_MAX;
}

void orr_convoy__keep_rows(OrrExec *x, OrrConvoy *c) {
    const OrrTop *top = &x->tops[c->room_top];
    if (!can_have_rows(x, c, c->room_top)) {
        orr_convoy__drop_room(x, c);
        return;
    }
    OrrReserve shared = {.uses = x->convoys->joint_uses + c->first_joint,
                         .n_uses = c->n_shared,
                         .top_bytes_per_s = top->bytes_per_s,
                         .scale = top->scale};
    orr_exec__unreserve(x, &shared);
    c->has_room = false;
    c->has_rows = true;
    c->rows_top = c->room_top;
}

void orr_convoy__ask_rows(OrrExec *x, OrrConvoy *c) {
    if (!c->is_joint || !can_have_rows(x, c, c->joint_top))
        return;
    c->rows_top = c->joint_top;
    OrrReserve rows = rows_of(x, c);
    c->has_rows = orr_fluid_reserve(x->fluid, &rows);
}

void orr_convoy__widen(OrrExec *x, OrrConvoy *c) {
    drop_rows(x, c);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t id = x->convoys->places[c->first + i];
        OrrPlace *place = &x->places[id];
        const OrrPlan *plan = orr_exec__plan(place);
        if (!place->is_narrow)
            continue;
        OrrFlow flow = {.weight = plan->weight,
                        .cap_bytes_per_s = plan->cap_bytes_per_s,
                        .bytes = plan->work_bytes,
                        .owner = id,
                        .uses = place->uses,
                        .n_uses = place->n_uses};
        place->is_narrow = 0;
        orr_fluid_split(x->fluid, x->now_ns, place->flow, &flow, 1, &place->flow);
    }
}

bool orr_exec__has_rows(const OrrExec *x, const OrrPlace *place) {
    return place->convoy != ORR_NONE && x->convoys->convoys[place->convoy].has_rows;
}

void orr_exec__narrow(OrrExec *x, OrrPlace *place, OrrFlow *flow) {
    OrrConvoy *c = &x->convoys->convoys[place->convoy];
    const OrrTop *top = orr_exec__top(x, place), *held = &x->tops[c->rows_top];
    const OrrUse *joint = x->convoys->joint_uses + c->first_joint;
    if (top->bytes_per_s != held->bytes_per_s || top->scale != held->scale)
        return; /* of another kind */
    flow->uses = joint + c->n_shared + c->n_rows;
    flow->n_uses = c->n_shared;
    flow->cap_bytes_per_s = top->bytes_per_s;
    for (uint32_t u = 0; u < c->n_rows; u++)
        flow->other_coef = MAX(flow->other_coef, joint[c->n_shared + u].coef);
    place->is_narrow = 1;
    c->n_narrow++;
}

void orr_exec__leave_rows(OrrExec *x, OrrPlace *place) {
    OrrConvoy *c = &x->convoys->convoys[place->convoy];
    place->is_narrow = 0;
    if (--c->n_narrow == 0)
        drop_rows(x, c);
}
