/* What orrery-calibrate needs of the machine that it measures: a descriptor of functions, one
 * variant over CUDA (device_cuda.c), one that only computes (device_fake.c).
 *
 * All functions run on every process of the launch (ranks.h), in the same order, with the same
 * arguments. An error of code ORR_ERROR_NO says that this case can't be measured here (no such
 * library, too little memory, an unsupported shape): the run goes on. ORR_ERROR_ENV says that the
 * device is lost: the run ends. */
#ifndef ORR_CALIBRATE_DEVICE_H
#define ORR_CALIBRATE_DEVICE_H

#include "calibrate/case.h"
#include "calibrate/ranks.h"

/* What stands beside each row. Texts are empty where a library is absent; owned by the device. */
typedef struct {
    const char *device; /* name of the GPU; starts with "fake" if it is none */
    const char *driver, *cuda, *cublas, *cudnn, *nccl;
    const char *capability; /* "9.0" */
    const char *date;       /* of this run, "2026-11-29" */
    int n_sms;
    double boost_mhz, hbm_bytes_per_s; /* as the driver tells them; 0: it does not */
    int64_t memory_bytes;              /* of one GPU */
    int64_t l2_bytes;
    int n_gpus;     /* over all processes */
    int n_per_node; /* of the GPUs */
} OrrDeviceFacts;

/* At one moment; NAN where it can't be read. */
typedef struct {
    double sm_clock_mhz, memory_clock_mhz, power_watts, temperature_c;
} OrrReadings;

/* What a run of repeats took. */
typedef struct {
    double ns;                            /* one repeat */
    double compute_ns, compute_beside_ns; /* one product alone, and beside a collective; or NAN */
} OrrTiming;

typedef struct OrrDevice OrrDevice;
typedef struct OrrWork OrrWork; /* a case, ready to run; each variant has its own */

typedef struct {
    const char *name;
    void (*describe)(OrrDevice *d, OrrDeviceFacts *facts);
    /* Allocates and fills with random data. NULL with @error. */
    OrrWork *(*prepare)(OrrDevice *d, const OrrCase *c, GError **error);
    /* Runs once and compares with a reference: *@error_frac is the largest difference over the
     * largest value, NAN where there is nothing to compare; *@tolerance_frac what may be. */
    bool (*check)(OrrDevice *d, OrrWork *w, double *error_frac, double *tolerance_frac,
                  GError **error);
    /* @n repeats, one after another without a pause, and the time of one. With a flushed L2 each
     * repeat is timed by itself. */
    bool (*time)(OrrDevice *d, OrrWork *w, uint32_t n, OrrTiming *timing, GError **error);
    void (*release)(OrrDevice *d, OrrWork *w);
    void (*read)(OrrDevice *d, OrrReadings *readings);
    int64_t (*now_us)(OrrDevice *d); /* a clock that never goes back */
    void (*close)(OrrDevice *d);
} OrrDeviceKind;

/* Variants begin with this. */
struct OrrDevice {
    const OrrDeviceKind *kind;
};

#endif
