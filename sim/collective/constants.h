/* Measured constants of collective durations: one struct, so that a calibration can replace it.
 * They price an algorithm that was chosen; the choice itself uses NCCL's tuner table (tuner.h). */
#ifndef ORR_COLLECTIVE_CONSTANTS_H
#define ORR_COLLECTIVE_CONSTANTS_H

#include "sim/collective/collective.h"

/* One way of moving bytes: time = (launch + steps * step) * (1 + full * x / (1 + x)) + w, with w =
 * bytes / (eff * nominal rate) and x = bytes per rank / full_bytes. The last factor is the growth
 * of chunks with the message: a hop waits for a whole chunk, from a few warps' worth to the most.
 */
typedef struct {
    double launch_ns;  /* kernel and first synchronisation */
    double step_ns;    /* one hop of the algorithm inside a domain */
    double eff_frac;   /* of the nominal rate of the link, for long messages */
    double full_frac;  /* by how much hops of full chunks are longer */
    double full_bytes; /* per rank, where half of that is reached */
} OrrCollLaw;

typedef struct {
    OrrCollLaw ring[ORR_N_PROTOS]; /* ring and tree inside a domain */
    double copy_bytes_per_s;       /* a rank's own share, copied by the same few SMs */
    double reduce_copy_frac;    /* of that in an all-reduce, whose last hop of the sum writes it */
    OrrCollLaw nvls;            /* reduction and multicast in the switch */
    double nvls_tree_frac[2];   /* its rate where a tree leaves the domain: to one other, to more */
    double nvls_channels;       /* each of whose loops a hop between domains gathers; a mean */
    OrrCollLaw pairs_ll, pairs; /* all-to-all and sends: small by LL, else Simple */
    double pair_copy_bytes_per_s; /* a rank's bytes to itself, beside its sends */
    uint32_t n_channels;          /* = SMs of one large collective */
    uint32_t n_pair_channels;
} OrrCollArch;

typedef struct {
    double step_ns[ORR_N_PROTOS];      /* one hop over the network, above its one-way latency */
    double tree_step_ns[ORR_N_PROTOS]; /* the same up or down a tree: a chunk, not a slice */
    double launch_ns;                  /* added once where a collective leaves the domain */
    double message_ns;     /* of each further message that a rank sends to another domain */
    double eff_frac;       /* of the nominal rate of the NIC */
    double ll_bytes_per_s; /* payload that a domain sends by LL at most; 0: the NICs' */
} OrrCollNet;

typedef struct OrrCollConstants {
    OrrCollArch arch[ORR_N_ARCHS];
    OrrCollNet net[ORR_N_NETS];
    OrrCollLaw pcie[ORR_N_PROTOS]; /* ring inside a node without NVLink */
    double socket_bytes_per_s;     /* one TCP stream */
    double tree_eff_frac;          /* of the link, tree against ring: both directions at work */
    double send_eff_frac;          /* of the rate of pairs, one send to one peer inside a domain */
    double lone_eff_frac;          /* of the NIC, where a domain has one member only */
    double sharp_eff_frac;         /* of the NICs, where the fabric's switches reduce */
    /* Of the host, where one process launches for many GPUs (timed.h): a launch, and each channel
     * of its kernel. Steps of training have a process a GPU. */
    double host_launch_ns, host_channel_ns;
} OrrCollConstants;

/* The shipped constants; static, never freed. */
const OrrCollConstants *orr_coll_constants_default(void);

#endif
