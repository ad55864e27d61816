/* Launch scripts and configurations of other frameworks as job files: shell scripts with Megatron
 * arguments (variables, arrays, arithmetic, simple conditions are followed; nothing is executed),
 * DeepSpeed JSON, nanotron YAML (where libyaml was there at build time), torchtitan TOML (tables,
 * keys, strings, numbers, truths, arrays on one line; no dates, no nested or multi-line values).
 *
 * What the file does not say and a job must have (the cluster, for some the model or the sequence)
 * is said with --set GROUP.KEY=VALUE; variables of a script with --set NAME=VALUE. What is left out
 * of the file (optimizer, data, logging) changes no time here. Refused by name: mixtures of
 * experts, and files of none of these kinds.
 *
 * Source: NVIDIA/Megatron-LM megatron/training/arguments.py; DeepSpeed configuration JSON;
 * huggingface/nanotron config; pytorch/torchtitan job_config.py (2025). */
#ifndef WORKLOADS_IMPORT_CONFIG_H
#define WORKLOADS_IMPORT_CONFIG_H

#include "sim/io/importer.h"

/* The text of a job file; g_free. NULL with @error. */
char *orr_import_config(const OrrImport *import, GError **error);
/* As orr_import_config, from memory; import->path stands for the file. */
char *orr_import_config_text(const OrrImport *import, const char *text, gsize length,
                             GError **error);

extern const OrrImporter orr_importer_config;

#endif
