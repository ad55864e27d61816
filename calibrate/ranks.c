/* A process alone, and how GPUs are cut into groups. */
#include "calibrate/ranks.h"

#include <string.h>

static void no_barrier(OrrRanks *r) {
    (void)r;
}

static double same(OrrRanks *r, double value) {
    (void)r;
    return value;
}

static void no_broadcast(OrrRanks *r, void *data, size_t bytes) {
    (void)r, (void)data, (void)bytes;
}

static void copy(OrrRanks *r, const void *mine, size_t bytes, void *all) {
    (void)r;
    memcpy(all, mine, bytes);
}

static void close_alone(OrrRanks *r) {
    g_free(r);
}

OrrRanks *orr_ranks_alone(void) {
    OrrRanks *r = g_new0(OrrRanks, 1);
    *r = (OrrRanks){.name = "alone",
                    .n_ranks = 1,
                    .n_local = 1,
                    .barrier = no_barrier,
                    .max = same,
                    .broadcast = no_broadcast,
                    .gather = copy,
                    .close = close_alone};
    return r;
}

bool orr_ranks_agree(OrrRanks *r, GError *mine, GError **error) {
    int worst = (int)r->max(r, mine ? mine->code : 0);
    if (worst == 0)
        return true;
    if (mine && mine->code == worst) {
        g_propagate_error(error, mine);
        return false;
    }
    g_clear_error(&mine);
    g_set_error(error, ORR_ERROR, worst, "another process of the launch failed");
    return false;
}

bool orr_ranks_place(int gpu, int n_gpus, int group_gpus, int stride, int *group, int *place) {
    int block = group_gpus * stride, within = gpu % block;
    if (gpu / block >= n_gpus / block)
        return false;
    *group = gpu / block * stride + within % stride;
    *place = within / stride;
    return true;
}

int orr_ranks_n_groups(int n_gpus, int group_gpus, int stride) {
    return n_gpus / (group_gpus * stride) * stride;
}
