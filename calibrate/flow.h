/* A whole calibration on an open device: which cases, which of them are recorded already, the run,
 * and what is said at its end. */
#ifndef ORR_CALIBRATE_FLOW_H
#define ORR_CALIBRATE_FLOW_H

#include "calibrate/options.h"
#include "calibrate/runner.h"

/**
 * orr_calibrate: what the options ask for. Messages go to standard error, from process 0 only.
 * @is_stopped: asked between cases, may be NULL.
 * Errors: ORR_ERROR_NO (a result was wrong), ORR_ERROR_INPUT (shapes, the file of records),
 * ORR_ERROR_ENV (device lost, disk full, interrupted).
 */
bool orr_calibrate(const OrrCalibrateOptions *o, OrrDevice *d, OrrRanks *ranks,
                   bool (*is_stopped)(void *data), void *data, GError **error);

/* The cases that the options ask for; OrrCase, g_array_unref. NULL with @error. */
GArray *orr_calibrate_cases(const OrrCalibrateOptions *o, const OrrDeviceFacts *facts,
                            GError **error);

#endif
