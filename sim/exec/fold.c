/* Folding over one graph of ranks, group instances, directed pairs and links.
 *
 * Nodes start with a class (role, hardware kind; kind and class; capacity) and are split until
 * equal classes see equal neighbourhoods (refine.h): a rank its groups and pairs, a group its
 * members and links, a pair its two ends and its links, a link the places that load it. Members of
 * a group are unordered: a ring over many racks does not split its members.
 *
 * A bound program may come with weights (sim/lower/cells.h): a rank then stands for several real
 * ones, and edges say how often the real nodes meet: a group has weight of rank / weight of group
 * members like that one, a place uses count * weight of link / weight of place links like that one.
 */
#include "sim/exec/fold.h"

#include "sim/exec/refine.h"

#include <glib.h>
#include <string.h>

typedef struct {
    uint32_t first, n; /* nodes */
} Range;

typedef struct {
    const OrrBound *b;
    Range ranks, links, groups[ORR_N_GROUPS], pairs[ORR_N_GROUPS];
    uint32_t *link_node; /* [n_links] number among the links in use, or ORR_NONE */
    uint32_t *link_of;   /* and back */
    OrrSightGraph graph;
    uint64_t *fill; /* [n_nodes] where the next sight goes; NULL while they are counted */
    uint32_t *class;
} Fold;

/* What an edge is, as its label: shifted so that nothing overlaps. */
enum { MEMBER = 1, PAIR_OF_GROUP, PAIR_SOURCE, PAIR_TARGET, GROUP_LOAD, PAIR_LOAD };
#define LABEL(tag, kind, vector, coef)                                                             \
    ((uint64_t)(tag) << 60 | (uint64_t)(kind) << 52 | (uint64_t)(vector) << 32 | (coef))

/* Numbers in the order of appearance: open addressing, at most half full. */
typedef struct {
    uint64_t *key;
    uint32_t *number;     /* + 1; 0: free */
    uint32_t n, capacity; /* a power of two */
} Seen;

static void seen_init(Seen *s, uint32_t capacity) {
    *s = (Seen){g_new(uint64_t, capacity), g_new0(uint32_t, capacity), 0, capacity};
}

static void seen_clear(Seen *s) {
    g_free(s->key);
    g_free(s->number);
}

static uint32_t seen_slot(const Seen *s, uint64_t key) {
    /* multiplicative hashing by the golden ratio (Knuth, volume 3, 6.4) */
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (s->capacity - 1);
    while (s->number[at] != 0 && s->key[at] != key)
        at = (at + 1) & (s->capacity - 1);
    return at;
}

static uint32_t seen_number(Seen *s, uint64_t key) {
    uint32_t at = seen_slot(s, key);
    if (s->number[at] != 0)
        return s->number[at] - 1;
    if (2 * s->n >= s->capacity) {
        Seen more;
        seen_init(&more, 2 * s->capacity);
        for (uint32_t i = 0; i < s->capacity; i++) {
            if (s->number[i] == 0)
                continue;
            uint32_t to = seen_slot(&more, s->key[i]);
            more.key[to] = s->key[i];
            more.number[to] = s->number[i];
        }
        more.n = s->n;
        seen_clear(s);
        *s = more;
        at = seen_slot(s, key);
    }
    s->key[at] = key;
    s->number[at] = ++s->n;
    return s->n - 1;
}

static void note_links(Fold *f, const OrrLoads *l, uint32_t n_places) {
    uint64_t n = (uint64_t)n_places * l->n_loads;
    for (uint32_t i = 0; n > 0 && i < l->first[n]; i++) {
        uint32_t link = l->uses[i].constraint;
        if (f->link_node[link] != ORR_NONE)
            continue;
        f->link_node[link] = f->links.n;
        f->link_of[f->links.n++] = link;
    }
}

