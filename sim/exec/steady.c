#include "sim/exec/steady.h"

#include <glib.h>

/* End of step @k on its last rank; 0 before the first. */
static int64_t last_end(const int64_t *end_ns, uint32_t n, int64_t k) {
    int64_t last = k < 0 ? 0 : INT64_MIN;
    for (uint32_t r = 0; k >= 0 && r < n; r++)
        last = MAX(last, end_ns[(gsize)k * n + r]);
    return last;
}

bool orr_steady_is_reached(const int64_t *end_ns, uint32_t n, uint32_t k, int64_t *length) {
    const int64_t *end = end_ns + (gsize)k * n;
    int64_t last = last_end(end_ns, n, k), before = last_end(end_ns, n, (int64_t)k - 1);
    *length = last - before;
    if (k == 0 || last - before != before - last_end(end_ns, n, (int64_t)k - 2))
        return false;
    for (uint32_t r = 0; r < n; r++)
        if (last - end[r] != before - end[r - (int64_t)n])
            return false;
    return true;
}

int64_t orr_steady_step_time_ns(const int64_t *end_ns, uint32_t n, uint32_t k) {
    int64_t length;
    if (orr_steady_is_reached(end_ns, n, k, &length) || k == 0)
        return length;
    return (last_end(end_ns, n, k) - last_end(end_ns, n, 0)) / k;
}
