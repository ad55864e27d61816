/* What the readers of configurations share. */
#ifndef WORKLOADS_CONFIG_PRIV_H
#define WORKLOADS_CONFIG_PRIV_H

#include "workloads/import_config.h"

/* What a file says: its own names to values ("parallelism.tp", "num-layers"), or, once mapped, our
 * keys ("layout.tp") to values. */
typedef struct {
    const OrrImport *import;
    GHashTable *said; /* char * -> char * */
    GHashTable *job;  /* char * -> char * */
    const char *kind; /* of the file, for messages; static */
} OrrConfig;

void orr_workloads__note(const OrrImport *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* NULL: not said, or empty. */
const char *orr_config__said(const OrrConfig *c, const char *name);
bool orr_config__is_true(const OrrConfig *c, const char *name);
/* A whole number of at least 1; 0: not said. */
int64_t orr_config__count(const OrrConfig *c, const char *name);
void orr_config__say(OrrConfig *c, const char *name, const char *value);
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

#endif
