/* Tables of detailed collectives. */
#include "sim/cli/show_detailed.h"

#include "sim/base/units.h"
#include "sim/io/csv.h"
#include "sim/io/json_write.h"

#include <stdio.h>
#include <sys/resource.h>

typedef struct {
    int64_t bytes;
    OrrDetailResult r;
} Row;

typedef struct {
    const OrrDetailCase *base;
    const char *cluster;
    GArray *rows; /* Row */
} Table;

static double algbw(const Row *row) {
    return row->r.time_ns > 0 ? 1e9 * (double)row->bytes / (double)row->r.time_ns : 0;
}

static double busbw(const Table *t, const Row *row) {
    return algbw(row) * orr_collective_bus_factor(t->base->kind, t->base->n_ranks);
}

static void write_text(const Table *t, OrrOut *out) {
    orr_out_printf(out,
                   "# %s of %s over %u GPUs of %s, alone on the machine, every message a flow\n",
                   orr_collective_name(t->base->kind), orr_dtype_name(t->base->dtype),
                   t->base->n_ranks, t->cluster);
    orr_out_printf(out, "#%12s %12s %12s %9s %9s %11s %11s %11s %11s  %-13s %s\n", "size", "time",
                   "as one", "algbw", "busbw", "flows", "sharing", "events", "solves", "algorithm",
                   "proto");
    orr_out_printf(out, "#%12s %12s %12s %9s %9s\n", "(B)", "(us)", "(us)", "(GB/s)", "(GB/s)");
    for (guint i = 0; i < t->rows->len; i++) {
        const Row *row = &g_array_index(t->rows, Row, i);
        char time[40], one[40], alg[40], bus[40];
        g_ascii_formatd(time, sizeof time, "%.2f", (double)row->r.time_ns * 1e-3);
        g_ascii_formatd(one, sizeof one, "%.2f",
                        (double)orr_collective_ns(&row->r.plan, row->bytes) * 1e-3);
        g_ascii_formatd(alg, sizeof alg, "%.2f", algbw(row) * 1e-9);
        g_ascii_formatd(bus, sizeof bus, "%.2f", busbw(t, row) * 1e-9);
        orr_out_printf(
            out,
            "%13" G_GINT64_FORMAT " %12s %12s %9s %9s %11" G_GUINT64_FORMAT " %11" G_GUINT64_FORMAT
            " %11" G_GUINT64_FORMAT " %11" G_GUINT64_FORMAT "  %-13s %s\n",
            row->bytes, time, one, alg, bus, row->r.n_flows, row->r.n_shared, row->r.n_events,
            row->r.n_solves, orr_algo_name(row->r.plan.algo), orr_proto_name(row->r.plan.proto));
    }
}

static void write_csv(const Table *t, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {"collective",
                                         "dtype",
                                         "n_ranks",
                                         "size_bytes",
                                         "time_ns",
                                         "as_one_ns",
                                         "n_flows",
                                         "n_shared",
                                         "n_events",
                                         "n_solves",
                                         "algbw_bytes_per_s",
                                         "busbw_bytes_per_s",
                                         "algorithm",
                                         "protocol",
                                         "schema",
                                         NULL};
    orr_csv_put_row(&w, header);
    for (guint i = 0; i < t->rows->len; i++) {
        const Row *row = &g_array_index(t->rows, Row, i);
        orr_csv_put(&w, orr_collective_name(t->base->kind));
        orr_csv_put(&w, orr_dtype_name(t->base->dtype));
        orr_csv_put_int(&w, t->base->n_ranks);
        orr_csv_put_int(&w, row->bytes);
        orr_csv_put_int(&w, row->r.time_ns);
        orr_csv_put_int(&w, orr_collective_ns(&row->r.plan, row->bytes));
        orr_csv_put_int(&w, (int64_t)row->r.n_flows);
        orr_csv_put_int(&w, (int64_t)row->r.n_shared);
        orr_csv_put_int(&w, (int64_t)row->r.n_events);
        orr_csv_put_int(&w, (int64_t)row->r.n_solves);
        orr_csv_put_double(&w, algbw(row));
        orr_csv_put_double(&w, busbw(t, row));
        orr_csv_put(&w, orr_algo_name(row->r.plan.algo));
        orr_csv_put(&w, orr_proto_name(row->r.plan.proto));
        orr_csv_put(&w, "orrery.collective-detailed/1");
        orr_csv_end_row(&w);
    }
}

