/* The CUDA device: GPUs of the process, memory, events, and the way from a case to its kind. */
#include "config.h"

#include "calibrate/device_cuda.h"

#include "calibrate/cuda_priv.h"
#include "calibrate/kernels.h"

#include <math.h>
#include <string.h>

bool orr_cuda__refuse(GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error_literal(error, ORR_ERROR, ORR_ERROR_NO, text);
    return false;
}

/* After an error that kills the context every call fails, also one that asks for nothing. */
static bool is_lost(void) {
    cudaGetLastError();
    return cudaDeviceSynchronize() != cudaSuccess;
}

bool orr_cuda__ok(cudaError_t status, const char *what, GError **error) {
    if (status == cudaSuccess)
        return true;
    const char *why = cudaGetErrorString(status);
    if (is_lost())
        return orr_fail_env(error, "%s: %s; the GPU is lost for this process", what, why);
    if (status == cudaErrorMemoryAllocation)
        return orr_cuda__refuse(error, "out of GPU memory");
    return orr_cuda__refuse(error, "%s: %s", what, why);
}

bool orr_cuda__blas_ok(cublasStatus_t status, const char *what, GError **error) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    if (is_lost())
        return orr_fail_env(error, "%s: %s; the GPU is lost for this process", what,
                            cublasGetStatusString(status));
    return orr_cuda__refuse(error, "%s: %s", what, cublasGetStatusString(status));
}

size_t orr_cuda__size(OrrDtype dtype) {
    return (size_t)orr_dtype_bytes(dtype);
}

OrrWork *orr_cuda__work(const OrrCudaOps *ops, const OrrCase *c, OrrGpu *gpu) {
    OrrWork *w = g_new0(OrrWork, 1);
    *w = (OrrWork){.ops = ops, .c = *c, .gpu = gpu, .stream = gpu->stream};
    return w;
}

void *orr_cuda__buffer(OrrWork *w, size_t bytes, GError **error) {
    g_assert(w->n_buffers < ORR_MAX_BUFFERS);
    void *data = NULL;
    if (!orr_cuda__ok(cudaSetDevice(w->gpu->id), "cudaSetDevice", error) ||
        !orr_cuda__ok(cudaMalloc(&data, MAX(bytes, 256)), "cudaMalloc", error))
        return NULL;
    w->buffers[w->n_buffers++] = data;
    return data;
}

void *orr_cuda__random(OrrWork *w, OrrDtype dtype, int64_t n, uint64_t seed, GError **error) {
    void *data = orr_cuda__buffer(w, (size_t)n * orr_cuda__size(dtype), error);
    if (data && !orr_cuda__ok((cudaError_t)orr_kernels_fill(data, (int)dtype, n, seed, w->stream),
                              "filling a buffer", error))
        return NULL;
    return data;
}

void orr_cuda__release(OrrCuda *cuda, OrrWork *w) {
    if (!w)
        return;
    cudaSetDevice(w->gpu->id);
    if (w->ops->release)
        w->ops->release(cuda, w);
    for (int i = 0; i < w->n_buffers; i++)
        cudaFree(w->buffers[i]);
    g_free(w);
}

static double bf16_value(uint16_t bits) {
    union {
        uint32_t bits;
        float value;
    } wide = {(uint32_t)bits << 16};
    return wide.value;
}

/* IEEE 754 binary16. */
static double fp16_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(mantissa, -24)
                                  : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -size : size;
}

bool orr_cuda__element(const void *data, OrrDtype dtype, int64_t i, double *value, GError **error) {
    size_t size = orr_cuda__size(dtype);
    union {
        uint16_t half;
        float single;
    } x = {0};
    g_assert(size == 2 || size == 4);
    if (!orr_cuda__ok(
            cudaMemcpy(&x, (const char *)data + (size_t)i * size, size, cudaMemcpyDeviceToHost),
            "reading a result", error))
        return false;
    *value = dtype == ORR_BF16   ? bf16_value(x.half)
             : dtype == ORR_FP16 ? fp16_value(x.half)
                                 : x.single;
    return true;
}

