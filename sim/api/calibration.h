/* A calibration file: what `orrery calibrate fit` writes, and --calibration or a GPU file's
 * `surfaces` names. Each part is there or not: surfaces of products and attention, rates of kernels
 * bound by memory, constants of collectives, launches, the price of overlap. A table of
 * calibrate/tables is one with surfaces only. */
#ifndef ORR_API_CALIBRATION_H
#define ORR_API_CALIBRATION_H

#include "sim/collective/constants.h"
#include "sim/facts/surface.h"
#include "sim/model/spec.h"

/* 0 and NULL: not measured. */
typedef struct {
    char *name;              /* of the file, without folder and suffix */
    OrrSurfaceSet *surfaces; /* with the rates, if it has both */
    OrrKernelRates rates;
    bool has_rates;
    OrrCollConstants *collectives;     /* the shipped ones with the measured in their place */
    double launch_ns, graph_launch_ns; /* of a kernel by the host, back to back */
    double compute_rate_frac, send_rate_frac; /* of a product beside a collective, beside a send */
} OrrCalibration;

/**
 * orr_calibration_load: @ref is a name of calibrate/tables or a path. NULL with @error
 * (ORR_ERROR_INPUT): no such file, unknown names, values out of range, missing units, a file
 * without any of the parts.
 */
OrrCalibration *orr_calibration_load(const char *ref, GError **error);
/**
 * orr_calibration_for: what serves @gpu: @ref, or where that is NULL or has no surfaces the GPU's
 * own table, which is joined to it. *@calibration may come out NULL: a GPU without tables.
 */
bool orr_calibration_for(const char *ref, const OrrGpu *gpu, OrrCalibration **calibration,
                         GError **error);
/* A copy of @framework with the measured launches and rates in place of the profile's; shares all
 * texts with it, so it is freed by g_free and lives no longer. NULL: nothing to change. */
OrrFramework *orr_calibration_profile(const OrrCalibration *calibration,
                                      const OrrFramework *framework, double host_speed);
void orr_calibration_free(OrrCalibration *calibration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCalibration, orr_calibration_free)

#endif
