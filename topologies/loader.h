/* GPUs, nodes and clusters from the key files of topologies/, by name, alias or path, or a cluster
 * from a one-line shape (shapes.h). All errors of a file are told at once (sim/io/keys.h). */
#ifndef TOPOLOGIES_LOADER_H
#define TOPOLOGIES_LOADER_H

#include "sim/cluster/cluster.h"

/* Replaces one key: @group is cluster, node or gpu; other groups are not for us and ignored.
 * Messages say @origin, or "--set" if that is NULL, where a line number would stand. */
typedef struct {
    const char *group, *key, *value, *origin;
} OrrTopologySet;

/* Told what was read and what was assumed; each function may be NULL. Names of shipped files are
 * relative ("topologies/gpus/h100-sxm-80.ini"), those of paths as given. */
typedef struct {
    void *data;
    void (*input)(void *data, const char *name, const char *text, gsize length);
    void (*assumption)(void *data, const char *key, const char *value, const char *origin);
} OrrTopologyNotes;

typedef struct {
    const OrrTopologySet *sets;
    uint32_t n_sets;
    const OrrTopologyNotes *notes; /* or NULL */
} OrrTopologyOptions;

/* Each: @ref is a name or alias of a shipped file, or a path (it has a '/' or ends in .ini).
 * @options may be NULL. NULL with @error (ORR_ERROR_INPUT): no such file (with the nearest name),
 * or all that is wrong in it. A node brings its GPU. */
OrrGpu *orr_topology_gpu(const char *ref, const OrrTopologyOptions *options, GError **error);
OrrNode *orr_topology_node(const char *ref, const OrrTopologyOptions *options, GError **error);
/* @ref: "NAME:GPUS" or "PATH:GPUS", or NAME alone for the whole machine, or a shape of shapes.h.
 * More GPUs than the machine has is an error that says how many it has. */
OrrCluster *orr_topology_cluster(const char *ref, const OrrTopologyOptions *options,
                                 GError **error);

typedef enum {
    ORR_TOPOLOGY_GPUS,
    ORR_TOPOLOGY_NODES,
    ORR_TOPOLOGY_CLUSTERS,
    ORR_N_TOPOLOGIES
} OrrTopologyKind;
extern const char *const orr_topology_kind_names[]; /* gpus, nodes, clusters: also the folders */
/* Whether there is a file that @ref, without ":GPUS", names; of a path it is not asked. */
bool orr_topology_has(OrrTopologyKind kind, const char *ref, GError **error);

typedef struct {
    char *name, *summary, *source;
    char **aliases; /* NULL-terminated */
} OrrTopologyEntry;
/* The shipped files of a kind, sorted by name; frees itself with g_ptr_array_unref. */
GPtrArray *orr_topology_list(OrrTopologyKind kind, GError **error);

#endif
