/* Detailed collectives: closed forms on idle networks, the two tiers against each other, and a
 * reference simulator (all messages in a list, rates from nothing after every change) on small
 * networks where flows collide. */
#include "sim/collective/place.h"
#include "sim/detail/detail_priv.h"
#include "tests/naive_fluid.h"
#include "tests/near.h"
#include "topologies/loader.h"

#include <string.h>

typedef struct {
    OrrFlow flow;
    OrrUse uses[64];
    int64_t hop_ns, gap_ns; /* gap: after the one before of the same sender has left */
    uint32_t before, need;  /* messages, or ORR_NONE: its sender's last, whose arrival it needs */
    OrrWide left;
    int64_t ready_ns, end_ns; /* INT64_MAX: not yet known */
    bool is_on;
} Message;

typedef struct {
    Message *m;
    uint32_t n;
    uint64_t *capacity;
    uint32_t n_links;
    int64_t start_ns;
} World;

static OrrCluster *cluster(const char *ref, const char *const *sets) {
    OrrTopologySet list[4];
    OrrTopologyOptions options = {.sets = list};
    for (; sets && sets[2 * options.n_sets]; options.n_sets++)
        list[options.n_sets] =
            (OrrTopologySet){"cluster", sets[2 * options.n_sets], sets[2 * options.n_sets + 1]};
    GError *error = NULL;
    OrrCluster *c = orr_topology_cluster(ref, &options, &error);
    if (!c)
        fail_msg("%s", error->message);
    return c;
}

static OrrNcclForce force_of(OrrAlgo algo) {
    return (OrrNcclForce){.algo = algo, .proto = ORR_N_PROTOS};
}

static OrrDetailResult run(const OrrDetailCase *c) {
    OrrDetailResult r;
    GError *error = NULL;
    if (!orr_detail_run(c, &r, &error))
        fail_msg("%s", error->message);
    return r;
}

/* What the plan says where the links themselves, and no even share of the fabric, set the rate. */
static OrrCollPlan open_plan(const OrrDetailCase *c) {
    OrrCommPlace place;
    g_autofree uint32_t *gpus = g_new(uint32_t, c->n_ranks);
    for (uint32_t r = 0; r < c->n_ranks; r++)
        gpus[r] = r;
    orr_comm_place_from_cluster(c->cluster, gpus, c->n_ranks, &place);
    OrrNcclForce force = c->force ? *c->force : force_of(ORR_N_ALGOS);
    force.proto = run(c).plan.proto;
    place.fabric_bytes_per_s = 0;
    OrrCollPlan plan;
    assert_true(orr_collective_plan(c->kind, c->bytes, c->dtype, &place, &force, &plan, NULL));
    return plan;
}

static int64_t hops_ns(const OrrCollPlan *p, uint32_t n, double hop_ns, int64_t bytes,
                       double bytes_per_s) {
    (void)p;
    return n * ((int64_t)ceil(hop_ns) +
                orr_detail__transfer_ns((uint64_t)bytes, (uint64_t)bytes_per_s));
}

static void test_a_ring_in_one_domain_takes_hops_times_latency_and_chunk(void **state) {
    (void)state;
    static const OrrCollective kinds[] = {ORR_ALL_REDUCE, ORR_ALL_GATHER, ORR_REDUCE_SCATTER};
    OrrNcclForce force = force_of(ORR_ALGO_RING);
    for (uint32_t n = 2; n <= 8; n++)
        for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++)
            for (int64_t bytes = 1024; bytes <= INT64_C(1) << 32; bytes *= 16) {
                g_autoptr(OrrCluster) cl = cluster("h100-ib:8", NULL);
                OrrDetailCase c = {cl, n, kinds[k], ORR_BF16, bytes, &force, false};
                OrrDetailResult r = run(&c);
                uint32_t hops = (kinds[k] == ORR_ALL_REDUCE ? 2 : 1) * (n - 1);
                int64_t want = (int64_t)ceil(r.plan.start_ns) +
                               hops_ns(&r.plan, hops, r.plan.hop_ns, (bytes + n - 1) / n,
                                       r.plan.inside_bytes_per_s);
                assert_int_equal(r.time_ns, want);
                assert_int_equal(r.n_flows, (uint64_t)hops * n);
                /* each hop and chunk is rounded up */
                int64_t one = orr_collective_ns(&r.plan, bytes);
                assert_in_range(r.time_ns, one - 2, one + 3 * hops + 1);
            }
}

