#include "sim/lower/cells.h"

#include "sim/lower/lower_priv.h"

#include <stdlib.h>
#include <string.h>

/* A cut of the ranks into cells, and what may make two of them differ. */
typedef struct {
    OrrCells *cells;
    uint32_t unit;       /* GPUs that stay together: a domain or a leaf */
    bool has_leaves;     /* units are parts of leaves */
    uint32_t *speed;     /* [ranks], or NULL */
    GArray *links;       /* Disturbed, by cell and place in it */
    uint32_t *link_from; /* [n_cells + 1] into links, or NULL */
} Cut;

/* A link that is not as it should be; @link as if its cell were the first. */
typedef struct {
    uint32_t cell, link;
    double factor;
} Disturbed;

static uint32_t gcd(uint32_t a, uint32_t b) {
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint32_t orr_cells_n_kept_ranks(const OrrCells *c) {
    return c->n_outer * c->n_kept * c->n_ranks;
}

uint32_t orr_cells_rank(const OrrCells *c, uint32_t kept) {
    uint32_t block = kept / c->n_ranks, outer = block / c->n_kept;
    return (outer * c->n_cells + c->kept[block % c->n_kept]) * c->n_ranks + kept % c->n_ranks;
}

uint32_t orr_cells_kept(const OrrCells *c, uint32_t rank) {
    uint32_t block = rank / c->n_ranks, outer = block / c->n_cells;
    return (outer * c->n_kept + c->class_of[block % c->n_cells]) * c->n_ranks + rank % c->n_ranks;
}

uint32_t orr_cells_weight(const OrrCells *c, uint32_t kept) {
    return c->size[kept / c->n_ranks % c->n_kept];
}

uint32_t orr_cells_of_link(const OrrCells *c, uint32_t link) {
    uint32_t first, n;
    if (c->n_cells == 1)
        return 0;
    orr_cluster_link_gpus(c->in->cluster, link, &first, &n);
    if (first / c->n_ranks != (first + n - 1) / c->n_ranks)
        return ORR_NONE;
    return first / c->n_ranks % c->n_cells;
}

void orr_cells_free(OrrCells *c) {
    if (!c)
        return;
    g_free(c->class_of);
    g_free(c->kept);
    g_free(c->size);
    g_free(c->runs);
    g_free(c);
}

static OrrCells *cells_new(const OrrLowering *in, uint32_t n_ranks, uint32_t n_outer,
                           uint32_t n_cells) {
    OrrCells *c = g_new0(OrrCells, 1);
    *c = (OrrCells){.in = in, .n_ranks = n_ranks, .n_outer = n_outer, .n_cells = n_cells};
    c->class_of = g_new0(uint32_t, n_cells);
    c->kept = g_new0(uint32_t, n_cells);
    c->size = g_new0(uint32_t, n_cells);
    c->runs = g_new0(OrrCellRun, n_cells);
    return c;
}

OrrCells *orr_cells_whole(const OrrLowering *in) {
    OrrCells *c = cells_new(in, (uint32_t)orr_layout_world(&in->job->layout), 1, 1);
    c->n_kept = c->n_runs = c->size[0] = 1;
    c->runs[0] = (OrrCellRun){0, 1};
    return c;
}

/* Whether groups of this kind stay inside cells, or have the same members in each of them. */
static bool fits(OrrCells *c, OrrGroup kind) {
    const OrrLayout *layout = &c->in->job->layout;
    uint32_t size = orr_layout_group_size(layout, kind), position, stays = 0, spans = 0, n = 0;
    g_autofree uint32_t *seen = g_new0(uint32_t, orr_layout_n_groups(layout, kind) + 1);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < c->n_outer * c->n_ranks; i++) {
            uint32_t first = i / c->n_ranks * c->n_cells * c->n_ranks + i % c->n_ranks;
            uint32_t g = orr_layout_group_of(layout, kind, first, &position);
            if (pass == 0) {
                seen[g == ORR_NONE ? 0 : g] += g != ORR_NONE;
                continue;
            }
            uint32_t next = orr_layout_group_of(layout, kind, first + c->n_ranks, &position);
            uint32_t last =
                orr_layout_group_of(layout, kind, first + (c->n_cells - 1) * c->n_ranks, &position);
            n++;
            stays += g == ORR_NONE || seen[g] == size;
            spans += g == next && g == last;
        }
    c->spans[kind] = stays < n;
    return stays == n || spans == n;
}

/* Runs of replicas, as short as can be, that fill whole units and that the groups fit. NULL: there
 * are not two. */
