#include "sim/collective/table.h"

#include "sim/collective/place.h"

bool orr_collective_table_at(OrrCollective kind, OrrDtype dtype, const OrrCommPlace *place,
                             int64_t min_bytes, int64_t max_bytes, const OrrNcclForce *force,
                             OrrCollRow **rows, uint32_t *n_rows, GError **error) {
    if (min_bytes < 1 || max_bytes < min_bytes)
        return orr_fail_input(error,
                              "sizes from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                              " bytes: the first must be at least 1 and not above the last",
                              min_bytes, max_bytes);
    g_autoptr(GArray) table = g_array_new(FALSE, TRUE, sizeof(OrrCollRow));
    double factor = orr_collective_bus_factor(kind, place->n_ranks);
    for (int64_t bytes = min_bytes; bytes <= max_bytes; bytes *= 2) {
        OrrCollPlan plan;
        if (!orr_collective_plan(kind, bytes, dtype, place, force, &plan, error))
            return false;
        int64_t ns = orr_collective_ns(&plan, bytes);
        double algbw = ns > 0 ? 1e9 * (double)bytes / (double)ns : 0;
        OrrCollRow row = {.bytes = bytes,
                          .time_ns = ns,
                          .algbw_bytes_per_s = algbw,
                          .busbw_bytes_per_s = algbw * factor,
                          .algo = plan.algo,
                          .proto = plan.proto,
                          .n_channels = plan.n_channels};
        g_array_append_val(table, row);
        if (bytes > G_MAXINT64 / 2)
            break;
    }
    *n_rows = table->len;
    *rows = (OrrCollRow *)(void *)g_array_free(g_steal_pointer(&table), FALSE);
    return true;
}

bool orr_collective_table(OrrCollective kind, OrrDtype dtype, const OrrCluster *cluster,
                          uint32_t n_ranks, int64_t min_bytes, int64_t max_bytes,
                          const OrrNcclForce *force, OrrCollRow **rows, uint32_t *n_rows,
                          GError **error) {
    uint32_t n_gpus = orr_cluster_spec(cluster)->n_gpus;
    if (n_ranks < 1 || n_ranks > n_gpus)
        return orr_fail_input(error, "%u ranks on a cluster of %u GPUs; 1 to %u would do", n_ranks,
                              n_gpus, n_gpus);
    g_autofree uint32_t *gpus = g_new(uint32_t, n_ranks);
    for (uint32_t i = 0; i < n_ranks; i++)
        gpus[i] = i;
    OrrCommPlace place;
    orr_comm_place_from_cluster(cluster, gpus, n_ranks, &place);
    return orr_collective_table_at(kind, dtype, &place, min_bytes, max_bytes, force, rows, n_rows,
                                   error);
}
