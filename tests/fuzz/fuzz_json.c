/* JSON: the scan lets nothing through that json-glib refuses, and getters fail with their place. */
#include "sim/io/json.h"
#include "tests/fuzz/fuzz.h"

static void ask(const OrrJson *json, JsonObject *object) {
    static const char *const keys[] = {"hidden_size", "a", "name", "absent"};
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        GError *error = NULL;
        int64_t n;
        double d;
        const char *s;
        bool b;
        fuzz_check_error(orr_json_int(json, object, keys[i], 1, 1 << 20, &n, &error) ? json : NULL,
                         &error);
        fuzz_check_error(orr_json_double(json, object, keys[i], 0, 1, &d, &error) ? json : NULL,
                         &error);
        fuzz_check_error(orr_json_string(json, object, keys[i], &s, &error) ? json : NULL, &error);
        fuzz_check_error(orr_json_bool(json, object, keys[i], &b, &error) ? json : NULL, &error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (OrrJsonFlags flags = ORR_JSON_STRICT; flags <= ORR_JSON_INFINITY; flags++) {
        GError *error = NULL;
        g_autoptr(OrrJson) json =
            orr_json_parse("fuzz.json", (const char *)data, size, flags, &error);
        fuzz_check_error(json, &error);
        if (!json)
            continue;
        JsonObject *root = orr_json_root_object(json, NULL), *inner;
        if (!root)
            continue;
        ask(json, root);
        if (orr_json_object(json, root, "text_config", &inner, NULL))
            ask(json, inner);
    }
    return 0;
}