static OrrCells *cut_cells(const OrrLowering *in, const bool *is_used, uint32_t unit) {
    const OrrLayout *l = &in->job->layout;
    uint32_t inner = orr_layout_rank(l, (OrrCoords){.dp = 1}),
             world = (uint32_t)orr_layout_world(l);
    for (uint32_t n = unit / gcd(unit, inner); l->dp > 1 && n <= l->dp / 2; n++) {
        if (l->dp % n != 0 || n * inner % unit != 0)
            continue;
        OrrCells *c = cells_new(in, n * inner, world / (l->dp * inner), l->dp / n);
        bool is_fit = true;
        for (int k = 0; k < ORR_N_GROUPS && is_fit; k++)
            is_fit = !is_used[k] || fits(c, k);
        if (is_fit)
            return c;
        orr_cells_free(c);
    }
    return NULL;
}

static int by_cell(const void *a, const void *b) {
    const Disturbed *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return (x->link > y->link) - (x->link < y->link);
}

static void find_disturbed(Cut *cut) {
    const OrrCells *c = cut->cells;
    const OrrLowering *in = c->in;
    g_autoptr(GArray) links = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    if (!in->perturbs || !orr_perturbs_have_links(in->perturbs))
        return;
    cut->links = g_array_new(FALSE, TRUE, sizeof(Disturbed));
    cut->link_from = g_new0(uint32_t, c->n_cells + 1);
    orr_perturbs_links(in->perturbs, in->cluster, links);
    for (guint i = 0; i < links->len; i++) {
        uint32_t link = g_array_index(links, uint32_t, i), cell = orr_cells_of_link(c, link);
        if (cell == ORR_NONE)
            continue; /* what several cells share is itself */
        Disturbed d;
        memset(&d, 0, sizeof d);
        d.cell = cell;
        d.link = orr_cluster_link_shift(in->cluster, link, -(int64_t)cell * c->n_ranks);
        d.factor = orr_perturbs_link(in->perturbs, in->cluster, link);
        g_array_append_val(cut->links, d);
        cut->link_from[cell + 1]++;
    }
    g_array_sort(cut->links, by_cell);
    for (uint32_t i = 0; i < c->n_cells; i++)
        cut->link_from[i + 1] += cut->link_from[i];
}

static int compare_links(const Cut *cut, uint32_t a, uint32_t b) {
    const uint32_t *from = cut->link_from;
    uint32_t n_a = from[a + 1] - from[a], n_b = from[b + 1] - from[b];
    if (n_a != n_b)
        return n_a < n_b ? -1 : 1;
    for (uint32_t i = 0; i < n_a; i++) {
        const Disturbed *x = &g_array_index(cut->links, Disturbed, from[a] + i);
        const Disturbed *y = &g_array_index(cut->links, Disturbed, from[b] + i);
        if (x->link != y->link)
            return x->link < y->link ? -1 : 1;
        if (x->factor < y->factor || x->factor > y->factor)
            return x->factor < y->factor ? -1 : 1;
    }
    return 0;
}

/* Cells are alike if all this is the same: speeds of ranks, links of their own, switches above. */
static int compare_cells(gconstpointer p, gconstpointer q, gpointer data) {
    const Cut *cut = data;
    const OrrCells *c = cut->cells;
    const OrrCluster *cluster = c->in->cluster;
    uint32_t a = *(const uint32_t *)p, b = *(const uint32_t *)q;
    int order = cut->links ? compare_links(cut, a, b) : 0;
    for (uint32_t o = 0; o < c->n_outer && order == 0; o++) {
        uint32_t x = (o * c->n_cells + a) * c->n_ranks, y = (o * c->n_cells + b) * c->n_ranks;
        if (cut->speed)
            order = memcmp(cut->speed + x, cut->speed + y, c->n_ranks * sizeof *cut->speed);
        for (uint32_t i = 0; i < c->n_ranks && order == 0; i += cut->unit) {
            uint32_t u = orr_cluster_pod_of_gpu(cluster, x + i);
            uint32_t v = orr_cluster_pod_of_gpu(cluster, y + i);
            if (u == v && cut->has_leaves) {
                u = orr_cluster_leaf_of_gpu(cluster, x + i);
                v = orr_cluster_leaf_of_gpu(cluster, y + i);
            }
            order = (u > v) - (u < v);
        }
    }
    return order;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Runs of like cells first: as a rule they are few. */
static void classify(Cut *cut) {
    OrrCells *c = cut->cells;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        uint32_t before = i - 1;
        if (i > 0 && compare_cells(&before, &i, cut) == 0)
            c->runs[c->n_runs - 1].n++;
        else
            c->runs[c->n_runs++] = (OrrCellRun){i, 1};
    }
    g_autofree uint32_t *heads = g_new(uint32_t, c->n_runs);
    for (uint32_t i = 0; i < c->n_runs; i++)
        heads[i] = c->runs[i].first;
    g_qsort_with_data(heads, (gint)c->n_runs, sizeof *heads, compare_cells, cut); /* stable */
    for (uint32_t i = 0; i < c->n_runs; i++) {
        bool is_new = i == 0 || compare_cells(&heads[i - 1], &heads[i], cut) != 0;
        c->class_of[heads[i]] = is_new ? heads[i] : c->class_of[heads[i - 1]];
        if (is_new)
            c->kept[c->n_kept++] = heads[i];
    }
    qsort(c->kept, c->n_kept, sizeof *c->kept, by_number);
    g_autofree uint32_t *number = g_new(uint32_t, c->n_cells);
    for (uint32_t i = 0; i < c->n_kept; i++)
        number[c->kept[i]] = i;
    for (uint32_t i = 0; i < c->n_runs; i++) {
        uint32_t class = number[c->class_of[c->runs[i].first]];
        for (uint32_t k = 0; k < c->runs[i].n; k++)
            c->class_of[c->runs[i].first + k] = class;
        c->size[class] += c->runs[i].n;
    }
}