static void test_a_ring_of_lone_gpus_is_the_plan_over_the_network(void **state) {
    (void)state;
    OrrNcclForce force = force_of(ORR_ALGO_RING);
    g_autoptr(OrrCluster) cl = cluster("fat_tree:16 node:1 gpu:h100", NULL);
    OrrDetailCase c = {cl, 16, ORR_ALL_REDUCE, ORR_BF16, 64 << 20, &force, false};
    OrrDetailResult r = run(&c);
    double hop = r.plan.net_hop_ns + orr_cluster_route_latency_ns(cl, 0, 1);
    int64_t want = (int64_t)ceil(r.plan.start_ns) +
                   hops_ns(&r.plan, 30, hop, (64 << 20) / 16, r.plan.net_bytes_per_s);
    assert_int_equal(r.time_ns, want);
    assert_near((double)r.time_ns, (double)orr_collective_ns(&r.plan, 64 << 20), 1e-5);
}

static void test_a_hierarchical_ring_is_its_three_phases(void **state) {
    (void)state;
    OrrNcclForce force = force_of(ORR_ALGO_HIERARCHICAL);
    g_autoptr(OrrCluster) cl = cluster("h100-ib:128", NULL); /* one leaf a rail: equal latencies */
    int64_t bytes = 128 << 20;
    OrrDetailCase c = {cl, 128, ORR_ALL_REDUCE, ORR_BF16, bytes, &force, false};
    OrrDetailResult r = run(&c);
    double net_hop = r.plan.net_hop_ns + orr_cluster_route_latency_ns(cl, 0, 8);
    int64_t want = (int64_t)ceil(r.plan.start_ns) +
                   hops_ns(&r.plan, 14, r.plan.hop_ns, bytes / 8, r.plan.inside_bytes_per_s) +
                   hops_ns(&r.plan, 30, net_hop, bytes / 128, r.plan.net_bytes_per_s);
    assert_int_equal(r.time_ns, want);
    assert_int_equal(r.n_flows, 128 * (14 + 30));
    assert_int_equal(r.n_shared, 0);
}

static void test_an_even_all_to_all_is_the_plan(void **state) {
    (void)state;
    for (uint32_t n = 8; n <= 64; n *= 2) {
        g_autoptr(OrrCluster) cl = cluster("h100-ib:64", NULL);
        for (int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 32) {
            OrrDetailCase c = {cl, n, ORR_ALL_TO_ALL, ORR_BF16, bytes, NULL, false};
            OrrDetailResult r = run(&c);
            int64_t one = orr_collective_ns(&r.plan, bytes);
            assert_int_equal(r.n_flows, (uint64_t)n * (n - 1));
            /* rounded up: two a message; and the latency is a route's, not the mean of a ring */
            assert_in_range(r.time_ns, one - 2, one + 2 * n + 700);
        }
    }
}

static void test_adding_up_and_the_event_queue_agree(void **state) {
    (void)state;
    static const char *const refs[] = {"h100-ib:24", "meta-24k-roce:48", "gb200-nvl72-ib:144",
                                       "fat_tree:12 node:4 gpu:a100"};
    for (size_t i = 0; i < G_N_ELEMENTS(refs); i++) {
        g_autoptr(OrrCluster) cl = cluster(refs[i], NULL);
        for (int hier = 0; hier < 2; hier++) {
            OrrNcclForce force = force_of(hier ? ORR_ALGO_HIERARCHICAL : ORR_ALGO_RING);
            OrrDetailCase c = {
                cl, orr_cluster_spec(cl)->n_gpus, ORR_ALL_REDUCE, ORR_BF16, 1000003, &force, false};
            OrrDetailResult sums = run(&c);
            c.is_evented = true;
            OrrDetailResult events = run(&c);
            assert_true(sums.n_events == 0 && events.n_events > 0);
            assert_int_equal(sums.time_ns, events.time_ns);
            assert_int_equal(sums.n_flows, events.n_flows);
        }
    }
}

/* The reference simulator. */
static void find_ready(World *w, Message *m) {
    int64_t ready = w->start_ns;
    if (m->before != ORR_NONE) {
        if (w->m[m->before].end_ns == INT64_MAX)
            return;
        ready = MAX(ready, w->m[m->before].end_ns + m->gap_ns);
    }
    if (m->need != ORR_NONE) {
        if (w->m[m->need].end_ns == INT64_MAX)
            return;
        ready = MAX(ready, w->m[m->need].end_ns + w->m[m->need].hop_ns);
    }
    m->ready_ns = ready;
}

static void rates(World *w, uint64_t *rate) {
    g_autofree const OrrFlow **flows = g_new(const OrrFlow *, w->n);
    g_autofree uint64_t *of_on = g_new(uint64_t, w->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->m[i].is_on)
            flows[n++] = &w->m[i].flow;
    naive_rates(flows, n, w->capacity, w->n_links, of_on);
    n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        rate[i] = w->m[i].is_on ? of_on[n++] : 0;
}

