#include "sim/io/json.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/base/words.h"
#include "sim/io/json_scan.h"
#include "sim/io/text.h"

#define MAX_JSON_BYTES (1u << 30) /* ours: traces of a rank are a few hundred MB at most */

struct OrrJson {
    char *name, *text;
    gsize length;
    JsonParser *parser;
};

OrrJson *orr_json_parse(const char *name, const char *text, gsize length, OrrJsonFlags flags,
                        GError **error) {
    int skip = orr_text_check(name, text, length, error);
    if (skip < 0)
        return NULL;
    g_autoptr(OrrJson) json = g_new0(OrrJson, 1);
    json->name = g_strdup(name);
    json->text = g_strndup(text + skip, length - (gsize)skip);
    json->length = length - (gsize)skip;
    if (!orr_json_scan(name, json->text, json->length, (flags & ORR_JSON_INFINITY) != 0, error))
        return NULL;
    json->parser = json_parser_new_immutable();
    g_autoptr(GError) theirs = NULL;
    if (!json_parser_load_from_data(json->parser, json->text, (gssize)json->length, &theirs)) {
        orr_fail_input(error, "%s: %s", name, theirs->message);
        return NULL;
    }
    return g_steal_pointer(&json);
}

OrrJson *orr_json_load(const char *path, OrrJsonFlags flags, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(path, MAX_JSON_BYTES, &length, error);
    return text ? orr_json_parse(path, text, length, flags, error) : NULL;
}

void orr_json_free(OrrJson *json) {
    if (!json)
        return;
    g_clear_object(&json->parser);
    g_free(json->name);
    g_free(json->text);
    g_free(json);
}

const char *orr_json_name(const OrrJson *json) {
    return json->name;
}

const char *orr_json_text(const OrrJson *json, gsize *length) {
    if (length)
        *length = json->length;
    return json->text;
}

JsonNode *orr_json_root(const OrrJson *json) {
    return json_parser_get_root(json->parser);
}

JsonObject *orr_json_root_object(const OrrJson *json, GError **error) {
    JsonNode *root = orr_json_root(json);
    if (root && JSON_NODE_HOLDS_OBJECT(root))
        return json_node_get_object(root);
    orr_fail_input(error, "%s: holds no object; { \"key\": value } will do", json->name);
    return NULL;
}

/* Appends the way from @node to @object to @path; false, and @path as before, if it isn't there. */
static bool find_path(JsonNode *node, const JsonObject *object, GString *path) {
    gsize length = path->len;
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObject *here = json_node_get_object(node);
        if (here == object)
            return true;
        JsonObjectIter iter;
        const char *key;
        JsonNode *child;
        json_object_iter_init_ordered(&iter, here);
        while (json_object_iter_next_ordered(&iter, &key, &child)) {
            g_string_append_printf(path, "%s%s", path->len ? "." : "", key);
            if (find_path(child, object, path))
                return true;
            g_string_truncate(path, length);
        }
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);
        for (guint i = 0; i < json_array_get_length(array); i++) {
            g_string_append_printf(path, "[%u]", i);
            if (find_path(json_array_get_element(array, i), object, path))
                return true;
            g_string_truncate(path, length);
        }
    }
    return false;
}

bool orr_json_fail(const OrrJson *json, JsonObject *object, const char *key, GError **error,
                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_autoptr(GString) path = g_string_new(NULL);
    find_path(orr_json_root(json), object, path);
    JsonNode *node = json_object_get_member(object, key);
    guint line = orr_json_line_of(json->text, json->length, path->str);
    g_string_append_printf(path, "%s%s", path->len ? "." : "", key);
    if (!node)
        return orr_fail_input(error, "%s:%u: %s: %s", json->name, MAX(line, 1), path->str, what);
    line = orr_json_line_of(json->text, json->length, path->str);
    g_autofree char *value = json_to_string(node, FALSE);
    g_autofree char *shown = orr_text_excerpt(value);
    return orr_fail_input(error, "%s:%u: %s = %s: %s", json->name, MAX(line, 1), path->str, shown,
                          what);
}

bool orr_json_has(JsonObject *object, const char *key) {
    JsonNode *node = json_object_get_member(object, key);
    return node && !JSON_NODE_HOLDS_NULL(node);
}

