/* Surfaces as key files. A group a surface, [gemm.bf16] or [attention.bf16.causal]: the parameters
 * of the analytic form with their units, three axes in log2 of the shape, and one key of ratios for
 * each place of the first axis (`ratio.0`, ...), the last axis fastest. */
#include "calibrate/tables.h"

#include "sim/facts/forms.h"
#include "sim/io/data.h"
#include "sim/io/keys.h"

#include <math.h>
#include <string.h>

#define MAX_AXIS 64
#define MAX_SURFACES 64
#define RATIO_MIN 0.02 /* beyond these no measurement of ours lies */
#define RATIO_MAX 50.0

typedef struct {
    const char *key;
    OrrDim dim;
    const char *unit; /* as written */
    double scale;     /* of @unit in the base unit */
    double min, max;
} Param;

static const Param gemm_params[ORR_N_GEMM_PARAMS] = {
    [ORR_GEMM_PEAK] = {"peak", ORR_DIM_FLOPS_RATE, " TFLOP/s", 1e12, 1e12, 1e18},
    [ORR_GEMM_SMS] = {"sms", ORR_DIM_NONE, "", 1, 1, 4096},
    [ORR_GEMM_HBM] = {"hbm", ORR_DIM_RATE, " GB/s", 1e9, 1e9, 1e15},
    [ORR_GEMM_FIXED] = {"fixed", ORR_DIM_TIME, " ns", 1, 0, 1e6},
    [ORR_GEMM_EFF] = {"efficiency", ORR_DIM_NONE, "", 1, 0.01, 1.2},
    [ORR_GEMM_HBM_FRAC] = {"hbm_share", ORR_DIM_NONE, "", 1, 0.01, 4},
    [ORR_GEMM_WAVE_FRAC] = {"wave_share", ORR_DIM_NONE, "", 1, 0, 1},
    [ORR_GEMM_K_EXTRA] = {"k_extra", ORR_DIM_NONE, "", 1, 0, 1e5},
    [ORR_GEMM_EFF_128] = {"efficiency_128x128", ORR_DIM_NONE, "", 1, 0.01, 4},
    [ORR_GEMM_EFF_64] = {"efficiency_128x64", ORR_DIM_NONE, "", 1, 0.01, 4},
    [ORR_GEMM_EFF_64_64] = {"efficiency_64x64", ORR_DIM_NONE, "", 1, 0.01, 4},
    [ORR_GEMM_SPLIT] = {"split_k", ORR_DIM_TIME, " ns", 1, 0, 1e7},
    [ORR_GEMM_QUANT_BYTES] = {"quantise_bytes", ORR_DIM_NONE, "", 1, 0, 64},
    [ORR_GEMM_QUANT_FIXED] = {"quantise_fixed", ORR_DIM_TIME, " ns", 1, 0, 1e6},
};

static const Param attn_params[ORR_N_ATTN_PARAMS] = {
    [ORR_ATTN_PEAK] = {"peak", ORR_DIM_FLOPS_RATE, " TFLOP/s", 1e12, 1e12, 1e18},
    [ORR_ATTN_SMS] = {"sms", ORR_DIM_NONE, "", 1, 1, 4096},
    [ORR_ATTN_HBM] = {"hbm", ORR_DIM_RATE, " GB/s", 1e9, 1e9, 1e15},
    [ORR_ATTN_FIXED] = {"fixed", ORR_DIM_TIME, " ns", 1, 0, 1e6},
    [ORR_ATTN_EFF] = {"efficiency", ORR_DIM_NONE, "", 1, 0.01, 1.2},
    [ORR_ATTN_HBM_FRAC] = {"hbm_share", ORR_DIM_NONE, "", 1, 0.01, 4},
    [ORR_ATTN_WAVE_FRAC] = {"wave_share", ORR_DIM_NONE, "", 1, 0, 1},
    [ORR_ATTN_KV_EXTRA] = {"kv_extra", ORR_DIM_NONE, "", 1, 0, 1e5},
    [ORR_ATTN_PREP_BYTES] = {"prepare_bytes", ORR_DIM_NONE, "", 1, 0, 64},
};

static const char *const axis_keys[ORR_SURFACE_AXES] = {"axis0", "axis1", "axis2"};

/* Parameters of a kind; NULL: the kind has no analytic form. */
static const Param *params_of(OrrKernelKind kind, uint32_t *n) {
    *n = kind == ORR_K_GEMM ? ORR_N_GEMM_PARAMS : ORR_N_ATTN_PARAMS;
    return kind == ORR_K_GEMM ? gemm_params : kind == ORR_K_ATTENTION ? attn_params : NULL;
}

