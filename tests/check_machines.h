/* Machines, and their logs of collectives as a simulated run would print them, with noise. */
#ifndef TESTS_CHECK_MACHINES_H
#define TESTS_CHECK_MACHINES_H

#include "sim/base/random.h"
#include "sim/judge/check.h"
#include "sim/judge/faults.h"

#define CHECK_ROWS 15 /* 128 KiB to 2 GiB */

typedef struct {
    const char *name;
    OrrCommPlace place;
    double management_bytes_per_s;
} CheckMachine;

enum {
    CHECK_H100_NODE,
    CHECK_H100_PAIR,
    CHECK_H100_64,
    CHECK_A100_48,
    CHECK_H100_512,
    CHECK_N_MACHINES
};
/* @n nodes of 8 H100 with a NIC of 400 Gb/s each. */
#define CHECK_H100(n)                                                                              \
    {                                                                                              \
        .n_ranks = 8 * (n), .n_domains = (n), .min_per_domain = 8, .max_per_domain = 8,            \
        .n_nodes = (n), .max_per_node = 8, .arch = ORR_ARCH_HOPPER, .nvlink = ORR_NVLINK_SWITCH,   \
        .has_nvls = true, .nvlink_bytes_per_s = 450e9, .pcie_bytes_per_s = 64e9,                   \
        .net = ORR_NET_IB, .nic_bytes_per_s = 50e9, .nics_per_domain = 8, .gpus_per_nic = 1,       \
        .net_latency_ns = 3000                                                                     \
    }

static const CheckMachine check_machines[CHECK_N_MACHINES] = {
    {"one node of 8 H100", CHECK_H100(1), 12.5e9},
    {"2 nodes of 8 H100, 400 Gb/s each", CHECK_H100(2), 12.5e9},
    {"8 nodes of 8 H100, 400 Gb/s each", CHECK_H100(8), 12.5e9},
    {"6 nodes of 8 A100, 100 Gb/s RoCE each",
     {.n_ranks = 48,
      .n_domains = 6,
      .min_per_domain = 8,
      .max_per_domain = 8,
      .n_nodes = 6,
      .max_per_node = 8,
      .arch = ORR_ARCH_AMPERE,
      .nvlink = ORR_NVLINK_SWITCH,
      .nvlink_bytes_per_s = 300e9,
      .pcie_bytes_per_s = 32e9,
      .net = ORR_NET_ROCE,
      .nic_bytes_per_s = 12.5e9,
      .nics_per_domain = 8,
      .gpus_per_nic = 1,
      .net_latency_ns = 3000},
     1.25e9},
    {"64 nodes of 8 H100, 400 Gb/s each", CHECK_H100(64), 12.5e9},
};

typedef struct {
    OrrMeasuredTable table;
    OrrMeasuredCollective rows[CHECK_ROWS];
} CheckLog;

/* What a sound machine's log differs by from run to run and from the model: the whole table by
 * @common, each size by @each (half of it from 64 MiB on), both deviations of the logarithm. */
typedef struct {
    uint64_t seed;
    double common, each;
} CheckNoise;

static inline const OrrFault *check_fault(const char *code) {
    for (uint32_t i = 0; i < orr_n_faults; i++)
        if (g_strcmp0(orr_faults[i].code, code) == 0)
            return &orr_faults[i];
    return NULL;
}

/* The machine's log under up to two faults (NULL: none) at @levels, and the case as the checker
 * sees it: the sound machine. False where a fault cannot be. */
static inline bool check_log(const CheckMachine *m, const char *const faults[2],
                             const double levels[2], CheckNoise noise, CheckLog *log,
                             OrrCheckCase *out) {
    static const OrrNcclForce unforced = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};
    OrrCommPlace place = m->place;
    OrrNcclForce force = unforced;
    for (int f = 0; f < 2 && faults[f]; f++)
        if (!check_fault(faults[f])->apply(&place, &force, levels[f], m->management_bytes_per_s))
            return false;
    OrrRandom draw = orr_random(noise.seed, "log of a machine");
    double common = orr_random_lognormal(draw, CHECK_ROWS, 0, noise.common);
    *log = (CheckLog){.table = {.name = (char *)"log",
                                .kind = ORR_ALL_REDUCE,
                                .n_ranks = place.n_ranks,
                                .n_nodes = place.n_nodes,
                                .n_rows = CHECK_ROWS}};
    log->table.rows = log->rows;
    for (uint32_t i = 0; i < CHECK_ROWS; i++) {
        OrrCollPlan plan;
        log->rows[i].bytes = INT64_C(1) << (17 + i);
        log->rows[i].dtype = ORR_FP32;
        if (!orr_collective_plan(ORR_ALL_REDUCE, log->rows[i].bytes, ORR_FP32, &place, &force,
                                 &plan, NULL))
            return false;
        double each = log->rows[i].bytes < 64 << 20 ? noise.each : noise.each / 2;
        log->rows[i].out_of_place.time_ns = common * orr_random_lognormal(draw, i, 0, each) *
                                            (double)orr_collective_ns(&plan, log->rows[i].bytes);
    }
    *out = (OrrCheckCase){.table = &log->table,
                          .place = m->place,
                          .force = unforced,
                          .management_bytes_per_s = m->management_bytes_per_s};
    return true;
}

#endif