/* As fixed as they are bound: what is alike there is alike. */
static uint32_t *speeds(const OrrLowering *in) {
    uint32_t n = (uint32_t)orr_layout_world(&in->job->layout);
    if (!in->perturbs || !orr_perturbs_have_speeds(in->perturbs))
        return NULL;
    uint32_t *speed = g_new(uint32_t, n);
    for (uint32_t r = 0; r < n; r++)
        speed[r] = orr_lower__speed(in, r);
    return speed;
}

static OrrCells *cut_by(const OrrLowering *in, const bool *is_used, uint32_t unit, bool has_leaves,
                        uint32_t *speed) {
    OrrCells *cells = cut_cells(in, is_used, unit);
    if (!cells)
        return NULL;
    Cut cut = {.cells = cells, .unit = unit, .has_leaves = has_leaves, .speed = speed};
    find_disturbed(&cut);
    classify(&cut);
    if (cut.links)
        g_array_free(cut.links, TRUE);
    g_free(cut.link_from);
    return cells;
}

static void used_groups(const OrrProgram *p, bool *is_used) {
    for (uint32_t i = 0; i < p->n_colls; i++)
        is_used[p->colls[i].group] = true;
    for (uint32_t i = 0; i < p->n_parts; i++)
        is_used[p->parts[i].group] = true;
}

/* Sends go from rank to rank: a group of senders that spans cells is none of ours. */
static bool has_wide_sends(const OrrCells *c, const OrrProgram *p) {
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (c->spans[p->parts[i].group])
            return true;
    return false;
}

/* Whole leaves, or whole domains under their leaves: what leaves fewer ranks. */
static OrrCells *best_cut(const OrrLowering *in, const bool *is_used) {
    const OrrNode *node = orr_cluster_spec(in->cluster)->node;
    uint32_t domain = node->gpus * node->domain_nodes,
             leaf = orr_cluster_gpus_per_leaf(in->cluster);
    g_autofree uint32_t *speed = speeds(in);
    uint32_t unit = leaf ? domain / gcd(domain, leaf) * leaf : domain;
    OrrCells *whole_leaves = cut_by(in, is_used, unit, false, speed);
    if (!leaf || unit == domain)
        return whole_leaves;
    /* there are at least as many classes as leaves under one block of replicas */
    const OrrLayout *l = &in->job->layout;
    uint64_t block = (uint64_t)l->dp * orr_layout_rank(l, (OrrCoords){.dp = 1});
    uint64_t least = MAX(block / leaf, 1) * (orr_layout_world(l) / block) * domain;
    if (whole_leaves && orr_cells_n_kept_ranks(whole_leaves) <= least)
        return whole_leaves;
    OrrCells *parts = cut_by(in, is_used, domain, true, speed);
    bool is_better = parts && (!whole_leaves || orr_cells_n_kept_ranks(parts) <
                                                    orr_cells_n_kept_ranks(whole_leaves));
    orr_cells_free(is_better ? whole_leaves : parts);
    return is_better ? parts : whole_leaves;
}

OrrCells *orr_cells_new(const OrrLowering *in, const OrrProgram *program) {
    bool is_used[ORR_N_GROUPS] = {false};
    if (in->is_whole || (in->placement && in->placement->gpu_of_rank) ||
        orr_cluster_spec(in->cluster)->routing != ORR_ROUTE_SPREAD)
        return orr_cells_whole(in);
    used_groups(program, is_used);
    OrrCells *c = best_cut(in, is_used);
    if (c && c->n_kept < c->n_cells && !has_wide_sends(c, program))
        return c;
    orr_cells_free(c);
    return orr_cells_whole(in);
}
