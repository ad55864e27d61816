/* A calibration file of collectives: what `orrery calibrate fit` writes and --calibration reads. */
#ifndef ORR_API_CALIBRATION_H
#define ORR_API_CALIBRATION_H

#include "sim/collective/constants.h"

/**
 * orr_calibration_read: the shipped constants with those of the group [collectives] of @path in
 * their place. *@constants (g_free) is NULL if the file has no such group: then it holds tables of
 * kernels. false with @error: unknown names, values out of range, missing units.
 */
bool orr_calibration_read(const char *path, OrrCollConstants **constants, GError **error);

#endif
