/* Training: stretches of equal steps between events. */
#include "sim/job/engine.h"

#include "sim/job/engine_priv.h"

#include <math.h>

#define MAX_STRETCH 1000000 /* steps; ours: 10^6 steps of 100 s are 10^17 ns, far from overflow */

const char *const orr_run_event_names[] = {"train",    "lost",     "strike", "saved",
                                           "rollback", "finished", NULL};

void orr_job__emit(Run *r, OrrRunEvent e) {
    if (!r->probe)
        return;
    e.step = r->at.step;
    e.tokens = r->at.tokens;
    e.lost_replicas = r->lost_replicas;
    r->probe->event(r->probe->data, &e);
}

void orr_job__lose(Run *r, int64_t until, uint32_t cause, OrrLoss loss) {
    if (until <= r->now)
        return;
    r->out->lost_ns[cause * ORR_N_LOSSES + loss] += until - r->now;
    int64_t begin = r->now;
    r->now = until;
    orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_LOST,
                                   .begin_ns = begin,
                                   .end_ns = until,
                                   .cause = cause,
                                   .loss = loss});
}

static uint32_t cause_of(uint32_t kind) {
    return ORR_N_OWN_CAUSES + kind;
}

static void count_strike(Run *r, uint32_t kind) {
    r->out->strikes[cause_of(kind)]++;
    int64_t at = MAX(r->now, 0);
    orr_job__emit(
        r, (OrrRunEvent){
               .kind = ORR_RUN_STRIKE, .begin_ns = at, .end_ns = at, .cause = cause_of(kind)});
}

/* Whether the strike that is due stops the job. */
static bool is_hard(const Run *r, bool is_up) {
    const OrrFailureKind *k = &r->spec->kinds[r->strikes.next];
    bool stops = k->effect == ORR_EFFECT_STOP || k->effect == ORR_EFFECT_HANG ||
                 k->effect == ORR_EFFECT_RECLAIM;
    return stops && (is_up || !k->only_running);
}

/* Where it strikes decides how much it slows. */
static double factor_of(const Run *r, uint32_t kind) {
    const OrrFailureKind *k = &r->spec->kinds[kind];
    if (k->n_classes == 0)
        return k->slow_factor;
    double u = orr_strikes_uniform(&r->strikes, kind, 0);
    uint32_t c = 0;
    while (c + 1 < k->n_classes && u >= k->class_share[c])
        u -= k->class_share[c++];
    return k->class_factor[c];
}

static void begin_slow(Run *r, uint32_t kind, int64_t at_ns) {
    const OrrFailureKind *k = &r->spec->kinds[kind];
    if (r->n_slow == MAX_SLOW)
        return;
    /* what is found and replaced is found; what heals does so at random */
    double heals = (double)k->duration_ns * orr_strikes_exponential(&r->strikes, kind, 1);
    double length = k->nodes > 0 ? (double)orr_job__detect_ns(r, kind) : heals;
    count_strike(r, kind);
    int64_t end_ns = at_ns + (int64_t)ceil(MIN(length, 0x1p60));
    r->slow[r->n_slow++] = (Slow){kind, end_ns, factor_of(r, kind)};
}

/* A strike that doesn't stop the job: its state changes, time does not. STALL is the caller's. */
static void absorb(Run *r, bool is_up) {
    uint32_t kind = r->strikes.next;
    int64_t at_ns = r->strikes.next_ns;
    const OrrFailureKind *k = &r->spec->kinds[kind];
    orr_strikes_take(&r->strikes);
    if (k->effect == ORR_EFFECT_SLOW && (is_up || !k->only_running)) {
        begin_slow(r, kind, at_ns);
    } else if (k->effect == ORR_EFFECT_PLANNED && is_up && r->planned == 0) {
        r->planned = kind + 1;
    } else if (k->effect == ORR_EFFECT_CORRUPT && is_up && r->corrupt_ns == INT64_MAX) {
        count_strike(r, kind);
        r->corrupt_ns = at_ns;
        r->found_ns = at_ns + orr_job__detect_ns(r, kind);
        r->corrupt_kind = kind;
    }
}

bool orr_job__pass(Run *r, int64_t ns, uint32_t cause, OrrLoss loss, bool is_up) {
    int64_t end = r->now + ns;
    while (r->strikes.next_ns < MIN(end, r->horizon_ns)) {
        if (is_hard(r, is_up)) {
            orr_job__lose(r, r->strikes.next_ns, cause, loss);
            return false;
        }
        absorb(r, is_up);
    }
    orr_job__lose(r, MIN(end, r->horizon_ns), cause, loss);
    r->is_over |= end > r->horizon_ns;
    return !r->is_over;
}

