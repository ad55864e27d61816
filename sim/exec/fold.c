/* Partition refinement over one graph of ranks, group instances, directed pairs and links.
 *
 * Nodes start with a colour (role, hardware kind; kind and class; capacity) and are split
 * until equal colours see equally coloured neighbourhoods: a rank its groups, a group the set of
 * colours of its members and the multiset of its links, a pair its two ends and its links, a link
 * the multiset of places that load it. Colours of a round are hashes of the colours of the round
 * before; the partition is stable when their number no longer grows (Paige and Tarjan 1987 compute
 * the same partition; a few rounds of hashing are enough for graphs as shallow as these).
 *
 * Members of a group are unordered: a ring over many racks does not split its members. */
#include "sim/exec/fold.h"

#include <glib.h>
#include <string.h>

typedef struct {
    uint32_t first, n; /* nodes in the colour array */
} Range;

typedef struct {
    const OrrBound *b;
    Range ranks, links, groups[ORR_N_GROUPS], pairs[ORR_N_GROUPS];
    uint32_t *link_node; /* [n_links] number among the links in use, or ORR_NONE */
    uint32_t *link_of;   /* and back */
    uint32_t n_nodes;
    uint64_t *color, *next;
    uint64_t *mixed; /* [links in use] mixed colours of this round */
} Fold;

/* Colours seen, numbered in the order of appearance: open addressing, at most half full. */
typedef struct {
    uint64_t *key; /* 0: free; colour 0 counts as 1 */
    uint32_t *number;
    uint32_t n, capacity; /* a power of two */
} Seen;

