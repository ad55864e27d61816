/* What names in profiles mean. */
#ifndef TRACES_KINETO_NAMES_H
#define TRACES_KINETO_NAMES_H

#include <glib.h>
#include <stdbool.h>

#include "sim/terms/terms.h"

/* ORR_N_KERNEL_KINDS if no word of it is known. */
OrrKernelKind orr_traces__kernel_kind(const char *name);
/* Whether a kernel communicates: NCCL, RCCL, DeepEP, NVSHMEM. */
bool orr_traces__is_transfer(const char *name);
/* Of a kernel's name or of "Collective name"; false: it does not tell. */
bool orr_traces__transfer_kind(const char *name, OrrCollective *kind);
/* PyTorch's scalar types; dtype ORR_N_DTYPES for those that are none of ours. */
bool orr_traces__dtype(const char *name, OrrDtype *dtype, double *bytes);

#endif
