#include "sim/job/checkpoint.h"

#include "sim/job/formula.h"

#include <math.h>

#define LONGEST_NS 1e18 /* ours: thirty years, where nothing ever fails */

static double seconds(double bytes, double bytes_per_s) {
    return bytes_per_s > 0 ? bytes / bytes_per_s : 0;
}

void orr_store_times(const OrrSave *save, const OrrStore *store, OrrTier *tier) {
    double share = save->bytes / MAX(save->writers, 1);
    double one = seconds(share, store->writer_bytes_per_s);
    double path = seconds(save->bytes, store->path_bytes_per_s);
    double write = fmax(fmax(seconds(save->bytes, store->bytes_per_s), one), path) * 1e9;
    write += store->latency_ns;
    double whole = store->read_bytes_per_s > 0 ? store->read_bytes_per_s : store->bytes_per_s;
    double read_path = seconds(save->bytes, store->read_path_bytes_per_s);
    double load = fmax(fmax(seconds(save->bytes, whole), one), read_path) * 1e9;
    load += store->latency_ns;
    double block = save->is_async ? seconds(share, save->copy_bytes_per_s) * 1e9 : write;
    tier->block_ns = (int64_t)ceil(block);
    tier->write_ns = save->is_async ? (int64_t)ceil(write) : 0;
    tier->load_ns = (int64_t)ceil(load);
    tier->bytes = save->bytes;
    tier->bytes_per_s = write > 0 ? save->bytes / (write * 1e-9) : 0;
}

double orr_tier_cost_ns(const OrrTier *tier) {
    double slow = tier->write_slow_frac / (1 + tier->write_slow_frac);
    return (double)tier->block_ns + slow * (double)tier->traffic_ns;
}

/* What a checkpoint costs on average: slower tiers are written less often. */
static double blocked_ns(const OrrCheckpointPlan *plan) {
    double sum = 0;
    for (uint32_t i = 0; i < plan->n_tiers; i++)
        sum = fmax(sum, orr_tier_cost_ns(&plan->tiers[i]) / plan->tiers[i].every);
    return fmax(sum, 1);
}

/* The next cannot begin before the last is whole. */
static double written_ns(const OrrCheckpointPlan *plan) {
    double longest = 0;
    for (uint32_t i = 0; i < plan->n_tiers; i++)
        longest = fmax(longest, (double)plan->tiers[i].write_ns / plan->tiers[i].every);
    return longest;
}

int64_t orr_plan_young_ns(const OrrCheckpointPlan *plan, double mtbf_ns) {
    double interval = fmax(orr_young_interval(blocked_ns(plan), mtbf_ns), written_ns(plan));
    return (int64_t)fmin(interval, LONGEST_NS);
}

int64_t orr_plan_daly_ns(const OrrCheckpointPlan *plan, double mtbf_ns) {
    if (!isfinite(mtbf_ns))
        return (int64_t)LONGEST_NS;
    double interval = fmax(orr_daly_interval(blocked_ns(plan), mtbf_ns), written_ns(plan));
    return (int64_t)fmin(interval, LONGEST_NS);
}
