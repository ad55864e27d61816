/* From a run to what exporters ask about its ranks. */
#include "sim/cli/trace_context.h"

#include "sim/model/groups.h"

static char *rank_name(void *data, uint32_t rank) {
    const OrrLayout *l = orr_step_layout(((const OrrCliRun *)data)->run);
    OrrCoords c = orr_layout_coords(l, rank);
    g_autoptr(GString) name = g_string_new(NULL);
    g_string_append_printf(name, "stage %u", c.pp);
    if (l->tp > 1)
        g_string_append_printf(name, ", TP %u", c.tp);
    if (l->cp > 1)
        g_string_append_printf(name, ", CP %u", c.cp);
    if (l->dp > 1)
        g_string_append_printf(name, ", DP %u", c.dp);
    return g_strdup(name->str);
}

static uint32_t group(void *data, OrrGroup kind, uint32_t index, const uint32_t **members) {
    return orr_step_group(((const OrrCliRun *)data)->run, kind, index, members);
}

static uint32_t peer(void *data, uint32_t rank, OrrGroup kind, uint32_t position) {
    return orr_step_peer(((const OrrCliRun *)data)->run, rank, kind, position);
}

static void plan(void *data, const OrrSpan *span, OrrAlgo *algo, OrrProto *proto) {
    orr_step_plan(((const OrrCliRun *)data)->run, span->rank, span->what, algo, proto);
}

OrrTraceContext orr_cli_trace_context(const OrrCliRun *run) {
    const OrrNode *node = orr_step_node(run->run);
    return (OrrTraceContext){
        .program = orr_step_program(run->run),
        .job = run->job,
        .gpu = node->gpu->name,
        .world_size = orr_step_n_ranks(run->run),
        .gpus_per_node = node->gpus,
        .peak_flops_per_s = orr_step_peak_flops_per_s(run->run),
        .data = (void *)run,
        .rank_name = rank_name,
        .group = group,
        .peer = peer,
        .plan = plan,
    };
}
