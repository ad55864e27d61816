/* NCCL's environment variables: what they force, and what is refused by name. */
#include "tests/near.h"

#include <string.h>

#include "sim/collective/nccl_env.h"

#define BIT(x) (1u << (x))

static bool parse(const char *name, const char *value, OrrNcclEnv *env, GError **error) {
    const char *names[] = {name, NULL}, *values[] = {value, NULL};
    static const OrrNode node = {.nics = 4, .net = ORR_NET_IB};
    return orr_nccl_env_parse(names, values, &node, env, error);
}

static void test_lists_and_exclusions_leave_what_they_name(void **state) {
    (void)state;
    OrrNcclEnv env;
    assert_true(parse("NCCL_ALGO", "Tree,ring", &env, NULL));
    assert_int_equal(env.force.algos[ORR_ALL_REDUCE], BIT(ORR_ALGO_TREE) | BIT(ORR_ALGO_RING));
    assert_true(parse("NCCL_ALGO", "^NVLS,NVLSTree", &env, NULL));
    assert_false(env.force.algos[ORR_ALL_REDUCE] & BIT(ORR_ALGO_NVLS));
    assert_true(env.force.algos[ORR_ALL_REDUCE] & BIT(ORR_ALGO_RING));
    assert_true(parse("NCCL_ALGO", "allreduce:tree;allgather:ring", &env, NULL));
    assert_int_equal(env.force.algos[ORR_ALL_REDUCE], BIT(ORR_ALGO_TREE));
    assert_int_equal(env.force.algos[ORR_ALL_GATHER], BIT(ORR_ALGO_RING));
    assert_int_equal(env.force.algos[ORR_BROADCAST], 0);
    assert_true(parse("NCCL_PROTO", "^LL128", &env, NULL));
    assert_int_equal(env.force.protos[ORR_ALL_REDUCE], BIT(ORR_PROTO_LL) | BIT(ORR_PROTO_SIMPLE));
    assert_true(parse("NCCL_ALGO", "hierarchical", &env, NULL));
    assert_int_equal(env.force.algos[ORR_ALL_REDUCE], BIT(ORR_ALGO_HIERARCHICAL));
    assert_int_equal(env.force.algos[ORR_BROADCAST], 0);
}

static void test_numbers_are_taken_and_version_too(void **state) {
    (void)state;
    const char *names[] = {"NCCL_NTHREADS",
                           "NCCL_MAX_NCHANNELS",
                           "NCCL_NSOCKS_PERTHREAD",
                           "NCCL_SOCKET_NTHREADS",
                           "NCCL_VERSION",
                           "NCCL_DEBUG",
                           NULL};
    const char *values[] = {"256", "8", "4", "2", "2.27.6", "INFO", NULL};
    OrrNcclEnv env;
    assert_true(orr_nccl_env_parse(names, values, NULL, &env, NULL));
    assert_int_equal(env.force.n_threads, 256);
    assert_int_equal(env.force.max_channels, 8);
    assert_int_equal(env.force.sockets_per_thread, 4);
    assert_int_equal(env.force.socket_threads, 2);
    assert_int_equal(env.force.version, 22706);
    assert_false(env.is_fallback);
}

static void test_hca_that_names_no_nic_falls_back_to_sockets_and_says_so(void **state) {
    (void)state;
    OrrNcclEnv env;
    assert_true(parse("NCCL_IB_HCA", "mlx5_1:1,mlx5_2:1", &env, NULL));
    assert_false(env.is_fallback);
    assert_int_equal(env.force.nics_per_node, 2);
    assert_true(parse("NCCL_IB_HCA", "mlx5", &env, NULL));
    assert_int_equal(env.force.nics_per_node, 0);
    assert_true(parse("NCCL_IB_HCA", "^mlx5_3", &env, NULL));
    assert_int_equal(env.force.nics_per_node, 3);
    assert_true(parse("NCCL_IB_HCA", "ib0", &env, NULL));
    assert_true(env.is_fallback && env.force.use_sockets);
    assert_non_null(strstr(env.warning, "NCCL_IB_HCA = ib0: names no NIC"));
    orr_nccl_env_clear(&env);
    assert_true(parse("NCCL_IB_DISABLE", "1", &env, NULL));
    assert_true(env.is_fallback);
    orr_nccl_env_clear(&env);
}

static void test_faults_name_variable_value_and_what_would_do(void **state) {
    (void)state;
    static const struct {
        const char *name, *value, *message;
    } faults[] = {{"NCCL_ALGO", "Rign", "NCCL_ALGO = Rign: there is no \"Rign\"; ring, tree"},
                  {"NCCL_ALGO", "alltoall:ring", "there is no function \"alltoall\"; allreduce"},
                  {"NCCL_PROTO", "ll64", "there is no \"ll64\"; ll, ll128, simple"},
                  {"NCCL_PROTO", "^ll,ll128,simple", "leaves nothing"},
                  {"NCCL_NTHREADS", "100", "multiple of 32"},
                  {"NCCL_NTHREADS", "9999", "from 64 to 640"},
                  {"NCCL_MAX_NCHANNELS", "many", "whole number from 1 to 64"},
                  {"NCCL_VERSION", "new", "version such as 2.27.6"},
                  {"NCCL_ALOG", "Ring", "unknown variable; those with an effect here: NCCL_ALGO"}};
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        OrrNcclEnv env;
        GError *error = NULL;
        assert_false(parse(faults[i].name, faults[i].value, &env, &error));
        assert_int_equal(error->code, ORR_ERROR_INPUT);
        if (!strstr(error->message, faults[i].message))
            fail_msg("got: %s", error->message);
        g_clear_error(&error);
    }
}

static void test_all_faults_are_reported_at_once(void **state) {
    (void)state;
    const char *names[] = {"NCCL_ALGO", "NCCL_PROTO", NULL}, *values[] = {"x", "y", NULL};
    OrrNcclEnv env;
    GError *error = NULL;
    assert_false(orr_nccl_env_parse(names, values, NULL, &env, &error));
    assert_non_null(strstr(error->message, "NCCL_ALGO = x"));
    assert_non_null(strstr(error->message, "\nNCCL_PROTO = y"));
    g_clear_error(&error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_and_exclusions_leave_what_they_name),
        cmocka_unit_test(test_numbers_are_taken_and_version_too),
        cmocka_unit_test(test_hca_that_names_no_nic_falls_back_to_sockets_and_says_so),
        cmocka_unit_test(test_faults_name_variable_value_and_what_would_do),
        cmocka_unit_test(test_all_faults_are_reported_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
