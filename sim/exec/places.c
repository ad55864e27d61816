/* Meeting places: a communicator of each group, each directed pair on a communicator. */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#include <string.h>

static const OrrProgram *program(const OrrExec *x) {
    return x->bound->program;
}

static OrrPlace pair_place(const OrrExec *x, uint32_t kind, uint32_t i) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    OrrPlace place = {.group = kind,
                      .index = i,
                      .is_pair = 1,
                      .top_what = ORR_NONE,
                      .convoy = ORR_NONE,
                      .queued_ns = INT64_MAX,
                      .plans = g->pair_plans + (gsize)g->pair_class[i] * program(x)->n_parts,
                      .ends = {g->pair_rank[2 * (gsize)i], g->pair_rank[2 * (gsize)i + 1]}};
    const OrrLoads *l = &g->pair_loads;
    if (l->n_loads > 0 && l->first[i + 1] > l->first[i]) {
        place.uses = l->uses + l->first[i];
        place.n_uses = l->first[i + 1] - l->first[i];
    }
    return place;
}

/* Communicators of a kind of group with collectives, and with sends. */
void orr_exec__used_comms(const OrrProgram *p, uint32_t kind, bool has_coll[256],
                          bool has_pair[256]) {
    for (uint32_t i = 0; i < p->n_colls; i++)
        if (p->colls[i].group == kind)
            has_coll[p->colls[i].comm] = true;
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (p->parts[i].group == kind)
            has_pair[p->parts[i].comm] = true;
}

static void places_of_group(OrrExec *x, uint32_t kind, GArray *places) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    bool has_coll[256] = {false}, has_pair[256] = {false};
    orr_exec__used_comms(program(x), kind, has_coll, has_pair);
    for (uint32_t comm = 0; comm < 256; comm++) {
        x->coll_place[kind][comm] = has_coll[comm] ? places->len : ORR_NONE;
        for (uint32_t i = 0; has_coll[comm] && i < g->n_groups; i++) {
            OrrPlace place = {.group = kind,
                              .index = i,
                              .top_what = ORR_NONE,
                              .convoy = ORR_NONE,
                              .queued_ns = INT64_MAX,
                              .plans = g->plans + (gsize)g->class_of[i] * program(x)->n_colls};
            orr_meeting_init(&place.meeting, g->first_member[i + 1] - g->first_member[i]);
            g_array_append_val(places, place);
        }
        x->pair_place[kind][comm] = has_pair[comm] ? places->len : ORR_NONE;
        /* those of the members of an island, which belong to successive groups, side by side */
        for (uint32_t i = 0; has_pair[comm] && i < g->n_groups * g->n_pairs; i++) {
            uint32_t pair = i / g->n_groups, group = i % g->n_groups;
            OrrPlace place = pair_place(x, kind, group * g->n_pairs + pair);
            g_array_append_val(places, place);
        }
    }
}

/* Communicators on which the order in which sends (or receives) are told matters: not all are on
 * one stream, two of a batch are with one peer, or a send completes early. */
void orr_exec__ordered_comms(const OrrBound *bound, bool is_ordered[ORR_N_GROUPS][256]) {
    const OrrProgram *p = bound->program;
    uint8_t stream[ORR_N_GROUPS][256][2] = {0}; /* plus 1 */
    for (uint32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].kind != ORR_OP_P2P)
            continue;
        const OrrP2p *b = &p->p2ps[p->ops[i].what];
        for (uint32_t k = 0; k < b->n_parts; k++) {
            const OrrP2pPart *a = &p->parts[b->first_part + k];
            uint8_t *s = &stream[a->group][a->comm][a->is_send], mine = p->ops[i].stream + 1;
            if ((*s != 0 && *s != mine) ||
                (a->is_send && b->is_eager && (uint64_t)a->bytes <= bound->eager_bytes))
                is_ordered[a->group][a->comm] = true;
            *s = mine;
            for (uint32_t j = 0; j < k; j++) {
                const OrrP2pPart *other = &p->parts[b->first_part + j];
                if (other->is_send == a->is_send && other->group == a->group &&
                    other->comm == a->comm && other->peer == a->peer)
                    is_ordered[a->group][a->comm] = true;
            }
        }
    }
}

/* Sends and receives that meet in the order of their streams, whatever the order in which they are
 * told, and that slow no kernel: all that matters of their launch is its time. */
static void find_early(OrrExec *x) {
    const OrrProgram *p = program(x);
    bool is_ordered[ORR_N_GROUPS][256] = {false};
    orr_exec__ordered_comms(x->bound, is_ordered);
    x->is_early = g_new0(uint8_t, p->n_p2ps + 1);
    for (uint32_t i = 0; i < p->n_p2ps; i++) {
        const OrrP2pPart *a = &p->parts[p->p2ps[i].first_part];
        x->is_early[i] = !x->options->is_plain && !orr_exec__slows_kernels(x, a->purpose);
        for (uint32_t k = 0; k < p->p2ps[i].n_parts; k++)
            x->is_early[i] &= !is_ordered[a[k].group][a[k].comm];
    }
}

void orr_exec__places_new(OrrExec *x) {
    GArray *places = g_array_new(FALSE, TRUE, sizeof(OrrPlace));
    for (uint32_t kind = 0; kind < ORR_N_GROUPS; kind++)
        places_of_group(x, kind, places);
    x->n_places = places->len;
    x->places = orr_large_new((gsize)places->len * sizeof *x->places);
    if (places->len > 0)
        memcpy(x->places, places->data, (gsize)places->len * sizeof *x->places);
    g_array_free(places, TRUE);
    find_early(x);
}
