/* Fits the shipped efficiency surfaces from measured kernel times:
 *   fit_kernels --data DIR --out DIR [--gpu NAME]     writes OUT/GPU.ini, residuals to stdout
 *   fit_kernels --data DIR --hold-out [--gpu NAME]    fits on 4 of 5 shapes, judges on the fifth
 * First the parameters of the analytic form (coordinate descent on the mean absolute log error),
 * then a smooth surface over what is left. The same data give the same bytes. About half a minute.
 */
#include "calibrate/fit_rows.h"
#include "calibrate/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGE_SIDE 4096 /* products of these sides and more are bound by computation everywhere */

/* Facts of the parts as measured, those of topologies/gpus (a test compares): dense peaks, SMs, HBM
 * rate. FP8 is twice BF16. Sources: the data sheets named there. Long runs: A100 257 (He 2024,
 * random normal data); H100 the mean of 716, 720 and 730 (fast.cu; SemiAnalysis 2024; gpu-fryer);
 * B200 the mean of 1240 (the table's rows of 51 ms and more) and 1112 (SimuMax v1.2, products of 1
 * ms and more in loops of Transformer Engine, median of 20). */
typedef struct {
    const char *name, *gpu;
    double bf16_tflops, fp4_tflops, sms, hbm_gb_per_s;
    double held_share; /* sustained clock over boost, as the GPU file has them */
    double
        long_run_tflops; /* BF16 product of 8192 cubed, repeated for a minute; 0: none published */
    const char *stack;
} Part;

static const Part parts[] = {
    {"a100_sxm80", "a100-sxm-80", 312.0, 0, 108, 2039, 1305.0 / 1410, 257, "TensorRT-LLM 1.0.0"},
    {"h100_sxm", "h100-sxm-80", 989.4, 0, 132, 3350, 1500.0 / 1830, 722, "TensorRT-LLM 1.3.0rc20"},
    {"h200_sxm", "h200-sxm", 989.4, 0, 132, 4800, 1500.0 / 1830, 0, "TensorRT-LLM 1.3.0rc20"},
    {"b200_sxm", "b200-sxm", 2250, 9000, 148, 8000, 1525.0 / 1856, 1176, "TensorRT-LLM 1.3.0rc20"},
    {"b300_sxm", "b300-sxm", 2250, 13500, 148, 8000, 1580.0 / 1856, 0, "TensorRT-LLM 1.3.0rc20"},
    {"gb200", "gb200", 2500, 10000, 152, 8000, 1700.0 / 2008, 0, "TensorRT-LLM 1.3.0rc20"},
    {"gb300", "gb300", 2500, 15000, 152, 8000, 1808.0 / 2008, 0, "TensorRT-LLM 1.3.0rc20"},
};

typedef struct {
    OrrKernelKind kind;
    const char *mask, *dtype; /* as the files name them; mask NULL: GEMM */
    OrrDtype as;
    const char *variant;
    double peak_factor; /* over the BF16 peak; 0: the FP4 peak */
    double operand_bytes;
    bool is_quantised; /* the measured path quantises A from BF16 first */
} Series;

static const Series series[] = {
    {ORR_K_GEMM, NULL, "bf16", ORR_BF16, "", 1, 2, false},
    {ORR_K_GEMM, NULL, "fp8", ORR_FP8, "", 2, 1, true},
    {ORR_K_GEMM, NULL, "fp8_block", ORR_FP8, "block", 2, 1, true},
    /* NVFP4: a byte of scale for 16 elements of half a byte */
    {ORR_K_GEMM, NULL, "nvfp4", ORR_FP4, "", 0, 0.5625, true},
    {ORR_K_ATTENTION, "causal", "bf16", ORR_BF16, "causal", 1, 2, false},
    {ORR_K_ATTENTION, "full", "bf16", ORR_BF16, "full", 1, 2, false},
    {ORR_K_ATTENTION, "causal", "fp8", ORR_FP8, "causal", 2, 1, false},
};

