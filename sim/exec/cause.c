/* Records of what items waited for, written as the items end.
 *
 * Until the first rank is in a step that may be told nobody leaves any, and nothing is noted of
 * who waits for whom: all that refers to a record refers to none, as it did at the begin. */
#include "sim/exec/cause.h"

#include "sim/base/large.h"
#include "sim/exec/steady.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_WORDS 1024u /* ours: room for the first records */

static const OrrMet no_met = {.rank = ORR_NONE, .cause = ORR_NONE, .record = ORR_NONE};

/* Streams of batches of sends and receives. */
static void lates_new(OrrExec *x) {
    OrrCauses *c = x->causes;
    const OrrProgram *p = x->bound->program;
    memset(c->late_of, UINT8_MAX, sizeof c->late_of);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == ORR_OP_P2P && p->p2ps[p->ops[i].what].n_parts > 1 &&
            c->late_of[p->ops[i].stream] == UINT8_MAX)
            c->late_of[p->ops[i].stream] = c->n_lates++;
    gsize n = (gsize)x->bound->n_ranks * c->n_lates;
    c->lates = orr_large_new((n + 1) * sizeof *c->lates);
    for (gsize i = 0; i < n; i++)
        c->lates[i] = no_met;
}

void orr_exec__causes_new(OrrExec *x, uint32_t first_step) {
    if (!x->options->has_path)
        return;
    uint32_t n = x->bound->n_ranks;
    OrrCauses *c = x->causes = g_new0(OrrCauses, 1);
    lates_new(x);
    c->syncs = g_new(uint32_t, (gsize)n + 1);
    c->is_early = g_new(uint8_t, (gsize)n + 1);
    /* the mean of jitter looks at what lies before the step, too */
    c->first_step = x->options->jitter_frac > 0 ? 0 : MIN(first_step, x->max_steps - 1);
    memset(c->is_early, c->first_step > 0, (gsize)n + 1);
    /* a batch under way when its rank is early no more may end with a part from before */
    x->leaves_records = c->first_step == 0 || c->n_lates > 0;
    c->ends = g_new0(OrrStepCause, x->max_steps);
    c->floor_ns = INT64_MIN;
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            *orr_exec__lane_cause(x, r, s) = (OrrLaneCause){ORR_NONE, ORR_NONE};
        c->syncs[r] = ORR_NONE;
    }
    for (uint32_t k = 0; k < x->max_steps; k++)
        c->ends[k] = (OrrStepCause){INT64_MIN, {.cause = ORR_NONE}};
    orr_exec__causes_clear_up(x);
}

void orr_exec__causes_clear(OrrExec *x) {
    OrrCauses *c = x->causes;
    if (!c)
        return;
    free(c->words);
    free(c->starts);
    g_free(c->marks);
    g_free(c->before);
    free(c->lates);
    g_free(c->syncs);
    g_free(c->is_early);
    g_free(c->ends);
    g_free(c->ways);
    g_free(c->way_records);
    g_free(c);
}

/* As a rule up to the next clearing up at once: what is not touched takes no memory. */
static void grow(OrrCauses *c, uint32_t n_words) {
    gsize old = c->n_words > 0 ? c->capacity / 64 + 1 : 0;
    c->capacity = MAX(c->limit + c->limit / 16, c->capacity + c->capacity / 2);
    c->capacity += LEAST_WORDS + n_words;
    c->words = orr_large_renew(c->words, c->n_words * sizeof *c->words,
                               (gsize)c->capacity * sizeof *c->words);
    c->starts = orr_large_renew(c->starts, old * sizeof *c->starts,
                                (c->capacity / 64 + 1) * sizeof *c->starts);
}