bool orr_job__queue(Run *r, int64_t ns, uint32_t cause, OrrLoss loss) {
    int64_t end = r->now + ns;
    orr_job__lose(r, MIN(end, r->horizon_ns), cause, loss);
    r->is_over |= end > r->horizon_ns;
    while (r->strikes.next_ns < r->now)
        orr_strikes_take(&r->strikes);
    return !r->is_over;
}

static const OrrRunPhase *phase_of(const Run *r) {
    const OrrRunPhase *p = r->spec->phases;
    while (r->at.tokens >= p->end_tokens)
        p++;
    return p;
}

/* Tokens and nominal time of a step as it is done now. */
typedef struct {
    const OrrRunPhase *phase;
    int64_t tokens, useful_ns;
    int64_t healthy_ns, slow_ns; /* with so many replicas; and with what is slow */
    int64_t pace_ns;             /* and with what is written behind it */
    int64_t most_steps;          /* that are so */
    uint32_t slow_cause;
} Step;

/* The write that slows most; of the last step that it meets only a part. */
static void add_traffic(const Run *r, Step *s) {
    const OrrCheckpointPlan *c = &r->spec->checkpoint;
    double frac = 0;
    int64_t left = 0;
    for (uint32_t i = 0; i < c->n_tiers; i++)
        if (r->shelves[i].traffic_ns > r->now && c->tiers[i].write_slow_frac > frac) {
            frac = c->tiers[i].write_slow_frac;
            left = r->shelves[i].traffic_ns - r->now;
        }
    s->pace_ns = s->slow_ns + (int64_t)ceil((double)s->slow_ns * frac);
    s->most_steps = MAX_STRETCH;
    if (frac > 0) {
        s->most_steps = MAX(1, left / s->pace_ns);
        if (left < s->pace_ns)
            s->pace_ns = s->slow_ns + (int64_t)ceil((double)left * frac / (1 + frac));
    }
}

