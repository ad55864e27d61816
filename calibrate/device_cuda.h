/* NVIDIA GPUs through the CUDA runtime, cuBLASLt, cuDNN, NCCL and NVML. One process has all GPUs
 * that it sees, or under MPI the one of its place on the node. Sets no clock, power or mode. */
#ifndef ORR_CALIBRATE_DEVICE_CUDA_H
#define ORR_CALIBRATE_DEVICE_CUDA_H

#include "calibrate/device.h"

/* @ranks is borrowed. NULL with ORR_ERROR_ENV if there is no GPU or no driver. */
OrrDevice *orr_device_cuda(OrrRanks *ranks, GError **error);
/* Versions of the libraries it was built with; g_free. */
char *orr_device_cuda_versions(void);

#endif
