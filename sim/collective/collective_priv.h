/* What the files of this room share: one question to an algorithm, and the wire laws. */
#ifndef ORR_COLLECTIVE_PRIV_H
#define ORR_COLLECTIVE_PRIV_H

#include "sim/collective/constants.h"

/* One question: a collective of so many bytes over a place. */
typedef struct {
    OrrCollective kind;
    double bytes; /* nccl-tests' size */
    OrrDtype dtype;
    const OrrCommPlace *place;
    const OrrNcclForce *force; /* never NULL */
    const OrrCollConstants *constants;
} OrrCollCase;

/* Members in one domain, mean: n_ranks / n_domains. */
double orr_collective__ppn(const OrrCommPlace *p);
/* Whether the members of a domain talk over PCIe. */
bool orr_collective__is_pcie(const OrrCollCase *c);
/* Bytes per second of one member inside its domain, one direction, nominal. */
double orr_collective__intra_bytes_per_s(const OrrCollCase *c);
/* NICs of a domain that the members may use: their own, as far as NCCL_IB_HCA leaves them. */
double orr_collective__nics(const OrrCollCase *c);
/* What one NIC gets, fabric included, one direction, nominal. */
double orr_collective__nic_bytes_per_s(const OrrCollCase *c);
/* The network as the collective sees it: @force may have sent it to sockets. */
OrrNet orr_collective__net(const OrrCollCase *c);
uint32_t orr_collective__log2(uint32_t n); /* floor */
/* Bytes out of the busiest domain of a double tree, per byte of size. */
double orr_collective__tree_nic_volume(uint32_t n_domains);

#endif