/* Links in no load vector are no nodes. */
static void links_in_use(Fold *f) {
    const OrrBound *b = f->b;
    f->link_node = g_new(uint32_t, b->n_links + 1);
    f->link_of = g_new(uint32_t, b->n_links + 1);
    memset(f->link_node, 0xff, b->n_links * sizeof *f->link_node);
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *g = &b->groups[k];
        note_links(f, &g->loads, g->n_groups);
        note_links(f, &g->pair_loads, g->n_groups * g->n_pairs);
    }
}

static void ranges(Fold *f) {
    uint32_t at = 0;
    links_in_use(f);
    f->ranks = (Range){at, f->b->n_ranks};
    at += f->ranks.n;
    f->links.first = at;
    at += f->links.n;
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *g = &f->b->groups[k];
        f->groups[k] = (Range){at, g->n_groups};
        at += g->n_groups;
        f->pairs[k] = (Range){at, g->n_groups * g->n_pairs};
        at += f->pairs[k].n;
    }
    f->graph.n_nodes = at;
}

/* @n: classes so far. Keys are exact: what differs differs. */
static uint32_t number_range(Fold *f, Range range, const uint64_t *keys, uint32_t n) {
    Seen seen;
    seen_init(&seen, 1024);
    for (uint32_t i = 0; i < range.n; i++)
        f->class[range.first + i] = n + seen_number(&seen, keys[i]);
    n += seen.n;
    seen_clear(&seen);
    return n;
}

static uint32_t first_classes(Fold *f) {
    const OrrBound *b = f->b;
    g_autofree uint64_t *key = g_new(uint64_t, f->graph.n_nodes + 1);
    for (uint32_t r = 0; r < b->n_ranks; r++)
        key[r] = (uint64_t)b->role[r] << 32 | b->hw[r];
    uint32_t n = number_range(f, f->ranks, key, 0);
    for (uint32_t l = 0; l < f->links.n; l++)
        key[l] = b->capacity[f->link_of[l]];
    n = number_range(f, f->links, key, n);
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *g = &b->groups[k];
        for (uint32_t i = 0; i < g->n_groups; i++)
            key[i] = g->class_of[i];
        n = number_range(f, f->groups[k], key, n);
        for (uint32_t i = 0; i < f->pairs[k].n; i++)
            key[i] = (uint64_t)(i % g->n_pairs) << 32 | g->pair_class[i];
        n = number_range(f, f->pairs[k], key, n);
    }
    return n;
}

static void see(Fold *f, uint32_t node, uint32_t to, uint64_t label, uint32_t times) {
    if (f->fill)
        f->graph.sights[f->fill[node]++] = (OrrSight){label, to, times};
    else
        f->graph.first[node + 1]++;
}

static uint32_t group_weight(const OrrBoundGroup *g, uint32_t i) {
    return g->weight ? g->weight[i] : 1;
}

static uint32_t link_weight(const OrrBound *b, uint32_t link) {
    return b->link_weight ? b->link_weight[link] : 1;
}

/* What a place sees of a link: `count` places meet on each of the links that one stands for. */
static uint32_t links_per_place(const OrrBound *b, const OrrUse *u, uint32_t weight) {
    return (uint32_t)((uint64_t)u->count * link_weight(b, u->constraint) / weight);
}

static void see_loads(Fold *f, const OrrLoads *l, Range places, int k, uint64_t tag,
                      uint32_t n_pairs) {
    const OrrBoundGroup *g = &f->b->groups[k];
    uint32_t n = l->n_loads;
    for (uint32_t p = 0; p < places.n * n; p++)
        for (uint32_t i = l->first[p]; i < l->first[p + 1]; i++) {
            const OrrUse *u = &l->uses[i];
            uint32_t place = places.first + p / n;
            uint32_t link = f->links.first + f->link_node[u->constraint];
            uint64_t label = LABEL(tag, k, p % n, u->coef);
            see(f, place, link, label, links_per_place(f->b, u, group_weight(g, p / n / n_pairs)));
            see(f, link, place, label, u->count);
        }
}

