#include "topologies/xml.h"

#include <string.h>

#include "sim/io/text.h"

#define MAX_DEPTH 64         /* PCI trees nest about ten deep, hwloc's about twenty */
#define MAX_ELEMENTS 1000000 /* ours: the largest samples have a thousand */

typedef struct {
    const char *name;
    OrrXml *root, *at;
    guint depth, n_elements;
} Reader;

static bool fail(GError **error, const char *text) {
    g_set_error_literal(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, text);
    return false;
}

static void on_start(GMarkupParseContext *context, const char *name, const char **keys,
                     const char **values, gpointer data, GError **error) {
    Reader *r = data;
    int line;
    if (++r->depth > MAX_DEPTH || ++r->n_elements > MAX_ELEMENTS) {
        fail(error, "more than 64 levels or a million elements");
        return;
    }
    if (r->root && !r->at) {
        fail(error, "a second root element");
        return;
    }
    g_markup_parse_context_get_position(context, &line, NULL);
    OrrXml *xml = g_new0(OrrXml, 1);
    xml->name = g_strdup(name);
    xml->keys = g_strdupv((char **)keys);
    xml->values = g_strdupv((char **)values);
    xml->parent = r->at;
    xml->children = g_ptr_array_new_with_free_func((GDestroyNotify)orr_xml_free);
    xml->line = (uint32_t)MAX(line, 1);
    if (r->at)
        g_ptr_array_add(r->at->children, xml);
    else
        r->root = xml;
    r->at = xml;
}

static void on_end(GMarkupParseContext *context, const char *name, gpointer data, GError **error) {
    (void)context, (void)name, (void)error;
    Reader *r = data;
    r->depth--;
    r->at = r->at->parent;
}

static void on_text(GMarkupParseContext *context, const char *text, gsize length, gpointer data,
                    GError **error) {
    (void)context, (void)error;
    Reader *r = data;
    if (!r->at || r->at->children->len > 0)
        return;
    char *old = r->at->text;
    r->at->text = g_strdup_printf("%s%.*s", old ? old : "", (int)MIN(length, 1u << 20), text);
    g_free(old);
}

static void on_other(GMarkupParseContext *context, const char *text, gsize length, gpointer data,
                     GError **error) {
    (void)context, (void)data;
    if (g_strstr_len(text, (gssize)length, "<!ENTITY"))
        fail(error, "the document declares entities, which are not expanded here");
}

OrrXml *orr_xml_parse(const char *name, const char *text, gsize length, GError **error) {
    static const GMarkupParser parser = {on_start, on_end, on_text, on_other, NULL};
    Reader r = {.name = name};
    GError *why = NULL;
    int line;
    /* GMarkup warns on standard error about bytes that are not UTF-8, so they never get there */
    int skip = orr_text_check(name, text, length, error);
    if (skip < 0)
        return NULL;
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &r, NULL);
    bool is_read =
        g_markup_parse_context_parse(context, text + skip, (gssize)length - skip, &why) &&
        g_markup_parse_context_end_parse(context, &why);
    g_markup_parse_context_get_position(context, &line, NULL);
    g_markup_parse_context_free(context);
    if (is_read && r.root)
        return r.root;
    orr_xml_free(r.root);
    /* GMarkup begins its own messages with a place that ours has already */
    const char *message = why ? why->message : "there is no element";
    const char *colon = g_str_has_prefix(message, "Error on line") ? strstr(message, ": ") : NULL;
    /* and cuts what it quotes anywhere, also inside a character */
    g_autofree char *valid = g_utf8_make_valid(colon ? colon + 2 : message, -1);
    orr_fail_input(error, "%s:%d: not sound XML: %s", name, MAX(line, 1), valid);
    g_clear_error(&why);
    return NULL;
}

void orr_xml_free(OrrXml *xml) {
    if (!xml)
        return;
    g_free(xml->name);
    g_free(xml->text);
    g_strfreev(xml->keys);
    g_strfreev(xml->values);
    g_ptr_array_unref(xml->children);
    g_free(xml);
}

const char *orr_xml_get(const OrrXml *xml, const char *key) {
    for (guint i = 0; xml->keys[i]; i++)
        if (strcmp(xml->keys[i], key) == 0)
            return xml->values[i];
    return NULL;
}
