/* A small checker of JSON Schema draft-07: type, required, properties, items, enum, const, minimum,
 * minItems, additionalProperties (as a schema). Other words are not used by our schemas. */
#ifndef TESTS_SCHEMA_CHECK_H
#define TESTS_SCHEMA_CHECK_H

#include <json-glib/json-glib.h>
#include <string.h>

static inline gboolean schema_type_holds(const char *type, JsonNode *v) {
    if (strcmp(type, "object") == 0)
        return JSON_NODE_HOLDS_OBJECT(v);
    if (strcmp(type, "array") == 0)
        return JSON_NODE_HOLDS_ARRAY(v);
    if (!JSON_NODE_HOLDS_VALUE(v))
        return FALSE;
    GType t = json_node_get_value_type(v);
    if (strcmp(type, "string") == 0)
        return t == G_TYPE_STRING;
    if (strcmp(type, "boolean") == 0)
        return t == G_TYPE_BOOLEAN;
    if (strcmp(type, "integer") == 0)
        return t == G_TYPE_INT64;
    return t == G_TYPE_INT64 || t == G_TYPE_DOUBLE;
}

static inline char *schema_flaw(JsonObject *schema, JsonNode *v, const char *path);

static inline char *schema_value_flaw(JsonObject *schema, JsonNode *v, const char *path) {
    if (json_object_has_member(schema, "type") &&
        !schema_type_holds(json_object_get_string_member(schema, "type"), v))
        return g_strdup_printf("%s is not of type %s", path,
                               json_object_get_string_member(schema, "type"));
    if (json_object_has_member(schema, "const") &&
        !json_node_equal(json_object_get_member(schema, "const"), v))
        return g_strdup_printf("%s is not the constant", path);
    if (json_object_has_member(schema, "enum")) {
        JsonArray *options = json_object_get_array_member(schema, "enum");
        guint i = 0, n = json_array_get_length(options);
        while (i < n && !json_node_equal(json_array_get_element(options, i), v))
            i++;
        if (i == n)
            return g_strdup_printf("%s is none of the enum", path);
    }
    if (json_object_has_member(schema, "minimum") &&
        json_node_get_double(v) < json_object_get_double_member(schema, "minimum"))
        return g_strdup_printf("%s is below the minimum", path);
    return NULL;
}

static inline char *schema_object_flaw(JsonObject *schema, JsonObject *o, const char *path) {
    if (json_object_has_member(schema, "required")) {
        JsonArray *required = json_object_get_array_member(schema, "required");
        for (guint i = 0; i < json_array_get_length(required); i++)
            if (!json_object_has_member(o, json_array_get_string_element(required, i)))
                return g_strdup_printf("%s lacks %s", path,
                                       json_array_get_string_element(required, i));
    }
    JsonObject *props = json_object_has_member(schema, "properties")
                            ? json_object_get_object_member(schema, "properties")
                            : NULL;
    g_autoptr(GList) names = json_object_get_members(o);
    for (GList *l = names; l; l = l->next) {
        JsonObject *sub = NULL;
        if (props && json_object_has_member(props, l->data))
            sub = json_object_get_object_member(props, l->data);
        else if (json_object_has_member(schema, "additionalProperties"))
            sub = json_object_get_object_member(schema, "additionalProperties");
        else
            return g_strdup_printf("%s has %s, which the schema does not know", path,
                                   (char *)l->data);
        g_autofree char *at = g_strdup_printf("%s.%s", path, (char *)l->data);
        char *flaw = schema_flaw(sub, json_object_get_member(o, l->data), at);
        if (flaw)
            return flaw;
    }
    return NULL;
}

/* NULL if @v is as @schema says, else where it is not; g_free. Unknown keys are flaws. */
static inline char *schema_flaw(JsonObject *schema, JsonNode *v, const char *path) {
    char *flaw = schema_value_flaw(schema, v, path);
    if (!flaw && JSON_NODE_HOLDS_OBJECT(v))
        flaw = schema_object_flaw(schema, json_node_get_object(v), path);
    if (flaw || !JSON_NODE_HOLDS_ARRAY(v))
        return flaw;
    JsonArray *a = json_node_get_array(v);
    if (json_object_has_member(schema, "minItems") &&
        json_array_get_length(a) < json_object_get_int_member(schema, "minItems"))
        return g_strdup_printf("%s is too short", path);
    for (guint i = 0; i < json_array_get_length(a) && !flaw; i++) {
        g_autofree char *at = g_strdup_printf("%s[%u]", path, i);
        flaw = schema_flaw(json_object_get_object_member(schema, "items"),
                           json_array_get_element(a, i), at);
    }
    return flaw;
}

#endif
