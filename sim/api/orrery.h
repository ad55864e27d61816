/* Orrery as a library: simulate one step of distributed training and ask what it takes.
 *
 * The one public header; it needs nothing but C. Names start with orrery_, to keep out of the way
 * of the host program. Nothing here exits, prints, or changes global state; runs are independent of
 * each other and of threads, as long as one run is used by one thread at a time. The same inputs
 * give the same results. Link with `pkg-config --cflags --libs orrery`. An example is in
 * doc/library.md. */
#ifndef ORRERY_H
#define ORRERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *orrery_version(void);

/* What went wrong: for people, and as the exit status that the program would have. */
typedef enum {
    ORRERY_USAGE = 2,       /* an option of the call is wrong */
    ORRERY_BAD_INPUT = 3,   /* a file or a value in it */
    ORRERY_SURROUNDINGS = 4 /* disk, permissions */
} OrreryStatus;
typedef struct {
    OrreryStatus status;
    char *message; /* names file, line, group, key, and what would do; may have several lines */
} OrreryError;
void orrery_error_free(OrreryError *error); /* NULL is fine */

/* How to run; all zero is a good default. Borrowed during the call. */
typedef struct {
    const char *const *sets; /* "group.key=value", NULL-terminated; NULL: none. As --set */
    const char *calibration; /* name of efficiency tables; NULL: the GPU file's own */
    uint64_t seed;           /* taken if has_seed, else the job's */
    bool has_seed;
    bool is_unfolded; /* execute every rank as itself: slower, the same result */
    bool self_check;  /* assert conservation and bounds while running */
    bool sensitivity; /* of a step: what 10 % more of each resource would make of it, a run each */
} OrreryOptions;

typedef struct OrreryStep OrreryStep;
/**
 * orrery_step_run: simulates one training step of @job, a job's name or the path of a job file.
 * @options: NULL for the defaults.
 * Returns: the result, orrery_step_free; NULL with *@error (may be NULL; orrery_error_free). That a
 * job does not fit in memory is a result and no error: ask orrery_step_fits.
 */
OrreryStep *orrery_step_run(const char *job, const OrreryOptions *options, OrreryError **error);
void orrery_step_free(OrreryStep *step); /* NULL is fine */

int64_t orrery_step_time_ns(const OrreryStep *step);       /* steady period of a step */
double orrery_step_tokens_per_s(const OrreryStep *step);   /* whole job */
double orrery_step_tflops_per_gpu(const OrreryStep *step); /* model FLOPs by the job's formula */
double orrery_step_mfu_frac(const OrreryStep *step);       /* of the dense peak */
double orrery_step_bubble_frac(const OrreryStep *step);    /* of the step */
uint32_t orrery_step_n_gpus(const OrreryStep *step);
bool orrery_step_fits(const OrreryStep *step); /* in the memory of its GPUs */
uint32_t orrery_step_n_stages(const OrreryStep *step);
int64_t orrery_step_peak_bytes(const OrreryStep *step, uint32_t stage); /* -1: no such stage */

/* The whole report, as `orrery step` prints it. @format: "text", "json" (schema orrery.step/1) or
 * "csv". NULL if there is no such format; else a text for orrery_free. */
char *orrery_step_report(const OrreryStep *step, const char *format);
void orrery_free(char *text);

/**
 * orrery_run_report: simulates @n_seeds seeds of a whole run, the first being options->seed (0
 * without has_seed), and reports on them as `orrery run` prints it.
 * @run: a run's name, the path of a run file, or a job whose end options->sets give.
 * @n_seeds: at least 1.  @n_threads: 0 for as many as there are processors; the result is the same.
 * @format: "text", "json" (schema orrery.run/1) or "csv".  @options: NULL for the defaults.
 * Returns: a text for orrery_free; NULL with *@error (may be NULL; orrery_error_free).
 */
char *orrery_run_report(const char *run, uint32_t n_seeds, uint32_t n_threads, const char *format,
                        const OrreryOptions *options, OrreryError **error);

#ifdef __cplusplus
}
#endif

#endif
