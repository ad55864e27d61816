/* The table of schedules, and an order of one's own from CSV text. */
#ifndef ORR_SCHEDULE_SCHEDULES_H
#define ORR_SCHEDULE_SCHEDULES_H

#include "sim/schedule/schedule.h"

extern const OrrSchedule *const orr_schedules[]; /* NULL-terminated */
/* NULL with @error (ORR_ERROR_INPUT) that lists the names; aliases: "gpipe", "1f1b", ... */
const OrrSchedule *orr_schedule_find(const char *name, GError **error);

/* Rows and cells of a custom schedule, already split (sim/io reads the CSV): a row a rank, cells
 * like `2F0`, `2I0`, `2W0`, `2B0` = virtual stage, pass, micro-batch; empty cells are idle.
 * @where names the file in messages. Every pass exactly once, each virtual stage on one rank. */
OrrOrder *orr_schedule_custom(const char *where, char ***rows, guint n_rows, GError **error);

/* NULL if sound, else what is wrong: a pass missing or twice, a dependency that can never be met
 * (the cycle is spelt out); g_free. */
char *orr_order_flaw(const OrrOrder *order);

#endif
