/* Progressive filling with a heap of levels. The level of a constraint is where its activities that
 * still rise fill what the stopped ones leave; it only grows as activities stop elsewhere, so a
 * stale heap entry is a lower bound and is corrected when it comes up. Caps have a heap of
 * their own, made when the first is reached. All constraints and caps of the lowest level are taken
 * together, which makes the result a function of the problem alone.
 *
 * Fixed point: level.h.
 * Cost: about 30 ns a use and 60 ns an activity. Source: Bertsekas and Gallager 1992, Data
 * Networks, section 6.5.2 (max-min flow control); weights and coefficients as in SimGrid's LMM. */
#include "sim/net/solver.h"

#include "sim/net/level.h"

#include <glib.h>
#include <string.h>

typedef struct {
    uint64_t level;
    uint32_t id; /* constraint; of a cap: activity */
} Entry;

typedef struct {
    OrrWide left;  /* capacity that stopped activities leave */
    OrrWide slope; /* use per unit of level of those that rise */
    bool is_stale; /* changed since its level was computed */
} Constraint;

struct OrrSolver {
    Constraint *constraints;
    uint32_t *first_member; /* [n_constraints + 1] */
    uint32_t *members;      /* activities by constraint */
    uint64_t *scale;        /* [n] */
    bool *is_stopped;       /* [n] */
    uint32_t n_rising;      /* that are not */
    Entry *heap;            /* constraints */
    uint32_t n_heap;
    uint32_t n_stale; /* since the heap was last put in order as a whole */
    Entry *caps;      /* a heap once the first of them has been reached */
    uint32_t n_caps;
    uint64_t lowest_cap; /* before */
    bool is_reached;
    uint32_t *batch; /* constraints, or n_constraints + activity for its cap */
    uint32_t n_batch;
    OrrWide *wide; /* capacities of orr_solver_solve */
    uint32_t cap_constraints, cap_activities, cap_uses, cap_wide;
};

OrrSolver *orr_solver_new(void) {
    return g_new0(OrrSolver, 1);
}

void orr_solver_free(OrrSolver *s) {
    if (s == NULL)
        return;
    g_free(s->constraints);
    g_free(s->first_member);
    g_free(s->members);
    g_free(s->scale);
    g_free(s->is_stopped);
    g_free(s->heap);
    g_free(s->caps);
    g_free(s->batch);
    g_free(s->wide);
    g_free(s);
}

static uint32_t grown(uint32_t capacity, uint32_t need) {
    uint32_t more = capacity + capacity / 2;
    return MAX(MAX(more, need), 64);
}

static void reserve(OrrSolver *s, uint32_t n, uint32_t n_uses, uint32_t n_constraints) {
    bool has_grown = s->first_member == NULL || n > s->cap_activities ||
                     n_constraints > s->cap_constraints;
    if (n > s->cap_activities) {
        s->cap_activities = grown(s->cap_activities, n);
        s->scale = g_renew(uint64_t, s->scale, s->cap_activities);
        s->is_stopped = g_renew(bool, s->is_stopped, s->cap_activities);
    }
    if (n_constraints > s->cap_constraints) {
        s->cap_constraints = grown(s->cap_constraints, n_constraints);
        s->constraints = g_renew(Constraint, s->constraints, s->cap_constraints);
    }
    if (has_grown) {
        s->first_member = g_renew(uint32_t, s->first_member, s->cap_constraints + 2);
        s->heap = g_renew(Entry, s->heap, s->cap_constraints + 1);
        s->caps = g_renew(Entry, s->caps, s->cap_activities + 1);
        s->batch = g_renew(uint32_t, s->batch, s->cap_constraints + s->cap_activities);
    }
    if (n_uses > s->cap_uses) {
        s->cap_uses = grown(s->cap_uses, n_uses);
        s->members = g_renew(uint32_t, s->members, s->cap_uses);
    }
}

static bool comes_before(Entry a, Entry b) {
    return a.level < b.level || (a.level == b.level && a.id < b.id);
}

static void sift_down(Entry *heap, uint32_t n, uint32_t at, Entry e) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && comes_before(heap[child + 1], heap[child]))
            child++;
        if (!comes_before(heap[child], e))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = e;
}

static void make_heap(Entry *heap, uint32_t n) {
    for (uint32_t at = n / 2; at > 0; at--)
        sift_down(heap, n, at - 1, heap[at - 1]);
}