static void see_group(Fold *f, int k) {
    const OrrBoundGroup *g = &f->b->groups[k];
    for (uint32_t i = 0; i < g->n_groups; i++)
        for (uint32_t m = g->first_member[i]; m < g->first_member[i + 1]; m++) {
            uint32_t rank = g->members[m], group = f->groups[k].first + i;
            see(f, group, rank, LABEL(MEMBER, k, 0, 0), f->b->weight[rank] / group_weight(g, i));
            see(f, rank, group, LABEL(MEMBER, k, 0, 0), 1);
        }
    for (uint32_t i = 0; i < f->pairs[k].n; i++) {
        uint32_t pair = f->pairs[k].first + i, group = f->groups[k].first + i / g->n_pairs;
        see(f, pair, group, LABEL(PAIR_OF_GROUP, k, 0, 0), 1);
        see(f, group, pair, LABEL(PAIR_OF_GROUP, k, 0, 0), 1);
        for (uint32_t end = 0; end < 2; end++) {
            uint32_t rank = g->pair_rank[2 * i + end];
            see(f, pair, rank, LABEL(PAIR_SOURCE + end, k, 0, 0), 1);
            see(f, rank, pair, LABEL(PAIR_SOURCE + end, k, 0, 0), 1);
        }
    }
    see_loads(f, &g->loads, f->groups[k], k, GROUP_LOAD, 1);
    see_loads(f, &g->pair_loads, f->pairs[k], k, PAIR_LOAD, MAX(g->n_pairs, 1u));
}

/* Once to count the edges, once to write them. */
static void build_graph(Fold *f) {
    OrrSightGraph *g = &f->graph;
    g->first = g_new0(uint64_t, (gsize)g->n_nodes + 1);
    for (int k = 0; k < ORR_N_GROUPS; k++)
        see_group(f, k);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        g->first[i + 1] += g->first[i];
    g->sights = g_new(OrrSight, g->first[g->n_nodes] + 1);
    f->fill = g_memdup2(g->first, (g->n_nodes + 1) * sizeof *g->first);
    for (int k = 0; k < ORR_N_GROUPS; k++)
        see_group(f, k);
}

/* Representatives: the first node of each class in a range, numbered in order. @index [n] is the
 * number of a node's representative, @rep of the nodes; @size how many real ones share it. */
typedef struct {
    uint32_t n;
    uint32_t *index, *rep, *size;
} Classes;

/* @weight: of each node of the range, or NULL. */
static Classes classes_of(const Fold *f, Range range, const uint32_t *weight) {
    Classes c = {0, g_new(uint32_t, range.n + 1), g_new(uint32_t, range.n + 1),
                 g_new0(uint32_t, range.n + 1)};
    Seen seen;
    seen_init(&seen, 1024);
    for (uint32_t i = 0; i < range.n; i++) {
        c.index[i] = seen_number(&seen, f->class[range.first + i]);
        if (c.index[i] == c.n)
            c.rep[c.n++] = i;
        c.size[c.index[i]] += weight ? weight[i] : 1;
    }
    seen_clear(&seen);
    return c;
}

static Classes classes_of_links(const Fold *f) {
    g_autofree uint32_t *weight = g_new(uint32_t, f->links.n + 1);
    for (uint32_t l = 0; l < f->links.n; l++)
        weight[l] = link_weight(f->b, f->link_of[l]);
    return classes_of(f, f->links, weight);
}

static void classes_clear(Classes *c) {
    g_free(c->index);
    g_free(c->rep);
    g_free(c->size);
}

static int compare_use(const void *a, const void *b) {
    const OrrUse *x = a, *y = b;
    if (x->constraint != y->constraint)
        return x->constraint < y->constraint ? -1 : 1;
    return (x->coef > y->coef) - (x->coef < y->coef);
}

/* Load vectors of the representatives. A link of colour L meets (places of this colour) x (uses of
 * L per place) / (links of L) equal activities: that is the count of the folded use. */
