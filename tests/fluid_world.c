#include "tests/fluid_world.h"

#include "tests/near.h"

#include <glib.h>

#define JOINT_OWNER (1u << 20)
#define WORK_PER_BYTE 1000000000u

static uint64_t draw(World *w, uint64_t below) {
    return naive_draw(&w->random, below);
}

void world_start(World *w, uint32_t at, uint64_t bytes) {
    Live *x = &w->flows[at];
    x->flow.uses = x->uses;
    x->flow.bytes = bytes;
    x->flow.owner = at;
    x->flow.weight = w->is_wild ? 1 + (uint32_t)draw(w, 3) : 1;
    if (w->is_mixed && draw(w, 8) == 0)
        x->flow.weight = 2;
    x->flow.cap_bytes_per_s =
        draw(w, 6) == 0 ? NIC / (1 + draw(w, w->is_mixed ? 2 : 40)) : UINT64_MAX;
    x->left = (OrrWide)bytes * WORK_PER_BYTE;
    x->is_live = true;
    x->is_told = false;
}

void world_use(World *w, Live *x, uint32_t link, uint32_t coef, uint32_t count) {
    if (w->is_wild && draw(w, 3) == 0)
        coef = 1 + (uint32_t)draw(w, 2 * ORR_COEF_ONE);
    if (w->is_mixed && draw(w, 16) == 0)
        coef = ORR_COEF_ONE / 2;
    x->uses[x->flow.n_uses++] = (OrrUse){link, coef, count};
}

/* From NIC to NIC, over the pods' uplinks if those differ. */
static void start_send(World *w, uint32_t at) {
    Live *x = &w->flows[at];
    uint32_t from = (uint32_t)draw(w, NICS), to = (uint32_t)draw(w, NICS);
    if (w->kind == WORLD_SPARSE && draw(w, 12) > 0) { /* NICs of its own, in the next pod */
        from = (at - MAX_RINGS) % NICS;
        to = from / PODS * PODS + (from + 1) % PODS;
    }
    uint32_t count = w->is_wild && draw(w, 4) == 0 ? 1 + (uint32_t)draw(w, 4) : 1;
    world_use(w, x, from, ORR_COEF_ONE, count);
    if (from % PODS != to % PODS) {
        world_use(w, x, FIRST_POD + from % PODS, ORR_COEF_ONE, count);
        world_use(w, x, FIRST_POD + PODS + to % PODS, ORR_COEF_ONE, count);
    }
    world_use(w, x, NICS + to, ORR_COEF_ONE, count);
    world_start(w, at, draw(w, 30) == 0 ? 0 : 1 + draw(w, 20000));
}

/* Over half of the NICs of a pod one way; or over all one way, or every fifth. */
static void use_alike(World *w, uint32_t at) {
    for (uint32_t l = 0; l < 2 * NICS; l++) {
        bool is_of_pod = l % PODS == at / 2 && l / PODS % 2 == 0;
        if (at == 2 * PODS + 2 ? l % 5 == 0 : l / NICS == at % 2 && (at >= 2 * PODS || is_of_pod))
            world_use(w, &w->flows[at], l, ORR_COEF_ONE, 1);
    }
}

/* Over many NICs, and all pods as a rule; a link may come twice. */
static void start_ring(World *w, uint32_t at) {
    Live *x = &w->flows[at];
    uint32_t n = 10 + (uint32_t)draw(w, MAX_USES - 2 * PODS - 10);
    bool is_sparse = w->kind == WORLD_SPARSE, is_local = is_sparse && draw(w, 4) > 0;
    if (is_sparse)
        use_alike(w, at);
    for (uint32_t u = 0; u < n && !is_sparse; u++)
        world_use(w, x, (uint32_t)draw(w, 2 * NICS), ORR_COEF_ONE, 1);
    for (uint32_t p = 0; p < 2 * PODS && !is_local; p++)
        world_use(w, x, FIRST_POD + p, ORR_COEF_ONE, 1 + (uint32_t)draw(w, 3));
    world_start(w, at, 1 + draw(w, is_sparse ? 1000 << draw(w, 8) : 200000));
    if (is_sparse) /* sends beside it have less than others of their pod, as a rule */
        x->flow.weight = 1 + (uint32_t)draw(w, 4);
}

