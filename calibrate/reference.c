/* References. Formulas: Ba et al. 2016 (layer norm), Zhang and Sennrich 2019 (RMS norm), Su et al.
 * 2021 (rotary), Shazeer 2020 (SwiGLU), Hendrycks and Gimpel 2016 (GELU, tanh form), Loshchilov and
 * Hutter 2019 (AdamW without decay), Dao 2022 appendix B (gradients of attention). */
#include "calibrate/reference.h"

#include "calibrate/fill.h"

#include <math.h>

static double element(const OrrMatrix *m, int64_t i, int64_t j) {
    return orr_fill_value(m->seed, (uint64_t)(m->offset + i * m->row + j * m->column), m->steps);
}

double orr_reference_product(const OrrMatrix *a, const OrrMatrix *b, int64_t i, int64_t j,
                             int64_t k) {
    double sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += element(a, i, l) * element(b, l, j);
    return sum;
}

static double dot(const double *x, const OrrMatrix *m, int64_t row, int64_t n) {
    double sum = 0;
    for (int64_t d = 0; d < n; d++)
        sum += x[d] * element(m, row, d);
    return sum;
}

/* Probabilities of the keys that the query sees. */
static void probabilities(const OrrQuery *q, const double *query, int64_t n, double *p) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        p[j] = dot(query, &q->key, j, q->head_dim) * q->scale;
        largest = fmax(largest, p[j]);
    }
    for (int64_t j = 0; j < n; j++)
        sum += p[j] = exp(p[j] - largest);
    for (int64_t j = 0; j < n; j++)
        p[j] /= sum;
}

void orr_reference_attention(const OrrQuery *q, double *output, double *query_gradient) {
    int64_t n = q->is_causal ? MIN(q->n, q->i + 1) : q->n;
    g_autofree double *query = g_new(double, q->head_dim);
    g_autofree double *grad = g_new(double, q->head_dim);
    g_autofree double *p = g_new(double, n);
    for (int64_t d = 0; d < q->head_dim; d++) {
        query[d] = element(&q->query, q->i, d);
        grad[d] = element(&q->grad, q->i, d);
        output[d] = 0;
    }
    probabilities(q, query, n, p);
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; d < q->head_dim; d++)
            output[d] += p[j] * element(&q->value, j, d);
    if (!query_gradient)
        return;
    double delta = 0; /* output times its gradient */
    for (int64_t d = 0; d < q->head_dim; d++) {
        delta += grad[d] * output[d];
        query_gradient[d] = 0;
    }
    for (int64_t j = 0; j < n; j++) {
        double ds = p[j] * (dot(grad, &q->value, j, q->head_dim) - delta) * q->scale;
        for (int64_t d = 0; d < q->head_dim; d++)
            query_gradient[d] += ds * element(&q->key, j, d);
    }
}

typedef struct {
    const OrrCase *c;
    int64_t row, n;
} Row;

/* Element @j of the row of buffer @seed. */
static double at(const Row *r, uint64_t seed, int64_t j) {
    return orr_fill_value(seed, (uint64_t)(r->row * r->n + j), ORR_FILL_STEPS);
}

/* Norms have no weight to be learned in the check: buffer 2 is it in the kernel, a row for all. */
static double weight(int64_t j) {
    return orr_fill_value(2, (uint64_t)j, ORR_FILL_STEPS);
}

static void norm(const Row *r, bool is_layer, bool is_back, double *out) {
    double mean = 0, square = 0, a = 0, b = 0;
    for (int64_t j = 0; is_layer && j < r->n; j++)
        mean += at(r, 1, j) / (double)r->n;
    for (int64_t j = 0; j < r->n; j++)
        square += pow(at(r, 1, j) - mean, 2) / (double)r->n;
    double scale = 1 / sqrt(square + ORR_NORM_EPSILON);
    for (int64_t j = 0; j < r->n; j++) {
        double g = at(r, 3, j) * weight(j);
        a += is_layer ? g / (double)r->n : 0;
        b += g * (at(r, 1, j) - mean) * scale / (double)r->n;
    }
    for (int64_t j = 0; j < r->n; j++) {
        double x = (at(r, 1, j) - mean) * scale;
        out[j] = is_back ? scale * (at(r, 3, j) * weight(j) - a - x * b) : x * weight(j);
    }
}

