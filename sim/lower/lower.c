#include "sim/lower/lower.h"

#include "sim/lower/lower_priv.h"

uint64_t orr_lower__params(const OrrLower *w, uint32_t v) {
    const OrrStagePart *p = &w->parts[v];
    return p->n_layers * w->local.layer + (p->has_embedding ? w->local.embedding : 0) +
           (p->has_head ? w->local.head : 0);
}

static void places_of_virtual(OrrLower *w) {
    const OrrOrder *o = w->in->order;
    for (uint32_t s = 0; s < o->shape.n_stages; s++)
        for (uint32_t c = 0; c < o->shape.n_chunks; c++) {
            uint32_t v = o->virtual_stage[s * o->shape.n_chunks + c];
            w->stage_of[v] = s;
        }
}

OrrProgram *orr_lower_program(const OrrLowering *in, GError **error) {
    const OrrJob *job = in->job;
    OrrLower w = {.in = in,
                  .layout = &job->layout,
                  .fw = in->framework,
                  .precision = &job->precision,
                  .emit = {in->model, &job->layout, &job->batch, &job->precision, &job->recompute,
                           in->framework}};
    w.n_micro_batches = orr_layout_micro_batches(&job->layout, &job->batch);
    w.n_virtual = job->layout.pp * job->layout.vpp;
    bool is_hybrid = job->layout.zero_stage > 0 && job->layout.hsdp_shard > 0;
    w.dp_group = is_hybrid ? ORR_GROUP_HSDP_SHARD : ORR_GROUP_DP_CP;
    w.dp = orr_layout_group_size(&job->layout, w.dp_group);
    w.replicas = is_hybrid ? orr_layout_group_size(&job->layout, ORR_GROUP_HSDP_REPLICA) : 1;
    w.parts = g_new0(OrrStagePart, w.n_virtual);
    w.stage_of = g_new0(uint32_t, w.n_virtual);
    w.pieces = g_new0(OrrPiece, (gsize)w.n_virtual * ORR_N_PASSES * ORR_N_VARIANTS);
    OrrProgram *program = NULL;
    if (orr_layout_split(in->model, &job->layout, w.parts, error)) {
        orr_params_local(in->model, &job->layout, in->framework, &w.local);
        places_of_virtual(&w);
        w.boundary_bytes = orr_emit_boundary_bytes(&w.emit);
        w.b = orr_builder_new();
        orr_lower__roles(&w);
        program = orr_builder_finish(w.b);
    }
    g_free(w.parts);
    g_free(w.stage_of);
    for (uint32_t i = 0; i < w.n_virtual * ORR_N_PASSES * ORR_N_VARIANTS; i++)
        g_free(w.pieces[i].unit_op);
    g_free(w.pieces);
    return program;
}
