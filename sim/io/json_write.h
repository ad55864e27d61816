/* A streaming writer of JSON: nothing is held but the nesting. */
#ifndef ORR_IO_JSON_WRITE_H
#define ORR_IO_JSON_WRITE_H

#include "sim/io/file.h"

#define ORR_JSON_MAX_DEPTH 32 /* ours: records nest six deep */

typedef struct {
    OrrOut *out;    /* borrowed */
    bool is_pretty; /* a member a line, two blanks a level */
    guint depth;
    bool has_member[ORR_JSON_MAX_DEPTH];
    bool is_inline[ORR_JSON_MAX_DEPTH]; /* this level and below on one line although pretty */
} OrrJsonWriter;

/* @key is NULL inside arrays and at the root. */
void orr_json_begin_object(OrrJsonWriter *w, const char *key);
void orr_json_begin_object_inline(OrrJsonWriter *w, const char *key);
void orr_json_end_object(OrrJsonWriter *w);
void orr_json_begin_array(OrrJsonWriter *w, const char *key);
void orr_json_begin_array_inline(OrrJsonWriter *w, const char *key);
void orr_json_end_array(OrrJsonWriter *w);
void orr_json_put_int(OrrJsonWriter *w, const char *key, int64_t value);
/* Of any size: JSON's integers have no end, though some readers do. */
void orr_json_put_wide(OrrJsonWriter *w, const char *key, __int128 value);
/* Shortest decimal that reads back the same; null if not finite. */
void orr_json_put_double(OrrJsonWriter *w, const char *key, double value);
void orr_json_put_bool(OrrJsonWriter *w, const char *key, bool value);
void orr_json_put_null(OrrJsonWriter *w, const char *key);
/* NULL is written as null; bytes that are not UTF-8 as U+FFFD. */
void orr_json_put_string(OrrJsonWriter *w, const char *key, const char *value);
/* Nanoseconds as microseconds with three decimals, as trace viewers want `ts` and `dur`. */
void orr_json_put_us(OrrJsonWriter *w, const char *key, int64_t ns);

#endif