/* A record with room for @n_ns times; names stay as they are until the next clearing up. */
OrrCause *orr_exec__cause_add(OrrExec *x, OrrCauseType type, uint32_t n_ns, uint32_t *id) {
    OrrCauses *c = x->causes;
    uint32_t n_words = ORR_CAUSE_HEAD_WORDS + n_ns;
    if (n_words > c->capacity - c->n_words)
        grow(c, n_words);
    *id = c->n_words;
    c->n_words += n_words;
    c->starts[*id >> 6] |= UINT64_C(1) << (*id & 63);
    OrrCause *cause = orr_exec__cause(x, *id);
    *cause = (OrrCause){.type = type, .n_words = n_words, .cause = ORR_NONE};
    return cause;
}

static void end_with(OrrExec *x, uint32_t r, uint32_t s, uint32_t id) {
    *orr_exec__lane_cause(x, r, s) = (OrrLaneCause){id, ORR_NONE};
}

/* An item of a step that is hardly ever told ends. */
static bool ends_early(OrrExec *x, uint32_t r, uint32_t s) {
    if (x->causes->is_early[r])
        end_with(x, r, s, ORR_NONE);
    return x->causes->is_early[r];
}

/* A block of the stream ends now. */
void orr_exec__cause_block(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    const OrrPredecessor *before = orr_exec__pred(x, r, s);
    uint32_t id;
    if (ends_early(x, r, s))
        return;
    OrrCause *cause = orr_exec__cause_add(x, ORR_CAUSE_BLOCK, ORR_CAUSE_N_NS, &id);
    cause->rank = r;
    cause->pred = before->pred;
    cause->pred_stream = before->stream;
    cause->pred_index = before->index;
    cause->cause = orr_exec__lane_cause(x, r, s)->waited;
    cause->what = item->what;
    cause->ns[ORR_CAUSE_START] = cause->ns[ORR_CAUSE_ARRIVED] = *orr_exec__start_ns(x, r, s);
    cause->ns[ORR_CAUSE_END] = x->now_ns;
    cause->ns[ORR_CAUSE_PART] = s == ORR_STREAM_COMPUTE ? x->ranks[r].progress.extra_ns : 0;
    end_with(x, r, s, id);
}

/* Rank @r was the last to come to a meeting that ends now, on stream @s, with the item that it is
 * at: nobody who took part in it has moved on yet. */
OrrMet orr_exec__met(const OrrExec *x, uint32_t r, uint32_t s, int64_t arrived_ns,
                     int64_t latency_ns) {
    const OrrPredecessor *before = orr_exec__pred(x, r, s);
    bool takes_sms;
    return (OrrMet){.ns = {*orr_exec__start_ns(x, r, s), arrived_ns, x->now_ns, latency_ns},
                    .rank = r,
                    .cause = orr_exec__lane_cause(x, r, s)->waited,
                    .pred_index = before->index,
                    .what = orr_exec__purpose(x, orr_exec__head(x, r, s), &takes_sms),
                    .pred = before->pred,
                    .pred_stream = before->stream,
                    .record = ORR_NONE};
}

static uint32_t record_of(OrrExec *x, OrrMet *met) {
    if (met->record != ORR_NONE)
        return met->record;
    OrrCause *cause = orr_exec__cause_add(x, ORR_CAUSE_COMM, ORR_CAUSE_N_NS, &met->record);
    cause->rank = met->rank;
    cause->pred = met->pred;
    cause->pred_stream = met->pred_stream;
    cause->pred_index = met->pred_index;
    cause->cause = met->cause;
    cause->what = met->what;
    memcpy(cause->ns, met->ns, sizeof met->ns);
    return met->record;
}

/* The collective of the stream ends now with the meeting. */
void orr_exec__cause_coll(OrrExec *x, uint32_t r, uint32_t s, OrrMet *met) {
    if (!ends_early(x, r, s))
        end_with(x, r, s, record_of(x, met));
}

static OrrMet *late_of(const OrrExec *x, uint32_t r, uint32_t s) {
    return &x->causes->lates[(gsize)r * x->causes->n_lates + x->causes->late_of[s]];
}

/* Sends and receives end now. Who came himself later than the others waited for none of them; else
 * both sides share a record. */
