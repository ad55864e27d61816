/* What a job on the cluster is doing: starting, running, saving, hanging, leaving. Its work goes at
 * a rate; its checkpoints go over the store; every nanosecond is booked once it is known whether
 * its work was kept. */
#include "sim/job/share_priv.h"

#include <math.h>
#include <string.h>

/* Of work in slices, where @used of its GPU are in use; ORR_RATE_ONE: as fast as the whole GPU. */
static uint64_t slice_rate(const OrrShareSpec *s, const OrrShareJob *j, uint32_t used) {
    if (j->gpus > 0 || j->slices >= used)
        return ORR_RATE_ONE;
    double slow = (double)used / j->slices * (1 + s->slice_slow_frac);
    return (uint64_t)llround((double)ORR_RATE_ONE / slow);
}

int64_t orr_share_length_ns(const OrrShareSpec *s, const OrrShareJob *j, int64_t work_ns) {
    uint64_t rate =
        slice_rate(s, j, s->slicing == ORR_SLICING_TIME ? j->slices : s->slices_per_gpu);
    return (int64_t)(((__int128)work_ns * ORR_RATE_ONE + rate - 1) / rate);
}

static void set_rate(Share *h, uint32_t job) {
    const OrrShareSpec *s = h->spec;
    Turn *t = &h->turns[job];
    bool takes_turns = s->slicing == ORR_SLICING_TIME && h->floor.used && t->grant.n_gpus == 1;
    uint32_t used = takes_turns ? h->floor.used[t->grant.gpus[0]] : s->slices_per_gpu;
    uint64_t slice = slice_rate(s, &s->jobs[job], used);
    t->rate_q = MAX(1, (uint64_t)((__int128)t->place_q * slice / ORR_RATE_ONE));
}

/* Who takes turns on a GPU is faster or slower when the others there change. */
static void change_rates(Share *h, uint32_t gpu) {
    for (uint32_t i = 0; i < h->n_on; i++) {
        Turn *t = &h->turns[h->on[i]];
        if (h->spec->jobs[h->on[i]].gpus > 0 || t->grant.gpus[0] != gpu)
            continue;
        orr_share__settle(h, h->on[i]);
        set_rate(h, h->on[i]);
        orr_share__plan(h, h->on[i]);
    }
}

static bool takes_turns(const Share *h, uint32_t job) {
    return h->spec->slicing == ORR_SLICING_TIME && h->floor.used && h->spec->jobs[job].gpus == 0;
}

static void book(Share *h, uint32_t job, OrrShareOwner owner, int64_t ns) {
    h->results[job].spent_ns[owner] += ns;
    h->account->part[owner] +=
        (OrrUnitNs)ns * orr_share__units_of_job(h->spec, &h->spec->jobs[job]);
}

/* Time run whose work is kept. */
static void book_kept(Share *h, uint32_t job, int64_t ns) {
    int64_t useful = (int64_t)((__int128)ns * h->turns[job].place_q / ORR_RATE_ONE);
    book(h, job, ORR_SHARE_USEFUL, MIN(useful, ns));
    book(h, job, ORR_SHARE_SPREAD, ns - MIN(useful, ns));
}

static OrrShareOwner owner_of(State state) {
    switch (state) {
    case STARTING:
    case LOADING:
        return ORR_SHARE_START;
    case SAVING:
    case WRITING:
    case BLOCKED:
        return ORR_SHARE_SAVE;
    case HUNG:
        return ORR_SHARE_DETECT;
    case RUNNING:
    case TO_COME:
    case WAITING:
    case ENDED:
        break;
    }
    return ORR_SHARE_USEFUL;
}

OrrShareOwner orr_share__owner(const Turn *turn) {
    return owner_of(turn->state);
}

