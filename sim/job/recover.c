/* Saving, rolling back, and coming up again. */
#include "sim/job/engine_priv.h"

#include <math.h>

#define MOST_REPAIR_NS 0x1p55       /* ours: a year */
#define NEVER_NS (INT64_C(1) << 61) /* a queue of repairs that long is never worked off: 73 years  \
                                     */

static uint32_t cause_of(uint32_t kind) {
    return ORR_N_OWN_CAUSES + kind;
}

static void shelve(Run *r, uint32_t tier, Mark mark) {
    const OrrTier *t = &r->spec->checkpoint.tiers[tier];
    Shelf *s = &r->shelves[tier];
    mark.whole_ns = r->now + t->write_ns;
    s->busy_ns = mark.whole_ns;
    s->traffic_ns = r->now + t->traffic_ns;
    if (s->n == t->keep) { /* the oldest makes room */
        s->first = (s->first + 1) % t->keep;
        s->n--;
    }
    s->marks[(s->first + s->n++) % t->keep] = mark;
}

bool orr_job__save(Run *r) {
    const OrrCheckpointPlan *c = &r->spec->checkpoint;
    uint64_t number = r->n_saves + 1;
    int64_t free_ns = r->now, block_ns = 0;
    for (uint32_t i = 0; i < c->n_tiers; i++) {
        if (number % c->tiers[i].every != 0)
            continue;
        free_ns = MAX(free_ns, r->shelves[i].busy_ns);
        block_ns = MAX(block_ns, c->tiers[i].block_ns);
    }
    if (free_ns > r->now &&
        !orr_job__pass(r, free_ns - r->now, ORR_CAUSE_CHECKPOINT, ORR_LOSS_SAVE_WAIT, true))
        return false;
    Mark mark = r->at;
    mark.taken_ns = r->now;
    if (!orr_job__pass(r, block_ns, ORR_CAUSE_CHECKPOINT, ORR_LOSS_SAVE, true))
        return false;
    int64_t whole_ns = r->now;
    for (uint32_t i = 0; i < c->n_tiers; i++)
        if (number % c->tiers[i].every == 0) {
            shelve(r, i, mark);
            whole_ns = MAX(whole_ns, r->shelves[i].busy_ns);
        }
    r->n_saves = number;
    r->saved_step = r->at.step;
    r->out->checkpoints++;
    orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_SAVED,
                                   .begin_ns = r->now,
                                   .end_ns = whole_ns,
                                   .cause = ORR_CAUSE_CHECKPOINT});
    return true;
}

static uint32_t fastest_tier(const Run *r, OrrScope scope, int64_t *ns) {
    const OrrCheckpointPlan *c = &r->spec->checkpoint;
    uint32_t best = c->n_tiers;
    *ns = INT64_MAX;
    for (uint32_t i = 0; i < c->n_tiers; i++) {
        int64_t wait = MAX(0, r->shelves[i].busy_ns - r->now);
        int64_t takes = wait + c->tiers[i].block_ns + c->tiers[i].write_ns;
        if (c->tiers[i].survives >= scope && takes < *ns) {
            *ns = takes;
            best = i;
        }
    }
    return best;
}

static int64_t save_ns(const Run *r, OrrScope scope) {
    int64_t ns;
    fastest_tier(r, scope, &ns);
    return ns;
}

void orr_job__save_for(Run *r, uint32_t cause, OrrScope scope) {
    int64_t ns;
    uint32_t tier = fastest_tier(r, scope, &ns);
    if (tier == r->spec->checkpoint.n_tiers)
        return;
    Mark mark = r->at;
    mark.taken_ns = r->now;
    int64_t end = r->now + ns;
    orr_job__lose(r, MIN(end, r->horizon_ns), cause, ORR_LOSS_SAVE);
    if (end > r->horizon_ns) {
        r->is_over = true;
        return;
    }
    shelve(r, tier, mark);
    Shelf *s = &r->shelves[tier];
    s->busy_ns = s->traffic_ns = r->now;
    s->marks[(s->first + s->n - 1) % r->spec->checkpoint.tiers[tier].keep].whole_ns = r->now;
    r->out->checkpoints++;
    orr_job__emit(
        r,
        (OrrRunEvent){.kind = ORR_RUN_SAVED, .begin_ns = r->now, .end_ns = r->now, .cause = cause});
}

/* Drops what cannot be read after a loss of @scope: copies that went with it, writes that were
 * under way, and states taken after @clean_ns. */
