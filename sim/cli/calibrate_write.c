/* The calibration as a file: provenance, what was measured of kernels, copies, launches, overlap
 * and collectives, the residuals, and last the surfaces, which nobody reads by eye. */
#include "sim/cli/calibrate_parts.h"

#include "calibrate/tables.h"
#include "config.h"
#include "sim/base/units.h"
#include "sim/collective/constant_names.h"

#include <math.h>
#include <string.h>

static void put_number(OrrOut *out, const char *format, double value) {
    char text[40];
    orr_out_puts(out, g_ascii_formatd(text, sizeof text, format, value));
}

static void put_number_line(OrrOut *out, const char *key, const char *format, double value,
                            const char *unit, const char *comment) {
    orr_out_printf(out, "%s = ", key);
    put_number(out, format, value);
    orr_out_printf(out, "%s%s%s\n", unit, *comment ? " # " : "", comment);
}

/* Left out where there is nothing. */
static void text_line(OrrOut *out, const char *key, const char *value) {
    if (value && *value)
        orr_out_printf(out, "%s = %s\n", key, value);
}

static void write_facts(const OrrCalibrateFit *f, OrrOut *out) {
    const OrrRecordFacts *r = &f->records->facts;
    text_line(out, "device", r->device);
    text_line(out, "driver", r->driver);
    text_line(out, "cuda", r->cuda);
    text_line(out, "cublas", r->cublas);
    text_line(out, "cudnn", r->cudnn);
    text_line(out, "nccl", r->nccl);
    text_line(out, "first_date", r->first_date);
    text_line(out, "last_date", r->last_date);
    orr_out_printf(out, "gpus = %u of %u a node\n", r->n_gpus, r->gpus_per_node);
    orr_out_printf(
        out,
        "rows = %u used, %u refused or wrong in the runner, %u impossible, %u with a "
        "wide spread, %u of collectives not fitted (in place, beside products, crowds)\n",
        f->records->rows->len, f->records->n_refused, f->records->n_impossible,
        f->records->n_doubtful, f->n_apart);
}

static void write_head(const OrrCli *cli, const OrrCalibrateFit *f, OrrOut *out) {
    orr_out_printf(
        out,
        "# Written by orrery calibrate fit; used by --calibration FILE, or by a GPU file "
        "whose surfaces it is.\n[calibration]\nsummary = %s\n",
        f->kernels ? "a machine as orrery-calibrate measured it"
                   : "constants of collectives, fitted to measured tables");
    orr_out_printf(out, "source = orrery %s calibrate fit on", PACKAGE_VERSION);
    for (guint i = 1; orr_cli_argument(cli, i); i++) {
        g_autofree char *name = g_path_get_basename(orr_cli_argument(cli, i));
        orr_out_printf(out, " %s", name);
    }
    orr_out_puts(out, "\n");
    text_line(out, "gpu", f->gpu ? f->gpu->name : NULL);
    text_line(out, "cluster", f->cluster_name);
    if (f->records)
        write_facts(f, out);
}

static void write_kernels(const OrrCalibrateFit *f, OrrOut *out) {
    const OrrRecordFit *k = f->kernels;
    static const char *const launches[ORR_N_LAUNCHES] = {"latency", "rate", "graph"};
    static const char *const why[ORR_N_LAUNCHES] = {
        "of an empty kernel to its end, as the host sees it", "a launch, back to back",
        "a kernel of a graph"};
    const char *const *copies = orr_case_op_names(ORR_CASE_COPY);
    orr_out_puts(out, "\n# Long products, as measured.\n[best]\n");
    for (int d = 0; d < ORR_N_DTYPES; d++)
        if (k->best_flops_per_s[d] > 0)
            put_number_line(out, orr_dtype_name((OrrDtype)d), "%.1f", k->best_flops_per_s[d] / 1e12,
                            " TFLOP/s", "");
    orr_out_puts(out, "\n# Rate of long copies, time of the shortest: for the GPU and node files.\n"
                      "[copies]\n");
    for (int c = 0; c < ORR_N_COPIES; c++)
        if (k->copy_bytes_per_s[c] > 0) {
            g_autofree char *rate = g_strdup_printf("%s_rate", copies[c]);
            g_autofree char *time = g_strdup_printf("%s_time", copies[c]);
            put_number_line(out, rate, "%.2f", k->copy_bytes_per_s[c] / 1e9, " GB/s", "");
            put_number_line(out, time, "%.0f", k->copy_ns[c], " ns", "");
        }
    orr_out_puts(out, "\n[launches]\n");
    for (int l = 0; l < ORR_N_LAUNCHES; l++)
        if (k->launch_ns[l] > 0)
            put_number_line(out, launches[l], "%.0f", k->launch_ns[l], " ns", why[l]);
    orr_out_puts(out, "\n[overlap]\n");
    if (k->compute_rate_frac > 0)
        put_number_line(out, "products_beside_collectives", "%.1f", 100 * k->compute_rate_frac,
                        " %", "of their rate alone");
    if (k->send_rate_frac > 0)
        put_number_line(out, "products_beside_sends", "%.1f", 100 * k->send_rate_frac, " %", "");
    if (k->collective_rate_frac > 0)
        put_number_line(out, "collectives_beside_products", "%.1f", 100 * k->collective_rate_frac,
                        " %", "not used by the simulator");
}

