/* Hugging Face config.json to a model file: see import_hf.h. */
#include "workloads/import_hf.h"

#include <inttypes.h>
#include <string.h>

#include "sim/model/params.h"
#include "workloads/hf_priv.h"

#define MAX_WIDTH (1 << 24)
#define MAX_VOCAB 100000000
#define MAX_PARAMETERS (UINT64_C(1) << 52)

static const char *const nests[] = {"text_config", "llm_config", "language_config", NULL};
static const char *const type_names[] = {"model_type", NULL};
static const char *const layers_names[] = {"num_hidden_layers", "n_layer", "num_layers", "n_layers",
                                           NULL};
static const char *const hidden_names[] = {"hidden_size", "n_embd", "d_model", "n_embed", NULL};
static const char *const heads_names[] = {"num_attention_heads", "n_head", "num_heads", "n_heads",
                                          NULL};
static const char *const kv_names[] = {"num_key_value_heads", "num_kv_heads", "n_head_kv", NULL};
static const char *const head_dim_names[] = {"head_dim", "attention_head_dim", NULL};
static const char *const ffn_names[] = {"intermediate_size", "ffn_dim", "n_inner",
                                        "ffn_hidden_size", NULL};
static const char *const vocab_names[] = {"vocab_size", NULL};
static const char *const position_names[] = {"max_position_embeddings", "n_positions",
                                             "max_seq_len", "n_ctx", NULL};
static const char *const activation_names[] = {"hidden_activation", "hidden_act",
                                               "activation_function", "activation", NULL};

static bool has_any(HfReader *r, const char *const *names) {
    for (guint i = 0; names[i] != NULL; i++)
        if (orr_json_has(r->object, names[i]))
            return true;
    return false;
}

/* A count with the default of the class, which is said when it is used. */
static uint32_t count_or_default(HfReader *r, const char *const *names, uint32_t max,
                                 uint32_t fallback) {
    uint32_t value = orr_hf__count(r, names, max, fallback);
    if (fallback != 0 && !has_any(r, names))
        orr_hf__warn(r, "%s is absent: %u, the default of %s", names[0], value,
                     r->family->class_name);
    return value;
}

static void read_activation(HfReader *r, OrrModel *m) {
    static const struct {
        const char *name;
        OrrActivation activation;
    } rows[] = {
        {"relu", ORR_RELU},      {"gelu", ORR_GELU},        {"gelu_new", ORR_GELU},
        {"gelu_fast", ORR_GELU}, {"gelu_python", ORR_GELU}, {"gelu_pytorch_tanh", ORR_GELU},
        {"silu", ORR_SILU},      {"swish", ORR_SILU},       {"quick_gelu", ORR_GELU},
    };
    const char *seen = orr_hf__text(r, activation_names, r->family->activation);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (strcmp(rows[i].name, seen) == 0) {
            m->activation = rows[i].activation;
            return;
        }
    const char *key = activation_names[0];
    for (guint i = 0; activation_names[i] != NULL; i++)
        if (orr_json_has(r->object, activation_names[i]))
            key = activation_names[i];
    orr_hf__complain(r, key, "is not modelled; relu, gelu (and its kinds) or silu will do");
}

static void read_shape(HfReader *r, OrrModel *m) {
    const OrrModel *d = &r->family->shape;
    m->layers = orr_hf__count(r, layers_names, ORR_MODEL_MAX_LAYERS, 0);
    m->hidden = orr_hf__count(r, hidden_names, MAX_WIDTH, 0);
    m->heads = orr_hf__count(r, heads_names, MAX_WIDTH, 0);
    m->vocab = count_or_default(r, vocab_names, MAX_VOCAB, d->vocab);
    bool four = d->ffn == HF_FOUR_TIMES;
    uint32_t quadruple = m->hidden > MAX_WIDTH / 4 ? MAX_WIDTH : 4 * m->hidden;
    m->ffn = four ? orr_hf__count(r, ffn_names, MAX_WIDTH, quadruple)
                  : count_or_default(r, ffn_names, MAX_WIDTH, d->ffn);
    m->kv_heads = d->kv_heads != 0 ? count_or_default(r, kv_names, MAX_WIDTH, d->kv_heads)
                                   : orr_hf__count(r, kv_names, MAX_WIDTH, m->heads);
    m->head_dim = d->head_dim != 0
                      ? count_or_default(r, head_dim_names, MAX_WIDTH, d->head_dim)
                      : orr_hf__count(r, head_dim_names, MAX_WIDTH, MAX(m->hidden / m->heads, 1));
    m->max_positions = 0;
    if (d->position == ORR_POS_LEARNED)
        m->max_positions = count_or_default(r, position_names, 1 << 30, d->max_positions);
    if (r->errors->len == 0 && d->head_dim == 0 && !has_any(r, head_dim_names) &&
        m->hidden % m->heads != 0)
        orr_hf__complain(r, heads_names[0], "does not divide the width %u; give head_dim",
                         m->hidden);
}