static void purge(Run *r, OrrScope scope, int64_t clean_ns) {
    const OrrCheckpointPlan *c = &r->spec->checkpoint;
    for (uint32_t i = 0; i < c->n_tiers; i++) {
        Shelf *s = &r->shelves[i];
        if (c->tiers[i].survives < scope)
            s->n = 0;
        while (s->n > 0) {
            const Mark *last = &s->marks[(s->first + s->n - 1) % c->tiers[i].keep];
            if (last->whole_ns <= r->now && last->taken_ns <= clean_ns)
                break;
            s->n--;
        }
        s->busy_ns = MIN(s->busy_ns, r->now);
        s->traffic_ns = MIN(s->traffic_ns, r->now);
    }
}

/* The oldest state that can be read after a loss of @scope. */
static Mark oldest(const Run *r, OrrScope scope, bool *is_any) {
    Mark best = {0};
    *is_any = false;
    for (uint32_t i = 0; i < r->spec->checkpoint.n_tiers; i++) {
        const Shelf *s = &r->shelves[i];
        if (s->n == 0 || s->marks[s->first].whole_ns > r->now ||
            r->spec->checkpoint.tiers[i].survives < scope)
            continue;
        if (!*is_any || s->marks[s->first].taken_ns < best.taken_ns)
            best = s->marks[s->first];
        *is_any = true;
    }
    return best;
}

/* The newest state of those that are left, and how long it loads; the begin of the run if none. */
static void newest(Run *r, Mark *best) {
    bool is_any = false;
    r->load_ns = 0;
    for (uint32_t i = 0; i < r->spec->checkpoint.n_tiers; i++) {
        const OrrTier *t = &r->spec->checkpoint.tiers[i];
        const Shelf *s = &r->shelves[i];
        if (s->n == 0)
            continue;
        const Mark *m = &s->marks[(s->first + s->n - 1) % t->keep];
        if (!is_any || m->step > best->step || (m->step == best->step && t->load_ns < r->load_ns)) {
            *best = *m;
            r->load_ns = t->load_ns;
            is_any = true;
        }
    }
}

static void rollback(Run *r, uint32_t cause, OrrScope scope, int64_t clean_ns) {
    bool is_any;
    Mark mark = {0}, last = oldest(r, scope, &is_any);
    if (is_any && last.taken_ns > clean_ns) { /* all that is kept is damaged: the oldest it is */
        clean_ns = last.taken_ns;
        r->out->unclean_rollbacks++;
    }
    purge(r, scope, clean_ns);
    newest(r, &mark);
    int64_t lost_ns = r->at.useful_ns - mark.useful_ns, steps = r->at.step - mark.step;
    r->out->lost_ns[cause * ORR_N_LOSSES + ORR_LOSS_REWORK] += lost_ns;
    r->out->reworked_steps += steps;
    r->out->most_lost_ns = MAX(r->out->most_lost_ns, lost_ns);
    r->at = mark;
    r->saved_step = mark.step;
    r->n_rollbacks++;
    if (mark.taken_ns <= r->corrupt_ns)
        r->corrupt_ns = r->found_ns = INT64_MAX;
    orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_ROLLBACK,
                                   .begin_ns = r->now,
                                   .end_ns = r->now,
                                   .cause = cause,
                                   .steps = steps});
}

void orr_job__collect(Run *r) {
    while (r->repairs.n > 0 && r->repairs.heap[0].time_ns <= r->now) {
        orr_queue_pop(&r->repairs);
        if (r->missing > 0)
            r->missing--;
        else if (r->hot != ORR_SPARES_UNLIMITED)
            r->hot++;
    }
}

/* First come first served: the hand that is free first begins as soon as it and the node are there.
 */
static void repair(Run *r, int64_t takes_ns) {
    uint32_t n_hands = r->spec->recovery.repair_hands;
    int64_t begin = r->now;
    if (n_hands > 0 && r->hands.n == n_hands) {
        int64_t free_ns = orr_queue_pop(&r->hands).time_ns;
        begin = CLAMP(free_ns, begin, NEVER_NS);
    }
    if (n_hands > 0)
        orr_queue_push(&r->hands, begin + takes_ns, 0, 0, 0);
    orr_queue_push(&r->repairs, begin + takes_ns, 0, 0, 0);
    r->out->repairs++;
    r->out->repair_wait_ns = MIN(r->out->repair_wait_ns, INT64_MAX - NEVER_NS) + begin - r->now;
}

