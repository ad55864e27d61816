/* Execution traces as JSON: {"schema": ..., "nodes": [{"id", "name", "ctrl_deps" or "parent",
 * ...}]}. They list the host's operations; the parent is what an operation was called from and
 * comes first. */
#include "traces/chakra_priv.h"

#include <string.h>

#include "sim/io/json.h"

static bool read_node(OrrChakraDraft *draft, const OrrJson *json, JsonObject *o, GError **error) {
    OrrReplayNode node = {.first_dep = draft->dep_ids->len, .is_host = true};
    const char *name, *key = orr_json_has(o, "ctrl_deps") ? "ctrl_deps" : "parent";
    int64_t id, parent, value;
    if (!orr_json_int(json, o, "id", 0, INT64_MAX, &id, error) ||
        !orr_json_string(json, o, "name", &name, error))
        return false;
    if (orr_json_has(o, key)) {
        if (!orr_json_int(json, o, key, 0, INT64_MAX, &parent, error))
            return false;
        uint64_t dep = (uint64_t)parent;
        if (parent != id) {
            g_array_append_val(draft->dep_ids, dep);
            g_byte_array_append(draft->is_ctrl, &(uint8_t){1}, 1);
        }
    }
    if (orr_json_has(o, "tid") && orr_json_int(json, o, "tid", 0, INT64_MAX, &value, NULL))
        node.stream = value;
    if (orr_json_has(o, "dur") && orr_json_int(json, o, "dur", 0, INT64_MAX / 1000, &value, NULL)) {
        node.duration_ns = value * 1000;
        node.has_duration = true;
    }
    node.id = (uint64_t)id;
    node.name = g_strdup(name);
    node.n_deps = draft->dep_ids->len - node.first_dep;
    orr_traces__chakra_add(draft, node, ORR_CHAKRA_COMP, UINT64_MAX);
    return true;
}

bool orr_traces__chakra_json(OrrChakraDraft *draft, const char *text, gsize length,
                             GError **error) {
    g_autoptr(OrrJson) json =
        orr_json_parse(draft->import->path, text, length, ORR_JSON_INFINITY, error);
    JsonObject *root = json ? orr_json_root_object(json, error) : NULL;
    JsonArray *nodes;
    const char *schema;
    if (!root || !orr_json_string(json, root, "schema", &schema, error) ||
        !orr_json_array(json, root, "nodes", &nodes, error))
        return false;
    if (!g_str_has_prefix(schema, "1."))
        return orr_json_fail(json, root, "schema", error, "1.0.1 to 1.1 would do");
    draft->version = g_strdup(schema);
    for (guint i = 0; i < json_array_get_length(nodes); i++) {
        JsonNode *node = json_array_get_element(nodes, i);
        if (!JSON_NODE_HOLDS_OBJECT(node))
            return orr_json_fail(json, root, "nodes", error, "objects are needed");
        if (!read_node(draft, json, json_node_get_object(node), error))
            return false;
    }
    return true;
}
