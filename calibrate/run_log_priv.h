/* What the readers of framework logs share. */
#ifndef ORR_CALIBRATE_RUN_LOG_PRIV_H
#define ORR_CALIBRATE_RUN_LOG_PRIV_H

#include "calibrate/run_log.h"
#include "sim/io/log.h"

typedef struct OrrLogTimers OrrLogTimers; /* run_log_timers.c */

typedef struct {
    const OrrImport *import;
    OrrMeasuredRun *run;
    GArray *steps;               /* OrrMeasuredStep; is_dropped: skipped by the optimizer */
    double last_stamp_s;         /* time stamp of the last step's line; NAN */
    int64_t last_samples;        /* consumed samples there; -1 */
    bool is_deepspeed;           /* lines of DeepSpeed's own were seen */
    guint n_repeated, n_stamped; /* lines of other ranks; times from time stamps */
    OrrLogTimers *timers;
} OrrRunReader;

/* A framework: takes a line that is its, returns whether it did. */
typedef struct {
    const char *framework;
    bool (*line)(OrrRunReader *r, const char *line, uint32_t number);
} OrrRunFormat;

extern const OrrRunFormat orr_calibrate__megatron, orr_calibrate__deepspeed, orr_calibrate__nemo,
    orr_calibrate__torchtitan;

/* Lines of timers, which belong to the step before them. */
OrrLogTimers *orr_calibrate__timers_new(void);
void orr_calibrate__timers_free(OrrLogTimers *timers);
void orr_calibrate__timers_line(OrrLogTimers *timers, const char *line, guint n_steps);
/* Medians over the used steps of @run, into it. */
void orr_calibrate__timers_settle(const OrrLogTimers *timers, OrrMeasuredRun *run);

/* The number behind "@key", with blanks, ':' and '=' between; NAN if it is not there. */
double orr_calibrate__field(const char *line, const char *key);
/* Seconds of the first time stamp "2026-01-16 07:32:24.123" in @line; NAN: none. */
double orr_calibrate__stamp_s(const char *line);
/* An empty step, all values NAN. */
OrrMeasuredStep orr_calibrate__step(int64_t iteration, uint32_t line);
/* Appends; a repetition of the last iteration (another rank's line) is counted and left out.
 * Fills time_ns from @stamp_s and the line before where it is NAN. */
void orr_calibrate__add_step(OrrRunReader *r, OrrMeasuredStep step, double stamp_s);

#endif
