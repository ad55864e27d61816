/* Devices by name. */
#include "calibrate/devices.h"

#include "calibrate/device_cuda.h"
#include "calibrate/device_fake.h"

#include <string.h>

/* "fake:16:8" */
static OrrDevice *open_fake(const char *name, OrrRanks *ranks, GError **error) {
    OrrFakeMachine machine = orr_fake_default;
    g_auto(GStrv) parts = g_strsplit(name, ":", 3);
    gint64 numbers[2] = {machine.n_gpus, 0};
    for (int i = 1; i < 3 && parts[i]; i++)
        if (!g_ascii_string_to_signed(parts[i], 10, 1, 1 << 20, &numbers[i - 1], NULL)) {
            orr_fail_usage(error, "--device %s: numbers of GPUs from 1 would do", name);
            return NULL;
        }
    machine.n_gpus = (int)numbers[0];
    machine.n_per_node = (int)(numbers[1] ? numbers[1] : MIN(numbers[0], machine.n_per_node));
    if (machine.n_gpus % machine.n_per_node) {
        orr_fail_usage(error, "--device %s: %d GPUs are not whole nodes of %d", name,
                       machine.n_gpus, machine.n_per_node);
        return NULL;
    }
    return orr_device_fake(&machine, ranks);
}

OrrDevice *orr_device_open(const char *name, OrrRanks *ranks, GError **error) {
    if (!name || strcmp(name, "cuda") == 0)
        return orr_device_cuda(ranks, error);
    if (strcmp(name, "fake") == 0 || g_str_has_prefix(name, "fake:"))
        return open_fake(name, ranks, error);
    orr_fail_usage(error, "--device %s: cuda or fake[:GPUS[:GPUS_PER_NODE]] would do", name);
    return NULL;
}

char *orr_device_versions(void) {
    return orr_device_cuda_versions();
}
