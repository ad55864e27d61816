/* A library in NVML's place, with one GPU at 00000000:01:00.0: what the calibrator calls of it. Its
 * temperature can't be read. */
#include <stdio.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **gpu);
int nvmlSystemGetDriverVersion(char *text, unsigned length);
int nvmlDeviceGetClockInfo(void *gpu, int type, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *celsius);

#define NOT_FOUND 6     /* NVML_ERROR_NOT_FOUND */
#define NOT_SUPPORTED 3 /* NVML_ERROR_NOT_SUPPORTED */

int nvmlInit_v2(void) {
    return 0;
}

int nvmlShutdown(void) {
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **gpu) {
    static int there;
    *gpu = &there;
    return strcmp(bus_id, "00000000:01:00.0") == 0 ? 0 : NOT_FOUND;
}

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    snprintf(text, length, "580.1");
    return 0;
}

int nvmlDeviceGetClockInfo(void *gpu, int type, unsigned *mhz) {
    (void)gpu;
    *mhz = type == 1 ? 1980 : 2619;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) {
    (void)gpu;
    *milliwatts = 345600;
    return 0;
}

int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *celsius) {
    (void)gpu, (void)sensor, (void)celsius;
    return NOT_SUPPORTED;
}