void orr_share__settle(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    OrrShareResult *r = &h->results[job];
    int64_t ns = h->now - t->settled_ns;
    if (ns == 0 || !IS_ON(t->state))
        return;
    t->settled_ns = h->now;
    r->ran_ns += ns;
    for (uint32_t i = 0; i < t->grant.n; i++) {
        r->unit_ns += (OrrUnitNs)ns * t->grant.units[i];
        if (orr_share_node_is_spot(h->spec, t->grant.nodes[i]))
            r->spot_unit_ns += (OrrUnitNs)ns * t->grant.units[i];
    }
    if (t->is_flowing) {
        __int128 moved = (__int128)t->bytes_per_s * ns / 1000000000;
        t->left_bytes = moved >= t->left_bytes ? 0 : t->left_bytes - (int64_t)moved;
    }
    if (t->state != RUNNING) {
        book(h, job, owner_of(t->state), ns);
        return;
    }
    int64_t more = (int64_t)((__int128)ns * t->rate_q / ORR_RATE_ONE);
    t->at_ns = MIN(t->at_ns + more, h->spec->jobs[job].work_ns);
    t->run_ns += ns;
}

/* When work that is @work_ns ahead of what is settled is done; at once, if it stands. */
static int64_t done_ns(const Share *h, const Turn *t, int64_t work_ns) {
    int64_t from_ns = t->state == RUNNING ? t->settled_ns : h->now;
    __int128 ns = ((__int128)work_ns * ORR_RATE_ONE + t->rate_q - 1) / t->rate_q + from_ns;
    return (int64_t)MIN(ns, (__int128)INT64_MAX);
}

void orr_share__plan(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    t->next_ns = t->leaves_ns;
    if (t->is_flowing) {
        __int128 ns = ((__int128)t->left_bytes * 1000000000 + t->bytes_per_s - 1) / t->bytes_per_s;
        t->next_ns = (int64_t)MIN((__int128)t->next_ns, ns + h->now);
    }
    if (t->state == STARTING || t->state == SAVING || t->state == HUNG)
        t->next_ns = MIN(t->next_ns, t->until_ns);
    if (t->state == RUNNING) {
        int64_t to = MIN(h->spec->jobs[job].work_ns, t->due_ns);
        t->next_ns = MIN(t->next_ns, done_ns(h, t, to - t->at_ns));
    }
}

int64_t orr_share__promised_ns(const Share *h, uint32_t job) {
    const Turn *t = &h->turns[job];
    const OrrShareJob *j = &h->spec->jobs[job];
    if (t->leaves_ns != INT64_MAX)
        return t->leaves_ns;
    int64_t limit = orr_share__limit_ns(h->spec, j);
    return MAX(t->began_ns + limit, done_ns(h, t, j->work_ns - t->at_ns));
}

int64_t orr_share__limit_ns(const OrrShareSpec *s, const OrrShareJob *j) {
    return j->limit_ns > 0 ? j->limit_ns : 2 * orr_share_length_ns(s, j, j->work_ns);
}

static void go(Share *h, uint32_t job, State state) {
    Turn *t = &h->turns[job];
    if (h->options->probe && IS_ON(t->state) && t->since_ns < h->now) {
        OrrShareEvent e = {.kind = ORR_SHARE_SPAN,
                           .begin_ns = t->since_ns,
                           .now_ns = h->now,
                           .job = job,
                           .node = ORR_SHARE_NONE,
                           .owner = owner_of(t->state),
                           .nodes = t->grant.nodes,
                           .units = t->grant.units,
                           .n_nodes = t->grant.n};
        h->options->probe->event(h->options->probe->data, &e);
    }
    t->state = state;
    t->since_ns = h->now;
}

static void release(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    uint32_t i = 0;
    while (h->on[i] != job)
        i++;
    memmove(h->on + i, h->on + i + 1, (--h->n_on - i) * sizeof *h->on);
    orr_share__give(&h->floor, &t->grant);
    h->has_changed = true;
    if (takes_turns(h, job))
        change_rates(h, t->grant.gpus[0]);
    orr_share__grant_clear(&t->grant);
}

static void stop_flow(Share *h, uint32_t job) {
    if (h->turns[job].is_flowing)
        orr_share__flow(h, job, false);
}

static void lose_work(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    book(h, job, ORR_SHARE_REWORK, t->sealed_ns + t->run_ns);
    t->sealed_ns = t->run_ns = 0;
    t->at_ns = t->saved_ns;
}

