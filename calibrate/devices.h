/* The table of devices that this program was built with. */
#ifndef ORR_CALIBRATE_DEVICES_H
#define ORR_CALIBRATE_DEVICES_H

#include "calibrate/device.h"

/* @name "cuda" (NULL: the same) or "fake[:GPUS[:GPUS_PER_NODE]]"; @ranks is borrowed. Errors:
 * ORR_ERROR_USAGE (no such name), ORR_ERROR_ENV (no GPU, no driver). */
OrrDevice *orr_device_open(const char *name, OrrRanks *ranks, GError **error);
/* What the program was built with, a line; g_free. */
char *orr_device_versions(void);

#endif
