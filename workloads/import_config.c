#include "workloads/import_config.h"

#include <stdarg.h>
#include <string.h>

#include "sim/io/file.h"
#include "sim/io/log.h"
#include "workloads/config_priv.h"

#define LIMIT_BYTES ((gsize)16 << 20) /* ours: configurations have some kilobytes */

/* Groups and keys in the order in which they are written. */
static const struct {
    const char *group;
    const char *keys[24];
} groups[] = {
    {"job", {"summary", "model", "cluster", "framework", "source", "clocks"}},
    {"layout",
     {"tp", "pp", "vpp", "cp", "dp", "sequence_parallel", "zero_stage", "hsdp_shard", "ends",
      "rank_order"}},
    {"batch", {"global", "micro_batches", "micro", "sequence"}},
    {"schedule", {"name"}},
    {"precision", {"compute"}},
    {"recompute", {"policy", "method", "layers"}},
    {"model",
     {"source", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "vocab",
      "norm", "activation", "position", "max_positions", "tied", "qkv_bias", "out_bias", "mlp_bias",
      "embedding_norm"}},
};

void orr_workloads__note(const OrrImport *import, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_string_append_printf(import->notes, "%s: %s\n", import->path, text);
}

const char *orr_config__said(const OrrConfig *c, const char *name) {
    const char *value = g_hash_table_lookup(c->said, name);
    return value && *value && strcmp(value, "null") != 0 ? value : NULL;
}

bool orr_config__is_true(const OrrConfig *c, const char *name) {
    const char *value = orr_config__said(c, name);
    return value && g_ascii_strcasecmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

int64_t orr_config__count(const OrrConfig *c, const char *name) {
    const char *value = orr_config__said(c, name);
    int64_t number;
    return value && orr_log_int(value, &number) && number >= 1 && number < 1000000000 ? number : 0;
}

void orr_config__say(OrrConfig *c, const char *name, const char *value) {
    g_hash_table_insert(c->said, g_strdup(name), g_strdup(value));
}

void orr_config__put(OrrConfig *c, const char *key, const char *value, const char *noun) {
    if (!value || !*value)
        return;
    char *text = noun ? g_strdup_printf("%s %s", value, noun) : g_strdup(value);
    for (char *at = text; *at; at++)
        if (g_ascii_iscntrl(*at) || *at == '#')
            *at = ' ';
    g_strstrip(text);
    g_hash_table_insert(c->job, g_strdup(key), text);
}

/* --set GROUP.KEY=VALUE for keys that a job file has here. */
static bool apply_sets(OrrConfig *c, GError **error) {
    for (guint i = 0; c->import->sets && c->import->sets[i]; i++) {
        g_auto(GStrv) part = g_strsplit(c->import->sets[i], "=", 2);
        if (!part[1])
            return orr_fail_usage(error, "--set %s: NAME=VALUE would do", c->import->sets[i]);
        bool is_known = !strchr(part[0], '.'); /* a variable of a script */
        for (gsize g = 0; g < G_N_ELEMENTS(groups); g++)
            for (guint k = 0; groups[g].keys[k]; k++) {
                g_autofree char *key = g_strdup_printf("%s.%s", groups[g].group, groups[g].keys[k]);
                is_known |= strcmp(key, part[0]) == 0;
            }
        if (!is_known)
            return orr_fail_usage(error, "--set %s: the job file has no such key", part[0]);
        if (strchr(part[0], '.'))
            orr_config__put(c, part[0], part[1], NULL);
    }
    return true;
}

/* A model by name and shapes of one exclude each other: a name that was set wins. */
static void drop_shapes(OrrConfig *c) {
    if (!g_hash_table_lookup(c->job, "job.model"))
        return;
    for (guint k = 0; groups[6].keys[k]; k++) {
        g_autofree char *key = g_strdup_printf("model.%s", groups[6].keys[k]);
        g_hash_table_remove(c->job, key);
    }
}

static bool check_needed(const OrrConfig *c, GError **error) {
    static const char *const needed[] = {"job.cluster", "batch.micro", "batch.sequence",
                                         "job.framework"};
    static const char *const shapes[] = {"model.layers", "model.hidden", "model.heads", "model.ffn",
                                         "model.vocab"};
    g_autoptr(GString) missing = g_string_new(NULL);
    bool has_batch = g_hash_table_lookup(c->job, "batch.global") ||
                     g_hash_table_lookup(c->job, "batch.micro_batches");
    bool has_model = g_hash_table_lookup(c->job, "job.model") != NULL;
    bool has_shape = g_hash_table_lookup(c->job, "model.layers") != NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++)
        if (!g_hash_table_lookup(c->job, needed[i]))
            g_string_append_printf(missing, " --set %s=...", needed[i]);
    if (!has_batch)
        g_string_append(missing, " --set batch.global=...");
    if (!has_model && !has_shape)
        g_string_append(missing, " --set job.model=...");
    for (gsize i = 0; !has_model && has_shape && i < G_N_ELEMENTS(shapes); i++)
        if (!g_hash_table_lookup(c->job, shapes[i]))
            g_string_append_printf(missing, " --set %s=...", shapes[i]);
    const char *gpus = orr_config__said(c, "gpus");
    if (missing->len == 0)
        return true;
    return orr_fail_input(error, "%s: %s: it does not say all that a job needs%s%s%s; say%s",
                          c->import->path, c->kind, gpus ? " (it runs on " : "", gpus ? gpus : "",
                          gpus ? " GPUs)" : "", missing->str);
}

