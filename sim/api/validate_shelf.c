/* Files that many rows need: clusters, profiles, tables, GPUs. */
#include "sim/api/validate_priv.h"

#include "topologies/loader.h"
#include "workloads/loader.h"

static void free_calibration(void *calibration) {
    orr_calibration_free(calibration);
}

static void free_cluster(void *cluster) {
    orr_cluster_free(cluster);
}

static void free_framework(void *framework) {
    orr_framework_free(framework);
}

static void free_gpu(void *gpu) {
    orr_gpu_free(gpu);
}

bool orr_validate__shelf_init(OrrValidateShelf *shelf, const char *calibration, GError **error) {
    shelf->clusters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_cluster);
    shelf->frameworks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_framework);
    shelf->calibrations = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_calibration);
    shelf->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_gpu);
    shelf->calibration = calibration;
    shelf->names = orr_published_names_load(error);
    return shelf->names != NULL;
}

void orr_validate__shelf_clear(OrrValidateShelf *shelf) {
    orr_published_names_free(shelf->names);
    g_hash_table_unref(shelf->clusters);
    g_hash_table_unref(shelf->frameworks);
    g_hash_table_unref(shelf->calibrations);
    g_hash_table_unref(shelf->gpus);
}

const OrrCluster *orr_validate__cluster(OrrValidateShelf *shelf, const char *ref, GError **error) {
    OrrCluster *cluster = g_hash_table_lookup(shelf->clusters, ref);
    if (cluster)
        return cluster;
    cluster = orr_topology_cluster(ref, NULL, error);
    if (cluster)
        g_hash_table_insert(shelf->clusters, g_strdup(ref), cluster);
    return cluster;
}

const OrrFramework *orr_validate__framework(OrrValidateShelf *shelf, const char *name,
                                            GError **error) {
    OrrFramework *framework = g_hash_table_lookup(shelf->frameworks, name);
    if (framework)
        return framework;
    framework = orr_workload_framework(name, NULL, 0, NULL, error);
    if (framework)
        g_hash_table_insert(shelf->frameworks, g_strdup(name), framework);
    return framework;
}

const OrrGpu *orr_validate__gpu(OrrValidateShelf *shelf, const char *name, GError **error) {
    OrrGpu *gpu = g_hash_table_lookup(shelf->gpus, name);
    if (gpu)
        return gpu;
    gpu = orr_topology_gpu(name, NULL, error);
    if (gpu)
        g_hash_table_insert(shelf->gpus, g_strdup(name), gpu);
    return gpu;
}

bool orr_validate__calibration(OrrValidateShelf *shelf, const OrrGpu *gpu,
                               const OrrCalibration **calibration, GError **error) {
    bool has_own = gpu->surfaces && gpu->surfaces[0];
    *calibration = NULL;
    if (!shelf->calibration && !has_own)
        return true;
    *calibration = g_hash_table_lookup(shelf->calibrations, gpu->name);
    if (*calibration)
        return true;
    OrrCalibration *read;
    if (!orr_calibration_for(shelf->calibration, gpu, &read, error))
        return false;
    g_hash_table_insert(shelf->calibrations, g_strdup(gpu->name), read);
    *calibration = read;
    return true;
}
