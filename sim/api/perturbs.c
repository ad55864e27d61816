/* Perturbations of a step: read with the job, priced against the same step without them, and who
 * kept others waiting.
 *
 * The straggler is the rank that waits least itself while the others wait for it. Waits that the
 * schedule makes anyway (bubbles) are there without the perturbations too, so each rank's wait
 * counts over what it is in the sound step. */
#include "sim/api/step_priv.h"

#include "sim/io/csv.h"
#include "sim/io/file.h"

#include <stdlib.h>

#define MAX_TABLE_BYTES (64u << 20) /* ours: a row a GPU of a million is 20 MB */

bool orr_step__parse_speeds(OrrPerturb *item, const char *text, gsize length, int64_t n_ranks,
                            GError **error) {
    g_autoptr(OrrCsv) csv = orr_csv_parse(item->file, text, length, ORR_CSV_PLAIN, error);
    static const char *const columns[] = {"rank", "speed", NULL};
    int index[2];
    if (!csv || !orr_csv_need(csv, columns, index, error))
        return false;
    guint n = orr_csv_n_rows(csv);
    bool is_there = item->first < n_ranks; /* what is not is told later */
    int64_t first = is_there ? item->first : 0, last = n_ranks - 1;
    last = is_there ? MIN(last, (int64_t)item->last) : last;
    if (n == 0)
        return orr_fail_input(error, "%s: has no rows; a rank and its speed would do", item->file);
    g_autofree uint8_t *has_come = g_new0(uint8_t, n_ranks);
    g_autofree uint32_t *ranks = g_new(uint32_t, n + 1);
    g_autofree double *speeds = g_new(double, n + 1);
    for (guint i = 0; i < n; i++) {
        int64_t rank;
        if (!orr_csv_int(csv, i, index[0], first, last, &rank, error) ||
            !orr_csv_number(csv, i, index[1], ORR_PERTURB_MIN_SPEED, ORR_PERTURB_MAX_SPEED,
                            &speeds[i], error))
            return false;
        if (has_come[rank]++)
            return orr_csv_fail(csv, i, index[0], error, "comes twice; once would do");
        ranks[i] = (uint32_t)rank;
    }
    return orr_perturb_set_table(item, ranks, speeds, n, error);
}

static bool read_table(OrrStepRun *run, OrrPerturb *item, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(item->file, MAX_TABLE_BYTES, &length, error);
    if (!text)
        return false;
    orr_sources_add_input(run->sources, item->file, text, length);
    return orr_step__parse_speeds(item, text, length, (int64_t)orr_layout_world(&run->job->layout),
                                  error);
}

bool orr_step__load_perturbs(OrrStepRun *run, GError **error) {
    run->perturbs = orr_perturbs_new();
    for (char **text = run->job->perturbs; text && *text; text++)
        if (!orr_perturbs_add(run->perturbs, *text, error))
            return false;
    for (uint32_t i = 0; i < run->perturbs->n; i++)
        if (run->perturbs->items[i].file && !read_table(run, &run->perturbs->items[i], error))
            return false;
    return true;
}

bool orr_step__run_sound(OrrStepRun *run, GError **error) {
    OrrLowering in = orr_step__lowering(run);
    in.perturbs = NULL;
    g_autoptr(OrrBound) bound = orr_lower_bind(&in, run->program, error);
    if (!bound)
        return false;
    g_autoptr(OrrBound) folded = orr_fold(bound);
    OrrExecOptions options = {.self_check = run->request->self_check};
    run->sound = orr_exec_run(folded, &options, error);
    run->sound_rep = g_steal_pointer(&folded->rep_of);
    return run->sound != NULL;
}

#define DRAWN_STEPS 2 /* one to get going, one that counts */

void orr_step__set_jitter(const OrrStepRun *run, bool is_sampled, uint64_t seed,
                          OrrExecOptions *options) {
    options->jitter_frac = orr_perturbs_jitter(run->perturbs);
    options->is_jitter_sampled = is_sampled;
    options->jitter_seed = seed;
    options->is_plain |= !is_sampled && options->jitter_frac > 0; /* its meetings are not ahead */
    if (is_sampled && options->jitter_frac > 0 && options->max_steps == 0)
        options->max_steps = DRAWN_STEPS;
}

static int64_t exposed_ns(const int64_t *account) {
    int64_t sum = 0;
    for (int o = ORR_OWN_EXPOSED_FIRST; o <= (int)ORR_OWN_EXPOSED_LAST; o++)
        sum += account[o];
    return sum;
}

/* What the compute stream of a rank idled for others: a late peer delays the transfers queued
 * behind its own as well, so transfers count too. */
static int64_t wait_ns(const OrrExecResult *x, uint32_t rank) {
    const int64_t *account = x->rank_account_ns + (gsize)rank * ORR_N_OWNERS;
    return account[ORR_OWN_BUBBLE] + account[ORR_OWN_STRAGGLER] + exposed_ns(account);
}