static void write_collectives(const OrrFit *fit, OrrOut *out) {
    orr_out_printf(out, "\n# %u rows used, %u faster than the link, %u outliers; mean error ",
                   fit->n_rows, fit->n_refused, fit->n_outliers);
    put_number(out, "%.1f", 100 * fit->before_frac);
    orr_out_puts(out, " % with the shipped constants, ");
    put_number(out, "%.1f", 100 * fit->after_frac);
    orr_out_puts(out, " % with these.\n");
    if (fit->n_held) {
        orr_out_printf(out, "# Held out, other sizes: %u rows, mean error ", fit->n_held);
        put_number(out, "%.1f", 100 * fit->held_before_frac);
        orr_out_puts(out, " % with the shipped constants, ");
        put_number(out, "%.1f", 100 * fit->held_after_frac);
        orr_out_puts(out, " % with these.\n");
    }
    orr_out_puts(out, "[collectives]\n");
    for (uint32_t i = 0; i < fit->n_parameters; i++) {
        const OrrFitParameter *p = &fit->parameters[i];
        g_autofree char *before = orr_units_double(p->before);
        g_autofree char *shipped = g_strdup_printf("shipped: %s", before);
        OrrDim dim = orr_coll_constant_dim(p->name);
        bool is_small = dim == ORR_DIM_FRACTION || dim == ORR_DIM_NONE;
        put_number_line(out, p->name, is_small ? "%.4f" : "%.1f", p->after,
                        orr_coll_constant_unit(p->name), shipped);
    }
}

/* @shipped NAN: the shipped model has none of the kind. */
static void write_residual(OrrOut *out, const OrrFitResidual *r, double shipped) {
    const char *series = r->series;
    guint n = r->n;
    double mean = r->median_frac, p90 = r->p90_frac, bias = r->bias_frac;
    orr_out_printf(out, "%s = %u rows, median ", series, n);
    put_number(out, "%.1f", 100 * mean);
    orr_out_puts(out, " %, 90th percentile ");
    put_number(out, "%.1f", 100 * p90);
    orr_out_puts(out, " %, bias ");
    put_number(out, "%+.1f", 100 * bias);
    orr_out_puts(out, " %");
    if (isfinite(shipped)) {
        orr_out_puts(out, "; the shipped model's median ");
        put_number(out, "%.1f", 100 * shipped);
        orr_out_puts(out, " %");
    }
    orr_out_puts(out, "\n");
}

static void write_residuals(const OrrCalibrateFit *f, OrrOut *out) {
    orr_out_puts(out, "\n# Fitted over measured less 1.\n[residuals]\n");
    for (guint i = 0; f->kernels && i < f->kernels->residuals->len; i++) {
        const OrrFitResidual *r = &g_array_index(f->kernels->residuals, OrrFitResidual, i);
        write_residual(out, r, f->shipped_frac[i]);
    }
    for (uint32_t i = 0; f->collectives && i < f->collectives->n_laws; i++) {
        const OrrFitLaw *law = &f->collectives->laws[i];
        orr_out_printf(out, "%s.%s = %u rows, mean ", orr_algo_name(law->algo),
                       orr_proto_name(law->proto), law->n_rows);
        put_number(out, "%.1f", 100 * law->after_frac);
        orr_out_puts(out, " %, with the shipped constants ");
        put_number(out, "%.1f", 100 * law->before_frac);
        orr_out_puts(out, " %\n");
    }
}

void orr_cli_fit_write(const OrrCli *cli, const OrrCalibrateFit *f, OrrOut *out) {
    write_head(cli, f, out);
    if (f->kernels)
        write_kernels(f, out);
    if (f->collectives)
        write_collectives(f->collectives, out);
    write_residuals(f, out);
    if (!f->kernels)
        return;
    g_autoptr(GString) tables = g_string_new(NULL);
    orr_tables_put(tables, f->kernels->set);
    orr_out_puts(out, tables->str);
}
