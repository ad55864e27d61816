/* Memory-bound kernels of training, each a plain streaming kernel: 16 bytes a thread and load, a
 * block a row where a row is reduced. They stand for what frameworks fuse into one kernel; formulas
 * and their sources are in reference.c, which checks them. Rows are as the buffer has them; columns
 * are a multiple of 8. */
#include "calibrate/kernels.h"

#include "calibrate/fill.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#define THREADS 256
/* Elements that a thread takes at once. */
#define WIDTH 8

template <typename T> struct alignas(sizeof(T) * WIDTH > 16 ? 16 : sizeof(T) * WIDTH) Pack {
    T value[WIDTH];
};

template <typename T> __device__ static float to_float(T x) {
    return (float)x;
}
template <typename T> __device__ static T from_float(float x) {
    return (T)x;
}

template <typename T> __device__ static void load(const T *from, int64_t at, float *to) {
    Pack<T> pack = *(const Pack<T> *)(from + at);
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        to[i] = to_float(pack.value[i]);
}

template <typename T> __device__ static void store(T *to, int64_t at, const float *from) {
    Pack<T> pack;
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        pack.value[i] = from_float<T>(from[i]);
    *(Pack<T> *)(to + at) = pack;
}

/* Sum over the block, known to all its threads. */
__device__ static float block_sum(float x) {
    __shared__ float parts[THREADS / 32];
    __shared__ float total;
    for (int i = 16; i; i /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, i);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        total = 0;
        for (int i = 0; i < THREADS / 32; i++)
            total += parts[i];
    }
    __syncthreads();
    return total;
}

__device__ static float block_max(float x) {
    __shared__ float parts[THREADS / 32];
    __shared__ float largest;
    for (int i = 16; i; i /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, i));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        largest = parts[0];
        for (int i = 1; i < THREADS / 32; i++)
            largest = fmaxf(largest, parts[i]);
    }
    __syncthreads();
    return largest;
}

/* For all packs of this block's row. */
#define FOR_ROW(at, columns)                                                                       \
    for (int64_t at = threadIdx.x * WIDTH; at < (columns); at += (int64_t)blockDim.x * WIDTH)

/* For all packs of the buffer. */
#define FOR_ALL(at, n)                                                                             \
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * WIDTH; at < (n);          \
         at += (int64_t)gridDim.x * blockDim.x * WIDTH)

/* Mean (layer norm only) and inverse deviation of a row. */
template <typename T>
__device__ static void row_scale(const T *x, int64_t columns, bool is_layer, float *mean,
                                 float *scale) {
    float v[WIDTH], sum = 0, square = 0;
    *mean = 0;
    if (is_layer) {
        FOR_ROW(at, columns) {
            load(x, at, v);
            for (int i = 0; i < WIDTH; i++)
                sum += v[i];
        }
        *mean = block_sum(sum) / (float)columns;
    }
    FOR_ROW(at, columns) {
        load(x, at, v);
        for (int i = 0; i < WIDTH; i++)
            square += (v[i] - *mean) * (v[i] - *mean);
    }
    *scale = rsqrtf(block_sum(square) / (float)columns + (float)ORR_NORM_EPSILON);
}

template <typename T>
__global__ static void norm(const T *in, const T *weight, T *out, int64_t columns, bool is_layer) {
    const T *x = in + blockIdx.x * columns;
    T *y = out + blockIdx.x * columns;
    float mean, scale, v[WIDTH], w[WIDTH];
    row_scale(x, columns, is_layer, &mean, &scale);
    FOR_ROW(at, columns) {
        load(x, at, v);
        load(weight, at, w);
        for (int i = 0; i < WIDTH; i++)
            v[i] = (v[i] - mean) * scale * w[i];
        store(y, at, v);
    }
}

template <typename T>
__global__ static void norm_backward(const T *in, const T *weight, const T *grad, T *out,
                                     int64_t columns, bool is_layer) {
    const T *x = in + blockIdx.x * columns, *g = grad + blockIdx.x * columns;
    T *dx = out + blockIdx.x * columns;
    float mean, scale, v[WIDTH], w[WIDTH], dy[WIDTH], a = 0, b = 0;
    row_scale(x, columns, is_layer, &mean, &scale);
    FOR_ROW(at, columns) {
        load(x, at, v);
        load(weight, at, w);
        load(g, at, dy);
        for (int i = 0; i < WIDTH; i++) {
            a += dy[i] * w[i];
            b += dy[i] * w[i] * (v[i] - mean) * scale;
        }
    }
    a = is_layer ? block_sum(a) / (float)columns : 0;
    b = block_sum(b) / (float)columns;
    FOR_ROW(at, columns) {
        load(x, at, v);
        load(weight, at, w);
        load(g, at, dy);
        for (int i = 0; i < WIDTH; i++)
            v[i] = scale * (dy[i] * w[i] - a - (v[i] - mean) * scale * b);
        store(dx, at, v);
    }
}

