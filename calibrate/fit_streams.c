/* Kernels bound by memory: a rate by kind over what plain streams reach, and a fixed time; copies,
 * launches and the price of overlap are medians.
 *
 * Rates come from rows that the cache can't hold (four times L2 and more, or flushed); the fixed
 * time from the shortest rows, whose bytes come from L2 at 3.5 times the memory's rate
 * (sim/cost/streaming.c has the same). */
#include "calibrate/fit_records_priv.h"

#include <math.h>
#include <string.h>

#define SHORT_BYTES 4e6 /* a microsecond or so at any HBM's rate: the fixed time shows */
#define LONG_BYTES 6.4e7
#define SHORT_COPY_BYTES (1 << 16)
#define L2_RATE 3.5 /* over HBM's: NVIDIA A100 whitepaper, 5120 bytes a clock */
#define OVERLAP_BYTES (1 << 20)

/* What the simulator calls the kernels that the runner measures. */
static const struct {
    OrrKernelKind kind,
        also; /* also: the same stream under another name; ORR_N_KERNEL_KINDS: none */
    bool is_plain;
} kinds[ORR_N_MEM_KERNELS] = {
    [ORR_MEM_LAYER_NORM] = {ORR_K_NORM, ORR_N_KERNEL_KINDS, false},
    [ORR_MEM_RMS_NORM] = {ORR_K_NORM, ORR_N_KERNEL_KINDS, false},
    [ORR_MEM_ROTARY] = {ORR_K_ROTARY, ORR_N_KERNEL_KINDS, false},
    [ORR_MEM_SWIGLU] = {ORR_K_ACTIVATION, ORR_N_KERNEL_KINDS, true},
    [ORR_MEM_GELU] = {ORR_K_ACTIVATION, ORR_N_KERNEL_KINDS, true},
    [ORR_MEM_RESIDUAL_DROPOUT] = {ORR_K_RESIDUAL, ORR_K_DROPOUT, true},
    [ORR_MEM_SOFTMAX] = {ORR_K_SOFTMAX, ORR_N_KERNEL_KINDS, false},
    [ORR_MEM_CROSS_ENTROPY] = {ORR_K_CROSS_ENTROPY, ORR_N_KERNEL_KINDS, false},
    [ORR_MEM_ADAM] = {ORR_K_OPTIMIZER, ORR_N_KERNEL_KINDS, true},
    [ORR_MEM_CAST] = {ORR_K_CAST, ORR_K_GRADIENT, true},
    [ORR_MEM_PERMUTE] = {ORR_K_PERMUTE, ORR_N_KERNEL_KINDS, false},
};

static const OrrRecordRow *row_at(const OrrFitWork *w, guint i) {
    return &g_array_index(w->rows->rows, OrrRecordRow, i);
}

static bool is_streaming(const OrrFitWork *w, const OrrRecordRow *row) {
    double bytes = orr_case_bytes(&row->c);
    return bytes >= LONG_BYTES && (row->c.flushes_l2 || bytes >= 4 * w->gpu->l2_bytes);
}

static bool is_kind(const OrrRecordRow *row, int kind, bool is_back) {
    return row->c.kind == ORR_CASE_KERNEL && (int)kinds[row->c.op].kind == kind &&
           (row->c.pass != ORR_PASS_FORWARD) == is_back;
}

/* Median rate of the long rows of a kind and pass, bytes a second; 0: none. @kind
 * ORR_N_KERNEL_KINDS: of all plain streams. */
static double rate_of(const OrrFitWork *w, int kind, bool is_back, double fixed_ns) {
    GArray *rows = w->rows->rows;
    g_autofree double *rate = g_new(double, rows->len + 1);
    guint n = 0;
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = row_at(w, i);
        bool is_one = kind == ORR_N_KERNEL_KINDS
                          ? row->c.kind == ORR_CASE_KERNEL && kinds[row->c.op].is_plain
                          : is_kind(row, kind, is_back);
        if (is_one && is_streaming(w, row) && row->ns > 2 * fixed_ns)
            rate[n++] = orr_case_bytes(&row->c) / (row->ns - fixed_ns) * 1e9;
    }
    return orr_fit__median(rate, n);
}

