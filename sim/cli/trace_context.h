/* What exporters ask about the ranks of a run. */
#ifndef ORR_CLI_TRACE_CONTEXT_H
#define ORR_CLI_TRACE_CONTEXT_H

#include "sim/cli/run.h"
#include "traces/trace.h"

/* Borrows @run. */
OrrTraceContext orr_cli_trace_context(const OrrCliRun *run);

#endif
