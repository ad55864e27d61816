/* The groups [layout] and [precision] of a job file, and option names of frameworks as aliases. */
#include "workloads/job_priv.h"

#include <string.h>

static const char *const ends_names[] = {"with_layers", "own_chunk", "one_layer_less",
                                         "as_layers",   "by_cost",   NULL};
static const char *const dim_names[] = {"tp", "cp", "ep", "dp", "pp", NULL};

/* What launch scripts call our keys; only names that mean exactly the same number. */
static const struct {
    const char *group, *alias, *key;
} aliases[] = {
    {"layout", "tensor_parallel", "tp"},
    {"layout", "tensor_model_parallel_size", "tp"}, /* Megatron-LM arguments.py */
    {"layout", "tensor_parallel_degree", "tp"},     /* torchtitan job config */
    {"layout", "pipeline_parallel", "pp"},
    {"layout", "pipeline_model_parallel_size", "pp"}, /* Megatron-LM */
    {"layout", "pipeline_parallel_degree", "pp"},     /* torchtitan */
    {"layout", "context_parallel", "cp"},
    {"layout", "context_parallel_size", "cp"},   /* Megatron-LM */
    {"layout", "context_parallel_degree", "cp"}, /* torchtitan */
    {"layout", "expert_parallel", "ep"},
    {"layout", "expert_model_parallel_size", "ep"}, /* Megatron-LM */
    {"layout", "data_parallel", "dp"},
    {"layout", "data_parallel_size", "dp"},                    /* Megatron-LM's log */
    {"layout", "virtual_pipeline_model_parallel_size", "vpp"}, /* NeMo */
    {"batch", "global_batch_size", "global"},
    {"batch", "train_batch_size", "global"}, /* DeepSpeed */
    {"batch", "micro_batch_size", "micro"},
    {"batch", "train_micro_batch_size_per_gpu", "micro"},      /* DeepSpeed */
    {"batch", "gradient_accumulation_steps", "micro_batches"}, /* DeepSpeed */
    {"batch", "seq_length", "sequence"},
    {"batch", "sequence_length", "sequence"},
};

static const char *proper_name(const char *group, const char *key) {
    g_autofree char *plain = g_strdelimit(g_strdup(key), "-", '_');
    for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++)
        if (strcmp(aliases[i].group, group) == 0 && strcmp(aliases[i].alias, plain) == 0)
            return aliases[i].key;
    return NULL;
}

void orr_job__override(JobReader *r, const OrrOverride *o) {
    const char *key = proper_name(o->group, o->key);
    orr_keys_override(r->keys, o->group, key != NULL ? key : o->key, o->value,
                      o->origin ? o->origin : "--set");
}

bool orr_job__is_overridden(const JobReader *r, const char *group, const char *key) {
    for (uint32_t i = 0; i < r->n_overrides; i++)
        if (strcmp(r->overrides[i].group, group) == 0 && strcmp(r->overrides[i].key, key) == 0)
            return true;
    return false;
}

void orr_job__assume(JobReader *r, const char *key, double value, const char *origin) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof(text), "%.0f", value);
    orr_sources_add_assumption(r->derived, key, text, origin);
}

/* Aliases in the file become their proper keys, unless both are given. */
static void resolve_aliases(JobReader *r, const char *group) {
    if (!orr_keys_has_group(r->keys, group))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++) {
        const char *alias = aliases[i].alias, *key = aliases[i].key;
        g_autofree char *dashed = g_strdelimit(g_strdup(alias), "_", '-');
        const char *spellings[] = {alias, dashed};
        for (size_t s = 0; s < G_N_ELEMENTS(spellings); s++) {
            if (strcmp(aliases[i].group, group) != 0 || !orr_keys_has(r->keys, group, spellings[s]))
                continue;
            const char *value = orr_keys_string(r->keys, group, spellings[s], NULL, ORR_KEY_QUIET);
            if (orr_keys_has(r->keys, group, key) && !orr_job__is_overridden(r, group, key))
                orr_keys_complain(r->keys, group, spellings[s],
                                  "means %s, which is given too; one of them would do", key);
            else if (!orr_keys_has(r->keys, group, key))
                orr_keys_override(r->keys, group, key, value, spellings[s]);
            if (strcmp(alias, dashed) == 0)
                break;
        }
    }
}

static uint32_t read_size(JobReader *r, const char *key, OrrKeyFlags flags) {
    return (uint32_t)orr_keys_int(r->keys, "layout", key, NULL, 1, ORR_JOB_MAX_RANKS, 1, flags);
}

