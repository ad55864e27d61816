/* How much memory a step will ask for, told before it does where that is much: where it is more
 * than there is the run is ended by the system without a word. An estimate by executed ranks alone,
 * measured on llama3-405b-16k and -131k (doc/models/execution.md, "What it costs"). */
#include "sim/api/step_priv.h"

#include "sim/base/units.h"
#include "sim/io/machine.h"

#define KIB_A_RANK 9        /* ours, measured: 8 to 9 of an unfolded rank, with what is bound */
#define KIB_A_RANK_DRAWN 20 /* the same where ranks differ: with what the critical path needs */
#define MUCH_BYTES (UINT64_C(1) << 30) /* ours: less is not worth a word */

char *orr_step__need_text(uint64_t n_ranks, bool is_drawn, uint64_t available_bytes) {
    uint64_t bytes = n_ranks * (is_drawn ? KIB_A_RANK_DRAWN : KIB_A_RANK) * 1024;
    if (bytes < MUCH_BYTES)
        return NULL;
    g_autofree char *need = orr_units_bytes((double)bytes);
    g_autofree char *left = orr_units_bytes((double)available_bytes);
    if (available_bytes == 0 || bytes <= available_bytes)
        return g_strdup_printf("note: %" G_GUINT64_FORMAT " ranks that are executed each as itself "
                               "will take about %s of memory",
                               n_ranks, need);
    return g_strdup_printf("warning: %" G_GUINT64_FORMAT " ranks that are executed each as itself "
                           "will take about %s of memory, but %s are available: the system may end "
                           "the run; fewer ranks, or folded ones, would do",
                           n_ranks, need, left);
}

/* Random placement and hashed routes leave little to fold, and so do drawn speeds. */
void orr_step__tell_need(const OrrStepRun *run) {
    const OrrStepRequest *q = run->request;
    bool is_drawn = orr_perturbs_are_drawn(run->perturbs) || run->job->is_random_placement ||
                    orr_cluster_spec(run->cluster)->routing == ORR_ROUTE_ECMP_HASH;
    if (!q->note || q->is_unbound || !(q->is_unfolded || is_drawn))
        return;
    g_autofree char *text = orr_step__need_text(orr_layout_world(&run->job->layout), is_drawn,
                                                orr_machine_available_bytes());
    if (text)
        q->note(q->note_data, text);
}
