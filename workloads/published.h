/* Tables of published measurements (CSV) as facts. Columns go by name, unknown ones are ignored;
 * what a table holds is told from its columns (doc/formats.md, "Published measurements"). */
#ifndef WORKLOADS_PUBLISHED_H
#define WORKLOADS_PUBLISHED_H

#include "sim/base/error.h"
#include "sim/facts/published.h"

/**
 * orr_workload_published: adds the tables at @path, a file or a folder (its *.csv in order of name,
 * not those of folders in it), to @into.
 * Errors (ORR_ERROR_INPUT): no such file, a folder without tables, broken CSV. A cell that can't be
 * read is no error: its row says so (flaw); nor is a table of another kind: `others` says so.
 */
bool orr_workload_published(const char *path, OrrPublished *into, GError **error);

/* The folder of the shipped tables; g_free. */
char *orr_workload_published_shipped(GError **error);

#endif
