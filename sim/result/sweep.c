#include "sim/result/sweep.h"

static void axis_clear(void *data) {
    OrrSweepAxis *a = data;
    g_free(a->key);
    g_strfreev(a->values);
}

OrrSweep *orr_sweep_new(void) {
    OrrSweep *s = g_new0(OrrSweep, 1);
    s->axes = g_array_new(FALSE, TRUE, sizeof(OrrSweepAxis));
    g_array_set_clear_func(s->axes, axis_clear);
    s->fastest = ORR_SWEEP_NONE;
    return s;
}

void orr_sweep_free(OrrSweep *s) {
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_rows; i++)
        g_free(s->rows[i].refused), g_free(s->rows[i].flops_formula);
    g_free(s->rows);
    g_array_unref(s->axes);
    g_free(s->job);
    g_free(s);
}

void orr_sweep_add_axis(OrrSweep *s, const char *key, const char *const *values) {
    OrrSweepAxis axis = {.key = g_strdup(key), .values = g_strdupv((char **)values)};
    axis.n = g_strv_length(axis.values);
    g_array_append_val(s->axes, axis);
}

static const OrrSweepAxis *axis_of(const OrrSweep *s, guint i) {
    return &g_array_index(s->axes, OrrSweepAxis, i);
}

uint64_t orr_sweep_n(const OrrSweep *s) {
    uint64_t n = 1;
    for (guint i = 0; i < s->axes->len; i++)
        if (__builtin_mul_overflow(n, (uint64_t)axis_of(s, i)->n, &n))
            return UINT64_MAX;
    return n;
}

const char *orr_sweep_value(const OrrSweep *s, uint32_t row, guint axis) {
    uint32_t below = 1;
    for (guint i = axis + 1; i < s->axes->len; i++)
        below *= axis_of(s, i)->n;
    return axis_of(s, axis)->values[row / below % axis_of(s, axis)->n];
}
