/* Records of orrery-calibrate, read back: what the fit starts from. Rows that can't be right are
 * left out or marked, each with its file, line and reason.
 *
 * Impossible: above the peak, the memory's or the link's rate (of the GPU as it is known); no time.
 * Doubtful, but kept: a wide spread. */
#ifndef ORR_CALIBRATE_RECORD_ROWS_H
#define ORR_CALIBRATE_RECORD_ROWS_H

#include "calibrate/case.h"
#include "sim/cluster/gpu.h"

typedef struct {
    OrrCase c;
    double ns, spread_frac;
    double compute_ns, compute_beside_ns; /* NAN where not measured */
    double sm_clock_hz;                   /* NAN without NVML */
    OrrAlgo algo;                         /* forced; ORR_N_ALGOS: as NCCL chose */
    OrrProto proto;
    guint file, line; /* number of the file, line in it */
} OrrRecordRow;

/* Where a file was measured; "" and 0 where it does not say. */
typedef struct {
    char *device, *driver, *cuda, *cublas, *cudnn, *nccl, *capability, *first_date, *last_date;
    uint32_t n_gpus, gpus_per_node, n_sms;
    double boost_hz, hbm_bytes_per_s, memory_bytes, l2_bytes;
} OrrRecordFacts;

typedef struct {
    OrrRecordFacts facts;
    GPtrArray *files; /* char *: names as given */
    GArray *rows;     /* OrrRecordRow, sound ones */
    GPtrArray *notes; /* char *: "FILE:LINE: what is wrong; what was done" */
    guint n_refused;  /* rows that the runner could not measure, or measured wrong */
    guint n_impossible, n_doubtful;
} OrrRecordRows;

OrrRecordRows *orr_record_rows_new(void);
void orr_record_rows_free(OrrRecordRows *rows);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRecordRows, orr_record_rows_free)

/* Whether @path begins as a file of records does. */
bool orr_record_rows_is(const char *path);
/* Adds the rows of @path. Errors (ORR_ERROR_INPUT) with file, line and column: a cell that can't be
 * read, a device or libraries other than those of the files before. */
bool orr_record_rows_add(OrrRecordRows *rows, const char *path, GError **error);
/* Takes out what @gpu can't do, with a note each. */
void orr_record_rows_judge(OrrRecordRows *rows, const OrrGpu *gpu);
/* The GPU as the records themselves tell it (peaks by capability and clock); NULL with @error where
 * they don't: then --gpu must name it. Free with orr_gpu_free. */
OrrGpu *orr_record_rows_gpu(const OrrRecordRows *rows, GError **error);

#endif
