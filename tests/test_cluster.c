/* The cluster graph against counts and capacities worked out by hand, and ECMP against the means
 * of balls in bins. */
#include "tests/cluster_samples.h"

#include <string.h>
#include <time.h>

#include "sim/cluster/mesh.h"

static double kind_bytes_per_s(const OrrCluster *c, OrrLinkKind kind, uint32_t *n) {
    double sum = 0;
    *n = 0;
    for (uint32_t l = 0; l < orr_cluster_n_links(c); l++)
        if (orr_cluster_link_kind(c, l) == kind) {
            sum += orr_cluster_link_bytes_per_s(c, l);
            ++*n;
        }
    return sum;
}

static void test_clos_has_the_links_of_racks_pods_and_core(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(clos_spec(24576));
    uint32_t n;

    assert_int_equal(orr_cluster_n_nodes(c), 3072);
    assert_int_equal(orr_cluster_n_leaves(c), 1536);
    assert_int_equal(orr_cluster_n_pods(c), 8);
    assert_int_equal(orr_cluster_n_links(c), 3072 * (16 + 16 + 16 + 2) + 2 * 1536 + 2 * 8);
    assert_near(kind_bytes_per_s(c, ORR_LINK_NVLINK_OUT, &n), 24576 * 450.0 * GB, 1e-12);
    assert_int_equal(n, 24576);
    double nics = kind_bytes_per_s(c, ORR_LINK_NIC_OUT, &n);
    assert_near(nics, 24576 * 50.0 * GB, 1e-12);
    assert_near(kind_bytes_per_s(c, ORR_LINK_LEAF_UP, &n), nics, 1e-12); /* full bisection */
    assert_int_equal(n, 1536);
    assert_near(kind_bytes_per_s(c, ORR_LINK_SPINE_UP, &n), nics / 7, 1e-12); /* 1:7 */
    assert_int_equal(n, 8);
    assert_near(kind_bytes_per_s(c, ORR_LINK_SPINE_DOWN, &n), nics / 7, 1e-12);
}

static void test_rail_fat_tree_keeps_full_bisection(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(rail_spec(4096));
    uint32_t n;
    assert_int_equal(orr_cluster_n_leaves(c), 512 / 32 * 8);
    assert_near(kind_bytes_per_s(c, ORR_LINK_LEAF_UP, &n), 4096 * 50.0 * GB, 1e-12);
    assert_near(kind_bytes_per_s(c, ORR_LINK_LEAF_DOWN, &n), 4096 * 50.0 * GB, 1e-12);
    kind_bytes_per_s(c, ORR_LINK_SPINE_UP, &n);
    assert_int_equal(n, 0);
    /* Rails: NIC i of all nodes of one set under one switch, another NIC under another. */
    assert_int_equal(orr_cluster_leaf_of_gpu(c, 3), orr_cluster_leaf_of_gpu(c, 31 * 8 + 3));
    assert_int_not_equal(orr_cluster_leaf_of_gpu(c, 3), orr_cluster_leaf_of_gpu(c, 32 * 8 + 3));
    assert_int_not_equal(orr_cluster_leaf_of_gpu(c, 3), orr_cluster_leaf_of_gpu(c, 4));
}

static void test_ecmp_links_add_up_to_the_bundle(void **state) {
    (void)state;
    OrrClusterSpec s = clos_spec(6144);
    s.routing = ORR_ROUTE_ECMP_HASH;
    g_autoptr(OrrCluster) c = build(s);
    g_autoptr(OrrCluster) spread = build(clos_spec(6144));
    for (OrrLinkKind k = 0; k < ORR_N_LINK_KINDS; k++) {
        uint32_t n, n_spread;
        double sum = kind_bytes_per_s(c, k, &n);
        assert_near(sum, kind_bytes_per_s(spread, k, &n_spread), 1e-9);
        bool is_fabric = k == ORR_LINK_LEAF_UP || k == ORR_LINK_LEAF_DOWN;
        assert_int_equal(n, is_fabric                                            ? 16 * n_spread
                            : k == ORR_LINK_SPINE_UP || k == ORR_LINK_SPINE_DOWN ? 439 * n_spread
                                                                                 : n_spread);
    }
}

static void test_link_names_lead_back_to_their_link(void **state) {
    (void)state;
    OrrClusterSpec hash = clos_spec(6144);
    hash.routing = ORR_ROUTE_ECMP_HASH;
    OrrCluster *all[] = {build(clos_spec(6144)), build(hash), build(rail_spec(300))};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        uint32_t n = orr_cluster_n_links(all[i]), back;
        for (uint32_t l = 0; l < n; l++) {
            g_autofree char *name = orr_cluster_link_name(all[i], l);
            assert_true(orr_cluster_link_find(all[i], name, &back));
            assert_int_equal(back, l);
        }
        assert_false(orr_cluster_link_find(all[i], "node9999/gpu0/nvlink-out", &back));
        assert_false(orr_cluster_link_find(all[i], "node0/gpu8/nvlink-out", &back));
        assert_false(orr_cluster_link_find(all[i], "node00/gpu0/nvlink-out", &back));
        assert_false(orr_cluster_link_find(all[i], "node0/gpu0/nvlink-outer", &back));
        assert_false(orr_cluster_link_find(all[i], "", &back));
        orr_cluster_free(all[i]);
    }
}

