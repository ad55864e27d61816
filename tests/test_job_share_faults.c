/* What happens to jobs of a shared cluster while they run: nodes fail, spot is taken back, the
 * store is shared, GPUs are sliced, nodes lie apart. By hand, against closed forms, and by
 * invariants. */
#include "tests/share_cases.h"

#include "sim/base/random.h"

#include <math.h>
#include <string.h>

#define MIN_NS INT64_C(60000000000)

/* Two jobs save 100 GB at once over 10 GB/s: ten seconds each alone, twenty together. */
static void test_a_store_is_shared_by_those_that_write(void **state) {
    (void)state;
    for (int n = 1; n <= 2; n++) {
        g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 4);
        s->store_bytes_per_s = 10000000000;
        for (int i = 0; i < n; i++) {
            OrrShareJob *j = submit(s, 0, 16, 2);
            j->save_ns = H, j->save_bytes = 100e9, j->limit_ns = 3 * H;
        }
        OrrShareResult r[2];
        OrrShareAccount a;
        simulate(s, r, &a);
        assert_int_equal(r[0].saves, 1); /* none at the end */
        assert_int_equal(r[0].end_ns, 2 * H + n * 10 * INT64_C(1000000000));
        assert_int_equal(r[0].spent_ns[ORR_SHARE_SAVE], n * 10 * INT64_C(1000000000));
    }
}

/* Max-min over connections with a cap: nodes at 1 GB/s, a store of 10 GB/s. One node of ten can't
 * take more than 1 GB/s; twenty nodes share the store evenly. */
static void test_a_writer_is_not_faster_than_its_cap(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 24);
    s->store_bytes_per_s = 10000000000;
    s->writer_bytes_per_s = 1000000000;
    OrrShareJob *small = submit(s, 0, 8, 2), *big;
    small->save_ns = H, small->save_bytes = 10e9, small->limit_ns = 3 * H;
    OrrShareResult r[2];
    OrrShareAccount a;
    simulate(s, r, &a);
    assert_int_equal(r[0].spent_ns[ORR_SHARE_SAVE], INT64_C(10000000000));
    big = submit(s, 0, 19 * 8, 2);
    big->save_ns = H, big->save_bytes = 190e9, big->limit_ns = 3 * H;
    simulate(s, r, &a);
    /* 0.5 GB/s a node: both take 20 s */
    assert_int_equal(r[0].spent_ns[ORR_SHARE_SAVE], INT64_C(20000000000));
    assert_int_equal(r[1].spent_ns[ORR_SHARE_SAVE], INT64_C(20000000000));
    big->writers = 1; /* a single writer: 1 GB/s, both at their cap */
    simulate(s, r, &a);
    assert_int_equal(r[0].spent_ns[ORR_SHARE_SAVE], INT64_C(10000000000));
    assert_int_equal(r[1].spent_ns[ORR_SHARE_SAVE], INT64_C(190000000000));
}

/* Written behind the work: it costs only what stands, until the next is due before the last has
 * gone. */
static void test_asynchronous_saves_cost_nothing_until_they_overtake(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 2);
    s->store_bytes_per_s = 1000000000;
    OrrShareJob *j = submit(s, 0, 16, 3);
    j->save_ns = H, j->save_bytes = 1800e9, j->is_async = true, j->limit_ns = 30 * H;
    OrrShareResult r[1];
    OrrShareAccount a;
    simulate(s, r, &a); /* half an hour each, behind */
    assert_int_equal(r[0].end_ns, 3 * H);
    j->save_bytes = 7200e9; /* two hours each: the second waits an hour, the third is not taken */
    simulate(s, r, &a);
    assert_int_equal(r[0].end_ns, 4 * H);
    assert_int_equal(r[0].spent_ns[ORR_SHARE_SAVE], H);
}

/* Draws of the seed until one has exactly one failure on a node of the only job. */
static uint64_t seed_with_one_failure(const OrrShareSpec *s, OrrShareResult *r,
                                      OrrShareAccount *a) {
    for (uint64_t seed = 0; seed < 10000; seed++) {
        OrrShareOptions options = {.seed = seed};
        simulate_with(s, &options, r, a);
        if (r->failures == 1 && a->node_failures == 1)
            return seed;
    }
    fail_msg("no seed has one failure");
    return 0;
}

