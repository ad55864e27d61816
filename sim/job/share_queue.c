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

/* The earliest time that @first has room if everything runs to its limit. @extra: as if that one
 * ran from now on too; ORR_SHARE_NONE: none. */
static int64_t reservation(const Share *h, uint32_t first, uint32_t extra) {
    const OrrShareJob *j = &h->spec->jobs[first];
    Floor f = orr_share__floor_copy(&h->floor);
    uint32_t n, i = 0, units = orr_share__units_of_job(h->spec, j);
    g_autofree Return *all = returns(h, &n);
    Grant grant = {0};
    int64_t at = h->now;
    if (extra != ORR_SHARE_NONE) {
        const OrrShareJob *x = &h->spec->jobs[extra];
        orr_share__place(&f, x, &grant);
        all[n++] = (Return){h->now + orr_share__limit_ns(h->spec, x), extra, ORR_SHARE_NONE};
    }
    qsort(all, n, sizeof *all, by_time);
    while (orr_share__units_free(&f, j) < units || !orr_share__place(&f, j, NULL)) {
        if (i == n) {
            at = INT64_MAX;
            break;
        }
        at = all[i].at_ns;
        if (all[i].node != ORR_SHARE_NONE)
            f.is_out[all[i].node] = false;
        else
            orr_share__give(&f, all[i].job == extra ? &grant : &h->turns[all[i].job].grant);
        i++;
    }
    orr_share__grant_clear(&grant);
    orr_share__floor_clear(&f);
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

static void backfill(Share *h) {
    int64_t reserved_ns = reservation(h, h->queue[0], ORR_SHARE_NONE);
    for (uint32_t i = 1; i < h->n_queue;) {
        uint32_t job = h->queue[i];
        const OrrShareJob *j = &h->spec->jobs[job];
        bool may = orr_share__place(&h->floor, j, NULL) &&
                   (h->now + orr_share__limit_ns(h->spec, j) <= reserved_ns ||
                    reservation(h, h->queue[0], job) <= reserved_ns);
        if (may)
            orr_share__start(h, i);
        else
            i++;
    }
}

static bool first_fits(Share *h) {
    return h->n_queue > 0 && orr_share__place(&h->floor, &h->spec->jobs[h->queue[0]], NULL);
}

void orr_share__schedule(Share *h) {
    do {
        while (first_fits(h))
            orr_share__start(h, 0);
        if (h->n_queue == 0)
            return;
    } while (h->spec->policy == ORR_SHARE_PREEMPT && make_room(h, h->queue[0]) && first_fits(h));
    if (h->spec->policy != ORR_SHARE_FCFS)
        backfill(h);
}