template <typename T>
__global__ static void rotary(const T *x, T *y, const float2 *table, int64_t n, int64_t columns) {
    float v[WIDTH];
    FOR_ALL(at, n) {
        load(x, at, v);
        int64_t position = at / columns % ORR_ROTARY_POSITIONS, pair = at % columns / 2;
        for (int i = 0; i < WIDTH; i += 2) {
            float2 t = table[position * ORR_ROTARY_PAIRS + (pair + i / 2) % ORR_ROTARY_PAIRS];
            float a = v[i], b = v[i + 1];
            v[i] = a * t.x - b * t.y;
            v[i + 1] = a * t.y + b * t.x;
        }
        store(y, at, v);
    }
}

__global__ static void rotary_table(float2 *table) {
    int position = blockIdx.x, pair = threadIdx.x;
    double angle = position * pow(10000.0, -(double)pair / ORR_ROTARY_PAIRS);
    table[position * ORR_ROTARY_PAIRS + pair] = make_float2((float)cos(angle), (float)sin(angle));
}

template <typename T> __global__ static void swiglu(const T *gate, const T *up, T *y, int64_t n) {
    float g[WIDTH], u[WIDTH];
    FOR_ALL(at, n) {
        load(gate, at, g);
        load(up, at, u);
        for (int i = 0; i < WIDTH; i++)
            g[i] = g[i] / (1 + __expf(-g[i])) * u[i];
        store(y, at, g);
    }
}

template <typename T>
__global__ static void swiglu_backward(const T *gate, const T *up, const T *grad, T *d_gate,
                                       T *d_up, int64_t n) {
    float g[WIDTH], u[WIDTH], d[WIDTH];
    FOR_ALL(at, n) {
        load(gate, at, g);
        load(up, at, u);
        load(grad, at, d);
        for (int i = 0; i < WIDTH; i++) {
            float s = 1 / (1 + __expf(-g[i])), silu = g[i] * s;
            g[i] = d[i] * u[i] * s * (1 + g[i] * (1 - s));
            u[i] = d[i] * silu;
        }
        store(d_gate, at, g);
        store(d_up, at, u);
    }
}

/* sqrt(2 / pi) and the cubic term of the tanh form. */
#define GELU_C 0.7978845608f
#define GELU_B 0.044715f

template <typename T>
__global__ static void gelu(const T *x, const T *grad, T *y, int64_t n, bool is_backward) {
    float v[WIDTH], d[WIDTH];
    FOR_ALL(at, n) {
        load(x, at, v);
        if (is_backward)
            load(grad, at, d);
        for (int i = 0; i < WIDTH; i++) {
            float a = v[i], t = tanhf(GELU_C * (a + GELU_B * a * a * a));
            v[i] =
                is_backward
                    ? d[i] * ((1 + t) / 2 + a / 2 * (1 - t * t) * GELU_C * (1 + 3 * GELU_B * a * a))
                    : a * (1 + t) / 2;
        }
        store(y, at, v);
    }
}

template <typename T>
__global__ static void residual_dropout(const T *x, const T *residual, T *y, uint8_t *mask,
                                        int64_t n) {
    float v[WIDTH], r[WIDTH];
    const uint64_t keep = (uint64_t)(ORR_DROPOUT_KEEP * 16777216.0); /* of 2^24 */
    FOR_ALL(at, n) {
        load(x, at, v);
        load(residual, at, r);
        uint64_t bits = 0;
        for (int i = 0; i < WIDTH; i++) {
            bool is_kept = orr_fill_hash(ORR_DROPOUT_SEED, (uint64_t)(at + i)) >> 40 <= keep;
            bits |= (uint64_t)is_kept << (8 * i);
            v[i] = r[i] + (is_kept ? v[i] / (float)ORR_DROPOUT_KEEP : 0);
        }
        *(uint64_t *)(mask + at) = bits;
        store(y, at, v);
    }
}