/* A route starts at the sender and ends at the receiver, repeats nothing, loses nothing. */
static void check_route(const OrrCluster *c, uint32_t src, uint32_t dst, uint64_t flow) {
    OrrLinkShare r[ORR_MAX_ROUTE];
    uint32_t n = orr_cluster_route(c, src, dst, flow, r), hops = orr_cluster_hops(c, src, dst);
    double out = 0, up = 0, down = 0, in = 0, pod_up = 0, pod_down = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(r[i].link < orr_cluster_n_links(c));
        assert_true(orr_cluster_link_bytes_per_s(c, r[i].link) > 0);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(r[i].link, r[j].link);
        OrrLinkKind k = orr_cluster_link_kind(c, r[i].link);
        out += k == ORR_LINK_NIC_OUT || k == ORR_LINK_MGMT_OUT ? r[i].frac : 0;
        in += k == ORR_LINK_NIC_IN || k == ORR_LINK_MGMT_IN ? r[i].frac : 0;
        up += k == ORR_LINK_LEAF_UP ? r[i].frac : 0;
        down += k == ORR_LINK_LEAF_DOWN ? r[i].frac : 0;
        pod_up += k == ORR_LINK_SPINE_UP ? r[i].frac : 0;
        pod_down += k == ORR_LINK_SPINE_DOWN ? r[i].frac : 0;
    }
    assert_int_equal(n == 0, src == dst);
    assert_near(out, hops ? 1 : 0, 1e-6);
    assert_near(in, hops ? 1 : 0, 1e-6);
    assert_near(up, hops >= 3 ? 1 : 0, 1e-6);
    assert_near(down, hops >= 3 ? 1 : 0, 1e-6);
    assert_near(pod_up, hops == 5 ? 1 : 0, 1e-6);
    assert_near(pod_down, hops == 5 ? 1 : 0, 1e-6);
    if (n && !hops) {
        g_autofree char *first = orr_cluster_link_name(c, r[0].link);
        g_autofree char *from = g_strdup_printf("node%u/gpu%u", src / 8, src % 8);
        assert_true(g_str_has_prefix(first, from));
    }
}

static void test_every_route_connects_and_repeats_no_link(void **state) {
    (void)state;
    OrrClusterSpec clos = clos_spec(6144), rail = rail_spec(1024), flat = clos_spec(64),
                   mgmt = clos_spec(64), none = clos_spec(64), two = rail_spec(1024),
                   half = rail_spec(1024);
    flat.fabric = ORR_FABRIC_FLAT;
    mgmt.use_management = true;
    none.fabric = ORR_FABRIC_NONE;
    two.node->nics = 16;
    half.node->nics = 4;
    half.routing = clos.routing = two.routing = ORR_ROUTE_ECMP_HASH;
    two.gpus_per_pod = 512;
    OrrCluster *all[] = {build(clos), build(rail), build(flat), build(mgmt),
                         build(none), build(two),  build(half)};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        uint32_t n = orr_cluster_spec(all[i])->n_gpus;
        for (uint32_t src = 0; src < n; src += 37)
            for (uint32_t dst = 0; dst < n; dst += src % 11 + 13)
                check_route(all[i], src, dst, src % 5);
        for (uint32_t src = 0; src < 16; src++)
            for (uint32_t dst = 0; dst < 32; dst++)
                check_route(all[i], src, dst, 7);
        orr_cluster_free(all[i]);
    }
}

static void test_hops_and_latency_grow_with_distance(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(clos_spec(6144));
    assert_int_equal(orr_cluster_hops(c, 0, 7), 0);
    assert_int_equal(orr_cluster_hops(c, 0, 15), 1);
    assert_int_equal(orr_cluster_hops(c, 0, 16), 3);
    assert_int_equal(orr_cluster_hops(c, 0, 3071), 3);
    assert_int_equal(orr_cluster_hops(c, 0, 3072), 5);
    assert_near(orr_cluster_route_latency_ns(c, 0, 7), 500, 1e-12);
    assert_near(orr_cluster_route_latency_ns(c, 0, 15), 2 * 300 + 2000, 1e-12);
    assert_near(orr_cluster_route_latency_ns(c, 0, 16), 2 * 300 + 2000 + 2 * 1000, 1e-12);
    assert_near(orr_cluster_route_latency_ns(c, 0, 3072), 2 * 300 + 2000 + 4 * 1000, 1e-12);
}