static char *group_name(const OrrSurface *s) {
    return g_strdup_printf("%s.%s%s%s", orr_kernel_kind_name(s->kind), orr_dtype_name(s->dtype),
                           *s->variant ? "." : "", s->variant);
}

static bool find_name(const char *const *names, const char *text, int *value) {
    for (*value = 0; names[*value]; ++*value)
        if (!strcmp(names[*value], text))
            return true;
    return false;
}

static bool parse_group_name(const char *name, OrrSurface *s) {
    g_auto(GStrv) part = g_strsplit(name, ".", 3);
    int kind = 0, dtype = 0;
    uint32_t n = g_strv_length(part), n_params;
    if (n < 2 || !find_name(orr_kernel_kind_names, part[0], &kind) ||
        !find_name(orr_dtype_names, part[1], &dtype) || !params_of(kind, &n_params))
        return false;
    s->kind = kind;
    s->dtype = dtype;
    return n < 3 || g_strlcpy(s->variant, part[2], sizeof s->variant) < sizeof s->variant;
}

/* Reads a list of exactly (@want) or at most MAX_AXIS (@want 0) numbers within a range. */
static double *read_list(OrrKeys *keys, const char *group, const char *key, uint32_t want,
                         double min, double max, uint32_t *n) {
    g_auto(GStrv) item = orr_keys_strings(keys, group, key, ORR_KEY_REQUIRED | ORR_KEY_QUIET);
    *n = item ? g_strv_length(item) : 0;
    if (!item)
        return NULL;
    if (*n == 0 || (want ? *n != want : *n > MAX_AXIS)) {
        orr_keys_complain(keys, group, key, "%u numbers; %s%u would do", *n,
                          want ? "exactly " : "1 to ", want ? want : MAX_AXIS);
        return NULL;
    }
    double *value = g_new(double, *n);
    for (uint32_t i = 0; i < *n; i++) {
        char *end = NULL;
        value[i] = g_ascii_strtod(item[i], &end);
        if (end == item[i] || *end || !(value[i] >= min && value[i] <= max)) {
            g_autofree char *low = orr_units_double(min), *high = orr_units_double(max);
            orr_keys_complain(keys, group, key, "'%s' is no such number; %s to %s would do",
                              item[i], low, high);
            g_free(value);
            return NULL;
        }
    }
    return value;
}

static bool read_axes(OrrKeys *keys, const char *group, OrrSurface *s) {
    for (uint32_t d = 0; d < ORR_SURFACE_AXES; d++) {
        s->axis[d] = read_list(keys, group, axis_keys[d], 0, 0.0, 64.0, &s->n[d]);
        if (!s->axis[d])
            return false;
        for (uint32_t i = 1; i < s->n[d]; i++)
            if (s->axis[d][i] <= s->axis[d][i - 1]) {
                orr_keys_complain(keys, group, axis_keys[d], "does not ascend; 1, 2, 3 would do");
                return false;
            }
    }
    return true;
}

static void read_surface(OrrKeys *keys, const char *group, OrrSurface *s) {
    const Param *params = params_of(s->kind, &s->n_params);
    for (uint32_t i = 0; i < s->n_params; i++)
        s->params[i] =
            orr_keys_number(keys, group, params[i].key, params[i].dim, params[i].min, params[i].max,
                            params[i].min, ORR_KEY_REQUIRED | ORR_KEY_QUIET);
    if (!read_axes(keys, group, s))
        return;
    uint32_t row = s->n[1] * s->n[2];
    s->log_ratio = g_new0(double, (gsize)s->n[0] * row);
    for (uint32_t i = 0; i < s->n[0]; i++) {
        g_autofree char *key = g_strdup_printf("ratio.%u", i);
        uint32_t n = 0;
        g_autofree double *ratio = read_list(keys, group, key, row, RATIO_MIN, RATIO_MAX, &n);
        if (!ratio && !orr_keys_has(keys, group, key))
            return; /* those behind it are missing too */
        for (uint32_t j = 0; ratio && j < row; j++)
            s->log_ratio[i * row + j] = log(ratio[j]);
    }
}

/* Surfaces that the table names and that have no group, of a file that was cut, say: one message.
 */