static bool elapsed_ns(cudaEvent_t begin, cudaEvent_t end, double *ns, GError **error) {
    float ms = 0;
    if (!orr_cuda__ok(cudaEventSynchronize(end), "waiting for the GPU", error) ||
        !orr_cuda__ok(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime", error))
        return false;
    *ns = ms * 1e6;
    return true;
}

/* One after another, or each by itself behind a write that is larger than the cache. */
bool orr_cuda__time(OrrCuda *cuda, OrrWork *w, uint32_t n, double *ns, GError **error) {
    OrrGpu *g = w->gpu;
    bool flushes = w->c.flushes_l2 && g == cuda->gpus;
    *ns = 0;
    uint32_t rounds = flushes ? n : 1, repeats = flushes ? 1 : n;
    for (uint32_t round = 0; round < rounds; round++) {
        if (flushes &&
            !orr_cuda__ok(cudaMemsetAsync(cuda->flush, (int)round, cuda->flush_bytes, w->stream),
                          "flushing the cache", error))
            return false;
        cudaEventRecord(g->begin, w->stream);
        for (uint32_t i = 0; i < repeats; i++)
            if (!w->ops->run(cuda, w, error))
                return false;
        cudaEventRecord(g->end, w->stream);
        double took;
        if (!elapsed_ns(g->begin, g->end, &took, error))
            return false;
        *ns += took / n;
    }
    return true;
}

static OrrWork *prepare(OrrDevice *d, const OrrCase *c, GError **error) {
    OrrCuda *cuda = (OrrCuda *)d;
    switch (c->kind) {
    case ORR_CASE_GEMM:
    case ORR_CASE_BATCHED_GEMM:
        return orr_cuda__gemm(cuda, cuda->gpus, c, error);
    case ORR_CASE_GROUPED_GEMM:
        return orr_cuda__grouped(cuda, cuda->gpus, c, error);
    case ORR_CASE_ATTENTION:
        return orr_cuda__attention(cuda, c, error);
    case ORR_CASE_UNFUSED_ATTENTION:
        return orr_cuda__unfused(cuda, c, error);
    case ORR_CASE_KERNEL:
        return orr_cuda__kernel(cuda, cuda->gpus, c, error);
    case ORR_CASE_COPY:
        return orr_cuda__copy(cuda, c, error);
    case ORR_CASE_LAUNCH:
        return orr_cuda__launch(cuda, c, error);
    case ORR_CASE_COLLECTIVE:
        return orr_cuda__collective(cuda, c, error);
    case ORR_N_CASE_KINDS:
        break;
    }
    return NULL;
}

static bool check(OrrDevice *d, OrrWork *w, double *error_frac, double *tolerance_frac,
                  GError **error) {
    OrrCuda *cuda = (OrrCuda *)d;
    if (!w->ops->compare)
        return true;
    return w->ops->run(cuda, w, error) &&
           orr_cuda__ok(cudaDeviceSynchronize(), "the first run", error) &&
           w->ops->compare(cuda, w, error_frac, tolerance_frac, error);
}

static bool time_repeats(OrrDevice *d, OrrWork *w, uint32_t n, OrrTiming *timing, GError **error) {
    OrrCuda *cuda = (OrrCuda *)d;
    return w->ops->time ? w->ops->time(cuda, w, n, timing, error)
                        : orr_cuda__time(cuda, w, n, &timing->ns, error);
}

static void release(OrrDevice *d, OrrWork *w) {
    orr_cuda__release((OrrCuda *)d, w);
}

static void read_sensors(OrrDevice *d, OrrReadings *readings) {
    orr_nvml_read(((OrrCuda *)d)->nvml, readings);
}

static int64_t now_us(OrrDevice *d) {
    (void)d;
    return g_get_monotonic_time();
}

static void describe(OrrDevice *d, OrrDeviceFacts *facts) {
    OrrCuda *cuda = (OrrCuda *)d;
    *facts = (OrrDeviceFacts){.device = cuda->properties.name,
                              .driver = cuda->driver,
                              .cuda = cuda->cuda,
                              .cublas = cuda->cublas,
                              .cudnn = cuda->cudnn_version,
                              .nccl = cuda->nccl_version,
                              .capability = cuda->capability,
                              .date = cuda->date,
                              .n_sms = cuda->properties.multiProcessorCount,
                              .boost_mhz = cuda->boost_mhz,
                              .hbm_bytes_per_s = cuda->hbm_bytes_per_s,
                              .memory_bytes = (int64_t)cuda->properties.totalGlobalMem,
                              .l2_bytes = cuda->properties.l2CacheSize,
                              .n_gpus = cuda->n_world,
                              .n_per_node = cuda->n_per_node};
}

static void close_gpu(OrrGpu *g) {
    cudaSetDevice(g->id);
    if (g->lt)
        cublasLtDestroy(g->lt);
    if (g->blas)
        cublasDestroy(g->blas);
    cudaEvent_t events[] = {g->begin, g->end, g->begin_beside, g->end_beside};
    for (guint i = 0; i < G_N_ELEMENTS(events); i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    if (g->stream)
        cudaStreamDestroy(g->stream);
    if (g->beside)
        cudaStreamDestroy(g->beside);
    cudaFree(g->workspace);
}

static void close_cuda(OrrDevice *d) {
    OrrCuda *cuda = (OrrCuda *)d;
    orr_cuda__nccl_close(cuda);
    orr_cuda__cudnn_close(cuda);
    if (cuda->flush)
        cudaFree(cuda->flush);
    for (int i = 0; i < cuda->n_gpus; i++)
        close_gpu(&cuda->gpus[i]);
    orr_nvml_close(cuda->nvml);
    g_free(cuda->driver);
    g_free(cuda->cuda);
    g_free(cuda->cublas);
    g_free(cuda->cudnn_version);
    g_free(cuda->nccl_version);
    g_free(cuda->capability);
    g_free(cuda->date);
    g_free(cuda->gpus);
    g_free(cuda);
}

static const OrrDeviceKind kind = {
    .name = "cuda",
    .describe = describe,
    .prepare = prepare,
    .check = check,
    .time = time_repeats,
    .release = release,
    .read = read_sensors,
    .now_us = now_us,
    .close = close_cuda,
};

static bool open_gpu(OrrGpu *g, int id, GError **error) {
    g->id = id;
    return orr_cuda__ok(cudaSetDevice(id), "cudaSetDevice", error) &&
           orr_cuda__ok(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking),
                        "cudaStreamCreate", error) &&
           orr_cuda__ok(cudaStreamCreateWithFlags(&g->beside, cudaStreamNonBlocking),
                        "cudaStreamCreate", error) &&
           orr_cuda__ok(cudaEventCreate(&g->begin), "cudaEventCreate", error) &&
           orr_cuda__ok(cudaEventCreate(&g->end), "cudaEventCreate", error) &&
           orr_cuda__ok(cudaEventCreate(&g->begin_beside), "cudaEventCreate", error) &&
           orr_cuda__ok(cudaEventCreate(&g->end_beside), "cudaEventCreate", error) &&
           orr_cuda__ok(cudaMalloc(&g->workspace, ORR_WORKSPACE_BYTES), "cudaMalloc", error) &&
           orr_cuda__blas_ok(cublasLtCreate(&g->lt), "cublasLtCreate", error) &&
           orr_cuda__blas_ok(cublasCreate(&g->blas), "cublasCreate", error) &&
           orr_cuda__blas_ok(cublasSetStream(g->blas, g->stream), "cublasSetStream", error);
}

static char *dotted(int version, int major, int minor) {
    return g_strdup_printf("%d.%d", version / major, version % major / minor);
}

static void find_versions(OrrCuda *cuda) {
    int driver = 0, runtime = 0;
    char bus_id[32] = "";
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, cuda->gpus[0].id);
    cuda->nvml = orr_nvml_open(NULL, bus_id);
    const char *known = orr_nvml_driver(cuda->nvml);
    g_autofree char *supported = dotted(driver, 1000, 10);
    cuda->driver = *known ? g_strdup(known) : g_strdup_printf("CUDA %s", supported);
    cuda->cuda = dotted(runtime, 1000, 10);
    size_t lt = cublasLtGetVersion();
    cuda->cublas = g_strdup_printf("%zu", lt);
    cuda->cudnn_version = orr_cuda__cudnn_version();
    cuda->nccl_version = orr_cuda__nccl_version();
}

/* Clocks come as attributes in kHz on every toolkit; the memory's counts once for two edges. */
static void find_machine(OrrCuda *cuda) {
    int id = cuda->gpus[0].id, clock_khz = 0, memory_khz = 0, width_bits = 0;
    cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, id);
    cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, id);
    cudaDeviceGetAttribute(&width_bits, cudaDevAttrGlobalMemoryBusWidth, id);
    cuda->boost_mhz = clock_khz / 1e3;
    cuda->hbm_bytes_per_s = 2.0 * memory_khz * 1e3 * width_bits / 8;
    cuda->capability = g_strdup_printf("%d.%d", cuda->properties.major, cuda->properties.minor);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    cuda->date = g_date_time_format(now, "%Y-%m-%d");
}

