/* Model, framework and job files: whatever the bytes, a whole spec or a whole error. */
#include "tests/fuzz/fuzz.h"
#include "workloads/loader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_auto(FuzzFile) file = fuzz_file(data, size);
    GError *error = NULL;
    g_autoptr(OrrSources) sources = orr_sources_new();
    g_autoptr(OrrModel) model = orr_workload_model(file.path, NULL, 0, sources, &error);
    fuzz_check_error(model, &error);
    if (model != NULL)
        g_assert(model->layers > 0 && model->head_dim > 0 && model->heads % model->kv_heads == 0);
    g_autoptr(OrrFramework) framework = orr_workload_framework(file.path, NULL, 0, sources, &error);
    fuzz_check_error(framework, &error);
    g_autoptr(OrrJob) job = orr_workload_job(file.path, NULL, 0, sources, &error);
    fuzz_check_error(job, &error);
    if (job != NULL)
        g_assert(job->layout.dp > 0 && job->batch.global_sequences > 0 && *job->schedule_name);
    return 0;
}
