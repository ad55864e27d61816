/* nccl-tests as JSON (-J FILE, from 2.17). Booleans and numbers that are none are strings there,
 * n_wrong is null where nothing was checked. The environment of the run stands in the file whole:
 * only NCCL_* leaves this reader. */
#include "calibrate/nccl_tests_priv.h"

#include <math.h>
#include <string.h>

#include "sim/io/json.h"

#define MAX_RESULTS 1000000 /* ours: a sweep has some dozens */

typedef struct {
    const OrrImport *import;
    const OrrJson *json;
    GPtrArray *drafts;
    JsonObject *root;
} Reader;

/* A number, or NAN for null and the strings "nan", "inf", "N/A"; false: something else. */
static bool loose_number(JsonObject *object, const char *key, double *value) {
    *value = NAN;
    JsonNode *node = json_object_get_member(object, key);
    if (!node || json_node_is_null(node))
        return true;
    if (!JSON_NODE_HOLDS_VALUE(node))
        return false;
    if (json_node_get_value_type(node) == G_TYPE_STRING) {
        const char *end, *text = json_node_get_string(node);
        double number;
        if (orr_log_number(text, &number, &end) && *end == 0)
            *value = number;
        return true;
    }
    *value = json_node_get_double(node);
    return true;
}

static bool read_call(const Reader *r, JsonObject *result, const char *key, OrrMeasuredCall *call,
                      GError **error) {
    call->n_wrong = -1;
    if (!orr_json_has(result, key))
        return true;
    JsonObject *o;
    double time_us, algbw, busbw, wrong;
    if (!orr_json_object(r->json, result, key, &o, error))
        return false;
    if (!loose_number(o, "time", &time_us))
        return orr_json_fail(r->json, o, "time", error, "microseconds are needed");
    if (!loose_number(o, "alg_bw", &algbw) || !loose_number(o, "bus_bw", &busbw))
        return orr_json_fail(r->json, o, "bus_bw", error, "GB/s are needed");
    if (!loose_number(o, "nwrong", &wrong))
        return orr_json_fail(r->json, o, "nwrong", error, "a count or null is needed");
    call->time_ns = time_us * 1e3;
    call->algbw_bytes_per_s = algbw * 1e9;
    call->busbw_bytes_per_s = busbw * 1e9;
    call->n_wrong = isnan(wrong) ? -1 : (int64_t)CLAMP(wrong, 0, 9e18);
    return true;
}

