/* Tables of published measurements and of residuals ("ln_measured" in it): any bytes give rows that
 * are sound or say why not. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "workloads/published.h"
#include "workloads/residuals.h"

static bool is_fine(double value) {
    return isfinite(value) && value >= 0;
}

static void read_residuals(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrResiduals) r = orr_workload_residuals(path, &error);
    fuzz_check_error(r, &error);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    if (r)
        orr_workload_residuals_write(r, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_auto(FuzzFile) file = fuzz_file(data, size);
    if (fuzz_has_group(data, size, "ln_measured")) {
        read_residuals(file.path);
        return 0;
    }
    GError *error = NULL;
    g_autoptr(OrrPublished) p = orr_published_new();
    bool is_read = orr_workload_published(file.path, p, &error);
    fuzz_check_error(is_read ? p : NULL, &error);
    for (guint i = 0; i < p->runs->len; i++) {
        const OrrPublishedRun *run = &g_array_index(p->runs, OrrPublishedRun, i);
        g_assert(run->id && run->gpu && run->framework && run->note && run->line >= 1);
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
