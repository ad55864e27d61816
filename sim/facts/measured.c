/* Owners of measured facts. */
#include "sim/facts/measured.h"

void orr_collective_log_free(OrrCollectiveLog *log) {
    if (!log)
        return;
    g_free(log->name);
    g_free(log->system);
    g_free(log->gpu);
    g_free(log->network);
    g_free(log->rows);
    g_free(log->notes);
    g_free(log);
}

void orr_kernel_log_free(OrrKernelLog *log) {
    if (!log)
        return;
    g_free(log->name);
    g_free(log->gpu);
    g_free(log->rows);
    g_free(log->notes);
    g_free(log);
}
