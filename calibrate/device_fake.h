/* A machine that only computes what it would take: the whole flow of the calibrator, collectives of
 * many GPUs included, runs on it without a GPU; and as its parameters are known, what is fitted
 * from its records can be judged.
 *
 * Products and attention: the analytic forms of sim/facts/forms.h. Other kernels: the longer of
 * FLOPs over the peak and bytes over HBM, and a fixed time a kernel. Collectives: rings, hops times
 * a latency and bytes over the slower of links and NICs. Its clock is what it claims to have spent.
 */
#ifndef ORR_CALIBRATE_DEVICE_FAKE_H
#define ORR_CALIBRATE_DEVICE_FAKE_H

#include "calibrate/device.h"

typedef struct {
    int n_gpus, n_per_node;
    int64_t memory_bytes;
    double bf16_flops_per_s; /* FP8 twice, TF32 half, FP32 a sixteenth of it */
    double hbm_bytes_per_s, host_bytes_per_s;
    double kernel_ns, launch_ns, graph_launch_ns;
    double link_bytes_per_s, link_step_ns; /* between GPUs of a node */
    double nic_bytes_per_s, nic_step_ns;   /* one a GPU */
    double compute_slowdown_frac;          /* of a product beside a collective */
    double noise_frac;                     /* deviation of a sample */
    int64_t vanishes_after;                /* calls of time; 0: stays */
    int64_t wrong_every;                   /* every so many-th check fails; 0: none */
    uint64_t seed;
} OrrFakeMachine;

/* Round numbers near an H100 SXM node. */
extern const OrrFakeMachine orr_fake_default;

/* Under MPI each process stands for one GPU, and n_gpus is the number of processes. @ranks is
 * borrowed. */
OrrDevice *orr_device_fake(const OrrFakeMachine *machine, OrrRanks *ranks);
/* What the machine takes for a case, without noise: the truth that a fit must find. */
double orr_fake_time_ns(const OrrFakeMachine *machine, const OrrCase *c);

#endif