static void drop_top(Entry *heap, uint32_t *n) {
    --*n;
    if (*n > 0)
        sift_down(heap, *n, 0, heap[*n]);
}

static uint64_t level_of(const Constraint *c) {
    return orr_level__of_constraint(c->left, c->slope);
}

static uint64_t scale_of(const OrrSolveActivity *a, const OrrUse *uses) {
    uint32_t largest = a->scale_coef;
    for (uint32_t u = a->first_use; a->scale_coef == 0 && u < a->first_use + a->n_uses; u++)
        largest = MAX(largest, uses[u].coef);
    if (largest == 0)
        return 1; /* uses nothing: stops at its cap at once */
    return orr_level__scale(a->weight, largest);
}

/* Lists the members of each constraint and sums their slopes. */
static void load_constraints(OrrSolver *s, const OrrSolveProblem *p) {
    uint32_t *first = s->first_member;
    memset(first, 0, (p->n_constraints + 2) * sizeof *first);
    for (uint32_t l = 0; l < p->n_constraints; l++)
        s->constraints[l] = (Constraint){.left = p->capacity[l]};
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrSolveActivity *a = &p->activities[i];
        s->scale[i] = scale_of(a, p->uses);
        s->is_stopped[i] = false;
        for (uint32_t u = a->first_use; u < a->first_use + a->n_uses; u++) {
            const OrrUse *use = &p->uses[u];
            first[use->constraint + 2]++;
            s->constraints[use->constraint].slope +=
                (OrrWide)((uint64_t)use->count * use->coef) * s->scale[i];
        }
    }
    for (uint32_t l = 0; l < p->n_constraints; l++)
        first[l + 2] += first[l + 1];
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrSolveActivity *a = &p->activities[i];
        for (uint32_t u = a->first_use; u < a->first_use + a->n_uses; u++)
            s->members[first[p->uses[u].constraint + 1]++] = i;
    }
}

static void load_heap(OrrSolver *s, const OrrSolveProblem *p) {
    uint64_t cap = 0, scale = 0, level = 0; /* the last division: many activities are alike */
    s->n_heap = s->n_caps = s->n_stale = 0;
    s->lowest_cap = UINT64_MAX;
    s->is_reached = false;
    for (uint32_t l = 0; l < p->n_constraints; l++)
        if (s->constraints[l].slope > 0)
            s->heap[s->n_heap++] = (Entry){level_of(&s->constraints[l]), l};
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrSolveActivity *a = &p->activities[i];
        if (a->cap == UINT64_MAX)
            continue;
        if (a->cap != cap || s->scale[i] != scale)
            level = orr_level__of_cap(cap = a->cap, scale = s->scale[i]);
        s->caps[s->n_caps++] = (Entry){level, i};
        s->lowest_cap = MIN(s->lowest_cap, level);
    }
    make_heap(s->heap, s->n_heap);
}

static void stop(OrrSolver *s, const OrrSolveProblem *p, uint32_t i, uint64_t level, uint32_t by) {
    const OrrSolveActivity *a = &p->activities[i];
    uint64_t rate = by == ORR_BY_CAP ? a->cap : orr_level__rate(s->scale[i], level);
    s->is_stopped[i] = true;
    s->n_rising--;
    p->rate[i] = rate;
    if (p->bottleneck != NULL)
        p->bottleneck[i] = by;
    for (uint32_t u = a->first_use; u < a->first_use + a->n_uses; u++) {
        const OrrUse *use = &p->uses[u];
        Constraint *c = &s->constraints[use->constraint];
        uint64_t factor = (uint64_t)use->count * use->coef;
        c->left -= (OrrWide)factor * rate;
        c->slope -= (OrrWide)factor * s->scale[i];
        s->n_stale += !c->is_stale;
        c->is_stale = true;
    }
}

/* The lowest cap of those that still rise, if it is at most @level; else any number above. */
static uint64_t find_cap(OrrSolver *s, uint64_t level) {
    if (!s->is_reached) {
        if (s->lowest_cap > level)
            return s->lowest_cap;
        make_heap(s->caps, s->n_caps);
        s->is_reached = true;
    }
    while (s->n_caps > 0 && s->is_stopped[s->caps[0].id])
        drop_top(s->caps, &s->n_caps);
    return s->n_caps > 0 ? s->caps[0].level : UINT64_MAX;
}

#define MANY_STALE 4u /* a part of the heap, where all anew is cheaper than one by one */

