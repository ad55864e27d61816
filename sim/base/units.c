#include "sim/base/units.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    double factor; /* to the base unit */
} Unit;

/* Decimal prefixes are SI's, binary ones IEC 80000-13's; a bit is an eighth of a byte. */
static const Unit none_units[] = {{NULL, 1}};
static const Unit time_units[] = {{"ns", 1},     {"us", 1e3},   {"ms", 1e6},    {"s", 1e9},
                                  {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {NULL, 0}};
static const Unit byte_units[] = {{"B", 1},        {"kB", 1e3},        {"MB", 1e6},
                                  {"GB", 1e9},     {"TB", 1e12},       {"PB", 1e15},
                                  {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 0x1p30},
                                  {"TiB", 0x1p40}, {"PiB", 0x1p50},    {NULL, 0}};
static const Unit rate_units[] = {
    {"B/s", 1},        {"kB/s", 1e3},        {"MB/s", 1e6},     {"GB/s", 1e9},     {"TB/s", 1e12},
    {"b/s", 0.125},    {"kb/s", 125},        {"Mb/s", 125e3},   {"Gb/s", 125e6},   {"Tb/s", 125e9},
    {"KiB/s", 1024.0}, {"MiB/s", 1048576.0}, {"GiB/s", 0x1p30}, {"TiB/s", 0x1p40}, {NULL, 0}};
static const Unit flop_units[] = {{"FLOP", 1},     {"MFLOP", 1e6},  {"GFLOP", 1e9},
                                  {"TFLOP", 1e12}, {"PFLOP", 1e15}, {"EFLOP", 1e18},
                                  {"ZFLOP", 1e21}, {NULL, 0}};
static const Unit flop_rate_units[] = {{"FLOP/s", 1},     {"MFLOP/s", 1e6},  {"GFLOP/s", 1e9},
                                       {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18},
                                       {NULL, 0}};
static const Unit power_units[] = {{"W", 1}, {"kW", 1e3}, {"MW", 1e6}, {NULL, 0}};
static const Unit freq_units[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {NULL, 0}};
static const Unit fraction_units[] = {{"%", 0.01}, {NULL, 1}};

static const struct {
    const Unit *units;
    const char *names;
    bool is_bare; /* a number without unit will do */
} dims[ORR_N_DIMS] = {
    [ORR_DIM_NONE] = {none_units, "a bare number", true},
    [ORR_DIM_COUNT] = {none_units, "a whole number", true},
    [ORR_DIM_TIME] = {time_units, "ns, us, ms, s, min, h or d", false},
    [ORR_DIM_BYTES] = {byte_units, "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB or PiB", false},
    [ORR_DIM_RATE] = {rate_units,
                      "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s or in bits b/s, "
                      "kb/s, Mb/s, Gb/s, Tb/s",
                      false},
    [ORR_DIM_FLOPS] = {flop_units, "FLOP, MFLOP, GFLOP, TFLOP, PFLOP, EFLOP or ZFLOP", false},
    [ORR_DIM_FLOPS_RATE] = {flop_rate_units,
                            "FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s or EFLOP/s", false},
    [ORR_DIM_POWER] = {power_units, "W, kW or MW", false},
    [ORR_DIM_FREQ] = {freq_units, "Hz, kHz, MHz or GHz", false},
    [ORR_DIM_FRACTION] = {fraction_units, "a fraction or %", true},
};

const char *orr_units_names(OrrDim dim) {
    return dims[dim].names;
}

bool orr_units_split(const char *text, double *value, const char **unit, GError **error) {
    while (g_ascii_isspace(*text))
        text++;
    const char *digits = text + (*text == '-' || *text == '+');
    if (!g_ascii_isdigit(*digits) && !(*digits == '.' && g_ascii_isdigit(digits[1])))
        return orr_fail_input(error, "\"%s\" is not a number", text);
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return orr_fail_input(error, "\"%s\" is hexadecimal; write it in decimal", text);
    char *end = NULL;
    double v = g_ascii_strtod(text, &end);
    if (!isfinite(v))
        return orr_fail_input(error, "\"%s\" is too large; a smaller number would do", text);
    if (*end == ',' || *end == '.' || *end == '_')
        return orr_fail_input(error, "\"%s\" has a separator in its number; write the digits alone",
                              text);
    while (g_ascii_isspace(*end))
        end++;
    *value = v;
    *unit = end;
    return true;
}

static bool parse_count(const char *text, const char *unit, double value, GError **error) {
    if (value != floor(value) || fabs(value) > 0x1p53)
        return orr_fail_input(error, "\"%s\" is not a whole number; one such as 8 will do", text);
    for (const char *c = unit; *c; c++)
        if (!g_ascii_isalpha(*c) && *c != '-' && *c != ' ')
            return orr_fail_input(error,
                                  "\"%s\" is not a whole number with a noun; 8 or 8 GPUs, say, "
                                  "will do",
                                  text);
    return true;
}

bool orr_units_parse(const char *text, OrrDim dim, double *value, GError **error) {
    double v;
    const char *unit;
    g_autoptr(GError) flaw = NULL;
    if (!orr_units_split(text, &v, &unit, &flaw))
        return orr_fail_input(error, "%s; %s%s will do", flaw->message,
                              dims[dim].is_bare ? "" : "a number in ", dims[dim].names);
    gsize length = strlen(unit);
    while (length > 0 && g_ascii_isspace(unit[length - 1]))
        length--;
    if (dim == ORR_DIM_COUNT) {
        if (!parse_count(text, unit, v, error))
            return false;
        *value = v;
        return true;
    }
    double factor = 0;
    if (length == 0 && dims[dim].is_bare)
        factor = 1;
    for (const Unit *u = dims[dim].units; u->name && length > 0; u++)
        if (strlen(u->name) == length && memcmp(u->name, unit, length) == 0)
            factor = u->factor;
    if (factor == 0 && length == 0)
        return orr_fail_input(error, "\"%s\" lacks its unit; %s will do", text, dims[dim].names);
    if (factor == 0)
        return orr_fail_input(error, "unit \"%.*s\" does not fit here; %s will do", (int)length,
                              unit, dims[dim].names);
    if (!isfinite(v * factor))
        return orr_fail_input(error, "\"%s\" is too large; a smaller number would do", text);
    /* dividing by a power of ten rounds once; multiplying by 0.01 would round twice */
    *value = dim == ORR_DIM_FRACTION && factor != 1 ? v / 100 : v * factor;
    return true;
}

/* Three significant digits, no trailing zeros, no exponent below a million. */
static char *short_number(double v) {
    double size = fabs(v);
    const char *format = size >= 99.95 ? "%.0f" : size >= 9.995 ? "%.1f" : "%.2f";
    if (size >= 1e7 || (size > 0 && size < 0.01))
        format = "%.3g";
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(buffer, sizeof buffer, format, v);
    if (strchr(buffer, '.') && !strchr(buffer, 'e')) {
        gsize n = strlen(buffer);
        while (buffer[n - 1] == '0')
            n--;
        buffer[buffer[n - 1] == '.' ? n - 1 : n] = 0;
    }
    return g_strdup(buffer);
}

/* With the largest of @n units that leaves at least 1 after rounding to three digits. */
static char *scaled(double value, const Unit *units, guint n) {
    guint best = 0;
    for (guint i = 1; i < n; i++)
        if (fabs(value) >= units[i].factor * 0.9995)
            best = i;
    g_autofree char *number = short_number(value / units[best].factor);
    return g_strdup_printf("%s %s", number, units[best].name);
}

char *orr_units_bytes(double bytes) {
    static const Unit units[] = {{"B", 1},        {"KiB", 1024.0}, {"MiB", 1048576.0},
                                 {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}};
    return scaled(bytes, units, G_N_ELEMENTS(units));
}

char *orr_units_bytes_si(double bytes) {
    return scaled(bytes, byte_units, 6);
}

char *orr_units_rate(double bytes_per_s) {
    return scaled(bytes_per_s, rate_units, 5);
}

char *orr_units_time(int64_t ns) {
    /* two minutes, hours or days before the larger unit takes over: 90 s reads better than 1.5 min
     */
    double v = (double)ns;
    guint n = fabs(v) >= 2 * 86400e9 ? 7 : fabs(v) >= 2 * 3600e9 ? 6 : fabs(v) >= 120e9 ? 5 : 4;
    return scaled(v, time_units, n);
}

char *orr_units_count(double n) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE * 10];
    g_ascii_formatd(digits, sizeof digits, "%.0f", fabs(n));
    GString *text = g_string_new(n <= -0.5 ? "-" : "");
    gsize length = strlen(digits);
    for (gsize i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && g_ascii_isdigit(digits[i]))
            g_string_append_c(text, ',');
        g_string_append_c(text, digits[i]);
    }
    return g_string_free(text, FALSE);
}

