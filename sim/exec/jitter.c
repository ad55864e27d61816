/* Expected mode is block-based statistical timing analysis as chip designers do it (first order
 * canonical forms; Visweswariah et al., DAC 2004). A form is a normal variable whose variance is
 * kept in parts, by what they are common to:
 *   private     to the rank, since the last meeting of its TP group
 *   by source   one part a rank of the executed program: common to the pipeline that it belongs to,
 *               private to each of the replicas that it stands for
 *   of shards   common to the ranks of one sharding group (HSDP), private to each of these groups
 *   common      to all ranks: passed on by meetings across replicas
 * Of two forms the part by one source is common as far as both have it. The time of an event is the
 * largest of a few forms: a sum adds to each, and only where they become too many are the two that
 * are most alike replaced by Clark's approximation of their maximum. Members of a meeting that one
 * rank stands for are independent in what is private to each. */
#include "sim/exec/jitter.h"

#include "sim/base/normal.h"
#include "sim/exec/jitter_priv.h"

#include <math.h>
#include <string.h>

static void count_copies(OrrJitter *j, const OrrBound *b) {
    for (uint32_t k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *g = &b->groups[k];
        j->copies[k] = g_new0(double, g->n_groups + 1);
        for (uint32_t i = 0; i < g->n_groups; i++) {
            double weight = 0;
            for (uint32_t m = g->first_member[i]; m < g->first_member[i + 1]; m++)
                weight += b->weight[g->members[m]];
            j->copies[k][i] = weight > 0 ? g->size / weight : 0;
        }
    }
}

OrrJitter *orr_jitter_new(const OrrExec *x) {
    const OrrExecOptions *o = x->options;
    OrrJitter *j = g_new0(OrrJitter, 1);
    j->is_sampled = o->is_jitter_sampled;
    j->sd = o->jitter_frac;
    j->random = orr_jitter_random(o->jitter_seed);
    j->n_ranks = x->bound->n_ranks;
    j->n_parts = j->n_ranks + 3;
    if (j->is_sampled)
        return j;
    gsize n_lanes = (gsize)j->n_ranks * ORR_N_STREAMS;
    j->ended = orr_forms_new(n_lanes, ORR_FORMS_OF_EVENT, j->n_parts);
    j->current = orr_forms_new(n_lanes, ORR_FORMS_OF_EVENT, j->n_parts);
    j->place = orr_forms_new(x->n_places, ORR_FORMS_OF_EVENT, j->n_parts);
    j->past = orr_forms_new((gsize)j->n_ranks * ORR_N_PAST, ORR_FORMS_OF_EVENT, j->n_parts);
    j->pasts = g_new0(OrrJitterPast, (gsize)j->n_ranks * ORR_N_PAST);
    j->n_past = g_new0(uint32_t, j->n_ranks);
    j->begun_ns = g_new0(double, j->n_ranks);
    j->ended_begun_ns = g_new0(double, j->n_ranks);
    j->follows = g_new0(uint32_t, n_lanes * ORR_N_STREAMS);
    j->will_follow = g_new0(uint32_t, n_lanes * ORR_N_STREAMS);
    j->has_met = g_new0(uint8_t, x->n_places + 1);
    j->causes = orr_forms_new(1, ORR_MAX_FORMS, j->n_parts);
    j->scratch = g_new0(double, j->n_parts);
    j->edge = g_new0(double, j->n_parts);
    j->largest = g_array_new(FALSE, FALSE, sizeof(OrrJitterLargest));
    for (gsize l = 0; l < n_lanes; l++)
        j->ended.count[l] = 1,
        j->ended.rank[l * ORR_FORMS_OF_EVENT] = (uint32_t)(l / ORR_N_STREAMS);
    count_copies(j, x->bound);
    return j;
}

