/* Graphs of attention are well-formed: cuDNN takes their descriptors for an H100 that is not there.
 * Whether an engine has them can be asked only where the driver is. */
#include "calibrate/sdpa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>

/* Properties of an H100 SXM in the form that cuDNN gives them (9.19). */
static const char h100[] =
    "{\"deviceName\":\"NVIDIA H100 80GB HBM3\",\"deviceVer\":900,\"driverVer\":13000,"
    "\"cudaDeviceId\":0,\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85017755648}";

static OrrGraph *build(OrrDescriptor device, const OrrCase *c, char *memory, float *scalars) {
    OrrSdpaBuffers b = {.scale = &scalars[0], .one = &scalars[1], .lowest = &scalars[2]};
    void **buffers[] = {&b.q,   &b.k,   &b.v,   &b.o,     &b.stats,  &b.d_o,
                        &b.d_q, &b.d_k, &b.d_v, &b.delta, &b.d_q_sum};
    for (guint i = 0; i < G_N_ELEMENTS(buffers); i++)
        *buffers[i] = memory + 256 * i;
    OrrGraph *g = orr_graph_new(NULL, device);
    orr_sdpa_build(g, c, &b);
    return g;
}

static void test_sdpa_graphs_are_well_formed(void **state) {
    (void)state;
    OrrDescriptor device = orr_graph_device(h100, NULL);
    if (!device)
        skip(); /* another version describes devices in another way */
    static char memory[4096];
    float scalars[] = {0.1f, 1, -INFINITY};
    for (int variant = 0; variant < 16; variant++) {
        OrrCase c = {.kind = ORR_CASE_ATTENTION,
                     .dtype = variant & 8 ? ORR_FP16 : ORR_BF16,
                     .pass = variant & 1 ? ORR_PASS_DGRAD : ORR_PASS_FORWARD,
                     .is_causal = variant >> 1 & 1,
                     .batch = 2,
                     .sequence = 1024,
                     .heads = 16,
                     .kv_heads = variant & 4 ? 4 : 16,
                     .head_dim = 128};
        OrrGraph *g = build(device, &c, memory, scalars);
        g_autoptr(GError) error = NULL;
        orr_graph_plan(g, &error);
        if (g->why)
            fail_msg("variant %d: %s", variant, g->why);
        orr_graph_free(g);
    }
    cudnnBackendDestroyDescriptor(device);
}

static void test_sdpa_graph_that_makes_no_sense_is_refused(void **state) {
    (void)state;
    OrrDescriptor device = orr_graph_device(h100, NULL);
    if (!device)
        skip();
    static char memory[4096];
    float scalars[] = {0.1f, 1, -INFINITY};
    OrrCase c = {.kind = ORR_CASE_ATTENTION,
                 .dtype = ORR_BF16,
                 .is_causal = 1,
                 .batch = 2,
                 .sequence = 1024,
                 .heads = 16,
                 .kv_heads = 5,
                 .head_dim = 128};
    OrrGraph *g = build(device, &c, memory, scalars);
    g_autoptr(GError) error = NULL;
    assert_false(orr_graph_plan(g, &error));
    assert_int_equal(error->code, ORR_ERROR_NO);
    orr_graph_free(g);
    cudnnBackendDestroyDescriptor(device);
}

/* cuDNN keeps what its engines made until the process ends. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sdpa_graphs_are_well_formed),
        cmocka_unit_test(test_sdpa_graph_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
