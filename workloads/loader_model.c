/* Model files: architecture of a dense decoder, exact to the parameter. Group [model].
 *
 * Widths and layers are counts; token counts carry their noun. What is refused: shapes that no
 * decoder can have (heads that the key-value heads do not divide, odd rotary widths). A file may
 * state `expect_parameters`, which is compared with the count of sim/model. Experts and latent
 * attention are known by name (imports write them) and refused: nothing below can simulate them. */
#include "sim/model/params.h"
#include "workloads/loader_priv.h"

#include <inttypes.h>

#define MAX_WIDTH (1 << 24) /* as ORR_MODEL_MAX_LAYERS */

static const char *const norm_names[] = {"layer_norm", "rms_norm", NULL};
static const char *const activation_names[] = {"relu", "gelu", "silu", NULL};
static const char *const position_names[] = {"none", "learned", "rope", "alibi", NULL};

#define AT(member) offsetof(OrrModel, member)
#define COUNT(key, noun, min, max, fallback, flags, member)                                        \
    {                                                                                              \
        "model", key, ORR_FIELD_COUNT, ORR_DIM_COUNT, noun, min, max, NULL, AT(member), fallback,  \
            flags                                                                                  \
    }
#define ENUM(key, names, member)                                                                   \
    {                                                                                              \
        "model", key, ORR_FIELD_ENUM, ORR_DIM_NONE, NULL, 0, 0, names, AT(member), 0,              \
            ORR_KEY_REQUIRED                                                                       \
    }
#define FLAG(key, flags, member)                                                                   \
    { "model", key, ORR_FIELD_BOOL, ORR_DIM_NONE, NULL, 0, 0, NULL, AT(member), 0, flags }

/* Read first: the defaults of the rest depend on them. */
static const OrrField shape_fields[] = {
    COUNT("layers", NULL, 1, ORR_MODEL_MAX_LAYERS, 1, ORR_KEY_REQUIRED, layers),
    COUNT("hidden", NULL, 1, MAX_WIDTH, 1, ORR_KEY_REQUIRED, hidden),
    COUNT("heads", NULL, 1, MAX_WIDTH, 1, ORR_KEY_REQUIRED, heads),
    COUNT("ffn", NULL, 1, MAX_WIDTH, 1, ORR_KEY_REQUIRED, ffn),
    COUNT("vocab", "tokens", 1, 1e8, 1, ORR_KEY_REQUIRED, vocab),
    ENUM("norm", norm_names, norm),
    ENUM("activation", activation_names, activation),
    ENUM("position", position_names, position),
};

static const OrrField detail_fields[] = {
    FLAG("gated", ORR_KEY_OPTIONAL, is_gated),
    FLAG("tied", ORR_KEY_OPTIONAL, is_tied),
    FLAG("qkv_bias", ORR_KEY_OPTIONAL, qkv_bias),
    FLAG("out_bias", ORR_KEY_OPTIONAL, out_bias),
    FLAG("mlp_bias", ORR_KEY_OPTIONAL, mlp_bias),
    FLAG("head_bias", ORR_KEY_QUIET, head_bias),
    FLAG("qk_norm", ORR_KEY_QUIET, has_qk_norm),
    FLAG("post_norms", ORR_KEY_QUIET, has_post_norms),
    FLAG("embedding_norm", ORR_KEY_QUIET, has_embedding_norm),
    FLAG("parallel", ORR_KEY_QUIET, is_parallel),
    FLAG("shares_norm", ORR_KEY_QUIET, shares_norm),
    COUNT("window", "tokens", 0, 1e9, 0, ORR_KEY_QUIET, window),
};

