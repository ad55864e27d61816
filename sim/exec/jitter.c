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
#include "sim/base/random.h"
#include "sim/exec/forms.h"

#include <math.h>
#include <string.h>

#define FORMS_OF_EVENT 4u /* accuracy hardly gains beyond */
#define MAX_AWAITED 64    /* ends that one item waits for */

typedef struct {
    double n, mean, variance;
} Largest;

/* The end of a stream's last item, that is waited for. */
typedef struct {
    uint32_t stream;
    double end_ns;
} Awaited;

struct OrrJitter {
    bool is_sampled;
    double sd;
    OrrRandom random;
    uint32_t n_ranks, n_parts; /* parts of a form: by source, common, of shards, private */
    OrrForms ended, current;   /* by lane: end of the last item; start, then end of that in hand */
    OrrForms place;
    double *noise;      /* [n_ranks] variance of the block in hand, alone */
    int64_t *pulled_ns; /* [n_ranks] up to then a lead has been lost */
    /* [n_ranks * ORR_N_STREAMS * ORR_N_STREAMS]: how many items of each stream have surely ended
     * when the last item of a stream has, and when the one in hand begins */
    uint32_t *follows, *will_follow;
    Awaited awaited[MAX_AWAITED];
    uint32_t n_awaited;
    uint8_t *has_met;             /* [n_places] what is there is of the last meeting */
    OrrForms causes;              /* one slot: what the item in hand waits for; absolute means */
    double *copies[ORR_N_GROUPS]; /* [n_groups] members of a group over the weights it lists */
    double *scratch;              /* [n_parts] */
    GArray *largest;              /* Largest, by n as they came */
};

static gsize lane(uint32_t r, uint32_t s) {
    return (gsize)r * ORR_N_STREAMS + s;
}

static uint32_t common(const OrrJitter *j) {
    return j->n_ranks;
}

static uint32_t own(const OrrJitter *j) {
    return j->n_ranks + 2;
}

static uint32_t shards(const OrrJitter *j) {
    return j->n_ranks + 1;
}

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
    j->random = orr_random(o->jitter_seed, "jitter");
    j->n_ranks = x->bound->n_ranks;
    j->n_parts = j->n_ranks + 3;
    if (j->is_sampled)
        return j;
    gsize n_lanes = (gsize)j->n_ranks * ORR_N_STREAMS;
    j->ended = orr_forms_new(n_lanes, FORMS_OF_EVENT, j->n_parts);
    j->current = orr_forms_new(n_lanes, FORMS_OF_EVENT, j->n_parts);
    j->place = orr_forms_new(x->n_places, FORMS_OF_EVENT, j->n_parts);
    j->noise = g_new0(double, j->n_ranks);
    j->follows = g_new0(uint32_t, n_lanes * ORR_N_STREAMS);
    j->will_follow = g_new0(uint32_t, n_lanes * ORR_N_STREAMS);
    j->pulled_ns = g_new0(int64_t, j->n_ranks);
    j->has_met = g_new0(uint8_t, x->n_places + 1);
    j->causes = orr_forms_new(1, ORR_MAX_FORMS, j->n_parts);
    j->scratch = g_new0(double, j->n_parts);
    j->largest = g_array_new(FALSE, FALSE, sizeof(Largest));
    for (gsize l = 0; l < n_lanes; l++)
        j->ended.count[l] = 1, j->ended.rank[l * FORMS_OF_EVENT] = (uint32_t)(l / ORR_N_STREAMS);
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
    g_free(j->has_met);
    g_free(j->pulled_ns);
    g_free(j->noise);
    g_free(j->follows);
    g_free(j->will_follow);
    g_free(j->scratch);
    if (j->largest)
        g_array_free(j->largest, TRUE);
    g_free(j);
}

uint32_t orr_jitter_factor(const OrrJitter *j, uint32_t r, uint32_t step, uint32_t call,
                           uint32_t item) {
    if (!j->is_sampled)
        return ORR_RATE_ONE;
    uint64_t when = ((uint64_t)step << 48) ^ ((uint64_t)call << 24) ^ item;
    double factor = 1 + j->sd * orr_random_normal(j->random, r, when);
    return (uint32_t)llround(fmax(factor, 1.0 / 64) *
                             ORR_RATE_ONE); /* a floor of ours, never near */
}

/* @to becomes the causes, their means relative to @ns. */
static void take_causes(OrrJitter *j, OrrForms *to, gsize slot, double ns) {
    to->count[slot] = 0;
    orr_forms_add_all(to, slot, &j->causes, 0, -ns);
}

void orr_jitter_open(OrrJitter *j, uint32_t s, int64_t free_ns) {
    j->n_awaited = 0;
    orr_jitter_wait(j, s, free_ns);
}

