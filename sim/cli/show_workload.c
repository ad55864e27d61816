/* orrery show model, framework, job: what the file says, and what follows from it. */
#include "sim/cli/show.h"

#include "sim/base/units.h"
#include "sim/io/data.h"
#include "sim/model/params.h"
#include "topologies/loader.h"
#include "workloads/loader.h"

#define FILE_LIMIT_BYTES (1 << 20) /* ours: these files are a few kilobytes */

static void fixed(OrrOut *out, int width, int decimals, double value) {
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
    g_snprintf(format, sizeof format, "%%.%df", decimals);
    orr_out_printf(out, " %*s", width, g_ascii_formatd(text, sizeof text, format, value));
}

static void count(OrrOut *out, const char *name, double value, const char *of) {
    g_autofree char *text = orr_units_count(value);
    orr_cli_line(out, name, "%s%s", text, of);
}

static void shape(const OrrModel *m, OrrOut *out) {
    OrrParams p;
    orr_params_count(m, &p);
    orr_out_printf(out, "%s\n", m->name);
    count(out, "parameters", (double)p.total, "");
    count(out, "  input table", (double)p.embedding, "");
    count(out, "  a layer", (double)p.layer, "");
    count(out, "  head", (double)p.head, m->is_tied ? " (tied to the input table)" : "");
    orr_cli_line(out, "layers", "%u", m->layers);
    orr_cli_line(out, "hidden size", "%u", m->hidden);
    orr_cli_line(out, "heads", "%u of %u, %u for keys and values", m->heads, m->head_dim,
                 m->kv_heads);
    orr_cli_line(out, "feed-forward", "%u%s", m->ffn, m->is_gated ? ", gated" : "");
    orr_cli_line(out, "vocabulary", "%u", m->vocab);
    orr_cli_line(out, "source", "%s", m->source);
}

/* FLOPs a token by each formula and, for a measured rate, the MFU that each makes of it. */
static bool formulas(const OrrModel *m, int64_t sequence, double tokens_per_s, const OrrGpu *gpu,
                     OrrDtype dtype, OrrOut *out, GError **error) {
    OrrBatch batch = {
        .global_sequences = 1, .micro_sequences = 1, .sequence_tokens = (uint32_t)sequence};
    double peak = gpu ? gpu->peak_flops_per_s[dtype] : 0;
    orr_out_printf(out,
                   "\nFLOPs a token, forward and backward, at a sequence of %" G_GINT64_FORMAT
                   " tokens\n  %-16s %14s",
                   sequence, "formula", "GFLOP/token");
    if (tokens_per_s > 0)
        orr_out_printf(out, " %14s %8s", "TFLOP/s", "MFU");
    orr_out_puts(out, "\n");
    for (int i = 0; orr_flops_formulas[i]; i++) {
        double flops;
        if (!orr_flops_model(orr_flops_formulas[i], m, &batch, &flops, error))
            return false;
        double per_token = flops / (double)sequence;
        orr_out_printf(out, "  %-16s", orr_flops_formulas[i]);
        fixed(out, 14, 3, per_token * 1e-9);
        if (tokens_per_s > 0) {
            double share = orr_flops_model_share(orr_flops_formulas[i]);
            fixed(out, 14, 1, per_token * tokens_per_s * 1e-12);
            fixed(out, 6, 2, per_token * share * tokens_per_s / peak * 100);
            orr_out_puts(out, " %");
        }
        orr_out_puts(out, "\n");
    }
    if (tokens_per_s > 0) {
        g_autofree char *peak_text = orr_units_format(peak, ORR_DIM_FLOPS_RATE);
        orr_out_printf(out,
                       "MFU is of the dense %s peak of the %s, %s; the figure with sparsity in "
                       "data sheets\nis twice that and would halve it. sc21 counts a recomputed "
                       "forward, which its MFU leaves out.\n",
                       orr_dtype_name(dtype), gpu->name, peak_text);
    }
    return true;
}