static uint64_t mix(uint64_t h) {
    /* finaliser of splitmix64 (Steele, Lea and Flood 2014) */
    h += 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static uint64_t join(uint64_t a, uint64_t b) {
    return mix(a ^ mix(b));
}

static void seen_init(Seen *s, uint32_t capacity) {
    *s = (Seen){g_new0(uint64_t, capacity), g_new(uint32_t, capacity), 0, capacity};
}

static void seen_clear(Seen *s) {
    g_free(s->key);
    g_free(s->number);
}

static uint32_t seen_slot(const Seen *s, uint64_t key) {
    uint32_t at = (uint32_t)key & (s->capacity - 1); /* colours are hashes already */
    while (s->key[at] != 0 && s->key[at] != key)
        at = (at + 1) & (s->capacity - 1);
    return at;
}

static uint32_t seen_number(Seen *s, uint64_t color) {
    uint64_t key = MAX(color, 1);
    uint32_t at = seen_slot(s, key);
    if (s->key[at] != 0)
        return s->number[at];
    if (2 * s->n >= s->capacity) {
        Seen more;
        seen_init(&more, 2 * s->capacity);
        for (uint32_t i = 0; i < s->capacity; i++) {
            if (s->key[i] == 0)
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
    return s->number[at] = s->n++;
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

/* Most links of a machine cannot saturate and are in no load vector: they are no nodes. */
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
    f->n_nodes = at;
}

static void first_colors(Fold *f) {
    const OrrBound *b = f->b;
    for (uint32_t r = 0; r < b->n_ranks; r++)
        f->color[f->ranks.first + r] = join(1, (uint64_t)b->role[r] << 32 | b->hw[r]);
    for (uint32_t l = 0; l < f->links.n; l++)
        f->color[f->links.first + l] = join(2, b->capacity[f->link_of[l]]);
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *g = &b->groups[k];
        for (uint32_t i = 0; i < g->n_groups; i++)
            f->color[f->groups[k].first + i] = join(join(3, k), g->class_of[i]);
        for (uint32_t i = 0; i < f->pairs[k].n; i++)
            f->color[f->pairs[k].first + i] =
                join(join(4, (uint64_t)k << 32 | i % g->n_pairs), g->pair_class[i]);
    }
}

/* A place takes the multiset of its links, each link that of its places: sums of mixed colours do
 * not depend on order. */
static void visit_loads(Fold *f, const OrrLoads *l, Range places) {
    if (l->n_loads == 0)
        return;
    OrrUse last = {0}; /* edges repeat: their hashes are kept */
    uint64_t edge = 0, to_link = 0, mine = 0;
    uint32_t last_v = ORR_NONE;
    for (uint32_t p = 0; p < places.n; p++) {
        uint64_t place = f->color[places.first + p], sum = 0;
        for (uint32_t v = 0; v < l->n_loads; v++)
            for (uint32_t i = l->first[p * l->n_loads + v]; i < l->first[p * l->n_loads + v + 1];
                 i++) {
                const OrrUse *u = &l->uses[i];
                uint32_t link = f->link_node[u->constraint];
                if (v != last_v || u->coef != last.coef || u->count != last.count ||
                    place != mine) {
                    edge = join((uint64_t)v << 32 | u->coef, u->count);
                    to_link = join(edge, place);
                    last = *u, last_v = v, mine = place;
                }
                sum += mix(edge ^ f->mixed[link]); /* join of edge and link */
                f->next[f->links.first + link] += to_link;
            }
        f->next[places.first + p] += sum;
    }
}

static void visit_group(Fold *f, int k) {
    const OrrBoundGroup *g = &f->b->groups[k];
    for (uint32_t i = 0; i < g->n_groups; i++) {
        uint64_t mine = join(join(6, k), f->color[f->groups[k].first + i]), members = 0;
        for (uint32_t m = g->first_member[i]; m < g->first_member[i + 1]; m++) {
            members += join(5, f->color[f->ranks.first + g->members[m]]);
            f->next[f->ranks.first + g->members[m]] += mine;
        }
        f->next[f->groups[k].first + i] += members;
    }
    for (uint32_t i = 0; i < f->pairs[k].n; i++) {
        uint64_t mine = f->color[f->pairs[k].first + i];
        f->next[f->pairs[k].first + i] += join(11, f->color[f->groups[k].first + i / g->n_pairs]);
        for (uint32_t end = 0; end < 2; end++) {
            uint32_t r = f->ranks.first + g->pair_rank[2 * i + end];
            f->next[f->pairs[k].first + i] += join(7 + end, f->color[r]);
            f->next[r] += join(9 + end, mine);
        }
    }
    visit_loads(f, &g->loads, f->groups[k]);
    visit_loads(f, &g->pair_loads, f->pairs[k]);
}

static uint32_t count_colors(const Fold *f) {
    Seen seen;
    seen_init(&seen, 1024);
    for (uint32_t i = 0; i < f->n_nodes; i++)
        seen_number(&seen, f->color[i]);
    seen_clear(&seen);
    return seen.n;
}

static void refine(Fold *f) {
    for (uint32_t n = 0, before = count_colors(f); n < 64; n++) {
        memset(f->next, 0, f->n_nodes * sizeof *f->next);
        for (uint32_t l = 0; l < f->links.n; l++)
            f->mixed[l] = mix(f->color[f->links.first + l]);
        for (int k = 0; k < ORR_N_GROUPS; k++)
            visit_group(f, k);
        for (uint32_t i = 0; i < f->n_nodes; i++)
            f->color[i] = join(f->color[i], f->next[i]);
        uint32_t now = count_colors(f);
        if (now == before)
            return;
        before = now;
    }
}

/* Representatives: the first node of each colour in a range, numbered in order. @index [n] is the
 * number of a node's representative, @rep of the nodes; @size how many share it. */
typedef struct {
    uint32_t n;
    uint32_t *index, *rep, *size;
} Classes;

static Classes classes_of(const Fold *f, Range range) {
    Classes c = {0, g_new(uint32_t, range.n + 1), g_new(uint32_t, range.n + 1),
                 g_new0(uint32_t, range.n + 1)};
    Seen seen;
    seen_init(&seen, 1024);
    for (uint32_t i = 0; i < range.n; i++) {
        c.index[i] = seen_number(&seen, f->color[range.first + i]);
        if (c.index[i] == c.n)
            c.rep[c.n++] = i;
        c.size[c.index[i]]++;
    }
    seen_clear(&seen);
    return c;
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
                       const Classes *links, OrrLoads *out) {
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
    fold_loads(f, &in->pair_loads, &pairs, links, &out->pair_loads);
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
    out->rep_of = g_memdup2(ranks->index, b->n_ranks * sizeof(uint32_t));
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
    f.color = g_new(uint64_t, f.n_nodes + 1);
    f.next = g_new(uint64_t, f.n_nodes + 1);
    f.mixed = g_new(uint64_t, f.links.n + 1);
    first_colors(&f);
    refine(&f);
    OrrBound *out = g_new0(OrrBound, 1);
    Classes ranks = classes_of(&f, f.ranks), links = classes_of(&f, f.links);
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
        Classes groups = classes_of(&f, f.groups[k]);
        fold_members(in, &ranks, &groups, g);
        g->n_classes = in->n_classes;
        if (in->plans)
            g->plans =
                g_memdup2(in->plans, (gsize)in->n_classes * b->program->n_colls * sizeof(OrrPlan));
        fold_loads(&f, &in->loads, &groups, &links, &g->loads);
        fold_pairs(&f, k, &ranks, &groups, &links, g);
        classes_clear(&groups);
    }
    classes_clear(&ranks);
    classes_clear(&links);
    g_free(f.color);
    g_free(f.next);
    g_free(f.mixed);
    g_free(f.link_node);
    g_free(f.link_of);
    return out;
}
