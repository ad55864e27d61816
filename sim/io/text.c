#include "sim/io/text.h"

#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* U+FEFF in UTF-8; RFC 3629, section 6 */
#define EXCERPT_BYTES 60               /* what a message of one line can bear */

guint orr_text_line(const char *text, gsize offset) {
    guint line = 1;
    for (gsize i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

int orr_text_check(const char *name, const char *text, gsize length, GError **error) {
    int skip = length >= 3 && memcmp(text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
    const char *end = NULL;
    if (length == 0 || g_utf8_validate_len(text, length, &end))
        return skip;
    gsize offset = (gsize)(end - text);
    const char *what = text[offset] == 0 ? "a NUL byte" : "bytes that are not UTF-8";
    orr_fail_input(error, "%s:%u: %s; it must be plain text", name, orr_text_line(text, offset),
                   what);
    return -1;
}

char *orr_text_excerpt(const char *text) {
    gsize length = strlen(text), keep = MIN(length, EXCERPT_BYTES);
    while (keep > 0 && keep < length && ((guchar)text[keep] & 0xc0) == 0x80)
        keep--; /* not inside a character */
    char *out = g_strdup_printf("%.*s%s", (int)keep, text, keep < length ? "..." : "");
    for (char *c = out; *c; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return out;
}
