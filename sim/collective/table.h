/* Rows as nccl-tests prints them, for `orrery show collective`. */
#ifndef ORR_COLLECTIVE_TABLE_H
#define ORR_COLLECTIVE_TABLE_H

#include "sim/collective/collective.h"

typedef struct {
    int64_t bytes, time_ns;
    double algbw_bytes_per_s, busbw_bytes_per_s;
    OrrAlgo algo;
    OrrProto proto;
    uint32_t n_channels;
} OrrCollRow;

/**
 * orr_collective_table: sizes from @min_bytes to @max_bytes, doubling, over the first @n_ranks
 * GPUs of @cluster. Returns rows in @rows (g_free) and their number in @n_rows.
 * Errors (ORR_ERROR_INPUT): more ranks than GPUs, sizes out of order, a force NCCL refuses.
 */
bool orr_collective_table(OrrCollective kind, OrrDtype dtype, const OrrCluster *cluster,
                          uint32_t n_ranks, int64_t min_bytes, int64_t max_bytes,
                          const OrrNcclForce *force, OrrCollRow **rows, uint32_t *n_rows,
                          GError **error);
/* The same over a given place. */
bool orr_collective_table_at(OrrCollective kind, OrrDtype dtype, const OrrCommPlace *place,
                             int64_t min_bytes, int64_t max_bytes, const OrrNcclForce *force,
                             OrrCollRow **rows, uint32_t *n_rows, GError **error);

#endif