void orr_jitter_free(OrrJitter *j) {
    if (!j)
        return;
    for (uint32_t k = 0; k < ORR_N_GROUPS; k++)
        g_free(j->copies[k]);
    orr_forms_clear(&j->ended);
    orr_forms_clear(&j->current);
    orr_forms_clear(&j->place);
    orr_forms_clear(&j->causes);
    orr_forms_clear(&j->past);
    g_free(j->pasts);
    g_free(j->n_past);
    g_free(j->begun_ns);
    g_free(j->ended_begun_ns);
    g_free(j->has_met);
    g_free(j->follows);
    g_free(j->will_follow);
    g_free(j->scratch);
    g_free(j->edge);
    if (j->largest)
        g_array_free(j->largest, TRUE);
    g_free(j);
}

OrrRandom orr_jitter_random(uint64_t seed) {
    return orr_random(seed, "jitter");
}

uint32_t orr_jitter_draw(OrrRandom random, double sd, OrrJitterSpot at) {
    uint64_t when = ((uint64_t)at.step << 48) ^ ((uint64_t)at.call << 24) ^ at.item;
    double factor = 1 + sd * orr_random_normal(random, at.rank, when);
    return (uint32_t)llround(fmax(factor, 1.0 / 64) *
                             ORR_RATE_ONE); /* a floor of ours, never near */
}

uint32_t orr_jitter_factor(const OrrJitter *j, OrrJitterSpot at) {
    return j->is_sampled ? orr_jitter_draw(j->random, j->sd, at) : ORR_RATE_ONE;
}

/* @to becomes the causes, their means relative to @ns. */
static void take_causes(OrrJitter *j, OrrForms *to, gsize slot, double ns) {
    to->count[slot] = 0;
    orr_forms_add_all(to, slot, &j->causes, 0, -ns);
}

void orr_jitter_open(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = orr_exec__lane(x, r, s);
    j->n_awaited = 0;
    orr_jitter_wait(j, x, r, s, l->completed, *orr_exec__free_ns(x, r, s));
}

static const OrrJitterPast *find_past(const OrrJitter *j, uint32_t r, uint32_t index, gsize *slot) {
    for (uint32_t i = 0; i < MIN(j->n_past[r], ORR_N_PAST); i++) {
        *slot = (gsize)r * ORR_N_PAST + i;
        if (j->pasts[*slot].index == index)
            return &j->pasts[*slot];
    }
    return NULL;
}

void orr_jitter_wait(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t q, uint32_t index,
                     double end_ns) {
    OrrJitterAwaited a = {q, index, end_ns, &j->ended, orr_jitter__lane(r, q)};
    if (index <
        orr_exec__lane(x, r, q)->completed) { /* its stream has gone on, others perhaps not */
        const OrrJitterPast *past =
            q == ORR_STREAM_COMPUTE ? find_past(j, r, index, &a.slot) : NULL;
        if (!past)
            return;
        a.forms = &j->past;
        a.end_ns = past->end_ns;
    }
    for (uint32_t i = 0; i < j->n_awaited; i++)
        if (j->awaited[i].stream == q) { /* once more, or an earlier one */
            if (index == j->awaited[i].index)
                j->awaited[i].end_ns = MAX(j->awaited[i].end_ns, end_ns);
            else if (index > j->awaited[i].index)
                j->awaited[i] = a;
            return;
        }
    j->awaited[j->n_awaited++] = a;
    g_assert(j->n_awaited < ORR_MAX_AWAITED);
}

/* Whether another of the ends that are waited for surely comes after @a. */
static bool is_followed(const OrrJitter *j, uint32_t r, const OrrJitterAwaited *a) {
    for (uint32_t i = 0; i < j->n_awaited; i++) {
        const OrrJitterAwaited *b = &j->awaited[i];
        if (b->stream != a->stream && b->forms == &j->ended && a->index > 0 &&
            j->follows[orr_jitter__lane(r, b->stream) * ORR_N_STREAMS + a->stream] >= a->index)
            return true;
    }
    return false;
}

