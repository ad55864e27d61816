/* JSON, TOML and YAML as flat names: "zero_optimization.stage". */
#include <string.h>

#include "config.h"
#include "sim/io/json.h"
#include "sim/io/log.h"
#include "sim/io/text.h"
#include "workloads/config_priv.h"

#define MAX_DEPTH 16 /* ours: configurations nest four deep */

static void say_at(OrrConfig *c, const char *prefix, const char *key, const char *value) {
    g_autofree char *name = *prefix ? g_strdup_printf("%s.%s", prefix, key) : g_strdup(key);
    orr_config__say(c, name, value);
}

static void flatten(OrrConfig *c, const char *prefix, JsonObject *o, guint depth) {
    g_autoptr(GList) keys = json_object_get_members(o);
    for (GList *at = keys; at; at = at->next) {
        JsonNode *node = json_object_get_member(o, at->data);
        if (JSON_NODE_HOLDS_OBJECT(node) && depth < MAX_DEPTH) {
            g_autofree char *name =
                *prefix ? g_strdup_printf("%s.%s", prefix, (char *)at->data) : g_strdup(at->data);
            flatten(c, name, json_node_get_object(node), depth + 1);
        } else if (JSON_NODE_HOLDS_VALUE(node)) {
            GType type = json_node_get_value_type(node);
            g_autofree char *text =
                type == G_TYPE_STRING    ? g_strdup(json_node_get_string(node))
                : type == G_TYPE_BOOLEAN ? g_strdup(json_node_get_boolean(node) ? "true" : "false")
                : type == G_TYPE_INT64
                    ? g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node))
                    : g_strdup("");
            say_at(c, prefix, at->data, text);
        }
    }
}

void orr_config__flatten(OrrConfig *c, const char *prefix, JsonObject *object) {
    flatten(c, prefix, object, 0);
}

bool orr_config__read_json(OrrConfig *c, const char *text, gsize length, GError **error) {
    g_autoptr(OrrJson) json = orr_json_parse(c->import->path, text, length, ORR_JSON_STRICT, error);
    JsonObject *root = json ? orr_json_root_object(json, error) : NULL;
    if (!root)
        return false;
    flatten(c, "", root, 0);
    return true;
}

/* The text in front of a comment: '#' outside of quotes. */
static char *without_comment(const char *line) {
    char quote = 0;
    const char *at = line;
    for (; *at && (quote || *at != '#'); at++)
        if (*at == '"' || *at == '\'')
            quote = !quote ? *at : quote == *at ? 0 : quote;
    return g_strstrip(g_strndup(line, (gsize)(at - line)));
}

static bool fail_line(const OrrConfig *c, guint line, const char *text, const char *what,
                      GError **error) {
    g_autofree char *excerpt = orr_text_excerpt(text);
    return orr_fail_input(error, "%s:%u: %s: %s", c->import->path, line, excerpt, what);
}

bool orr_config__read_toml(OrrConfig *c, const char *text, gsize length, GError **error) {
    g_autoptr(OrrLog) log = orr_log_parse(c->import->path, text, length, error);
    g_autofree char *table = g_strdup("");
    for (guint i = 0; log && i < log->n_lines; i++) {
        g_autofree char *line = without_comment(log->lines[i]);
        gsize n = strlen(line);
        if (n == 0)
            continue;
        if (line[0] == '[' && line[n - 1] == ']' && line[1] != '[') {
            g_free(table);
            table = g_strndup(line + 1, n - 2);
            continue;
        }
        char *equals = strchr(line, '=');
        if (!equals || equals == line)
            return fail_line(c, i + 1, line, "[table] or key = value would do", error);
        *equals = 0;
        g_strstrip(line);
        char *value = g_strstrip(equals + 1);
        n = strlen(value);
        bool is_open =
            n == 0 || (value[0] == '[' && value[n - 1] != ']') ||
            ((value[0] == '"' || value[0] == '\'') && (n < 2 || value[n - 1] != value[0]));
        if (is_open || g_str_has_prefix(value, "\"\"\"") || value[0] == '{')
            return fail_line(c, i + 1, line,
                             "its value must stand on the line: a string, a number, true, false or "
                             "an array",
                             error);
        if (value[0] == '"' || value[0] == '\'') {
            value[n - 1] = 0;
            value++;
        }
        say_at(c, table, line, value);
    }
    return log != NULL;
}

#ifdef HAVE_YAML
#include <yaml.h>

/* Where an event falls: keys of the mappings around it; lists count as leaves and are skipped. */
typedef struct {
    char *key[MAX_DEPTH];
    bool is_list[MAX_DEPTH];
    guint depth;
} Path;

static void say_scalar(OrrConfig *c, const Path *path, const char *value) {
    g_autoptr(GString) name = g_string_new(NULL);
    for (guint i = 1; i <= path->depth; i++) {
        if (path->is_list[i])
            return;
        g_string_append_printf(name, "%s%s", i > 1 ? "." : "", path->key[i]);
    }
    orr_config__say_expanded(c, name->str, value);
}

/* false: nested too deep. */
static bool take_event(OrrConfig *c, Path *path, const yaml_event_t *event) {
    guint d = path->depth;
    switch (event->type) {
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        if (d + 1 == MAX_DEPTH)
            return false;
        path->depth++;
        path->key[path->depth] = NULL;
        path->is_list[path->depth] = event->type == YAML_SEQUENCE_START_EVENT;
        return true;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        g_clear_pointer(&path->key[d], g_free);
        path->depth--;
        g_clear_pointer(&path->key[path->depth], g_free);
        return true;
    case YAML_SCALAR_EVENT:
        if (d == 0 || path->is_list[d])
            return true;
        if (!path->key[d]) {
            path->key[d] = g_utf8_make_valid((const char *)event->data.scalar.value, -1);
            return true;
        }
        say_scalar(c, path, (const char *)event->data.scalar.value);
        g_clear_pointer(&path->key[d], g_free);
        return true;
    default: /* libyaml's own enumeration: streams, documents, aliases */
        return true;
    }
}

bool orr_config__read_yaml(OrrConfig *c, const char *text, gsize length, GError **error) {
    yaml_parser_t parser;
    yaml_event_t event;
    Path path = {0};
    bool is_sound = true, is_done = false;
    if (!yaml_parser_initialize(&parser))
        return orr_fail_env(error, "libyaml cannot start");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    while (is_sound && !is_done) {
        if (!yaml_parser_parse(&parser, &event)) {
            is_sound = orr_fail_input(error, "%s:%u: not sound YAML: %s", c->import->path,
                                      (guint)parser.problem_mark.line + 1,
                                      parser.problem ? parser.problem : "cannot be read");
            break;
        }
        is_done = event.type == YAML_STREAM_END_EVENT;
        if (!take_event(c, &path, &event))
            is_sound = orr_fail_input(error, "%s:%u: nested more than %d deep", c->import->path,
                                      (guint)event.start_mark.line + 1, MAX_DEPTH - 1);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    for (guint i = 0; i < MAX_DEPTH; i++)
        g_free(path.key[i]);
    return is_sound;
}
#else
bool orr_config__read_yaml(OrrConfig *c, const char *text, gsize length, GError **error) {
    (void)text, (void)length;
    return orr_fail_env(error, "%s: this orrery was built without libyaml", c->import->path);
}
#endif
