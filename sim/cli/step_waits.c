/* A row a real rank, whoever was executed for it; written as it is made, so that a million ranks
 * need no memory. */
#include "sim/cli/step_waits.h"

#include "sim/io/file.h"
#include "sim/model/groups.h"

bool orr_cli_step_waits(const OrrStepRun *run, const char *path, GError **error) {
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    orr_out_puts(out, "rank,node,tp,cp,dp,pp,wait_ns,bubble_ns,straggler_ns,exposed_ns,"
                      "wait_over_unperturbed_ns\n");
    uint32_t n = orr_step_n_ranks(run);
    for (uint32_t r = 0; r < n && !orr_out_has_failed(out); r++) {
        OrrCoords at = orr_layout_coords(orr_step_layout(run), r);
        OrrStepWait w;
        orr_step_rank_wait(run, r, &w);
        orr_out_printf(out,
                       "%u,%u,%u,%u,%u,%u,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                       ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",",
                       r, orr_step_node_of_rank(run, r), at.tp, at.cp, at.dp, at.pp, w.wait_ns,
                       w.bubble_ns, w.straggler_ns, w.exposed_ns);
        if (w.has_unperturbed)
            orr_out_printf(out, "%" G_GINT64_FORMAT, w.wait_ns - w.unperturbed_wait_ns);
        orr_out_puts(out, "\n");
    }
    return orr_out_commit(out, error);
}
