/* Execution traces as JSON: {"schema": ..., "nodes": [{"id", "name", "ctrl_deps" or "parent",
 * ...}]}. They list the host's operations; the parent is what an operation was called from and
 * comes first. Traces that chakra_trace_link joined with a profile ("ET+") have times (microseconds
 * without those of the calls inside) and the kernels, with their stream. */
#include "traces/chakra_priv.h"

#include <string.h>

#include "sim/io/json.h"
#include "traces/kineto_names.h"

static void add_dep(OrrChakraDraft *draft, int64_t dep) {
    uint64_t id = (uint64_t)dep;
    g_array_append_val(draft->dep_ids, id);
    g_byte_array_append(draft->is_ctrl, &(uint8_t){0}, 1);
}

/* A dependency or a list of them; absent or null is none. */
static bool read_deps(OrrChakraDraft *draft, const OrrJson *json, JsonObject *o, const char *key,
                      int64_t self, GError **error) {
    int64_t dep;
    if (!orr_json_has(o, key))
        return true;
    if (!JSON_NODE_HOLDS_ARRAY(json_object_get_member(o, key))) {
        if (!orr_json_int(json, o, key, 0, INT64_MAX, &dep, error))
            return false;
        if (dep != self)
            add_dep(draft, dep);
        return true;
    }
    JsonArray *list = json_object_get_array_member(o, key);
    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonNode *node = json_array_get_element(list, i);
        if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64 ||
            json_node_get_int(node) < 0)
            return orr_json_fail(json, o, key, error, "ids of nodes would do");
        add_dep(draft, json_node_get_int(node));
    }
    return true;
}

/* "tid" of a node, or of its list of attributes since schema 1.0.2. */
static int64_t thread_of(const OrrJson *json, JsonObject *o) {
    int64_t tid = 0;
    JsonArray *attributes;
    if (orr_json_has(o, "tid"))
        return orr_json_int(json, o, "tid", 0, INT64_MAX, &tid, NULL) ? tid : 0;
    if (!orr_json_has(o, "attrs") || !orr_json_array(json, o, "attrs", &attributes, NULL))
        return 0;
    for (guint i = 0; i < json_array_get_length(attributes); i++) {
        JsonNode *node = json_array_get_element(attributes, i);
        JsonObject *a = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        const char *name;
        if (a && orr_json_has(a, "name") && orr_json_string(json, a, "name", &name, NULL) &&
            strcmp(name, "tid") == 0 && orr_json_int(json, a, "value", 0, INT64_MAX, &tid, NULL))
            return tid;
    }
    return 0;
}

/* What a profile adds: times, and kernels in place of calls. */
static bool read_profile(const OrrJson *json, JsonObject *o, OrrReplayNode *node, GError **error) {
    static const char *const keys[] = {"exclusive_dur", "dur"};
    double micros;
    for (guint i = 0; i < G_N_ELEMENTS(keys) && !node->has_duration; i++) {
        if (!orr_json_has(o, keys[i]))
            continue;
        if (!orr_json_double(json, o, keys[i], 0, 1e15, &micros, error))
            return false;
        node->duration_ns = (int64_t)(micros * 1e3 + 0.5);
        node->has_duration = true;
    }
    const char *category;
    bool is_device = orr_json_has(o, "cat") && orr_json_has(o, "stream") &&
                     orr_json_string(json, o, "cat", &category, NULL) &&
                     (strcmp(category, "kernel") == 0 || g_str_has_prefix(category, "gpu_mem"));
    if (!is_device)
        return true;
    node->is_host = false;
    return orr_json_int(json, o, "stream", 0, INT64_MAX, &node->stream, error);
}

static bool read_node(OrrChakraDraft *draft, const OrrJson *json, JsonObject *o, GError **error) {
    OrrReplayNode node = {.first_dep = draft->dep_ids->len, .is_host = true};
    const char *name, *key = orr_json_has(o, "ctrl_deps") ? "ctrl_deps" : "parent";
    int64_t id;
    if (!orr_json_int(json, o, "id", 0, INT64_MAX, &id, error) ||
        !orr_json_string(json, o, "name", &name, error) ||
        !read_deps(draft, json, o, key, id, error) ||
        !read_deps(draft, json, o, "inter_thread_dep", id, error) ||
        !read_deps(draft, json, o, "sync_dep", id, error))
        return false;
    node.stream = thread_of(json, o);
    if (!read_profile(json, o, &node, error))
        return false;
    node.id = (uint64_t)id;
    node.name = g_strdup(name);
    node.n_deps = draft->dep_ids->len - node.first_dep;
    OrrCollective kind = ORR_N_COLLECTIVES;
    bool is_transfer = !node.is_host && orr_traces__is_transfer(name);
    if (is_transfer && orr_traces__transfer_kind(name, &kind) && kind == ORR_SEND_RECV)
        orr_traces__chakra_add(draft, node, ORR_CHAKRA_SEND, UINT64_MAX);
    else if (is_transfer)
        orr_traces__chakra_add(draft, node, ORR_CHAKRA_COLL, orr_chakra_comm_type(kind));
    else
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
