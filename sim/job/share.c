#include "sim/job/share.h"

#include "sim/job/share_priv.h"

#include <math.h>
#include <string.h>

typedef enum { WAITING, RUNNING, DRAINING, ENDED, TO_COME } State;
typedef struct {
    State state;
    Grant grant;
    int64_t began_ns, ends_ns; /* of this turn */
    int64_t done_ns;           /* work that is kept */
    int64_t queued_ns;         /* when it came into the queue this time */
    bool saves;                /* draining: its state is saved in the notice */
} Turn;

typedef struct {
    const OrrShareSpec *spec;
    OrrShareResult *results;
    OrrShareAccount *account;
    Floor floor;
    Turn *turns;
    uint32_t *queue, n_queue; /* in order of turn */
    int64_t now;
} Share;

/* How long the work takes on what the job asks for: slices are slower than their share. */
static int64_t length_ns(const OrrShareSpec *s, const OrrShareJob *j, int64_t work_ns) {
    if (j->gpus > 0)
        return work_ns;
    double share = (double)j->slices / s->slices_per_gpu;
    return (int64_t)ceil((double)work_ns / share * (1 + s->slice_slow_frac));
}

bool orr_share_check(const OrrShareSpec *s, GError **error) {
    if (s->n_nodes == 0 || s->gpus_per_node == 0 || s->slices_per_gpu == 0 ||
        s->nodes_per_rack == 0 || s->racks_per_block == 0)
        return orr_fail_input(error, "the shared cluster has no nodes, GPUs, slices or racks");
    Floor empty = orr_share__floor(s);
    bool is_fine = true;
    for (uint32_t i = 0; i < s->n_jobs && is_fine; i++) {
        const OrrShareJob *j = &s->jobs[i];
        if ((j->gpus > 0) == (j->slices > 0) || j->slices > s->slices_per_gpu)
            is_fine = orr_fail_input(error, "job %s: takes whole GPUs, or 1 to %u slices of one",
                                     j->name, s->slices_per_gpu);
        else if (j->work_ns <= 0 || j->limit_ns < length_ns(s, j, j->work_ns))
            is_fine =
                orr_fail_input(error, "job %s: its limit is below the time that it takes", j->name);
        else if (!orr_share__place(&empty, j, NULL))
            is_fine = orr_fail_input(
                error,
                "job %s: %u GPUs in one %s%s%s are more than the empty "
                "cluster has",
                j->name, j->gpus, j->place == ORR_PLACE_ANY ? "cluster" : orr_place_names[j->place],
                *j->selector ? " of class " : "", j->selector);
    }
    g_free(empty.free);
    return is_fine;
}

/* Whether job @a stands before @b in the queue. */
static bool is_before(const Share *h, uint32_t a, uint32_t b) {
    const OrrShareJob *x = &h->spec->jobs[a], *y = &h->spec->jobs[b];
    if (h->spec->policy >= ORR_SHARE_PRIORITY && x->priority != y->priority)
        return x->priority > y->priority;
    if (x->submit_ns != y->submit_ns)
        return x->submit_ns < y->submit_ns;
    return a < b;
}

static void enqueue(Share *h, uint32_t job) {
    uint32_t at = h->n_queue++;
    for (; at > 0 && is_before(h, job, h->queue[at - 1]); at--)
        h->queue[at] = h->queue[at - 1];
    h->queue[at] = job;
    h->turns[job].state = WAITING;
    h->turns[job].queued_ns = h->now;
}

static uint32_t count_racks(const OrrShareSpec *s, const Grant *g) {
    uint32_t racks = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        bool is_new = true;
        for (uint32_t k = 0; k < i && is_new; k++)
            is_new = g->nodes[k] / s->nodes_per_rack != g->nodes[i] / s->nodes_per_rack;
        racks += is_new;
    }
    return racks;
}

static void start(Share *h, uint32_t place_in_queue) {
    uint32_t job = h->queue[place_in_queue];
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    OrrShareResult *r = &h->results[job];
    bool has_room = orr_share__place(&h->floor, j, &t->grant);
    g_assert(has_room);
    memmove(h->queue + place_in_queue, h->queue + place_in_queue + 1,
            (--h->n_queue - place_in_queue) * sizeof *h->queue);
    bool is_again = r->start_ns >= 0;
    int64_t again = is_again ? j->restart_ns : 0;
    t->state = RUNNING;
    t->began_ns = h->now;
    t->ends_ns = h->now + again + length_ns(h->spec, j, j->work_ns) - t->done_ns;
    r->waited_ns += h->now - t->queued_ns;
    r->racks = count_racks(h->spec, &t->grant);
    if (!is_again)
        r->start_ns = h->now;
}