static void read_dependent(OrrKeys *keys, OrrModel *m) {
    m->kv_heads = (uint32_t)orr_keys_int(keys, "model", "kv_heads", NULL, 1, MAX_WIDTH, m->heads,
                                         ORR_KEY_OPTIONAL);
    uint32_t even = m->hidden / m->heads;
    if (!orr_keys_has(keys, "model", "head_dim") && m->hidden % m->heads != 0)
        orr_keys_complain(
            keys, "model", "heads",
            "%u heads do not divide hidden = %u; head_dim, or heads that do, would do", m->heads,
            m->hidden);
    m->head_dim = (uint32_t)orr_keys_int(keys, "model", "head_dim", NULL, 1, MAX_WIDTH,
                                         MAX(even, 1u), ORR_KEY_OPTIONAL);
    bool learned = m->position == ORR_POS_LEARNED;
    m->max_positions = (uint32_t)orr_keys_int(keys, "model", "max_positions", "tokens", 1, 1e9, 1,
                                              learned ? ORR_KEY_REQUIRED : ORR_KEY_QUIET);
    if (!learned && !orr_keys_has(keys, "model", "max_positions"))
        m->max_positions = 0;
    bool rope = m->position == ORR_POS_ROPE;
    m->rotary_frac = orr_keys_number(keys, "model", "rotary", ORR_DIM_FRACTION, 0, 1, 1,
                                     rope ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    if (!rope)
        m->rotary_frac = 0;
    /* LayerNorm carries a bias unless the file says no (as in most code that has one). */
    bool layer_norm = m->norm == ORR_LAYER_NORM;
    m->norm_bias = orr_keys_bool(keys, "model", "norm_bias", layer_norm,
                                 layer_norm ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    m->window_every = (uint32_t)orr_keys_int(keys, "model", "window_every", "layers", 1,
                                             ORR_MODEL_MAX_LAYERS, 1, ORR_KEY_QUIET);
    if (m->window == 0)
        m->window_every = 0;
}

static void check_model(OrrKeys *keys, const OrrModel *m) {
    if (m->heads % m->kv_heads != 0)
        orr_keys_complain(keys, "model", "kv_heads",
                          "%u key-value heads do not divide %u heads; a divisor of %u would do",
                          m->kv_heads, m->heads, m->heads);
    if (m->shares_norm && !m->is_parallel)
        orr_keys_complain(
            keys, "model", "shares_norm",
            "one norm for attention and MLP needs parallel = yes; that, or no, would do");
    if (m->norm == ORR_RMS_NORM && m->norm_bias)
        orr_keys_complain(keys, "model", "norm_bias",
                          "RMSNorm has no bias; norm_bias = no, or norm = layer_norm, would do");
    if (m->activation == ORR_RELU && m->is_gated)
        orr_keys_complain(keys, "model", "gated",
                          "a gated ReLU is not modelled; silu or gelu, or gated = no, would do");
}

/* Shapes of layers that cannot be simulated yet. */
static void refuse_sparse(OrrKeys *keys) {
    static const char *const counts[] = {
        "experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "moe_every",
        "q_rank",  "kv_rank",           "rotary_dim", "value_dim"};
    int64_t values[G_N_ELEMENTS(counts)];
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        values[i] = orr_keys_int(keys, "model", counts[i], NULL, 0, MAX_WIDTH, 0, ORR_KEY_QUIET);
    if (values[0] > 1)
        orr_keys_complain(keys, "model", "experts",
                          "mixtures of experts can't be simulated yet; a dense model would do");
    if (values[7] > 0)
        orr_keys_complain(keys, "model", "kv_rank",
                          "latent attention (MLA) can't be simulated yet; a model with kv_heads "
                          "would do");
}

/* An expectation belongs to the file's own shapes, not to overridden ones. */
static void check_expected(OrrKeys *keys, const OrrModel *m, bool is_overridden) {
    int64_t expected = orr_keys_int(keys, "model", "expect_parameters", "parameters", 1,
                                    INT64_C(1) << 52, 0, ORR_KEY_QUIET);
    if (expected == 0 || is_overridden || m->heads % m->kv_heads != 0)
        return;
    OrrParams params;
    orr_params_count(m, &params);
    if (params.total != (uint64_t)expected)
        orr_keys_complain(keys, "model", "expect_parameters",
                          "these shapes have %" PRIu64
                          " parameters; that, or other shapes, would do",
                          params.total);
}

static bool override_model(OrrKeys *keys, const OrrOverride *overrides, uint32_t n) {
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        if (g_strcmp0(overrides[i].group, "model") != 0)
            continue;
        orr_keys_override(keys, "model", overrides[i].key, overrides[i].value,
                          overrides[i].origin ? overrides[i].origin : "--set");
        any = true;
    }
    return any;
}

static const char *const job_groups[] = {"job",       "layout",  "batch", "schedule",  "precision",
                                         "recompute", "network", "nccl",  "framework", "cluster",
                                         "node",      "gpu",     NULL};

OrrModel *orr_workload_model(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                             OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = orr_workloads__open("models", ref, sources, error);
    if (keys == NULL)
        return NULL;
    for (guint i = 0; orr_keys_has_group(keys, "job") && job_groups[i]; i++)
        g_strfreev(orr_keys_list(keys, job_groups[i])); /* the rest of a job with a model in it */
    bool is_overridden = override_model(keys, overrides, n_overrides);
    g_autoptr(OrrModel) m = g_new0(OrrModel, 1);
    m->name = orr_workloads__stem(orr_keys_name(keys));
    m->family = g_strdup(orr_keys_string(keys, "model", "family", NULL, ORR_KEY_QUIET));
    m->source = g_strdup(orr_keys_string(keys, "model", "source", NULL, ORR_KEY_REQUIRED));
    orr_keys_string(keys, "model", "summary", NULL, ORR_KEY_QUIET);
    orr_workloads__read_fields(keys, shape_fields, G_N_ELEMENTS(shape_fields), m);
    orr_workloads__read_fields(keys, detail_fields, G_N_ELEMENTS(detail_fields), m);
    read_dependent(keys, m);
    check_model(keys, m);
    refuse_sparse(keys);
    check_expected(keys, m, is_overridden);
    if (!orr_keys_finish(keys, error))
        return NULL;
    g_autofree char *origin = g_strdup_printf("default of model files, %s", m->name);
    orr_workloads__note_defaults(sources, keys, NULL, origin);
    return g_steal_pointer(&m);
}