static void test_a_failure_costs_detection_rework_and_restart(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 3);
    s->node_mtbf_ns = 60.0 * (double)H;
    s->repair_ns = 5 * H, s->detect_ns = 10 * MIN_NS;
    OrrShareJob *j = submit(s, 0, 16, 10);
    j->save_ns = H, j->restart_ns = 15 * MIN_NS, j->limit_ns = 100 * H;
    OrrShareResult r[1];
    OrrShareAccount a;
    seed_with_one_failure(s, r, &a);
    assert_int_equal(r->spent_ns[ORR_SHARE_DETECT], 10 * MIN_NS);
    assert_int_equal(r->spent_ns[ORR_SHARE_START], 15 * MIN_NS);
    assert_true(r->spent_ns[ORR_SHARE_REWORK] > 0 && r->spent_ns[ORR_SHARE_REWORK] < H);
    assert_int_equal(r->spent_ns[ORR_SHARE_USEFUL], 10 * H);
    assert_int_equal(r->waited_ns, 0); /* the third node takes the place of the one that failed */
    assert_int_equal(r->end_ns, 10 * H + 25 * MIN_NS + r->spent_ns[ORR_SHARE_REWORK]);
    j->gpus = 24; /* no spare: it waits until the node is back */
    seed_with_one_failure(s, r, &a);
    assert_int_equal(r->waited_ns, 5 * H - 10 * MIN_NS);
    assert_true(a.part[ORR_SHARE_DOWN] == (OrrUnitNs)8 * (5 * H - 10 * MIN_NS));
}

/* Failures of nodes are a Poisson process of rate nodes / MTBF while they are up, so of a share
 * MTBF / (MTBF + repair) of the time. */
static void test_failures_come_at_the_rate_and_nodes_are_down_by_renewal(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 50);
    s->node_mtbf_ns = 100.0 * (double)H;
    s->repair_ns = 25 * H;
    OrrShareJob *j = submit(s, 0, 8, 1);
    j->submit_ns = 2000 * H; /* nothing runs until then */
    double failures = 0, down = 0, all = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        OrrShareOptions options = {.seed = seed};
        OrrShareResult r[1];
        OrrShareAccount a;
        simulate_with(s, &options, r, &a);
        failures += (double)a.node_failures;
        down += (double)a.part[ORR_SHARE_DOWN];
        all += (double)a.units * (double)a.makespan_ns;
    }
    double expected = 20 * 50 * 2001.0 / 125; /* 16008, deviation below 0.8 % */
    assert_near(failures, expected, 0.025);
    assert_near(down / all, 0.2, 0.025);
}

/* The time to do W of work without checkpoints through failures of rate L that cost R each:
 * (1/L + R) (e^(LW) - 1) (Daly 2006, section 2, one segment). */
static void test_work_without_checkpoints_takes_as_long_as_the_formula_says(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 1);
    s->node_mtbf_ns = 10.0 * (double)H;
    s->repair_ns = 2 * H;
    submit(s, 0, 8, 10)->limit_ns = 1000 * H;
    double sum = 0, squares = 0;
    enum { N = 4000 };
    for (uint64_t seed = 0; seed < N; seed++) {
        OrrShareOptions options = {.seed = seed};
        OrrShareResult r[1];
        OrrShareAccount a;
        simulate_with(s, &options, r, &a);
        double hours = (double)r->end_ns / (double)H;
        sum += hours;
        squares += hours * hours;
    }
    double mean = sum / N, error = sqrt((squares / N - mean * mean) / N);
    double expected = (10 + 2) * (exp(1) - 1);
    if (fabs(mean - expected) > 3 * error)
        fail_msg("%.3f hours, %.3f expected, standard error %.3f", mean, expected, error);
}

