/* The table of formats of runs, and what they share. */
#include "sim/report/run_report.h"

#include "sim/report/run_priv.h"

#include <math.h>
#include <string.h>

const OrrRunFormat *const orr_run_formats[] = {&orr_run__text, &orr_run__json, &orr_run__csv, NULL};

const OrrRunFormat *orr_run_format_find(const char *name) {
    for (int i = 0; orr_run_formats[i]; i++)
        if (strcmp(orr_run_formats[i]->name, name) == 0)
            return orr_run_formats[i];
    return NULL;
}

OrrFixed orr_run__span(double ns) {
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{86400e9, "d"}, {3600e9, "h"}, {60e9, "min"}};
    OrrFixed f;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++)
        if (ns >= 2 * units[i].ns || (i == 0 && ns >= units[i].ns)) {
            OrrFixed v = orr_report__fixed(ns / units[i].ns, 2);
            g_snprintf(f.text, sizeof f.text, "%.30s %s", v.text, units[i].unit);
            return f;
        }
    return orr_report__time(ns);
}

uint32_t orr_run__by_loss(const OrrRunRecord *r, uint32_t *ids) {
    uint32_t n = 0;
    for (uint32_t c = 0; c < r->n_causes; c++) {
        int64_t lost = orr_run_record_lost(r, c);
        if (lost == 0 && r->causes[c].mean_count <= 0)
            continue;
        uint32_t at = n++;
        for (; at > 0 && orr_run_record_lost(r, ids[at - 1]) < lost; at--)
            ids[at] = ids[at - 1];
        ids[at] = c;
    }
    return n;
}

OrrLoss orr_run__mostly(const OrrRunRecord *r, uint32_t cause) {
    const int64_t *lost = &r->lost_ns[cause * ORR_N_LOSSES];
    int best = 0;
    for (int l = 1; l < ORR_N_LOSSES; l++)
        if (lost[l] > lost[best])
            best = l;
    return (OrrLoss)best;
}

void orr_run_losses_table(const OrrRunRecord *r, OrrOut *out) {
    g_autofree uint32_t *ids = g_new(uint32_t, r->n_causes + 1);
    uint32_t n = orr_run__by_loss(r, ids);
    orr_out_puts(out, "cause,lost_share_percent,lost_h,stopped_h,rework_h,saving_h,slow_h\n");
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *l = &r->lost_ns[ids[i] * ORR_N_LOSSES];
        int64_t all = orr_run_record_lost(r, ids[i]);
        int64_t saving =
            l[ORR_LOSS_SAVE] + l[ORR_LOSS_SAVE_WAIT] + l[ORR_LOSS_SAVE_SLOW] + l[ORR_LOSS_EVALUATE];
        int64_t slow = l[ORR_LOSS_SLOW] + l[ORR_LOSS_SHRUNK] + l[ORR_LOSS_NOISE];
        int64_t rework = l[ORR_LOSS_REWORK];
        const double row[] = {100 * (double)all / (double)r->wall_ns,
                              (double)all / 3600e9,
                              (double)(all - saving - slow - rework) / 3600e9,
                              (double)rework / 3600e9,
                              (double)saving / 3600e9,
                              (double)slow / 3600e9};
        orr_out_puts(out, r->causes[ids[i]].name);
        for (guint k = 0; k < G_N_ELEMENTS(row); k++) {
            orr_out_puts(out, ",");
            orr_out_double(out, row[k]);
        }
        orr_out_puts(out, "\n");
    }
}

void orr_run_costs_table(const OrrRunRecord *r, OrrOut *out) {
    orr_out_puts(out, "contract,cost_usd\n");
    for (uint32_t i = 0; i < r->n_costs; i++) {
        orr_out_printf(out, "%s,", r->costs[i].name);
        orr_out_double(out, r->costs[i].usd);
        orr_out_puts(out, "\n");
    }
}
