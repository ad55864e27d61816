/* Key files (GLib's syntax) with line numbers, units and all errors at once.
 *
 * A reader opens a file, asks for every key it knows (defaults are allowed and remembered), then
 * calls orr_keys_finish, which reports every error of the file together: syntax, duplicate keys,
 * missing or foreign units, values out of range, missing keys, unknown groups and keys (with the
 * nearest known name). ` #` starts a comment, also behind a value. Getters never fail: on an error
 * they note it and return the default, so that one pass finds all errors. */
#ifndef ORR_IO_KEYS_H
#define ORR_IO_KEYS_H

#include "sim/base/units.h"

typedef struct OrrKeys OrrKeys;

OrrKeys *orr_keys_load(const char *path, GError **error);
/* @name stands for the file in messages. @text needs no final NUL; @length in bytes. */
OrrKeys *orr_keys_parse(const char *name, const char *text, gsize length, GError **error);
void orr_keys_free(OrrKeys *keys);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrKeys, orr_keys_free)

/* Overrides a value before it is read, as `--set group.key=value` does; @origin names who says so
 * ("--set") and stands in messages where a line number would. The key need not exist yet. */
void orr_keys_override(OrrKeys *keys, const char *group, const char *key, const char *value,
                       const char *origin);
/* Messages about a value that was overridden then name it as [@said] KEY: as it was written where
 * keys of several groups are overridden by one name. */
void orr_keys_said_as(OrrKeys *keys, const char *group, const char *key, const char *said);

const char *orr_keys_name(const OrrKeys *keys);
const char *orr_keys_text(const OrrKeys *keys, gsize *length); /* whole text, for a checksum */
bool orr_keys_has(const OrrKeys *keys, const char *group, const char *key);
bool orr_keys_has_group(const OrrKeys *keys, const char *group);
/* Names of the keys of a group, NULL-terminated, in file order; they count as known. g_strfreev. */
char **orr_keys_list(OrrKeys *keys, const char *group);

typedef enum {
    ORR_KEY_OPTIONAL = 0,
    ORR_KEY_REQUIRED = 1, /* absent is an error */
    ORR_KEY_QUIET = 2     /* absent: default is not listed among the assumptions */
} OrrKeyFlags;

/* Text; "" if absent and no @fallback. Owned by @keys. */
const char *orr_keys_string(OrrKeys *keys, const char *group, const char *key, const char *fallback,
                            OrrKeyFlags flags);
/* A number with its unit, within [@min, @max]; outside is an error that names the range. */
double orr_keys_number(OrrKeys *keys, const char *group, const char *key, OrrDim dim, double min,
                       double max, double fallback, OrrKeyFlags flags);
/* A whole number, optional noun behind it ("8 GPUs"); @noun NULL: none is allowed. */
int64_t orr_keys_int(OrrKeys *keys, const char *group, const char *key, const char *noun,
                     int64_t min, int64_t max, int64_t fallback, OrrKeyFlags flags);
/* yes/no, true/false, on/off, 1/0. */
bool orr_keys_bool(OrrKeys *keys, const char *group, const char *key, bool fallback,
                   OrrKeyFlags flags);
/* One of @names (NULL-terminated); returns its index. The error lists what would do. */
int orr_keys_enum(OrrKeys *keys, const char *group, const char *key, const char *const *names,
                  int fallback, OrrKeyFlags flags);
/* Comma- or semicolon-separated list, g_strfreev; NULL if absent. */
char **orr_keys_strings(OrrKeys *keys, const char *group, const char *key, OrrKeyFlags flags);

/* Notes an error at a key (line, key and value seen are added), reported by orr_keys_finish. */
void orr_keys_complain(OrrKeys *keys, const char *group, const char *key, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Where a key stands, as messages begin: "FILE:LINE: [GROUP] KEY = VALUE"; g_free. For errors that
 * are not told with the rest of the file, of what the key names. */
char *orr_keys_place(const OrrKeys *keys, const char *group, const char *key);

/* "FILE:LINE", or what an override named as its origin; g_free. */
char *orr_keys_origin(const OrrKeys *keys, const char *group, const char *key);

/* What was assumed: each default that was used, in order of asking. */
typedef struct {
    const char *group, *key, *value;
} OrrKeyDefault;
const OrrKeyDefault *orr_keys_defaults(const OrrKeys *keys, guint *n);

/* false with every error of the file in one @error (ORR_ERROR_INPUT), a line each:
 * "FILE:LINE: [GROUP] KEY = VALUE: what is wrong; what would do". */
bool orr_keys_finish(OrrKeys *keys, GError **error);

#endif
