/* From options to records. */
#include "calibrate/flow.h"

#include "calibrate/grid.h"
#include "sim/io/csv.h"

/* --quick is to end within two minutes: the last case, and what went before the first, need some of
 * it. */
#define QUICK_BUDGET_S 105.0

GArray *orr_calibrate_cases(const OrrCalibrateOptions *o, const OrrDeviceFacts *facts,
                            GError **error) {
    OrrGridWish wish = {.is_full = o->is_full, .flushes_l2 = o->flushes_l2, .has_mpi = o->has_mpi};
    for (int k = 0; k < ORR_N_CASE_KINDS; k++)
        wish.kinds[k] = o->kinds[k];
    /* Under MPI the GPUs are there for the collectives: one of them measures its kernels alone. */
    if (o->has_mpi && !o->only && !o->shapes)
        for (int k = 0; k < ORR_CASE_COLLECTIVE; k++)
            wish.kinds[k] = false;
    if (!o->shapes)
        return orr_grid_cases(&wish, facts);
    g_autoptr(GArray) cases = g_array_new(FALSE, TRUE, sizeof(OrrCase));
    guint n_ignored;
    if (!orr_grid_shapes(o->shapes, &wish, cases, &n_ignored, error))
        return NULL;
    if (n_ignored)
        g_printerr("orrery-calibrate: %s: %u rows of kinds that are not measured\n", o->shapes,
                   n_ignored);
    return g_steal_pointer(&cases);
}

static bool list(const GArray *cases, GError **error) {
    g_autoptr(OrrOut) out = orr_out_open(NULL, error);
    if (!out)
        return false;
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, orr_case_columns);
    for (guint i = 0; i < cases->len; i++) {
        for (guint column = 0; column < ORR_N_CASE_COLUMNS; column++) {
            g_autofree char *cell = orr_case_cell(&g_array_index(cases, OrrCase, i), column);
            orr_csv_put(&w, cell);
        }
        orr_csv_end_row(&w);
    }
    return orr_out_commit(out, error);
}

static void say(const OrrOutcome *n, const OrrDeviceFacts *facts) {
    g_printerr("orrery-calibrate: %s, %d GPUs: %u measured, %u refused (see their reason), %u with "
               "a wrong result, %u recorded before, %u left\n",
               facts->device, facts->n_gpus, n->n_ok + n->n_wrong, n->n_refused, n->n_wrong,
               n->n_before, n->n_left);
    if (n->is_out_of_time && n->n_left)
        g_printerr("orrery-calibrate: the time is over; the same command goes on with the rest\n");
}

static bool verdict(const OrrOutcome *n, GError **error) {
    if (n->is_stopped)
        return orr_fail_env(error, "interrupted; the same command goes on where it stopped");
    if (n->n_wrong) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_NO,
                    "%u results differ from their reference; rows of status `wrong`", n->n_wrong);
        return false;
    }
    return true;
}

/* Opened in process 0 only; all learn whether it went well. */
static bool open_records(const OrrCalibrateOptions *o, OrrRanks *ranks, const OrrDeviceFacts *facts,
                         OrrRecords **records, GError **error) {
    GError *mine = NULL;
    *records = ranks->rank == 0 ? orr_records_open(o->output, facts, &mine) : NULL;
    return orr_ranks_agree(ranks, mine, error);
}

bool orr_calibrate(const OrrCalibrateOptions *o, OrrDevice *d, OrrRanks *ranks,
                   bool (*is_stopped)(void *data), void *data, GError **error) {
    OrrDeviceFacts facts;
    d->kind->describe(d, &facts);
    g_autoptr(GArray) cases = orr_calibrate_cases(o, &facts, error);
    if (!cases)
        return false;
    if (o->lists)
        return ranks->rank != 0 || list(cases, error);
    g_autoptr(OrrRecords) records = NULL;
    if (!open_records(o, ranks, &facts, &records, error))
        return false;
    OrrPlan plan = {.cases = (const OrrCase *)(const void *)cases->data,
                    .n_cases = cases->len,
                    .sampling = o->is_full ? orr_sampling_full : orr_sampling_quick,
                    .budget_s = o->minutes   ? o->minutes * 60.0
                                : o->is_full ? 0
                                             : QUICK_BUDGET_S,
                    .is_stopped = is_stopped,
                    .data = data,
                    .records = records,
                    .shows_progress = ranks->rank == 0};
    OrrOutcome outcome;
    bool is_good = orr_run(&plan, d, ranks, &outcome, error);
    if (ranks->rank == 0)
        say(&outcome, &facts);
    return is_good && verdict(&outcome, error);
}
