/* Drops the records that the critical path can no longer come by.
 *
 * What can be followed from the roots is marked; since a record is younger than its cause, one
 * sweep from the youngest to the oldest does it, in the order of memory. Marked words then move
 * together: the new name of a record is the number of marked words before it. Cost: some 20 ns a
 * record that is kept, nothing for those that go, and a visit to the roots. */
#include "sim/exec/cause.h"
#include "sim/exec/pass.h"

#include <string.h>

#define WORDS_A_RANK 512u /* ours: so many more, or half of what was kept, before the next time */

typedef void Visit(OrrCauses *c, uint32_t *id);

static void visit_rank(OrrExec *x, uint32_t r, Visit *visit) {
    OrrCauses *c = x->causes;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++) {
        OrrLaneCause *lane = orr_exec__lane_cause(x, r, s);
        visit(c, &lane->last);
        visit(c, &lane->waited);
    }
    for (uint32_t i = 0; i < c->n_lates; i++)
        visit(c, &c->lates[(gsize)r * c->n_lates + i].cause);
    visit(c, &c->syncs[r]);
    for (uint32_t k = 0; x->passes && x->passes->begins.made && k < ORR_PASS_LANES; k++)
        visit(c, &x->passes->begins.made[r][k]);
    for (uint32_t i = 0; i < x->pasts.n; i++) {
        const OrrOwnPast *own = &x->pasts.own[(gsize)r * x->pasts.n + i];
        for (uint32_t e = 0; e < own->n; e++)
            visit(c, &own->entry[(own->first + e) & (own->capacity - 1)].cause);
    }
}

/* Of items that all members of an island have ended. */
static void visit_joint(OrrExec *x, gsize at, Visit *visit) {
    const OrrJointPast *joint = &x->pasts.joint[at];
    for (uint32_t i = 0; x->pasts.cause && i < joint->n; i++) {
        uint32_t e = (joint->first + i) % ORR_JOINT_ENDS;
        for (uint32_t m = 0; m < x->islands[at / x->pasts.n].n_ranks; m++)
            visit(x->causes, &x->pasts.cause[(at * ORR_JOINT_ENDS + e) * x->n_members + m]);
    }
}

/* Of a pass under way. */
static void visit_work(OrrCauses *c, OrrPassWork *w, Visit *visit) {
    visit(c, &w->cause);
    for (uint32_t m = 0; m < w->n; m++)
        for (uint32_t k = 0; k < ORR_PASS_LANES; k++)
            visit(c, &w->starts[m].begin.made[k]);
}

static void visit_roots(OrrExec *x, Visit *visit) {
    for (uint32_t i = 0; x->passes && i < x->n_islands; i++)
        if (x->passes->islands[i].work)
            visit_work(x->causes, x->passes->islands[i].work, visit);
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        visit_rank(x, r, visit);
    for (gsize i = 0; i < (gsize)x->n_islands * x->pasts.n; i++)
        visit_joint(x, i, visit);
    for (uint32_t k = 0; k < x->max_steps; k++)
        visit(x->causes, &x->causes->ends[k].spot.cause);
}

static void mark(OrrCauses *c, uint32_t *id) {
    if (*id != ORR_NONE)
        c->marks[*id >> 6] |= UINT64_C(1) << (*id & 63);
}

static void mark_words(OrrCauses *c, uint32_t word, uint32_t n) {
    for (uint32_t end = word + n; word < end;) {
        uint32_t at = word & 63, here = MIN(64 - at, end - word);
        c->marks[word >> 6] |= (here == 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1) << at;
        word += here;
    }
}

/* A record without times of its own has those of another: see way.c. */
static bool has_other(const OrrCause *cause) {
    return cause->type == ORR_CAUSE_WAY && cause->n_words == ORR_CAUSE_HEAD_WORDS;
}

/* What is behind the begin of the path is let go. */
static void sweep(OrrExec *x) {
    OrrCauses *c = x->causes;
    for (uint32_t i = c->n_words / 64 + 1; i-- > 0;)
        for (uint64_t left = c->starts[i]; left;) {
            uint32_t bit = 63 - (uint32_t)__builtin_clzll(left);
            left ^= UINT64_C(1) << bit;
            if (!(c->marks[i] >> bit & 1))
                continue;
            OrrCause *cause = orr_exec__cause(x, 64 * i + bit);
            if (cause->type != ORR_CAUSE_WAY && cause->ns[ORR_CAUSE_END] <= c->floor_ns)
                cause->cause = ORR_NONE;
            mark(c, &cause->cause);
            if (has_other(cause))
                mark(c, &cause->what);
            mark_words(c, 64 * i + bit, cause->n_words);
        }
}

static void rename_to(OrrCauses *c, uint32_t *id) {
    if (*id == ORR_NONE)
        return;
    g_assert(c->marks[*id >> 6] >> (*id & 63) & 1); /* whoever is asked for has been kept */
    uint64_t below = c->marks[*id >> 6] & ((UINT64_C(1) << (*id & 63)) - 1);
    *id = c->before[*id >> 6] + (uint32_t)__builtin_popcountll(below);
}

static void move_together(OrrExec *x) {
    OrrCauses *c = x->causes;
    uint32_t to = 0, n = c->n_words / 64 + 1;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t left = c->starts[i] & c->marks[i];
        c->starts[i] = 0;
        for (; left; left &= left - 1) {
            uint32_t from = 64 * i + (uint32_t)__builtin_ctzll(left);
            OrrCause *cause = orr_exec__cause(x, from);
            uint32_t n_words = cause->n_words;
            rename_to(c, &cause->cause);
            if (has_other(cause))
                rename_to(c, &cause->what);
            memmove(c->words + to, c->words + from, n_words * sizeof *c->words);
            c->starts[to >> 6] |= UINT64_C(1) << (to & 63);
            to += n_words;
        }
    }
    c->n_words = to;
}

void orr_exec__causes_clear_up(OrrExec *x) {
    OrrCauses *c = x->causes;
    uint32_t n = c->n_words / 64 + 1, kept = 0;
    if (c->n_words > 0) {
        c->marks = g_renew(uint64_t, c->marks, n);
        c->before = g_renew(uint32_t, c->before, n);
        memset(c->marks, 0, n * sizeof *c->marks);
        visit_roots(x, mark);
        sweep(x);
        for (uint32_t i = 0; i < n; i++) {
            c->before[i] = kept;
            kept += (uint32_t)__builtin_popcountll(c->marks[i]);
        }
        visit_roots(x, rename_to);
        move_together(x);
    }
    gsize more = MAX(kept / 2, (gsize)x->bound->n_ranks * WORDS_A_RANK);
    if (x->options->path_words > 0)
        more = x->options->path_words;
    c->limit = MIN(kept + more, UINT32_MAX / 2);
    /* the array is not copied for a little more than it has room for */
    uint32_t most = c->capacity - c->capacity / 16;
    if (c->limit > most && kept + more / 2 <= most)
        c->limit = most;
}
