/* Measured constants of collective durations: one struct, so that a calibration can replace it.
 * They price an algorithm that was chosen; the choice itself uses NCCL's tuner table (tuner.h). */
#ifndef ORR_COLLECTIVE_CONSTANTS_H
#define ORR_COLLECTIVE_CONSTANTS_H

#include "sim/collective/collective.h"

/* One way of moving bytes: time = launch + steps * step + w + sqrt(ramp * w), w = bytes / (eff *
 * nominal rate). The root is the pipeline that fills: chunks are small while messages are. */
typedef struct {
    double launch_ns; /* kernel and first synchronisation */
    double step_ns;   /* one hop of the algorithm inside a domain */
    double eff_frac;  /* of the nominal rate of the link, for long messages */
    double ramp_ns;
} OrrCollLaw;

typedef struct {
    OrrCollLaw ring[ORR_N_PROTOS]; /* ring and tree inside a domain */
    double copy_frac;    /* a rank's own share, copied locally, over the rate of its link */
    OrrCollLaw nvls;     /* reduction and multicast in the switch */
    OrrCollLaw pairs;    /* all-to-all and sends */
    uint32_t n_channels; /* = SMs of one large collective */
    uint32_t n_pair_channels;
} OrrCollArch;

typedef struct {
    double step_ns[ORR_N_PROTOS]; /* one hop over the network, above its one-way latency */
    double launch_ns;             /* added once where a collective leaves the domain */
    double eff_frac;              /* of the nominal rate of the NIC */
    double ramp_ns;
} OrrCollNet;

typedef struct OrrCollConstants {
    OrrCollArch arch[ORR_N_ARCHS];
    OrrCollNet net[ORR_N_NETS];
    OrrCollLaw pcie[ORR_N_PROTOS]; /* ring inside a node without NVLink */
    double socket_bytes_per_s; /* one TCP stream */
    double tree_eff_frac;      /* of the link, tree against ring: both directions at work */
} OrrCollConstants;

/* The shipped constants; static, never freed. */
const OrrCollConstants *orr_coll_constants_default(void);

#endif
