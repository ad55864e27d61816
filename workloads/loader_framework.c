/* Framework profiles: which kernels are fused, what a layer stores, what overlaps, what the host
 * costs. Every key is required, so that a profile is never silently incomplete; `based_on` names
 * another profile whose values stand where the file says nothing.
 *
 * Overrides (`--set framework.KEY=VALUE`) find the group by the key, since keys are unique. */
#include "sim/base/words.h"
#include "sim/model/params.h"
#include "workloads/loader_priv.h"

#include <string.h>

#define MAX_BASES 8 /* profiles in a chain of based_on; longer ones are a mistake or a cycle */

static const char *const attention_names[] = {"flash", "unfused", "memory_efficient", NULL};
static const char *const library_names[] = {"native", "flash2", "flash1", "triton", NULL};
static const char *const metrics_names[] = {"none", "cross_entropies", "acc_perplex", NULL};
static const char *const reduce_names[] = {"at_end", "each_micro_batch", "each_run", NULL};
static const char *const sync_names[] = {"no", "yes", "receives", NULL};
static const char *const printed_names[] = {"fullest", "first_rank", NULL};
static const char *const ends_names[] = {"with_layers", "own_chunk", "one_layer_less",
                                         "as_layers",   "by_cost",   NULL};

#define AT(member) offsetof(OrrFramework, member)
#define FLAG(group, key, member)                                                                   \
    { group, key, ORR_FIELD_BOOL, ORR_DIM_NONE, NULL, 0, 0, NULL, AT(member), 0, ORR_KEY_REQUIRED }
#define NUMBER(group, key, dim, min, max, member)                                                  \
    { group, key, ORR_FIELD_NUMBER, dim, NULL, min, max, NULL, AT(member), min, ORR_KEY_REQUIRED }
#define COUNT(group, key, noun, max, member)                                                       \
    {                                                                                              \
        group, key, ORR_FIELD_COUNT, ORR_DIM_COUNT, noun, 0, max, NULL, AT(member), 0,             \
            ORR_KEY_REQUIRED                                                                       \
    }
#define ENUM(group, key, names, member)                                                            \
    { group, key, ORR_FIELD_ENUM, ORR_DIM_NONE, NULL, 0, 0, names, AT(member), 0, ORR_KEY_REQUIRED }
/* A host second is far beyond any launch, a terabyte beyond any bucket. */
#define TIME(key, member) NUMBER("host", key, ORR_DIM_TIME, 0, 1e9, member)
#define BYTES(group, key, member) NUMBER(group, key, ORR_DIM_BYTES, 0, 1e12, member)
#define SHARE(group, key, member) NUMBER(group, key, ORR_DIM_FRACTION, 0, 1, member)
/* A rate of zero would never end. */
#define RATE(key, member) NUMBER("interference", key, ORR_DIM_FRACTION, 0.05, 1, member)