/* What remains of the shortest rows when their bytes are taken off. */
static double fixed_of(const OrrFitWork *w, double bytes_per_s) {
    GArray *rows = w->rows->rows;
    g_autofree double *fixed = g_new(double, rows->len + 1);
    guint n = 0;
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = row_at(w, i);
        double bytes = orr_case_bytes(&row->c);
        if (row->c.kind != ORR_CASE_KERNEL || bytes > SHORT_BYTES)
            continue;
        bool is_cached = !row->c.flushes_l2 && bytes < w->gpu->l2_bytes;
        double moved_ns = bytes / (bytes_per_s * (is_cached ? L2_RATE : 1)) * 1e9;
        if (row->ns > moved_ns)
            fixed[n++] = row->ns - moved_ns;
    }
    return orr_fit__median(fixed, n);
}

static void add_points(OrrFitWork *w, int kind, bool is_back, double bytes_per_s, double fixed_ns) {
    g_autofree char *name = g_strdup_printf("%s.%s", orr_kernel_kind_name((OrrKernelKind)kind),
                                            is_back ? "backward" : "forward");
    for (guint i = 0; i < w->rows->rows->len; i++) {
        const OrrRecordRow *row = row_at(w, i);
        double bytes = orr_case_bytes(&row->c);
        if (is_kind(row, kind, is_back) && (is_streaming(w, row) || w->gpu->l2_bytes <= 0))
            orr_fit__point(w, name, bytes, row, row->ns, fixed_ns + bytes / bytes_per_s * 1e9);
    }
}

static void fit_kernels(OrrFitWork *w) {
    OrrKernelRates *rates = &w->fit->set->rates;
    double fixed = 0, plain = 0;
    for (int round = 0; round < 3; round++) { /* each needs the other; it settles in two */
        plain = rate_of(w, ORR_N_KERNEL_KINDS, false, fixed);
        if (plain <= 0)
            return;
        fixed = fixed_of(w, plain);
    }
    rates->fixed_ns = fixed;
    rates->stream_frac = fmin(1, plain / w->gpu->hbm_bytes_per_s);
    for (int kind = 0; kind < ORR_N_KERNEL_KINDS; kind++)
        for (int pass = 0; pass < 2; pass++) {
            double rate = rate_of(w, kind, pass, fixed);
            if (rate <= 0)
                continue;
            rates->share[kind][pass] = rate / (rates->stream_frac * w->gpu->hbm_bytes_per_s);
            add_points(w, kind, pass, rate, fixed);
        }
    /* Passes and streams that have no kernel of their own in the runner. */
    for (int op = 0; op < ORR_N_MEM_KERNELS; op++) {
        double *share = rates->share[kinds[op].kind];
        share[1] = share[1] > 0 ? share[1] : share[0];
        if (kinds[op].also < ORR_N_KERNEL_KINDS)
            memcpy(rates->share[kinds[op].also], share, 2 * sizeof *share);
    }
}

static bool is_copy(const OrrRecordRow *row, int op) {
    return row->c.kind == ORR_CASE_COPY && row->c.op == op;
}