static double peak_of(const Part *part, const Series *s) {
    return 1e12 * (s->peak_factor > 0.0 ? s->peak_factor * part->bf16_tflops : part->fp4_tflops);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Classes of size for the residuals, by FLOPs: below 10 G about 20 to 50 us on these GPUs, above
 * 1 T about a millisecond. */
typedef struct {
    const char *name;
    double min_flops, max_flops;
} SizeClass;

static const SizeClass size_classes[] = {
    {"all", 0, INFINITY},
    {"small", 0, 1e10},
    {"middle", 1e10, 1e12},
    {"large", 1e12, INFINITY},
};

/* One line: shapes, median and 90th percentile of |error|, mean error; held out or all. */
static void print_residuals(const Part *part, const FitForm *fit, const Series *sr,
                            const OrrSurface *s, const SizeClass *size) {
    g_autofree double *miss = g_new(double, fit->rows->n_rows);
    uint32_t n = 0;
    double sum = 0.0;
    for (uint32_t i = 0; i < fit->rows->n_rows; i++) {
        const FitRow *row = &fit->rows->rows[i];
        double flops = fit_form_flops(fit, row);
        if (!row->is_judged || (fit->is_trial && !row->is_held_out) || flops < size->min_flops ||
            flops >= size->max_flops)
            continue;
        double error = fit_form_fitted_ns(fit, s, row) / row->ns - 1.0;
        sum += error;
        miss[n++] = fabs(error);
    }
    if (!n)
        return;
    qsort(miss, n, sizeof *miss, compare_doubles);
    printf("%s,%s,%s,%s,%s,%s,%u,%.2f,%.2f,%.2f\n", part->name, orr_kernel_kind_name(s->kind),
           sr->dtype, s->variant, size->name, fit->is_trial ? "held_out" : "all", n,
           100.0 * miss[n / 2], 100.0 * miss[n * 9 / 10], 100.0 * sum / n);
}

static double median_rate(const FitRows *rows, double min_ns, double max_ns) {
    g_autofree double *rate = g_new(double, rows->n_rows);
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n_rows; i++) {
        const OrrGemmShape *g = &rows->rows[i].gemm;
        double ns = rows->rows[i].ns;
        if (fmin(g->m, fmin(g->n, g->k)) >= LARGE_SIDE && ns >= min_ns && ns < max_ns)
            rate[n++] = 2.0 * g->m * g->n * g->k / ns;
    }
    qsort(rate, n, sizeof *rate, compare_doubles);
    return n ? rate[n / 2] : 0.0;
}

/* Rate of large products in long runs over that of short kernels in the tables. Where no long run
 * is published, the longest kernels of the table stand in: repeats of one of 51 ms and more hold
 * the GPU at its power limit, as a training step does (the rate falls up to there); of 0.4 to 3 ms
 * end before. See doc/models/kernels.md, "Sustained clocks". */
static double long_over_short(const Part *part, const FitRows *rows) {
    for (uint32_t i = 0; part->long_run_tflops > 0.0 && i < rows->n_rows; i++) {
        const OrrGemmShape *g = &rows->rows[i].gemm;
        if (g->m == 8192.0 && g->n == 8192.0 && g->k == 8192.0)
            return part->long_run_tflops * 1e12 /
                   (2.0 * g->m * g->n * g->k / rows->rows[i].ns * 1e9);
    }
    double short_rate = median_rate(rows, 0.4e6, 3.2e6);
    double long_rate = median_rate(rows, 51.2e6, INFINITY);
    return short_rate > 0.0 && long_rate > 0.0 ? fmin(1.0, long_rate / short_rate) : 1.0;
}

/* Length of kernels from which on the table's own rates are those of long runs, @ratio of the short
 * ones: an octave's median comes within a hundredth. At most where the longest rows begin. */
static double throttled_ns(const FitRows *rows, double ratio) {
    double limit = 1.01 * ratio * median_rate(rows, 0.4e6, 3.2e6), ns = 6.4e6;
    for (; ns < 51.2e6; ns *= 2.0) {
        double rate = median_rate(rows, ns / sqrt(2.0), ns * sqrt(2.0));
        if (rate > 0.0 && rate <= limit)
            break;
    }
    return ns;
}