/* When a running job ends at the latest, as far as the scheduler knows. */
static int64_t promised_ns(const Share *h, uint32_t job) {
    const Turn *t = &h->turns[job];
    if (t->state == DRAINING)
        return t->ends_ns;
    return MAX(t->began_ns + h->spec->jobs[job].limit_ns, t->ends_ns);
}

/* The earliest time that @first has room if everything runs to its limit. @extra: as if that one
 * ran from now on too; UINT32_MAX: none. */
static int64_t reservation(const Share *h, uint32_t first, uint32_t extra) {
    Floor f = orr_share__floor_copy(&h->floor);
    uint32_t n = h->spec->n_jobs;
    g_autofree bool *is_back = g_new0(bool, n + 1);
    Grant grant = {0};
    int64_t at = h->now, extra_end = INT64_MAX;
    if (extra != UINT32_MAX) {
        orr_share__place(&f, &h->spec->jobs[extra], &grant);
        extra_end = h->now + h->spec->jobs[extra].limit_ns;
    }
    while (!orr_share__place(&f, &h->spec->jobs[first], NULL)) {
        uint32_t next = UINT32_MAX;
        int64_t next_ns = grant.n > 0 ? extra_end : INT64_MAX;
        for (uint32_t i = 0; i < n; i++) {
            bool holds = h->turns[i].state == RUNNING || h->turns[i].state == DRAINING;
            if (holds && !is_back[i] && promised_ns(h, i) < next_ns) {
                next = i;
                next_ns = promised_ns(h, i);
            }
        }
        at = next_ns;
        if (next == UINT32_MAX) {
            orr_share__release(&f, &grant);
            continue;
        }
        is_back[next] = true;
        const Grant *g = &h->turns[next].grant;
        for (uint32_t k = 0; k < g->n; k++)
            f.free[g->nodes[k]] += g->units[k];
    }
    orr_share__grant_clear(&grant);
    g_free(f.free);
    return at;
}

/* Lower jobs that would make room for @first: the lowest and youngest first. false if all of them
 * are not enough, or enough is being freed already. */
static bool make_room(Share *h, uint32_t first) {
    const OrrShareSpec *s = h->spec;
    Floor f = orr_share__floor_copy(&h->floor);
    g_autofree bool *is_chosen = g_new0(bool, s->n_jobs + 1);
    for (uint32_t i = 0; i < s->n_jobs; i++)
        for (uint32_t k = 0; h->turns[i].state == DRAINING && k < h->turns[i].grant.n; k++)
            f.free[h->turns[i].grant.nodes[k]] += h->turns[i].grant.units[k];
    bool was_enough = orr_share__place(&f, &s->jobs[first], NULL), is_enough = was_enough;
    while (!is_enough) {
        uint32_t victim = UINT32_MAX;
        for (uint32_t i = 0; i < s->n_jobs; i++) {
            if (h->turns[i].state != RUNNING || is_chosen[i] || !s->jobs[i].is_preemptible ||
                s->jobs[i].priority >= s->jobs[first].priority)
                continue;
            if (victim == UINT32_MAX || s->jobs[i].priority < s->jobs[victim].priority ||
                (s->jobs[i].priority == s->jobs[victim].priority &&
                 h->turns[i].began_ns > h->turns[victim].began_ns))
                victim = i;
        }
        if (victim == UINT32_MAX)
            break;
        is_chosen[victim] = true;
        const Grant *g = &h->turns[victim].grant;
        for (uint32_t k = 0; k < g->n; k++)
            f.free[g->nodes[k]] += g->units[k];
        is_enough = orr_share__place(&f, &s->jobs[first], NULL);
    }
    for (uint32_t i = 0; is_enough && i < s->n_jobs; i++) {
        Turn *t = &h->turns[i];
        if (!is_chosen[i] || t->ends_ns <= h->now + s->notice_ns)
            continue; /* it ends by itself before the notice is over */
        t->state = DRAINING;
        t->saves = s->jobs[i].save_ns > 0 && s->jobs[i].save_takes_ns <= s->notice_ns;
        t->ends_ns = h->now + s->notice_ns;
    }
    g_free(f.free);
    return is_enough && !was_enough;
}