/* The member, or NULL with @error, which says what would do, if it is absent. */
static JsonNode *need(const OrrJson *json, JsonObject *object, const char *key, const char *would,
                      GError **error) {
    JsonNode *node = json_object_get_member(object, key);
    if (node)
        return node;
    g_autoptr(GList) members = json_object_get_members(object);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (GList *m = members; m; m = m->next)
        g_ptr_array_add(names, m->data);
    g_ptr_array_add(names, NULL);
    const char *near = orr_words_nearest(key, (const char *const *)names->pdata);
    if (near)
        orr_json_fail(json, object, key, error, "is missing; there is %s; %s would do", near,
                      would);
    else
        orr_json_fail(json, object, key, error, "is missing; %s would do", would);
    return NULL;
}

static bool fail_kind(const OrrJson *json, JsonObject *object, const char *key, const char *what,
                      const char *will, GError **error) {
    return orr_json_fail(json, object, key, error, "%s; %s will do", what, will);
}

static bool is_number(JsonNode *node) {
    GType type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
    return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE;
}

bool orr_json_double(const OrrJson *json, JsonObject *object, const char *key, double min,
                     double max, double *value, GError **error) {
    g_autofree char *range = orr_units_range(min, max, ORR_DIM_NONE);
    JsonNode *node = need(json, object, key, range, error);
    if (!node)
        return false;
    if (!is_number(node))
        return fail_kind(json, object, key, "is not a number", range, error);
    double v = json_node_get_double(node);
    if (!(v >= min && v <= max))
        return fail_kind(json, object, key, "is out of range", range, error);
    *value = v;
    return true;
}

bool orr_json_int(const OrrJson *json, JsonObject *object, const char *key, int64_t min,
                  int64_t max, int64_t *value, GError **error) {
    g_autofree char *range = orr_units_whole_range(min, max);
    JsonNode *node = need(json, object, key, range, error);
    if (!node)
        return false;
    double d = is_number(node) ? json_node_get_double(node) : NAN;
    bool is_int = is_number(node) && json_node_get_value_type(node) == G_TYPE_INT64;
    if (!is_int && !(d == floor(d) && fabs(d) <= 0x1p53))
        return fail_kind(json, object, key, "is not a whole number", range, error);
    int64_t v = is_int ? json_node_get_int(node) : (int64_t)d;
    if (v < min || v > max)
        return fail_kind(json, object, key, "is out of range", range, error);
    *value = v;
    return true;
}

bool orr_json_bool(const OrrJson *json, JsonObject *object, const char *key, bool *value,
                   GError **error) {
    JsonNode *node = need(json, object, key, "true or false", error);
    if (!node)
        return false;
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_BOOLEAN)
        return orr_json_fail(json, object, key, error, "is not true or false");
    *value = json_node_get_boolean(node);
    return true;
}

bool orr_json_string(const OrrJson *json, JsonObject *object, const char *key, const char **value,
                     GError **error) {
    static const char will[] = "a text in quotes";
    JsonNode *node = need(json, object, key, will, error);
    if (!node)
        return false;
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING)
        return fail_kind(json, object, key, "is not a string", will, error);
    *value = json_node_get_string(node);
    return true;
}

bool orr_json_array(const OrrJson *json, JsonObject *object, const char *key, JsonArray **value,
                    GError **error) {
    static const char will[] = "a list, [a, b],";
    JsonNode *node = need(json, object, key, will, error);
    if (!node)
        return false;
    if (!JSON_NODE_HOLDS_ARRAY(node))
        return fail_kind(json, object, key, "is not an array", will, error);
    *value = json_node_get_array(node);
    return true;
}

bool orr_json_object(const OrrJson *json, JsonObject *object, const char *key, JsonObject **value,
                     GError **error) {
    static const char will[] = "an object, { \"key\": value },";
    JsonNode *node = need(json, object, key, will, error);
    if (!node)
        return false;
    if (!JSON_NODE_HOLDS_OBJECT(node))
        return fail_kind(json, object, key, "is not an object", will, error);
    *value = json_node_get_object(node);
    return true;
}
