/* Tables of published measurements: any bytes give rows that are sound or say why not. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "workloads/published.h"

static bool is_fine(double value) {
    return isfinite(value) && value >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_auto(FuzzFile) file = fuzz_file(data, size);
    GError *error = NULL;
    g_autoptr(OrrPublished) p = orr_published_new();
    bool is_read = orr_workload_published(file.path, p, &error);
    fuzz_check_error(is_read ? p : NULL, &error);
    for (guint i = 0; i < p->runs->len; i++) {
        const OrrPublishedRun *run = &g_array_index(p->runs, OrrPublishedRun, i);
        g_assert(run->id && run->gpu && run->framework && run->note && run->line > 1);
        g_assert(is_fine(run->step_time_ns) && is_fine(run->tflops_per_gpu));
        g_assert(is_fine(run->memory_bytes) && is_fine(run->params));
    }
    for (guint i = 0; i < p->calls->len; i++) {
        const OrrPublishedCall *call = &g_array_index(p->calls, OrrPublishedCall, i);
        g_assert(is_fine(call->time_ns) && call->bytes >= 0);
    }
    for (guint i = 0; i < p->kernels->len; i++) {
        const OrrPublishedKernel *kernel = &g_array_index(p->kernels, OrrPublishedKernel, i);
        g_assert(kernel->flaw || is_fine(kernel->time_ns));
    }
    return 0;
}