static void end_sent(OrrExec *x, uint32_t r, uint32_t s, OrrMet *met) {
    int64_t arrived_ns = met->ns[ORR_CAUSE_ARRIVED];
    if (ends_early(x, r, s))
        return;
    if (arrived_ns >= *orr_exec__start_ns(x, r, s)) {
        end_with(x, r, s, record_of(x, met));
        return;
    }
    OrrMet own = orr_exec__met(x, r, s, arrived_ns, met->ns[ORR_CAUSE_PART]);
    end_with(x, r, s, record_of(x, &own));
}

/* A part of sends and receives ends now: of all who came last the smallest counts. */
void orr_exec__cause_part(OrrExec *x, uint32_t r, uint32_t s, OrrMet *met) {
    const OrrLane *l = orr_exec__lane(x, r, s);
    if (x->bound->program->p2ps[orr_exec__head(x, r, s)->what].n_parts == 1) {
        end_sent(x, r, s, met);
        return;
    }
    OrrMet *late = late_of(x, r, s);
    int64_t arrived_ns = met->ns[ORR_CAUSE_ARRIVED];
    uint32_t so_far = late->rank == ORR_NONE ? r : late->rank;
    if (arrived_ns > *orr_exec__arrived_ns(x, r, s) ||
        (arrived_ns == *orr_exec__arrived_ns(x, r, s) && met->rank < so_far))
        *late = *met;
    late->ns[ORR_CAUSE_PART] = met->ns[ORR_CAUSE_PART];
    late->record = ORR_NONE; /* of its own, since it ends with the last part */
    if (l->pending == 1)
        orr_exec__cause_batch(x, r, s);
}

/* The last part ends now, or all had been delivered before. */
void orr_exec__cause_batch(OrrExec *x, uint32_t r, uint32_t s) {
    OrrMet none = no_met;
    bool is_single = x->causes->late_of[s] == UINT8_MAX; /* delivered before it was waited for */
    OrrMet *late = is_single ? &none : late_of(x, r, s);
    if (late->rank == ORR_NONE || late->rank == r)
        *late = orr_exec__met(x, r, s, *orr_exec__arrived_ns(x, r, s), late->ns[ORR_CAUSE_PART]);
    late->ns[ORR_CAUSE_END] = x->now_ns;
    end_sent(x, r, s, late);
    *late = no_met;
}

/* The rank has ended the step with the last item of stream @s. */
void orr_exec__cause_step_end(OrrExec *x, uint32_t r, uint32_t s, uint32_t step) {
    OrrStepCause *end = &x->causes->ends[step];
    x->causes->is_early[r] = step + 1 < x->causes->first_step;
    x->leaves_records |= !x->causes->is_early[r];
    if (x->now_ns < end->end_ns || (x->now_ns == end->end_ns && r > end->spot.rank))
        return;
    *end = (OrrStepCause){x->now_ns,
                          {.cause = orr_exec__last_cause(x, r, s),
                           .rank = r,
                           .stream = s,
                           .index = orr_exec__lane(x, r, s)->completed - 1}};
}

/* Whether what is told of begins in a step of which there are no records. */
bool orr_exec__causes_are_short(const OrrExec *x) {
    const OrrCauses *c = x->causes;
    uint32_t k = x->ended_step;
    if (!c || c->first_step == 0)
        return false;
    int64_t length = orr_steady_step_time_ns(x->end_ns, x->bound->n_ranks, k);
    return c->ends[k].end_ns - length < c->ends[c->first_step - 1].end_ns;
}

/* All have ended step @step, and another one is to come. The step that is told will begin at the
 * end of this or later; if they never settle, a mean step before their end: see orr_exec__result.
 */
void orr_exec__cause_floor(OrrExec *x, uint32_t step) {
    OrrCauses *c = x->causes;
    int64_t since_first = c->ends[step].end_ns - c->ends[0].end_ns;
    c->floor_ns = c->ends[step].end_ns - since_first / (x->max_steps - 1) - 1;
    c->ends[step].spot.cause = ORR_NONE; /* it will not be told */
}
