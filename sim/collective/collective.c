#include "sim/collective/collective.h"

#include <math.h>

#include "sim/collective/choose.h"

static const OrrNcclForce unforced = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};

static OrrCollCase make_case(OrrCollective kind, int64_t bytes, OrrDtype dtype,
                             const OrrCommPlace *place, const OrrNcclForce *force) {
    const OrrNcclForce *f = force ? force : &unforced;
    return (OrrCollCase){.kind = kind,
                         .bytes = (double)bytes,
                         .dtype = dtype,
                         .place = place,
                         .force = f,
                         .constants = f->constants ? f->constants : orr_coll_constants_default()};
}

static void price(const OrrCollCase *c, OrrAlgo algo, OrrProto proto, OrrCollPlan *plan) {
    const OrrAlgorithm *a = orr_algorithm(algo);
    plan->algo = algo;
    plan->proto = proto;
    plan->pattern = a->pattern;
    a->cost(c, proto, plan);
}

bool orr_collective_plan(OrrCollective kind, int64_t bytes, OrrDtype dtype,
                         const OrrCommPlace *place, const OrrNcclForce *force, OrrCollPlan *plan,
                         GError **error) {
    *plan = (OrrCollPlan){.proto = ORR_PROTO_SIMPLE, .bytes_per_s = INFINITY};
    if (place->n_ranks <= 1)
        return true;
    OrrCollCase c = make_case(kind, bytes, dtype, place, force);
    OrrAlgo algo = ORR_ALGO_RING;
    OrrProto proto = ORR_PROTO_SIMPLE;
    if (!orr_collective__choose(&c, &algo, &proto, error))
        return false;
    price(&c, algo, proto, plan);
    return true;
}

int64_t orr_collective_ns(const OrrCollPlan *plan, int64_t bytes) {
    double flow_ns =
        bytes > 0 && isfinite(plan->bytes_per_s) ? 1e9 * (double)bytes / plan->bytes_per_s : 0;
    int64_t ns = plan->latency_ns + (int64_t)ceil(flow_ns);
    return ns > 0 || plan->n_channels == 0 ? ns : 1;
}

double orr_collective_bus_factor(OrrCollective kind, uint32_t n_ranks) {
    double n = n_ranks;
    switch (kind) {
    case ORR_ALL_REDUCE:
        return n > 0 ? 2 * (n - 1) / n : 0;
    case ORR_ALL_GATHER:
    case ORR_REDUCE_SCATTER:
    case ORR_ALL_TO_ALL:
        return n > 0 ? (n - 1) / n : 0;
    case ORR_BROADCAST:
    case ORR_REDUCE:
    case ORR_SEND_RECV:
    case ORR_N_COLLECTIVES:
        break;
    }
    return 1;
}

void orr_collective_send_plan(int64_t bytes, const OrrCommPlace *place, bool is_inside,
                              const OrrNcclForce *force, OrrCollPlan *plan) {
    /* The pair alone: two ranks in one domain, or one in each of two. */
    OrrCommPlace pair = *place;
    pair.n_ranks = 2;
    pair.n_domains = pair.n_nodes = is_inside ? 1 : 2;
    pair.min_per_domain = pair.max_per_domain = pair.max_per_node = is_inside ? 2 : 1;
    pair.nics_per_domain = 1;
    OrrCollCase c = make_case(ORR_SEND_RECV, bytes, ORR_BF16, &pair, force);
    OrrNcclForce free_algo = *c.force; /* NCCL_ALGO does not touch sends */
    free_algo.algo = ORR_N_ALGOS;
    c.force = &free_algo;
    OrrAlgo algo = ORR_ALGO_PAIRWISE;
    OrrProto proto = ORR_PROTO_SIMPLE;
    bool ok = orr_collective__choose(&c, &algo, &proto, NULL);
    g_assert(ok);
    price(&c, algo, proto, plan);
}