static const OrrField fields[] = {
    ENUM("kernels", "attention", attention_names, attention),
    ENUM("kernels", "attention_library", library_names, attention_library),
    FLAG("kernels", "fused_softmax", fused_softmax),
    FLAG("kernels", "fused_bias_gelu", fused_bias_gelu),
    FLAG("kernels", "fused_bias_dropout_add", fused_bias_dropout_add),
    FLAG("kernels", "fused_rotary", fused_rotary),
    FLAG("kernels", "fused_norm", fused_norm),
    FLAG("kernels", "fused_cross_entropy", fused_cross_entropy),
    FLAG("kernels", "fused_optimizer", fused_optimizer),
    FLAG("kernels", "fused_wgrad_accumulate", fused_wgrad_accumulate),
    FLAG("kernels", "fused_qkv", fused_qkv),
    FLAG("kernels", "fused_gate_up", fused_gate_up),
    SHARE("kernels", "dropout", dropout),
    SHARE("kernels", "attention_dropout", attention_dropout),
    COUNT("kernels", "vocab_multiple", NULL, 1 << 20, vocab_multiple),
    FLAG("kernels", "head_copies", head_copies),
    FLAG("kernels", "sharded_loss", sharded_loss),
    FLAG("kernels", "fp32_logits", fp32_logits),
    FLAG("kernels", "fp32_norms", fp32_norms),
    FLAG("kernels", "norms_again", norms_again),
    ENUM("kernels", "metrics", metrics_names, metrics),
    FLAG("kernels", "recompute_early_stop", recompute_early_stop),
    FLAG("kernels", "compiled", compiled),
    TIME("launch", host_launch_ns),
    TIME("comm", host_comm_ns),
    TIME("layer", host_layer_ns),
    TIME("step", host_step_ns),
    TIME("check", host_check_ns),
    FLAG("host", "cuda_graphs", cuda_graphs),
    ENUM("host", "sync_p2p", sync_names, host_sync_p2p),
    FLAG("host", "sync_passes", host_sync_passes),
    FLAG("tensor", "async_wgrad", tp_async_wgrad),
    FLAG("tensor", "own_shard_first", tp_own_shard_first),
    SHARE("tensor", "overlap", tp_overlap_frac),
    FLAG("pipeline", "p2p_batched", p2p_batched),
    FLAG("pipeline", "p2p_overlap", p2p_overlap),
    FLAG("pipeline", "scatter_gather", scatter_gather),
    FLAG("pipeline", "free_output_early", free_output_early),
    FLAG("data", "overlap_grad_reduce", overlap_grad_reduce),
    FLAG("data", "overlap_param_gather", overlap_param_gather),
    ENUM("data", "reduce_when", reduce_names, reduce_when),
    FLAG("data", "shard_gradient_buffer", shard_gradient_buffer),
    BYTES("data", "bucket", bucket_bytes),
    BYTES("data", "param_bucket", param_bucket_bytes),
    FLAG("data", "bucket_whole_tensors", bucket_whole_tensors),
    FLAG("data", "calls_by_lists", calls_by_lists),
    FLAG("data", "zero_all_reduce", zero_all_reduce),
    FLAG("data", "zero_one_call", zero_one_call),
    FLAG("data", "gather_by_broadcasts", gather_by_broadcasts),
    FLAG("data", "gather_by_copies", gather_by_copies),
    COUNT("data", "prefetch", "layers", 1000, fsdp_prefetch),
    FLAG("data", "rate_limit", fsdp_rate_limit),
    FLAG("data", "grads_as_parameters", grads_as_parameters),
    FLAG("end", "grad_norm", grad_norm),
    FLAG("end", "overflow_check", overflow_check),
    BYTES("end", "optimizer_traffic", optimizer_bytes_per_param),
    COUNT("end", "optimizer_launches", "kernels", 1e6, optimizer_launches),
    FLAG("memory", "dropout_mask", store_dropout_mask),
    FLAG("memory", "norm_output", store_norm_output),
    FLAG("memory", "activation_output", store_activation_output),
    FLAG("memory", "fp32_residual", store_fp32_residual),
    FLAG("memory", "bucket_copies", bucket_copies),
    FLAG("memory", "gradients_until_end", grads_until_end),
    FLAG("memory", "records_streams", records_streams),
    FLAG("memory", "gather_buffers", gather_buffers),
    ENUM("memory", "printed_by", printed_names, memory_printed_by),
    FLAG("memory", "expandable_segments", expandable_segments),
    FLAG("memory", "loss_in_place", loss_in_place),
    BYTES("memory", "comm_buffers", comm_buffer_bytes),
    BYTES("memory", "context", extra_context_bytes),
    RATE("compute_tp", compute_rate_frac[ORR_COMM_TP]),
    RATE("compute_cp", compute_rate_frac[ORR_COMM_CP]),
    RATE("compute_ep", compute_rate_frac[ORR_COMM_EP]),
    RATE("compute_pp", compute_rate_frac[ORR_COMM_PP]),
    RATE("compute_dp_gradient", compute_rate_frac[ORR_COMM_DP_GRADIENT]),
    RATE("compute_dp_parameter", compute_rate_frac[ORR_COMM_DP_PARAMETER]),
    RATE("memory_tp", memory_rate_frac[ORR_COMM_TP]),
    RATE("memory_cp", memory_rate_frac[ORR_COMM_CP]),
    RATE("memory_ep", memory_rate_frac[ORR_COMM_EP]),
    RATE("memory_pp", memory_rate_frac[ORR_COMM_PP]),
    RATE("memory_dp_gradient", memory_rate_frac[ORR_COMM_DP_GRADIENT]),
    RATE("memory_dp_parameter", memory_rate_frac[ORR_COMM_DP_PARAMETER]),
    ENUM("defaults", "compute", orr_dtype_names, defaults.compute),
    FLAG("defaults", "master", defaults.has_master),
    COUNT("defaults", "zero_stage", NULL, 3, defaults.zero_stage),
    FLAG("defaults", "sequence_parallel", defaults.sequence_parallel),
    FLAG("defaults", "reshard_after_forward", defaults.reshard_after_forward),
    ENUM("defaults", "ends", ends_names, defaults.ends),
};