static int64_t reference(World *w) {
    g_autofree uint64_t *rate = g_new0(uint64_t, w->n);
    int64_t now = w->start_ns, last = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        w->m[i].ready_ns = w->m[i].end_ns = INT64_MAX;
        w->m[i].left = (OrrWide)w->m[i].flow.bytes * 1000000000u;
    }
    for (uint32_t n_done = 0; n_done < w->n;) {
        int64_t next = INT64_MAX;
        for (uint32_t i = 0; i < w->n; i++) {
            Message *m = &w->m[i];
            if (m->ready_ns == INT64_MAX)
                find_ready(w, m);
            if (!m->is_on && m->end_ns == INT64_MAX)
                next = MIN(next, m->ready_ns);
            if (m->is_on)
                next = MIN(next, now + (int64_t)((m->left + rate[i] - 1) / rate[i]));
        }
        for (uint32_t i = 0; i < w->n; i++) {
            Message *m = &w->m[i];
            OrrWide step = (OrrWide)rate[i] * (uint64_t)(next - now);
            if (m->is_on)
                m->left -= MIN(step, m->left);
            if (m->is_on && m->left == 0) {
                m->is_on = false;
                m->end_ns = next;
                last = MAX(last, next + m->hop_ns);
                n_done++;
            }
            if (m->ready_ns == next)
                m->is_on = m->end_ns == INT64_MAX;
        }
        now = next;
        for (uint32_t i = 0; i < w->n; i++) /* those that follow without delay */
            if (w->m[i].ready_ns == INT64_MAX) {
                find_ready(w, &w->m[i]);
                w->m[i].is_on = w->m[i].ready_ns == now;
            }
        rates(w, rate);
    }
    return last;
}

static void set_capacity(World *w, const OrrCluster *c) {
    w->n_links = orr_cluster_n_links(c);
    w->capacity = g_new(uint64_t, w->n_links);
    for (uint32_t l = 0; l < w->n_links; l++)
        w->capacity[l] = (uint64_t)orr_cluster_link_bytes_per_s(c, l);
}

static void set_flow(Message *m, const OrrUse *uses, uint32_t n_uses, uint64_t cap,
                     uint64_t bytes) {
    assert_true(n_uses <= G_N_ELEMENTS(m->uses));
    memcpy(m->uses, uses, n_uses * sizeof *uses);
    m->flow = (OrrFlow){m->uses, n_uses, 1, cap, bytes, 0};
}

/* All hops of the rings, in the order phase, step, rank. */
static void ring_world(World *w, const OrrRings *rings) {
    uint32_t n = rings->n_ranks, total = 0;
    for (uint32_t q = 0; q < rings->n_phases; q++)
        total += rings->phases[q].n_steps * n;
    w->start_ns = rings->start_ns;
    w->m = g_new0(Message, total);
    g_autofree uint32_t *from = g_new(uint32_t, n);
    for (uint32_t q = 0, last_phase = 0; q < rings->n_phases; q++) {
        const OrrPhase *p = &rings->phases[q];
        uint32_t first = w->n;
        for (uint32_t t = 0; t < p->n_steps; t++) {
            for (uint32_t r = 0; t > 0 && r < n; r++)
                from[p->edges[r].to] = r;
            for (uint32_t r = 0; r < n; r++) {
                const OrrEdge *e = &p->edges[r];
                Message *m = &w->m[w->n];
                set_flow(m, rings->uses + e->first_use, e->n_uses, e->cap_bytes_per_s, p->bytes);
                m->hop_ns = e->hop_ns;
                m->before = w->n >= n ? w->n - n : ORR_NONE;
                m->need = t > 0   ? first + (t - 1) * n + from[r]
                          : q > 0 ? last_phase + from[r]
                                  : ORR_NONE;
                w->n++;
            }
        }
        for (uint32_t r = 0; r < n; r++)
            from[p->edges[r].to] = r;
        last_phase = w->n - n;
    }
}

static const char *const collide[] = {"routing", "ecmp-hash", "leaf_oversubscription", "4", NULL};
static const char *const narrow[] = {"leaf_oversubscription", "8", NULL};

static void expect_rings_as_reference(const char *ref, const char *const *sets, OrrAlgo algo,
                                      int64_t bytes) {
    g_autoptr(OrrCluster) cl = cluster(ref, sets);
    OrrNcclForce force = force_of(algo);
    OrrDetailCase c = {cl,   orr_cluster_spec(cl)->n_gpus, ORR_ALL_REDUCE, ORR_BF16, bytes, &force,
                       false};
    OrrDetailResult r = run(&c);
    OrrCollPlan plan = open_plan(&c);
    OrrRings *rings = orr_detail__rings_new(&c, &plan);
    World w = {0};
    set_capacity(&w, cl);
    ring_world(&w, rings);
    assert_int_equal(r.time_ns, reference(&w));
    assert_int_equal(r.n_flows, w.n);
    assert_true(r.n_shared > 0);
    orr_detail__rings_free(rings);
    g_free(w.m);
    g_free(w.capacity);
}

