/* In which order the members came to the meetings that cost most waiting.
 *
 * The kinds of collectives (purpose, group) are taken on which ranks waited longest in a step; of
 * each the one call, in the one group, that was waited at longest: of equals the last call, the
 * group of the smallest rank. A group that was executed once stands for several that are alike, and
 * its members for several ranks: all are told as the ranks of the job. Sends and receives are left
 * out: they have two ends. Cost: a visit of each rank, and each member of an executed group, for
 * each collective of the kinds that are told.
 */
#include "sim/api/step_priv.h"

#include <stdlib.h>

#define MAX_MEETINGS 4 /* ours: as many as one looks at */
#define MAX_ROWS 64u   /* ours: a meeting; of more members those at either end */

bool orr_step__has_arrivals(const OrrStepRun *run) {
    bool is_mean = orr_perturbs_jitter(run->perturbs) > 0 && run->folded;
    return run->perturbs->n > 0 && !is_mean && !run->request->specs;
}

typedef struct {
    int64_t at_ns;
    uint32_t rank;
} Arrival;

static int by_arrival(const void *a, const void *b) {
    const Arrival *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Of a kind of collective the one, and its group, that was waited at longest. */
typedef struct {
    const OrrStepRun *run;
    const OrrBound *bound; /* the executed one */
    uint32_t coll;         /* of the best one so far */
    OrrGroup kind;
    uint32_t size;    /* of the groups of the job */
    Arrival *members; /* [size]: of the group in hand */
    Arrival *latest;  /* [size]: of the best one so far */
    int64_t wait_ns;  /* of the best one */
} Meeting;

/* Members of group @group of the job into m->members; the sum of their waits, or -1 if not all
 * came. */
static int64_t look_at(const Meeting *m, uint32_t coll, uint32_t group, uint32_t *ranks) {
    const OrrStepRun *run = m->run;
    const int64_t *launch_ns = run->result->launch_ns + (gsize)coll * m->bound->n_ranks;
    int64_t last = -1, sum = 0;
    orr_layout_members(&run->job->layout, m->kind, group, ranks);
    for (uint32_t i = 0; i < m->size; i++) {
        uint32_t rep = run->folded ? run->folded->rep_of[ranks[i]] : ranks[i];
        m->members[i] = (Arrival){launch_ns[rep], ranks[i]};
        if (launch_ns[rep] < 0)
            return -1;
        last = MAX(last, launch_ns[rep]);
    }
    for (uint32_t i = 0; i < m->size; i++)
        sum += last - m->members[i].at_ns;
    return sum;
}

/* One group of the job for each that was executed: the first, by its smallest rank. */
static void find_group(Meeting *m, uint32_t coll) {
    const OrrStepRun *run = m->run;
    const OrrBoundGroup *g = &m->bound->groups[m->kind];
    g_autofree uint8_t *is_seen = g_new0(uint8_t, g->n_groups + 1);
    g_autofree uint32_t *ranks = g_new(uint32_t, m->size);
    for (uint32_t r = 0; r < m->bound->n_real_ranks; r++) {
        uint32_t executed = g->group_of[run->folded ? run->folded->rep_of[r] : r], position;
        if (executed == ORR_NONE || is_seen[executed])
            continue;
        is_seen[executed] = 1;
        uint32_t group = orr_layout_group_of(&run->job->layout, m->kind, r, &position);
        int64_t wait = look_at(m, coll, group, ranks);
        if (wait <= m->wait_ns)
            continue;
        m->wait_ns = wait;
        m->coll = coll;
        Arrival *swap = m->latest;
        m->latest = m->members;
        m->members = swap;
    }
}

static void add_rows(const Meeting *m, OrrRecord *record) {
    qsort(m->latest, m->size, sizeof *m->latest, by_arrival);
    OrrRecordArrival row = {
        .what = m->run->program->colls[m->coll].label, .group = m->kind, .group_size = m->size};
    for (uint32_t i = 0; i < m->size; i++) {
        if (m->size > MAX_ROWS && i >= MAX_ROWS / 2 && i < m->size - MAX_ROWS / 2)
            continue;
        row.order = i;
        row.rank = m->latest[i].rank;
        row.late_ns = m->latest[i].at_ns - m->latest[0].at_ns;
        orr_record_add_arrival(record, &row);
    }
}

/* Layers, buckets and chunks of one thing. */
static bool is_of_kind(const OrrProgram *p, uint32_t a, uint32_t b) {
    const OrrColl *x = &p->colls[a], *y = &p->colls[b];
    return x->group == y->group && x->purpose == y->purpose && x->kind == y->kind;
}

/* Of the kind of @first, which is the first of it. Whether anyone waited. */
static bool fill_meeting(const OrrStepRun *run, uint32_t first, OrrRecord *record) {
    Meeting m = {.run = run,
                 .bound = run->folded ? run->folded : run->bound,
                 .kind = (OrrGroup)run->program->colls[first].group};
    m.size = orr_layout_group_size(&run->job->layout, m.kind);
    m.members = g_new(Arrival, m.size);
    m.latest = g_new(Arrival, m.size);
    for (uint32_t i = first; i < run->program->n_colls; i++)
        if (is_of_kind(run->program, i, first) && run->result->colls[i].wait_ns > 0)
            find_group(&m, i);
    if (m.wait_ns > 0)
        add_rows(&m, record);
    g_free(m.members);
    g_free(m.latest);
    return m.wait_ns > 0;
}

/* What ranks waited on a kind in the whole step; 0 if @first is not the first of it. */
static double wait_of_kind(const OrrStepRun *run, uint32_t first) {
    double sum = 0;
    for (uint32_t i = 0; i < run->program->n_colls; i++) {
        if (!is_of_kind(run->program, i, first))
            continue;
        if (i < first)
            return 0;
        sum += run->result->colls[i].wait_ns;
    }
    return sum;
}

void orr_step__fill_arrivals(const OrrStepRun *run, OrrRecord *record) {
    uint32_t n = run->program->n_colls, n_meetings = 0;
    if (!run->result->launch_ns)
        return;
    g_autofree double *wait_ns = g_new(double, n + 1);
    for (uint32_t i = 0; i < n; i++)
        wait_ns[i] = wait_of_kind(run, i);
    while (n_meetings < MAX_MEETINGS) {
        uint32_t most = 0;
        for (uint32_t i = 1; i < n; i++)
            most = wait_ns[i] > wait_ns[most] ? i : most;
        if (n == 0 || wait_ns[most] <= 0)
            return;
        wait_ns[most] = 0;
        n_meetings += fill_meeting(run, most, record);
    }
}
