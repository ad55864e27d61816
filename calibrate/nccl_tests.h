/* Output of nccl-tests and rccl-tests, and of PyTorch's all_reduce_bench, as measured tables.
 *
 * Read are the layouts of nccl-tests: up to 2.10 (`error` columns, root only for rooted
 * collectives), 2.11 to 2.16 (`#wrong`), from 2.17 (lines that name version and collective), rows
 * with a time stamp behind them, and its JSON (-J). Columns go by the header's names. Labels of
 * mpirun and srun and lines of NCCL between rows, or within one, don't matter. A row that is not
 * whole is dropped and said. Where the collective is not named it is inferred if redop, root and
 * count leave one; else --op must say it.
 *
 * Source: NVIDIA/nccl-tests, src/common.cu and doc/PERFORMANCE.md; ROCm/rccl-tests; for
 * all_reduce_bench its published versions of 2021 to 2025. */
#ifndef ORR_CALIBRATE_NCCL_TESTS_H
#define ORR_CALIBRATE_NCCL_TESTS_H

#include "sim/facts/measured.h"
#include "sim/io/importer.h"

/**
 * orr_nccl_tests_read: all tables of the file import->path, by import->op and import->n_ranks
 * where the file does not say. Rows that must not be used have a flaw; notes say why.
 * Returns: at least one table with at least one sound row, free with orr_measured_tables_free;
 * NULL with @error.
 */
OrrMeasuredTables *orr_nccl_tests_read(const OrrImport *import, GError **error);
/* As orr_nccl_tests_read, from memory; import->path stands for the file. */
OrrMeasuredTables *orr_nccl_tests_parse(const OrrImport *import, const char *text, gsize length,
                                        GError **error);
/* The sound rows as CSV, in the columns of published collective tables; g_free. */
char *orr_nccl_tests_format(const OrrMeasuredTables *tables);

extern const OrrImporter orr_importer_nccl_tests;

#endif