/* It has moved at its top for a while, on a link where nobody else was. */
static void start_ahead(World *w, uint32_t at) {
    uint32_t link = FIRST_PRIVATE + (uint32_t)draw(w, PRIVATE);
    for (uint32_t i = 0; i < MAX_FLOWS; i++)
        for (uint32_t u = 0; w->flows[i].is_live && u < w->flows[i].flow.n_uses; u++)
            if (w->flows[i].uses[u].constraint == link)
                return;
    Live *x = &w->flows[at];
    world_use(w, x, link, ORR_COEF_ONE, 1);
    world_start(w, at, 2000 + draw(w, 9000));
    uint64_t top = (uint64_t)((OrrWide)w->capacity[link] * ORR_COEF_ONE / x->uses[0].coef);
    top = MIN(top, x->flow.cap_bytes_per_s);
    x->flow.ahead_ns = (int64_t)(draw(w, 1900) * WORK_PER_BYTE / MAX(top, 1));
    x->left -= (OrrWide)top * (uint64_t)x->flow.ahead_ns;
}

static uint64_t top_of(const World *w, const Live *x) {
    uint64_t top = x->flow.cap_bytes_per_s;
    for (uint32_t u = 0; u < x->flow.n_uses; u++)
        top = MIN(top, (uint64_t)((OrrWide)w->capacity[x->uses[u].constraint] * ORR_COEF_ONE /
                                  x->uses[u].coef));
    return top;
}

/* Whether the links have room for it to move by itself. */
static bool hold(World *w, Live *x) {
    x->room = (OrrReserve){
        .uses = x->uses,
        .n_uses = x->flow.n_uses,
        .top_bytes_per_s = top_of(w, x),
        .scale = orr_fluid_scale(x->flow.weight, x->uses, x->flow.n_uses),
    };
    x->from_ns = w->now_ns;
    return x->is_held = x->flow.ahead_ns == 0 && orr_fluid_reserve(w->fluid, &x->room);
}

/* NICs that sends of a group have side by side: of one pod. */
static uint32_t nic_of(uint32_t row, uint32_t i) {
    return row / PODS * JOINT * PODS + i * PODS + row % PODS;
}

static bool is_used(const World *w, uint32_t first, uint32_t link, bool is_for_all) {
    for (uint32_t i = first; i < first + JOINT; i++)
        for (uint32_t u = 0; u < w->flows[i].flow.n_uses; u++)
            if (w->uses[i * 8 + u].constraint == link && (is_for_all || u < 2))
                return true;
    return false;
}

static OrrReserve room_of_all(const World *w, uint32_t first) {
    OrrReserve all = w->flows[first].room;
    all.uses = w->joint_uses[first];
    all.n_uses -= 2;
    all.n_rows = 2;
    return all;
}

/* Room that is held for all is held for each. */
static void part(World *w, uint32_t first) {
    OrrReserve all = room_of_all(w, first), parts[JOINT];
    for (uint32_t i = 0; i < JOINT; i++) {
        parts[i] = w->flows[first + i].room;
        w->flows[first + i].is_joint = false;
        w->flows[first + i].is_parted = true;
    }
    orr_fluid_part(w->fluid, &all, parts, JOINT);
    w->n_parted++;
}

/* What is held for each since then is held for all again, where each has it still. */
static void join_parted(World *w, uint32_t first) {
    OrrReserve parts[JOINT];
    for (uint32_t i = 0; i < JOINT; i++) {
        const Live *x = &w->flows[first + i];
        if (!x->is_live || !x->is_held || !x->is_parted || x->is_joint || x->first != first)
            return;
        parts[i] = x->room;
    }
    OrrReserve all = room_of_all(w, first);
    if (!orr_fluid_join(w->fluid, &all, parts, JOINT))
        return;
    for (uint32_t i = 0; i < JOINT; i++)
        w->flows[first + i].is_joint = true;
    w->n_joined++;
}

