/* Whether a text is JSON, strictly; and the line of a value in it. */
#ifndef ORR_IO_JSON_SCAN_H
#define ORR_IO_JSON_SCAN_H

#include "sim/base/error.h"

/**
 * orr_json_scan: refuses what RFC 8259 does not have, and keys that stand twice in one object (as
 * they are written: escapes are not resolved for that).
 * @has_infinity: take Infinity and -Infinity and overwrite them in @text with a null of equal
 * length. Returns: true, or false with @error "FILE:LINE:COLUMN: ...".
 */
bool orr_json_scan(const char *name, char *text, gsize length, bool has_infinity, GError **error);

/* The line of the value at @path ("a.b[3].c") of a sound text; 0 if there is none. */
guint orr_json_line_of(const char *text, gsize length, const char *path);

#endif
