/* A run as tidy CSV: a value a row, in columns section, item, key, value, unit; item is a seed's
 * number in section seed, a cause in section lost. */
#include "sim/report/run_priv.h"

#include "sim/io/csv.h"

static void put(OrrCsvWriter *w, const char *section, const char *item, const char *key) {
    orr_csv_put(w, section);
    orr_csv_put(w, item);
    orr_csv_put(w, key);
}

static void put_int(OrrCsvWriter *w, const char *section, const char *item, const char *key,
                    int64_t value) {
    put(w, section, item, key);
    orr_csv_put_int(w, value);
    orr_csv_put(w, g_str_has_suffix(key, "_ns") ? "ns" : "");
    orr_csv_end_row(w);
}

static void put_double(OrrCsvWriter *w, const char *section, const char *item, const char *key,
                       double value, const char *unit) {
    put(w, section, item, key);
    orr_csv_put_double(w, value);
    orr_csv_put(w, unit);
    orr_csv_end_row(w);
}

static void put_text(OrrCsvWriter *w, const char *key, const char *value) {
    const char *const row[] = {"run", "", key, value, "", NULL};
    orr_csv_put_row(w, row);
}

static void put_seed(const OrrRunRecord *r, const OrrRunSeed *s, OrrCsvWriter *w) {
    g_autofree char *item = g_strdup_printf("%" G_GUINT64_FORMAT, s->seed);
    put_int(w, "seed", item, "wall_ns", s->wall_ns);
    put_int(w, "seed", item, "useful_ns", s->useful_ns);
    put_int(w, "seed", item, "tokens", s->tokens);
    put_int(w, "seed", item, "interruptions", s->interruptions);
    for (uint32_t c = 0; c < r->n_causes; c++) {
        g_autofree char *key = g_strdup_printf("lost_%s_ns", r->causes[c].name);
        int64_t ns = orr_run_seed_lost(s, c);
        if (ns != 0)
            put_int(w, "seed", item, key, ns);
    }
}

static void write_csv(const OrrRunRecord *r, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {"section", "item", "key", "value", "unit", NULL};
    orr_csv_put_row(&w, header);
    put_text(&w, "schema", "orrery.run/1");
    put_text(&w, "version", r->head->version);
    put_text(&w, "run", r->run);
    put_text(&w, "job", r->head->job);
    put_int(&w, "run", "", "seed", (int64_t)r->head->seed);
    put_int(&w, "run", "", "seeds", r->n_seeds);
    put_int(&w, "run", "", "world_size", r->n_gpus);
    put_int(&w, "run", "", "step_time_ns", r->step_ns);
    put_int(&w, "run", "", "wall_ns", r->wall_ns);
    put_int(&w, "run", "", "useful_ns", r->useful_ns);
    for (uint32_t i = 0; i < r->n_figures; i++) {
        const OrrRunFigure *f = &r->figures[i];
        put_double(&w, "figure", f->name, "mean", f->mean, f->unit);
        put_double(&w, "figure", f->name, "ci95", f->ci95, f->unit);
        put_double(&w, "figure", f->name, "p5", f->p5, f->unit);
        put_double(&w, "figure", f->name, "p50", f->p50, f->unit);
        put_double(&w, "figure", f->name, "p95", f->p95, f->unit);
    }
    for (uint32_t c = 0; c < r->n_causes; c++) {
        if (orr_run_record_lost(r, c) == 0 && r->causes[c].mean_count <= 0)
            continue;
        put_double(&w, "lost", r->causes[c].name, "count", r->causes[c].mean_count, "");
        for (uint32_t l = 0; l < ORR_N_LOSSES; l++)
            if (r->lost_ns[c * ORR_N_LOSSES + l] != 0) {
                g_autofree char *key = g_strdup_printf("%s_ns", orr_loss_name((OrrLoss)l));
                put_int(&w, "lost", r->causes[c].name, key, r->lost_ns[c * ORR_N_LOSSES + l]);
            }
    }
    for (uint32_t i = 0; i < r->n_costs; i++)
        put_double(&w, "contract", r->costs[i].name, "cost_usd", r->costs[i].usd, "USD");
    for (uint32_t i = 0; i < r->n_seeds; i++)
        put_seed(r, &r->seeds[i], &w);
}

const OrrRunFormat orr_run__csv = {
    .name = "csv",
    .summary = "A value a row: section, item, key, value, unit; seeds and losses apart",
    .source = "RFC 4180",
    .write = write_csv,
};