static void split(World *w, uint32_t first) {
    OrrFlow flows[JOINT];
    uint32_t ids[JOINT];
    if (w->flows[first].is_held) {
        part(w, first);
        return;
    }
    for (uint32_t i = 0; i < JOINT; i++)
        flows[i] = w->flows[first + i].flow;
    orr_fluid_split(w->fluid, w->now_ns, w->flows[first].id, flows, JOINT, ids);
    for (uint32_t i = 0; i < JOINT; i++) {
        w->flows[first + i].id = ids[i];
        w->flows[first + i].is_joint = false;
    }
    w->n_split++;
}

/* Those that go as one and of which some use the link, or perhaps all, do so no more. */
static void split_on(World *w, uint32_t link, bool is_for_all) {
    for (uint32_t i = 0; i < MAX_FLOWS; i++) {
        const Live *x = &w->flows[i];
        bool is_first = x->is_live && x->is_joint && x->first == i;
        if (is_first && is_used(w, i, link, is_for_all || x->is_held))
            split(w, i);
    }
}

/* Whether the fluid knows who has the link in a row; with none of those, who holds room on it. */
static void check_who_is_on(const World *w, uint32_t link, bool is_split) {
    bool has_joint = false, has_room = false;
    for (uint32_t i = 0; i < MAX_FLOWS; i++) {
        const Live *x = &w->flows[i];
        for (uint32_t u = 0; x->is_live && u < x->flow.n_uses; u++) {
            bool is_on = x->uses[u].constraint == link;
            has_joint |= is_on && x->is_joint && u < 2;
            has_room |= is_on && x->is_held;
        }
    }
    assert_true(orr_fluid_has_joint(w->fluid, link) == has_joint);
    assert_true(!is_split || orr_fluid_has_room(w->fluid, link) == has_room);
}

/* A link is to be solved: who moves by himself on it does no more. */
static void let_in(void *data, uint32_t link) {
    World *w = data;
    check_who_is_on(w, link, false);
    split_on(w, link, false);
    check_who_is_on(w, link, true);
    for (uint32_t i = 0; i < MAX_FLOWS; i++) {
        Live *x = &w->flows[i];
        bool is_on = false;
        for (uint32_t u = 0; x->is_held && u < x->flow.n_uses; u++)
            is_on |= x->uses[u].constraint == link;
        if (!is_on)
            continue;
        x->is_held = false;
        orr_fluid_release(w->fluid, &x->room);
        x->flow.ahead_ns = w->now_ns - x->from_ns;
        x->id = orr_fluid_start(w->fluid, w->now_ns, &x->flow);
    }
}

/* They move by themselves if there is room, else in the fluid: as one if they are equal. */
static void set_out(World *w, uint32_t at, uint32_t n_shared, bool is_equal) {
    Live *first = &w->flows[at];
    uint32_t id = 0;
    OrrFlow flow = first->flow;
    flow.uses = w->joint_uses[at];
    flow.n_uses = n_shared;
    flow.n_rows = 2;
    flow.owner = at | JOINT_OWNER;
    OrrReserve all = {.uses = flow.uses,
                      .n_uses = n_shared,
                      .n_rows = 2,
                      .top_bytes_per_s = top_of(w, first),
                      .scale = orr_fluid_scale(flow.weight, first->uses, first->flow.n_uses)};
    bool is_held = is_equal && draw(w, w->kind == WORLD_LIGHT ? 1 : 3) == 0 &&
                   orr_fluid_reserve(w->fluid, &all);
    bool is_joint = is_equal && !is_held && orr_fluid_start_joint(w->fluid, w->now_ns, &flow, &id);
    w->n_held += is_held;
    w->n_joint += is_joint;
    w->n_refused += is_equal && !is_joint && !is_held;
    for (uint32_t i = 0; i < JOINT; i++) {
        Live *x = &w->flows[at + i];
        x->is_joint = is_joint || is_held;
        x->is_held = is_held;
        x->from_ns = w->now_ns;
        x->room = (OrrReserve){.uses = x->uses,
                               .n_uses = x->flow.n_uses,
                               .top_bytes_per_s = all.top_bytes_per_s,
                               .scale = all.scale};
        x->id = id;
        if (!x->is_joint)
            x->id = orr_fluid_start(w->fluid, w->now_ns, &x->flow);
    }
}

