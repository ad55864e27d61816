#include "sim/io/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/base/units.h"

#define DRAW_EVERY_US 200000 /* ours: five times a second is smooth enough */

struct OrrProgress {
    char *what, *unit;
    uint64_t total;
    int64_t start_us, drawn_us;
    bool is_shown, has_line;
};

OrrProgress *orr_progress_new(const char *what, uint64_t total, const char *unit) {
    OrrProgress *p = g_new0(OrrProgress, 1);
    p->what = g_strdup(what);
    p->unit = g_strdup(unit);
    p->total = total;
    p->start_us = p->drawn_us = g_get_monotonic_time();
    p->is_shown = isatty(STDERR_FILENO);
    return p;
}

char *orr_progress_text(const OrrProgress *p, uint64_t done, int64_t elapsed_us) {
    g_autofree char *n = orr_units_count((double)done), *of = orr_units_count((double)p->total);
    if (done == 0 || done > p->total)
        return g_strdup_printf("%s: %s of %s %s", p->what, n, of, p->unit);
    double left_ns = (double)elapsed_us * 1e3 * (double)(p->total - done) / (double)done;
    g_autofree char *left = orr_units_time((int64_t)left_ns);
    return g_strdup_printf("%s: %s of %s %s, %s left", p->what, n, of, p->unit, left);
}

void orr_progress_set(OrrProgress *p, uint64_t done) {
    if (!p->is_shown)
        return;
    int64_t now_us = g_get_monotonic_time();
    if (now_us - p->drawn_us < DRAW_EVERY_US)
        return;
    p->drawn_us = now_us;
    g_autofree char *text = orr_progress_text(p, done, now_us - p->start_us);
    fprintf(stderr, "\r\033[K%s", text); /* ECMA-48: erase to the end of the line */
    fflush(stderr);
    p->has_line = true;
}

void orr_progress_show(void *progress, uint64_t done) {
    orr_progress_set(progress, done);
}

void orr_progress_free(OrrProgress *p) {
    if (!p)
        return;
    if (p->has_line) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    g_free(p->what);
    g_free(p->unit);
    g_free(p);
}