/* Newer configs spell out which layers have windows. */
static void read_layer_types(HfReader *r, OrrModel *m) {
    orr_hf__ignore(r, "layer_types");
    JsonArray *types = NULL;
    if (!orr_json_has(r->object, "layer_types") ||
        !orr_json_array(r->json, r->object, "layer_types", &types, NULL))
        return;
    uint32_t n = json_array_get_length(types), n_full = 0, period = 0;
    bool is_regular = n == m->layers;
    for (uint32_t i = 0; i < n; i++) {
        JsonNode *node = json_array_get_element(types, i);
        const char *type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;
        bool full = g_strcmp0(type, "full_attention") == 0;
        if (!full && g_strcmp0(type, "sliding_attention") != 0) {
            orr_hf__complain(r, "layer_types",
                             "\"%s\" is not modelled; full_attention and "
                             "sliding_attention will do",
                             type != NULL ? type : "?");
            return;
        }
        n_full += full;
        if (full && period == 0)
            period = i + 1;
        is_regular &= full == (period != 0 && (i + 1) % period == 0);
    }
    if (n_full == n) {
        m->window = m->window_every = 0;
    } else if (n_full == 0 && n == m->layers) {
        m->window_every = 1;
    } else if (is_regular && period > 1) {
        m->window_every = period;
    } else {
        orr_hf__complain(r, "layer_types",
                         "only all alike, or every n-th of %u layers full, are "
                         "modelled",
                         m->layers);
    }
    if (m->window_every > 0 && m->window == 0)
        orr_hf__complain(r, "sliding_window", "is missing, though layer_types has windows");
}

static void check_shape(HfReader *r, const OrrModel *m) {
    if (m->heads % m->kv_heads != 0)
        orr_hf__complain(r, kv_names[0], "%u key-value heads do not divide %u heads", m->kv_heads,
                         m->heads);
    if (m->activation == ORR_RELU && m->is_gated)
        orr_hf__complain(r, "hidden_act", "a gated ReLU is not modelled; silu or gelu will do");
}

static void put_flag(GString *out, const char *key, bool value) {
    g_string_append_printf(out, "%s = %s\n", key, value ? "yes" : "no");
}

/* One line of a key file: no line ends, no " #". */
static char *one_line(const char *text) {
    char *line = g_strndup(text, 200); /* a name, not a novel */
    for (char *c = line; *c != '\0'; c++)
        if (g_ascii_iscntrl(*c) || *c == '#' || (guchar)*c > 126)
            *c = ' ';
    return g_strstrip(line);
}

static char *model_text(const OrrModel *m, const char *name) {
    static const char *const norms[] = {"layer_norm", "rms_norm"};
    static const char *const activations[] = {"relu", "gelu", "silu"};
    static const char *const positions[] = {"none", "learned", "rope", "alibi"};
    OrrParams params;
    orr_params_count(m, &params);
    g_autofree char *clean = one_line(name);
    GString *out = g_string_new("[model]\n");
    g_string_append_printf(out, "family = %s\nsummary = %s, imported\nsource = config.json of %s\n",
                           m->family, clean, clean);
    g_string_append_printf(out,
                           "layers = %u\nhidden = %u\nheads = %u\nkv_heads = %u\nhead_dim = %u\n"
                           "ffn = %u\n",
                           m->layers, m->hidden, m->heads, m->kv_heads, m->head_dim, m->ffn);
    put_flag(out, "gated", m->is_gated);
    g_string_append_printf(out, "vocab = %u\nnorm = %s\n", m->vocab, norms[m->norm]);
    put_flag(out, "norm_bias", m->norm_bias);
    g_string_append_printf(out, "activation = %s\nposition = %s\n", activations[m->activation],
                           positions[m->position]);
    char share[G_ASCII_DTOSTR_BUF_SIZE];
    if (m->position == ORR_POS_ROPE)
        g_string_append_printf(out, "rotary = %s\n",
                               g_ascii_dtostr(share, sizeof(share), m->rotary_frac));
    if (m->position == ORR_POS_LEARNED)
        g_string_append_printf(out, "max_positions = %u tokens\n", m->max_positions);
    const struct {
        const char *key;
        bool value;
    } flags[] = {
        {"tied", m->is_tied},
        {"qkv_bias", m->qkv_bias},
        {"out_bias", m->out_bias},
        {"mlp_bias", m->mlp_bias},
        {"head_bias", m->head_bias},
        {"qk_norm", m->has_qk_norm},
        {"post_norms", m->has_post_norms},
        {"embedding_norm", m->has_embedding_norm},
        {"parallel", m->is_parallel},
        {"shares_norm", m->shares_norm},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(flags); i++)
        put_flag(out, flags[i].key, flags[i].value);
    if (m->window > 0)
        g_string_append_printf(out, "window = %u tokens\nwindow_every = %u layers\n", m->window,
                               m->window_every);
    if (params.total <= MAX_PARAMETERS)
        g_string_append_printf(out, "expect_parameters = %" PRIu64 "\n", params.total);
    return g_string_free(out, FALSE);
}

