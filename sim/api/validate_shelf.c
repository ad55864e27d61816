/* Files that many rows need: clusters, profiles, tables, GPUs. */
#include "sim/api/validate_priv.h"

#include "calibrate/tables.h"
#include "sim/io/data.h"
#include "topologies/loader.h"
#include "workloads/loader.h"

static void free_surfaces(void *set) {
    orr_surface_set_free(set);
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

void orr_validate__shelf_init(OrrValidateShelf *shelf, const char *calibration) {
    shelf->clusters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_cluster);
    shelf->frameworks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_framework);
    shelf->surfaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_surfaces);
    shelf->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_gpu);
    shelf->calibration = calibration;
}

void orr_validate__shelf_clear(OrrValidateShelf *shelf) {
    g_hash_table_unref(shelf->clusters);
    g_hash_table_unref(shelf->frameworks);
    g_hash_table_unref(shelf->surfaces);
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

bool orr_validate__surfaces(OrrValidateShelf *shelf, const OrrGpu *gpu,
                            const OrrSurfaceSet **surfaces, GError **error) {
    const char *name = shelf->calibration ? shelf->calibration : gpu->surfaces;
    *surfaces = NULL;
    if (!name || !name[0])
        return true;
    *surfaces = g_hash_table_lookup(shelf->surfaces, name);
    if (*surfaces)
        return true;
    g_autofree char *path = orr_data_find("calibrate/tables", name, ".ini", error);
    OrrSurfaceSet *set = path ? orr_tables_load(path, error) : NULL;
    if (set)
        g_hash_table_insert(shelf->surfaces, g_strdup(name), set);
    *surfaces = set;
    return set != NULL;
}