static OrrShareSpec *spot_cluster(int64_t notice_ns) {
    OrrShareSpec *s = cluster(ORR_SHARE_FCFS, 4);
    s->node_class = g_strsplit("own,own,spot,spot", ",", -1);
    s->spot_classes = g_strsplit("spot", ",", -1);
    s->reclaim_mtbf_ns = 40.0 * (double)H;
    s->reclaim_notice_ns = notice_ns;
    s->reclaim_wait_ns = 3 * H;
    return s;
}

/* Saved within the notice, only the save and the restart are lost; else all since the last one. */
static void test_notice_of_a_reclaim_saves_the_work(void **state) {
    (void)state;
    for (int can = 0; can < 2; can++) {
        g_autoptr(OrrShareSpec) s = spot_cluster(2 * MIN_NS);
        OrrShareJob *j = submit(s, 0, 16, 20);
        g_free(j->selector), j->selector = g_strdup("spot");
        j->limit_ns = 1000 * H;
        j->save_takes_ns = can ? MIN_NS : 3 * MIN_NS; /* the notice is of two minutes */
        j->save_ns = 5 * H, j->restart_ns = 10 * MIN_NS;
        uint32_t reclaims = 0;
        for (uint64_t seed = 0; seed < 40; seed++) {
            OrrShareOptions options = {.seed = seed};
            OrrShareResult r[1];
            OrrShareAccount a;
            simulate_with(s, &options, r, &a);
            reclaims += r->reclaims;
            assert_int_equal(r->failures + r->preemptions, 0);
            assert_int_equal(r->spent_ns[ORR_SHARE_USEFUL], 20 * H);
            assert_true(r->spot_unit_ns == r->unit_ns);
            assert_true(a.node_reclaims == 0 || a.part[ORR_SHARE_RECLAIMED] > 0);
            if (can)
                assert_true(r->spent_ns[ORR_SHARE_REWORK] <= r->reclaims * 2 * MIN_NS);
            else if (r->reclaims == 0)
                assert_int_equal(r->spent_ns[ORR_SHARE_REWORK], 0);
        }
        assert_true(reclaims > 20);
    }
}

static void test_only_spot_is_taken_back(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = spot_cluster(0);
    OrrShareJob *j = submit(s, 0, 16, 500);
    g_free(j->selector), j->selector = g_strdup("own");
    OrrShareResult r[1];
    OrrShareAccount a;
    simulate(s, r, &a);
    assert_int_equal(r->end_ns, 500 * H);
    assert_true(a.node_reclaims > 5);
    assert_true(r->spot_unit_ns == 0);
}

/* Turns by weight: alone at full speed, two at half, four at a quarter; work is conserved. */
static void test_time_slices_are_turns_among_those_that_are_there(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 1);
    s->gpus_per_node = 1, s->slices_per_gpu = 4, s->slicing = ORR_SLICING_TIME;
    for (int i = 0; i < 2; i++) {
        OrrShareJob *j = submit(s, i, 0, 2);
        j->slices = 1, j->limit_ns = 100 * H;
    }
    OrrShareResult r[2];
    OrrShareAccount a;
    simulate(s, r, &a);
    /* 0-1 h alone; then at half speed each: the first has an hour left, until 3; the second then
     * has an hour left and is alone, until 4 */
    assert_int_equal(r[0].end_ns, 3 * H);
    assert_int_equal(r[1].end_ns, 4 * H);
    s->slice_slow_frac = 0.25; /* turns cost a quarter, but not who is alone */
    simulate(s, r, &a);
    assert_near((double)r[0].end_ns, (1 + 2.5) * (double)H, 1e-9);
    assert_near((double)r[1].end_ns, (3.5 + 1) * (double)H, 1e-9);
}

/* The user guide's own: 3g can begin at two places only, and 4g at one, so that a GPU with 3g+3g
 * has a seventh free and no place for it, and 4g+3g is full. */