static uint32_t n_sends(const World *w) {
    return w->kind == WORLD_SPARSE ? NICS : MAX_FLOWS - MAX_RINGS;
}

/* Equal sends from NICs of one pod to those of another set out, as one if they can. */
static void start_joint(World *w) {
    uint32_t at = MAX_RINGS + (uint32_t)draw(w, n_sends(w) - JOINT);
    uint32_t row[2] = {(uint32_t)draw(w, ROWS), (uint32_t)draw(w, ROWS)}, n_shared = 0;
    uint32_t coef[2] = {ORR_COEF_ONE, ORR_COEF_ONE}, count = 1;
    for (uint32_t i = 0; i < JOINT; i++)
        if (w->flows[at + i].is_live)
            return;
    if (w->is_wild && draw(w, 2)) {
        coef[draw(w, 2)] = 1 + (uint32_t)draw(w, 2 * ORR_COEF_ONE);
        count += (uint32_t)draw(w, 3);
    }
    OrrUse *uses = w->joint_uses[at];
    bool is_equal = true;
    if (row[0] % PODS != row[1] % PODS) {
        uses[n_shared++] = (OrrUse){FIRST_POD + row[0] % PODS, coef[1], JOINT * count};
        uses[n_shared++] = (OrrUse){FIRST_POD + PODS + row[1] % PODS, coef[1], JOINT * count};
    }
    for (uint32_t k = 0; k < 2; k++)
        uses[n_shared + k] = (OrrUse){k * ROWS + row[k], coef[0], count};
    for (uint32_t i = 0; i < JOINT; i++) {
        Live *x = &w->flows[at + i];
        *x = (Live){.uses = w->uses + (at + i) * 8, .first = at};
        for (uint32_t k = 0; k < 2; k++)
            x->uses[x->flow.n_uses++] = (OrrUse){k * NICS + nic_of(row[k], i), coef[0], count};
        for (uint32_t k = 0; k < n_shared; k++)
            x->uses[x->flow.n_uses++] = (OrrUse){uses[k].constraint, coef[1], count};
        world_start(w, at + i, i == 0 ? 1 + draw(w, 20000) : w->flows[at].flow.bytes);
        if (w->kind == WORLD_LIGHT && i == 0 &&
            draw(w, 2)) /* the top of all, whatever their NICs */
            x->flow.cap_bytes_per_s = NIC / 5 * 3;
        x->flow.weight = w->flows[at].flow.weight;
        x->flow.cap_bytes_per_s = w->flows[at].flow.cap_bytes_per_s;
        is_equal &= top_of(w, x) == top_of(w, &w->flows[at]);
    }
    set_out(w, at, n_shared, is_equal);
}

static void start_something(World *w) {
    static const uint32_t one_in[][2] = {/* that go jointly; of the others, rings */
                                         [WORLD_CROWDED] = {5, 8},
                                         [WORLD_LIGHT] = {2, 80},
                                         [WORLD_SPARSE] = {20, 12}};
    if (draw(w, one_in[w->kind][0]) == 0) {
        start_joint(w);
        return;
    }
    bool is_ring = draw(w, one_in[w->kind][1]) == 0;
    uint32_t n_rings = w->kind == WORLD_SPARSE ? 2 * PODS + 3 : MAX_RINGS;
    uint32_t at = (uint32_t)(is_ring ? draw(w, n_rings) : MAX_RINGS + draw(w, n_sends(w)));
    Live *x = &w->flows[at];
    if (x->is_live)
        return;
    *x = (Live){.uses = is_ring ? w->ring_uses + at * MAX_USES : w->uses + at * 8};
    if (is_ring)
        start_ring(w, at);
    else if (draw(w, 10) == 0)
        start_ahead(w, at);
    else if (draw(w, 8) == 0) { /* beside one that is ahead, perhaps */
        world_use(w, x, FIRST_PRIVATE + (uint32_t)draw(w, PRIVATE), ORR_COEF_ONE, 1);
        world_start(w, at, 1 + draw(w, 20000));
    } else
        start_send(w, at);
    if (x->is_live && (draw(w, 3) > 0 || !hold(w, x)))
        x->id = orr_fluid_start(w->fluid, w->now_ns, &x->flow);
}