/* The object that describes the text model; parts beside it are left out. */
static void find_text_part(HfReader *r) {
    JsonObject *root = r->object;
    for (guint i = 0; nests[i] != NULL; i++)
        if (orr_json_has(root, nests[i]) &&
            orr_json_object(r->json, root, nests[i], &r->object, NULL)) {
            orr_hf__warn(r, "only %s is taken: other parts of the model are left out", nests[i]);
            return;
        }
}

static void read_tied(HfReader *r, JsonObject *root, OrrModel *m) {
    JsonObject *text = r->object;
    if (text != root && !orr_json_has(text, "tie_word_embeddings") &&
        orr_json_has(root, "tie_word_embeddings"))
        r->object = root;
    m->is_tied = orr_hf__flag(r, "tie_word_embeddings", r->family->shape.is_tied);
    r->object = text;
}

/* The family, or NULL with the reason among the errors. */
static const HfFamily *find_family(HfReader *r) {
    const char *type = orr_hf__text(r, type_names, NULL), *because_of;
    const char *reason = orr_hf__refusal(type != NULL ? type : "", r->object, &because_of);
    if (reason != NULL) {
        orr_hf__complain(r, because_of, "this model %s", reason);
        return NULL;
    }
    const HfFamily *family = type != NULL ? orr_hf__family(type) : NULL;
    if (family == NULL && r->errors->len == 0) {
        g_autofree char *names = orr_hf__family_names();
        orr_hf__complain(r, type_names[0], "%s; these will do: %s",
                         type == NULL ? "is missing" : "is no decoder that is known here", names);
    }
    return family;
}

static char *import_object(HfReader *r, const char *name) {
    JsonObject *root = r->object;
    find_text_part(r);
    r->family = find_family(r);
    if (r->family == NULL)
        return NULL;
    OrrModel m = r->family->shape;
    m.family = (char *)r->family->type;
    read_shape(r, &m);
    read_activation(r, &m);
    read_tied(r, root, &m);
    if (r->family->adjust != NULL && r->errors->len == 0)
        r->family->adjust(r, &m);
    if (r->errors->len == 0) {
        read_layer_types(r, &m);
        check_shape(r, &m);
    }
    orr_hf__check_unknown(r);
    return r->errors->len > 0 ? NULL : model_text(&m, name);
}

static char *import_json(OrrJson *json, GString *warnings, GError **error) {
    HfReader r = {.json = json, .warnings = warnings};
    r.object = orr_json_root_object(json, error);
    if (r.object == NULL)
        return NULL;
    g_autoptr(GString) errors = g_string_new(NULL);
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r.errors = errors;
    r.known = known;
    /* The name that the checkpoint goes by, else the file's. */
    const char *repository = NULL;
    if (orr_json_has(r.object, "_name_or_path"))
        orr_json_string(json, r.object, "_name_or_path", &repository, NULL);
    g_autofree char *base = g_path_get_basename(orr_json_name(json));
    bool named = repository != NULL && *repository != '\0' && *repository != '/';
    char *text = import_object(&r, named ? repository : base);
    if (text == NULL)
        orr_fail_input(error, "%s", errors->str);
    return text;
}

char *orr_import_hf(const char *path, GString *warnings, GError **error) {
    g_autoptr(OrrJson) json = orr_json_load(path, ORR_JSON_INFINITY, error);
    return json != NULL ? import_json(json, warnings, error) : NULL;
}

char *orr_import_hf_text(const char *name, const char *text, gsize length, GString *warnings,
                         GError **error) {
    g_autoptr(OrrJson) json = orr_json_parse(name, text, length, ORR_JSON_INFINITY, error);
    return json != NULL ? import_json(json, warnings, error) : NULL;
}

static char *run(const OrrImport *import, GError **error) {
    return orr_import_hf(import->path, import->notes, error);
}

const OrrImporter orr_importer_hf = {
    .name = "hf",
    .summary = "config.json of a dense decoder on Hugging Face to a model file",
    .source = "huggingface/transformers, configuration_*.py",
    .run = run,
};
