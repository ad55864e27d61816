/* Logs of programs as lines, without what launchers and terminals add to them.
 *
 * Taken off each line: the labels of srun ("3: "), mpirun ("[1,0]<stdout>:") and torchrun
 * ("[default7]:"), colour codes, carriage returns. Bytes that are not UTF-8 become U+FFFD: a log
 * is read for its numbers. Line numbers stay those of the file. */
#ifndef ORR_IO_LOG_H
#define ORR_IO_LOG_H

#include "sim/io/file.h"

typedef struct {
    char *name;
    char **lines; /* cleaned, without line ends */
    guint n_lines;
    bool is_cut; /* the last line has no line end */
} OrrLog;

/* Errors: the file cannot be read, or is empty. */
OrrLog *orr_log_load(const char *path, GError **error);
/* @name stands for the file in messages. */
OrrLog *orr_log_parse(const char *name, const char *text, gsize length, GError **error);
void orr_log_free(OrrLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrLog, orr_log_free)

/* The words of a line, split at blanks; g_strfreev. */
char **orr_log_words(const char *line, guint *n_words);
/* A whole number all of @word is; false: it is none or does not fit. */
bool orr_log_int(const char *word, int64_t *value);
/* A finite number at the start of @text (commas between digits are skipped); *@end behind it. */
bool orr_log_number(const char *text, double *value, const char **end);

#endif