static char *format(OrrConfig *c) {
    GString *text = g_string_new(NULL);
    g_autofree char *base = g_path_get_basename(c->import->path);
    g_autofree char *source = g_strdup_printf("%s (%s)", base, c->kind);
    orr_config__put(c, "job.summary", "Imported", NULL);
    orr_config__put(c, "job.source", source, NULL);
    if (g_hash_table_lookup(c->job, "model.layers"))
        orr_config__put(c, "model.source", source, NULL);
    for (gsize g = 0; g < G_N_ELEMENTS(groups); g++) {
        bool has_head = false;
        for (guint k = 0; groups[g].keys[k]; k++) {
            g_autofree char *key = g_strdup_printf("%s.%s", groups[g].group, groups[g].keys[k]);
            const char *value = g_hash_table_lookup(c->job, key);
            if (!value)
                continue;
            if (!has_head)
                g_string_append_printf(text, "[%s]\n", groups[g].group);
            has_head = true;
            g_string_append_printf(text, "%s = %s\n", groups[g].keys[k], value);
        }
    }
    return g_string_free(text, FALSE);
}

typedef struct {
    const char *kind;
    bool (*read)(OrrConfig *c, const char *text, gsize length, GError **error);
    bool (*map)(OrrConfig *c, GError **error);
    const char *mark; /* a name that the file must say */
    const char *what; /* that would do, for the message */
} Kind;

static const Kind kinds[] = {
    {"launch script", orr_config__read_shell, orr_config__map_megatron, "num-layers",
     "--num-layers"},
    {"DeepSpeed JSON", orr_config__read_json, orr_config__map_deepspeed, NULL,
     "train_batch_size, train_micro_batch_size_per_gpu or zero_optimization"},
    {"torchtitan TOML", orr_config__read_toml, orr_config__map_torchtitan, "model.flavor",
     "model.flavor"},
    {"nanotron YAML", orr_config__read_yaml, orr_config__map_nanotron,
     "model.model_config.num_hidden_layers", "model.model_config"},
};

/* By its ending, else by its first characters. */
static const Kind *kind_of(const char *path, const char *text, gsize length) {
    gsize at = 0;
    while (at < length && g_ascii_isspace(text[at]))
        at++;
    if (g_str_has_suffix(path, ".json") || (at < length && text[at] == '{'))
        return &kinds[1];
    if (g_str_has_suffix(path, ".toml"))
        return &kinds[2];
    if (g_str_has_suffix(path, ".yaml") || g_str_has_suffix(path, ".yml"))
        return &kinds[3];
    return &kinds[0];
}

static bool is_marked(const OrrConfig *c, const Kind *kind, GError **error) {
    bool is_deepspeed = orr_config__said(c, "train_batch_size") ||
                        orr_config__said(c, "train_micro_batch_size_per_gpu") ||
                        orr_config__said(c, "zero_optimization.stage");
    if (kind->mark ? orr_config__said(c, kind->mark) != NULL : is_deepspeed)
        return true;
    return orr_fail_input(error, "%s: no %s: it says nothing of %s", c->import->path, kind->kind,
                          kind->what);
}

char *orr_import_config_text(const OrrImport *import, const char *text, gsize length,
                             GError **error) {
    const Kind *kind = kind_of(import->path, text, length);
    OrrConfig c = {.import = import, .kind = kind->kind};
    c.said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c.job = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    char *job = NULL;
    if (kind->read(&c, text, length, error) && is_marked(&c, kind, error) && kind->map(&c, error) &&
        apply_sets(&c, error)) {
        drop_shapes(&c);
        job = check_needed(&c, error) ? format(&c) : NULL;
    }
    g_hash_table_unref(c.said);
    g_hash_table_unref(c.job);
    return job;
}

char *orr_import_config(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_import_config_text(import, text, length, error) : NULL;
}

const OrrImporter orr_importer_config = {
    .name = "config",
    .summary = "a launch script (Megatron arguments), DeepSpeed JSON, nanotron YAML or torchtitan "
               "TOML to a job file",
    .source = "Megatron-LM arguments.py; DeepSpeed JSON; nanotron config; torchtitan job_config.py",
    .run = orr_import_config,
};
