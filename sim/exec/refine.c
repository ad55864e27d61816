#include "sim/exec/refine.h"

#include <string.h>

/* Parts of classes among the nodes that are looked at: same class before, same neighbourhood. */
typedef struct {
    uint64_t hash;
    uint32_t class, n;
} Part;

typedef struct {
    const OrrSightGraph *g;
    uint64_t salt;
    uint32_t *class, *size; /* of each node; of each class */
    uint64_t *hash;         /* of each class */
    uint32_t n_classes;
    uint32_t *dirty, *next; /* nodes whose neighbourhood has new classes */
    uint32_t n_dirty;
    uint32_t *part_of; /* [n_dirty] */
    Part *parts;
    uint32_t n_parts;
    uint32_t *looked; /* [classes] nodes of each that are looked at; 0 between rounds */
    uint32_t *keeper; /* [classes] the part that keeps the class, or NONE */
    uint32_t *slot;   /* hash table of parts, +1; a power of two */
    uint32_t n_slots;
    uint32_t *round; /* [n_nodes] when each was put on the list last */
} Refine;

#define NONE UINT32_MAX

static uint64_t mix(uint64_t h) {
    /* finaliser of splitmix64 (Steele, Lea and Flood 2014) */
    h += 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* A sum does not depend on the order of edges. */
static uint64_t neighbourhood(const Refine *f, uint32_t node) {
    uint64_t sum = 0;
    for (uint64_t i = f->g->first[node]; i < f->g->first[node + 1]; i++) {
        const OrrSight *s = &f->g->sights[i];
        sum += s->times * mix(s->label * 0x9e3779b97f4a7c15u ^ f->hash[f->class[s->to]]);
    }
    return sum;
}

static uint32_t part_of(Refine *f, uint32_t class, uint64_t hash) {
    uint32_t at = (uint32_t)mix(hash ^ class) & (f->n_slots - 1);
    for (; f->slot[at] != 0; at = (at + 1) & (f->n_slots - 1)) {
        const Part *p = &f->parts[f->slot[at] - 1];
        if (p->class == class && p->hash == hash)
            return f->slot[at] - 1;
    }
    f->parts[f->n_parts] = (Part){hash, class, 0};
    f->slot[at] = ++f->n_parts;
    return f->n_parts - 1;
}

static void find_parts(Refine *f) {
    f->n_parts = 0;
    for (f->n_slots = 16; f->n_slots < 2 * f->n_dirty; f->n_slots *= 2)
        continue;
    memset(f->slot, 0, f->n_slots * sizeof *f->slot);
    for (uint32_t i = 0; i < f->n_dirty; i++) {
        uint32_t node = f->dirty[i];
        f->part_of[i] = part_of(f, f->class[node], neighbourhood(f, node));
        f->parts[f->part_of[i]].n++;
        f->looked[f->class[node]]++;
    }
}

/* Where all nodes of a class are looked at its largest part keeps the name, else those that are
 * not. */
static void choose_keepers(Refine *f) {
    for (uint32_t p = 0; p < f->n_parts; p++)
        f->keeper[f->parts[p].class] = NONE;
    for (uint32_t p = 0; p < f->n_parts; p++) {
        uint32_t class = f->parts[p].class, *keeper = &f->keeper[class];
        if (f->looked[class] == f->size[class] &&
            (*keeper == NONE || f->parts[p].n > f->parts[*keeper].n))
            *keeper = p;
    }
    for (uint32_t p = 0; p < f->n_parts; p++)
        f->looked[f->parts[p].class] = 0;
    for (uint32_t p = 0, n = f->n_parts; p < n; p++) {
        Part *part = &f->parts[p];
        if (f->keeper[part->class] == p)
            continue;
        f->size[part->class] -= part->n;
        part->class = f->n_classes++;
        f->hash[part->class] = mix(part->class ^ f->salt);
        f->size[part->class] = part->n;
        f->looked[part->class] = 0;
    }
}

/* Names the parts; who sees a node with a new name is looked at next. */
static void rename_nodes(Refine *f, uint32_t round) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_dirty; i++) {
        uint32_t node = f->dirty[i], class = f->parts[f->part_of[i]].class;
        if (class == f->class[node])
            continue;
        f->class[node] = class;
        for (uint64_t e = f->g->first[node]; e < f->g->first[node + 1]; e++) {
            uint32_t to = f->g->sights[e].to;
            if (f->round[to] == round)
                continue;
            f->round[to] = round;
            f->next[n++] = to;
        }
    }
    uint32_t *list = f->dirty;
    f->dirty = f->next;
    f->next = list;
    f->n_dirty = n;
}

static void split(Refine *f) {
    f->n_dirty = f->g->n_nodes;
    for (uint32_t i = 0; i < f->n_dirty; i++)
        f->dirty[i] = i;
    memset(f->round, 0, f->g->n_nodes * sizeof *f->round);
    for (uint32_t round = 1; f->n_dirty > 0; round++) {
        find_parts(f);
        choose_keepers(f);
        rename_nodes(f, round);
    }
}