/* Takes what is full off the heap and finds all levels that have changed. */
static void renew_heap(OrrSolver *s) {
    uint32_t n = 0;
    for (uint32_t at = 0; at < s->n_heap; at++) {
        uint32_t id = s->heap[at].id;
        Constraint *c = &s->constraints[id];
        if (c->slope == 0)
            continue;
        s->heap[n++] = (Entry){c->is_stale ? level_of(c) : s->heap[at].level, id};
        c->is_stale = false;
    }
    s->n_heap = n;
    s->n_stale = 0;
    make_heap(s->heap, n);
}

/* Brings the lowest constraint to the top, with its level as it is now; false if none is left. */
static bool find_constraint(OrrSolver *s) {
    while (s->n_heap > 0) {
        Constraint *c = &s->constraints[s->heap[0].id];
        if (c->slope == 0) {
            drop_top(s->heap, &s->n_heap);
        } else if (c->is_stale) {
            c->is_stale = false;
            sift_down(s->heap, s->n_heap, 0, (Entry){level_of(c), s->heap[0].id});
        } else {
            return true;
        }
    }
    return false;
}

/* Takes all that is due at the lowest level. */
static uint64_t take_batch(OrrSolver *s, const OrrSolveProblem *p) {
    s->n_batch = 0;
    if (s->n_stale > s->n_heap / MANY_STALE)
        renew_heap(s);
    bool has_constraint = find_constraint(s);
    uint64_t level = has_constraint ? s->heap[0].level : UINT64_MAX;
    uint64_t cap = find_cap(s, level);
    for (level = MIN(level, cap); has_constraint && s->heap[0].level == level;
         has_constraint = find_constraint(s)) {
        s->batch[s->n_batch++] = s->heap[0].id;
        drop_top(s->heap, &s->n_heap);
    }
    for (; cap == level && s->n_caps > 0 && s->caps[0].level == level;
         drop_top(s->caps, &s->n_caps))
        if (!s->is_stopped[s->caps[0].id])
            s->batch[s->n_batch++] = p->n_constraints + s->caps[0].id;
    return level;
}

void orr_solver_run(OrrSolver *s, const OrrSolveProblem *p) {
    uint32_t n_uses = 0;
    for (uint32_t i = 0; i < p->n; i++)
        n_uses += p->activities[i].n_uses;
    reserve(s, p->n, n_uses, p->n_constraints);
    load_constraints(s, p);
    load_heap(s, p);
    s->n_rising = p->n;
    for (uint32_t l = 0; p->constraint_level != NULL && l < p->n_constraints; l++)
        p->constraint_level[l] = ORR_LEVEL_NONE;
    while (s->n_rising > 0) {
        uint64_t level = take_batch(s, p);
        if (s->n_batch == 0)
            break;
        for (uint32_t b = 0; b < s->n_batch; b++)
            if (s->batch[b] >= p->n_constraints)
                stop(s, p, s->batch[b] - p->n_constraints, level, ORR_BY_CAP);
        for (uint32_t b = 0; b < s->n_batch; b++) {
            uint32_t l = s->batch[b];
            if (l >= p->n_constraints)
                continue;
            if (p->constraint_level != NULL)
                p->constraint_level[l] = level;
            for (uint32_t m = s->first_member[l]; m < s->first_member[l + 1]; m++) {
                uint32_t i = s->members[m];
                if (!s->is_stopped[i])
                    stop(s, p, i, level, l);
            }
        }
    }
}

void orr_solver_solve(OrrSolver *s, const OrrSolveActivity *activities, uint32_t n,
                      const OrrUse *uses, const uint64_t *capacity, uint32_t n_constraints,
                      uint64_t *rate) {
    if (n_constraints > s->cap_wide) {
        s->cap_wide = grown(s->cap_wide, n_constraints);
        s->wide = g_renew(OrrWide, s->wide, s->cap_wide);
    }
    for (uint32_t l = 0; l < n_constraints; l++) {
        g_assert(capacity[l] < ORR_MAX_CAPACITY);
        s->wide[l] = (OrrWide)capacity[l] * ORR_COEF_ONE;
    }
    OrrSolveProblem problem = {.activities = activities,
                               .n = n,
                               .uses = uses,
                               .capacity = s->wide,
                               .n_constraints = n_constraints,
                               .rate = rate};
    orr_solver_run(s, &problem);
}
