/* What one GPU can do: a data file of topologies/gpus. */
#ifndef ORR_CLUSTER_GPU_H
#define ORR_CLUSTER_GPU_H

#include "sim/terms/terms.h"

typedef enum {
    ORR_ARCH_VOLTA,
    ORR_ARCH_AMPERE,
    ORR_ARCH_HOPPER,
    ORR_ARCH_BLACKWELL,
    ORR_ARCH_BLACKWELL_ULTRA,
    ORR_N_ARCHS
} OrrArch;
extern const char *const orr_arch_names[];

typedef struct {
    char *name; /* "h100-sxm-80" */
    char *source;
    OrrArch arch;
    uint32_t n_sms;
    double boost_hz, sustained_hz; /* sustained: in a training step held at the power limit */
    double peak_flops_per_s[ORR_N_DTYPES]; /* dense tensor-core peak at boost; 0: not supported */
    double vector_flops_per_s;             /* FP32 outside tensor cores */
    double hbm_bytes, hbm_bytes_per_s;
    double l2_bytes;
    double nvlink_bytes_per_s; /* per direction, all links together; 0: none */
    uint32_t nvlink_links;
    double pcie_bytes_per_s; /* per direction */
    double power_watts;
    double kernel_fixed_ns; /* start and drain of a kernel, without the host */
    double mem_eff_frac;    /* share of HBM bandwidth that streaming kernels reach */
    double context_bytes;   /* CUDA context, NCCL, cuBLAS workspace: held from the start */
    char *surfaces;         /* name of its efficiency surfaces (calibrate/tables), or "" */
} OrrGpu;

void orr_gpu_free(OrrGpu *gpu);
OrrGpu *orr_gpu_copy(const OrrGpu *gpu);

#endif
