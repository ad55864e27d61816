#include "sim/cluster/gpu.h"

#include <glib.h>

const char *const orr_arch_names[] = {
    [ORR_ARCH_VOLTA] = "volta",
    [ORR_ARCH_AMPERE] = "ampere",
    [ORR_ARCH_HOPPER] = "hopper",
    [ORR_ARCH_BLACKWELL] = "blackwell",
    [ORR_ARCH_BLACKWELL_ULTRA] = "blackwell_ultra",
    [ORR_N_ARCHS] = NULL,
};

void orr_gpu_free(OrrGpu *gpu) {
    if (!gpu)
        return;
    g_free(gpu->name);
    g_free(gpu->source);
    g_free(gpu->surfaces);
    g_free(gpu);
}

OrrGpu *orr_gpu_copy(const OrrGpu *gpu) {
    OrrGpu *copy = g_new(OrrGpu, 1);
    *copy = *gpu;
    copy->name = g_strdup(gpu->name);
    copy->source = g_strdup(gpu->source);
    copy->surfaces = g_strdup(gpu->surfaces);
    return copy;
}
