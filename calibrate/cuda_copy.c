/* Copies, and what a launch costs. Host memory is pinned, as frameworks pin theirs. */
#include "calibrate/cuda_priv.h"

#include "calibrate/fill.h"
#include "calibrate/kernels.h"

#include <math.h>
#include <string.h>

typedef struct {
    void *from, *to, *host;
    void *far; /* on the other GPU */
    int far_id;
    enum cudaMemcpyKind kind;
} Copy;

static bool run(OrrCuda *cuda, OrrWork *w, GError **error) {
    (void)cuda;
    const Copy *c = w->state;
    size_t bytes = (size_t)w->c.bytes;
    cudaError_t status =
        w->c.op == ORR_COPY_P2P
            ? cudaMemcpyPeerAsync(c->far, c->far_id, c->from, w->gpu->id, bytes, w->stream)
            : cudaMemcpyAsync(c->to, c->from, bytes, c->kind, w->stream);
    return orr_cuda__ok(status, "a copy", error);
}

/* Bytes at both ends and in between arrive as they were. */
static bool compare(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error) {
    (void)cuda;
    const Copy *c = w->state;
    const void *to = w->c.op == ORR_COPY_P2P ? c->far : c->to;
    size_t bytes = (size_t)w->c.bytes;
    *error_frac = *tolerance_frac = 0;
    for (uint64_t i = 0; i < 64; i++) {
        size_t at = i == 0 ? 0 : i == 1 ? bytes - 1 : orr_fill_hash(5, i) % bytes;
        char a = 0, b = 1;
        if (!orr_cuda__ok(cudaMemcpy(&a, (const char *)c->from + at, 1, cudaMemcpyDefault),
                          "cudaMemcpy", error) ||
            !orr_cuda__ok(cudaMemcpy(&b, (const char *)to + at, 1, cudaMemcpyDefault), "cudaMemcpy",
                          error))
            return false;
        *error_frac = fmax(*error_frac, a != b);
    }
    return true;
}

static void release(OrrCuda *cuda, OrrWork *w) {
    (void)cuda;
    Copy *c = w->state;
    if (c->host)
        cudaFreeHost(c->host);
    if (c->far) {
        cudaSetDevice(c->far_id);
        cudaFree(c->far);
        cudaSetDevice(w->gpu->id);
    }
    g_free(c);
}

static const OrrCudaOps copy_ops = {.run = run, .compare = compare, .release = release};

/* Memory on the second GPU, which the first reaches by itself where the machine lets it. */
static bool reach_peer(OrrCuda *cuda, Copy *c, size_t bytes, GError **error) {
    if (cuda->n_gpus < 2)
        return orr_cuda__refuse(error, "needs two GPUs in one process");
    int can = 0, id = cuda->gpus[0].id;
    c->far_id = cuda->gpus[1].id;
    if (!orr_cuda__ok(cudaDeviceCanAccessPeer(&can, id, c->far_id), "cudaDeviceCanAccessPeer",
                      error))
        return false;
    if (can && cudaDeviceEnablePeerAccess(c->far_id, 0) != cudaSuccess)
        cudaGetLastError(); /* it was enabled before */
    bool is_good = orr_cuda__ok(cudaSetDevice(c->far_id), "cudaSetDevice", error) &&
                   orr_cuda__ok(cudaMalloc(&c->far, bytes), "cudaMalloc", error);
    return orr_cuda__ok(cudaSetDevice(id), "cudaSetDevice", error) && is_good;
}

static bool set_ends(OrrCuda *cuda, OrrWork *w, GError **error) {
    Copy *c = w->state;
    size_t bytes = (size_t)w->c.bytes;
    void *near = orr_cuda__random(w, ORR_FP32, w->c.bytes / 4 + 1, 1, error);
    if (!near)
        return false;
    c->from = near;
    bool has_host = w->c.op == ORR_COPY_H2D || w->c.op == ORR_COPY_D2H;
    if (has_host && !orr_cuda__ok(cudaHostAlloc(&c->host, bytes, cudaHostAllocDefault),
                                  "pinning host memory", error))
        return false;
    switch ((OrrCopy)w->c.op) {
    case ORR_COPY_D2D:
        c->to = orr_cuda__buffer(w, bytes, error);
        c->kind = cudaMemcpyDeviceToDevice;
        return c->to != NULL;
    case ORR_COPY_H2D:
        memset(c->host, 0x5a, bytes);
        c->from = c->host;
        c->to = near;
        c->kind = cudaMemcpyHostToDevice;
        return true;
    case ORR_COPY_D2H:
        c->to = c->host;
        c->kind = cudaMemcpyDeviceToHost;
        return true;
    case ORR_COPY_P2P:
        return reach_peer(cuda, c, bytes, error);
    case ORR_N_COPIES:
        break;
    }
    return false;
}

