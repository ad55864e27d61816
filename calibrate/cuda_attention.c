/* Fused attention through cuDNN's graph API, forward and backward. Compiled to a refusal without
 * cuDNN, or with one that is older than its unified operation. */
#include "config.h"

#include "calibrate/cuda_priv.h"

#include "calibrate/fill.h"
#include "calibrate/reference.h"

#ifdef HAVE_CUDNN
#include <cudnn_version.h>
#endif

/* The first version with the unified operation: cuDNN release notes, 9.13. */
#if defined(HAVE_CUDNN) && CUDNN_VERSION >= 91300
#include "calibrate/sdpa.h"

#include <math.h>

typedef struct {
    OrrGraph *graph;
    OrrSdpaBuffers b;
    float scale, one, lowest; /* what the buffers point at */
    size_t query_bytes;       /* of d_q_sum */
} Attention;

static bool cudnn_ok(cudnnStatus_t status, const char *what, GError **error) {
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    const char *why = cudnnGetErrorString(status);
    cudaGetLastError();
    if (cudaDeviceSynchronize() != cudaSuccess)
        return orr_fail_env(error, "%s: %s; the GPU is lost for this process", what, why);
    return orr_cuda__refuse(error, "%s: %s", what, why);
}

static bool run(OrrCuda *cuda, OrrWork *w, GError **error) {
    const Attention *a = w->state;
    /* Engines add to these sums, block by block. */
    if (a->b.d_q_sum && !orr_cuda__ok(cudaMemsetAsync(a->b.d_q_sum, 0, a->query_bytes, w->stream),
                                      "cudaMemset", error))
        return false;
    return cudnn_ok(cudnnBackendExecute(cuda->cudnn, a->graph->plan, a->graph->pack), "attention",
                    error);
}

#define N_SAMPLES 3

static OrrMatrix of_head(const OrrCase *c, uint64_t seed, int64_t batch, int64_t head,
                         int64_t n_heads) {
    return (OrrMatrix){seed, ORR_FILL_STEPS, (batch * c->sequence * n_heads + head) * c->head_dim,
                       n_heads * c->head_dim, 1};
}

/* The output of single queries, or their gradients. */
static bool compare(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error) {
    (void)cuda;
    const Attention *a = w->state;
    const OrrCase *c = &w->c;
    bool is_back = c->pass != ORR_PASS_FORWARD;
    g_autofree double *output = g_new(double, c->head_dim);
    g_autofree double *gradient = g_new(double, c->head_dim);
    double worst = 0, largest = 0;
    for (uint64_t s = 0; s < N_SAMPLES; s++) {
        int64_t batch = (int64_t)(orr_fill_hash(21, s) % (uint64_t)c->batch);
        int64_t head = (int64_t)(orr_fill_hash(22, s) % (uint64_t)c->heads);
        int64_t i = (int64_t)(orr_fill_hash(23, s) % (uint64_t)c->sequence);
        int64_t shared = head / (c->heads / c->kv_heads);
        OrrQuery q = {.query = of_head(c, 1, batch, head, c->heads),
                      .key = of_head(c, 2, batch, shared, c->kv_heads),
                      .value = of_head(c, 3, batch, shared, c->kv_heads),
                      .grad = of_head(c, 4, batch, head, c->heads),
                      .n = c->sequence,
                      .head_dim = c->head_dim,
                      .i = i,
                      .is_causal = c->is_causal != 0,
                      .scale = a->scale};
        orr_reference_attention(&q, output, is_back ? gradient : NULL);
        for (int64_t d = 0; d < c->head_dim; d++) {
            double is, expected = is_back ? gradient[d] : output[d];
            int64_t at = q.query.offset + i * q.query.row + d;
            if (!orr_cuda__element(is_back ? a->b.d_q : a->b.o, c->dtype, at, &is, error))
                return false;
            worst = fmax(worst, isfinite(is) ? fabs(is - expected) : INFINITY);
            largest = fmax(largest, fabs(expected));
        }
    }
    *error_frac = worst / largest;
    /* Probabilities, their gradients and outputs are each rounded to BF16, 2^-9 of their value. */
    *tolerance_frac = 4e-2;
    return true;
}

static void release(OrrCuda *cuda, OrrWork *w) {
    (void)cuda;
    Attention *a = w->state;
    orr_graph_free(a->graph);
    g_free(a);
}

static const OrrCudaOps ops = {.run = run, .compare = compare, .release = release};

