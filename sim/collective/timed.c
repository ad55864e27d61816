/* One process for several GPUs launches a kernel on each in turn, and again: a call takes no less
 * than that. A launch costs the host so much, and each channel of the kernel some more, because the
 * library fills in the work of each. NCCL starts with all channels and takes away those whose
 * threads would have less than a few bytes each, so that host time grows with the message.
 * Left out: processes of some GPUs each; CPUs other than of these servers. */
#include "sim/collective/timed.h"

#include <math.h>

/* NCCL, src/enqueue.cc: 512 threads a channel; 8 bytes a thread and rank with LL and LL128, 64 with
 * Simple are enough for another channel. */
#define CHANNEL_THREADS 512.0

/* Host time of torch.distributed until the kernel starts, between two events on an idle GPU: the
 * messages up to 1 MiB of all_reduce_bench (H0245 to H0250: 47 to 53 us where the kernels take 27
 * to 34). */
#define TORCH_CALL_NS 20000.0

static double host_ns(const OrrCollPlan *plan, int64_t bytes, const OrrCommPlace *place,
                      const OrrCollConstants *k) {
    uint32_t n = place->max_per_node; /* that a process has */
    double per_thread = plan->proto == ORR_PROTO_SIMPLE ? 64 : 8;
    double channel_bytes = CHANNEL_THREADS * per_thread * place->n_ranks;
    double channels = fmin(plan->n_channels, fmax(1, floor((double)bytes / channel_bytes)));
    return n * (k->host_launch_ns + channels * k->host_channel_ns);
}

double orr_collective_timed_ns(const OrrCollPlan *plan, int64_t bytes, const OrrCommPlace *place,
                               OrrTimed timed, const OrrCollConstants *constants) {
    const OrrCollConstants *k = constants ? constants : orr_coll_constants_default();
    double ns = (double)orr_collective_ns(plan, bytes);
    if (timed == ORR_TIMED_ONE_PROCESS)
        return fmax(ns, host_ns(plan, bytes, place, k));
    return timed == ORR_TIMED_TORCH ? ns + TORCH_CALL_NS : ns;
}