static void rotary(const Row *r, double *out) {
    double position = (double)(r->row % ORR_ROTARY_POSITIONS);
    for (int64_t j = 0; j + 1 < r->n; j += 2) {
        double frequency =
            pow(10000, -(double)(j / 2 % ORR_ROTARY_PAIRS) / ORR_ROTARY_PAIRS); /* Su et al. */
        double angle = position * frequency, x = at(r, 1, j), y = at(r, 1, j + 1);
        out[j] = x * cos(angle) - y * sin(angle);
        out[j + 1] = x * sin(angle) + y * cos(angle);
    }
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double swiglu(const Row *r, bool is_back, int64_t j) {
    double g = at(r, 1, j), u = at(r, 2, j), s = sigmoid(g);
    return is_back ? at(r, 3, j) * u * s * (1 + g * (1 - s)) : g * s * u;
}

static double gelu(const Row *r, bool is_back, int64_t j) {
    /* sqrt(2 / pi) and the cubic term of the tanh form. */
    double c = 0.7978845608028654, b = 0.044715, x = at(r, 1, j);
    double t = tanh(c * (x + b * x * x * x));
    if (!is_back)
        return x * (1 + t) / 2;
    return at(r, 3, j) * ((1 + t) / 2 + x / 2 * (1 - t * t) * c * (1 + 3 * b * x * x));
}

static double residual_dropout(const Row *r, int64_t j) {
    uint64_t draw = orr_fill_hash(ORR_DROPOUT_SEED, (uint64_t)(r->row * r->n + j));
    bool is_kept = (double)(draw >> 40) < ORR_DROPOUT_KEEP * 16777216.0; /* of 2^24 */
    return at(r, 2, j) + (is_kept ? at(r, 1, j) / ORR_DROPOUT_KEEP : 0);
}

/* Softmax, or the gradient of the cross-entropy; the target is the row's number. */
static void softmax(const Row *r, bool is_loss, double *out) {
    double sum = 0;
    for (int64_t j = 0; j < r->n; j++)
        sum += exp(at(r, 1, j));
    for (int64_t j = 0; j < r->n; j++)
        out[j] = exp(at(r, 1, j)) / sum - (is_loss && j == r->row % r->n ? 1 : 0);
}

static void softmax_backward(const Row *r, double *out) {
    double sum = 0;
    for (int64_t j = 0; j < r->n; j++)
        sum += at(r, 1, j) * at(r, 3, j);
    for (int64_t j = 0; j < r->n; j++)
        out[j] = at(r, 1, j) * (at(r, 3, j) - sum);
}

/* The first step from random moments, the second made positive. */
static double adam(const Row *r, int64_t j) {
    double g = at(r, 4, j), m = ORR_ADAM_BETA1 * at(r, 2, j) + (1 - ORR_ADAM_BETA1) * g;
    double v = ORR_ADAM_BETA2 * fabs(at(r, 3, j)) + (1 - ORR_ADAM_BETA2) * g * g;
    return at(r, 1, j) - ORR_ADAM_RATE * m / (sqrt(v) + ORR_ADAM_EPSILON);
}

static double permuted(const Row *r, int64_t j) {
    Row source = *r;
    source.row = r->row * ORR_PERMUTE_STRIDE % r->c->rows;
    return at(&source, 1, j);
}

static double element_of(const Row *r, int64_t j) {
    bool is_back = r->c->pass != ORR_PASS_FORWARD;
    switch ((OrrMemKernel)r->c->op) {
    case ORR_MEM_SWIGLU:
        return swiglu(r, is_back, j);
    case ORR_MEM_GELU:
        return gelu(r, is_back, j);
    case ORR_MEM_RESIDUAL_DROPOUT:
        return residual_dropout(r, j);
    case ORR_MEM_ADAM:
        return adam(r, j);
    case ORR_MEM_PERMUTE:
        return permuted(r, j);
    case ORR_MEM_CAST:
    case ORR_MEM_LAYER_NORM:
    case ORR_MEM_RMS_NORM:
    case ORR_MEM_ROTARY:
    case ORR_MEM_SOFTMAX:
    case ORR_MEM_CROSS_ENTROPY:
    case ORR_N_MEM_KERNELS:
        break;
    }
    return at(r, 1, j);
}

void orr_reference_kernel(const OrrCase *c, int64_t row, double *output) {
    Row r = {c, row, c->columns};
    bool is_back = c->pass != ORR_PASS_FORWARD;
    if (c->op == ORR_MEM_LAYER_NORM || c->op == ORR_MEM_RMS_NORM)
        norm(&r, c->op == ORR_MEM_LAYER_NORM, is_back, output);
    else if (c->op == ORR_MEM_ROTARY)
        rotary(&r, output);
    else if (c->op == ORR_MEM_SOFTMAX && is_back)
        softmax_backward(&r, output);
    else if (c->op == ORR_MEM_SOFTMAX || c->op == ORR_MEM_CROSS_ENTROPY)
        softmax(&r, c->op == ORR_MEM_CROSS_ENTROPY, output);
    else
        for (int64_t j = 0; j < r.n; j++)
            output[j] = element_of(&r, j);
}