/* Largest element of a row and the sum of the exponentials above it. */
template <typename T>
__device__ static void row_exponents(const T *x, int64_t columns, float *largest, float *sum) {
    float v[WIDTH], most = -INFINITY, part = 0;
    FOR_ROW(at, columns) {
        load(x, at, v);
        float before = most;
        for (int i = 0; i < WIDTH; i++)
            most = fmaxf(most, v[i]);
        part *= __expf(before - most);
        for (int i = 0; i < WIDTH; i++)
            part += __expf(v[i] - most);
    }
    *largest = block_max(most);
    *sum = block_sum(most == -INFINITY ? 0 : part * __expf(most - *largest));
}

/* Softmax; with @losses the gradient of the cross-entropy, the target being the row's number. */
template <typename T>
__global__ static void softmax(const T *in, T *out, float *losses, int64_t columns) {
    const T *x = in + blockIdx.x * columns;
    T *y = out + blockIdx.x * columns;
    float largest, sum, v[WIDTH];
    row_exponents(x, columns, &largest, &sum);
    int64_t target = losses ? blockIdx.x % columns : -1;
    FOR_ROW(at, columns) {
        load(x, at, v);
        for (int i = 0; i < WIDTH; i++) {
            if (at + i == target)
                losses[blockIdx.x] = logf(sum) + largest - v[i];
            v[i] = __expf(v[i] - largest) / sum - (at + i == target ? 1 : 0);
        }
        store(y, at, v);
    }
}

template <typename T>
__global__ static void softmax_backward(const T *in, const T *grad, T *out, int64_t columns) {
    const T *y = in + blockIdx.x * columns, *g = grad + blockIdx.x * columns;
    T *dx = out + blockIdx.x * columns;
    float v[WIDTH], d[WIDTH], sum = 0;
    FOR_ROW(at, columns) {
        load(y, at, v);
        load(g, at, d);
        for (int i = 0; i < WIDTH; i++)
            sum += v[i] * d[i];
    }
    sum = block_sum(sum);
    FOR_ROW(at, columns) {
        load(y, at, v);
        load(g, at, d);
        for (int i = 0; i < WIDTH; i++)
            v[i] *= d[i] - sum;
        store(dx, at, v);
    }
}

template <typename T>
__global__ static void adam(float *weight, float *first, float *second, const T *grad, T *copy,
                            int64_t n) {
    float w[WIDTH], m[WIDTH], v[WIDTH], g[WIDTH];
    const float b1 = (float)ORR_ADAM_BETA1, b2 = (float)ORR_ADAM_BETA2;
    FOR_ALL(at, n) {
        load(weight, at, w);
        load(first, at, m);
        load(second, at, v);
        load(grad, at, g);
        for (int i = 0; i < WIDTH; i++) {
            m[i] = b1 * m[i] + (1 - b1) * g[i];
            v[i] = b2 * fabsf(v[i]) + (1 - b2) * g[i] * g[i];
            w[i] -= (float)ORR_ADAM_RATE * m[i] / (sqrtf(v[i]) + (float)ORR_ADAM_EPSILON);
        }
        store(weight, at, w);
        store(first, at, m);
        store(second, at, v);
        store(copy, at, w);
    }
}

template <typename T> __global__ static void cast(const float *x, T *y, int64_t n) {
    float v[WIDTH];
    FOR_ALL(at, n) {
        load(x, at, v);
        store(y, at, v);
    }
}

template <typename T>
__global__ static void permute(const T *in, T *out, int64_t rows, int64_t columns) {
    int64_t source = (int64_t)blockIdx.x * ORR_PERMUTE_STRIDE % rows;
    float v[WIDTH];
    FOR_ROW(at, columns) {
        load(in + source * columns, at, v);
        store(out + blockIdx.x * columns, at, v);
    }
}

__global__ static void empty(void) {
}

template <typename T> __global__ static void fill(T *data, int64_t n, uint64_t seed, int steps) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        data[i] = from_float<T>(orr_fill_value(seed, (uint64_t)i, steps));
}

/* Blocks for @n elements: enough to fill any GPU, not more than there is work. */
static unsigned blocks_for(int64_t n) {
    int64_t blocks = (n / WIDTH + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks > 65536 ? 65536 : blocks);
}