static Step step_now(const Run *r) {
    Step s = {.phase = phase_of(r), .slow_cause = ORR_CAUSE_NOISE};
    uint32_t n = r->spec->n_replicas, lost = r->lost_replicas;
    s.tokens = s.phase->tokens_per_step;
    s.useful_ns = s.phase->step_ns[0];
    s.healthy_ns = s.phase->step_ns[lost];
    if (lost > 0 && r->spec->recovery.elastic != ORR_ELASTIC_KEEP_BATCH) {
        s.tokens = s.tokens * (n - lost) / n;
        s.useful_ns = s.useful_ns / n * (n - lost);
    }
    s.useful_ns = MIN(s.useful_ns, s.healthy_ns);
    double factor = 1; /* a synchronous job goes at the pace of its slowest part */
    for (uint32_t i = 0; i < r->n_slow; i++) {
        if (r->slow[i].factor > factor) {
            factor = r->slow[i].factor;
            s.slow_cause = cause_of(r->slow[i].kind);
        }
    }
    s.slow_ns = (int64_t)ceil((double)s.healthy_ns * factor);
    add_traffic(r, &s);
    return s;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t interval_steps(const Run *r, const Step *s) {
    const OrrCheckpointPlan *c = &r->spec->checkpoint;
    if (c->n_tiers == 0)
        return MAX_STRETCH;
    if (c->interval_steps > 0)
        return c->interval_steps;
    return MAX(1, (c->interval_ns + s->phase->step_ns[0] / 2) / s->phase->step_ns[0]);
}

static int64_t steps_to_boundary(const Run *r, const Step *s) {
    const OrrRunSpec *spec = r->spec;
    int64_t n = interval_steps(r, s) - (r->at.step - r->saved_step);
    n = MIN(n, s->most_steps);
    if (spec->evaluate_steps > 0)
        n = MIN(n, spec->evaluate_steps - r->at.step % spec->evaluate_steps);
    if (s->phase->end_tokens != INT64_MAX)
        n = MIN(n, ceil_div(s->phase->end_tokens - r->at.tokens, s->tokens));
    if (spec->total_tokens > 0)
        n = MIN(n, ceil_div(spec->total_tokens - r->at.tokens, s->tokens));
    if (spec->total_steps > 0)
        n = MIN(n, spec->total_steps - r->at.step);
    return CLAMP(n, 1, MAX_STRETCH);
}

/* Excess of @n steps over their pace: a sum of exponentials is a Gamma variate, drawn by the
 * cube-root normal approximation of Wilson and Hilferty (1931). */
static int64_t noise_ns(const Run *r, int64_t n, int64_t pace_ns) {
    if (r->spec->noise_frac <= 0)
        return 0;
    double z = orr_random_normal(r->noise, (uint64_t)r->at.step, r->n_rollbacks * 8 + r->n_slow);
    double root = 1 - 1 / (9.0 * (double)n) + z / (3 * sqrt((double)n));
    double gamma = (double)n * MAX(root, 0) * MAX(root, 0) * MAX(root, 0);
    return (int64_t)(r->spec->noise_frac * (double)pace_ns * gamma);
}

/* For the mean and the deviation of all steps, those done twice too: of the stretch, and within it
 * that of the exponential noise. */
static void count_time(Run *r, const Step *s, int64_t n, int64_t ns) {
    double mean_s = (double)ns / 1e9 / (double)n;
    double noise_s = r->spec->noise_frac * (double)s->pace_ns / 1e9;
    r->out->steps_done += n;
    r->out->stepping_ns += ns;
    r->out->step_squares_s2 += (double)n * mean_s * mean_s + (double)(n - 1) * noise_s * noise_s;
}

/* @n steps that took @ns. */
static void book_steps(Run *r, const Step *s, int64_t n, int64_t ns) {
    if (n == 0)
        return;
    int64_t *lost = r->out->lost_ns;
    r->at.step += n;
    r->at.tokens += n * s->tokens;
    r->at.useful_ns += n * s->useful_ns;
    r->at.productive_ns += ns;
    count_time(r, s, n, ns);
    r->at.mfu_ns += (double)(n * s->useful_ns) * s->phase->mfu_frac;
    int64_t shrunk = n * (s->healthy_ns - s->useful_ns), slow = n * (s->slow_ns - s->healthy_ns);
    int64_t behind = n * (s->pace_ns - s->slow_ns);
    lost[r->shrunk_cause * ORR_N_LOSSES + ORR_LOSS_SHRUNK] += shrunk;
    lost[s->slow_cause * ORR_N_LOSSES + ORR_LOSS_SLOW] += slow;
    lost[ORR_CAUSE_CHECKPOINT * ORR_N_LOSSES + ORR_LOSS_SAVE_SLOW] += behind;
    lost[ORR_CAUSE_NOISE * ORR_N_LOSSES + ORR_LOSS_NOISE] +=
        ns - n * s->useful_ns - shrunk - slow - behind;
    if (r->lost_replicas > 0)
        r->out->short_of_nodes_ns += ns;
    int64_t begin = r->now;
    r->now += ns;
    orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_TRAIN,
                                   .begin_ns = begin,
                                   .end_ns = r->now,
                                   .cause = s->slow_cause,
                                   .steps = n});
}

static uint32_t next_healed(const Run *r, int64_t *at_ns) {
    uint32_t best = MAX_SLOW;
    *at_ns = INT64_MAX;
    for (uint32_t i = 0; i < r->n_slow; i++)
        if (r->slow[i].end_ns < *at_ns) {
            *at_ns = r->slow[i].end_ns;
            best = i;
        }
    return best;
}

static void heal(Run *r, uint32_t i) {
    uint32_t kind = r->slow[i].kind;
    r->slow[i] = r->slow[--r->n_slow];
    if (r->spec->kinds[kind].nodes > 0)
        orr_job__stop_gently(r, kind);
}

/* At the end of a step: what is due there. */
static void at_boundary(Run *r) {
    const OrrRunSpec *spec = r->spec;
    if ((spec->total_tokens > 0 && r->at.tokens >= spec->total_tokens) ||
        (spec->total_steps > 0 && r->at.step >= spec->total_steps)) {
        if (spec->checkpoint.n_tiers == 0 || orr_job__save(r))
            r->is_over = r->out->is_done = true;
        return;
    }
    if (spec->evaluate_steps > 0 && r->at.step % spec->evaluate_steps == 0 &&
        !orr_job__pass(r, spec->evaluate_ns, ORR_CAUSE_EVALUATION, ORR_LOSS_EVALUATE, true))
        return;
    Step s = step_now(r);
    if (spec->checkpoint.n_tiers == 0 || r->at.step - r->saved_step < interval_steps(r, &s) ||
        !orr_job__save(r))
        return;
    orr_job__collect(r);
    if (orr_job__replicas_short(r) < r->lost_replicas)
        orr_job__come_up(r, r->shrunk_cause, true);
}