static bool fit_series(const Part *part, const Series *sr, const char *data, bool is_trial,
                       OrrSurfaceSet *set, GError **error) {
    FitRows rows = {0};
    FitForm fit = {.kind = sr->kind,
                   .dtype = sr->as,
                   .variant = sr->variant,
                   .peak_flops_per_s = peak_of(part, sr),
                   .n_sms = part->sms,
                   .hbm_bytes_per_s = part->hbm_gb_per_s * 1e9,
                   .is_quantised = sr->is_quantised,
                   .has_prep = sr->mask && strcmp(sr->mask, "full") != 0,
                   .rows = &rows,
                   .is_trial = is_trial};
    g_autofree char *path = g_strdup_printf(
        "%s/%s_%s.csv", data, sr->kind == ORR_K_GEMM ? "gemm" : "attention_forward", part->name);
    bool ok = sr->kind == ORR_K_GEMM
                  ? fit_rows_gemm(path, sr->dtype, sr->operand_bytes, &rows, error)
                  : fit_rows_attn(path, sr->mask, sr->dtype, sr->operand_bytes, &rows, error);
    if (ok && rows.n_rows) {
        if (sr->kind == ORR_K_GEMM && sr->as == ORR_BF16) {
            double ratio = long_over_short(part, &rows);
            set->clock_share = part->held_share / ratio;
            set->throttled_ns = throttled_ns(&rows, ratio);
        }
        OrrSurface *s = &set->surfaces[set->n_surfaces++];
        fit_form(&fit, s);
        for (uint32_t i = 0; i < G_N_ELEMENTS(size_classes); i++)
            print_residuals(part, &fit, sr, s, &size_classes[i]);
    }
    fit_rows_clear(&rows);
    return ok;
}

static bool fit_part(const Part *part, const char *data, const char *out, GError **error) {
    OrrSurfaceSet *set = g_new0(OrrSurfaceSet, 1);
    set->surfaces = g_new0(OrrSurface, G_N_ELEMENTS(series));
    set->gpu = g_strdup(part->gpu);
    set->name = g_strdup(part->name);
    set->source = g_strdup_printf("fitted from gemm_%s.csv and attention_forward_%s.csv: public "
                                  "performance tables of ai-dynamo/aiconfigurator (Apache-2.0), "
                                  "snapshot of August 2026, measured with %s",
                                  part->name, part->name, part->stack);
    bool ok = true;
    for (uint32_t i = 0; ok && i < G_N_ELEMENTS(series); i++)
        ok = fit_series(part, &series[i], data, !out, set, error);
    if (ok && out) {
        g_autofree char *path = g_strdup_printf("%s/%s.ini", out, part->name);
        g_autofree char *text = orr_tables_format(set);
        ok = g_file_set_contents(path, text, -1, error);
    }
    orr_surface_set_free(set);
    return ok;
}

int main(int argc, char **argv) {
    g_autofree char *data = NULL, *out = NULL, *gpu = NULL;
    gboolean is_trial = FALSE;
    GOptionEntry options[] = {
        {"data", 0, 0, G_OPTION_ARG_FILENAME, &data, "folder of the measured tables", "DIR"},
        {"out", 0, 0, G_OPTION_ARG_FILENAME, &out, "folder to write GPU.ini to", "DIR"},
        {"hold-out", 0, 0, G_OPTION_ARG_NONE, &is_trial, "trial fit, judged on shapes left out",
         NULL},
        {"gpu", 0, 0, G_OPTION_ARG_STRING, &gpu, "this GPU only (as in the file names)", "NAME"},
        {NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new("- fit kernel efficiency surfaces");
    g_option_context_add_main_entries(context, options, NULL);
    g_autoptr(GError) error = NULL;
    if (!g_option_context_parse(context, &argc, &argv, &error) || !data || !out == !is_trial) {
        fprintf(stderr, "fit_kernels: %s\n",
                error ? error->message : "give --data DIR and either --out DIR or --hold-out");
        return ORR_ERROR_USAGE;
    }
    printf("gpu,kind,dtype,variant,size,judged_on,shapes,median_pct,p90_pct,bias_pct\n");
    for (uint32_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (gpu && strcmp(gpu, parts[i].name))
            continue;
        if (!fit_part(&parts[i], data, out, &error)) {
            fprintf(stderr, "fit_kernels: %s\n", error->message);
            return ORR_ERROR_INPUT;
        }
        fflush(stdout);
    }
    return 0;
}