static bool dtype_of(const OrrCli *cli, OrrDtype *dtype, GError **error) {
    const char *name = orr_cli_value(cli, "dtype");
    *dtype = ORR_BF16;
    for (int d = 0; name && d < ORR_N_DTYPES; d++)
        if (g_ascii_strcasecmp(name, orr_dtype_names[d]) == 0) {
            *dtype = (OrrDtype)d;
            return true;
        }
    return !name || orr_fail_usage(error,
                                   "orrery show: --dtype %s: fp32, tf32, bf16, fp16, fp8, fp4 "
                                   "or int8 would do",
                                   name);
}

#define MAX_TOKENS_PER_S 1e9 /* ours: of one GPU */

static bool rate_of(const OrrCli *cli, double *tokens_per_s, GError **error) {
    const char *text = orr_cli_value(cli, "tokens-per-s");
    *tokens_per_s = 0;
    if (!text)
        return true;
    if (orr_units_parse(text, ORR_DIM_NONE, tokens_per_s, NULL) && *tokens_per_s > 0 &&
        *tokens_per_s <= MAX_TOKENS_PER_S)
        return true;
    return orr_fail_usage(
        error,
        "orrery show model: --tokens-per-s %s: a number above 0 and up to 1e9, per "
        "GPU, would do",
        text);
}

bool orr_cli_show_model(const OrrCli *cli, OrrOut *out, GError **error) {
    int64_t sequence = 0;
    double tokens_per_s;
    OrrDtype dtype;
    if (!orr_cli_int(cli, "sequence", 1, 100000000, &sequence, error) ||
        !rate_of(cli, &tokens_per_s, error) || !dtype_of(cli, &dtype, error))
        return false;
    g_autoptr(OrrModel) m = orr_workload_model(orr_cli_argument(cli, 1), NULL, 0, NULL, error);
    if (!m)
        return false;
    const char *gpu_name = orr_cli_value(cli, "gpu");
    if (tokens_per_s > 0 && !gpu_name)
        return orr_fail_usage(error,
                              "orrery show model: --tokens-per-s needs --gpu NAME, whose peak "
                              "is the denominator");
    OrrGpu *gpu = gpu_name ? orr_topology_gpu(gpu_name, NULL, error) : NULL;
    if (gpu_name && !gpu)
        return false;
    bool is_done = true;
    if (gpu && gpu->peak_flops_per_s[dtype] <= 0)
        is_done = orr_fail_usage(error, "orrery show model: the %s has no %s units", gpu->name,
                                 orr_dtype_name(dtype));
    if (is_done) {
        shape(m, out);
        is_done = formulas(m, sequence > 0 ? sequence : 2048, tokens_per_s, gpu, dtype, out, error);
    }
    if (gpu)
        orr_gpu_free(gpu);
    return is_done;
}

/* The file as it is, then the defaults that its reader would use. */
static bool file_and_defaults(const char *folder, const char *ref, const OrrSources *sources,
                              OrrOut *out, GError **error) {
    g_autofree char *path = orr_data_find(folder, ref, ".ini", error);
    if (!path)
        return false;
    g_autofree char *text = orr_file_read(path, FILE_LIMIT_BYTES, NULL, error);
    if (!text)
        return false;
    orr_out_puts(out, text);
    if (sources->assumptions->len > 0)
        orr_out_puts(out, "\n# Not said in the file, so:\n");
    for (guint i = 0; i < sources->assumptions->len; i++) {
        const OrrAssumption *a = sources->assumptions->pdata[i];
        orr_out_printf(out, "# %s = %s  (%s)\n", a->key, a->value, a->origin);
    }
    return true;
}

bool orr_cli_show_framework(const OrrCli *cli, OrrOut *out, GError **error) {
    const char *ref = orr_cli_argument(cli, 1);
    g_autoptr(OrrSources) sources = orr_sources_new();
    g_autoptr(OrrFramework) f = orr_workload_framework(ref, NULL, 0, sources, error);
    return f && file_and_defaults("workloads/frameworks", ref, sources, out, error);
}

bool orr_cli_show_job(const OrrCli *cli, OrrOut *out, GError **error) {
    const char *ref = orr_cli_argument(cli, 1);
    g_autoptr(OrrSources) sources = orr_sources_new();
    g_autoptr(OrrJob) job = orr_workload_job(ref, NULL, 0, sources, error);
    return job && file_and_defaults("workloads/jobs", ref, sources, out, error);
}
