/* Model, framework and job files: whatever the bytes, a whole spec or a whole error. What says a
 * group of a kind is read as that kind, all else as all of them. */
#include "tests/fuzz/fuzz.h"
#include "workloads/loader.h"

static void read_model(const char *path, OrrSources *sources) {
    GError *error = NULL;
    g_autoptr(OrrModel) model = orr_workload_model(path, NULL, 0, sources, &error);
    fuzz_check_error(model, &error);
    if (model != NULL)
        g_assert(model->layers > 0 && model->head_dim > 0 && model->heads % model->kv_heads == 0);
}

static void read_framework(const char *path, OrrSources *sources) {
    GError *error = NULL;
    g_autoptr(OrrFramework) framework = orr_workload_framework(path, NULL, 0, sources, &error);
    fuzz_check_error(framework, &error);
}

static void read_job(const char *path, OrrSources *sources) {
    GError *error = NULL;
    g_autoptr(OrrJob) job = orr_workload_job(path, NULL, 0, sources, &error);
    fuzz_check_error(job, &error);
    if (job != NULL)
        g_assert(job->layout.dp > 0 && job->batch.global_sequences > 0 && *job->schedule_name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct {
        const char *group;
        void (*read)(const char *path, OrrSources *sources);
    } kinds[] = {{"[model]", read_model}, {"[framework]", read_framework}, {"[job]", read_job}};
    g_auto(FuzzFile) file = fuzz_file(data, size);
    g_autoptr(OrrSources) sources = orr_sources_new();
    bool is_read = false;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (fuzz_has_group(data, size, kinds[i].group)) {
            kinds[i].read(file.path, sources);
            is_read = true;
        }
    for (guint i = 0; !is_read && i < G_N_ELEMENTS(kinds); i++)
        kinds[i].read(file.path, sources);
    return 0;
}