/* A dtype by name, or "compute": whatever the job computes in. */
static const struct {
    const char *key;
    size_t offset;
} dtype_defaults[] = {
    {"parameters", AT(defaults.parameters)},
    {"gradients", AT(defaults.gradients)},
    {"reduce", AT(defaults.reduce)},
    {"gather", AT(defaults.gather)},
};

/* Those of the group [framework] itself. */
static const char *const own_keys[] = {"based_on", "flops_formula", "source", "summary"};

static void read_dtypes(OrrKeys *keys, OrrFramework *f) {
    const char *names[ORR_N_DTYPES + 2] = {"compute"};
    for (int d = 0; d < ORR_N_DTYPES; d++)
        names[d + 1] = orr_dtype_names[d];
    for (size_t i = 0; i < G_N_ELEMENTS(dtype_defaults); i++) {
        int *at = (int *)(void *)((char *)f + dtype_defaults[i].offset);
        *at =
            orr_keys_enum(keys, "defaults", dtype_defaults[i].key, names, 0, ORR_KEY_REQUIRED) - 1;
    }
}

/* Kinds without a key of their own: sequence parallelism is TP's traffic, tied-embedding gradients
 * are gradients; at the end of a step no kernel runs beside the barrier. */
static void fill_rates(double rate[ORR_N_COMM_KINDS]) {
    rate[ORR_COMM_SP] = rate[ORR_COMM_TP];
    rate[ORR_COMM_EMBEDDING] = rate[ORR_COMM_DP_GRADIENT];
    rate[ORR_COMM_STEP_END] = 1;
}

static const char *group_of_key(const char *key) {
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (strcmp(fields[i].key, key) == 0)
            return fields[i].group;
    for (size_t i = 0; i < G_N_ELEMENTS(dtype_defaults); i++)
        if (strcmp(dtype_defaults[i].key, key) == 0)
            return "defaults";
    for (size_t i = 0; i < G_N_ELEMENTS(own_keys); i++)
        if (strcmp(own_keys[i], key) == 0)
            return "framework";
    return NULL;
}

/* An override whose key no group has: any of all groups might have been meant. */
static void complain_of_key(OrrKeys *keys, const char *key) {
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_ptr_array_add(known, (char *)fields[i].key);
    for (size_t i = 0; i < G_N_ELEMENTS(dtype_defaults); i++)
        g_ptr_array_add(known, (char *)dtype_defaults[i].key);
    for (size_t i = 0; i < G_N_ELEMENTS(own_keys); i++)
        g_ptr_array_add(known, (char *)own_keys[i]);
    g_ptr_array_add(known, NULL);
    const char *tail = strrchr(key, '.'); /* GROUP.KEY of a profile: the key alone would do */
    g_autofree char *hint =
        orr_words_hint(tail ? tail + 1 : key, (const char *const *)known->pdata);
    orr_keys_complain(keys, "framework", key, "unknown key; %s", hint);
}

static void override(OrrKeys *keys, const OrrOverride *o) {
    const char *group = group_of_key(o->key);
    orr_keys_override(keys, group ? group : "framework", o->key, o->value,
                      o->origin ? o->origin : "--set");
    if (group)
        orr_keys_said_as(keys, group, o->key, "framework");
    else
        complain_of_key(keys, o->key);
}