/* Gathers what the item in hand waits for; what that followed, it follows. */
static void gather_causes(OrrJitter *j, uint32_t r, uint32_t follows[]) {
    j->causes.count[0] = 0;
    for (uint32_t i = 0; i < j->n_awaited; i++) {
        const OrrJitterAwaited *a = &j->awaited[i];
        const uint32_t *before = j->follows + orr_jitter__lane(r, a->stream) * ORR_N_STREAMS;
        for (uint32_t k = 0; a->forms == &j->ended && k < ORR_N_STREAMS; k++)
            follows[k] = MAX(follows[k], before[k]);
        follows[a->stream] = MAX(follows[a->stream], a->index);
        if (a->stream == ORR_STREAM_HOST || !is_followed(j, r, a)) /* issuing comes after a sync */
            orr_forms_add_all(&j->causes, 0, a->forms, a->slot, a->end_ns);
    }
}

int64_t orr_jitter_start(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s, int64_t ready_ns,
                         int64_t issue_ns) {
    uint32_t *follows = j->will_follow + orr_jitter__lane(r, s) * ORR_N_STREAMS;
    memset(follows, 0, ORR_N_STREAMS * sizeof *follows);
    orr_jitter_wait(j, x, r, ORR_STREAM_HOST, orr_exec__lane(x, r, ORR_STREAM_HOST)->completed,
                    (double)issue_ns);
    gather_causes(j, r, follows);
    int64_t earliest = MAX(ready_ns, issue_ns);
    int64_t start = MAX(llround(orr_forms_largest(&j->causes, 0, j->scratch)), earliest);
    take_causes(j, &j->current, orr_jitter__lane(r, s), (double)start);
    return start - earliest;
}

void orr_jitter_sync(OrrJitter *j, uint32_t r) {
    uint32_t *before = j->follows + orr_jitter__lane(r, ORR_STREAM_HOST) * ORR_N_STREAMS;
    uint32_t follows[ORR_N_STREAMS] = {0};
    gather_causes(j, r, follows);
    memcpy(before, follows, sizeof follows);
    double ns = orr_forms_largest(&j->causes, 0, j->scratch);
    take_causes(j, &j->ended, orr_jitter__lane(r, ORR_STREAM_HOST), ns);
}

/* A rank without a TP group is one itself: what it does is common to its pipeline. */
static uint32_t part_of(const OrrJitter *j, uint32_t r) {
    return j->copies[ORR_GROUP_TP][0] > 0 ? orr_jitter__own(j) : r;
}

/* What is private to another rank is common to the pipeline. */
void orr_jitter__make_own(const OrrJitter *j, double *form, uint32_t *rank, uint32_t r) {
    if (*rank == r)
        return;
    form[*rank] += form[orr_jitter__own(j)];
    form[orr_jitter__own(j)] = 0;
    *rank = r;
}

void orr_jitter_block(OrrJitter *j, uint32_t r, uint32_t s, double kernels_ns) {
    gsize l = orr_jitter__lane(r, s);
    double sd = j->sd * kernels_ns;
    for (uint32_t i = 0; i < j->current.count[l]; i++) {
        double *form = orr_form_parts(&j->current, l, i);
        orr_jitter__make_own(j, form, orr_form_rank(&j->current, l, i), r);
        form[part_of(j, r)] += sd * sd;
    }
}

double orr_jitter__sum(const OrrJitter *j, const double *form) {
    double total = 0;
    for (uint32_t i = 0; i < j->n_parts; i++)
        total += form[i];
    return total;
}

const OrrJitterLargest *orr_jitter__largest(OrrJitter *j, double n) {
    for (guint i = 0; i < j->largest->len; i++)
        if (g_array_index(j->largest, OrrJitterLargest, i).n == n)
            return &g_array_index(j->largest, OrrJitterLargest, i);
    OrrJitterLargest l = {.n = n};
    orr_normal_largest(n, &l.mean, &l.variance);
    g_array_append_val(j->largest, l);
    return &g_array_index(j->largest, OrrJitterLargest, j->largest->len - 1);
}