static void complain_of_absent(OrrKeys *keys, char **names, uint32_t n) {
    g_autoptr(GString) absent = g_string_new(NULL);
    OrrSurface tried = {0};
    for (uint32_t i = 0; i < n && i < MAX_SURFACES; i++)
        if (parse_group_name(names[i], &tried) && !orr_keys_has_group(keys, names[i]))
            g_string_append_printf(absent, "%s[%s]", absent->len ? ", " : "", names[i]);
    if (absent->len)
        orr_keys_complain(keys, "table", "surfaces",
                          "the file lacks %s; the whole file, or its other surfaces alone, would "
                          "do",
                          absent->str);
}

OrrSurfaceSet *orr_tables_read(OrrKeys *keys) {
    static const char *const stacks[] = {"serving", "training", NULL};
    OrrSurfaceSet *set = g_new0(OrrSurfaceSet, 1);
    set->gpu = g_strdup(orr_keys_string(keys, "table", "gpu", NULL, ORR_KEY_REQUIRED));
    set->name = g_strdup(orr_keys_string(keys, "table", "name", NULL, ORR_KEY_REQUIRED));
    set->source = g_strdup(orr_keys_string(keys, "table", "source", NULL, ORR_KEY_REQUIRED));
    set->clock_share = orr_keys_number(keys, "table", "clock_share", ORR_DIM_NONE, 0.1, 1.2, 1.0,
                                       ORR_KEY_REQUIRED);
    set->throttled_ns = orr_keys_number(keys, "table", "throttled", ORR_DIM_TIME, 0, 1e12,
                                        ORR_THROTTLED_NS, ORR_KEY_QUIET);
    set->is_training = orr_keys_enum(keys, "table", "stack", stacks, 0, ORR_KEY_QUIET) == 1;
    g_auto(GStrv) group = orr_keys_strings(keys, "table", "surfaces", ORR_KEY_REQUIRED);
    uint32_t n = group ? g_strv_length(group) : 0;
    if (n > MAX_SURFACES)
        orr_keys_complain(keys, "table", "surfaces", "names %u surfaces; at most %u would do", n,
                          MAX_SURFACES);
    set->surfaces = g_new0(OrrSurface, MIN(n, MAX_SURFACES) + 1);
    complain_of_absent(keys, group, n);
    for (uint32_t i = 0; i < n && i < MAX_SURFACES; i++) {
        OrrSurface *s = &set->surfaces[set->n_surfaces++];
        if (!parse_group_name(group[i], s))
            orr_keys_complain(
                keys, "table", "surfaces",
                "'%s': gemm or attention, a dtype, and perhaps a variant, as gemm.bf16 or "
                "attention.bf16.causal, would do",
                group[i]);
        else if (orr_keys_has_group(keys, group[i]))
            read_surface(keys, group[i], s);
    }
    return set;
}

static OrrSurfaceSet *read_set(OrrKeys *keys, GError **error) {
    OrrSurfaceSet *set = orr_tables_read(keys);
    if (orr_keys_finish(keys, error))
        return set;
    orr_surface_set_free(set);
    return NULL;
}

static const char *const pass_words[] = {"forward", "backward"};

bool orr_tables_read_rates(OrrKeys *keys, OrrKernelRates *rates) {
    static const char group[] = "streaming";
    *rates = (OrrKernelRates){0};
    if (!orr_keys_has_group(keys, group))
        return false;
    rates->fixed_ns = orr_keys_number(keys, group, "fixed", ORR_DIM_TIME, 0, 1e6, 0, ORR_KEY_QUIET);
    rates->stream_frac =
        orr_keys_number(keys, group, "hbm_share", ORR_DIM_FRACTION, 0.01, 1.05, 0, ORR_KEY_QUIET);
    rates->batched_frac =
        orr_keys_number(keys, group, "batched_gemm", ORR_DIM_FRACTION, 0.02, 50, 0, ORR_KEY_QUIET);
    rates->grouped_frac =
        orr_keys_number(keys, group, "grouped_gemm", ORR_DIM_FRACTION, 0.02, 50, 0, ORR_KEY_QUIET);
    for (int kind = 0; kind < ORR_N_KERNEL_KINDS; kind++)
        for (int pass = 0; pass < 2; pass++) {
            g_autofree char *key = g_strdup_printf(
                "%s.%s", orr_kernel_kind_name((OrrKernelKind)kind), pass_words[pass]);
            rates->share[kind][pass] =
                orr_keys_number(keys, group, key, ORR_DIM_FRACTION, 0.01, 4, 0, ORR_KEY_QUIET);
        }
    return true;
}

OrrSurfaceSet *orr_tables_load(const char *path, GError **error) {
    g_autoptr(OrrKeys) keys = orr_keys_load(path, error);
    return keys ? read_set(keys, error) : NULL;
}

