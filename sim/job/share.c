#include "sim/job/share.h"

#include "sim/base/units.h"
#include "sim/job/share_priv.h"

#include <stdlib.h>
#include <string.h>

/* Ours: a second. So many events without a checkpoint or an end, and there will be none. */
#define MOST_IN_VAIN 1000000u

const char *const orr_share_owner_names[] = {"useful",     "spread",     "rework",         "start",
                                             "checkpoint", "detect",     "down",           "away",
                                             "idle_empty", "idle_short", "idle_fragmented"};
const char *const orr_share_event_names[] = {
    "submitted", "started",     "saved",       "notice",    "preempted", "failed", "requeued",
    "ended",     "node_failed", "node_notice", "node_gone", "node_back", "span",   "levels"};

bool orr_share_is_drawn(const OrrShareSpec *s) {
    return s->node_mtbf_ns > 0 || (s->spot_classes && s->reclaim_mtbf_ns > 0);
}

static bool check_cluster(const OrrShareSpec *s, GError **error) {
    if (s->n_nodes == 0 || s->gpus_per_node == 0 || s->slices_per_gpu == 0 ||
        s->nodes_per_rack == 0 || s->racks_per_block == 0)
        return orr_fail_input(error, "the shared cluster has no nodes, GPUs, slices or racks");
    if ((uint64_t)s->n_nodes * s->gpus_per_node * s->slices_per_gpu > 1u << 27)
        return orr_fail_input(error, "the shared cluster has more than %u GPUs and slices",
                              1u << 27);
    if (s->slicing == ORR_SLICING_MIG && s->slices_per_gpu != 7 && s->slices_per_gpu != 1)
        return orr_fail_input(error, "slicing = mig: a GPU has 7 slices, not %u",
                              s->slices_per_gpu);
    return true;
}

static bool limit_fails(int64_t length_ns, GError **error) {
    g_autofree char *length = orr_units_time(length_ns);
    return orr_fail_input(error, "its limit is below the time that it takes, %s", length);
}

static bool check_job(const OrrShareSpec *s, const OrrShareJob *j, Floor *empty, GError **error) {
    if ((j->gpus > 0) == (j->slices > 0) || j->slices > s->slices_per_gpu)
        return orr_fail_input(error, "takes whole GPUs, or 1 to %u slices of one",
                              s->slices_per_gpu);
    if (j->slices > 0 && s->slices_per_gpu > 1 && s->slicing == ORR_SLICING_MIG &&
        !orr_share__mig_has(j->slices))
        return orr_fail_input(error, "MIG has no profile of %u slices; 1, 2, 3, 4 or 7 would do",
                              j->slices);
    if (j->work_ns <= 0)
        return orr_fail_input(error, "has no work to do");
    int64_t length = orr_share_length_ns(s, j, j->work_ns);
    if (j->limit_ns > 0 && j->limit_ns < length - (length >> 30)) /* rates are rounded */
        return limit_fails(length, error);
    if (orr_share__place(empty, j, NULL))
        return true;
    return orr_fail_input(error, "%u GPUs in one %s%s%s are more than the empty cluster has",
                          j->gpus,
                          j->place == ORR_PLACE_ANY ? "cluster" : orr_place_names[j->place],
                          *j->selector ? " of class " : "", j->selector);
}

bool orr_share_check(const OrrShareSpec *s, GError **error) {
    if (!check_cluster(s, error))
        return false;
    Floor empty = orr_share__floor(s);
    bool is_fine = true;
    for (uint32_t i = 0; i < s->n_jobs && is_fine; i++) {
        const OrrShareJob *j = &s->jobs[i];
        is_fine = check_job(s, j, &empty, error);
        if (!is_fine && j->line > 0)
            g_prefix_error(error, "%s:%u: job %s: ", s->table, j->line, j->name);
        else if (!is_fine)
            g_prefix_error(error, "job %s: ", j->name);
    }
    orr_share__floor_clear(&empty);
    return is_fine;
}

void orr_share_closest(const OrrShareSpec *s, const OrrShareJob *j, uint32_t *racks,
                       uint32_t *blocks) {
    uint32_t nodes = MAX(1, (j->gpus + s->gpus_per_node - 1) / s->gpus_per_node);
    *racks = (nodes + s->nodes_per_rack - 1) / s->nodes_per_rack;
    *blocks = (*racks + s->racks_per_block - 1) / s->racks_per_block;
}

void orr_share__tell(const Share *h, OrrShareEventKind kind, uint32_t job, uint32_t node) {
    if (!h->options->probe)
        return;
    OrrShareEvent e = {
        .kind = kind, .begin_ns = h->now, .now_ns = h->now, .job = job, .node = node};
    if (job != ORR_SHARE_NONE) {
        e.nodes = h->turns[job].grant.nodes;
        e.units = h->turns[job].grant.units;
        e.n_nodes = h->turns[job].grant.n;
    }
    h->options->probe->event(h->options->probe->data, &e);
}

/* Why what is free is idle. */
static OrrShareOwner why_idle(const Share *h) {
    if (h->n_queue == 0)
        return ORR_SHARE_EMPTY;
    const OrrShareJob *first = &h->spec->jobs[h->queue[0]];
    bool is_short =
        orr_share__units_of_job(h->spec, first) > orr_share__units_free(&h->floor, first);
    return is_short ? ORR_SHARE_SHORT : ORR_SHARE_FRAGMENTED;
}