static void fold_loads(const Fold *f, const OrrLoads *in, const Classes *places,
                       const uint32_t *weight, uint32_t n_pairs, const Classes *links,
                       OrrLoads *out) {
    out->n_loads = in->n_loads;
    if (in->n_loads == 0)
        return;
    GArray *uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autoptr(GArray) row = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    out->first = g_new0(uint32_t, (gsize)places->n * in->n_loads + 1);
    for (uint32_t c = 0; c < places->n; c++)
        for (uint32_t v = 0; v < in->n_loads; v++) {
            gsize at = (gsize)places->rep[c] * in->n_loads + v;
            g_array_set_size(row, 0);
            for (uint32_t i = in->first[at]; i < in->first[at + 1]; i++) {
                OrrUse u = in->uses[i];
                uint32_t own = weight ? weight[places->rep[c] / n_pairs] : 1;
                u.count = links_per_place(f->b, &u, own);
                u.constraint = links->index[f->link_node[u.constraint]];
                g_array_append_val(row, u);
            }
            g_array_sort(row, compare_use);
            for (uint32_t i = 0; i < row->len;) {
                OrrUse u = g_array_index(row, OrrUse, i);
                uint64_t n = 0;
                for (; i < row->len && compare_use(&g_array_index(row, OrrUse, i), &u) == 0; i++)
                    n += g_array_index(row, OrrUse, i).count;
                u.count = (uint32_t)(n * places->size[c] / links->size[u.constraint]);
                g_array_append_val(uses, u);
            }
            out->first[c * in->n_loads + v + 1] = uses->len;
        }
    out->uses = (OrrUse *)g_array_free(uses, FALSE);
}

static void fold_members(const OrrBoundGroup *in, const Classes *ranks, const Classes *groups,
                         OrrBoundGroup *out) {
    GArray *members = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree uint32_t *mark = g_new0(uint32_t, ranks->n + 1);
    out->n_groups = groups->n;
    out->size = in->size;
    out->first_member = g_new0(uint32_t, groups->n + 1);
    out->class_of = g_new(uint32_t, groups->n + 1);
    out->group_of = g_new(uint32_t, ranks->n + 1);
    out->position_of = g_new(uint32_t, ranks->n + 1);
    for (uint32_t c = 0; c < ranks->n; c++) {
        uint32_t r = ranks->rep[c];
        out->group_of[c] = in->group_of[r] == ORR_NONE ? ORR_NONE : groups->index[in->group_of[r]];
        out->position_of[c] = in->position_of[r];
    }
    for (uint32_t c = 0; c < groups->n; c++) {
        uint32_t g = groups->rep[c];
        out->class_of[c] = in->class_of[g];
        for (uint32_t m = in->first_member[g]; m < in->first_member[g + 1]; m++) {
            uint32_t rep = ranks->index[in->members[m]];
            if (mark[rep] == c + 1)
                continue;
            mark[rep] = c + 1;
            g_array_append_val(members, rep);
        }
        out->first_member[c + 1] = members->len;
    }
    out->members = (uint32_t *)g_array_free(members, FALSE);
}

/* The pairs of a group class are those of its representative, one of each group of the class. */
static void fold_pairs(const Fold *f, int k, const Classes *ranks, const Classes *groups,
                       const Classes *links, OrrBoundGroup *out) {
    const OrrBoundGroup *in = &f->b->groups[k];
    if (in->n_pairs == 0)
        return;
    Classes pairs = {groups->n * in->n_pairs, NULL, g_new(uint32_t, groups->n * in->n_pairs + 1),
                     g_new(uint32_t, groups->n * in->n_pairs + 1)};
    out->n_pairs = in->n_pairs;
    out->pair_index = g_memdup2(in->pair_index, (gsize)in->size * in->size * sizeof(uint32_t));
    out->pair_rank = g_new(uint32_t, 2 * (gsize)pairs.n + 1);
    out->pair_class = g_new(uint32_t, pairs.n + 1);
    for (uint32_t i = 0; i < pairs.n; i++) {
        uint32_t p = groups->rep[i / in->n_pairs] * in->n_pairs + i % in->n_pairs;
        pairs.rep[i] = p;
        pairs.size[i] = groups->size[i / in->n_pairs];
        out->pair_class[i] = in->pair_class[p];
        for (int end = 0; end < 2; end++)
            out->pair_rank[2 * i + end] = ranks->index[in->pair_rank[2 * p + end]];
    }
    fold_loads(f, &in->pair_loads, &pairs, in->weight, in->n_pairs, links, &out->pair_loads);
    out->n_pair_classes = in->n_pair_classes;
    out->pair_plans = g_memdup2(in->pair_plans, (gsize)in->n_pair_classes * f->b->program->n_parts *
                                                    sizeof(OrrPlan));
    classes_clear(&pairs);
}

