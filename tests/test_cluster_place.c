/* Where ranks lie on a cluster: placements, and the shape of a group of them. */
#include "tests/cluster_samples.h"

#include "sim/cluster/group.h"
#include "sim/cluster/placement.h"

static void test_group_shape_counts_where_members_sit(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(clos_spec(12288));
    OrrGroupShape s;
    uint32_t dp[768];
    for (uint32_t i = 0; i < 768; i++)
        dp[i] = i * 16; /* one GPU a rack, four pods */
    orr_cluster_group_shape(c, dp, NULL, 768, &s);
    assert_int_equal(s.n_domains, 768);
    assert_int_equal(s.n_nodes, 768);
    assert_int_equal(s.max_per_domain, 1);
    assert_near(s.nics_per_domain, 1, 1e-12);
    assert_near(s.leaf_crossing_frac, 1, 1e-12);
    assert_near(s.pod_crossing_frac, 4.0 / 768, 1e-12);
    assert_near(s.net_latency_ns, 600 + 2000 + 2000 + 2000 * 4.0 / 768, 1e-12);
    assert_near(s.fabric_bytes_per_s + 1, 1, 1e-12); /* 4 in 768 is below 1:7 */

    const uint32_t pods[] = {0, 3072, 6144, 9216};
    orr_cluster_group_shape(c, pods, NULL, 4, &s);
    assert_near(s.pod_crossing_frac, 1, 1e-12);
    assert_near(s.fabric_bytes_per_s, 50.0 * GB / 7, 1e-12);

    const uint32_t tp[] = {8, 9, 10, 11, 12, 13, 14, 15};
    orr_cluster_group_shape(c, tp, NULL, 8, &s);
    assert_int_equal(s.n_domains, 1);
    assert_int_equal(s.n_nodes, 1);
    assert_int_equal(s.min_per_domain, 8);
    assert_near(s.nics_per_domain, 8, 1e-12);
    assert_near(s.nvlink_bytes_per_s, 450.0 * GB, 1e-12);
    assert_near(s.net_latency_ns + 1, 1, 1e-12);

    const uint32_t uneven[] = {24, 0, 1, 2, 25};
    orr_cluster_group_shape(c, uneven, NULL, 5, &s);
    assert_int_equal(s.n_domains, 2);
    assert_int_equal(s.min_per_domain, 2);
    assert_int_equal(s.max_per_domain, 3);
    assert_near(s.nics_per_domain, 2, 1e-12);
}

static void test_gpus_that_share_a_nic_are_counted(void **state) {
    (void)state;
    OrrClusterSpec spec = clos_spec(64);
    spec.node->nics = 4;
    g_autoptr(OrrCluster) c = build(spec);
    OrrGroupShape s;
    const uint32_t pair[] = {0, 1, 8, 9}, apart[] = {0, 2, 8, 10};
    orr_cluster_group_shape(c, pair, NULL, 4, &s);
    assert_int_equal(s.gpus_per_nic, 2);
    assert_near(s.nics_per_domain, 1, 1e-12);
    orr_cluster_group_shape(c, apart, NULL, 4, &s);
    assert_int_equal(s.gpus_per_nic, 1);
    assert_near(s.nics_per_domain, 2, 1e-12);
}

static void test_placements_put_each_rank_on_its_own_gpu(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = build(clos_spec(100)); /* 12 nodes and a half */
    g_autoptr(OrrPlacement) linear = orr_placement_linear(c, 100, NULL);
    g_autoptr(OrrPlacement) random = orr_placement_random(c, 100, 1, NULL);
    g_autoptr(OrrPlacement) other = orr_placement_random(c, 100, 2, NULL);
    bool is_used[100] = {false};
    uint32_t moved = 0, differ = 0;
    for (uint32_t r = 0; r < 100; r++) {
        uint32_t gpu = orr_placement_gpu(random, r);
        assert_int_equal(orr_placement_gpu(linear, r), r);
        assert_true(gpu < 100 && !is_used[gpu]);
        is_used[gpu] = true;
        assert_int_equal(gpu % 8, r % 8); /* nodes stay whole */
        moved += gpu != r;
        differ += gpu != orr_placement_gpu(other, r);
    }
    assert_true(moved > 50 && differ > 50);
    assert_null(orr_placement_linear(c, 101, NULL));
    const uint32_t twice[] = {1, 2, 1}, far[] = {100}, good[] = {5, 3};
    assert_null(orr_placement_explicit(c, twice, 3, NULL));
    assert_null(orr_placement_explicit(c, far, 1, NULL));
    g_autoptr(OrrPlacement) list = orr_placement_explicit(c, good, 2, NULL);
    assert_int_equal(orr_placement_gpu(list, 1), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_shape_counts_where_members_sit),
        cmocka_unit_test(test_gpus_that_share_a_nic_are_counted),
        cmocka_unit_test(test_placements_put_each_rank_on_its_own_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