/* Something that takes effect at the end of the step in hand. */
static void soft_event(Run *r, bool is_strike, uint32_t healed) {
    if (!is_strike) {
        heal(r, healed);
        return;
    }
    uint32_t kind = r->strikes.next;
    if (r->spec->kinds[kind].effect != ORR_EFFECT_STALL) {
        absorb(r, true);
        return;
    }
    orr_strikes_take(&r->strikes);
    count_strike(r, kind);
    orr_job__pass(r, r->spec->kinds[kind].duration_ns, cause_of(kind), ORR_LOSS_STALL, true);
}

/* One stretch, up to the next event. */
static void train(Run *r) {
    Step s = step_now(r);
    int64_t n = steps_to_boundary(r, &s), healed_ns;
    int64_t length = n * s.pace_ns + noise_ns(r, n, s.pace_ns);
    uint32_t healed = next_healed(r, &healed_ns);
    bool hard = r->strikes.next_ns != INT64_MAX && is_hard(r, true);
    int64_t soft_ns = MIN(healed_ns, hard ? INT64_MAX : r->strikes.next_ns);
    int64_t hard_ns = MIN(MIN(hard ? r->strikes.next_ns : INT64_MAX, r->found_ns), r->horizon_ns);
    int64_t cut = MAX(r->now, MIN(soft_ns, hard_ns));
    if (cut >= r->now + length) {
        book_steps(r, &s, n, length);
        at_boundary(r);
        return;
    }
    int64_t m = (int64_t)((__int128)(cut - r->now) * n / length);
    bool is_soft = soft_ns < hard_ns;
    int64_t m_ns = (int64_t)(((__int128)m * length + n - 1) / n);
    if (is_soft && r->now + m_ns < cut) {
        m++;
        m_ns = (int64_t)(((__int128)m * length + n - 1) / n);
        is_soft = r->now + m_ns <= r->horizon_ns;
        if (!is_soft)
            m--, m_ns = (int64_t)(((__int128)m * length + n - 1) / n);
    }
    book_steps(r, &s, m, m_ns);
    if (is_soft) {
        soft_event(r, soft_ns < healed_ns, healed);
        return;
    }
    if (cut < hard_ns || hard_ns == r->horizon_ns) {
        orr_job__lose(r, r->horizon_ns, ORR_CAUSE_END, ORR_LOSS_END);
        r->is_over = true;
    } else if (hard_ns == r->found_ns) {
        orr_job__lose(r, cut, cause_of(r->corrupt_kind), ORR_LOSS_REWORK);
        orr_job__found(r);
    } else {
        orr_job__lose(r, cut, cause_of(r->strikes.next), ORR_LOSS_REWORK);
        orr_job__interrupt(r);
    }
}

static void init(Run *r, const OrrRunSpec *spec, uint64_t seed) {
    r->horizon_ns = spec->length_ns > 0 ? spec->length_ns : INT64_MAX / 4;
    r->hot = spec->recovery.hot_spares;
    r->cold = spec->recovery.cold_spares;
    r->corrupt_ns = r->found_ns = INT64_MAX;
    r->noise = orr_random(seed, "noise");
    orr_queue_init(&r->repairs);
    orr_queue_init(&r->hands);
    orr_strikes_init(&r->strikes, spec, seed);
    for (uint32_t i = 0; i < spec->checkpoint.n_tiers; i++)
        r->shelves[i].marks = g_new0(Mark, spec->checkpoint.tiers[i].keep);
}

void orr_run_simulate(const OrrRunSpec *spec, uint64_t seed, const OrrRunProbe *probe,
                      OrrRunSeed *out) {
    Run run = {.spec = spec, .probe = probe, .out = out}, *r = &run;
    init(r, spec, seed);
    out->seed = seed;
    if (orr_job__queue(r, spec->recovery.queue_ns, ORR_CAUSE_START, ORR_LOSS_QUEUE))
        orr_job__come_up(r, ORR_CAUSE_START, true);
    while (!r->is_over) {
        if (r->planned > 0)
            orr_job__stop_gently(r, r->planned - 1);
        else
            train(r);
    }
    orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_FINISHED,
                                   .begin_ns = r->now,
                                   .end_ns = r->now,
                                   .cause = ORR_CAUSE_END});
    out->wall_ns = r->now;
    out->has_most_strikes = r->strikes.n_taken >= ORR_MOST_STRIKES;
    out->useful_ns = r->at.useful_ns;
    out->productive_ns = r->at.productive_ns;
    out->mfu_ns = r->at.mfu_ns;
    out->steps = r->at.step;
    out->tokens = r->at.tokens;
    for (uint32_t i = 0; i < spec->checkpoint.n_tiers; i++)
        g_free(r->shelves[i].marks);
    orr_queue_clear(&r->repairs);
    orr_queue_clear(&r->hands);
    orr_strikes_clear(&r->strikes);
}
