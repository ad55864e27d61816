/* A table of text whose columns are as wide as what is in them. */
#ifndef ORR_REPORT_RUN_TABLE_H
#define ORR_REPORT_RUN_TABLE_H

#include "sim/io/file.h"

typedef struct OrrTextTable OrrTextTable;
/* @align: a letter a column, 'l' or 'r'; borrowed, a literal. */
OrrTextTable *orr_run__table_new(const char *align);
/* Cells of a row, NULL at the end; those that are missing are empty. */
void orr_run__table_row(OrrTextTable *t, ...) G_GNUC_NULL_TERMINATED;
/* Two spaces between columns, none at the end of a line. Frees the table. */
void orr_run__table_write(OrrTextTable *t, OrrOut *out);

#endif