/* An edge of a neighbourhood, with the class in the place of the node. */
static bool is_before(const OrrSight *x, const OrrSight *y) {
    return x->label < y->label || (x->label == y->label && x->to < y->to);
}

/* Shell sort with the gaps of Ciura 2001: neighbourhoods are short, or few. */
static void sort_sights(OrrSight *s, uint32_t n) {
    static const uint32_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (gsize k = 0; k < G_N_ELEMENTS(gaps); k++)
        for (uint32_t gap = gaps[k], i = gap; i < n; i++) {
            OrrSight moved = s[i];
            uint32_t at = i;
            for (; at >= gap && is_before(&moved, &s[at - gap]); at -= gap)
                s[at] = s[at - gap];
            s[at] = moved;
        }
}

/* Sorted, equal edges added up; returns their number. */
static uint32_t sorted_sights(const Refine *f, uint32_t node, OrrSight *out) {
    uint32_t n = (uint32_t)(f->g->first[node + 1] - f->g->first[node]), m = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = f->g->sights[f->g->first[node] + i];
        out[i].to = f->class[out[i].to];
    }
    sort_sights(out, n);
    for (uint32_t i = 1; i < n; i++)
        if (out[m].label == out[i].label && out[m].to == out[i].to)
            out[m].times += out[i].times;
        else
            out[++m] = out[i];
    return n > 0 ? m + 1 : 0;
}

/* Whether nodes of a class really see the same: each against the first of its class. */
static bool is_stable(const Refine *f) {
    const OrrSightGraph *g = f->g;
    uint64_t most = 0, at = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        most = MAX(most, g->first[i + 1] - g->first[i]);
    g_autofree OrrSight *mine = g_new(OrrSight, most + 1);
    g_autofree OrrSight *firsts = g_new(OrrSight, g->first[g->n_nodes] + 1);
    g_autofree uint64_t *from = g_new0(uint64_t, f->n_classes + 1); /* + 1; 0: none yet */
    g_autofree uint32_t *n = g_new0(uint32_t, f->n_classes + 1);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        uint32_t class = f->class[i], n_mine = sorted_sights(f, i, mine);
        if (from[class] == 0) {
            memcpy(firsts + at, mine, n_mine * sizeof *mine);
            from[class] = at + 1;
            n[class] = n_mine;
            at += n_mine;
        } else if (n[class] != n_mine ||
                   memcmp(firsts + from[class] - 1, mine, n_mine * sizeof *mine) != 0) {
            return false;
        }
    }
    return true;
}

static void refine_init(Refine *f, const OrrSightGraph *g, uint32_t *class) {
    gsize n = g->n_nodes;
    *f = (Refine){.g = g, .class = class};
    f->size = g_new(uint32_t, n + 1);
    f->hash = g_new(uint64_t, n + 1);
    f->dirty = g_new(uint32_t, n + 1);
    f->next = g_new(uint32_t, n + 1);
    f->part_of = g_new(uint32_t, n + 1);
    f->parts = g_new(Part, n + 1);
    f->looked = g_new0(uint32_t, n + 1);
    f->keeper = g_new(uint32_t, n + 1);
    f->slot = g_new(uint32_t, 4 * n + 16);
    f->round = g_new(uint32_t, n + 1);
}

static void refine_clear(Refine *f) {
    g_free(f->size);
    g_free(f->hash);
    g_free(f->dirty);
    g_free(f->next);
    g_free(f->part_of);
    g_free(f->parts);
    g_free(f->looked);
    g_free(f->keeper);
    g_free(f->slot);
    g_free(f->round);
}

#define MAX_TRIES 8 /* collisions of 64 bits in as many runs with other hashes: a defect */

uint32_t orr_refine(const OrrSightGraph *g, uint32_t *class, uint32_t n_classes) {
    Refine f;
    g_autofree uint32_t *given = g_new(uint32_t, g->n_nodes + 1);
    bool is_done = false;
    memcpy(given, class, g->n_nodes * sizeof *given);
    refine_init(&f, g, class);
    for (uint64_t i = 0; i < MAX_TRIES && !is_done; i++) {
        f.salt = mix(i);
        f.n_classes = n_classes;
        memcpy(class, given, g->n_nodes * sizeof *given);
        memset(f.size, 0, n_classes * sizeof *f.size);
        for (uint32_t k = 0; k < n_classes; k++)
            f.hash[k] = mix(k ^ f.salt);
        for (uint32_t k = 0; k < g->n_nodes; k++)
            f.size[class[k]]++;
        split(&f);
        is_done = is_stable(&f);
    }
    g_assert(is_done);
    refine_clear(&f);
    return f.n_classes;
}