void orr_share__leave(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    OrrShareResult *r = &h->results[job];
    orr_share__settle(h, job);
    stop_flow(h, job);
    lose_work(h, job);
    if (t->leave == ORR_SHARE_PREEMPTED)
        r->preemptions++;
    else if (t->leave == ORR_SHARE_NODE_RECLAIMED)
        r->reclaims++;
    go(h, job, WAITING);
    if (t->leave != ORR_SHARE_FAILED)
        orr_share__tell(h, ORR_SHARE_PREEMPTED, job, ORR_SHARE_NONE);
    release(h, job);
    orr_share__enqueue(h, job);
    orr_share__tell(h, ORR_SHARE_REQUEUED, job, ORR_SHARE_NONE);
}

static void finish(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    stop_flow(h, job);
    book_kept(h, job, t->sealed_ns + t->run_ns);
    h->results[job].end_ns = h->now;
    go(h, job, ENDED);
    release(h, job);
    h->n_left--;
    h->n_done++;
    orr_share__tell(h, ORR_SHARE_ENDED, job, ORR_SHARE_NONE);
}

/* The checkpoint is whole. true: the job has left with it. */
static bool saved(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    t->saved_ns = t->captured_ns;
    book_kept(h, job, t->sealed_ns);
    t->sealed_ns = 0;
    h->results[job].saves++;
    h->n_done++;
    orr_share__tell(h, ORR_SHARE_SAVED, job, ORR_SHARE_NONE);
    if (t->is_last_save && t->state != BLOCKED) {
        orr_share__leave(h, job);
        return true;
    }
    if (t->state != RUNNING && t->state != BLOCKED)
        go(h, job, RUNNING);
    return false;
}

/* Behind the part that takes a fixed time. */
static bool write_out(Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    if (orr_share__save_alone_ns(h, job) == j->save_takes_ns)
        return saved(h, job);
    go(h, job, j->is_async && !t->is_last_save ? RUNNING : WRITING);
    t->left_bytes = (int64_t)j->save_bytes;
    orr_share__flow(h, job, true);
    return false;
}

static bool begin_save(Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    t->captured_ns = t->at_ns;
    t->due_ns = j->save_ns > 0 ? t->at_ns + j->save_ns : INT64_MAX;
    t->sealed_ns += t->run_ns;
    t->run_ns = 0;
    go(h, job, SAVING);
    t->until_ns = h->now + j->save_takes_ns;
    return j->save_takes_ns == 0 && write_out(h, job);
}

/* Behind what starting takes. */
static void read_in(Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    bool reads = t->saved_ns > 0 && orr_share__save_alone_ns(h, job) > j->save_takes_ns;
    go(h, job, reads ? LOADING : RUNNING);
    t->left_bytes = (int64_t)j->save_bytes;
    if (reads)
        orr_share__flow(h, job, true);
}

/* The bytes have arrived. true: the job has left. */
static bool arrived(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    orr_share__flow(h, job, false);
    if (t->state == LOADING) {
        go(h, job, RUNNING);
        return false;
    }
    return saved(h, job) || (t->state == BLOCKED && begin_save(h, job));
}

/* One thing that is due now. @is_done: nothing is. true: the job has left or ended. */
static bool step_once(Share *h, uint32_t job, bool *is_done) {
    Turn *t = &h->turns[job];
    if (t->is_flowing && t->left_bytes == 0)
        return arrived(h, job);
    if (t->state == STARTING && t->until_ns <= h->now) {
        read_in(h, job);
        return false;
    }
    if (t->state == SAVING && t->until_ns <= h->now)
        return write_out(h, job);
    if (t->state == RUNNING && t->at_ns >= h->spec->jobs[job].work_ns) {
        finish(h, job);
        return true;
    }
    if (t->leaves_ns <= h->now || (t->state == HUNG && t->until_ns <= h->now)) {
        orr_share__leave(h, job);
        return true;
    }
    if (t->state == RUNNING && t->at_ns >= t->due_ns) {
        if (!t->is_flowing)
            return begin_save(h, job);
        go(h, job, BLOCKED);
    }
    *is_done = true;
    return false;
}

void orr_share__step(Share *h, uint32_t job) {
    orr_share__settle(h, job);
    for (bool is_done = false; !is_done;)
        if (step_once(h, job, &is_done))
            return;
    orr_share__plan(h, job);
}

