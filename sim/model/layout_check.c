/* Why a layout is illegal: every reason, the world size first (declared in groups.h). */
#include "sim/base/units.h"
#include "sim/model/groups.h"
#include "sim/model/params.h"

#include <string.h>

typedef struct {
    const OrrModel *model;
    const OrrLayout *layout;
    const OrrBatch *batch;
    const OrrFramework *framework;
    uint32_t n_gpus;
    GString *reasons; /* a line each */
} Check;

static void refuse(Check *c, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void refuse(Check *c, const char *format, ...) {
    va_list args;
    if (c->reasons->len)
        g_string_append_c(c->reasons, '\n');
    va_start(args, format);
    g_string_append_vprintf(c->reasons, format, args);
    va_end(args);
}

/* Sizes of 0 and a bad rank order: nothing else can be said before these are right. */
static void check_sizes(Check *c) {
    const OrrLayout *l = c->layout;
    const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {
        {"[layout] tp", l->tp},
        {"[layout] pp", l->pp},
        {"[layout] vpp", l->vpp},
        {"[layout] cp", l->cp},
        {"[layout] ep", l->ep},
        {"[layout] dp", l->dp},
        {"[batch] global", c->batch->global_sequences},
        {"[batch] micro", c->batch->micro_sequences},
        {"[batch] sequence", c->batch->sequence_tokens},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++)
        if (sizes[i].value == 0)
            refuse(c, "%s: 0; 1 or more would do", sizes[i].key);
    uint32_t seen = 0;
    for (int i = 0; i < ORR_MAX_DIMS; i++)
        seen |= 1u << l->rank_order[i];
    if (seen != (1u << ORR_MAX_DIMS) - 1)
        refuse(c, "[layout] rank_order: tp, cp, ep, dp and pp must each stand in it once, "
                  "as in tp-cp-ep-dp-pp");
}

/* With the CP of the layout or with 1, the only one that check_not_built() lets pass. */
static void check_world(Check *c) {
    const OrrLayout *l = c->layout;
    uint64_t each = (uint64_t)l->tp * l->pp, world = each * l->dp;
    if (c->n_gpus == 0 || world == c->n_gpus || world * l->cp == c->n_gpus)
        return;
    g_autofree char *have = orr_units_count((double)world);
    g_autofree char *asked = orr_units_count((double)c->n_gpus);
    g_autofree char *dp =
        c->n_gpus % each == 0
            ? g_strdup_printf("dp = %" G_GUINT64_FORMAT " (or auto) or ", c->n_gpus / each)
            : g_strdup("");
    refuse(c,
           "[layout] tp, pp, dp: TP %u x PP %u x DP %u is %s ranks and not %s; %s%s GPUs would do",
           l->tp, l->pp, l->dp, have, asked, dp, have);
}

static void check_not_built(Check *c) {
    if (c->layout->cp > 1)
        refuse(c, "[layout] cp: %u; context parallelism is not modelled yet, cp = 1 would do",
               c->layout->cp);
    if (c->layout->ep > 1)
        refuse(c, "[layout] ep: %u; expert parallelism is not modelled yet, ep = 1 would do",
               c->layout->ep);
}

static void check_tensor_parallel(Check *c) {
    const OrrModel *m = c->model;
    uint32_t t = c->layout->tp;
    if (m->heads % t != 0)
        refuse(c, "[layout] tp: %u heads do not divide by TP %u; a divisor of %u would do",
               m->heads, t, m->heads);
    /* Fewer key-value heads than ranks: each is held by t / kv_heads ranks (Megatron-LM refuses
     * what comes out even neither way). */
    if (m->kv_heads % t != 0 && t % m->kv_heads != 0)
        refuse(c,
               "[layout] tp: %u key-value heads and TP %u: neither divides the other; a divisor "
               "or a multiple of %u would do",
               m->kv_heads, t, m->kv_heads);
    if (m->ffn % t != 0)
        refuse(c, "[layout] tp: ffn %u does not divide by TP %u; a divisor of it would do", m->ffn,
               t);
    if (orr_params_padded_vocab(m, c->layout, c->framework) % t != 0)
        refuse(c,
               "[layout] tp: vocabulary %u does not divide by TP %u and the framework does not "
               "pad it; framework.vocab_multiple = 128 would do",
               m->vocab, t);
    if (!c->layout->sequence_parallel)
        return;
    if (t == 1)
        refuse(c, "[layout] sequence_parallel: yes needs tp above 1; no would do");
    if (c->batch->sequence_tokens % t != 0)
        refuse(c,
               "[batch] sequence: %u tokens do not divide by TP %u, as sequence_parallel needs; a "
               "multiple of %u, or sequence_parallel = no, would do",
               c->batch->sequence_tokens, t, t);
}

static void check_batch(Check *c) {
    const OrrBatch *b = c->batch;
    uint64_t each = (uint64_t)b->micro_sequences * c->layout->dp;
    if (b->global_sequences % each != 0)
        refuse(c,
               "[batch] global: GBS %u does not divide by MBS %u x DP %u = %" G_GUINT64_FORMAT
               "; a multiple of that would do",
               b->global_sequences, b->micro_sequences, c->layout->dp, each);
    if (c->model->position == ORR_POS_LEARNED && b->sequence_tokens > c->model->max_positions)
        refuse(c,
               "[batch] sequence: %u tokens, but the position table of %s has %u rows; "
               "at most those would do",
               b->sequence_tokens, c->model->name, c->model->max_positions);
}

static void check_pipeline(Check *c) {
    const OrrLayout *l = c->layout;
    if (l->vpp > 1 && l->pp == 1)
        refuse(c, "[layout] vpp: %u chunks a stage need pp above 1; vpp = 1 would do", l->vpp);
    /* Chunks are 16-bit in the program's calls; and no split is tried for a flood of stages. */
    if ((uint64_t)l->pp * l->vpp > UINT16_MAX) {
        refuse(c, "[layout] pp, vpp: %u x %u virtual stages; at most %u would do", l->pp, l->vpp,
               UINT16_MAX);
        return;
    }
    g_autofree OrrStagePart *parts = g_new(OrrStagePart, (size_t)l->pp * l->vpp);
    g_autoptr(GError) error = NULL;
    if (!orr_layout_split(c->model, l, parts, &error))
        refuse(c, "%s", error->message);
}

static void check_data_parallel(Check *c) {
    const OrrLayout *l = c->layout;
    if (l->zero_stage > 3)
        refuse(c, "[layout] zero_stage: %u; 0, 1, 2 or 3 would do", l->zero_stage);
    if (l->hsdp_shard == 0)
        return;
    if (l->hsdp_shard == 1)
        refuse(c, "[layout] hsdp_shard: groups of 1 rank shard nothing; zero_stage = 0 without "
                  "hsdp_shard is the same, or 2 and more ranks would do");
    if (l->zero_stage == 0)
        refuse(c,
               "[layout] hsdp_shard: %u ranks share a shard, but zero_stage = 0 shards "
               "nothing; zero_stage = 3, or no hsdp_shard, would do",
               l->hsdp_shard);
    if ((uint64_t)l->dp * l->cp % l->hsdp_shard != 0)
        refuse(c,
               "[layout] hsdp_shard: DP %u does not divide by shard groups of %u; a divisor of it "
               "would do",
               l->dp * l->cp, l->hsdp_shard);
}

bool orr_layout_check(const OrrModel *model, const OrrLayout *layout, const OrrBatch *batch,
                      const OrrFramework *framework, uint32_t n_gpus, GError **error) {
    Check c = {model, layout, batch, framework, n_gpus, g_string_new(NULL)};
    check_sizes(&c);
    if (c.reasons->len == 0) {
        check_world(&c);
        check_not_built(&c);
        check_tensor_parallel(&c);
        check_batch(&c);
        check_pipeline(&c);
        check_data_parallel(&c);
    }
    bool is_legal = c.reasons->len == 0;
    if (!is_legal)
        orr_fail_input(error, "%s", c.reasons->str);
    g_string_free(c.reasons, TRUE);
    return is_legal;
}