char *orr_units_double(double value) {
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
    for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buffer, sizeof buffer, formats[i], value);
        if (g_ascii_strtod(buffer, NULL) == value)
            break;
    }
    return g_strdup(buffer);
}

char *orr_units_range(double min, double max, OrrDim dim) {
    if (isinf(min) && isinf(max))
        return g_strdup("any");
    g_autofree char *low = orr_units_format(min, dim), *high = orr_units_format(max, dim);
    if (isinf(max))
        return g_strdup_printf("%s or more", low);
    if (isinf(min))
        return g_strdup_printf("%s or less", high);
    return min == max ? g_strdup(low) : g_strdup_printf("%s to %s", low, high);
}

char *orr_units_whole_range(int64_t min, int64_t max) {
    return orr_units_range(min <= INT64_MIN / 2 ? -INFINITY : (double)min,
                           max >= INT64_MAX / 2 ? INFINITY : (double)max, ORR_DIM_NONE);
}

char *orr_units_format(double value, OrrDim dim) {
    switch (dim) {
    case ORR_DIM_TIME:
        return orr_units_time((int64_t)ceil(CLAMP(value, -9.2e18, 9.2e18)));
    case ORR_DIM_BYTES:
        return fmod(value, 1024) == 0 ? orr_units_bytes(value) : orr_units_bytes_si(value);
    case ORR_DIM_RATE:
        return orr_units_rate(value);
    case ORR_DIM_FLOPS:
        return scaled(value, flop_units, 7);
    case ORR_DIM_FLOPS_RATE:
        return scaled(value, flop_rate_units, 6);
    case ORR_DIM_POWER:
        return scaled(value, power_units, 3);
    case ORR_DIM_FREQ:
        return scaled(value, freq_units, 4);
    case ORR_DIM_FRACTION: {
        g_autofree char *number = short_number(value * 100);
        return g_strdup_printf("%s %%", number);
    }
    case ORR_DIM_COUNT:
        return orr_units_count(value);
    case ORR_DIM_NONE:
    case ORR_N_DIMS:
        break;
    }
    return orr_units_double(value);
}