static void test_mig_has_its_places(void **state) {
    (void)state;
    static const struct {
        uint32_t slices[8], n;
        bool at_once;
    } cases[] = {
        {{4, 3}, 2, true},
        {{3, 3}, 2, true},
        {{3, 4}, 2, true},
        {{3, 3, 1}, 3, false}, /* six of seven compute slices, but all memory is taken */
        {{2, 2, 2, 1}, 4, true},
        {{2, 2, 2, 2}, 4, false},
        {{4, 4}, 2, false},
        {{1, 1, 1, 1, 1, 1, 1}, 7, true},
        {{7}, 1, true},
        {{7, 1}, 2, false},
        {{3, 1, 1, 1}, 4, true},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 1);
        s->gpus_per_node = 1, s->slices_per_gpu = 7, s->slicing = ORR_SLICING_MIG;
        for (uint32_t i = 0; i < cases[c].n; i++) {
            OrrShareJob *j = submit(s, 0, 0, 1);
            j->slices = cases[c].slices[i], j->limit_ns = 100 * H;
        }
        OrrShareResult r[8];
        OrrShareAccount a;
        simulate(s, r, &a);
        int64_t last = 0;
        for (uint32_t i = 0; i < cases[c].n; i++)
            last = MAX(last, r[i].start_ns);
        if ((last == 0) != cases[c].at_once)
            fail_msg("case %u: the last starts after %.2f h", (unsigned)c,
                     (double)last / (double)H);
    }
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 1);
    s->slices_per_gpu = 7, s->slicing = ORR_SLICING_MIG;
    OrrShareJob *j = submit(s, 0, 0, 1);
    j->slices = 5;
    g_autoptr(GError) error = NULL;
    assert_false(orr_share_check(s, &error));
    assert_non_null(strstr(error->message, "1, 2, 3, 4 or 7"));
}

static int64_t step_by_spread(void *data, uint32_t job, uint32_t racks, uint32_t blocks) {
    (void)data, (void)job;
    return 1000000000 + (racks - 1) * INT64_C(250000000) + (blocks - 1) * INT64_C(500000000);
}

/* A job on two racks runs at 1 / 1.25 of the speed; what it takes longer is its spread. */
static void test_nodes_further_apart_make_steps_longer(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 4);
    submit(s, 0, 8, 4);
    submit(s, 0, 8, 10)->place = ORR_PLACE_RACK;
    OrrShareJob *j = submit(s, 1, 16, 8);
    j->step_ns = 1000000000, j->limit_ns = 100 * H;
    s->jobs[1].selector = (g_free(s->jobs[1].selector), g_strdup("b"));
    s->node_class = g_strsplit("a,a,b,b", ",", -1);
    OrrSharePricer pricer = {step_by_spread, NULL};
    OrrShareOptions options = {.pricer = &pricer};
    OrrShareResult r[3];
    OrrShareAccount a;
    simulate_with(s, &options, r, &a);
    assert_int_equal(r[2].racks, 2);
    assert_int_equal(r[2].blocks, 1);
    assert_int_equal(r[2].start_ns, H);
    assert_near((double)r[2].end_ns, (double)(1 + 10) * (double)H, 1e-9);
    assert_near((double)r[2].spent_ns[ORR_SHARE_SPREAD], 2 * (double)H, 1e-9);
    assert_int_equal(r[2].lost_ns, 0);
}

/* Jobs that differ in nothing but their order in the table, and nodes of other numbers, change
 * nothing but names. */
static void test_the_order_of_the_table_does_not_matter(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 30; n++) {
        enum { JOBS = 12 };
        OrrRandom x = orr_random(n, "permute");
        OrrShareResult r[2][JOBS];
        OrrShareAccount a[2];
        for (uint32_t turned = 0; turned < 2; turned++) {
            g_autoptr(OrrShareSpec) s = cluster((OrrSharePolicy)(n % ORR_N_SHARE_POLICIES), 6);
            s->node_mtbf_ns = 50.0 * (double)H, s->repair_ns = 2 * H, s->detect_ns = MIN_NS;
            s->store_bytes_per_s = 1000000000, s->notice_ns = 5 * MIN_NS;
            for (uint64_t i = 0; i < JOBS; i++) {
                uint64_t k = turned ? JOBS - 1 - i : i; /* no two at one time */
                OrrShareJob *j = submit(s, 0, 8 + 8 * (uint32_t)orr_random_below(x, k, 0, 3),
                                        1 + (int64_t)orr_random_below(x, k, 1, 6));
                j->submit_ns = (int64_t)orr_random_below(x, k, 2, 600) * MIN_NS + (int64_t)k;
                j->limit_ns = 50 * H + (int64_t)k;
                j->priority = (int32_t)orr_random_below(x, k, 3, 3);
                j->is_preemptible = k % 2;
                j->save_ns = H, j->save_bytes = 50e9 + 1e9 * (double)k;
                j->restart_ns = MIN_NS;
            }
            OrrShareOptions options = {.seed = n};
            simulate_with(s, &options, r[turned], &a[turned]);
        }
        assert_int_equal(a[0].makespan_ns, a[1].makespan_ns);
        for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
            assert_true(a[0].part[o] == a[1].part[o]);
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(r[0][i].end_ns, r[1][JOBS - 1 - i].end_ns);
    }
}

