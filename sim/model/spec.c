/* Owners of the strings and arrays in the specs. */
#include "sim/model/spec.h"

void orr_model_free(OrrModel *model)
{
    if (!model)
        return;
    g_free(model->name);
    g_free(model->family);
    g_free(model->source);
    g_free(model);
}

void orr_framework_free(OrrFramework *framework)
{
    if (!framework)
        return;
    g_free(framework->name);
    g_free(framework->source);
    g_free(framework->flops_formula);
    g_free(framework);
}

void orr_job_free(OrrJob *job)
{
    if (!job)
        return;
    g_free(job->name);
    g_free(job->source);
    g_free(job->model_ref);
    g_free(job->cluster_ref);
    g_free(job->framework_ref);
    for (uint32_t i = 0; i < job->n_sets; i++) {
        g_free(job->set_groups[i]);
        g_free(job->set_keys[i]);
        g_free(job->set_values[i]);
    }
    g_free(job->set_groups);
    g_free(job->set_keys);
    g_free(job->set_values);
    g_free(job->layout.stage_layers);
    g_free(job->schedule_name);
    g_strfreev(job->nccl_names);
    g_strfreev(job->nccl_values);
    g_free(job->routing);
    g_strfreev(job->perturbs);
    g_free(job->flops_formula);
    g_free(job);
}