static void remember(OrrJitter *j, const OrrExec *x, uint32_t r) {
    gsize slot = (gsize)r * ORR_N_PAST + j->n_past[r]++ % ORR_N_PAST;
    j->pasts[slot] =
        (OrrJitterPast){orr_exec__lane(x, r, ORR_STREAM_COMPUTE)->completed + 1, (double)x->now_ns};
    j->past.count[slot] = 0;
    orr_forms_add_all(&j->past, slot, &j->current, orr_jitter__lane(r, ORR_STREAM_COMPUTE), 0);
}

#define QUICK (1u << ORR_STREAM_HOST | 1u << ORR_STREAM_COMPUTE | 1u << ORR_STREAM_TP)

void orr_jitter_complete(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s) {
    gsize l = orr_jitter__lane(r, s);
    j->ended.count[l] = 0;
    orr_forms_add_all(&j->ended, l, &j->current, l, 0);
    if (s == ORR_STREAM_COMPUTE && (orr_exec__head(x, r, s)->waiters & ~QUICK))
        remember(j, x, r);
    if (s == ORR_STREAM_TP)
        j->ended_begun_ns[r] = j->begun_ns[r];
    memcpy(j->follows + l * ORR_N_STREAMS, j->will_follow + l * ORR_N_STREAMS,
           ORR_N_STREAMS * sizeof *j->follows);
}

static bool has_tp_mates(uint32_t kind) {
    return kind == ORR_GROUP_TP || kind == ORR_GROUP_MODEL || kind == ORR_GROUP_WORLD;
}

static bool spans_replicas(uint32_t kind) {
    return !has_tp_mates(kind) ? kind != ORR_GROUP_PP && kind != ORR_GROUP_EMBEDDING
                               : kind == ORR_GROUP_WORLD;
}

/* The last of @n that are equal but for what is private to each, @variance of it. */
static double last_of(OrrJitter *j, double n, double *variance) {
    double sd = sqrt(fmax(*variance, 0));
    const OrrJitterLargest *l = orr_jitter__largest(j, n);
    *variance *= l->variance;
    return sd * l->mean;
}

/* How many of @n members of one kind are TP mates, share a sharding group, and the rest of it. */
static void split_copies(const OrrJitter *j, const OrrExec *x, const OrrPlace *place, uint32_t r,
                         double n, double *mates, double *sharers) {
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    const OrrBoundGroup *shard = &x->bound->groups[ORR_GROUP_HSDP_SHARD];
    *mates = *sharers = 1;
    if (has_tp_mates(place->group) && tp->n_groups > 0 && tp->group_of[r] != ORR_NONE)
        *mates = MIN(n, j->copies[ORR_GROUP_TP][tp->group_of[r]] * x->bound->weight[r]);
    if (shard->n_groups > 0 && spans_replicas(place->group) &&
        place->group != ORR_GROUP_HSDP_REPLICA && shard->group_of[r] != ORR_NONE)
        *sharers = MIN(n / *mates,
                       j->copies[ORR_GROUP_HSDP_SHARD][shard->group_of[r]] * x->bound->weight[r]);
}

/* The last of @n of which the parts from @first to @last differ, and @also: that becomes part
 * @into. */
static double last_by(OrrJitter *j, double n, double *form, uint32_t first, uint32_t last,
                      uint32_t also, uint32_t into) {
    double variance = form[also];
    form[also] = 0;
    for (uint32_t i = first; i < last; i++) {
        variance += form[i];
        form[i] = 0;
    }
    double later = last_of(j, n, &variance);
    form[into] += variance;
    return later;
}

#define SEVERAL 1.5 /* copies are whole numbers */

