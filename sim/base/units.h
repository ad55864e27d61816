/* Units: the only place that knows bits, GB and GiB. Everything else is in SI base: ns, bytes,
 * bytes per second, FLOP, FLOP per second, watts. */
#ifndef ORR_BASE_UNITS_H
#define ORR_BASE_UNITS_H

#include "sim/base/error.h"

typedef enum {
    ORR_DIM_NONE,  /* a bare number */
    ORR_DIM_COUNT, /* a whole number with an optional, checked noun: `8 GPUs`, `2048 sequences` */
    ORR_DIM_TIME,  /* ns us ms s min h d -> nanoseconds */
    ORR_DIM_BYTES, /* B kB MB GB TB KiB MiB GiB TiB -> bytes */
    ORR_DIM_RATE,  /* B/s .. GB/s .. Gb/s Tb/s (bits, decimal) -> bytes per second */
    ORR_DIM_FLOPS, /* FLOP GFLOP TFLOP -> FLOP */
    ORR_DIM_FLOPS_RATE, /* FLOP/s .. TFLOP/s PFLOP/s -> FLOP per second */
    ORR_DIM_POWER,      /* W kW MW -> watts */
    ORR_DIM_FREQ,       /* Hz MHz GHz -> hertz */
    ORR_DIM_FRACTION,   /* 0.07 or 7 % -> 0.07; bare numbers are fractions */
    ORR_N_DIMS
} OrrDim;

/**
 * orr_units_parse: reads "400 Gb/s" as 5e10 when @dim is ORR_DIM_RATE.
 * A missing or foreign unit is an error that says which units would do. No locale.
 * Returns: true and *@value in the base unit; false with @error.
 */
bool orr_units_parse(const char *text, OrrDim dim, double *value, GError **error);

/**
 * orr_units_split: the number that @text starts with, and what stands behind it.
 * Plain decimal only: no hexadecimal, no infinity, no thousands separators.
 * Returns: true, *@value and *@unit (into @text, spaces skipped, "" if nothing); false with @error.
 */
bool orr_units_split(const char *text, double *value, const char **unit, GError **error);

/* @value of @dim as people read it, unit included: "400 GB/s", "7 %", "8"; g_free. */
char *orr_units_format(double value, OrrDim dim);

/* What would do, for messages: "8 ms or more", "0 % to 100 %", "3"; an end that is infinite is left
 * out, and both: "any"; g_free. */
char *orr_units_range(double min, double max, OrrDim dim);
/* The same of whole numbers; those near the ends of 64 bits count as infinite. */
char *orr_units_whole_range(int64_t min, int64_t max);

/* The shortest decimal that reads back as the same double; no locale; g_free. */
char *orr_units_double(double value);

/* Each returns a short text for people ("1.5 GiB", "12.3 ms", "400 Gb/s"); free with g_free. */
char *orr_units_bytes(double bytes);    /* binary prefixes */
char *orr_units_bytes_si(double bytes); /* decimal prefixes */
char *orr_units_time(int64_t ns);
char *orr_units_rate(double bytes_per_s); /* GB/s */
char *orr_units_count(double n);          /* 1,234,567 */
/* The units that @dim takes, for messages: "ns, us, ms, s, min, h or d". */
const char *orr_units_names(OrrDim dim);

#endif
