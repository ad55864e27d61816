/* Places and tables from clusters. */
#include "tests/near.h"

#include <string.h>

#include "sim/collective/place.h"
#include "sim/collective/table.h"

/* @n_gpus H100 in nodes of @per_node with @nics NICs of 400 Gb/s, leaves of 16, pods of 64, 1:7. */
static OrrCluster *make(uint32_t n_gpus, uint32_t per_node, uint32_t nics, bool management) {
    OrrGpu *gpu = g_new0(OrrGpu, 1);
    gpu->name = g_strdup("gpu");
    gpu->source = g_strdup("test");
    gpu->surfaces = g_strdup("");
    gpu->arch = ORR_ARCH_HOPPER;
    gpu->nvlink_bytes_per_s = 450e9;
    gpu->nvlink_links = 18;
    gpu->pcie_bytes_per_s = 64e9;
    OrrNode *node = g_new0(OrrNode, 1);
    *node = (OrrNode){.name = g_strdup("node"),
                      .source = g_strdup("test"),
                      .gpu = gpu,
                      .gpus = per_node,
                      .nvlink = ORR_NVLINK_SWITCH,
                      .domain_nodes = 1,
                      .has_nvls = true,
                      .nics = nics,
                      .nic_bytes_per_s = 50e9,
                      .net = ORR_NET_ROCE,
                      .pcie_bytes_per_s = 64e9,
                      .management_bytes_per_s = 12.5e9,
                      .nvlink_latency_ns = 500,
                      .pcie_latency_ns = 500,
                      .host_speed = 1};
    OrrClusterSpec spec = {.name = g_strdup("c"),
                           .source = g_strdup("test"),
                           .node = node,
                           .n_gpus = n_gpus,
                           .max_gpus = n_gpus,
                           .fabric = ORR_FABRIC_CLOS,
                           .gpus_per_leaf = 16,
                           .gpus_per_pod = 64,
                           .leaf_oversubscription = 1,
                           .pod_oversubscription = 7,
                           .leaf_uplinks = 16,
                           .pod_uplinks = 8,
                           .hop_latency_ns = 800,
                           .nic_latency_ns = 2500,
                           .use_management = management};
    GError *error = NULL;
    OrrCluster *c = orr_cluster_new(&spec, &error);
    if (!c)
        fail_msg("%s", error->message);
    return c;
}

static void place(const OrrCluster *c, uint32_t first, uint32_t stride, uint32_t n,
                  OrrCommPlace *out) {
    g_autofree uint32_t *gpus = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        gpus[i] = first + i * stride;
    orr_comm_place_from_cluster(c, gpus, n, out);
}

static void test_tp_group_stays_in_its_node_whatever_the_cluster(void **state) {
    (void)state;
    OrrCommPlace small, large;
    g_autoptr(OrrCluster) a = make(32, 8, 8, false);
    g_autoptr(OrrCluster) b = make(64, 8, 8, false);
    place(a, 8, 1, 8, &small);
    place(b, 8, 1, 8, &large);
    assert_int_equal(small.n_domains, 1);
    OrrCollPlan x, y;
    assert_true(orr_collective_plan(ORR_ALL_REDUCE, 1 << 28, ORR_BF16, &small, NULL, &x, NULL));
    assert_true(orr_collective_plan(ORR_ALL_REDUCE, 1 << 28, ORR_BF16, &large, NULL, &y, NULL));
    assert_int_equal(orr_collective_ns(&x, 1 << 28), orr_collective_ns(&y, 1 << 28));
}

static void test_strided_group_has_one_nic_a_node_and_world_has_all(void **state) {
    (void)state;
    OrrCommPlace p;
    g_autoptr(OrrCluster) c = make(64, 8, 8, false);
    place(c, 3, 8, 8, &p);
    assert_int_equal(p.n_domains, 8);
    assert_int_equal(p.max_per_domain, 1);
    assert_true(p.nics_per_domain == 1);
    assert_true(p.net_latency_ns >= 2500);
    place(c, 0, 1, 64, &p);
    assert_true(p.nics_per_domain == 8 && p.gpus_per_nic == 1);
}

/* Scenario S17: four NICs a node, one GPU: only its own counts. */
static void test_a_gpu_with_four_nics_in_its_node_uses_what_the_cluster_gives_it(void **state) {
    (void)state;
    OrrCommPlace p;
    g_autoptr(OrrCluster) c = make(16, 4, 4, false);
    place(c, 0, 4, 2, &p);
    assert_true(p.nics_per_domain == 1);
    OrrCollPlan plan;
    assert_true(
        orr_collective_plan(ORR_ALL_REDUCE, INT64_C(8) << 30, ORR_FP32, &p, NULL, &plan, NULL));
    double busbw = (double)(INT64_C(8) << 30) / (double)orr_collective_ns(&plan, INT64_C(8) << 30);
    assert_true(busbw > 42 && busbw <= 50);
}

static void test_management_network_is_slow_and_over_sockets(void **state) {
    (void)state;
    OrrCommPlace p;
    g_autoptr(OrrCluster) c = make(16, 8, 8, true);
    place(c, 0, 1, 16, &p);
    assert_int_equal(p.net, ORR_NET_ETHERNET);
    assert_near(p.nic_bytes_per_s, 12.5e9, 1e-9);
}

static void test_table_has_a_row_a_doubling_and_busbw_by_factor(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = make(16, 8, 8, false);
    g_autofree OrrCollRow *rows = NULL;
    uint32_t n = 0;
    GError *error = NULL;
    assert_true(orr_collective_table(ORR_ALL_REDUCE, ORR_FP32, c, 16, 1024, 1 << 30, NULL, &rows,
                                     &n, &error));
    assert_int_equal(n, 21);
    for (uint32_t i = 1; i < n; i++)
        assert_true(rows[i].time_ns >= rows[i - 1].time_ns);
    assert_near(rows[20].busbw_bytes_per_s, rows[20].algbw_bytes_per_s * 30 / 16, 1e-9);
    assert_false(
        orr_collective_table(ORR_ALL_REDUCE, ORR_FP32, c, 17, 1024, 2048, NULL, &rows, &n, &error));
    assert_non_null(strstr(error->message, "17 ranks on a cluster of 16 GPUs"));
    g_clear_error(&error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tp_group_stays_in_its_node_whatever_the_cluster),
        cmocka_unit_test(test_strided_group_has_one_nic_a_node_and_world_has_all),
        cmocka_unit_test(test_a_gpu_with_four_nics_in_its_node_uses_what_the_cluster_gives_it),
        cmocka_unit_test(test_management_network_is_slow_and_over_sockets),
        cmocka_unit_test(test_table_has_a_row_a_doubling_and_busbw_by_factor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