/* A single server with Poisson arrivals and equal jobs (M/D/1): the mean wait is
 * rho / (2 (1 - rho)) service times (Pollaczek 1930, Khinchine 1932). */
static void test_a_queue_of_equal_jobs_waits_as_md1(void **state) {
    (void)state;
    enum { JOBS = 15000 };
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 1);
    OrrRandom x = orr_random(7, "arrivals");
    double at = 0, rho = 0.6;
    for (uint64_t i = 0; i < JOBS; i++) {
        at += orr_random_exponential(x, i, 0) / rho;
        submit(s, 0, 8, 1)->submit_ns = (int64_t)(at * (double)H);
    }
    g_autofree OrrShareResult *r = g_new0(OrrShareResult, JOBS);
    OrrShareAccount a;
    simulate(s, r, &a);
    double sum = 0;
    for (int i = 0; i < JOBS; i++)
        sum += (double)r[i].waited_ns / (double)H;
    assert_near(sum / JOBS, rho / (2 * (1 - rho)), 0.05); /* 0.75 h; error 2 % at this length */
}

/* S35 of the scenarios: 6.5 failures per thousand node-days on 16,384 GPUs are one each 1.80 h; on
 * 131,072 one each 0.225 h. */
static void test_s35_rates_of_nodes_make_those_of_the_cluster(void **state) {
    (void)state;
    static const struct {
        uint32_t gpus;
        double mttf_h;
    } cases[] = {{16384, 1.80}, {131072, 0.225}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, cases[i].gpus / 8);
        s->node_mtbf_ns = 1000 * 86400e9 / 6.5;
        s->repair_ns = 1;
        int64_t hours = (int64_t)(4000 * cases[i].mttf_h);
        submit(s, hours, 8, 1)->limit_ns = 1000 * H;
        OrrShareOptions options = {.seed = i};
        OrrShareResult r[1];
        OrrShareAccount a;
        simulate_with(s, &options, r, &a);
        assert_near((double)a.makespan_ns / (double)H / (double)a.node_failures, cases[i].mttf_h,
                    0.05); /* 4,000 failures: three deviations */
    }
}

/* S31 of the scenarios: 8.03e9 parameters of 12 bytes are 96.4 GB, 9.6 s at 10 GB/s; six minutes
 * are a store of 0.27 GB/s. Four such jobs at once take four times as long. */
static void test_s31_a_store_is_as_fast_as_it_is(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 4; n *= 4) {
        g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 4);
        s->store_bytes_per_s = 10000000000;
        for (uint32_t i = 0; i < n; i++) {
            OrrShareJob *j = submit(s, 0, 8, 2);
            j->save_ns = H, j->save_bytes = 8.03e9 * 12, j->limit_ns = 3 * H;
        }
        OrrShareResult r[4];
        OrrShareAccount a;
        simulate(s, r, &a);
        assert_near((double)r[0].spent_ns[ORR_SHARE_SAVE] / 1e9, 9.636 * n, 1e-6);
        s->store_bytes_per_s = 268000000;
        simulate(s, r, &a);
        assert_near((double)r[0].spent_ns[ORR_SHARE_SAVE] / 1e9, 360.0 * n, 0.002);
    }
}

