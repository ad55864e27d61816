/* A file that only grows: a line a finished piece of work, so that a killed run goes on where it
 * was.
 *
 * The first line names the work by a key; each other line carries its checksum. What a kill or a
 * full disk left half-written is at the end and is cut off when the file is opened again. One
 * process at a time (advisory lock). */
#ifndef ORR_IO_JOURNAL_H
#define ORR_IO_JOURNAL_H

#include "sim/base/error.h"

typedef struct OrrJournal OrrJournal;

/**
 * orr_journal_open: makes @path if it is not there.
 * @key: what the lines belong to, without line ends; a file of another key is refused.
 * Errors: ORR_ERROR_INPUT (another key, damaged before its end, no journal), ORR_ERROR_ENV.
 */
OrrJournal *orr_journal_open(const char *path, const char *key, GError **error);
guint orr_journal_n_lines(const OrrJournal *j); /* that were there when it was opened */
const char *orr_journal_line(const OrrJournal *j, guint i);
/* @line without a line end. Whole or not at all; false with @error (ORR_ERROR_ENV). */
bool orr_journal_append(OrrJournal *j, const char *line, GError **error);
void orr_journal_free(OrrJournal *j);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrJournal, orr_journal_free)

#endif
