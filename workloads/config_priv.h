/* What the readers of configurations share. */
#ifndef WORKLOADS_CONFIG_PRIV_H
#define WORKLOADS_CONFIG_PRIV_H

#include "sim/io/json.h"
#include "workloads/import_config.h"

/* What a file says: its own names to values ("parallelism.tp", "num-layers"), or, once mapped, our
 * keys ("layout.tp") to values. */
typedef struct {
    const OrrImport *import;
    GHashTable *said;  /* char * -> char * */
    GHashTable *job;   /* char * -> char * */
    GHashTable *unset; /* char *: variables without a value that values of the file have */
    const char *kind;  /* of the file, for messages; static */
} OrrConfig;

void orr_workloads__note(const OrrImport *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* NULL: not said, or empty. */
const char *orr_config__said(const OrrConfig *c, const char *name);
bool orr_config__is_true(const OrrConfig *c, const char *name);
/* A whole number of at least 1; 0: not said. */
int64_t orr_config__count(const OrrConfig *c, const char *name);
void orr_config__say(OrrConfig *c, const char *name, const char *value);
/* @value with each ${NAME} replaced by what --set NAME=VALUE says; one that is not said leaves the
 * whole value out, with a note. */
void orr_config__say_expanded(OrrConfig *c, const char *name, const char *value);
/* All that @object says, as "PREFIX.KEY". */
void orr_config__flatten(OrrConfig *c, const char *prefix, JsonObject *object);
/* The value of --set NAME=VALUE; NULL: not given. */
const char *orr_config__set(const OrrConfig *c, const char *name);

/* Names of the file whose values are whole numbers, and the keys of the job that they become. */
typedef struct {
    const char *said, *key, *noun;
} OrrConfigCount;
/* Values that are no whole numbers are told and left out. */
void orr_config__put_counts(OrrConfig *c, const OrrConfigCount *counts, gsize n);
const char *orr_config__yes(bool is_true); /* "yes", "no" */
/* Tells that a model with experts or latent attention, which was put, can't be simulated. */
void orr_config__note_sparse(const OrrConfig *c);
/* What architectures share. */
typedef struct {
    bool is_gated, is_rms, is_tied, has_bias;
    const char *activation, *position;
} OrrConfigBlock;
void orr_config__put_block(OrrConfig *c, const OrrConfigBlock *block);

/* Sets a key of the job to "VALUE NOUN"; @value NULL: nothing is done. */
void orr_config__put(OrrConfig *c, const char *key, const char *value, const char *noun);

/* Readers fill said. */
bool orr_config__read_shell(OrrConfig *c, const char *text, gsize length, GError **error);
bool orr_config__read_json(OrrConfig *c, const char *text, gsize length, GError **error);
bool orr_config__read_toml(OrrConfig *c, const char *text, gsize length, GError **error);
bool orr_config__read_yaml(OrrConfig *c, const char *text, gsize length, GError **error);
/* Maps fill job from said. */
bool orr_config__map_megatron(OrrConfig *c, GError **error);
bool orr_config__map_deepspeed(OrrConfig *c, GError **error);
bool orr_config__map_nanotron(OrrConfig *c, GError **error);
bool orr_config__map_torchtitan(OrrConfig *c, GError **error);
/* YAML: nanotron's or Megatron's (also NeMo's), by what it says. */
bool orr_config__map_yaml(OrrConfig *c, GError **error);

#endif
