/* The table of `orrery show collective` as a log of nccl-tests: what reads such logs reads it. */
#ifndef ORR_CLI_SHOW_LOG_H
#define ORR_CLI_SHOW_LOG_H

#include "sim/collective/table.h"
#include "sim/io/file.h"

typedef struct {
    const OrrCluster *cluster;
    OrrCollective kind;
    OrrDtype dtype;
    uint32_t n_ranks; /* on the first GPUs */
    uint32_t version; /* 22706; 0: not said */
    const OrrCollRow *rows;
    uint32_t n_rows;
} OrrShowLog;

/* In and out of place alike. In @dtype FP4 there is no such log: false with @error (usage). */
bool orr_cli_write_log(const OrrShowLog *log, OrrOut *out, GError **error);

#endif