template <typename T> static void run_rows(const OrrKernelArguments *a, cudaStream_t stream) {
    const T *x = (const T *)a->in[0], *b = (const T *)a->in[1], *g = (const T *)a->in[2];
    T *y = (T *)a->out[0];
    unsigned rows = (unsigned)a->rows;
    bool is_layer = a->op == ORR_MEM_LAYER_NORM;
    if (a->op == ORR_MEM_PERMUTE)
        permute<<<rows, THREADS, 0, stream>>>(x, y, a->rows, a->columns);
    else if (a->op == ORR_MEM_CROSS_ENTROPY)
        softmax<<<rows, THREADS, 0, stream>>>(x, y, (float *)a->out[1], a->columns);
    else if (a->op == ORR_MEM_SOFTMAX && a->is_backward)
        softmax_backward<<<rows, THREADS, 0, stream>>>(x, g, y, a->columns);
    else if (a->op == ORR_MEM_SOFTMAX)
        softmax<<<rows, THREADS, 0, stream>>>(x, y, (float *)NULL, a->columns);
    else if (a->is_backward)
        norm_backward<<<rows, THREADS, 0, stream>>>(x, b, g, y, a->columns, is_layer);
    else
        norm<<<rows, THREADS, 0, stream>>>(x, b, y, a->columns, is_layer);
}

template <typename T> static void run_all(const OrrKernelArguments *a, cudaStream_t stream) {
    const T *x = (const T *)a->in[0], *b = (const T *)a->in[1], *g = (const T *)a->in[2];
    T *y = (T *)a->out[0];
    int64_t n = a->rows * a->columns;
    unsigned blocks = blocks_for(n);
    switch (a->op) {
    case ORR_MEM_ROTARY:
        rotary<<<blocks, THREADS, 0, stream>>>(x, y, (const float2 *)a->table, n, a->columns);
        break;
    case ORR_MEM_SWIGLU:
        if (a->is_backward)
            swiglu_backward<<<blocks, THREADS, 0, stream>>>(x, b, g, y, (T *)a->out[1], n);
        else
            swiglu<<<blocks, THREADS, 0, stream>>>(x, b, y, n);
        break;
    case ORR_MEM_GELU:
        gelu<<<blocks, THREADS, 0, stream>>>(x, g, y, n, a->is_backward != 0);
        break;
    case ORR_MEM_RESIDUAL_DROPOUT:
        residual_dropout<<<blocks, THREADS, 0, stream>>>(x, b, y, (uint8_t *)a->out[1], n);
        break;
    case ORR_MEM_ADAM:
        adam<<<blocks, THREADS, 0, stream>>>((float *)a->in[0], (float *)a->in[1],
                                             (float *)a->in[2], (const T *)a->in[3], y, n);
        break;
    case ORR_MEM_CAST:
        cast<<<blocks, THREADS, 0, stream>>>((const float *)a->in[0], y, n);
        break;
    default:
        run_rows<T>(a, stream);
    }
}

extern "C" int orr_kernels_run(const OrrKernelArguments *a, void *stream) {
    cudaStream_t s = (cudaStream_t)stream;
    if (a->dtype == ORR_BF16)
        run_all<__nv_bfloat16>(a, s);
    else if (a->dtype == ORR_FP16)
        run_all<__half>(a, s);
    else
        run_all<float>(a, s);
    return (int)cudaGetLastError();
}

extern "C" int orr_kernels_fill(void *data, int dtype, int64_t n, uint64_t seed, void *stream) {
    cudaStream_t s = (cudaStream_t)stream;
    unsigned blocks = blocks_for(n);
    if (dtype == ORR_BF16)
        fill<<<blocks, THREADS, 0, s>>>((__nv_bfloat16 *)data, n, seed, ORR_FILL_STEPS);
    else if (dtype == ORR_FP16)
        fill<<<blocks, THREADS, 0, s>>>((__half *)data, n, seed, ORR_FILL_STEPS);
    else if (dtype == ORR_FP8)
        fill<<<blocks, THREADS, 0, s>>>((__nv_fp8_e4m3 *)data, n, seed, ORR_FILL_STEPS_FP8);
    else
        fill<<<blocks, THREADS, 0, s>>>((float *)data, n, seed, ORR_FILL_STEPS);
    return (int)cudaGetLastError();
}

extern "C" int orr_kernels_rotary_table(void *table, void *stream) {
    rotary_table<<<ORR_ROTARY_POSITIONS, ORR_ROTARY_PAIRS, 0, (cudaStream_t)stream>>>(
        (float2 *)table);
    return (int)cudaGetLastError();
}

extern "C" int orr_kernels_empty(void *stream) {
    empty<<<1, 1, 0, (cudaStream_t)stream>>>();
    return (int)cudaGetLastError();
}
