/* NVML by dlopen. Names and numbers: NVML API reference (nvmlClockType_t,
 * nvmlTemperatureSensors_t). */
#include "calibrate/nvml.h"

#include <dlfcn.h>
#include <math.h>

typedef void *Handle;

#define SUCCESS 0
#define CLOCK_SM 1     /* NVML_CLOCK_SM */
#define CLOCK_MEMORY 2 /* NVML_CLOCK_MEM */
#define SENSOR_GPU 0   /* NVML_TEMPERATURE_GPU */

struct OrrNvml {
    void *library;
    Handle gpu;
    int (*shutdown)(void);
    int (*clock)(Handle gpu, int type, unsigned *mhz);
    int (*power)(Handle gpu, unsigned *milliwatts);
    int (*temperature)(Handle gpu, int sensor, unsigned *celsius);
    char driver[96];
};

/* A function of the library; object and function pointers are the same on POSIX systems. */
#define FIND(n, name) (*(void **)(&(n)) = dlsym(library, name))

static OrrNvml *open_gpu(void *library, const char *bus_id) {
    int (*init)(void) = NULL, (*find)(const char *, Handle *) = NULL;
    int (*version)(char *, unsigned) = NULL;
    OrrNvml n = {.library = library};
    FIND(init, "nvmlInit_v2");
    FIND(find, "nvmlDeviceGetHandleByPciBusId_v2");
    FIND(version, "nvmlSystemGetDriverVersion");
    FIND(n.shutdown, "nvmlShutdown");
    FIND(n.clock, "nvmlDeviceGetClockInfo");
    FIND(n.power, "nvmlDeviceGetPowerUsage");
    FIND(n.temperature, "nvmlDeviceGetTemperature");
    if (!init || !find || !n.shutdown || init() != SUCCESS)
        return NULL;
    if (find(bus_id, &n.gpu) != SUCCESS) {
        n.shutdown();
        return NULL;
    }
    if (!version || version(n.driver, sizeof n.driver) != SUCCESS)
        n.driver[0] = 0;
    OrrNvml *result = g_new(OrrNvml, 1);
    *result = n;
    return result;
}

OrrNvml *orr_nvml_open(const char *name, const char *bus_id) {
    void *library = dlopen(name ? name : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
    OrrNvml *n = open_gpu(library, bus_id);
    if (!n)
        dlclose(library);
    return n;
}

static double scaled(int status, unsigned value, double scale) {
    return status == SUCCESS ? value * scale : NAN;
}

void orr_nvml_read(const OrrNvml *n, OrrReadings *readings) {
    *readings = (OrrReadings){NAN, NAN, NAN, NAN};
    unsigned value = 0;
    if (n && n->clock) {
        int status = n->clock(n->gpu, CLOCK_SM, &value);
        readings->sm_clock_mhz = scaled(status, value, 1);
        status = n->clock(n->gpu, CLOCK_MEMORY, &value);
        readings->memory_clock_mhz = scaled(status, value, 1);
    }
    if (n && n->power) {
        int status = n->power(n->gpu, &value);
        readings->power_watts = scaled(status, value, 1e-3);
    }
    if (n && n->temperature) {
        int status = n->temperature(n->gpu, SENSOR_GPU, &value);
        readings->temperature_c = scaled(status, value, 1);
    }
}

const char *orr_nvml_driver(const OrrNvml *n) {
    return n ? n->driver : "";
}

void orr_nvml_close(OrrNvml *n) {
    if (!n)
        return;
    n->shutdown();
    dlclose(n->library);
    g_free(n);
}