static void backfill(Share *h) {
    int64_t reserved_ns = reservation(h, h->queue[0], UINT32_MAX);
    for (uint32_t i = 1; i < h->n_queue;) {
        uint32_t job = h->queue[i];
        bool may = orr_share__place(&h->floor, &h->spec->jobs[job], NULL) &&
                   reservation(h, h->queue[0], job) <= reserved_ns;
        if (may)
            start(h, i);
        else
            i++;
    }
}

static void schedule(Share *h) {
    while (h->n_queue > 0 && orr_share__place(&h->floor, &h->spec->jobs[h->queue[0]], NULL))
        start(h, 0);
    if (h->n_queue == 0)
        return;
    if (h->spec->policy == ORR_SHARE_PREEMPT)
        make_room(h, h->queue[0]);
    if (h->spec->policy != ORR_SHARE_FCFS)
        backfill(h);
}

/* The end of a turn: of the job, or of the notice. */
static void finish(Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    OrrShareResult *r = &h->results[job];
    int64_t units = orr_share__units_of_job(h->spec, j), ran = h->now - t->began_ns;
    bool was_preempted = t->state == DRAINING;
    int64_t again = r->preemptions > 0 ? MIN(j->restart_ns, ran) : 0, kept = ran - again;
    if (was_preempted) {
        int64_t saving = t->saves ? j->save_takes_ns : 0;
        kept = MAX(0, kept - saving);
        if (!t->saves) /* back to the last checkpoint on the clock of its work, or to its begin */
            kept = j->save_ns > 0
                       ? MAX(0, (t->done_ns + kept) / j->save_ns * j->save_ns - t->done_ns)
                       : 0;
        r->preemptions++;
    }
    int64_t lost = ran - kept;
    t->done_ns += kept;
    r->lost_ns += lost;
    h->account->useful += units * kept;
    h->account->lost += units * lost;
    orr_share__release(&h->floor, &t->grant);
    if (was_preempted) {
        enqueue(h, job);
        return;
    }
    t->state = ENDED;
    r->end_ns = h->now;
}

/* Books the idle units of the time up to @until by why they are idle. */
static void book_idle(Share *h, int64_t until) {
    int64_t units = 0, ns = until - h->now;
    for (uint32_t i = 0; i < h->spec->n_nodes; i++)
        units += h->floor.free[i];
    int64_t *to = &h->account->idle_empty;
    if (h->n_queue > 0) {
        const OrrShareJob *first = &h->spec->jobs[h->queue[0]];
        bool is_short =
            orr_share__units_of_job(h->spec, first) > orr_share__units_free(&h->floor, first);
        to = is_short ? &h->account->idle_short : &h->account->idle_fragmented;
    }
    *to += units * ns;
    h->now = until;
}

static int64_t next_event(const Share *h) {
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < h->spec->n_jobs; i++) {
        const Turn *t = &h->turns[i];
        if (t->state == TO_COME)
            next = MIN(next, h->spec->jobs[i].submit_ns);
        else if (t->state == RUNNING || t->state == DRAINING)
            next = MIN(next, t->ends_ns);
    }
    return next;
}

void orr_share_simulate(const OrrShareSpec *spec, OrrShareResult *results,
                        OrrShareAccount *account) {
    Share share = {.spec = spec, .results = results, .account = account}, *h = &share;
    h->floor = orr_share__floor(spec);
    h->turns = g_new0(Turn, spec->n_jobs + 1);
    h->queue = g_new0(uint32_t, spec->n_jobs + 1);
    *account = (OrrShareAccount){.units = (uint64_t)spec->n_nodes * spec->gpus_per_node *
                                          spec->slices_per_gpu};
    for (uint32_t i = 0; i < spec->n_jobs; i++) {
        results[i] = (OrrShareResult){.start_ns = -1, .end_ns = -1};
        h->turns[i].state = TO_COME;
    }
    for (int64_t next; (next = next_event(h)) != INT64_MAX;) {
        book_idle(h, next);
        for (uint32_t i = 0; i < spec->n_jobs; i++) /* ends first: they make room */
            if ((h->turns[i].state == RUNNING || h->turns[i].state == DRAINING) &&
                h->turns[i].ends_ns == h->now)
                finish(h, i);
        for (uint32_t i = 0; i < spec->n_jobs; i++)
            if (h->turns[i].state == TO_COME && spec->jobs[i].submit_ns == h->now)
                enqueue(h, i);
        schedule(h);
    }
    account->makespan_ns = h->now;
    g_free(h->floor.free);
    g_free(h->turns);
    g_free(h->queue);
}