/* Long copies give the rate, short ones what remains without their bytes. */
static void fit_copy(OrrFitWork *w, int op) {
    GArray *rows = w->rows->rows;
    g_autofree double *rate = g_new(double, rows->len + 1), *wait = g_new(double, rows->len + 1);
    g_autofree char *name = g_strdup_printf("copy.%s", orr_case_op_names(ORR_CASE_COPY)[op]);
    guint n_long = 0, n_short = 0;
    for (guint i = 0; i < rows->len; i++) {
        double bytes = orr_case_bytes(&row_at(w, i)->c);
        bool is_long = op == ORR_COPY_D2D ? is_streaming(w, row_at(w, i)) : bytes >= LONG_BYTES;
        if (is_copy(row_at(w, i), op) && is_long)
            rate[n_long++] = bytes / row_at(w, i)->ns * 1e9;
    }
    double bytes_per_s = w->fit->copy_bytes_per_s[op] = orr_fit__median(rate, n_long);
    if (bytes_per_s <= 0)
        return;
    for (guint i = 0; i < rows->len; i++) {
        double bytes = orr_case_bytes(&row_at(w, i)->c);
        if (is_copy(row_at(w, i), op) && bytes <= SHORT_COPY_BYTES)
            wait[n_short++] = fmax(0, row_at(w, i)->ns - bytes / bytes_per_s * 1e9);
    }
    double ns = w->fit->copy_ns[op] = orr_fit__median(wait, n_short);
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = row_at(w, i);
        double bytes = orr_case_bytes(&row->c);
        bool is_told = op != ORR_COPY_D2D || is_streaming(w, row) || w->gpu->l2_bytes <= 0;
        if (is_copy(row, op) && is_told)
            orr_fit__point(w, name, bytes, row, row->ns, ns + bytes / bytes_per_s * 1e9);
    }
}

static void fit_copies(OrrFitWork *w) {
    for (int op = 0; op < ORR_N_COPIES; op++)
        fit_copy(w, op);
    double d2d = w->fit->copy_bytes_per_s[ORR_COPY_D2D];
    double plain = w->fit->set->rates.stream_frac * w->gpu->hbm_bytes_per_s;
    if (d2d > 0 && plain > 0)
        for (int pass = 0; pass < 2; pass++)
            w->fit->set->rates.share[ORR_K_COPY][pass] = d2d / plain;
}

static void fit_launches(OrrFitWork *w) {
    GArray *rows = w->rows->rows;
    g_autofree double *ns = g_new(double, rows->len + 1);
    for (int op = 0; op < ORR_N_LAUNCHES; op++) {
        guint n = 0;
        for (guint i = 0; i < rows->len; i++)
            if (row_at(w, i)->c.kind == ORR_CASE_LAUNCH && row_at(w, i)->c.op == op)
                ns[n++] = row_at(w, i)->ns;
        w->fit->launch_ns[op] = orr_fit__median(ns, n);
    }
}

/* The same collective without the products. */
static const OrrRecordRow *alone(const OrrFitWork *w, const OrrRecordRow *beside) {
    OrrCase c = beside->c;
    c.has_compute = 0;
    g_autofree char *key = orr_case_key(&c);
    for (guint i = 0; i < w->rows->rows->len; i++) {
        const OrrRecordRow *row = row_at(w, i);
        if (row->c.kind != ORR_CASE_COLLECTIVE || row->c.bytes != c.bytes || row->c.op != c.op)
            continue;
        g_autofree char *other = orr_case_key(&row->c);
        if (strcmp(key, other) == 0)
            return row;
    }
    return NULL;
}

static void fit_overlap(OrrFitWork *w) {
    GArray *rows = w->rows->rows;
    g_autofree double *products = g_new(double, rows->len + 1),
                      *sends = g_new(double, rows->len + 1);
    g_autofree double *calls = g_new(double, rows->len + 1);
    guint n_products = 0, n_sends = 0, n_calls = 0;
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = row_at(w, i);
        if (row->c.kind != ORR_CASE_COLLECTIVE || !row->c.has_compute ||
            row->c.bytes < OVERLAP_BYTES || !(row->compute_ns > 0) || !(row->compute_beside_ns > 0))
            continue;
        double frac = fmin(1, row->compute_ns / row->compute_beside_ns);
        if (row->c.op == ORR_SEND_RECV)
            sends[n_sends++] = frac;
        else
            products[n_products++] = frac;
        const OrrRecordRow *other = alone(w, row);
        if (other)
            calls[n_calls++] = fmin(1, other->ns / row->ns);
    }
    w->fit->compute_rate_frac = orr_fit__median(products, n_products);
    w->fit->send_rate_frac = orr_fit__median(sends, n_sends);
    w->fit->collective_rate_frac = orr_fit__median(calls, n_calls);
}

void orr_fit__streams(OrrFitWork *w) {
    fit_kernels(w);
    fit_copies(w);
    fit_launches(w);
    fit_overlap(w);
}
