/* Communicators of NCCL for the groups of a shape; private to the CUDA device. Only where NCCL is.
 */
#ifndef ORR_CALIBRATE_CUDA_COMMS_H
#define ORR_CALIBRATE_CUDA_COMMS_H

#include "calibrate/cuda_priv.h"

#ifdef HAVE_NCCL
#include <nccl.h>

struct OrrCollectives {
    int group_gpus, stride;
    ncclComm_t *comms; /* one a GPU of this process; NULL where it is in no group */
    int *groups, *places;
};

/* As orr_cuda__ok, of what NCCL says. */
bool orr_cuda__nccl_ok(ncclResult_t status, const char *what, GError **error);
/* Communicators of the case's shape in cuda->collectives; kept until another shape is asked for. */
bool orr_cuda__need_comms(OrrCuda *cuda, const OrrCase *c, GError **error);
/* Ends them at once: after an error on one GPU the others would wait for it for ever. */
void orr_cuda__abort_comms(OrrCuda *cuda);
#endif

#endif