void orr_jitter_wait(OrrJitter *j, uint32_t q, int64_t end_ns) {
    for (uint32_t i = 0; i < j->n_awaited; i++)
        if (j->awaited[i].stream == q) { /* its last item, once more */
            j->awaited[i].end_ns = MAX(j->awaited[i].end_ns, (double)end_ns);
            return;
        }
    j->awaited[j->n_awaited++] = (Awaited){q, (double)end_ns};
    g_assert(j->n_awaited < MAX_AWAITED);
}

/* Whether another of the ends that are waited for surely comes after that of stream @q. */
static bool is_followed(const OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t q) {
    uint32_t last = x->ranks[r].lane[q].completed;
    for (uint32_t i = 0; i < j->n_awaited; i++) {
        uint32_t p = j->awaited[i].stream;
        if (p != q && last > 0 && j->follows[lane(r, p) * ORR_N_STREAMS + q] >= last)
            return true;
    }
    return false;
}

/* Gathers what the item in hand waits for; what that followed, it follows. */
static void gather_causes(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t follows[]) {
    j->causes.count[0] = 0;
    for (uint32_t i = 0; i < j->n_awaited; i++) {
        uint32_t q = j->awaited[i].stream;
        const uint32_t *before = j->follows + lane(r, q) * ORR_N_STREAMS;
        for (uint32_t k = 0; k < ORR_N_STREAMS; k++)
            follows[k] = MAX(follows[k], before[k]);
        follows[q] = MAX(follows[q], x->ranks[r].lane[q].completed);
        if (q == ORR_STREAM_HOST || !is_followed(j, x, r, q)) /* issuing comes after a sync */
            orr_forms_add_all(&j->causes, 0, &j->ended, lane(r, q), j->awaited[i].end_ns);
    }
}

int64_t orr_jitter_start(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s, int64_t ready_ns,
                         int64_t issue_ns) {
    uint32_t *follows = j->will_follow + lane(r, s) * ORR_N_STREAMS;
    memset(follows, 0, ORR_N_STREAMS * sizeof *follows);
    orr_jitter_wait(j, ORR_STREAM_HOST, issue_ns);
    gather_causes(j, x, r, follows);
    int64_t earliest = MAX(ready_ns, issue_ns);
    int64_t start = MAX(llround(orr_forms_largest(&j->causes, 0, j->scratch)), earliest);
    take_causes(j, &j->current, lane(r, s), (double)start);
    return start - earliest;
}

void orr_jitter_sync(OrrJitter *j, const OrrExec *x, uint32_t r) {
    uint32_t *follows = j->follows + lane(r, ORR_STREAM_HOST) * ORR_N_STREAMS;
    gather_causes(j, x, r, follows);
    double ns = orr_forms_largest(&j->causes, 0, j->scratch);
    take_causes(j, &j->ended, lane(r, ORR_STREAM_HOST), ns);
}

/* A rank without a TP group is one itself: what it does is common to its pipeline. */
static uint32_t part_of(const OrrJitter *j, uint32_t r) {
    return j->copies[ORR_GROUP_TP][0] > 0 ? own(j) : r;
}

void orr_jitter_block(OrrJitter *j, uint32_t r, uint32_t s, int64_t work_ns) {
    gsize l = lane(r, s);
    double sd = j->sd * (double)work_ns;
    for (uint32_t i = 0; i < j->current.count[l]; i++) {
        double *form = orr_form_parts(&j->current, l, i);
        uint32_t *rank = orr_form_rank(&j->current, l, i);
        if (*rank != r) { /* what came from another rank is common to the pipeline */
            form[*rank] += form[own(j)];
            form[own(j)] = 0;
            *rank = r;
        }
        form[part_of(j, r)] += sd * sd;
    }
    j->noise[r] = sd * sd;
}

void orr_jitter_complete(OrrJitter *j, uint32_t r, uint32_t s) {
    gsize l = lane(r, s);
    j->ended.count[l] = 0;
    orr_forms_add_all(&j->ended, l, &j->current, l, 0);
    memcpy(j->follows + l * ORR_N_STREAMS, j->will_follow + l * ORR_N_STREAMS,
           ORR_N_STREAMS * sizeof *j->follows);
}