/* Keys that @keys lacks and @base has become its own. */
static void take_from_base(OrrKeys *keys, OrrKeys *base) {
    for (size_t i = 0; i < G_N_ELEMENTS(fields) + G_N_ELEMENTS(dtype_defaults) + 1; i++) {
        const char *group = "framework", *key = "flops_formula";
        if (i < G_N_ELEMENTS(fields)) {
            group = fields[i].group;
            key = fields[i].key;
        } else if (i < G_N_ELEMENTS(fields) + G_N_ELEMENTS(dtype_defaults)) {
            group = "defaults";
            key = dtype_defaults[i - G_N_ELEMENTS(fields)].key;
        }
        if (orr_keys_has(keys, group, key) || !orr_keys_has(base, group, key))
            continue;
        orr_keys_override(keys, group, key, orr_keys_string(base, group, key, NULL, ORR_KEY_QUIET),
                          orr_keys_name(base));
    }
}

static bool inherit(OrrKeys *keys, OrrSources *sources, GError **error) {
    g_autofree char *base_ref =
        g_strdup(orr_keys_string(keys, "framework", "based_on", NULL, ORR_KEY_QUIET));
    for (int depth = 0; *base_ref != '\0'; depth++) {
        if (depth == MAX_BASES)
            return orr_fail_input(error,
                                  "%s: [framework] based_on = %s: more than %d profiles "
                                  "lead on to one another; end the chain or the circle",
                                  orr_keys_name(keys), base_ref, MAX_BASES);
        g_autoptr(OrrKeys) base = orr_workloads__open("frameworks", base_ref, sources, error);
        if (base == NULL) {
            g_autofree char *place = orr_keys_place(keys, "framework", "based_on");
            g_prefix_error(error, "%s: ", place);
            return false;
        }
        take_from_base(keys, base);
        g_free(base_ref);
        base_ref = g_strdup(orr_keys_string(base, "framework", "based_on", NULL, ORR_KEY_QUIET));
    }
    return true;
}

void orr_workloads__check_formula(OrrKeys *keys, const char *group, const char *formula) {
    for (size_t i = 0; orr_flops_formulas[i] != NULL; i++)
        if (strcmp(orr_flops_formulas[i], formula) == 0)
            return;
    g_autofree char *known = g_strjoinv(", ", (char **)orr_flops_formulas);
    orr_keys_complain(keys, group, "flops_formula", "no such formula; one of %s will do", known);
}

OrrFramework *orr_workload_framework(const char *ref, const OrrOverride *overrides,
                                     uint32_t n_overrides, OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = orr_workloads__open("frameworks", ref, sources, error);
    if (keys == NULL)
        return NULL;
    for (uint32_t i = 0; i < n_overrides; i++)
        if (g_strcmp0(overrides[i].group, "framework") == 0)
            override(keys, &overrides[i]);
    if (!inherit(keys, sources, error))
        return NULL;
    g_autoptr(OrrFramework) f = g_new0(OrrFramework, 1);
    f->name = orr_workloads__stem(orr_keys_name(keys));
    f->source = g_strdup(orr_keys_string(keys, "framework", "source", NULL, ORR_KEY_REQUIRED));
    orr_keys_string(keys, "framework", "summary", NULL, ORR_KEY_QUIET);
    f->flops_formula =
        g_strdup(orr_keys_string(keys, "framework", "flops_formula", NULL, ORR_KEY_REQUIRED));
    if (*f->flops_formula != '\0')
        orr_workloads__check_formula(keys, "framework", f->flops_formula);
    orr_workloads__read_fields(keys, fields, G_N_ELEMENTS(fields), f);
    read_dtypes(keys, f);
    fill_rates(f->compute_rate_frac);
    fill_rates(f->memory_rate_frac);
    if (!orr_keys_finish(keys, error))
        return NULL;
    g_autofree char *origin = g_strdup_printf("framework %s", f->name);
    orr_workloads__note_defaults(sources, keys, "framework", origin);
    return g_steal_pointer(&f);
}