static uint32_t rep_of(const OrrStepRun *run, uint32_t rank) {
    return run->folded ? run->folded->rep_of[rank] : rank;
}

void orr_step_rank_wait(const OrrStepRun *run, uint32_t rank, OrrStepWait *wait) {
    uint32_t rep = rep_of(run, rank);
    const int64_t *account = run->result->rank_account_ns + (gsize)rep * ORR_N_OWNERS;
    *wait = (OrrStepWait){.wait_ns = wait_ns(run->result, rep),
                          .bubble_ns = account[ORR_OWN_BUBBLE],
                          .straggler_ns = account[ORR_OWN_STRAGGLER],
                          .exposed_ns = exposed_ns(account),
                          .has_unperturbed = run->sound != NULL};
    if (run->sound)
        wait->unperturbed_wait_ns = wait_ns(run->sound, run->sound_rep[rank]);
}

/* Waits of the ranks that were executed, and how many each stands for. */
typedef struct {
    int64_t ns;
    uint32_t weight;
} Wait;

static Wait *waits_of(const OrrExecResult *x, const OrrBound *executed) {
    Wait *waits = g_new(Wait, executed->n_ranks + 1);
    for (uint32_t i = 0; i < executed->n_ranks; i++)
        waits[i] = (Wait){wait_ns(x, i), executed->weight[i]};
    return waits;
}

static int by_wait(const void *a, const void *b) {
    const Wait *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

static void fill_waits(const OrrStepRun *run, OrrRecordWaits *w) {
    const OrrBound *b = run->folded ? run->folded : run->bound;
    g_autofree Wait *waits = waits_of(run->result, b);
    *w = (OrrRecordWaits){.least_ns = INT64_MAX, .most_ns = -1};
    for (uint32_t r = 0; r < b->n_real_ranks; r++) {
        int64_t ns = waits[rep_of(run, r)].ns;
        if (ns < w->least_ns)
            w->least_ns = ns, w->least_rank = r;
        if (ns > w->most_ns)
            w->most_ns = ns, w->most_rank = r;
    }
    qsort(waits, b->n_ranks, sizeof *waits, by_wait);
    uint64_t below = 0;
    for (uint32_t i = 0; below <= (b->n_real_ranks - 1) / 2; i++) {
        below += waits[i].weight;
        w->median_ns = waits[i].ns;
    }
}

#define MAX_STRAGGLERS 8 /* ours: as many as one looks at */

/* Keeps @list sorted, most waited for first, equals by rank. */
static void insert(OrrRecordStraggler *list, uint32_t *n, OrrRecordStraggler s) {
    uint32_t at = *n < MAX_STRAGGLERS ? (*n)++ : MAX_STRAGGLERS;
    for (; at > 0 && list[at - 1].waited_for_ns < s.waited_for_ns; at--)
        if (at < MAX_STRAGGLERS)
            list[at] = list[at - 1];
    if (at < MAX_STRAGGLERS)
        list[at] = s;
}

/* Those that others waited for at least half as long as for the first of them. Where links are
 * shared a slow part can make the step shorter: then those that others waited for longer than by
 * what the step has moved, which is about as far as the waits of all have. */
static void fill_stragglers(const OrrStepRun *run, OrrRecord *record) {
    uint32_t n = run->bound->n_real_ranks, n_found = 0;
    int64_t cost = run->result->step_time_ns - run->sound->step_time_ns, sum = 0;
    OrrRecordStraggler found[MAX_STRAGGLERS];
    if (n < 2)
        return;
    g_autofree int64_t *more = g_new(int64_t, n);
    for (uint32_t r = 0; r < n; r++) {
        more[r] = wait_ns(run->result, rep_of(run, r)) - wait_ns(run->sound, run->sound_rep[r]);
        sum += more[r];
    }
    for (uint32_t r = 0; r < n; r++) {
        int64_t waited_for = (sum - more[r]) / (n - 1) - more[r];
        if (waited_for > MAX(-cost, 0))
            insert(found, &n_found, (OrrRecordStraggler){r, waited_for, cost});
    }
    for (uint32_t i = 0; i < n_found && 2 * found[i].waited_for_ns >= found[0].waited_for_ns; i++)
        orr_record_add_straggler(record, &found[i]);
}

void orr_step__fill_perturbs(const OrrStepRun *run, OrrRecord *record) {
    for (uint32_t i = 0; i < run->perturbs->n; i++)
        orr_record_add_perturb(record, run->perturbs->items[i].what, run->perturbs->items[i].value);
    fill_waits(run, &record->waits);
    if (!run->sound)
        return;
    record->sound_step_time_ns = run->sound->step_time_ns;
    fill_stragglers(run, record);
}
