#include "sim/facts/measured.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/stats.h"

static void table_free(OrrMeasuredTable *table) {
    g_free(table->name);
    g_free(table->source);
    g_free(table->gpu);
    g_free(table->nccl_version);
    g_free(table->environment);
    g_free(table->rows);
    g_free(table);
}

void orr_measured_tables_free(OrrMeasuredTables *tables) {
    if (!tables)
        return;
    for (uint32_t i = 0; i < tables->n_tables; i++)
        table_free(tables->tables[i]);
    g_free(tables->tables);
    g_free(tables);
}

double orr_measured_time_ns(const OrrMeasuredCollective *row) {
    if (row->flaw)
        return 0;
    return row->out_of_place.time_ns > 0 ? row->out_of_place.time_ns : row->in_place.time_ns;
}

double orr_measured_bus_factor(OrrCollective kind, uint32_t n_ranks) {
    if (n_ranks == 0)
        return 1;
    double share = ((double)n_ranks - 1) / n_ranks;
    switch (kind) {
    case ORR_ALL_REDUCE:
        return 2 * share;
    case ORR_ALL_GATHER:
    case ORR_REDUCE_SCATTER:
    case ORR_ALL_TO_ALL:
        return share;
    case ORR_BROADCAST:
    case ORR_REDUCE:
    case ORR_SEND_RECV:
    case ORR_N_COLLECTIVES:
        return 1;
    }
    return 1;
}

void orr_measured_run_free(OrrMeasuredRun *run) {
    if (!run)
        return;
    g_free(run->name);
    g_free(run->framework);
    g_free(run->gpu);
    g_free(run->model);
    g_free(run->steps);
    for (uint32_t i = 0; i < run->n_timers; i++)
        g_free(run->timers[i].name);
    g_free(run->timers);
    g_free(run);
}

/* Median of one member of the used steps that logged it. */
static double median_of(const OrrMeasuredRun *run, size_t offset) {
    g_autofree double *x = g_new(double, run->n_steps + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        double value;
        memcpy(&value, (const char *)&run->steps[i] + offset, sizeof value);
        if (!run->steps[i].is_dropped && isfinite(value))
            x[n++] = value;
    }
    return orr_stats_median(x, n);
}

/* Marks the steps of the warm-up: compilers, caches and NCCL's set-up fall into them. */
static void drop_warm_up(OrrMeasuredRun *run) {
    double median = median_of(run, offsetof(OrrMeasuredStep, time_ns));
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < run->n_steps; i++)
        n_left += !run->steps[i].is_dropped;
    for (uint32_t i = 0; i < run->n_steps && n_left > 1; i++) {
        OrrMeasuredStep *step = &run->steps[i];
        if (step->is_dropped)
            continue;
        /* half above the median: later steps vary by far less, see doc/formats.md */
        bool is_warm_up = step->iteration <= 1 || step->time_ns > 1.5 * median;
        if (!is_warm_up)
            return;
        step->is_dropped = true;
        n_left--;
    }
}

void orr_measured_run_settle(OrrMeasuredRun *run) {
    drop_warm_up(run);
    g_autofree double *x = g_new(double, run->n_steps + 1);
    uint32_t n = 0;
    run->n_used = 0;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        run->n_used += !run->steps[i].is_dropped;
        if (!run->steps[i].is_dropped && isfinite(run->steps[i].time_ns))
            x[n++] = run->steps[i].time_ns;
    }
    run->step_time_ns = orr_stats_median(x, n);
    run->step_p10_ns = orr_stats_percentile(x, n, 0.1);
    run->step_p90_ns = orr_stats_percentile(x, n, 0.9);
    run->step_deviation_ns = orr_stats_deviation(x, n);
    run->tflops_per_gpu = median_of(run, offsetof(OrrMeasuredStep, tflops_per_gpu));
    run->tokens_per_gpu_per_s = median_of(run, offsetof(OrrMeasuredStep, tokens_per_gpu_per_s));
    run->mfu_frac = median_of(run, offsetof(OrrMeasuredStep, mfu_frac));
    run->samples_per_s = median_of(run, offsetof(OrrMeasuredStep, samples_per_s));
    run->memory_bytes = NAN;
    for (uint32_t i = 0; i < run->n_steps; i++)
        if (!(run->memory_bytes >= run->steps[i].memory_bytes)) /* NAN at first */
            run->memory_bytes = run->steps[i].memory_bytes;
}

void orr_measured_profile_free(OrrMeasuredProfile *profile) {
    if (!profile)
        return;
    for (uint32_t i = 0; i < profile->n_kernels; i++)
        g_free(profile->kernels[i].name);
    for (uint32_t i = 0; i < profile->n_transfers; i++) {
        g_free(profile->transfers[i].name);
        g_free(profile->transfers[i].group);
    }
    g_free(profile->kernels);
    g_free(profile->transfers);
    g_free(profile->name);
    g_free(profile->gpu);
    g_free(profile);
}