/* Whatever happens at once, all adds up, ends and repeats. */
static void test_random_faults_add_up(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 150; n++) {
        OrrRandom x = orr_random(n, "faults");
        g_autoptr(OrrShareSpec) s = spot_cluster((int64_t)(n % 3) * MIN_NS);
        s->policy = (OrrSharePolicy)(n % ORR_N_SHARE_POLICIES);
        s->slicing = (OrrSlicing)(n / 4 % ORR_N_SLICINGS);
        s->slices_per_gpu = n % 5 < 2 ? 7 : 1, s->slice_slow_frac = 0.1;
        s->node_mtbf_ns = 30.0 * (double)H, s->repair_ns = (int64_t)(n % 4) * H;
        s->detect_ns = (int64_t)(n % 2) * 10 * MIN_NS;
        s->notice_ns = (int64_t)(n % 2) * MIN_NS;
        s->store_bytes_per_s = n % 7 ? 3000000001 : 0;
        s->writer_bytes_per_s = n % 3 ? 700000003 : 0;
        static const uint32_t profiles[] = {1, 2, 3, 4, 7};
        for (uint64_t i = 0; i < 25; i++) {
            OrrShareJob *j = submit(s, (int64_t)orr_random_below(x, i, 0, 20), 1,
                                    1 + (int64_t)orr_random_below(x, i, 1, 5));
            j->gpus = 1 + (uint32_t)orr_random_below(x, i, 2, 20);
            if (s->slices_per_gpu > 1 && i % 3 == 0)
                j->gpus = 0, j->slices = profiles[orr_random_below(x, i, 3, 5)];
            j->limit_ns = 0;
            j->priority = (int32_t)orr_random_below(x, i, 5, 4);
            j->is_preemptible = i % 3 > 0;
            j->save_ns = i % 5 ? H / 2 : 0;
            j->save_takes_ns = (int64_t)orr_random_below(x, i, 6, 90) * 1000000007;
            j->save_bytes = (double)orr_random_below(x, i, 7, 1000) * 1e9;
            j->is_async = i % 2, j->restart_ns = (int64_t)(i % 3) * MIN_NS;
            j->place = j->gpus > 0 && j->gpus <= 16 ? (OrrPlace)(i % 3) : ORR_PLACE_ANY;
        }
        OrrShareOptions options = {.seed = n};
        OrrShareResult r[25], again[25];
        OrrShareAccount a, b;
        memset(&a, 0, sizeof a), memset(&b, 0, sizeof b);
        simulate_with(s, &options, r, &a);
        simulate_with(s, &options, again, &b);
        assert_int_equal(a.makespan_ns, b.makespan_ns);
        for (int i = 0; i < 25; i++) {
            assert_int_equal(r[i].end_ns, again[i].end_ns);
            assert_true(r[i].end_ns > r[i].start_ns && r[i].start_ns >= s->jobs[i].submit_ns);
            for (int o = 0; o < ORR_SHARE_DOWN; o++)
                assert_true(r[i].spent_ns[o] >= 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_store_is_shared_by_those_that_write),
        cmocka_unit_test(test_a_writer_is_not_faster_than_its_cap),
        cmocka_unit_test(test_asynchronous_saves_cost_nothing_until_they_overtake),
        cmocka_unit_test(test_a_failure_costs_detection_rework_and_restart),
        cmocka_unit_test(test_failures_come_at_the_rate_and_nodes_are_down_by_renewal),
        cmocka_unit_test(test_work_without_checkpoints_takes_as_long_as_the_formula_says),
        cmocka_unit_test(test_notice_of_a_reclaim_saves_the_work),
        cmocka_unit_test(test_only_spot_is_taken_back),
        cmocka_unit_test(test_time_slices_are_turns_among_those_that_are_there),
        cmocka_unit_test(test_mig_has_its_places),
        cmocka_unit_test(test_nodes_further_apart_make_steps_longer),
        cmocka_unit_test(test_the_order_of_the_table_does_not_matter),
        cmocka_unit_test(test_a_queue_of_equal_jobs_waits_as_md1),
        cmocka_unit_test(test_s35_rates_of_nodes_make_those_of_the_cluster),
        cmocka_unit_test(test_s31_a_store_is_as_fast_as_it_is),
        cmocka_unit_test(test_random_faults_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
