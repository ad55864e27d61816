/* Durations: launch, hops and bytes. Inside a domain and between domains chunks are pipelined, so
 * the slower of the two sets the rate and both add their hops. Left out: skew between members,
 * contention (the network room's), and what a busy GPU does to the kernels' speed. */
#include "sim/collective/duration.h"

#include <math.h>

double orr_collective__ppn(const OrrCommPlace *p) {
    return (double)p->n_ranks / p->n_domains;
}

bool orr_collective__is_pcie(const OrrCollCase *c) {
    const OrrCommPlace *p = c->place;
    return c->force->p2p_off || p->nvlink == ORR_NVLINK_NONE || p->nvlink_bytes_per_s <= 0;
}

double orr_collective__intra_bytes_per_s(const OrrCollCase *c) {
    return orr_collective__is_pcie(c) ? c->place->pcie_bytes_per_s : c->place->nvlink_bytes_per_s;
}

double orr_collective__nics(const OrrCollCase *c) {
    const OrrCommPlace *p = c->place;
    if (!c->force->nics_per_node)
        return p->nics_per_domain;
    double nodes = fmax(1, (double)p->n_nodes / p->n_domains);
    return fmin(p->nics_per_domain, nodes * c->force->nics_per_node);
}

OrrNet orr_collective__net(const OrrCollCase *c) {
    return c->force->use_sockets ? ORR_NET_ETHERNET : c->place->net;
}

/* Sockets: threads times sockets of each, by default one of one (NCCL documentation,
 * NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD; clouds with a fast NIC raise both), for each of
 * the two channels that NCCL opens to a network at least. */
static double socket_limit(const OrrCollCase *c) {
    double threads = c->force->socket_threads ? c->force->socket_threads : 1;
    double sockets = c->force->sockets_per_thread ? c->force->sockets_per_thread : 1;
    return 2 * threads * sockets * c->constants->socket_bytes_per_s;
}

double orr_collective__nic_bytes_per_s(const OrrCollCase *c) {
    const OrrCommPlace *p = c->place;
    double rate = p->nic_bytes_per_s;
    if (p->fabric_bytes_per_s > 0)
        rate = fmin(rate, p->fabric_bytes_per_s);
    if (orr_collective__net(c) == ORR_NET_ETHERNET)
        rate = fmin(rate, socket_limit(c));
    return rate;
}

uint32_t orr_collective__log2(uint32_t n) {
    uint32_t l = 0;
    while (n >>= 1)
        l++;
    return l;
}

const OrrCollLaw *orr_collective__ring_law(const OrrCollCase *c, OrrProto proto) {
    if (orr_collective__is_pcie(c))
        return &c->constants->pcie[proto];
    return &c->constants->arch[c->place->arch].ring[proto];
}

/* Payload of what LL and LL128 send: 4 bytes of 8, 120 of 128 (NCCL, src/device). */
static double payload_frac(OrrProto proto) {
    static const double frac[ORR_N_PROTOS] = {0.5, 120.0 / 128.0, 1.0};
    return frac[proto];
}

/* A message is cut into at least so many chunks along a tree: ours, from the smallest messages of
 * the published multi-node logs. */
#define LEAST_CHUNKS_FRAC 0.25

static uint32_t channels(const OrrCollCase *c, uint32_t n) {
    if (c->force->max_channels && n > c->force->max_channels)
        n = c->force->max_channels;
    return n < c->force->min_channels ? c->force->min_channels : n;
}

void orr_collective__price(const OrrCollCase *c, OrrProto proto, const OrrCollWork *work,
                           OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    const OrrCollLaw *law = work->law;
    double full = c->bytes / p->n_ranks / law->full_bytes;
    double growth = 1 + law->full_frac * full / (1 + full);
    double latency_ns = (law->launch_ns + work->intra_steps * law->step_ns) * growth;
    plan->start_ns = law->launch_ns * growth;
    plan->hop_ns = law->step_ns * growth;
    plan->n_channels = channels(c, work->n_channels);
    /* Fewer channels than the kernel wants move proportionally less; so do blocks of threads below
     * half of NCCL's 512, which is still enough to keep a channel's copies in flight. */
    double share = fmin(1.0, (double)plan->n_channels / work->n_channels);
    if (c->force->n_threads)
        share *= fmin(1.0, c->force->n_threads / 256.0);
    double intra_bytes_per_s = orr_collective__intra_bytes_per_s(c) * law->eff_frac * share;
    double intra_ns =
        1e9 * c->bytes * (work->nvlink_per_rank + work->extra_per_rank) / intra_bytes_per_s +
        (work->copy_per_rank > 0 ? 1e9 * c->bytes * work->copy_per_rank / work->copy_bytes_per_s
                                 : 0);
    double flow_ns = intra_ns;
    plan->inside_bytes_per_s = intra_ns > 0 ? 1e9 * c->bytes * work->nvlink_per_rank / intra_ns : 0;
    if (work->nic_per_nic > 0) {
        const OrrCollNet *net = &c->constants->net[orr_collective__net(c)];
        double step_ns = work->is_tree ? net->tree_step_ns[proto] : net->step_ns[proto];
        latency_ns += net->launch_ns + work->inter_steps * (step_ns + p->net_latency_ns) +
                      fmax(0, work->messages - 1) * net->message_ns;
        double nic_bytes_per_s = orr_collective__nic_bytes_per_s(c) * net->eff_frac *
                                 (work->nic_eff_frac > 0 ? work->nic_eff_frac : 1) *
                                 (p->max_per_domain == 1 ? c->constants->lone_eff_frac : 1);
        double payload_bytes_per_s = nic_bytes_per_s * payload_frac(proto);
        if (proto == ORR_PROTO_LL && net->ll_bytes_per_s > 0)
            payload_bytes_per_s =
                fmin(payload_bytes_per_s, net->ll_bytes_per_s / orr_collective__nics(c));
        flow_ns = fmax(flow_ns, 1e9 * c->bytes * work->nic_per_nic / payload_bytes_per_s);
        plan->start_ns += net->launch_ns;
        plan->net_hop_ns = step_ns;
        plan->message_ns = net->message_ns;
        plan->net_bytes_per_s = payload_bytes_per_s;
        plan->nics_per_domain = orr_collective__nics(c);
        /* The pipeline over domains fills hop by hop; short messages use shorter chunks. */
        flow_ns *= 1 + work->inter_steps * fmin(work->fill_bytes / c->bytes, LEAST_CHUNKS_FRAC);
    }
    plan->latency_ns = (int64_t)ceil(latency_ns);
    plan->bytes_per_s = flow_ns > 0 ? 1e9 * c->bytes / flow_ns : INFINITY;
    plan->nvlink_per_rank = work->nvlink_per_rank;
    plan->nic_per_nic = work->nic_per_nic;
}
