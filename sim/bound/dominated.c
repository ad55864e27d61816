/* Links that another always stands before: a PCIe port beside its NIC, say.
 *
 * Link a is dominated by b if every load vector that has a has b too, and would fill b first:
 * load_a / capacity_a <= load_b / capacity_b, load_a <= load_b. Then whatever runs, a is not full
 * before b is, nobody's rate is set by a, and its uses can go; rates stay what they are to the bit
 * (sim/net/fluid.h: where b can't be filled, a can't). Where both load alike, the lower number
 * stays. Not every dominated link is found: those that can dominate a link are looked for near it
 * in the first vector that has it, and ports and NICs of one node have near numbers. Cost: some 20
 * ns a use. */
#include "sim/bound/dominated.h"

#define N_NEAR 16u   /* places in a vector, each way: more than a node's ports of one kind */
#define N_CHOICES 4u /* kept for each link */

typedef struct {
    uint32_t by[N_CHOICES]; /* links that may still dominate it */
    uint8_t n, is_met;
} Choice;

typedef struct {
    const OrrBound *b;
    Choice *choices;       /* [n_links] */
    uint32_t *vector, *at; /* [n_links] last vector, from 1, that has the link, and where */
    uint32_t n_vectors;
} Search;

__extension__ typedef unsigned __int128 Wide;

/* Neither what the activity may take alone nor its largest coefficient, by which rates are scaled,
 * may depend on a either. */
static bool stands_before(const Search *s, const OrrUse *b, const OrrUse *a) {
    uint64_t capacity_a = s->b->capacity[a->constraint], capacity_b = s->b->capacity[b->constraint];
    Wide of_a = (Wide)((uint64_t)a->coef * a->count) * capacity_b;
    Wide of_b = (Wide)((uint64_t)b->coef * b->count) * capacity_a;
    bool is_alone = (Wide)a->coef * capacity_b <= (Wide)b->coef * capacity_a;
    return is_alone && b->coef >= a->coef &&
           (of_a < of_b || (of_a == of_b && b->constraint < a->constraint));
}

static void find_choices(const Search *s, const OrrUse *uses, uint32_t n, uint32_t i) {
    Choice *c = &s->choices[uses[i].constraint];
    uint32_t from = i > N_NEAR ? i - N_NEAR : 0, to = MIN(n, i + N_NEAR + 1);
    for (uint32_t k = from; k < to && c->n < N_CHOICES; k++)
        if (k != i && stands_before(s, &uses[k], &uses[i]))
            c->by[c->n++] = uses[k].constraint;
}

static void keep_choices(const Search *s, const OrrUse *uses, uint32_t i) {
    Choice *c = &s->choices[uses[i].constraint];
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t by = c->by[k];
        if (s->vector[by] == s->n_vectors && stands_before(s, &uses[s->at[by]], &uses[i]))
            c->by[n++] = by;
    }
    c->n = (uint8_t)n;
}

static void read_vector(Search *s, const OrrUse *uses, uint32_t n) {
    s->n_vectors++;
    for (uint32_t i = 0; i < n; i++) {
        s->vector[uses[i].constraint] = s->n_vectors;
        s->at[uses[i].constraint] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        Choice *c = &s->choices[uses[i].constraint];
        if (c->is_met)
            keep_choices(s, uses, i);
        else
            find_choices(s, uses, n, i);
        c->is_met = 1;
    }
}

static void read_loads(Search *s, const OrrLoads *l, uint32_t n_places) {
    for (uint32_t v = 0; v < n_places * l->n_loads; v++)
        read_vector(s, l->uses + l->first[v], l->first[v + 1] - l->first[v]);
}

static void drop(const Search *s, OrrLoads *l, uint32_t n_places) {
    uint32_t out = 0, n = n_places * l->n_loads, begin = 0;
    for (uint32_t v = 0; v < n; v++) {
        uint32_t end = l->first[v + 1];
        l->first[v] = out;
        for (uint32_t i = begin; i < end; i++)
            if (s->choices[l->uses[i].constraint].n == 0)
                l->uses[out++] = l->uses[i];
        begin = end;
    }
    if (n > 0)
        l->first[n] = out;
}

void orr_bound_drop_dominated(OrrBound *b) {
    g_autofree Choice *choices = g_new0(Choice, b->n_links + 1);
    g_autofree uint32_t *vector = g_new0(uint32_t, b->n_links + 1);
    g_autofree uint32_t *at = g_new(uint32_t, b->n_links + 1);
    Search s = {b, choices, vector, at, 0};
    for (int pass = 0; pass < 2; pass++)
        for (int kind = 0; kind < ORR_N_GROUPS; kind++) {
            OrrBoundGroup *g = &b->groups[kind];
            if (pass == 0) {
                read_loads(&s, &g->pair_loads, g->n_groups * g->n_pairs);
                read_loads(&s, &g->loads, g->n_groups);
            } else {
                drop(&s, &g->pair_loads, g->n_groups * g->n_pairs);
                drop(&s, &g->loads, g->n_groups);
            }
        }
}
