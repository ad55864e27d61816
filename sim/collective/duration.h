/* What an algorithm's steps and bytes cost, by the calibrated laws. */
#ifndef ORR_COLLECTIVE_DURATION_H
#define ORR_COLLECTIVE_DURATION_H

#include "sim/collective/collective_priv.h"

/* An algorithm's work, per byte of size where it is bytes. */
typedef struct {
    const OrrCollLaw *law;   /* inside the domain */
    double intra_steps;      /* hops that follow one another inside domains */
    double inter_steps;      /* and between them */
    double nvlink_per_rank;  /* out of the busiest rank, over NVLink or PCIe */
    double copy_per_rank;    /* local copies that no hop hides ... */
    double copy_bytes_per_s; /* ... and their rate */
    double extra_per_rank;   /* loss of the link, as bytes */
    double nic_per_nic;      /* out of the busiest NIC */
    double nic_eff_frac;     /* further loss there; 0: none */
    bool is_tree;            /* between domains */
    double fill_bytes;       /* of the message that a hop between domains must gather first */
    double messages;         /* that a rank posts to other domains, one after another */
    uint32_t n_channels;
} OrrCollWork;

/* The law of the ring kernels inside a domain at @place, NVLink or PCIe. */
const OrrCollLaw *orr_collective__ring_law(const OrrCollCase *c, OrrProto proto);
/* Fills all of @plan but algo, proto and pattern. */
void orr_collective__price(const OrrCollCase *c, OrrProto proto, const OrrCollWork *work,
                           OrrCollPlan *plan);

#endif
