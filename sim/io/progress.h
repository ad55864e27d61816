/* Progress of a long run on standard error, with the time left; only if that is a terminal. */
#ifndef ORR_IO_PROGRESS_H
#define ORR_IO_PROGRESS_H

#include <glib.h>
#include <stdint.h>

typedef struct OrrProgress OrrProgress;

/* @what is done @total times of @unit: "simulating", 8, "steps". */
OrrProgress *orr_progress_new(const char *what, uint64_t total, const char *unit);
/* @done of the total; draws at most a few times a second, so it may be called often. */
void orr_progress_set(OrrProgress *p, uint64_t done);
/* The same, as what works long calls it: @progress is the OrrProgress. */
void orr_progress_show(void *progress, uint64_t done);
/* Clears the line. */
void orr_progress_free(OrrProgress *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrProgress, orr_progress_free)

/* The line that would be drawn @elapsed_us after the start; g_free. */
char *orr_progress_text(const OrrProgress *p, uint64_t done, int64_t elapsed_us);

#endif