/* Without `dp`, or with dp = auto, the cluster's GPUs decide. */
static void read_dp(JobReader *r) {
    OrrLayout *l = &r->job->layout;
    uint64_t model = (uint64_t)l->tp * l->pp * l->cp;
    uint32_t n_gpus = r->job->n_gpus;
    const char *said = orr_keys_string(r->keys, "layout", "dp", "auto", ORR_KEY_QUIET);
    if (strcmp(said, "auto") != 0) {
        l->dp = read_size(r, "dp", ORR_KEY_QUIET);
        return;
    }
    l->dp = 1; /* if nothing says how many */
    if (n_gpus == 0 && orr_keys_has(r->keys, "layout", "dp")) {
        orr_keys_complain(r->keys, "layout", "dp",
                          "needs a number of GPUs; cluster = NAME:GPUS, or a number, would do");
    } else if (n_gpus == 0) {
        orr_keys_complain(r->keys, "layout", "dp",
                          "is missing; it, or a number of GPUs, cluster = NAME:GPUS, would do");
    } else if (n_gpus % model != 0) {
        orr_keys_complain(
            r->keys, "layout", "dp",
            "cannot be derived: TP %u x PP %u x CP %u = %" G_GUINT64_FORMAT
            " ranks do not divide %u GPUs; a TP, PP and CP whose product does would do",
            l->tp, l->pp, l->cp, model, n_gpus);
    } else {
        l->dp = (uint32_t)(n_gpus / model);
        orr_job__assume(r, "layout.dp", l->dp, "GPUs / (tp x pp x cp)");
    }
}

static bool read_dim(const char *word, OrrRankDim *dim) {
    for (guint d = 0; dim_names[d] != NULL; d++)
        if (strcmp(dim_names[d], word) == 0) {
            *dim = (OrrRankDim)d;
            return true;
        }
    return false;
}

/* Fastest dimension first. Those left out must have one rank; they go to the end. */
static void read_rank_order(JobReader *r) {
    OrrLayout *l = &r->job->layout;
    const char *text =
        orr_keys_string(r->keys, "layout", "rank_order", "tp-cp-ep-dp-pp", ORR_KEY_OPTIONAL);
    const uint32_t sizes[] = {l->tp, l->cp, l->ep, l->dp, l->pp};
    bool has[ORR_MAX_DIMS] = {false};
    guint n = 0;
    g_auto(GStrv) words = g_strsplit(text, "-", -1);
    for (guint i = 0; words[i] != NULL; i++) {
        OrrRankDim dim;
        if (!read_dim(words[i], &dim) || has[dim]) {
            orr_keys_complain(
                r->keys, "layout", "rank_order",
                "\"%s\" is unknown or said twice; tp, cp, ep, dp and pp in some order, "
                "such as tp-cp-ep-dp-pp, will do",
                words[i]);
            return;
        }
        has[dim] = true;
        l->rank_order[n++] = dim;
    }
    for (guint d = 0; d < ORR_MAX_DIMS; d++) {
        if (has[d])
            continue;
        if (sizes[d] > 1)
            orr_keys_complain(r->keys, "layout", "rank_order",
                              "leaves out %s, which has %u ranks; with it, it would do",
                              dim_names[d], sizes[d]);
        l->rank_order[n++] = (OrrRankDim)d;
    }
}

static void read_stage_layers(JobReader *r) {
    OrrLayout *l = &r->job->layout;
    g_auto(GStrv) words = orr_keys_strings(r->keys, "layout", "stage_layers", ORR_KEY_QUIET);
    if (words == NULL)
        return;
    guint n = g_strv_length(words);
    if (n != (uint64_t)l->pp * l->vpp)
        orr_keys_complain(r->keys, "layout", "stage_layers",
                          "names %u stages, but there are PP %u x VPP %u = %u; one number for each "
                          "would do",
                          n, l->pp, l->vpp, l->pp * l->vpp);
    l->stage_layers = g_new0(uint32_t, n + 1);
    l->n_stage_layers = n;
    for (guint i = 0; i < n; i++) {
        guint64 layers;
        if (!g_ascii_string_to_unsigned(words[i], 10, 0, 1 << 20, &layers, NULL)) {
            orr_keys_complain(r->keys, "layout", "stage_layers",
                              "\"%s\" is no number of layers; a list such as 8, 8, 7, 7 will do",
                              words[i]);
            return;
        }
        l->stage_layers[i] = (uint32_t)layers;
    }
}

