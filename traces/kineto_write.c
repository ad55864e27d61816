/* A profile as CSV: a row a kernel, a row a kind of transfer, then how the window divides. */
#include "traces/kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/io/csv.h"

typedef struct {
    const char *row, *name, *kind, *dtype, *group;
    int64_t stream, bytes, calls, group_size;
    double total_ns, median_ns, min_ns, max_ns, exposed_ns;
} Row;

static gint by_total(gconstpointer a, gconstpointer b) {
    const Row *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : x->stream < y->stream ? -1 : x->stream > y->stream;
}

static void put_count(OrrCsvWriter *w, int64_t value) {
    if (value > 0)
        orr_csv_put_int(w, value);
    else
        orr_csv_put(w, "");
}

static void put_row(OrrCsvWriter *w, const Row *row) {
    orr_csv_put(w, row->row);
    orr_csv_put(w, row->name);
    orr_csv_put(w, row->kind);
    if (row->stream >= 0 && row->calls > 0)
        orr_csv_put_int(w, row->stream);
    else
        orr_csv_put(w, "");
    orr_csv_put(w, row->dtype);
    put_count(w, row->bytes);
    put_count(w, row->group_size);
    orr_csv_put(w, row->group ? row->group : "");
    put_count(w, row->calls);
    orr_csv_put_double(w, row->total_ns / 1e3);
    orr_csv_put_double(w, row->median_ns / 1e3);
    orr_csv_put_double(w, row->min_ns / 1e3);
    orr_csv_put_double(w, row->max_ns / 1e3);
    orr_csv_put_double(w, row->exposed_ns / 1e3);
    orr_csv_end_row(w);
}

static void put_rows(OrrCsvWriter *w, const OrrMeasuredProfile *p) {
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Row));
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const OrrMeasuredKernel *k = &p->kernels[i];
        Row row = {.row = "kernel",
                   .name = k->name,
                   .dtype = "",
                   .stream = k->stream,
                   .calls = k->n_calls,
                   .total_ns = k->total_ns,
                   .median_ns = k->median_ns,
                   .min_ns = k->min_ns,
                   .max_ns = k->max_ns,
                   .exposed_ns = NAN};
        row.kind = k->kind == ORR_N_KERNEL_KINDS ? "" : orr_kernel_kind_name(k->kind);
        g_array_append_val(rows, row);
    }
    for (uint32_t i = 0; i < p->n_transfers; i++) {
        const OrrMeasuredTransfer *t = &p->transfers[i];
        Row row = {.row = "collective",
                   .name = t->name,
                   .group = t->group,
                   .stream = t->stream,
                   .bytes = t->bytes,
                   .calls = t->n_calls,
                   .group_size = t->group_size,
                   .total_ns = t->total_ns,
                   .median_ns = t->median_ns,
                   .min_ns = t->min_ns,
                   .max_ns = t->max_ns,
                   .exposed_ns = t->exposed_ns};
        row.kind = t->has_kind ? orr_collective_name(t->kind) : "";
        row.dtype = t->dtype == ORR_N_DTYPES ? "" : orr_dtype_name(t->dtype);
        g_array_append_val(rows, row);
    }
    g_array_sort(rows, by_total);
    for (guint i = 0; i < rows->len; i++)
        put_row(w, &g_array_index(rows, Row, i));
}

char *orr_kineto_format(const OrrMeasuredProfile *p) {
    static const char *const header[] = {
        "row",   "name",     "kind",      "stream", "dtype",  "size_bytes", "group_size", "group",
        "calls", "total_us", "median_us", "min_us", "max_us", "exposed_us", NULL};
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    put_rows(&w, p);
    const Row shares[] = {
        {.name = "window", .total_ns = p->window_ns},
        {.name = "busy", .total_ns = p->busy_ns},
        {.name = "compute", .total_ns = p->compute_ns},
        {.name = "transfer", .total_ns = p->transfer_ns},
        {.name = "exposed", .total_ns = p->exposed_ns},
        {.name = "copy", .total_ns = p->copy_ns},
        {.name = "idle", .total_ns = p->idle_ns},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(shares); i++) {
        Row row = shares[i];
        row.row = "share", row.kind = row.dtype = "";
        row.median_ns = row.min_ns = row.max_ns = row.exposed_ns = NAN;
        put_row(&w, &row);
    }
    return g_string_free(text, FALSE);
}

static char *run(const OrrImport *import, GError **error) {
    g_autoptr(OrrMeasuredProfile) profile = orr_kineto_read(import, error);
    return profile ? orr_kineto_format(profile) : NULL;
}

const OrrImporter orr_importer_kineto = {
    .name = "kineto",
    .summary = "a PyTorch profiler trace to rows of kernels and collectives",
    .source = "pytorch/kineto; record_param_comms of PyTorch",
    .run = run,
};
