/* What the loaders of one file share: finding it, and filling a struct from a table of keys. */
#ifndef TOPOLOGIES_LOADER_PRIV_H
#define TOPOLOGIES_LOADER_PRIV_H

#include <stddef.h>

#include "sim/io/keys.h"
#include "topologies/loader.h"

typedef enum {
    TOPO_NUMBER, /* double, dimension dim */
    TOPO_COUNT,  /* uint32_t, noun */
    TOPO_SEED,   /* uint64_t */
    TOPO_BOOL,
    TOPO_ENUM, /* names */
    TOPO_TEXT  /* char *, owned */
} OrrTopoFieldKind;

typedef struct {
    const char *key;
    OrrTopoFieldKind kind;
    size_t offset;
    OrrDim dim;
    const char *noun;
    const char *const *names;
    double min, max, fallback;
    OrrKeyFlags flags;
} OrrTopoField;

/* Fills the members of @into; numbers that are absent get their fallback. */
void orr_topologies__read(OrrKeys *keys, const char *group, const OrrTopoField *fields, size_t n,
                          void *into);

/* The same, but numbers that are absent stay as they are, and texts always do. */
void orr_topologies__update(OrrKeys *keys, const char *group, const OrrTopoField *fields, size_t n,
                            void *into);
/* Applies the overrides of @group. */
void orr_topologies__override(OrrKeys *keys, const char *group, const OrrTopologyOptions *options);

/* Opens the file that @ref means, tells @options of it and applies the overrides of @group.
 * *@name (g_free) is the stem of the file. */
OrrKeys *orr_topologies__open(OrrTopologyKind kind, const char *group, const char *ref,
                              const OrrTopologyOptions *options, char **name, GError **error);
/* Finishes: false with all errors; tells @options what was assumed. */
bool orr_topologies__close(OrrKeys *keys, const OrrTopologyOptions *options, GError **error);

/* From keys that are open; what the file names (a GPU, a node) is loaded as well. */
OrrGpu *orr_topologies__gpu(OrrKeys *keys, const char *name, const OrrTopologyOptions *options,
                            GError **error);
OrrNode *orr_topologies__node(OrrKeys *keys, const char *name, const OrrTopologyOptions *options,
                              GError **error);
/* @n_gpus 0: the whole machine. */
OrrCluster *orr_topologies__cluster(OrrKeys *keys, const char *name, uint32_t n_gpus,
                                    const OrrTopologyOptions *options, GError **error);
/* Overrides of cluster and node on a @spec that no file describes; @name stands for one. */
bool orr_topologies__set(OrrClusterSpec *spec, const char *name, const OrrTopologyOptions *options,
                         GError **error);
/* Where they are 0: as many links up as ports down, over the oversubscription. */
void orr_topologies__default_uplinks(OrrClusterSpec *spec);

#endif