static int64_t end_of(OrrWide left, uint64_t rate, int64_t now_ns) {
    if (left == 0)
        return now_ns;
    return rate == 0 ? INT64_MAX : now_ns + (int64_t)((left - 1) / rate + 1);
}

void world_settle(World *w) {
    const OrrFlow *flows[MAX_FLOWS];
    uint64_t rate[MAX_FLOWS];
    uint32_t of[MAX_FLOWS], n = 0;
    orr_fluid_settle(w->fluid, w->now_ns);
    for (uint32_t i = 0; i < MAX_FLOWS; i++)
        if (w->flows[i].is_live) {
            flows[n] = &w->flows[i].flow;
            of[n++] = i;
        }
    solved_rates(flows, n, w->capacity, N_LINKS, rate);
    int64_t next_ns = INT64_MAX; /* of the fluid's */
    w->next_ns = INT64_MAX;
    for (uint32_t k = 0; k < n; k++) {
        Live *x = &w->flows[of[k]];
        w->rate[of[k]] = rate[k];
        x->end_ns = end_of(x->left, rate[k], w->now_ns);
        w->next_ns = MIN(w->next_ns, x->end_ns);
        if (x->is_held) {
            assert_int_equal(rate[k], x->room.top_bytes_per_s);
            continue;
        }
        next_ns = MIN(next_ns, x->end_ns);
        if (orr_fluid_rate(w->fluid, x->id) != rate[k] ||
            orr_fluid_end_ns(w->fluid, x->id) != x->end_ns)
            fail_msg("seed %u, pods %u: flow %u at %g ns: %.17g bytes/s until %.17g, by itself "
                     "%.17g until %.17g",
                     (uint32_t)w->seed, w->pod_share, of[k], (double)w->now_ns,
                     (double)orr_fluid_rate(w->fluid, x->id),
                     (double)orr_fluid_end_ns(w->fluid, x->id), (double)rate[k], (double)x->end_ns);
    }
    assert_true(orr_fluid_next_end(w->fluid) == next_ns);
    g_autofree char *flaw = orr_fluid_flaw(w->fluid);
    if (flaw)
        fail_msg("seed %u, pods %u: %s", (uint32_t)w->seed, w->pod_share, flaw);
}

void world_advance(World *w, int64_t now_ns) {
    for (uint32_t i = 0; i < MAX_FLOWS; i++) {
        OrrWide done = (OrrWide)w->rate[i] * (uint64_t)(now_ns - w->now_ns);
        if (w->flows[i].is_live)
            w->flows[i].left -= MIN(done, w->flows[i].left);
    }
    w->now_ns = now_ns;
}

static void ended(void *data, uint32_t activity, uint32_t owner) {
    World *w = data;
    uint32_t n = 1;
    if (owner & JOINT_OWNER) {
        owner &= ~JOINT_OWNER;
        n = JOINT;
        assert_true(w->flows[owner].first == owner && w->flows[owner].is_joint);
    } else {
        assert_false(w->flows[owner].is_joint);
    }
    for (uint32_t i = owner; i < owner + n; i++) {
        assert_true(w->flows[i].is_live && !w->flows[i].is_told);
        assert_int_equal(w->flows[i].id, activity);
        w->flows[i].is_told = true;
    }
}

