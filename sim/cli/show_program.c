/* orrery show program: what a job is lowered to, in numbers, role by role. */
#include "sim/cli/show.h"

#include "sim/base/units.h"
#include "sim/cli/run.h"

static void role_line(const OrrProgram *p, const OrrRole *role, OrrOut *out) {
    uint64_t ops[ORR_N_OP_KINDS] = {0};
    double flops = 0;
    for (uint32_t c = 0; c < role->n_calls; c++) {
        const OrrSegment *s = &p->segments[p->calls[role->first_call + c].segment];
        for (uint32_t i = 0; i < s->n_ops; i++) {
            const OrrOp *op = &p->ops[s->first_op + i];
            ops[op->kind]++;
            flops += op->kind == ORR_OP_KERNEL ? p->kernels[op->what].flops : 0;
        }
    }
    g_autofree char *work = orr_units_format(flops, ORR_DIM_FLOPS);
    orr_out_printf(out,
                   "  %5u  %-24s %8u %10" G_GUINT64_FORMAT " %11" G_GUINT64_FORMAT
                   " %8" G_GUINT64_FORMAT "  %s\n",
                   role->stage, role->label, role->n_calls, ops[ORR_OP_KERNEL], ops[ORR_OP_COLL],
                   ops[ORR_OP_P2P], work);
}

bool orr_cli_show_program(const OrrCli *cli, OrrOut *out, GError **error) {
    g_autoptr(OrrCliRun) run = orr_cli_run_prepare(cli, orr_cli_argument(cli, 1), error);
    if (!run)
        return false;
    const OrrProgram *p = orr_step_program(run->run);
    orr_out_printf(out,
                   "Program of %s: what a rank of each role does in a step (in full: orrery step "
                   "%s --dump-program FILE)\n",
                   run->job, run->job);
    orr_out_printf(out,
                   "%u roles, %u calls of %u segments, %u operations; %u kernels, %u collectives, "
                   "%u point-to-point kernels described\n\n",
                   p->n_roles, p->n_calls, p->n_segments, p->n_ops, p->n_kernels, p->n_colls,
                   p->n_p2ps);
    orr_out_printf(out, "  %5s  %-24s %8s %10s %11s %8s  %s\n", "stage", "role", "calls", "kernels",
                   "collectives", "sends", "work");
    for (uint32_t r = 0; r < p->n_roles; r++)
        role_line(p, &p->roles[r], out);
    return true;
}
