/* Text as it comes in: valid UTF-8, no NUL, no byte-order mark. */
#ifndef ORR_IO_TEXT_H
#define ORR_IO_TEXT_H

#include "sim/base/error.h"

/**
 * orr_text_check: whether @text can be read as text; @name stands for the file in messages.
 * Returns: how many bytes to skip at the start (a byte-order mark), or -1 with @error
 * (ORR_ERROR_INPUT, with the line).
 */
int orr_text_check(const char *name, const char *text, gsize length, GError **error);

/* The line that byte @offset of @text lies on, from 1. */
guint orr_text_line(const char *text, gsize offset);

/* At most about 60 bytes of @text with control characters replaced, for messages; g_free. */
char *orr_text_excerpt(const char *text);

#endif
