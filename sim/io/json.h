/* JSON as RFC 8259 has it: a strict reader over json-glib with located errors, and a streaming
 * writer.
 *
 * json-glib takes NaN, trailing commas, comments and repeated keys; a scan before it (json_scan.c)
 * refuses those with line and column. Numbers without fraction or exponent must fit 64 bits. */
#ifndef ORR_IO_JSON_H
#define ORR_IO_JSON_H

#include <json-glib/json-glib.h>

#include "sim/io/file.h"

typedef struct OrrJson OrrJson;

typedef enum {
    ORR_JSON_STRICT = 0,
    ORR_JSON_INFINITY = 1 /* takes Python's Infinity and -Infinity, as null: config.json has them */
} OrrJsonFlags;

OrrJson *orr_json_load(const char *path, OrrJsonFlags flags, GError **error);
/* @name stands for the file in messages. */
OrrJson *orr_json_parse(const char *name, const char *text, gsize length, OrrJsonFlags flags,
                        GError **error);
void orr_json_free(OrrJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrJson, orr_json_free)

const char *orr_json_name(const OrrJson *json);
const char *orr_json_text(const OrrJson *json, gsize *length); /* for a checksum */
JsonNode *orr_json_root(const OrrJson *json);
/* The root as an object; NULL with @error if it is something else. */
JsonObject *orr_json_root_object(const OrrJson *json, GError **error);

/* Getters: false with @error "FILE:LINE: KEY.PATH = VALUE: what is wrong; what would do" where the
 * key is absent, null, of another type or out of range; @object is of this @json. */
bool orr_json_int(const OrrJson *json, JsonObject *object, const char *key, int64_t min,
                  int64_t max, int64_t *value, GError **error);
bool orr_json_double(const OrrJson *json, JsonObject *object, const char *key, double min,
                     double max, double *value, GError **error);
bool orr_json_bool(const OrrJson *json, JsonObject *object, const char *key, bool *value,
                   GError **error);
/* *@value is owned by @json. */
bool orr_json_string(const OrrJson *json, JsonObject *object, const char *key, const char **value,
                     GError **error);
bool orr_json_array(const OrrJson *json, JsonObject *object, const char *key, JsonArray **value,
                    GError **error);
bool orr_json_object(const OrrJson *json, JsonObject *object, const char *key, JsonObject **value,
                     GError **error);
/* Whether the key is there and not null. */
bool orr_json_has(JsonObject *object, const char *key);
/* Sets @error with the place of @key; returns false. */
bool orr_json_fail(const OrrJson *json, JsonObject *object, const char *key, GError **error,
                   const char *format, ...) G_GNUC_PRINTF(5, 6);

#endif