static void write_json(const Table *t, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_cli_json_begin(&w, "orrery.collective-detailed/1");
    orr_json_put_string(&w, "collective", orr_collective_name(t->base->kind));
    orr_json_put_string(&w, "dtype", orr_dtype_name(t->base->dtype));
    orr_json_put_string(&w, "cluster", t->cluster);
    orr_json_put_int(&w, "n_ranks", t->base->n_ranks);
    orr_json_begin_array(&w, "rows");
    for (guint i = 0; i < t->rows->len; i++) {
        const Row *row = &g_array_index(t->rows, Row, i);
        orr_json_begin_object_inline(&w, NULL);
        orr_json_put_int(&w, "size_bytes", row->bytes);
        orr_json_put_int(&w, "time_ns", row->r.time_ns);
        orr_json_put_int(&w, "as_one_ns", orr_collective_ns(&row->r.plan, row->bytes));
        orr_json_put_int(&w, "n_flows", (int64_t)row->r.n_flows);
        orr_json_put_int(&w, "n_shared", (int64_t)row->r.n_shared);
        orr_json_put_int(&w, "n_events", (int64_t)row->r.n_events);
        orr_json_put_int(&w, "n_solves", (int64_t)row->r.n_solves);
        orr_json_put_double(&w, "algbw_bytes_per_s", algbw(row));
        orr_json_put_double(&w, "busbw_bytes_per_s", busbw(t, row));
        orr_json_put_string(&w, "algorithm", orr_algo_name(row->r.plan.algo));
        orr_json_put_string(&w, "protocol", orr_proto_name(row->r.plan.proto));
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

/* --stats: of all sizes together, on stderr. */
static void say_stats(const Table *t, int64_t begin_us) {
    int64_t ns = MAX((g_get_monotonic_time() - begin_us) * 1000, 1);
    uint64_t flows = 0, events = 0;
    for (guint i = 0; i < t->rows->len; i++) {
        flows += g_array_index(t->rows, Row, i).r.n_flows;
        events += g_array_index(t->rows, Row, i).r.n_events;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    g_autofree char *time = orr_units_time(ns);
    g_autofree char *memory = orr_units_bytes((double)usage.ru_maxrss * 1024);
    g_autofree char *n_flows = orr_units_count((double)flows);
    g_autofree char *n_events = orr_units_count((double)events);
    g_autofree char *per_s = orr_units_count((double)flows / ((double)ns * 1e-9));
    fprintf(stderr, "orrery: %s flows and %s events in %s (%s flows/s); peak memory %s\n", n_flows,
            n_events, time, per_s, memory);
}

bool orr_cli_write_detailed(const OrrCli *cli, const OrrDetailCase *base, int64_t min_bytes,
                            int64_t max_bytes, const char *cluster, OrrOut *out, GError **error) {
    g_autoptr(GArray) rows = g_array_new(FALSE, TRUE, sizeof(Row));
    Table table = {base, cluster, rows};
    int64_t begin_us = g_get_monotonic_time();
    for (int64_t bytes = min_bytes; bytes <= max_bytes; bytes *= 2) {
        OrrDetailCase c = *base;
        Row row = {.bytes = c.bytes = bytes};
        if (!orr_detail_run(&c, &row.r, error))
            return false;
        g_array_append_val(rows, row);
    }
    if (orr_cli_has(cli, "stats"))
        say_stats(&table, begin_us);
    (orr_cli_has(cli, "json")  ? write_json
     : orr_cli_has(cli, "csv") ? write_csv
                               : write_text)(&table, out);
    return true;
}
