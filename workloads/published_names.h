/* What published tables call GPUs, networks, frameworks and models, and which files of ours those
 * are: tables of words in workloads/names, first match wins. */
#ifndef WORKLOADS_PUBLISHED_NAMES_H
#define WORKLOADS_PUBLISHED_NAMES_H

#include "sim/model/spec.h"

/* Longer words stand before the shorter ones that they hold. */
typedef struct {
    char *words, *gpu; /* gpu "": nothing of ours is like it */
} OrrGpuName;
/* The last row of a GPU, with words "", is its default. */
typedef struct {
    char *gpu, *words, *cluster;
} OrrClusterName;
/* All that a row states here must hold of the run: framework, model, source and note as words, the
 * GPU's name by its beginning, the number behind the words of the note, pipeline stages, and what
 * the run says of its pipelines' fix ("" states nothing). */
typedef struct {
    char *framework, *source, *gpu, *note, *model, *after_pp_fix, *profile;
    double note_from, note_below; /* bounds of that number; 0 and 0: none is looked for */
    uint32_t pp_from;
    bool is_nearest; /* it has no profile of its own */
} OrrFrameworkName;
/* Architectures by a word of the model's name and one of the framework's, which may be empty; the
 * last one is the default. */
typedef struct {
    char *words, *framework;
    OrrNormKind norm;
    OrrActivation activation;
    OrrPosition position;
    double rotary_frac;
    bool is_gated, has_biases, has_qkv_bias, is_tied, has_embedding_norm;
    uint32_t vocab; /* where the row has none */
} OrrFamilyName;

typedef struct {
    OrrGpuName *gpus;
    OrrClusterName *clusters;
    OrrFrameworkName *frameworks;
    OrrFamilyName *families;
    guint n_gpus, n_clusters, n_frameworks, n_families; /* families: at least 1 */
} OrrPublishedNames;

/* The shipped tables. NULL with @error (ORR_ERROR_INPUT): one is missing or broken. */
OrrPublishedNames *orr_published_names_load(GError **error);
void orr_published_names_free(OrrPublishedNames *names);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrPublishedNames, orr_published_names_free)

#endif