/* Books what nobody holds up to @until. */
static void advance(Share *h, int64_t until) {
    int64_t levels[ORR_N_SHARE_OWNERS] = {0}, ns = until - h->now;
    if (ns == 0)
        return;
    OrrShareOwner idle = why_idle(h);
    for (uint32_t i = 0; i < h->spec->n_nodes; i++) {
        OrrShareOwner owner = idle;
        if (h->floor.is_out[i])
            owner = h->nodes[i].state == NODE_DOWN ? ORR_SHARE_DOWN : ORR_SHARE_RECLAIMED;
        levels[owner] += h->floor.free[i];
    }
    for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
        h->account->part[o] += (OrrUnitNs)levels[o] * ns;
    if (h->options->probe) {
        for (uint32_t i = 0; i < h->n_on; i++)
            levels[orr_share__owner(&h->turns[h->on[i]])] +=
                orr_share__units_of_job(h->spec, &h->spec->jobs[h->on[i]]);
        OrrShareEvent e = {.kind = ORR_SHARE_LEVELS,
                           .begin_ns = h->now,
                           .now_ns = until,
                           .job = ORR_SHARE_NONE,
                           .node = ORR_SHARE_NONE,
                           .levels = levels};
        h->options->probe->event(h->options->probe->data, &e);
    }
    h->now = until;
}

/* Jobs by submission. */
typedef struct {
    int64_t at_ns;
    uint32_t job;
} Arrival;

static int by_arrival(const void *a, const void *b) {
    const Arrival *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static Arrival *arrivals(const OrrShareSpec *s) {
    Arrival *all = g_new(Arrival, s->n_jobs + 1);
    for (uint32_t i = 0; i < s->n_jobs; i++)
        all[i] = (Arrival){s->jobs[i].submit_ns, i};
    qsort(all, s->n_jobs, sizeof *all, by_arrival);
    return all;
}

/* Runs until all jobs have ended. false: they do not. */
static bool run(Share *h) {
    const OrrShareSpec *s = h->spec;
    g_autofree Arrival *coming = arrivals(s);
    g_autofree uint32_t *due = g_new(uint32_t, s->n_jobs + 1);
    uint32_t n_come = 0;
    uint64_t before = 0;
    for (uint32_t in_vain = 0; h->n_left > 0; in_vain++) {
        if (h->n_done != before)
            in_vain = 0;
        before = h->n_done;
        int64_t next = orr_share__nodes_next(h);
        if (n_come < s->n_jobs)
            next = MIN(next, coming[n_come].at_ns);
        for (uint32_t i = 0; i < h->n_on; i++)
            next = MIN(next, h->turns[h->on[i]].next_ns);
        if (next == INT64_MAX || in_vain == MOST_IN_VAIN)
            return false;
        advance(h, next);
        uint32_t n_due = 0;
        for (uint32_t i = 0; i < h->n_on; i++)
            if (h->turns[h->on[i]].next_ns == h->now)
                due[n_due++] = h->on[i];
        for (uint32_t i = 0; i < n_due; i++) /* first, as they make room */
            if (IS_ON(h->turns[due[i]].state))
                orr_share__step(h, due[i]);
        orr_share__nodes_step(h);
        for (; n_come < s->n_jobs && coming[n_come].at_ns == h->now; n_come++) {
            orr_share__enqueue(h, coming[n_come].job);
            orr_share__tell(h, ORR_SHARE_SUBMITTED, coming[n_come].job, ORR_SHARE_NONE);
        }
        orr_share__schedule(h);
    }
    return true;
}

static void settle_results(const OrrShareSpec *s, OrrShareResult *results) {
    for (uint32_t i = 0; i < s->n_jobs; i++)
        for (int o = ORR_SHARE_REWORK; o < ORR_SHARE_DOWN; o++)
            results[i].lost_ns += results[i].spent_ns[o];
}

static void stopped(const Share *h, GError **error) {
    g_autofree char *after = orr_units_time(h->now);
    orr_fail_input(error,
                   "stopped after %s and %u events without a checkpoint or an end: %u jobs do not "
                   "come on for failures; longer times between them (mtbf) or more checkpoints "
                   "(save_every_min) would do",
                   after, MOST_IN_VAIN, h->n_left);
}

bool orr_share_simulate(const OrrShareSpec *s, const OrrShareOptions *options,
                        OrrShareResult *results, OrrShareAccount *account, GError **error) {
    Share share = {.spec = s, .options = options, .results = results, .account = account};
    Share *h = &share;
    h->floor = orr_share__floor(s);
    h->turns = g_new0(Turn, s->n_jobs + 1);
    h->queue = g_new0(uint32_t, s->n_jobs + 1);
    h->on = g_new0(uint32_t, s->n_jobs + 1);
    h->n_left = s->n_jobs;
    *account =
        (OrrShareAccount){.units = (uint64_t)s->n_nodes * s->gpus_per_node * s->slices_per_gpu};
    for (uint32_t i = 0; i < s->n_jobs; i++)
        results[i] = (OrrShareResult){.start_ns = -1, .end_ns = -1};
    orr_share__nodes_begin(h);
    bool is_done = run(h);
    account->makespan_ns = h->now;
    if (!is_done)
        stopped(h, error);
    settle_results(s, results);
    for (uint32_t i = 0; i < s->n_jobs; i++)
        orr_share__grant_clear(&h->turns[i].grant);
    orr_share__floor_clear(&h->floor);
    orr_queue_clear(&h->node_events);
    g_free(h->nodes);
    g_free(h->turns);
    g_free(h->queue);
    g_free(h->on);
    return is_done;
}