static bool read_result(const Reader *r, JsonObject *o, GError **error) {
    OrrMeasuredCollective row = {.root = -1};
    const char *type, *name = NULL, *root = NULL;
    uint32_t element_bytes;
    int64_t value;
    if (!orr_json_int(r->json, o, "size", 0, ORR_CALIBRATE_MAX_BYTES, &row.bytes, error) ||
        !orr_json_int(r->json, o, "count", 0, ORR_CALIBRATE_MAX_BYTES, &row.count, error) ||
        !orr_json_string(r->json, o, "type", &type, error) ||
        !read_call(r, o, "out_of_place", &row.out_of_place, error) ||
        !read_call(r, o, "in_place", &row.in_place, error))
        return false;
    if (orr_json_has(o, "experiment_name") &&
        !orr_json_string(r->json, o, "experiment_name", &name, error))
        return false;
    JsonNode *node = json_object_get_member(o, "root");
    if (node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
        root = json_node_get_string(node);
    if (root && orr_log_int(root, &value))
        row.root = (int32_t)CLAMP(value, -1, INT32_MAX);
    g_strlcpy(row.dtype_name, type, sizeof row.dtype_name);
    row.dtype = orr_calibrate__dtype(type, &element_bytes);
    OrrCollective kind = ORR_N_COLLECTIVES;
    bool has_kind = name && orr_calibrate__collective(name, &kind);
    OrrTableDraft *draft = r->drafts->len ? r->drafts->pdata[r->drafts->len - 1] : NULL;
    if (!draft || (has_kind && draft->has_kind && draft->table->kind != kind)) {
        draft = orr_calibrate__draft_new(r->drafts, r->import->path, 0);
        draft->has_kind = has_kind;
        draft->is_named_bad = name && !has_kind;
        draft->table->kind = kind;
    }
    node = json_object_get_member(o, "redop");
    if (node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
        draft->has_redop |= strcmp(json_node_get_string(node), "none") != 0;
    if (row.bytes == 0)
        return true;
    orr_calibrate__judge_row(&row);
    if (row.flaw)
        orr_calibrate__note(r->import, 0, "size %" G_GINT64_FORMAT ": %s: the row is left out",
                            row.bytes, row.flaw);
    g_array_append_val(draft->rows, row);
    return true;
}

/* NCCL_* of the environment, sorted as it stands; the rest is nobody's business. */
static char *read_environment(const Reader *r) {
    JsonNode *node = json_object_get_member(r->root, "env");
    if (!node || !JSON_NODE_HOLDS_ARRAY(node))
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    JsonArray *env = json_node_get_array(node);
    guint n_left_out = 0;
    for (guint i = 0; i < json_array_get_length(env); i++) {
        JsonNode *item = json_array_get_element(env, i);
        const char *setting = JSON_NODE_HOLDS_VALUE(item) ? json_node_get_string(item) : NULL;
        if (setting && g_str_has_prefix(setting, "NCCL_"))
            g_string_append_printf(text, "%s%s", text->len ? " " : "", setting);
        else
            n_left_out++;
    }
    if (n_left_out > 0)
        orr_calibrate__note(r->import, 0,
                            "env holds the whole environment of the run; %u settings that are "
                            "not NCCL_* are not read",
                            n_left_out);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static bool read_devices(const Reader *r, OrrMeasuredTable *table, GError **error) {
    JsonArray *devices;
    if (!orr_json_has(r->root, "devices"))
        return true;
    if (!orr_json_array(r->json, r->root, "devices", &devices, error))
        return false;
    g_autoptr(GHashTable) hosts = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < json_array_get_length(devices); i++) {
        JsonNode *node = json_array_get_element(devices, i);
        const char *host, *info;
        if (!JSON_NODE_HOLDS_OBJECT(node))
            return orr_json_fail(r->json, r->root, "devices", error, "objects are needed");
        JsonObject *o = json_node_get_object(node);
        if (orr_json_has(o, "hostname") && orr_json_string(r->json, o, "hostname", &host, NULL))
            g_hash_table_add(hosts, (gpointer)host);
        if (!table->gpu && orr_json_has(o, "device_info") &&
            orr_json_string(r->json, o, "device_info", &info, NULL))
            table->gpu = g_strdup(info);
    }
    table->n_ranks = json_array_get_length(devices);
    table->n_nodes = g_hash_table_size(hosts);
    return true;
}

static bool refuse_schema(const Reader *r, GError **error) {
    const char *name;
    if (orr_json_has(r->root, "identifier") &&
        orr_json_string(r->json, r->root, "identifier", &name, NULL))
        return orr_json_fail(r->json, r->root, "identifier", error,
                             "this JSON of a fork is not read; nccl-tests writes version, "
                             "results, ...");
    return orr_fail_input(error, "%s: no JSON of nccl-tests: version and results are missing",
                          r->import->path);
}

bool orr_calibrate__read_json(const OrrImport *import, const char *text, gsize length,
                              GPtrArray *drafts, GError **error) {
    g_autoptr(OrrJson) json = orr_json_parse(import->path, text, length, ORR_JSON_STRICT, error);
    JsonObject *root = json ? orr_json_root_object(json, error) : NULL;
    if (!root)
        return false;
    Reader r = {import, json, drafts, root};
    JsonArray *results;
    int64_t version, nccl = 0;
    if (!orr_json_has(root, "version") || !orr_json_has(root, "results"))
        return refuse_schema(&r, error);
    if (!orr_json_int(json, root, "version", 1, 3, &version, error) ||
        !orr_json_array(json, root, "results", &results, error))
        return false;
    if (orr_json_has(root, "nccl_version") &&
        !orr_json_int(json, root, "nccl_version", 0, 999999, &nccl, error))
        return false;
    for (guint i = 0; i < MIN(json_array_get_length(results), MAX_RESULTS); i++) {
        JsonNode *node = json_array_get_element(results, i);
        if (!JSON_NODE_HOLDS_OBJECT(node))
            return orr_json_fail(json, root, "results", error, "objects are needed");
        if (!read_result(&r, json_node_get_object(node), error))
            return false;
    }
    g_autofree char *environment = read_environment(&r);
    for (guint i = 0; i < drafts->len; i++) {
        OrrMeasuredTable *table = ((OrrTableDraft *)drafts->pdata[i])->table;
        table->source = g_strdup_printf("nccl-tests, JSON version %d", (int)version);
        table->environment = g_strdup(environment);
        if (nccl > 0)
            table->nccl_version = g_strdup_printf("%d.%d.%d", (int)nccl / 10000,
                                                  (int)nccl / 100 % 100, (int)nccl % 100);
        if (!read_devices(&r, table, error))
            return false;
    }
    if (drafts->len == 0)
        return orr_json_fail(json, root, "results", error, "there is no result");
    return true;
}