/* Nodes that a strike of @kind takes go to the repair shop. */
static void lose_nodes(Run *r, uint32_t kind) {
    const OrrFailureKind *k = &r->spec->kinds[kind];
    orr_job__collect(r);
    uint32_t n = MIN(k->nodes, r->spec->n_nodes - r->missing);
    r->missing += n;
    for (uint32_t i = 0; i < n; i++) {
        double away = (double)k->repair_ns * orr_strikes_exponential(&r->strikes, kind, 2 + i);
        repair(r, (int64_t)ceil(MIN(away, MOST_REPAIR_NS)));
    }
}

uint32_t orr_job__replicas_short(const Run *r) {
    uint32_t per = r->spec->recovery.nodes_per_replica;
    return (r->missing + per - 1) / per;
}

static uint32_t take(uint32_t *pool, uint32_t wanted) {
    if (*pool == ORR_SPARES_UNLIMITED)
        return wanted;
    uint32_t n = MIN(*pool, wanted);
    *pool -= n;
    return n;
}

/* Spares for what is missing, else fewer replicas, else waiting for a repair. */
static bool fill_nodes(Run *r, uint32_t cause) {
    const OrrRecovery *v = &r->spec->recovery;
    uint32_t hot = take(&r->hot, r->missing);
    r->missing -= hot;
    uint32_t cold = take(&r->cold, r->missing);
    r->missing -= cold;
    r->is_hot_swap = hot > 0 && r->missing == 0 && cold == 0;
    int64_t ns = cold > 0 ? v->cold_ns : hot > 0 ? v->swap_ns : 0;
    if (!orr_job__pass(r, ns, cause, ORR_LOSS_REPLACE, false))
        return false;
    while (r->missing > 0) {
        if (v->elastic != ORR_ELASTIC_NO &&
            orr_job__replicas_short(r) <= r->spec->max_lost_replicas)
            break;
        int64_t wait = r->repairs.heap[0].time_ns - r->now;
        if (wait > 0 && !orr_job__pass(r, wait, cause, ORR_LOSS_REPAIR, false))
            return false;
        orr_job__collect(r);
    }
    return true;
}

int64_t orr_job__detect_ns(const Run *r, uint32_t kind) {
    const OrrFailureKind *k = &r->spec->kinds[kind];
    if (!k->by_hand)
        return k->detect_ns;
    double draw = -log(orr_strikes_uniform(&r->strikes, kind, 1));
    return (int64_t)ceil((double)k->detect_ns * draw);
}

/* Until it is known what to do. */
static bool notice(Run *r, uint32_t cause) {
    if (cause < ORR_N_OWN_CAUSES)
        return true;
    const OrrFailureKind *k = &r->spec->kinds[cause - ORR_N_OWN_CAUSES];
    switch (k->effect) {
    case ORR_EFFECT_STOP:
    case ORR_EFFECT_HANG:
        return orr_job__pass(r, orr_job__detect_ns(r, cause - ORR_N_OWN_CAUSES), cause,
                             ORR_LOSS_DETECT, false) &&
               orr_job__pass(r, k->diagnose_ns, cause, ORR_LOSS_DIAGNOSE, false);
    case ORR_EFFECT_CORRUPT:
        return orr_job__pass(r, k->diagnose_ns, cause, ORR_LOSS_DIAGNOSE, false);
    case ORR_EFFECT_PLANNED:
        return orr_job__pass(r, k->duration_ns, cause, ORR_LOSS_DOWN, false);
    case ORR_EFFECT_RECLAIM:
        return orr_job__queue(r, k->duration_ns, cause, ORR_LOSS_QUEUE);
    case ORR_EFFECT_SLOW:
    case ORR_EFFECT_STALL:
    case ORR_N_EFFECTS:
        break;
    }
    return true;
}

/* Back in the queue of the cluster, where the job does not keep its nodes. */
static bool requeue(Run *r, uint32_t cause) {
    const OrrRecovery *v = &r->spec->recovery;
    if (cause < ORR_N_OWN_CAUSES || v->requeue_ns == 0)
        return true;
    uint32_t kind = cause - ORR_N_OWN_CAUSES;
    const OrrFailureKind *k = &r->spec->kinds[kind];
    bool is_announced = k->effect == ORR_EFFECT_PLANNED || k->effect == ORR_EFFECT_RECLAIM;
    bool has_spares = r->hot != ORR_SPARES_UNLIMITED && r->missing > 0 && r->hot >= r->missing;
    if (is_announced || (v->requeue_after == ORR_REQUEUE_REPLACED && has_spares) ||
        (v->requeue_after == ORR_REQUEUE_REPLACED && k->nodes == 0))
        return true;
    double wait = (double)v->requeue_ns * orr_strikes_exponential(&r->strikes, kind, 0);
    return orr_job__queue(r, (int64_t)ceil(wait), cause, ORR_LOSS_REQUEUE);
}