OrrWork *orr_cuda__copy(OrrCuda *cuda, const OrrCase *c, GError **error) {
    OrrWork *w = orr_cuda__work(&copy_ops, c, cuda->gpus);
    w->state = g_new0(Copy, 1);
    if (set_ends(cuda, w, error))
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}

/* Launches: host time. */
#define BURST 100 /* launches that follow one another; a graph's nodes */

typedef struct {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
} Launch;

static bool launch_one(OrrWork *w, GError **error) {
    return orr_cuda__ok((cudaError_t)orr_kernels_empty(w->stream), "a launch", error);
}

static bool burst(OrrWork *w, GError **error) {
    const Launch *l = w->state;
    if (w->c.op == ORR_LAUNCH_LATENCY)
        return launch_one(w, error);
    if (w->c.op == ORR_LAUNCH_GRAPH)
        return orr_cuda__ok(cudaGraphLaunch(l->ready, w->stream), "cudaGraphLaunch", error);
    for (int i = 0; i < BURST; i++)
        if (!launch_one(w, error))
            return false;
    return true;
}

static bool time_launches(OrrCuda *cuda, OrrWork *w, uint32_t n, OrrTiming *timing,
                          GError **error) {
    (void)cuda;
    int64_t begin_us = g_get_monotonic_time();
    bool each_waits = w->c.op == ORR_LAUNCH_LATENCY;
    for (uint32_t i = 0; i < n; i++) {
        if (!burst(w, error))
            return false;
        if (each_waits &&
            !orr_cuda__ok(cudaStreamSynchronize(w->stream), "cudaStreamSynchronize", error))
            return false;
    }
    if (!orr_cuda__ok(cudaStreamSynchronize(w->stream), "cudaStreamSynchronize", error))
        return false;
    int64_t took_us = g_get_monotonic_time() - begin_us;
    timing->ns = (double)MAX(took_us, 1) * 1e3 / n / (each_waits ? 1 : BURST);
    return true;
}

static void release_launch(OrrCuda *cuda, OrrWork *w) {
    (void)cuda;
    Launch *l = w->state;
    if (l->ready)
        cudaGraphExecDestroy(l->ready);
    if (l->graph)
        cudaGraphDestroy(l->graph);
    g_free(l);
}

static const OrrCudaOps launch_ops = {.time = time_launches, .release = release_launch};

static bool capture(OrrWork *w, GError **error) {
    Launch *l = w->state;
    if (!orr_cuda__ok(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal),
                      "cudaStreamBeginCapture", error))
        return false;
    bool is_good = true;
    for (int i = 0; i < BURST; i++)
        is_good = orr_kernels_empty(w->stream) == cudaSuccess && is_good;
    return orr_cuda__ok(cudaStreamEndCapture(w->stream, &l->graph), "cudaStreamEndCapture",
                        error) &&
           (is_good || orr_cuda__refuse(error, "a launch can't be captured")) &&
           orr_cuda__ok(cudaGraphInstantiate(&l->ready, l->graph, 0), "cudaGraphInstantiate",
                        error);
}

OrrWork *orr_cuda__launch(OrrCuda *cuda, const OrrCase *c, GError **error) {
    OrrWork *w = orr_cuda__work(&launch_ops, c, cuda->gpus);
    w->state = g_new0(Launch, 1);
    if (orr_cuda__ok(cudaSetDevice(w->gpu->id), "cudaSetDevice", error) &&
        (c->op != ORR_LAUNCH_GRAPH || capture(w, error)))
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}