static void test_rail_hands_over_inside_the_node_first(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(rail_spec(1024));
    OrrLinkShare r[ORR_MAX_ROUTE];
    assert_int_equal(orr_cluster_hops(c, 1, 8 + 5), 1); /* one switch, by PXN */
    assert_int_equal(orr_cluster_route(c, 1, 8 + 5, 0, r), 6);
    g_autofree char *out = orr_cluster_link_name(c, r[0].link);
    g_autofree char *in = orr_cluster_link_name(c, r[1].link);
    g_autofree char *nic = orr_cluster_link_name(c, r[3].link);
    assert_string_equal(out, "node0/gpu1/nvlink-out");
    assert_string_equal(in, "node0/gpu5/nvlink-in");
    assert_string_equal(nic, "node0/nic5/out");
}

/* DGX-1 with V100 (NVIDIA DGX-1 white paper, figure 4): two quads, 6 links a GPU. */
static const uint8_t cube_mesh[8][8] = {
    {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
    {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
    {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
};

static OrrClusterSpec mesh_spec(void) {
    OrrClusterSpec s = clos_spec(8);
    s.node->nvlink = ORR_NVLINK_MESH;
    s.node->gpu->nvlink_links = 6;
    s.node->mesh_links = g_memdup2(cube_mesh, sizeof cube_mesh);
    s.node->mesh_link_bytes_per_s = 25.0 * GB;
    return s;
}

static void test_cube_mesh_routes_over_the_gpu_between(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(mesh_spec());
    OrrLinkShare r[ORR_MAX_ROUTE];
    uint32_t n;
    assert_near(kind_bytes_per_s(c, ORR_LINK_MESH, &n), 8 * 6 * 25.0 * GB, 1e-12);
    assert_int_equal(n, 8 * 4);
    assert_int_equal(orr_cluster_route(c, 0, 3, 0, r), 1);
    assert_near(orr_cluster_link_bytes_per_s(c, r[0].link), 50.0 * GB, 1e-12);
    assert_int_equal(orr_cluster_route(c, 0, 7, 0, r), 2);
    g_autofree char *a = orr_cluster_link_name(c, r[0].link);
    g_autofree char *b = orr_cluster_link_name(c, r[1].link);
    assert_string_equal(a, "node0/gpu0-gpu4/nvlink"); /* both steps two links wide */
    assert_string_equal(b, "node0/gpu4-gpu7/nvlink");
    for (uint32_t l = 0; l < orr_cluster_n_links(c); l++) {
        uint32_t back;
        g_autofree char *name = orr_cluster_link_name(c, l);
        assert_true(orr_cluster_link_find(c, name, &back));
        assert_int_equal(back, l);
    }
}

static void test_cube_mesh_fits_six_rings(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(mesh_spec());
    const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7}, far[] = {0, 7};
    const OrrNode *node = orr_cluster_spec(c)->node;
    assert_near(orr_mesh_ring_bytes_per_s(node, all, 8), 150.0 * GB, 1e-12);
    assert_near(orr_mesh_ring_bytes_per_s(node, all, 4), 100.0 * GB, 1e-12);
    assert_near(orr_mesh_ring_bytes_per_s(node, all, 2), 25.0 * GB, 1e-12);
    assert_near(orr_mesh_ring_bytes_per_s(node, far, 2) + 1, 1, 1e-12);
    /* GPU 4 has links to 0 only: both rings go through 0 twice */
    assert_near(orr_mesh_ring_bytes_per_s(node, all, 5), 0.825 * 50.0 * GB, 1e-12);
}

static void test_nvl72_domain_spans_its_trays(void **state) {
    (void)state;
    OrrClusterSpec s = rail_spec(144);
    s.node->gpus = 4;
    s.node->nics = 4;
    s.node->domain_nodes = 18;
    g_autoptr(OrrCluster) c = build(s);
    OrrLinkShare r[ORR_MAX_ROUTE];
    assert_int_equal(orr_cluster_domain_of_gpu(c, 71), 0);
    assert_int_equal(orr_cluster_domain_of_gpu(c, 72), 1);
    assert_int_equal(orr_cluster_route(c, 0, 71, 0, r), 2);
    g_autofree char *in = orr_cluster_link_name(c, r[1].link);
    assert_string_equal(in, "node17/gpu3/nvlink-in");
    assert_true(orr_cluster_hops(c, 0, 72) > 0);
}

/* Flows of one rack to as many others, by the uplink that each took. */
static void collide(uint32_t n, uint32_t seeds, double *mean_max, double *mean_share,
                    double *none) {
    *mean_max = *mean_share = *none = 0;
    for (uint32_t seed = 0; seed < seeds; seed++) {
        OrrClusterSpec spec = clos_spec(3072);
        spec.routing = ORR_ROUTE_ECMP_HASH;
        spec.leaf_uplinks = n;
        spec.seed = seed;
        g_autoptr(OrrCluster) c = build(spec);
        g_autofree uint32_t *load = g_new0(uint32_t, orr_cluster_n_links(c));
        uint32_t most = 0;
        for (uint32_t f = 0; f < n; f++) {
            OrrLinkShare r[ORR_MAX_ROUTE];
            uint32_t links = orr_cluster_route(c, f % 16, 16 * (f + 1), f, r);
            for (uint32_t i = 0; i < links; i++)
                if (orr_cluster_link_kind(c, r[i].link) == ORR_LINK_LEAF_UP) {
                    load[r[i].link]++;
                    most = MAX(most, load[r[i].link]);
                }
        }
        *mean_max += most;
        *mean_share += 1.0 / most;
        *none += most == 1;
    }
    *mean_max /= seeds;
    *mean_share /= seeds;
    *none /= seeds;
}

static void test_ecmp_collides_as_balls_in_bins(void **state) {
    (void)state;
    /* scenario S45: flows, mean load of the fullest uplink, mean share of the slowest flow */
    static const struct {
        uint32_t n;
        double max, share;
    } known[] = {{4, 2.125, 0.512}, {8, 2.597, 0.410}, {16, 3.08, 0.345}, {32, 3.53, 0}};
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        double max, share, none;
        collide(known[i].n, 4000, &max, &share, &none);
        assert_near(max, known[i].max, 0.01); /* three standard errors at 4,000 seeds */
        if (known[i].share > 0)
            assert_near(share, known[i].share, 0.015);
        if (known[i].n == 8)
            assert_true(none < 0.0055); /* 0.24 %: ten expected, 22 has odds of 1 in 2,000 */
    }
}

static void test_a_million_gpus_cost_next_to_nothing(void **state) {
    (void)state;
    clock_t start = clock();
    g_autoptr(OrrCluster) c = build(clos_spec(1u << 20));
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 0.05);
    assert_int_equal(orr_cluster_n_pods(c), 342);
    check_route(c, 1, (1u << 20) - 1, 0);
}

