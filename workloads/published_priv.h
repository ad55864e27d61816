/* What the readers of published tables share. */
#ifndef WORKLOADS_PUBLISHED_PRIV_H
#define WORKLOADS_PUBLISHED_PRIV_H

#include "sim/facts/published.h"
#include "sim/io/csv.h"

/* A plain number from 0 to @max; 0 if the cell is empty or the column absent (-1), or if it is no
 * such number: then *@flaw (g_free) says so, unless it has a reason already. */
double orr_published__number(const OrrCsv *csv, guint row, int column, double max, char **flaw);
/* Adds all rows of a table of that kind; @file is its place in into->files. */
void orr_published__calls(const OrrCsv *csv, uint32_t file, OrrPublished *into);
void orr_published__kernels(const OrrCsv *csv, uint32_t file, OrrPublished *into);

#endif