void orr_job__read_layout(JobReader *r) {
    resolve_aliases(r, "layout");
    resolve_aliases(r, "batch");
    OrrLayout *l = &r->job->layout;
    /* Without a profile (an error that is told anyway) nothing is sharded. */
    static const OrrJobDefaults none = {0};
    const OrrJobDefaults *d = r->framework != NULL ? &r->framework->defaults : &none;
    l->tp = read_size(r, "tp", ORR_KEY_OPTIONAL);
    l->pp = read_size(r, "pp", ORR_KEY_OPTIONAL);
    l->vpp = read_size(r, "vpp", l->pp > 1 ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    l->cp = read_size(r, "cp", ORR_KEY_QUIET);
    l->ep = read_size(r, "ep", ORR_KEY_QUIET);
    read_dp(r);
    l->sequence_parallel =
        orr_keys_bool(r->keys, "layout", "sequence_parallel", d->sequence_parallel && l->tp > 1,
                      l->tp > 1 ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    l->zero_stage = (uint32_t)orr_keys_int(r->keys, "layout", "zero_stage", NULL, 0, 3,
                                           d->zero_stage, ORR_KEY_OPTIONAL);
    l->reshard_after_forward =
        orr_keys_bool(r->keys, "layout", "reshard_after_forward", d->reshard_after_forward,
                      l->zero_stage == 3 ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    l->hsdp_shard = (uint32_t)orr_keys_int(r->keys, "layout", "hsdp_shard", "ranks", 0,
                                           ORR_JOB_MAX_RANKS, 0, ORR_KEY_QUIET);
    if (l->hsdp_shard > 0 && l->dp % l->hsdp_shard != 0)
        orr_keys_complain(r->keys, "layout", "hsdp_shard",
                          "does not divide DP %u; a divisor of it would do", l->dp);
    l->ends = (OrrEnds)orr_keys_enum(r->keys, "layout", "ends", ends_names, d->ends,
                                     l->pp > 1 ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    read_stage_layers(r);
    read_rank_order(r);
}

void orr_job__read_precision(JobReader *r) {
    OrrPrecision *p = &r->job->precision;
    static const OrrJobDefaults none = {.compute = ORR_BF16,
                                        .parameters = ORR_AS_COMPUTE,
                                        .gradients = ORR_AS_COMPUTE,
                                        .reduce = ORR_AS_COMPUTE,
                                        .gather = ORR_AS_COMPUTE};
    const OrrJobDefaults *d = r->framework != NULL ? &r->framework->defaults : &none;
    p->compute = (OrrDtype)orr_keys_enum(r->keys, "precision", "compute", orr_dtype_names,
                                         (int)d->compute, ORR_KEY_OPTIONAL);
    OrrPrecision of_profile;
    orr_precision_default(d, p->compute, &of_profile);
    const struct {
        const char *key;
        OrrDtype fallback, *into;
    } rows[] = {
        {"parameters", of_profile.parameters, &p->parameters},
        {"gradients", of_profile.gradients, &p->gradients},
        {"reduce", of_profile.reduce, &p->reduce},
        {"gather", of_profile.gather, &p->gather},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        *rows[i].into = (OrrDtype)orr_keys_enum(r->keys, "precision", rows[i].key, orr_dtype_names,
                                                (int)rows[i].fallback, ORR_KEY_OPTIONAL);
    /* Weights kept in FP32 are their own master copy. */
    bool needs_master = d->has_master && p->parameters != ORR_FP32;
    p->has_master = orr_keys_bool(r->keys, "precision", "master", needs_master, ORR_KEY_OPTIONAL);
    p->master = ORR_FP32;
}

static bool is_of_profile(const char *group, const char *key) {
    static const char *const layout[] = {"zero_stage", "sequence_parallel", "reshard_after_forward",
                                         "ends", NULL};
    return strcmp(group, "precision") == 0 ||
           (strcmp(group, "layout") == 0 && g_strv_contains(layout, key));
}

void orr_job__note_assumptions(JobReader *r, OrrSources *sources) {
    if (sources == NULL)
        return;
    g_autofree char *profile = g_strdup_printf("framework %s", r->framework->name);
    guint n;
    const OrrKeyDefault *defaults = orr_keys_defaults(r->keys, &n);
    for (guint i = 0; i < n; i++) {
        g_autofree char *key = g_strconcat(defaults[i].group, ".", defaults[i].key, NULL);
        bool of_profile = is_of_profile(defaults[i].group, defaults[i].key);
        orr_sources_add_assumption(sources, key, defaults[i].value,
                                   of_profile ? profile : "default of job files");
    }
    for (guint i = 0; i < r->derived->assumptions->len; i++) {
        const OrrAssumption *a = r->derived->assumptions->pdata[i];
        orr_sources_add_assumption(sources, a->key, a->value, a->origin);
    }
}
