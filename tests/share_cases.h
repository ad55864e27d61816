/* Shared clusters made in memory, for the tests of sharing. */
#ifndef TESTS_SHARE_CASES_H
#define TESTS_SHARE_CASES_H

#include "tests/near.h"

#include "sim/job/share.h"

#define H INT64_C(3600000000000)

static inline OrrShareSpec *cluster(OrrSharePolicy policy, uint32_t nodes) {
    OrrShareSpec *s = orr_share_spec_new();
    s->n_nodes = nodes, s->gpus_per_node = 8;
    s->nodes_per_rack = 2, s->racks_per_block = 2;
    s->policy = policy;
    return s;
}

static inline OrrShareJob *submit(OrrShareSpec *s, int64_t at_h, uint32_t gpus, int64_t hours) {
    s->jobs = g_renew(OrrShareJob, s->jobs, s->n_jobs + 1);
    OrrShareJob *j = &s->jobs[s->n_jobs];
    *j = (OrrShareJob){.name = g_strdup_printf("job%u", s->n_jobs),
                       .job_ref = g_strdup(""),
                       .sets = g_strdup(""),
                       .submit_ns = at_h * H,
                       .work_ns = hours * H,
                       .limit_ns = hours * H,
                       .gpus = gpus,
                       .selector = g_strdup("")};
    s->n_jobs++;
    return j;
}

/* Every unit-nanosecond of the cluster, and every nanosecond of each job, is somebody's. */
static inline void adds_up(const OrrShareSpec *s, const OrrShareResult *r,
                           const OrrShareAccount *a) {
    OrrUnitNs sum = 0, held = 0;
    for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
        sum += a->part[o];
    assert_true(sum == (OrrUnitNs)a->units * a->makespan_ns);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        int64_t spent = 0;
        for (int o = 0; o < ORR_SHARE_DOWN; o++)
            spent += r[i].spent_ns[o];
        assert_int_equal(spent, r[i].ran_ns);
        assert_int_equal(r[i].ran_ns + r[i].waited_ns, r[i].end_ns - s->jobs[i].submit_ns);
        held += r[i].unit_ns;
    }
    for (int o = 0; o < ORR_SHARE_DOWN; o++)
        held -= a->part[o];
    assert_true(held == 0);
}

static inline void simulate_with(const OrrShareSpec *s, const OrrShareOptions *options,
                                 OrrShareResult *r, OrrShareAccount *a) {
    g_autoptr(GError) error = NULL;
    if (!orr_share_check(s, &error) || !orr_share_simulate(s, options, r, a, &error))
        fail_msg("%s", error->message);
    adds_up(s, r, a);
}

static inline void simulate(const OrrShareSpec *s, OrrShareResult *r, OrrShareAccount *a) {
    OrrShareOptions options = {0};
    simulate_with(s, &options, r, a);
}

#endif