/* Started again where it is: no node changed and nothing was taken away. */
static bool is_in_place(const Run *r, uint32_t cause) {
    if (cause < ORR_N_OWN_CAUSES)
        return false;
    const OrrFailureKind *k = &r->spec->kinds[cause - ORR_N_OWN_CAUSES];
    return k->nodes == 0 && k->effect != ORR_EFFECT_PLANNED && k->effect != ORR_EFFECT_RECLAIM;
}

static bool attempt(Run *r, uint32_t cause, bool is_known) {
    const OrrRecovery *v = &r->spec->recovery;
    uint32_t before = r->lost_replicas;
    if (!is_known && (!notice(r, cause) || !requeue(r, cause)))
        return false;
    if (!fill_nodes(r, cause))
        return false;
    uint32_t lost = orr_job__replicas_short(r);
    int64_t start_ns = is_in_place(r, cause) ? v->in_place_ns
                       : r->is_hot_swap      ? v->hot_swap_ns
                                             : v->start_ns;
    int64_t load_ns = r->load_ns + (lost != before ? v->reshard_ns : 0);
    if (!orr_job__pass(r, start_ns, cause, ORR_LOSS_START, false) ||
        !orr_job__pass(r, load_ns, cause, ORR_LOSS_LOAD, false))
        return false;
    r->lost_replicas = lost;
    if (lost > before || lost == 0)
        r->shrunk_cause = cause;
    return true;
}

/* The strike that is due takes the job down, or hits it while it is down. */
static uint32_t fall(Run *r, bool is_up) {
    uint32_t kind = r->strikes.next;
    const OrrFailureKind *k = &r->spec->kinds[kind];
    orr_strikes_take(&r->strikes);
    r->out->strikes[cause_of(kind)]++;
    r->out->interruptions++;
    orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_STRIKE,
                                   .begin_ns = r->now,
                                   .end_ns = r->now,
                                   .cause = cause_of(kind)});
    if (is_up && k->effect == ORR_EFFECT_RECLAIM && save_ns(r, k->scope) <= k->notice_ns)
        orr_job__save_for(r, cause_of(kind), k->scope);
    rollback(r, cause_of(kind), k->scope, INT64_MAX);
    lose_nodes(r, kind);
    return cause_of(kind);
}

void orr_job__come_up(Run *r, uint32_t cause, bool is_known) {
    while (!r->is_over && !attempt(r, cause, is_known)) {
        if (r->is_over)
            return;
        cause = fall(r, false);
        is_known = false;
    }
}

void orr_job__interrupt(Run *r) {
    orr_job__come_up(r, fall(r, true), false);
}

void orr_job__found(Run *r) {
    uint32_t kind = r->corrupt_kind;
    int64_t clean_ns = r->corrupt_ns;
    r->corrupt_ns = r->found_ns = INT64_MAX;
    r->out->interruptions++;
    rollback(r, cause_of(kind), ORR_SCOPE_PROCESS, clean_ns);
    lose_nodes(r, kind);
    orr_job__come_up(r, cause_of(kind), false);
}

void orr_job__stop_gently(Run *r, uint32_t kind) {
    const OrrFailureKind *k = &r->spec->kinds[kind];
    bool is_planned = k->effect == ORR_EFFECT_PLANNED;
    if (is_planned) {
        r->planned = 0;
        r->out->strikes[cause_of(kind)]++;
        orr_job__emit(r, (OrrRunEvent){.kind = ORR_RUN_STRIKE,
                                       .begin_ns = r->now,
                                       .end_ns = r->now,
                                       .cause = cause_of(kind)});
    }
    r->out->interruptions++;
    orr_job__save_for(r, cause_of(kind), k->scope);
    if (r->is_over)
        return;
    rollback(r, cause_of(kind), k->scope, INT64_MAX);
    lose_nodes(r, kind);
    orr_job__come_up(r, cause_of(kind), false);
}
