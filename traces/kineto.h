/* PyTorch profiler (Kineto) traces as a measured profile: kernels by name and stream, communication
 * kernels by collective, size and group, and how the time of the window divides.
 *
 * Chrome JSON, object or bare array, plain or gzip. A trace whose writer was killed ends within its
 * array of events: it is used up to the last whole event, and said. Kernels are told apart by
 * category, their kinds by words in their names (a table); what no word matches stays unknown.
 * Left out: host operations, flows, stacks.
 *
 * Source: pytorch/kineto output_json.cpp; HolisticTraceAnalysis for what analysers rely on. */
#ifndef TRACES_KINETO_H
#define TRACES_KINETO_H

#include "sim/facts/measured.h"
#include "sim/io/importer.h"

/* Free with orr_measured_profile_free. NULL with @error: no JSON, no event of a device. */
OrrMeasuredProfile *orr_kineto_read(const OrrImport *import, GError **error);
/* As orr_kineto_read, from memory; import->path stands for the file. */
OrrMeasuredProfile *orr_kineto_parse(const OrrImport *import, const char *text, gsize length,
                                     GError **error);
/* Rows of kernels and collectives as CSV; g_free. */
char *orr_kineto_format(const OrrMeasuredProfile *profile);

/* What kernel a name means; ORR_N_KERNEL_KINDS if no word of it is known. */
OrrKernelKind orr_kineto_kernel_kind(const char *name);

extern const OrrImporter orr_importer_kineto;

#endif
