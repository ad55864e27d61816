/* The queue: whose turn it is, who may go ahead, who has to make room. */
#include "sim/job/share_priv.h"

#include <stdlib.h>
#include <string.h>

/* Whether job @a stands before @b in the queue. */
static bool is_before(const Share *h, uint32_t a, uint32_t b) {
    const OrrShareJob *x = &h->spec->jobs[a], *y = &h->spec->jobs[b];
    if (h->spec->policy >= ORR_SHARE_PRIORITY && x->priority != y->priority)
        return x->priority > y->priority;
    if (x->submit_ns != y->submit_ns)
        return x->submit_ns < y->submit_ns;
    return a < b;
}

void orr_share__enqueue(Share *h, uint32_t job) {
    uint32_t at = h->n_queue++;
    for (; at > 0 && is_before(h, job, h->queue[at - 1]); at--)
        h->queue[at] = h->queue[at - 1];
    h->queue[at] = job;
    h->turns[job].state = WAITING;
    h->has_changed = true;
    h->turns[job].queued_ns = h->now;
}

/* Something that will be free again: units of a job, or a node that is out. */
typedef struct {
    int64_t at_ns;
    uint32_t job, node;
} Return;

static int by_time(const void *a, const void *b) {
    const Return *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static Return *returns(const Share *h, uint32_t *n) {
    Return *all = g_new(Return, h->n_on + h->spec->n_nodes + 2);
    *n = 0;
    for (uint32_t i = 0; i < h->n_on; i++)
        all[(*n)++] = (Return){orr_share__promised_ns(h, h->on[i]), h->on[i], ORR_SHARE_NONE};
    for (uint32_t i = 0; i < h->spec->n_nodes; i++)
        if (h->floor.is_out[i])
            all[(*n)++] = (Return){h->nodes[i].back_ns, ORR_SHARE_NONE, i};
    return all;
}

/* Units come back to @f; returns how many at most. */
static uint64_t give_back(const Share *h, Floor *f, const Return *r) {
    if (r->node != ORR_SHARE_NONE) {
        f->is_out[r->node] = false;
        return f->free[r->node];
    }
    orr_share__give(f, &h->turns[r->job].grant);
    return orr_share__units_of_job(h->spec, &h->spec->jobs[r->job]);
}

/* The earliest time that @first has room if everything runs to its limit, and what is free by
 * then, in @then; INT64_MAX: never. */
static int64_t reservation(const Share *h, uint32_t first, Floor *then) {
    const OrrShareJob *j = &h->spec->jobs[first];
    *then = orr_share__floor_copy(&h->floor);
    uint32_t n, i = 0;
    uint64_t units = orr_share__units_of_job(h->spec, j), left = orr_share__units_free(then, j);
    g_autofree Return *all = returns(h, &n);
    qsort(all, n, sizeof *all, by_time);
    int64_t at = h->now;
    while (left < units || !orr_share__place(then, j, NULL)) {
        if (i == n)
            return INT64_MAX;
        at = all[i].at_ns;
        left += give_back(h, then, &all[i++]);
    }
    while (i < n && all[i].at_ns <= at)
        give_back(h, then, &all[i++]);
    return at;
}

/* The next one to go: the lowest and youngest of those that may be stopped for @first. */
static uint32_t victim_of(const Share *h, uint32_t first, const bool *is_chosen) {
    const OrrShareJob *jobs = h->spec->jobs;
    uint32_t victim = ORR_SHARE_NONE;
    for (uint32_t i = 0; i < h->n_on; i++) {
        uint32_t job = h->on[i];
        if (h->turns[job].leaves_ns != INT64_MAX || is_chosen[job] || !jobs[job].is_preemptible ||
            jobs[job].priority >= jobs[first].priority)
            continue;
        if (victim == ORR_SHARE_NONE || jobs[job].priority < jobs[victim].priority ||
            (jobs[job].priority == jobs[victim].priority &&
             h->turns[job].began_ns > h->turns[victim].began_ns))
            victim = job;
    }
    return victim;
}

/* Tells lower jobs to leave that would make room for @first. false: all of them are not enough, or
 * enough is being freed already. */
static bool make_room(Share *h, uint32_t first) {
    const OrrShareSpec *s = h->spec;
    Floor f = orr_share__floor_copy(&h->floor);
    g_autofree bool *is_chosen = g_new0(bool, s->n_jobs + 1);
    for (uint32_t i = 0; i < h->n_on; i++)
        if (h->turns[h->on[i]].leaves_ns != INT64_MAX)
            orr_share__give(&f, &h->turns[h->on[i]].grant);
    bool was_enough = orr_share__place(&f, &s->jobs[first], NULL), is_enough = was_enough;
    while (!is_enough) {
        uint32_t victim = victim_of(h, first, is_chosen);
        if (victim == ORR_SHARE_NONE)
            break;
        is_chosen[victim] = true;
        orr_share__give(&f, &h->turns[victim].grant);
        is_enough = orr_share__place(&f, &s->jobs[first], NULL);
    }
    orr_share__floor_clear(&f);
    for (uint32_t i = 0; is_enough && i < s->n_jobs; i++)
        if (is_chosen[i])
            orr_share__notice(h, i, s->notice_ns, ORR_SHARE_PREEMPTED);
    return is_enough && !was_enough;
}

static uint64_t units_free(const Share *h) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->spec->n_nodes; i++)
        sum += h->floor.is_out[i] ? 0 : h->floor.free[i];
    return sum;
}

/* Whether @job may go ahead: it is gone by the time of the first, or leaves it room then. */
static bool may_go(Share *h, uint32_t job, int64_t reserved_ns, Floor *then) {
    const OrrShareJob *j = &h->spec->jobs[job], *first = &h->spec->jobs[h->queue[0]];
    Grant grant;
    if (!orr_share__place(&h->floor, j, &grant))
        return false;
    bool is_gone = h->now + orr_share__limit_ns(h->spec, j) <= reserved_ns, may = is_gone;
    if (!is_gone) {
        orr_share__take(then, &grant);
        may = orr_share__place(then, first, NULL);
        if (!may)
            orr_share__give(then, &grant);
    }
    orr_share__give(&h->floor, &grant);
    orr_share__grant_clear(&grant);
    return may;
}

static void backfill(Share *h) {
    uint64_t left = units_free(h);
    if (h->n_queue < 2 || left == 0)
        return;
    Floor then;
    int64_t reserved_ns = reservation(h, h->queue[0], &then);
    for (uint32_t i = 1; i < h->n_queue && left > 0;) {
        uint64_t units = orr_share__units_of_job(h->spec, &h->spec->jobs[h->queue[i]]);
        if (units > left || !may_go(h, h->queue[i], reserved_ns, &then)) {
            i++;
            continue;
        }
        orr_share__start(h, i);
        left -= units;
    }
    orr_share__floor_clear(&then);
}

static bool first_fits(Share *h) {
    return h->n_queue > 0 && orr_share__place(&h->floor, &h->spec->jobs[h->queue[0]], NULL);
}

void orr_share__schedule(Share *h) {
    if (!h->has_changed)
        return; /* time alone makes nobody fit */
    h->has_changed = false;
    do {
        while (first_fits(h))
            orr_share__start(h, 0);
        if (h->n_queue == 0)
            return;
    } while (h->spec->policy == ORR_SHARE_PREEMPT && make_room(h, h->queue[0]) && first_fits(h));
    if (h->spec->policy != ORR_SHARE_FCFS)
        backfill(h);
}
