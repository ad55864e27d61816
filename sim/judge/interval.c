#include "sim/judge/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_LEVELS 5
#define FEW_ROWS 5.0  /* ours: a source of so many rows counts half */
#define ENOUGH_ROWS 5 /* ours: a regime of fewer is not named */
#define NEW_FRAC 0.9  /* quantiles for profiles not seen: measured, see doc/accuracy.md */
#define ONE_NODE 8    /* GPUs of a node of most published machines */

/* Scale by GPUs: a node, a rack or two, a pod, beyond. */
static uint32_t scale_class(uint32_t n_gpus) {
    return n_gpus <= ONE_NODE ? 0 : n_gpus <= 64 ? 1 : n_gpus <= 512 ? 2 : 3;
}

/* None, within a node, across nodes. */
static uint32_t tp_class(uint32_t tp) {
    return tp == 1 ? 0 : tp <= ONE_NODE ? 1 : 2;
}

static bool is_in(const OrrRegime *a, const OrrRegime *b, int level) {
    bool same_framework = strcmp(a->framework, b->framework) == 0;
    bool same_arch = strcmp(a->arch, b->arch) == 0;
    switch (level) {
    case 0:
        return same_framework && same_arch && scale_class(a->n_gpus) == scale_class(b->n_gpus) &&
               tp_class(a->tp) == tp_class(b->tp) && (a->pp > 1) == (b->pp > 1);
    case 1:
        return same_framework && same_arch && tp_class(a->tp) == tp_class(b->tp);
    case 2:
        return same_framework;
    case 3:
        return same_arch;
    }
    return true;
}

static char *words_of(const OrrRegime *r, int level) {
    static const char *const scales[] = {"to 8 GPUs", "9 to 64 GPUs", "65 to 512 GPUs",
                                         "over 512 GPUs"};
    static const char *const widths[] = {"no TP", "TP to 8", "TP over 8"};
    switch (level) {
    case 0:
        return g_strdup_printf("%s, %s, %s, %s, %s", r->framework, r->arch,
                               scales[scale_class(r->n_gpus)], widths[tp_class(r->tp)],
                               r->pp > 1 ? "PP" : "no PP");
    case 1:
        return g_strdup_printf("%s, %s, %s", r->framework, r->arch, widths[tp_class(r->tp)]);
    case 2:
        return g_strdup_printf("%s", r->framework);
    case 3:
        return g_strdup_printf("any framework on %s", r->arch);
    }
    return g_strdup("all");
}

/* Rows of a source within a level, by the source's text, which the table holds once. */
typedef struct {
    const char *source;
    uint32_t n;
} Source;

static uint32_t count_sources(const OrrResidual *rows, const bool *is_used, uint32_t n,
                              const OrrRegime *regime, int level, Source *sources) {
    uint32_t n_sources = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_used[i] || !is_in(regime, &rows[i].regime, level))
            continue;
        uint32_t s = 0;
        while (s < n_sources && sources[s].source != rows[i].source)
            s++;
        if (s == n_sources)
            sources[n_sources++] = (Source){rows[i].source, 0};
        sources[s].n++;
    }
    return n_sources;
}

typedef struct {
    double ln, weight;
} Weighted;

static int by_ln(const void *a, const void *b) {
    const Weighted *one = a, *other = b;
    return one->ln < other->ln ? -1 : one->ln > other->ln;
}

static double quantile(const Weighted *w, uint32_t n, double frac) {
    double sum = 0, so_far = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += w[i].weight;
    for (uint32_t i = 0; i < n; i++) {
        so_far += w[i].weight;
        if (so_far >= frac * sum)
            return w[i].ln;
    }
    return w[n - 1].ln;
}

/* Adds the weights of one level; returns what is left for wider ones. */
static double add_level(const OrrResidual *rows, const bool *is_used, uint32_t n,
                        const OrrRegime *regime, int level, double left, Weighted *w,
                        OrrInterval *out) {
    g_autofree Source *sources = g_new0(Source, n + 1);
    uint32_t n_sources = count_sources(rows, is_used, n, regime, level, sources), n_rows = 0;
    double effective = 0;
    for (uint32_t s = 0; s < n_sources; s++) {
        effective += 1 - 1 / (1 + sources[s].n / FEW_ROWS);
        n_rows += sources[s].n;
    }
    if (n_rows == 0)
        return left;
    if (!out->words && (n_rows >= ENOUGH_ROWS || level == N_LEVELS - 1)) {
        out->words = words_of(regime, level);
        out->n_rows = n_rows;
        out->n_sources = n_sources;
    }
    double share = level == N_LEVELS - 1 ? left : left * effective / (effective + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_used[i] || !is_in(regime, &rows[i].regime, level))
            continue;
        uint32_t s = 0;
        while (sources[s].source != rows[i].source)
            s++;
        w[i].weight += share / n_sources / sources[s].n;
    }
    return left - share;
}

bool orr_judge_interval(const OrrResiduals *residuals, const OrrRegime *regime,
                        bool (*held_out)(const OrrResidual *row, uint32_t i, void *data),
                        void *data, OrrInterval *out) {
    uint32_t n = residuals->rows->len, n_used = 0;
    const OrrResidual *rows = (const OrrResidual *)(const void *)residuals->rows->data;
    g_autofree bool *is_used = g_new0(bool, n + 1);
    g_autofree Weighted *w = g_new0(Weighted, n + 1);
    *out = (OrrInterval){0};
    for (uint32_t i = 0; i < n; i++) {
        w[i].ln = rows[i].ln;
        is_used[i] = !held_out || !held_out(&rows[i], i, data);
        n_used += is_used[i];
        out->has_framework |= is_used[i] && is_in(regime, &rows[i].regime, 2);
        out->has_arch |= is_used[i] && is_in(regime, &rows[i].regime, 3);
    }
    if (n_used == 0)
        return false;
    double left = 1;
    for (int level = 0; level < N_LEVELS; level++)
        left = add_level(rows, is_used, n, regime, level, left, w, out);
    qsort(w, n, sizeof *w, by_ln);
    double inner = out->has_framework && out->has_arch ? ORR_INTERVAL_COVERAGE_FRAC : NEW_FRAC;
    out->low_ln = quantile(w, n, (1 - inner) / 2);
    out->high_ln = quantile(w, n, 1 - (1 - inner) / 2);
    out->median_ln = quantile(w, n, 0.5);
    return true;
}
