/* Hugging Face config.json of a dense decoder to a model file.
 *
 * Known architectures and their class defaults are a table (hf_families.c). Refused by name: what
 * cannot be modelled (state-space and hybrid layers, mixtures of experts, latent attention,
 * encoders) and unknown keys that could change shapes; keys that cannot are a table (hf_keys.c).
 * Of a model with vision or audio parts only the text part is taken, with a warning. */
#ifndef WORKLOADS_IMPORT_HF_H
#define WORKLOADS_IMPORT_HF_H

#include "sim/io/importer.h"
#include "sim/base/error.h"

/**
 * orr_import_hf: the model file for the config at @path.
 * @warnings: a line for each default of the architecture that was used and each part left out;
 * may be NULL.
 * Returns: text of a model file, g_free; NULL with @error (ORR_ERROR_INPUT), a line for each flaw:
 * "FILE:LINE: KEY = VALUE: what is wrong; what would do".
 */
char *orr_import_hf(const char *path, GString *warnings, GError **error);
/* The same of a text; @name stands for the file in messages. */
char *orr_import_hf_text(const char *name, const char *text, gsize length, GString *warnings,
                         GError **error);

/* The same as a form of `orrery import`. */
extern const OrrImporter orr_importer_hf;

#endif
