#include "sim/collective/choose.h"

#include <string.h>

#include "sim/collective/tuner.h"

/* Sends use LL up to this many bytes a peer (NCCL, NCCL_P2P_LL_THRESHOLD in src/enqueue.cc). */
#define P2P_LL_BYTES 16384

static const char *refusal(const OrrCollCase *c, const OrrAlgorithm *a) {
    return a->refuse ? a->refuse(c) : NULL;
}

/* LL128 needs NVLink inside the node and 128-byte stores that stay whole on their way to the NIC:
 * NCCL leaves it off over PCIe alone; sockets and TCPXO copy through buffers; EFA takes it from
 * p5 on (aws-ofi-nccl). */
static bool proto_works(const OrrCollCase *c, OrrProto proto) {
    OrrNet net = orr_collective__net(c);
    if (proto != ORR_PROTO_LL128)
        return true;
    bool is_old_efa = net == ORR_NET_EFA && c->place->arch < ORR_ARCH_HOPPER;
    if (c->place->n_domains > 1 && (net == ORR_NET_ETHERNET || net == ORR_NET_TCPXO || is_old_efa))
        return false;
    return !orr_collective__is_pcie(c) || c->place->max_per_domain == 1;
}

static bool can_serve(const OrrCollCase *c, const OrrAlgorithm *a) {
    return (a->collectives & ORR_BIT(c->kind)) && !refusal(c, a);
}

/* Names of what could be forced instead, for the message. */
static char *alternatives(const OrrCollCase *c) {
    GString *s = g_string_new(NULL);
    for (int i = 0; i < ORR_N_ALGOS; i++)
        if (can_serve(c, orr_algorithm((OrrAlgo)i)))
            g_string_append_printf(s, "%s%s", s->len ? ", " : "", orr_algorithm((OrrAlgo)i)->name);
    return g_string_free(s, FALSE);
}

/* The one algorithm that is left, or ORR_N_ALGOS. */
static OrrAlgo forced_algo(const OrrCollCase *c) {
    uint32_t mask = c->force->algos[c->kind];
    if (c->force->algo != ORR_N_ALGOS || mask == 0 || (mask & (mask - 1)))
        return c->force->algo;
    return (OrrAlgo)orr_collective__log2(mask);
}

static bool check_forced(const OrrCollCase *c, GError **error) {
    const OrrNcclForce *f = c->force;
    if (forced_algo(c) == ORR_N_ALGOS)
        return true;
    const OrrAlgorithm *a = orr_algorithm(forced_algo(c));
    g_autofree char *would = alternatives(c);
    if (!(a->collectives & ORR_BIT(c->kind)))
        return orr_fail_input(error, "%s cannot be done by %s; possible here: %s",
                              orr_collective_name(c->kind), a->name, would);
    if (refusal(c, a))
        return orr_fail_input(error, "%s for %s over %u ranks %s; possible here: %s", a->name,
                              orr_collective_name(c->kind), c->place->n_ranks, refusal(c, a),
                              would);
    if (f->proto != ORR_N_PROTOS && !(a->protos & ORR_BIT(f->proto)))
        return orr_fail_input(
            error, "%s has no protocol %s; it takes %s", a->name, orr_proto_name(f->proto),
            a->protos & ORR_BIT(ORR_PROTO_LL128) ? "ll, ll128 or simple" : "simple");
    return true;
}

/* NCCL's sends: no choice of algorithm, the protocol by bytes a peer. */
static void choose_pairs(const OrrCollCase *c, OrrAlgo *algo, OrrProto *proto) {
    double each = c->kind == ORR_ALL_TO_ALL ? c->bytes / c->place->n_ranks : c->bytes;
    *algo = ORR_ALGO_PAIRWISE;
    *proto = each <= P2P_LL_BYTES ? ORR_PROTO_LL : ORR_PROTO_SIMPLE;
    if (c->force->proto != ORR_N_PROTOS && c->force->proto != ORR_PROTO_LL128)
        *proto = c->force->proto;
}

/* Algorithms outside NCCL have no entry in its tuner: their protocol is the forced one or Simple.
 */
static void choose_forced_other(const OrrCollCase *c, OrrAlgo *algo, OrrProto *proto) {
    *algo = forced_algo(c);
    *proto = c->force->proto != ORR_N_PROTOS ? c->force->proto : ORR_PROTO_SIMPLE;
}

static bool allowed(const OrrCollCase *c, const OrrAlgorithm *a, OrrProto proto) {
    const OrrNcclForce *f = c->force;
    if (!a->is_nccl || !can_serve(c, a) || !(a->protos & ORR_BIT(proto)))
        return false;
    if (f->algo != ORR_N_ALGOS && a->id != f->algo)
        return false;
    if (f->algos[c->kind] && !(f->algos[c->kind] & ORR_BIT(a->id)))
        return false;
    if (f->protos[c->kind])
        return f->protos[c->kind] & ORR_BIT(proto);
    return f->proto != ORR_N_PROTOS ? proto == f->proto : proto_works(c, proto);
}

bool orr_collective__choose(const OrrCollCase *c, OrrAlgo *algo, OrrProto *proto, GError **error) {
    if (c->kind == ORR_ALL_TO_ALL || c->kind == ORR_SEND_RECV) {
        choose_pairs(c, algo, proto); /* NCCL_ALGO does not touch them */
        return c->force->algo == ORR_N_ALGOS || check_forced(c, error);
    }
    if (!check_forced(c, error))
        return false;
    OrrAlgo forced = forced_algo(c);
    if (forced != ORR_N_ALGOS && !orr_algorithm(forced)->is_nccl) {
        choose_forced_other(c, algo, proto);
        return true;
    }
    double best = -1;
    for (int a = 0; a < ORR_N_ALGOS; a++)
        for (int p = 0; p < ORR_N_PROTOS; p++) {
            if (!allowed(c, orr_algorithm((OrrAlgo)a), (OrrProto)p))
                continue;
            double us = orr_tuner_time_us(c, (OrrAlgo)a, (OrrProto)p);
            if (us >= 0 && (best < 0 || us < best)) {
                best = us;
                *algo = (OrrAlgo)a;
                *proto = (OrrProto)p;
            }
        }
    if (best >= 0)
        return true;
    g_autofree char *would = alternatives(c);
    return orr_fail_input(error,
                          "nothing that NCCL_ALGO and NCCL_PROTO leave serves %s over %u ranks; "
                          "possible algorithms here: %s",
                          orr_collective_name(c->kind), c->place->n_ranks, would);
}
