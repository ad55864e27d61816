/* Training logs as measured runs: Megatron-LM of any age, Megatron-DeepSpeed, DeepSpeed, NeMo,
 * torchtitan.
 *
 * Each line that reports a step is a step; what the log says of layout, batch and model is taken
 * along. Warm-up is dropped (sim/facts/measured.h), so are steps that the optimizer skipped if
 * others are left; the rest gives medians and spread. Where a log gives a rate but no time, the
 * time comes from batch and rate, else from the time stamps of successive lines. Left out: loss,
 * learning rate, evaluation.
 *
 * Source: NVIDIA/Megatron-LM training_log(), deepspeedai/DeepSpeed ThroughputTimer and pipeline
 * engine, NVIDIA/NeMo progress printer, pytorch/torchtitan MetricsProcessor; cost: one pass. */
#ifndef ORR_CALIBRATE_RUN_LOG_H
#define ORR_CALIBRATE_RUN_LOG_H

#include "sim/facts/measured.h"
#include "sim/io/importer.h"

/**
 * orr_run_log_read: the run that the log at import->path tells of.
 * Returns: a run with at least one step; step_time_ns is NAN if no line leads to a time (the notes
 * say so). Free with orr_measured_run_free. NULL with @error if no line reports a step.
 */
OrrMeasuredRun *orr_run_log_read(const OrrImport *import, GError **error);
/* As orr_run_log_read, from memory; import->path stands for the file. */
OrrMeasuredRun *orr_run_log_parse(const OrrImport *import, const char *text, gsize length,
                                  GError **error);
/* The run as a key file; g_free. */
char *orr_run_log_format(const OrrMeasuredRun *run);

extern const OrrImporter orr_importer_log;

#endif