static bool open_all(OrrCuda *cuda, int first, GError **error) {
    for (int i = 0; i < cuda->n_gpus; i++)
        if (!open_gpu(&cuda->gpus[i], first + i, error))
            return false;
    OrrGpu *g = &cuda->gpus[0];
    if (!orr_cuda__ok(cudaSetDevice(g->id), "cudaSetDevice", error) ||
        !orr_cuda__ok(cudaGetDeviceProperties(&cuda->properties, g->id), "cudaGetDeviceProperties",
                      error))
        return false;
    /* Twice the cache, so that nothing of it stays. */
    cuda->flush_bytes = (size_t)MAX(cuda->properties.l2CacheSize, 1 << 20) * 2;
    return orr_cuda__ok(cudaMalloc(&cuda->flush, cuda->flush_bytes), "cudaMalloc", error);
}

OrrDevice *orr_device_cuda(OrrRanks *ranks, GError **error) {
    int n = 0;
    cudaError_t status = cudaGetDeviceCount(&n);
    if (status != cudaSuccess || n == 0) {
        orr_fail_env(error, "no GPU can be used here: %s",
                     status != cudaSuccess ? cudaGetErrorString(status) : "none is visible");
        return NULL;
    }
    bool is_alone = ranks->n_ranks == 1;
    if (!is_alone && ranks->local >= n) {
        orr_fail_env(error, "%d processes on a node with %d GPUs; one a GPU would do",
                     ranks->n_local, n);
        return NULL;
    }
    OrrCuda *cuda = g_new0(OrrCuda, 1);
    cuda->base.kind = &kind;
    cuda->ranks = ranks;
    cuda->n_gpus = is_alone ? n : 1;
    cuda->n_world = is_alone ? n : ranks->n_ranks;
    cuda->n_per_node = is_alone ? n : ranks->n_local;
    cuda->first = is_alone ? 0 : ranks->rank;
    cuda->gpus = g_new0(OrrGpu, cuda->n_gpus);
    g_autoptr(GError) why = NULL;
    if (!open_all(cuda, is_alone ? 0 : ranks->local, &why)) {
        orr_fail_env(error, "the GPU can't be used: %s", why->message);
        close_cuda(&cuda->base);
        return NULL;
    }
    find_versions(cuda);
    find_machine(cuda);
    return &cuda->base;
}

char *orr_device_cuda_versions(void) {
    g_autofree char *cuda = dotted(CUDART_VERSION, 1000, 10);
    g_autofree char *cudnn = orr_cuda__cudnn_version();
    g_autofree char *nccl = orr_cuda__nccl_version();
#ifdef HAVE_MPI
    const char *mpi = "yes";
#else
    const char *mpi = "no";
#endif
    return g_strdup_printf("CUDA %s, cuBLASLt %zu, cuDNN %s, NCCL %s, MPI %s", cuda,
                           cublasLtGetVersion(), *cudnn ? cudnn : "no", *nccl ? nccl : "no", mpi);
}