static void fold_ranks(const OrrBound *b, const Classes *ranks, OrrBound *out) {
    out->n_ranks = ranks->n;
    out->n_real_ranks = b->n_real_ranks;
    out->weight = g_new0(uint32_t, ranks->n + 1);
    out->role = g_new(uint16_t, ranks->n + 1);
    out->hw = g_new(uint32_t, ranks->n + 1);
    out->rep_of = g_new(uint32_t, b->n_real_ranks);
    for (uint32_t r = 0; r < b->n_real_ranks; r++)
        out->rep_of[r] = ranks->index[b->rep_of ? b->rep_of[r] : r];
    for (uint32_t r = 0; r < b->n_ranks; r++)
        out->weight[ranks->index[r]] += b->weight[r];
    for (uint32_t c = 0; c < ranks->n; c++) {
        out->role[c] = b->role[ranks->rep[c]];
        out->hw[c] = b->hw[ranks->rep[c]];
    }
}

OrrBound *orr_fold(const OrrBound *b) {
    Fold f = {.b = b};
    ranges(&f);
    f.class = g_new(uint32_t, f.graph.n_nodes + 1);
    build_graph(&f);
    orr_refine(&f.graph, f.class, first_classes(&f));
    OrrBound *out = g_new0(OrrBound, 1);
    Classes ranks = classes_of(&f, f.ranks, b->weight), links = classes_of_links(&f);
    out->program = b->program;
    out->n_hw = b->n_hw;
    out->kernel_ns =
        g_memdup2(b->kernel_ns, (gsize)b->n_hw * b->program->n_kernels * sizeof *b->kernel_ns);
    out->host_launch_ns = b->host_launch_ns;
    out->host_comm_ns = b->host_comm_ns;
    out->eager_bytes = b->eager_bytes;
    memcpy(out->rate, b->rate, sizeof b->rate);
    fold_ranks(b, &ranks, out);
    out->n_links = links.n;
    out->capacity = g_new(uint64_t, links.n + 1);
    for (uint32_t c = 0; c < links.n; c++)
        out->capacity[c] = b->capacity[f.link_of[links.rep[c]]];
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *in = &b->groups[k];
        OrrBoundGroup *g = &out->groups[k];
        g->size = in->size;
        if (in->n_groups == 0)
            continue;
        Classes groups = classes_of(&f, f.groups[k], in->weight);
        fold_members(in, &ranks, &groups, g);
        g->n_classes = in->n_classes;
        if (in->plans)
            g->plans =
                g_memdup2(in->plans, (gsize)in->n_classes * b->program->n_colls * sizeof(OrrPlan));
        fold_loads(&f, &in->loads, &groups, in->weight, 1, &links, &g->loads);
        fold_pairs(&f, k, &ranks, &groups, &links, g);
        classes_clear(&groups);
    }
    classes_clear(&ranks);
    classes_clear(&links);
    g_free(f.class);
    g_free(f.fill);
    g_free(f.graph.first);
    g_free(f.graph.sights);
    g_free(f.link_node);
    g_free(f.link_of);
    return out;
}
