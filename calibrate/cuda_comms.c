#include "config.h"

#include "calibrate/cuda_comms.h"

#ifdef HAVE_NCCL

bool orr_cuda__nccl_ok(ncclResult_t status, const char *what, GError **error) {
    if (status == ncclSuccess)
        return true;
    const char *why = ncclGetErrorString(status);
    bool is_ours = status == ncclInvalidArgument || status == ncclInvalidUsage;
    return is_ours ? orr_cuda__refuse(error, "%s: %s", what, why)
                   : orr_fail_env(error, "%s: %s; NCCL_DEBUG=INFO says more", what, why);
}

static void drop_comms(OrrCuda *cuda) {
    OrrCollectives *s = cuda->collectives;
    for (int i = 0; s && s->comms && i < cuda->n_gpus; i++)
        if (s->comms[i])
            ncclCommDestroy(s->comms[i]);
    if (s) {
        g_free(s->comms);
        g_free(s->groups);
        g_free(s->places);
        g_free(s);
    }
    cuda->collectives = NULL;
}

/* The identifier of each group, made by the process that has its first GPU; g_free. */
static ncclUniqueId *share_ids(OrrCuda *cuda, const OrrCollectives *s, int n_groups,
                               GError **error) {
    g_autofree ncclUniqueId *mine = g_new0(ncclUniqueId, n_groups);
    GError *failed = NULL;
    for (int i = 0; i < cuda->n_gpus; i++)
        if (s->groups[i] >= 0 && s->places[i] == 0 && !failed)
            orr_cuda__nccl_ok(ncclGetUniqueId(&mine[s->groups[i]]), "ncclGetUniqueId", &failed);
    if (!orr_ranks_agree(cuda->ranks, failed, error))
        return NULL;
    size_t bytes = sizeof(ncclUniqueId) * (size_t)n_groups;
    int n = cuda->ranks->n_ranks;
    g_autofree ncclUniqueId *all = g_malloc0(bytes * (size_t)n);
    cuda->ranks->gather(cuda->ranks, mine, bytes, all);
    ncclUniqueId *ids = g_new0(ncclUniqueId, n_groups);
    for (int g = 0; g < n_groups; g++) {
        int first = g / s->stride * s->group_gpus * s->stride + g % s->stride;
        ids[g] = all[(size_t)(n == 1 ? 0 : first) * (size_t)n_groups + (size_t)g];
    }
    return ids;
}

static bool start_comms(OrrCuda *cuda, OrrCollectives *s, const ncclUniqueId *ids, GError **error) {
    if (!orr_cuda__nccl_ok(ncclGroupStart(), "ncclGroupStart", error))
        return false;
    bool is_good = true;
    for (int i = 0; is_good && i < cuda->n_gpus; i++) {
        if (s->groups[i] < 0)
            continue;
        is_good = orr_cuda__ok(cudaSetDevice(cuda->gpus[i].id), "cudaSetDevice", error) &&
                  orr_cuda__nccl_ok(ncclCommInitRank(&s->comms[i], s->group_gpus, ids[s->groups[i]],
                                                     s->places[i]),
                                    "ncclCommInitRank", error);
    }
    return orr_cuda__nccl_ok(ncclGroupEnd(), "starting NCCL", is_good ? error : NULL) && is_good;
}

bool orr_cuda__need_comms(OrrCuda *cuda, const OrrCase *c, GError **error) {
    OrrCollectives *s = cuda->collectives;
    if (s && s->group_gpus == c->group_gpus && s->stride == c->stride)
        return true;
    drop_comms(cuda);
    s = cuda->collectives = g_new0(OrrCollectives, 1);
    s->group_gpus = (int)c->group_gpus;
    s->stride = (int)c->stride;
    s->comms = g_new0(ncclComm_t, cuda->n_gpus);
    s->groups = g_new(int, cuda->n_gpus);
    s->places = g_new0(int, cuda->n_gpus);
    for (int i = 0; i < cuda->n_gpus; i++)
        if (!orr_ranks_place(cuda->first + i, cuda->n_world, s->group_gpus, s->stride,
                             &s->groups[i], &s->places[i]))
            s->groups[i] = -1;
    int n_groups = orr_ranks_n_groups(cuda->n_world, s->group_gpus, s->stride);
    g_autofree ncclUniqueId *ids = share_ids(cuda, s, n_groups, error);
    if (ids && start_comms(cuda, s, ids, error))
        return true;
    drop_comms(cuda);
    return false;
}

void orr_cuda__abort_comms(OrrCuda *cuda) {
    OrrCollectives *s = cuda->collectives;
    for (int i = 0; s && i < cuda->n_gpus; i++)
        if (s->comms[i]) {
            ncclCommAbort(s->comms[i]);
            s->comms[i] = NULL;
        }
    drop_comms(cuda);
}

char *orr_cuda__nccl_version(void) {
    int v = 0;
    if (ncclGetVersion(&v) != ncclSuccess)
        return g_strdup("");
    return g_strdup_printf("%d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
}

void orr_cuda__nccl_close(OrrCuda *cuda) {
    drop_comms(cuda);
}
#else
char *orr_cuda__nccl_version(void) {
    return g_strdup("");
}

void orr_cuda__nccl_close(OrrCuda *cuda) {
    (void)cuda;
}
#endif
