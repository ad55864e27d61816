#include "sim/io/json_write.h"

#include <math.h>
#include <string.h>

static void put_escaped(OrrOut *out, const char *text) {
    orr_out_write(out, "\"", 1);
    const char *from = text;
    for (; *text; text++) {
        guchar c = (guchar)*text;
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        orr_out_write(out, from, (gsize)(text - from));
        from = text + 1;
        if (c == '"' || c == '\\')
            orr_out_printf(out, "\\%c", c);
        else if (c == '\n')
            orr_out_puts(out, "\\n");
        else if (c == '\t')
            orr_out_puts(out, "\\t");
        else
            orr_out_printf(out, "\\u%04x", c);
    }
    orr_out_write(out, from, (gsize)(text - from));
    orr_out_write(out, "\"", 1);
}

static void put_text(OrrOut *out, const char *text) {
    if (g_utf8_validate(text, -1, NULL))
        return put_escaped(out, text);
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    put_escaped(out, valid);
}

static bool is_on_own_line(const OrrJsonWriter *w) {
    return w->is_pretty && !(w->depth > 0 && w->is_inline[w->depth - 1]);
}

static void new_line(OrrJsonWriter *w) {
    static const char blanks[] = "                                                                ";
    orr_out_write(w->out, "\n", 1);
    orr_out_write(w->out, blanks, MIN(sizeof blanks - 1, (gsize)w->depth * 2));
}

/* Comma, line and key before a value. */
static void begin_member(OrrJsonWriter *w, const char *key) {
    if (w->depth > 0) {
        bool *has_member = &w->has_member[w->depth - 1];
        if (*has_member)
            orr_out_write(w->out, ",", 1);
        if (is_on_own_line(w))
            new_line(w);
        else if (*has_member && w->is_pretty)
            orr_out_write(w->out, " ", 1);
        *has_member = true;
    }
    if (key) {
        put_text(w->out, key);
        orr_out_puts(w->out, w->is_pretty ? ": " : ":");
    }
}

static void begin_level(OrrJsonWriter *w, const char *key, const char *bracket, bool is_inline) {
    begin_member(w, key);
    orr_out_puts(w->out, bracket);
    g_assert(w->depth < ORR_JSON_MAX_DEPTH);
    w->is_inline[w->depth] = is_inline || (w->depth > 0 && w->is_inline[w->depth - 1]);
    w->has_member[w->depth++] = false;
}

static void end_level(OrrJsonWriter *w, const char *bracket) {
    g_assert(w->depth > 0);
    bool breaks = w->has_member[w->depth - 1] && is_on_own_line(w);
    w->depth--;
    if (breaks)
        new_line(w);
    orr_out_puts(w->out, bracket);
    if (w->depth == 0 && w->is_pretty)
        orr_out_write(w->out, "\n", 1);
}

void orr_json_begin_object(OrrJsonWriter *w, const char *key) {
    begin_level(w, key, "{", false);
}

void orr_json_begin_object_inline(OrrJsonWriter *w, const char *key) {
    begin_level(w, key, "{", true);
}

void orr_json_end_object(OrrJsonWriter *w) {
    end_level(w, "}");
}

void orr_json_begin_array(OrrJsonWriter *w, const char *key) {
    begin_level(w, key, "[", false);
}

void orr_json_begin_array_inline(OrrJsonWriter *w, const char *key) {
    begin_level(w, key, "[", true);
}

void orr_json_end_array(OrrJsonWriter *w) {
    end_level(w, "]");
}

void orr_json_put_int(OrrJsonWriter *w, const char *key, int64_t value) {
    begin_member(w, key);
    orr_out_printf(w->out, "%" G_GINT64_FORMAT, value);
}

void orr_json_put_wide(OrrJsonWriter *w, const char *key, __int128 value) {
    char digits[48];
    guint at = sizeof digits;
    unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        digits[--at] = '-';
    begin_member(w, key);
    orr_out_puts(w->out, digits + at);
}

void orr_json_put_double(OrrJsonWriter *w, const char *key, double value) {
    begin_member(w, key);
    if (isfinite(value))
        orr_out_double(w->out, value);
    else
        orr_out_puts(w->out, "null");
}

void orr_json_put_bool(OrrJsonWriter *w, const char *key, bool value) {
    begin_member(w, key);
    orr_out_puts(w->out, value ? "true" : "false");
}

void orr_json_put_null(OrrJsonWriter *w, const char *key) {
    begin_member(w, key);
    orr_out_puts(w->out, "null");
}

void orr_json_put_string(OrrJsonWriter *w, const char *key, const char *value) {
    if (!value)
        return orr_json_put_null(w, key);
    begin_member(w, key);
    put_text(w->out, value);
}

void orr_json_put_us(OrrJsonWriter *w, const char *key, int64_t ns) {
    begin_member(w, key);
    guint64 size = ns < 0 ? -(guint64)ns : (guint64)ns;
    orr_out_printf(w->out, "%s%" G_GUINT64_FORMAT ".%03u", ns < 0 ? "-" : "", size / 1000,
                   (guint)(size % 1000));
}