static void refused(OrrClusterSpec s, const char *why) {
    GError *error = NULL;
    assert_null(orr_cluster_new(&s, &error));
    assert_null(s.node);
    assert_non_null(error);
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (!strstr(error->message, why))
        fail_msg("'%s' does not say '%s'", error->message, why);
    g_error_free(error);
}

static void test_machines_that_do_not_add_up_are_refused(void **state) {
    (void)state;
    OrrClusterSpec s = clos_spec(4096);
    s.max_gpus = 1024;
    refused(s, "4096 GPUs asked, the machine has 1024");
    s = clos_spec(0);
    refused(s, "0 GPUs");
    s = clos_spec(64);
    s.gpus_per_leaf = 12;
    refused(s, "gpus_per_leaf = 12");
    s = clos_spec(64);
    s.gpus_per_pod = 24;
    refused(s, "gpus_per_pod = 24");
    s = clos_spec(64);
    s.pod_oversubscription = 0.5;
    refused(s, "pod_oversubscription");
    s = clos_spec(64);
    s.node->nics = 3;
    refused(s, "node.nics = 3");
    s = clos_spec(64);
    s.node->domain_nodes = 0;
    refused(s, "domain_nodes");
    s = clos_spec(64);
    s.routing = ORR_ROUTE_ECMP_HASH;
    s.leaf_uplinks = 0;
    refused(s, "leaf_uplinks");
    s = clos_spec(64);
    s.fabric = ORR_FABRIC_NONE;
    s.node->management_bytes_per_s = 0;
    refused(s, "nothing connects");
    s = mesh_spec();
    s.node->mesh_links[1] = 3;
    refused(s, "not symmetric");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clos_has_the_links_of_racks_pods_and_core),
        cmocka_unit_test(test_rail_fat_tree_keeps_full_bisection),
        cmocka_unit_test(test_ecmp_links_add_up_to_the_bundle),
        cmocka_unit_test(test_link_names_lead_back_to_their_link),
        cmocka_unit_test(test_every_route_connects_and_repeats_no_link),
        cmocka_unit_test(test_hops_and_latency_grow_with_distance),
        cmocka_unit_test(test_rail_hands_over_inside_the_node_first),
        cmocka_unit_test(test_cube_mesh_routes_over_the_gpu_between),
        cmocka_unit_test(test_cube_mesh_fits_six_rings),
        cmocka_unit_test(test_nvl72_domain_spans_its_trays),
        cmocka_unit_test(test_ecmp_collides_as_balls_in_bins),
        cmocka_unit_test(test_a_million_gpus_cost_next_to_nothing),
        cmocka_unit_test(test_machines_that_do_not_add_up_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
