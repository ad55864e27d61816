/* Owners of the strings and arrays in the specs; defaults. */
#include "sim/model/spec.h"

void orr_model_free(OrrModel *model) {
    if (!model)
        return;
    g_free(model->name);
    g_free(model->family);
    g_free(model->source);
    g_free(model);
}

void orr_framework_free(OrrFramework *framework) {
    if (!framework)
        return;
    g_free(framework->name);
    g_free(framework->source);
    g_free(framework->flops_formula);
    g_free(framework);
}

void orr_job_free(OrrJob *job) {
    if (!job)
        return;
    g_free(job->name);
    g_free(job->source);
    g_free(job->model_ref);
    g_free(job->cluster_ref);
    g_free(job->cluster_place);
    g_free(job->framework_ref);
    for (uint32_t i = 0; i < job->n_sets; i++) {
        g_free(job->set_groups[i]);
        g_free(job->set_keys[i]);
        g_free(job->set_values[i]);
        g_free(job->set_origins[i]);
    }
    g_free(job->set_groups);
    g_free(job->set_keys);
    g_free(job->set_values);
    g_free(job->set_origins);
    g_free(job->layout.stage_layers);
    g_free(job->file);
    g_free(job->schedule_name);
    g_strfreev(job->nccl_names);
    g_strfreev(job->nccl_values);
    g_free(job->routing);
    g_strfreev(job->perturbs);
    g_free(job->flops_formula);
    g_free(job);
}

static OrrDtype resolve(int rule, OrrDtype compute) {
    if (rule != ORR_AS_COMPUTE)
        return (OrrDtype)rule;
    if (compute == ORR_TF32)
        return ORR_FP32;
    return compute == ORR_FP8 || compute == ORR_FP4 ? ORR_BF16 : compute;
}

void orr_precision_default(const OrrJobDefaults *defaults, OrrDtype compute, OrrPrecision *out) {
    out->compute = compute;
    out->parameters = resolve(defaults->parameters, compute);
    out->gradients = resolve(defaults->gradients, compute);
    out->reduce = resolve(defaults->reduce, compute);
    out->gather = resolve(defaults->gather, compute);
    out->master = ORR_FP32;
    /* Weights kept in FP32 are their own master copy. */
    out->has_master = defaults->has_master && out->parameters != ORR_FP32;
}
