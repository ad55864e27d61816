/* Choice and terms of a detailed collective: the plan's, but for the fabric's even share, which the
 * links themselves decide. */
#include "sim/detail/detail.h"

#include "sim/collective/place.h"
#include "sim/detail/detail_priv.h"

static bool can_detail(OrrCollective kind, OrrAlgo algo) {
    if (kind == ORR_ALL_TO_ALL)
        return algo == ORR_ALGO_PAIRWISE;
    return (kind == ORR_ALL_REDUCE || kind == ORR_ALL_GATHER || kind == ORR_REDUCE_SCATTER) &&
           (algo == ORR_ALGO_RING || algo == ORR_ALGO_HIERARCHICAL);
}

static bool make_plans(const OrrDetailCase *c, OrrCollPlan *plan, OrrCollPlan *open,
                       GError **error) {
    uint32_t n_gpus = orr_cluster_spec(c->cluster)->n_gpus;
    if (c->n_ranks < 1 || c->n_ranks > n_gpus)
        return orr_fail_input(error, "%u ranks on a cluster of %u GPUs; 1 to %u would do",
                              c->n_ranks, n_gpus, n_gpus);
    g_autofree uint32_t *gpus = g_new(uint32_t, c->n_ranks);
    for (uint32_t r = 0; r < c->n_ranks; r++)
        gpus[r] = r;
    OrrCommPlace place;
    orr_comm_place_from_cluster(c->cluster, gpus, c->n_ranks, &place);
    if (!orr_collective_plan(c->kind, c->bytes, c->dtype, &place, c->force, plan, error))
        return false;
    if (c->n_ranks > 1 && !can_detail(c->kind, plan->algo))
        return orr_fail_input(error,
                              "%s by %s has no detailed form; all_reduce, all_gather and "
                              "reduce_scatter have one with NCCL_ALGO=Ring or "
                              "NCCL_ALGO=hierarchical, and all_to_all",
                              orr_collective_name(c->kind), orr_algo_name(plan->algo));
    OrrNcclForce force = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};
    if (c->force)
        force = *c->force;
    if (c->kind != ORR_ALL_TO_ALL)
        force.algo = plan->algo;
    force.proto = plan->proto;
    place.fabric_bytes_per_s = 0;
    return orr_collective_plan(c->kind, c->bytes, c->dtype, &place, &force, open, error);
}

bool orr_detail_run(const OrrDetailCase *c, OrrDetailResult *result, GError **error) {
    OrrCollPlan open;
    *result = (OrrDetailResult){0};
    if (!make_plans(c, &result->plan, &open, error))
        return false;
    if (c->n_ranks == 1)
        return true;
    if (c->kind == ORR_ALL_TO_ALL) {
        orr_detail__run_pairs(c, &open, result);
        return true;
    }
    OrrRings *rings = orr_detail__rings_new(c, &open);
    orr_detail__prune(rings);
    orr_detail__run_rings(rings, c->is_evented, result);
    orr_detail__rings_free(rings);
    return true;
}