static void choose_place(Share *h, uint32_t job) {
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    OrrShareResult *r = &h->results[job];
    const OrrSharePricer *p = h->options->pricer;
    bool has_room = orr_share__place(&h->floor, j, &t->grant);
    g_assert(has_room);
    orr_share__grant_span(h->spec, &t->grant, &r->racks, &r->blocks);
    t->place_q = ORR_RATE_ONE;
    if (!p || j->step_ns == 0)
        return;
    int64_t step_ns = p->step_ns(p->data, job, r->racks, r->blocks);
    t->place_q = (uint64_t)((__int128)ORR_RATE_ONE * j->step_ns / step_ns);
}

void orr_share__start(Share *h, uint32_t place_in_queue) {
    uint32_t job = h->queue[place_in_queue], at = h->n_on++;
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    OrrShareResult *r = &h->results[job];
    memmove(h->queue + place_in_queue, h->queue + place_in_queue + 1,
            (--h->n_queue - place_in_queue) * sizeof *h->queue);
    for (; at > 0 && h->on[at - 1] > job; at--)
        h->on[at] = h->on[at - 1];
    h->on[at] = job;
    choose_place(h, job);
    bool is_again = r->start_ns >= 0;
    t->began_ns = t->settled_ns = t->since_ns = h->now;
    t->leaves_ns = INT64_MAX;
    t->is_last_save = false;
    t->due_ns = j->save_ns > 0 ? t->saved_ns + j->save_ns : INT64_MAX;
    r->waited_ns += h->now - t->queued_ns;
    if (!is_again)
        r->start_ns = h->now;
    t->state = STARTING;
    t->until_ns = h->now + (is_again ? j->restart_ns : 0);
    set_rate(h, job);
    orr_share__tell(h, ORR_SHARE_STARTED, job, ORR_SHARE_NONE);
    if (takes_turns(h, job))
        change_rates(h, t->grant.gpus[0]);
    orr_share__step(h, job);
}

/* Whether it is over before the notice is. */
static bool ends_anyway(const Share *h, uint32_t job) {
    const Turn *t = &h->turns[job];
    int64_t work = h->spec->jobs[job].work_ns;
    return t->state == RUNNING && t->due_ns >= work &&
           done_ns(h, t, work - t->at_ns) <= t->leaves_ns;
}

void orr_share__notice(Share *h, uint32_t job, int64_t notice_ns, uint32_t leave) {
    const OrrShareJob *j = &h->spec->jobs[job];
    Turn *t = &h->turns[job];
    if (t->leaves_ns <= h->now + notice_ns)
        return;
    orr_share__settle(h, job);
    bool was_told = t->leaves_ns != INT64_MAX;
    t->leaves_ns = h->now + notice_ns;
    t->leave = leave;
    orr_share__tell(h, ORR_SHARE_NOTICE, job, ORR_SHARE_NONE);
    bool can_save = j->save_ns > 0 || j->save_takes_ns > 0 || j->save_bytes > 0;
    can_save = can_save && orr_share__save_alone_ns(h, job) <= notice_ns;
    if (t->state == STARTING || t->state == LOADING || t->state == HUNG)
        t->leaves_ns = h->now; /* nothing is lost */
    else if (can_save && !was_told && !ends_anyway(h, job)) {
        t->is_last_save = true;
        if (t->state == RUNNING && t->is_flowing)
            go(h, job, BLOCKED);
        else if (t->state == RUNNING && begin_save(h, job))
            return;
    }
    orr_share__step(h, job);
}

void orr_share__fail(Share *h, uint32_t job) {
    Turn *t = &h->turns[job];
    if (t->state == HUNG)
        return;
    orr_share__settle(h, job);
    stop_flow(h, job);
    lose_work(h, job);
    h->results[job].failures++;
    t->leave = ORR_SHARE_FAILED;
    t->is_last_save = false;
    orr_share__tell(h, ORR_SHARE_FAILED, job, ORR_SHARE_NONE);
    go(h, job, HUNG);
    t->until_ns = h->now + h->spec->detect_ns;
    orr_share__step(h, job);
}