/* The form of the last of the members that the rank stands for in this group; how much later. */
static double last_copy(OrrJitter *j, const OrrExec *x, const OrrPlace *place, uint32_t r,
                        double *form) {
    double n = j->copies[place->group][place->index] * x->bound->weight[r], later = 0;
    double mates, sharers;
    split_copies(j, x, place, r, n, &mates, &sharers);
    double rest = n / mates / sharers;
    if (mates > SEVERAL)
        later += last_by(j, mates, form, 0, 0, orr_jitter__own(j), orr_jitter__own(j));
    if (sharers > SEVERAL)
        later +=
            last_by(j, sharers, form, 0, j->n_ranks, orr_jitter__own(j), orr_jitter__shards(j));
    if (rest > SEVERAL && spans_replicas(place->group) && sharers <= SEVERAL) {
        form[orr_jitter__own(j)] += form[orr_jitter__shards(j)];
        form[orr_jitter__shards(j)] = 0;
        later += last_by(j, rest, form, 0, j->n_ranks, orr_jitter__own(j), orr_jitter__common(j));
    } else if (rest > SEVERAL) {
        later += last_by(j, rest, form, 0, 0, orr_jitter__shards(j), orr_jitter__common(j));
    }
    return later;
}

void orr_jitter_arrive(OrrJitter *j, const OrrExec *x, uint32_t place, uint32_t r, uint32_t s,
                       bool is_alone) {
    const OrrPlace *p = &x->places[place];
    gsize l = orr_jitter__lane(r, s);
    if (is_alone || j->has_met[place])
        j->place.count[place] = 0;
    j->has_met[place] = 0;
    for (uint32_t i = 0; i < j->current.count[l]; i++) {
        double ns = (double)x->now_ns + *orr_form_ns(&j->current, l, i);
        memcpy(j->scratch, orr_form_parts(&j->current, l, i), j->n_parts * sizeof *j->scratch);
        if (!p->is_pair)
            ns += last_copy(j, x, p, r, j->scratch);
        orr_forms_add(&j->place, place, j->scratch, ns, *orr_form_rank(&j->current, l, i));
    }
}

/* What a meeting passes on: across replicas it is common to all or, of a sharding group, to that,
 * in a TP group to its pipeline. */
static void hand_on(const OrrJitter *j, const OrrBoundGroup *g, const OrrPlace *p, double *form) {
    if (spans_replicas(p->group) && g->size > 1) {
        bool is_shard = p->group == ORR_GROUP_HSDP_SHARD;
        double total = orr_jitter__sum(j, form),
               before = is_shard ? form[orr_jitter__common(j)] : 0;
        memset(form, 0, j->n_parts * sizeof *form);
        form[orr_jitter__common(j)] = before;
        form[is_shard ? orr_jitter__shards(j) : orr_jitter__common(j)] += total - before;
    } else if (has_tp_mates(p->group)) {
        form[g->members[g->first_member[p->index]]] += form[orr_jitter__own(j)];
        form[orr_jitter__own(j)] = 0;
    }
}

int64_t orr_jitter_meet(OrrJitter *j, const OrrExec *x, uint32_t place) {
    const OrrPlace *p = &x->places[place];
    j->has_met[place] = 1;
    double ns = orr_forms_largest(&j->place, place, j->scratch);
    int64_t begin = MAX(llround(ns), x->now_ns);
    if (!p->is_pair) { /* one event for all */
        uint32_t rank = *orr_form_rank(&j->place, place, 0);
        j->place.count[place] = 0;
        hand_on(j, &x->bound->groups[p->group], p, j->scratch);
        orr_forms_add(&j->place, place, j->scratch, ns, rank);
    }
    for (uint32_t i = 0; i < j->place.count[place]; i++)
        *orr_form_ns(&j->place, place, i) -= (double)begin;
    return begin;
}

void orr_jitter_deliver(OrrJitter *j, const OrrExec *x, uint32_t place, uint32_t r, uint32_t s,
                        bool is_first) {
    gsize l = orr_jitter__lane(r, s);
    if (s == ORR_STREAM_TP)
        j->begun_ns[r] = (double)x->places[place].arrived_ns;
    if (is_first)
        j->current.count[l] = 0;
    orr_forms_add_all(&j->current, l, &j->place, place, 0);
}