static bool make_buffers(OrrWork *w, GError **error) {
    Attention *a = w->state;
    const OrrCase *c = &w->c;
    int64_t queries = c->batch * c->sequence * c->heads * c->head_dim;
    int64_t keys = c->batch * c->sequence * c->kv_heads * c->head_dim;
    size_t e = orr_cuda__size(c->dtype);
    size_t stats = (size_t)(c->batch * c->sequence * c->heads) * sizeof(float);
    bool is_back = c->pass != ORR_PASS_FORWARD;
    a->query_bytes = (size_t)queries * sizeof(float);
    if (!(a->b.q = orr_cuda__random(w, c->dtype, queries, 1, error)) ||
        !(a->b.k = orr_cuda__random(w, c->dtype, keys, 2, error)) ||
        !(a->b.v = orr_cuda__random(w, c->dtype, keys, 3, error)) ||
        !(a->b.o = orr_cuda__buffer(w, (size_t)queries * e, error)) ||
        !(a->b.stats = orr_cuda__buffer(w, stats, error)))
        return false;
    return !is_back || ((a->b.d_o = orr_cuda__random(w, c->dtype, queries, 4, error)) &&
                        (a->b.d_q = orr_cuda__buffer(w, (size_t)queries * e, error)) &&
                        (a->b.d_k = orr_cuda__buffer(w, (size_t)keys * e, error)) &&
                        (a->b.d_v = orr_cuda__buffer(w, (size_t)keys * e, error)) &&
                        (a->b.delta = orr_cuda__buffer(w, stats, error)) &&
                        (a->b.d_q_sum = orr_cuda__buffer(w, a->query_bytes, error)));
}

static OrrGraph *plan(OrrCuda *cuda, OrrWork *w, const OrrCase *c, GError **error) {
    const Attention *a = w->state;
    OrrGraph *g = orr_graph_new(cuda->cudnn, NULL);
    orr_sdpa_build(g, c, &a->b);
    void *workspace = NULL;
    if (orr_graph_plan(g, error) &&
        (workspace = orr_cuda__buffer(w, (size_t)g->workspace_bytes, error)) &&
        orr_graph_bind(g, workspace, error))
        return g;
    orr_graph_free(g);
    return NULL;
}

/* The backward pass reads the output and the statistics of the forward one. */
static bool run_forward(OrrCuda *cuda, OrrWork *w, GError **error) {
    OrrCase forward = w->c;
    forward.pass = ORR_PASS_FORWARD;
    OrrGraph *g = plan(cuda, w, &forward, error);
    if (!g)
        return false;
    bool is_good =
        cudnn_ok(cudnnBackendExecute(cuda->cudnn, g->plan, g->pack), "attention forward", error) &&
        orr_cuda__ok(cudaDeviceSynchronize(), "attention forward", error);
    orr_graph_free(g);
    return is_good;
}

static bool open_cudnn(OrrCuda *cuda, GError **error) {
    if (cuda->cudnn)
        return true;
    cudnnHandle_t handle;
    if (!orr_cuda__ok(cudaSetDevice(cuda->gpus[0].id), "cudaSetDevice", error) ||
        !cudnn_ok(cudnnCreate(&handle), "cudnnCreate", error))
        return false;
    cuda->cudnn = handle;
    return cudnn_ok(cudnnSetStream(handle, cuda->gpus[0].stream), "cudnnSetStream", error);
}

OrrWork *orr_cuda__attention(OrrCuda *cuda, const OrrCase *c, GError **error) {
    if (!open_cudnn(cuda, error))
        return NULL;
    OrrWork *w = orr_cuda__work(&ops, c, cuda->gpus);
    Attention *a = w->state = g_new0(Attention, 1);
    a->scale = (float)(1 / sqrt((double)c->head_dim)); /* Vaswani et al. 2017, equation 1 */
    a->one = 1;
    a->lowest = -INFINITY;
    a->b.scale = &a->scale, a->b.one = &a->one, a->b.lowest = &a->lowest;
    bool is_back = c->pass != ORR_PASS_FORWARD;
    if (make_buffers(w, error) && (!is_back || run_forward(cuda, w, error)) &&
        (a->graph = plan(cuda, w, c, error)))
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}

char *orr_cuda__cudnn_version(void) {
    size_t v = cudnnGetVersion();
    return g_strdup_printf("%zu.%zu.%zu", v / 10000, v % 10000 / 100, v % 100);
}

void orr_cuda__cudnn_close(OrrCuda *cuda) {
    if (cuda->cudnn)
        cudnnDestroy(cuda->cudnn);
}
#else
OrrWork *orr_cuda__attention(OrrCuda *cuda, const OrrCase *c, GError **error) {
    (void)cuda, (void)c;
    orr_cuda__refuse(error, "this program was built without cuDNN 9.13 or later");
    return NULL;
}

char *orr_cuda__cudnn_version(void) {
    return g_strdup("");
}

void orr_cuda__cudnn_close(OrrCuda *cuda) {
    (void)cuda;
}
#endif
