#include "workloads/import_config.h"

#include <stdarg.h>
#include <string.h>

#include "sim/io/file.h"
#include "sim/io/log.h"
#include "sim/io/text.h"
#include "workloads/config_priv.h"

#define LIMIT_BYTES ((gsize)16 << 20) /* ours: configurations have some kilobytes */

/* Groups and keys in the order in which they are written. */
static const struct {
    const char *group;
    const char *keys[32];
} groups[] = {
    {"job", {"summary", "model", "cluster", "framework", "source", "clocks"}},
    {"layout",
     {"tp", "pp", "vpp", "cp", "ep", "dp", "sequence_parallel", "zero_stage",
      "reshard_after_forward", "hsdp_shard", "ends", "rank_order"}},
    {"batch", {"global", "micro_batches", "micro", "sequence"}},
    {"schedule", {"name"}},
    {"precision", {"compute"}},
    {"recompute", {"policy", "method", "layers"}},
    {"model", {"source",       "layers",
               "hidden",       "heads",
               "kv_heads",     "head_dim",
               "ffn",          "gated",
               "vocab",        "norm",
               "activation",   "position",
               "rotary",       "max_positions",
               "tied",         "qkv_bias",
               "out_bias",     "mlp_bias",
               "qk_norm",      "embedding_norm",
               "experts",      "experts_per_token",
               "expert_ffn",   "shared_experts",
               "dense_layers", "moe_every",
               "q_rank",       "kv_rank",
               "rotary_dim",   "value_dim"}},
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

const char *orr_config__set(const OrrConfig *c, const char *name) {
    for (guint i = 0; c->import->sets && c->import->sets[i]; i++) {
        const char *set = c->import->sets[i], *equals = strchr(set, '=');
        gsize n = equals ? (gsize)(equals - set) : 0;
        if (equals && strlen(name) == n && strncmp(set, name, n) == 0)
            return equals + 1;
    }
    return NULL;
}

void orr_config__say_expanded(OrrConfig *c, const char *name, const char *value) {
    g_autoptr(GString) out = g_string_new(NULL);
    for (const char *at = value; *at;) {
        const char *end = g_str_has_prefix(at, "${") ? strchr(at, '}') : NULL;
        if (!end) {
            g_string_append_c(out, *at++);
            continue;
        }
        g_autofree char *variable = g_strndup(at + 2, (gsize)(end - at) - 2);
        const char *set = orr_config__set(c, variable);
        if (!set) {
            g_hash_table_add(c->unset, g_steal_pointer(&variable));
            return;
        }
        g_string_append(out, set);
        at = end + 1;
    }
    orr_config__say(c, name, out->str);
}

void orr_config__put_counts(OrrConfig *c, const OrrConfigCount *counts, gsize n) {
    for (gsize i = 0; i < n; i++) {
        const char *value = orr_config__said(c, counts[i].said);
        int64_t number;
        if (value && (!orr_log_int(value, &number) || number < 0)) {
            g_autofree char *shown = orr_text_excerpt(value);
            orr_workloads__note(c->import, "%s = %s: no whole number, left out", counts[i].said,
                                shown);
        } else if (value) {
            orr_config__put(c, counts[i].key, value, counts[i].noun);
        }
    }
}

const char *orr_config__yes(bool is_true) {
    return is_true ? "yes" : "no";
}

void orr_config__note_sparse(const OrrConfig *c) {
    const char *experts = g_hash_table_lookup(c->job, "model.experts");
    if (experts || g_hash_table_lookup(c->job, "model.kv_rank"))
        orr_workloads__note(c->import,
                            "the model has %s, which can't be simulated yet: orrery step will "
                            "refuse the job",
                            experts ? "experts" : "latent attention");
}

void orr_config__put_block(OrrConfig *c, const OrrConfigBlock *block) {
    orr_config__put(c, "model.gated", orr_config__yes(block->is_gated), NULL);
    orr_config__put(c, "model.activation", block->activation, NULL);
    orr_config__put(c, "model.norm", block->is_rms ? "rms_norm" : "layer_norm", NULL);
    orr_config__put(c, "model.position", block->position, NULL);
    orr_config__put(c, "model.tied", orr_config__yes(block->is_tied), NULL);
    orr_config__put(c, "model.qkv_bias", orr_config__yes(block->has_bias), NULL);
    orr_config__put(c, "model.out_bias", orr_config__yes(block->has_bias), NULL);
    orr_config__put(c, "model.mlp_bias", orr_config__yes(block->has_bias), NULL);
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
    {"YAML", orr_config__read_yaml, orr_config__map_yaml, NULL, NULL}, /* tells by itself */
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
    if (!kind->what)
        return true;
    bool is_deepspeed = orr_config__said(c, "train_batch_size") ||
                        orr_config__said(c, "train_micro_batch_size_per_gpu") ||
                        orr_config__said(c, "zero_optimization.stage");
    if (kind->mark ? orr_config__said(c, kind->mark) != NULL : is_deepspeed)
        return true;
    return orr_fail_input(error, "%s: no %s: it says nothing of %s", c->import->path, kind->kind,
                          kind->what);
}

/* Variables that a value needs and nothing sets. */
static bool note_unset(const OrrConfig *c) {
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(c->unset), (GCompareFunc)strcmp);
    g_autoptr(GString) list = g_string_new(NULL);
    for (GList *at = names; at; at = at->next)
        g_string_append_printf(list, " --set %s=...", (char *)at->data);
    if (names)
        orr_workloads__note(c->import,
                            "variables that are not set, values with them are left out:"
                            "%s",
                            list->str);
    return true;
}

char *orr_import_config_text(const OrrImport *import, const char *text, gsize length,
                             GError **error) {
    const Kind *kind = kind_of(import->path, text, length);
    OrrConfig c = {.import = import, .kind = kind->kind};
    c.said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c.job = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c.unset = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    char *job = NULL;
    if (kind->read(&c, text, length, error) && note_unset(&c) && is_marked(&c, kind, error) &&
        kind->map(&c, error) && apply_sets(&c, error)) {
        drop_shapes(&c);
        orr_config__note_sparse(&c);
        job = check_needed(&c, error) ? format(&c) : NULL;
    }
    g_hash_table_unref(c.said);
    g_hash_table_unref(c.job);
    g_hash_table_unref(c.unset);
    return job;
}

char *orr_import_config(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_import_config_text(import, text, length, error) : NULL;
}

const OrrImporter orr_importer_config = {
    .name = "config",
    .summary = "a launch script (Megatron arguments), Megatron, NeMo or nanotron YAML, DeepSpeed "
               "JSON or torchtitan TOML to a job file",
    .source = "Megatron-LM arguments.py; NeMo megatron_gpt_config.yaml; DeepSpeed JSON; nanotron "
              "config; torchtitan job_config.py",
    .run = orr_import_config,
};