static const Largest *largest(OrrJitter *j, double n) {
    for (guint i = 0; i < j->largest->len; i++)
        if (g_array_index(j->largest, Largest, i).n == n)
            return &g_array_index(j->largest, Largest, i);
    Largest l = {.n = n};
    orr_normal_largest(n, &l.mean, &l.variance);
    g_array_append_val(j->largest, l);
    return &g_array_index(j->largest, Largest, j->largest->len - 1);
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
    double sd = sqrt(*variance);
    const Largest *l = largest(j, n);
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
        later += last_by(j, mates, form, 0, 0, own(j), own(j));
    if (sharers > SEVERAL)
        later += last_by(j, sharers, form, 0, j->n_ranks, own(j), shards(j));
    if (rest > SEVERAL && spans_replicas(place->group) && sharers <= SEVERAL) {
        form[own(j)] += form[shards(j)];
        form[shards(j)] = 0;
        later += last_by(j, rest, form, 0, j->n_ranks, own(j), common(j));
    } else if (rest > SEVERAL) {
        later += last_by(j, rest, form, 0, 0, shards(j), common(j));
    }
    return later;
}

void orr_jitter_arrive(OrrJitter *j, const OrrExec *x, uint32_t place, uint32_t r, uint32_t s,
                       bool is_alone) {
    const OrrPlace *p = &x->places[place];
    gsize l = lane(r, s);
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

static double sum(const OrrJitter *j, const double *form) {
    double total = 0;
    for (uint32_t i = 0; i < j->n_parts; i++)
        total += form[i];
    return total;
}

/* What a meeting passes on: across replicas it is common to all or, of a sharding group, to that,
 * in a TP group to its pipeline. */
static void hand_on(const OrrJitter *j, const OrrBoundGroup *g, const OrrPlace *p, double *form) {
    if (spans_replicas(p->group) && g->size > 1) {
        bool is_shard = p->group == ORR_GROUP_HSDP_SHARD;
        double total = sum(j, form), before = is_shard ? form[common(j)] : 0;
        memset(form, 0, j->n_parts * sizeof *form);
        form[common(j)] = before;
        form[is_shard ? shards(j) : common(j)] += total - before;
    } else if (has_tp_mates(p->group)) {
        form[g->members[g->first_member[p->index]]] += form[own(j)];
        form[own(j)] = 0;
    }
}

int64_t orr_jitter_meet(OrrJitter *j, const OrrExec *x, uint32_t place) {
    const OrrPlace *p = &x->places[place];
    j->has_met[place] = 1;
    int64_t begin = MAX(llround(orr_forms_largest(&j->place, place, j->scratch)), x->now_ns);
    for (uint32_t i = 0; i < j->place.count[place]; i++) {
        *orr_form_ns(&j->place, place, i) -= (double)begin;
        if (!p->is_pair)
            hand_on(j, &x->bound->groups[p->group], p, orr_form_parts(&j->place, place, i));
    }
    return begin;
}

/* @form loses lead on the last of the ranks that rank @r stands for, or of its TP mates: its
 * kernels run at @rate for @window_ns. Each copy loses the same part of its own. */
static void lose_lead(OrrJitter *j, const OrrExec *x, uint32_t r, bool has_spread, double *form,
                      double window_ns, double rate) {
    double mates, sharers, n = x->bound->weight[r], *mine = &form[part_of(j, r)];
    OrrPlace all = {.group = has_spread ? ORR_GROUP_WORLD : ORR_GROUP_TP};
    split_copies(j, x, &all, r, n, &mates, &sharers);
    double noise = MIN(j->noise[r], *mine); /* the block in hand is not ahead of anything yet */
    *mine -= noise;
    double variance = form[own(j)];
    for (uint32_t k = 0; has_spread && k < j->n_ranks; k++)
        variance += form[k];
    double lead_ns = last_of(j, has_spread ? n / mates : mates, &variance);
    double keeps = lead_ns > 0 ? 1 - (1 - rate) * MIN(window_ns / lead_ns, 1) : 1;
    for (uint32_t k = 0; has_spread && k < j->n_ranks; k++)
        form[k] *= keeps * keeps;
    form[own(j)] *= keeps * keeps;
    *mine += noise;
}

void orr_jitter_pull(OrrJitter *j, const OrrExec *x, const OrrPlace *place, uint32_t r,
                     int64_t begin_ns, double rate) {
    int64_t from = MAX(x->now_ns, j->pulled_ns[r]);
    if (from >= begin_ns || x->ranks[r].lane[ORR_STREAM_COMPUTE].state != ORR_LANE_RUNNING)
        return;
    j->pulled_ns[r] = begin_ns;
    gsize l = lane(r, ORR_STREAM_COMPUTE);
    for (uint32_t i = 0; i < j->current.count[l]; i++)
        lose_lead(j, x, r, spans_replicas(place->group), orr_form_parts(&j->current, l, i),
                  (double)(begin_ns - from), rate);
}

void orr_jitter_deliver(OrrJitter *j, uint32_t place, uint32_t r, uint32_t s, bool is_first) {
    gsize l = lane(r, s);
    if (is_first)
        j->current.count[l] = 0;
    orr_forms_add_all(&j->current, l, &j->place, place, 0);
}
