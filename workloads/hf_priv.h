/* Private to the Hugging Face importer. */
#ifndef WORKLOADS_HF_PRIV_H
#define WORKLOADS_HF_PRIV_H

#include "sim/io/json.h"
#include "sim/model/spec.h"

typedef struct HfFamily HfFamily;

/* One config while it is read: getters note every flaw and go on. */
typedef struct {
    const OrrJson *json;
    JsonObject *object; /* that describes the text model: the root, or nested in it */
    const HfFamily *family;
    GHashTable *known; /* keys that somebody asked for */
    GString *warnings, *errors;
} HfReader;

#define HF_FOUR_TIMES UINT32_MAX /* of ffn: four times the width */
struct HfFamily {
    const char *type;       /* model_type */
    const char *class_name; /* whose defaults these are */
    OrrModel shape; /* defaults; 0 layers, hidden, heads: always required. kv_heads 0: heads;
                       head_dim 0: hidden / heads; ffn 0: required */
    const char *activation;                   /* default of the activation key */
    void (*adjust)(HfReader *r, OrrModel *m); /* what its own keys change; may be NULL */
};
const HfFamily *orr_hf__family(const char *type);
/* Names of the families, for messages; g_free. */
char *orr_hf__family_names(void);

/* First key present of @names (NULL-terminated) as a count from 1 to @max; aliases must agree.
 * Absent: @fallback, or an error if that is 0. */
uint32_t orr_hf__count(HfReader *r, const char *const *names, uint32_t max, uint32_t fallback);
/* Absent: the default, said in the warnings. */
bool orr_hf__flag(HfReader *r, const char *key, bool fallback);
double orr_hf__share(HfReader *r, const char *key, double fallback);
uint32_t orr_hf__optional(HfReader *r, const char *key, uint32_t max); /* 0 if absent or null */
/* Marks @key as one that says nothing new. */
void orr_hf__ignore(HfReader *r, const char *key);
const char *orr_hf__text(HfReader *r, const char *const *names, const char *fallback);
void orr_hf__complain(HfReader *r, const char *key, const char *format, ...) G_GNUC_PRINTF(3, 4);
void orr_hf__warn(HfReader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Complains of each key that nobody asked for and that is not known to be harmless. */
void orr_hf__check_unknown(HfReader *r);
/* Why @type or the keys of @object cannot be modelled, or NULL; static text. */
const char *orr_hf__refusal(const char *type, JsonObject *object, const char **because_of);

#endif