void world_end_due(World *w) {
    orr_fluid_take_ended(w->fluid, w->now_ns, ended, w);
    for (uint32_t i = 0; i < MAX_FLOWS; i++) {
        Live *x = &w->flows[i];
        if (!x->is_live)
            continue;
        if (x->is_held) {
            if (x->end_ns != w->now_ns)
                continue;
            if (!x->is_joint) {
                orr_fluid_release(w->fluid, &x->room);
            } else if (x->first == i) {
                OrrReserve all = room_of_all(w, i);
                orr_fluid_release(w->fluid, &all);
            }
            x->is_live = x->is_held = false;
            continue;
        }
        assert_true(x->is_told == (x->end_ns == w->now_ns));
        if (!x->is_told)
            continue;
        if (!x->is_joint || x->first == i)
            orr_fluid_end(w->fluid, w->now_ns, x->id);
        x->is_live = false;
    }
}

static void event(World *w, uint64_t n_starts) {
    int64_t later = w->now_ns + (int64_t)draw(w, 400000);
    if (w->next_ns <= later || (w->next_ns < INT64_MAX && draw(w, 4) == 0)) {
        world_advance(w, w->next_ns);
        world_end_due(w);
    } else {
        world_advance(w, later);
    }
    if (draw(w, 60) == 0) {
        uint32_t link = (uint32_t)draw(w, FIRST_PRIVATE);
        w->capacity[link] = NIC * (link < FIRST_POD ? 1 : NICS / PODS / 4) / (1 + draw(w, 3));
        let_in(w, link); /* at the top that they had */
        split_on(w, link, true);
        orr_fluid_capacity(w->fluid, w->now_ns, link, w->capacity[link]);
    }
    for (uint32_t i = 0; i + JOINT <= MAX_FLOWS; i++) {
        const Live *x = &w->flows[i];
        if (x->is_live && x->is_held && x->is_joint && x->first == i && draw(w, 2) == 0)
            part(w, i);
        else
            join_parted(w, i);
    }
    bool is_quiet = w->kind == WORLD_SPARSE && draw(w, 2) == 0;
    for (uint64_t n = is_quiet ? draw(w, 2) : draw(w, n_starts); n > 0; n--)
        start_something(w);
    world_settle(w);
}

void world_run(uint64_t seed, WorldKind kind, uint32_t pod_share, uint32_t n_events,
               WorldCounts *counts) {
    World *w = g_new0(World, 1);
    w->seed = w->random = seed;
    w->pod_share = pod_share;
    w->kind = kind;
    w->is_wild = kind != WORLD_SPARSE && seed % 2;
    w->is_mixed = kind == WORLD_SPARSE && seed % 2;
    for (uint32_t l = 0; l < N_LINKS; l++)
        w->capacity[l] = l >= FIRST_POD && l < FIRST_PRIVATE ? NIC * NICS / PODS / pod_share : NIC;
    for (uint32_t l = 0; w->kind == WORLD_LIGHT && l < FIRST_POD; l++)
        w->capacity[l] *= 1 + draw(w, 2);
    w->fluid = orr_fluid_new(w->capacity, N_LINKS);
    for (uint32_t row = 0; row < 2 * ROWS; row++) {
        uint32_t links[JOINT];
        for (uint32_t i = 0; i < JOINT; i++)
            links[i] = row / ROWS * NICS + nic_of(row % ROWS, i);
        orr_fluid_add_row(w->fluid, links, JOINT);
    }
    orr_fluid_on_crowded(w->fluid, let_in, w);
    world_settle(w);
    for (uint32_t e = 0; e < n_events; e++)
        event(w, w->kind == WORLD_LIGHT ? 4 : e % 200 == 0 ? 150 : kind == WORLD_SPARSE ? 16 : 6);
    OrrFluidStats stats;
    orr_fluid_stats(w->fluid, &stats);
    counts->n_joint += w->n_joint;
    counts->n_refused += w->n_refused;
    counts->n_split += w->n_split;
    counts->n_held += w->n_held;
    counts->n_parted += w->n_parted;
    counts->n_joined += w->n_joined;
    counts->n_twins += stats.twins;
    orr_fluid_free(w->fluid);
    g_free(w);
}
