/* One process for several GPUs launches a kernel on each in turn, and again: a call takes no less
 * than that. A launch costs the host so much, and each channel of the kernel some more, because the
 * library fills in the work of each. NCCL starts with all channels and takes away those whose
 * threads would have less than a few bytes each, so that host time grows with the message.
 * Left out: processes of some GPUs each; CPUs other than of these servers. */
#include "sim/collective/timed.h"

#include <math.h>

/* A launch on one GPU, from messages that no kernel needs so long for: 34.5 us for eight A100
 * (nccl-tests logs of NCCL 2.8, the same for all collectives and for 0 bytes), 41.6 (H0181 less its
 * channel), 42.3 (NVIDIA/nccl issue 1809): mean 4.9 us a GPU. */
#define LAUNCH_NS 4900.0
/* Each channel: 0.21 us (those logs, 64 KiB to 1 MiB: 36.0, 40, 47, 60, 75 us for 2, 4, 8, 16, 24
 * channels), 0.31 (H0181 to H0188), 0.28 (vTrain's tables at 1 MiB: 11.6 us a GPU with 24). */
#define CHANNEL_NS 270.0
/* NCCL, src/enqueue.cc: 512 threads a channel; 8 bytes a thread and rank with LL and LL128, 64 with
 * Simple are enough for another channel. */
#define CHANNEL_THREADS 512.0

/* Host time of torch.distributed until the kernel starts, between two events on an idle GPU: the
 * messages up to 1 MiB of all_reduce_bench (H0245 to H0250: 47 to 53 us where the kernels take 27
 * to 34). */
#define TORCH_CALL_NS 20000.0

static double host_ns(const OrrCollPlan *plan, int64_t bytes, const OrrCommPlace *place) {
    uint32_t n = place->max_per_node; /* that a process has */
    double per_thread = plan->proto == ORR_PROTO_SIMPLE ? 64 : 8;
    double channel_bytes = CHANNEL_THREADS * per_thread * place->n_ranks;
    double channels = fmin(plan->n_channels, fmax(1, floor((double)bytes / channel_bytes)));
    return n * (LAUNCH_NS + channels * CHANNEL_NS);
}

double orr_collective_timed_ns(const OrrCollPlan *plan, int64_t bytes, const OrrCommPlace *place,
                               OrrTimed timed) {
    double ns = (double)orr_collective_ns(plan, bytes);
    if (timed == ORR_TIMED_ONE_PROCESS)
        return fmax(ns, host_ns(plan, bytes, place));
    return timed == ORR_TIMED_TORCH ? ns + TORCH_CALL_NS : ns;
}