OrrSurfaceSet *orr_tables_named(const char *name, GError **error) {
    g_autofree char *path = orr_data_find("calibrate/tables", name, ".ini", error);
    return path ? orr_tables_load(path, error) : NULL;
}

OrrSurfaceSet *orr_tables_parse(const char *name, const char *text, gsize length, GError **error) {
    g_autoptr(OrrKeys) keys = orr_keys_parse(name, text, length, error);
    return keys ? read_set(keys, error) : NULL;
}

static void put_number(GString *out, const char *format, double value) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(out, g_ascii_formatd(digits, sizeof digits, format, value));
}

static void put_list(GString *out, const char *format, const double *value, uint32_t n,
                     bool is_log) {
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            g_string_append_c(out, ',');
        put_number(out, format, is_log ? exp(value[i]) : value[i]);
    }
    g_string_append_c(out, '\n');
}

static void put_surface(GString *out, const OrrSurface *s) {
    g_autofree char *name = group_name(s);
    uint32_t n_params;
    const Param *params = params_of(s->kind, &n_params);
    g_string_append_printf(out, "\n[%s]\n", name);
    for (uint32_t i = 0; i < n_params; i++) {
        g_string_append_printf(out, "%s = ", params[i].key);
        put_number(out, "%.5g", s->params[i] / params[i].scale);
        g_string_append_printf(out, "%s\n", params[i].unit);
    }
    for (uint32_t d = 0; d < ORR_SURFACE_AXES; d++) {
        g_string_append_printf(out, "%s = ", axis_keys[d]);
        put_list(out, "%.6g", s->axis[d], s->n[d], false);
    }
    uint32_t row = s->n[1] * s->n[2];
    for (uint32_t i = 0; i < s->n[0]; i++) {
        g_string_append_printf(out, "ratio.%u = ", i);
        put_list(out, "%.3f", s->log_ratio + (gsize)i * row, row, true);
    }
}

static void put_set(GString *out, const OrrSurfaceSet *set) {
    g_string_append_printf(out,
                           "[table]\ngpu = %s\nname = %s\nsource = %s\nclock_share = ", set->gpu,
                           set->name, set->source);
    put_number(out, "%.5g", set->clock_share);
    g_string_append(out, "\nthrottled = ");
    put_number(out, "%.4g", set->throttled_ns / 1e6); /* ns a millisecond */
    g_string_append(out, " ms");
    if (set->is_training)
        g_string_append(out, "\nstack = training");
    g_string_append(out, "\nsurfaces = ");
    for (uint32_t i = 0; i < set->n_surfaces; i++) {
        g_autofree char *name = group_name(&set->surfaces[i]);
        g_string_append_printf(out, "%s%s", i ? ", " : "", name);
    }
    g_string_append_c(out, '\n');
    for (uint32_t i = 0; i < set->n_surfaces; i++)
        put_surface(out, &set->surfaces[i]);
}

char *orr_tables_format(const OrrSurfaceSet *set) {
    GString *out = g_string_new("# Written by calibrate/fit_kernels; do not edit. "
                                "See doc/models/kernels.md.\n");
    put_set(out, set);
    return g_string_free(out, FALSE);
}

static void put_share(GString *out, const char *key, double frac) {
    if (!(frac > 0.0))
        return;
    g_string_append_printf(out, "%s = ", key);
    put_number(out, "%.2f", 100.0 * frac);
    g_string_append(out, " %\n");
}

void orr_tables_put(GString *out, const OrrSurfaceSet *set) {
    const OrrKernelRates *rates = &set->rates;
    g_string_append(out, "\n[streaming]\n");
    if (rates->fixed_ns > 0.0) {
        g_string_append(out, "fixed = ");
        put_number(out, "%.0f", rates->fixed_ns);
        g_string_append(out, " ns # of a kernel\n");
    }
    put_share(out, "hbm_share", rates->stream_frac);
    put_share(out, "batched_gemm", rates->batched_frac);
    put_share(out, "grouped_gemm", rates->grouped_frac);
    for (int kind = 0; kind < ORR_N_KERNEL_KINDS; kind++)
        for (int pass = 0; pass < 2; pass++) {
            g_autofree char *key = g_strdup_printf(
                "%s.%s", orr_kernel_kind_name((OrrKernelKind)kind), pass_words[pass]);
            put_share(out, key, rates->share[kind][pass]);
        }
    g_string_append_c(out, '\n');
    if (set->n_surfaces)
        put_set(out, set);
}
