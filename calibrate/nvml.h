/* Clocks, power and temperature through NVML, loaded at run time: where the library is absent the
 * readings are NAN. */
#ifndef ORR_CALIBRATE_NVML_H
#define ORR_CALIBRATE_NVML_H

#include "calibrate/device.h"

typedef struct OrrNvml OrrNvml;

/* @library NULL: the driver's. @bus_id: PCI address of the GPU as CUDA gives it. NULL if there is
 * no such library or GPU. */
OrrNvml *orr_nvml_open(const char *library, const char *bus_id);
/* NULL: all NAN. */
void orr_nvml_read(const OrrNvml *n, OrrReadings *readings);
/* Version of the driver, "" if unknown or @n is NULL. */
const char *orr_nvml_driver(const OrrNvml *n);
void orr_nvml_close(OrrNvml *n); /* NULL is fine */

#endif
