/* Attention without fusion: batched products and softmax, a kernel each, one after another. The
 * mask costs nothing here, as in frameworks that fold it into the softmax. Each part brings its own
 * buffers: only times count, and each part's result is checked by itself. */
#include "calibrate/cuda_priv.h"

#include <math.h>

#define MAX_PARTS 6

typedef struct {
    OrrWork *parts[MAX_PARTS];
    int n_parts;
} Unfused;

static bool run(OrrCuda *cuda, OrrWork *w, GError **error) {
    const Unfused *u = w->state;
    for (int i = 0; i < u->n_parts; i++)
        if (!u->parts[i]->ops->run(cuda, u->parts[i], error))
            return false;
    return true;
}

static bool compare(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error) {
    const Unfused *u = w->state;
    *error_frac = *tolerance_frac = 0;
    for (int i = 0; i < u->n_parts; i++) {
        double part, allowed;
        if (!u->parts[i]->ops->compare(cuda, u->parts[i], &part, &allowed, error))
            return false;
        *error_frac = fmax(*error_frac, part);
        *tolerance_frac = fmax(*tolerance_frac, allowed);
    }
    return true;
}

static void release(OrrCuda *cuda, OrrWork *w) {
    Unfused *u = w->state;
    for (int i = 0; i < u->n_parts; i++)
        orr_cuda__release(cuda, u->parts[i]);
    g_free(u);
}

static const OrrCudaOps ops = {.run = run, .compare = compare, .release = release};

static bool add(OrrCuda *cuda, Unfused *u, const OrrCase *c, GError **error) {
    OrrWork *part = c->kind == ORR_CASE_KERNEL ? orr_cuda__kernel(cuda, cuda->gpus, c, error)
                                               : orr_cuda__gemm(cuda, cuda->gpus, c, error);
    if (part)
        u->parts[u->n_parts++] = part;
    return part != NULL;
}

/* A product of all heads; the layouts are those of keys (n x k), values (k x n) and probabilities
 * (k x m). */
static OrrCase product(const OrrCase *c, OrrKernelPass layout, int64_t n, int64_t k) {
    return (OrrCase){.kind = ORR_CASE_BATCHED_GEMM,
                     .dtype = c->dtype,
                     .pass = layout,
                     .m = c->sequence,
                     .n = n,
                     .k = k,
                     .batch = c->batch * c->heads};
}

static bool add_parts(OrrCuda *cuda, Unfused *u, const OrrCase *c, GError **error) {
    int64_t s = c->sequence, d = c->head_dim;
    bool is_back = c->pass != ORR_PASS_FORWARD;
    OrrCase scores = product(c, ORR_PASS_FORWARD, s, d); /* Q K', or dO V' */
    OrrCase softmax = {.kind = ORR_CASE_KERNEL,
                       .op = ORR_MEM_SOFTMAX,
                       .dtype = c->dtype,
                       .pass = is_back ? ORR_PASS_DGRAD : ORR_PASS_FORWARD,
                       .rows = c->batch * c->heads * s,
                       .columns = s};
    OrrCase values = product(c, ORR_PASS_DGRAD, d, s);     /* P V, or dS K */
    OrrCase transposed = product(c, ORR_PASS_WGRAD, d, s); /* P' dO, dS' Q */
    if (!add(cuda, u, &scores, error) || !add(cuda, u, &softmax, error) ||
        !add(cuda, u, &values, error))
        return false;
    return !is_back || (add(cuda, u, &transposed, error) && add(cuda, u, &transposed, error));
}

OrrWork *orr_cuda__unfused(OrrCuda *cuda, const OrrCase *c, GError **error) {
    if (c->heads != c->kv_heads) {
        orr_cuda__refuse(error, "the unfused path has a key head for each query head");
        return NULL;
    }
    OrrWork *w = orr_cuda__work(&ops, c, cuda->gpus);
    w->state = g_new0(Unfused, 1);
    if (add_parts(cuda, w->state, c, error))
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}
