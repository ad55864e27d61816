/* Between the parts of the CUDA device. */
#ifndef ORR_CALIBRATE_CUDA_PRIV_H
#define ORR_CALIBRATE_CUDA_PRIV_H

#include "calibrate/device_cuda.h"
#include "calibrate/nvml.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

/* A GPU of this process, with what every case on it needs. */
typedef struct {
    int id; /* as CUDA counts */
    cudaStream_t stream, beside;
    cudaEvent_t begin, end, begin_beside, end_beside;
    cublasLtHandle_t lt;
    cublasHandle_t blas;
    void *workspace; /* of cuBLASLt */
} OrrGpu;

/* What cuBLAS is recommended to have on Hopper and later: cuBLAS library documentation,
 * cublasSetWorkspace. */
#define ORR_WORKSPACE_BYTES ((size_t)32 << 20)

typedef struct OrrCollectives OrrCollectives; /* cuda_comms.h */

typedef struct {
    OrrDevice base;
    OrrRanks *ranks;
    OrrGpu *gpus;
    int n_gpus; /* of this process */
    int n_world, n_per_node;
    int first;   /* world number of gpus[0] */
    void *flush; /* of GPU 0; as large as flush_bytes */
    size_t flush_bytes;
    struct cudaDeviceProp properties;
    OrrNvml *nvml; /* NULL if absent */
    void *cudnn;   /* handle; NULL until the first attention */
    OrrCollectives *collectives;
    char *driver, *cuda, *cublas, *cudnn_version, *nccl_version;
    char *capability, *date;
    double boost_mhz, hbm_bytes_per_s; /* 0: the driver does not tell */
} OrrCuda;

/* How a kind of case is run. Functions that a kind lacks are NULL. */
typedef struct {
    /* Enqueues one repeat on w->stream. */
    bool (*run)(OrrCuda *cuda, OrrWork *w, GError **error);
    /* Compares what one run left; run has ended. */
    bool (*compare)(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error);
    /* Instead of events around run. */
    bool (*time)(OrrCuda *cuda, OrrWork *w, uint32_t n, OrrTiming *timing, GError **error);
    void (*release)(OrrCuda *cuda, OrrWork *w); /* frees w->state; buffers go by themselves */
} OrrCudaOps;

#define ORR_MAX_BUFFERS 12

struct OrrWork {
    const OrrCudaOps *ops;
    OrrCase c;
    OrrGpu *gpu;
    cudaStream_t stream;
    void *buffers[ORR_MAX_BUFFERS]; /* cudaFree */
    int n_buffers;
    void *state;
};

/* true if @status is success. Else ORR_ERROR_ENV if the device is lost, ORR_ERROR_NO otherwise. */
bool orr_cuda__ok(cudaError_t status, const char *what, GError **error);
bool orr_cuda__blas_ok(cublasStatus_t status, const char *what, GError **error);
bool orr_cuda__refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

OrrWork *orr_cuda__work(const OrrCudaOps *ops, const OrrCase *c, OrrGpu *gpu);
/* A buffer of the work; NULL with @error. */
void *orr_cuda__buffer(OrrWork *w, size_t bytes, GError **error);
/* The same with random data of @dtype, seeded. */
void *orr_cuda__random(OrrWork *w, OrrDtype dtype, int64_t n, uint64_t seed, GError **error);
void orr_cuda__release(OrrCuda *cuda, OrrWork *w);
/* Events around @n repeats on w->stream. */
bool orr_cuda__time(OrrCuda *cuda, OrrWork *w, uint32_t n, double *ns, GError **error);
/* Element @i of device memory as a double. */
bool orr_cuda__element(const void *data, OrrDtype dtype, int64_t i, double *value, GError **error);
/* Bytes of one element in memory. */
size_t orr_cuda__size(OrrDtype dtype);

/* The kinds. NULL with @error. */
OrrWork *orr_cuda__gemm(OrrCuda *cuda, OrrGpu *gpu, const OrrCase *c, GError **error);
OrrWork *orr_cuda__grouped(OrrCuda *cuda, OrrGpu *gpu, const OrrCase *c, GError **error);
OrrWork *orr_cuda__attention(OrrCuda *cuda, const OrrCase *c, GError **error);
OrrWork *orr_cuda__unfused(OrrCuda *cuda, const OrrCase *c, GError **error);
OrrWork *orr_cuda__kernel(OrrCuda *cuda, OrrGpu *gpu, const OrrCase *c, GError **error);
OrrWork *orr_cuda__copy(OrrCuda *cuda, const OrrCase *c, GError **error);
OrrWork *orr_cuda__launch(OrrCuda *cuda, const OrrCase *c, GError **error);
OrrWork *orr_cuda__collective(OrrCuda *cuda, const OrrCase *c, GError **error);

/* Libraries that may be absent: their version as they are loaded, "" without; g_free. */
char *orr_cuda__cudnn_version(void);
char *orr_cuda__nccl_version(void);
void orr_cuda__cudnn_close(OrrCuda *cuda);
void orr_cuda__nccl_close(OrrCuda *cuda);

#endif
