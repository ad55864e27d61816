/* NCCL's environment variables as a job's [nccl] group has them. */
#ifndef ORR_COLLECTIVE_NCCL_ENV_H
#define ORR_COLLECTIVE_NCCL_ENV_H

#include "sim/collective/collective.h"

typedef struct {
    OrrNcclForce force;
    /* Sockets over the management network: NCCL_IB_DISABLE=1, NCCL_NET=Socket, or NCCL_IB_HCA that
     * names no NIC of the node. The cluster must then be built with use_management. */
    bool is_fallback;
    char *warning; /* why, for people; NULL if nothing is odd */
} OrrNcclEnv;

/**
 * orr_nccl_env_parse: reads variables NAME = VALUE (@names and @values of equal length, @names
 * NULL-terminated or NULL) for nodes like @node (its NICs are mlx5_0, mlx5_1, ...; NULL: any name
 * is taken as right).
 * Returns: true with @env (orr_nccl_env_clear); false with every fault in one @error
 * (ORR_ERROR_INPUT), a line each: "NAME = VALUE: what is wrong; what would do".
 */
bool orr_nccl_env_parse(const char *const *names, const char *const *values, const OrrNode *node,
                        OrrNcclEnv *env, GError **error);
void orr_nccl_env_clear(OrrNcclEnv *env);

#endif