static void test_rings_that_collide_end_when_the_reference_says(void **state) {
    (void)state;
    expect_rings_as_reference("meta-24k-roce:64", collide, ORR_ALGO_HIERARCHICAL, 999983);
    expect_rings_as_reference("meta-24k-roce:48", narrow, ORR_ALGO_RING, 99999989);
    expect_rings_as_reference("meta-24k-roce:48", collide, ORR_ALGO_RING, 10007);
}

/* All messages of an all-to-all, sender by sender: first to its domain, then by the network. */
static void pairs_world(World *w, const OrrDetailCase *c, const OrrCollPlan *plan, uint32_t p) {
    uint32_t n = c->n_ranks, n_domains = n / p;
    w->m = g_new0(Message, (gsize)n * (n - 1));
    w->start_ns = (int64_t)ceil(plan->start_ns + log2(p) * plan->hop_ns);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t d = 0; d < n_domains; d++)
            for (uint32_t k = d > 0 ? 0 : 1; k < p; k++) {
                uint32_t peer = (r / p + d) % n_domains * p + (r + k) % p;
                Message *m = &w->m[w->n];
                OrrUse uses[ORR_MAX_ROUTE];
                uint32_t n_uses = d > 0 ? orr_detail__net_uses(c->cluster, r, peer, uses)
                                        : orr_detail__inside_uses(c->cluster, r, peer, uses);
                uint64_t cap =
                    d > 0 ? orr_detail__net_share(plan, p) : (uint64_t)plan->inside_bytes_per_s;
                set_flow(m, uses, n_uses, cap, ((uint64_t)c->bytes + n - 1) / n);
                m->hop_ns = d > 0 ? orr_detail__hop_ns(c->cluster, plan, r, peer) : 0;
                m->gap_ns = d > 0 ? (int64_t)ceil(plan->message_ns) : 0;
                bool is_first = d > 0 ? d == 1 && k == 0 : k == 1;
                m->before = is_first ? ORR_NONE : w->n - 1;
                m->need = ORR_NONE;
                w->n++;
            }
}

static void test_an_all_to_all_that_collides_ends_when_the_reference_says(void **state) {
    (void)state;
    static const char *const *const sets[] = {collide, narrow};
    for (size_t i = 0; i < G_N_ELEMENTS(sets); i++) {
        g_autoptr(OrrCluster) cl = cluster("meta-24k-roce:32", sets[i]);
        OrrDetailCase c = {cl, 32, ORR_ALL_TO_ALL, ORR_BF16, 99999989, NULL, false};
        OrrDetailResult r = run(&c);
        OrrCollPlan plan = open_plan(&c);
        World w = {0};
        set_capacity(&w, cl);
        pairs_world(&w, &c, &plan, 8);
        assert_int_equal(r.time_ns, reference(&w));
        assert_int_equal(r.n_flows, w.n);
        assert_true(r.n_shared > 0 && r.n_solves > 0);
        g_free(w.m);
        g_free(w.capacity);
    }
}

static void test_what_has_no_detailed_form_is_refused_by_name(void **state) {
    (void)state;
    g_autoptr(OrrCluster) cl = cluster("h100-ib:16", NULL);
    OrrNcclForce force = force_of(ORR_ALGO_TREE);
    OrrDetailCase c = {cl, 16, ORR_ALL_REDUCE, ORR_BF16, 1 << 20, &force, false};
    OrrDetailResult r;
    g_autoptr(GError) error = NULL;
    assert_false(orr_detail_run(&c, &r, &error));
    assert_non_null(strstr(error->message, "all_reduce by tree has no detailed form"));
    g_clear_error(&error);
    c.n_ranks = 17;
    assert_false(orr_detail_run(&c, &r, &error));
    assert_non_null(strstr(error->message, "1 to 16 would do"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_in_one_domain_takes_hops_times_latency_and_chunk),
        cmocka_unit_test(test_a_ring_of_lone_gpus_is_the_plan_over_the_network),
        cmocka_unit_test(test_a_hierarchical_ring_is_its_three_phases),
        cmocka_unit_test(test_an_even_all_to_all_is_the_plan),
        cmocka_unit_test(test_adding_up_and_the_event_queue_agree),
        cmocka_unit_test(test_rings_that_collide_end_when_the_reference_says),
        cmocka_unit_test(test_an_all_to_all_that_collides_ends_when_the_reference_says),
        cmocka_unit_test(test_what_has_no_detailed_form_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
