/* Data parallelism: what is reduced and gathered, over whom, and when gradients are final.
 *
 * ZeRO-0 all-reduces gradients; ZeRO-1 and 2 reduce-scatter them and gather updated parameters once
 * a step; ZeRO-3 gathers parameters per unit and pass, and reduce-scatters every micro-batch
 * (Rajbhandari et al. 2020, section 5; Zhao et al. 2023, section 4). Hybrid sharding does so within
 * shard groups, and all-reduces shards over the replicas behind each reduce-scatter. Gradients of a
 * chunk are final in the last of its backward passes. */
#include "sim/lower/lower_priv.h"

#include <string.h>

static OrrColl data_coll(const OrrLower *w, OrrCollective kind, OrrDtype dtype, OrrCommKind purpose,
                         uint32_t comm, uint64_t n_params, const char *label) {
    OrrColl coll = {.kind = kind,
                    .group = w->dp_group,
                    .comm = comm,
                    .purpose = purpose,
                    .dtype = dtype,
                    .bytes = (int64_t)((double)n_params * orr_dtype_bytes(dtype))};
    g_strlcpy(coll.label, label, sizeof coll.label);
    return coll;
}

/* Sharded optimizers that leave the gradients to one call (nanotron trainer.py, where no
 * DistributedDataParallel is made). */
static bool reduces_at_once(const OrrLower *w) {
    return w->fw->zero_one_call && (w->layout->zero_stage == 1 || w->layout->zero_stage == 2);
}

/* Hybrid sharding: each rank then holds the sum of its shard group, and sums it with the ranks that
 * hold the same shard elsewhere (Zhao et al. 2023, section 3.2.2). */
static uint32_t reduce_replicas(OrrLower *w, uint64_t n_params) {
    uint64_t n_shard = (n_params + w->dp - 1) / w->dp;
    OrrColl coll = data_coll(w, ORR_ALL_REDUCE, w->precision->reduce, ORR_COMM_DP_GRADIENT,
                             ORR_COMM_ID_GRADIENT, n_shard, "grads of replicas");
    coll.group = ORR_GROUP_HSDP_REPLICA;
    return orr_emit_coll(&w->emit, w->b, ORR_STREAM_DP, &coll);
}

/* Frameworks that sum whole gradients on every rank though each updates its part only do so over
 * all of data parallelism, whatever the groups of parts are. */
static uint32_t reduce_once(OrrLower *w, uint64_t n_params, uint32_t ready) {
    bool sums_whole = w->fw->zero_all_reduce && w->layout->zero_stage < 3;
    bool is_sharded = w->layout->zero_stage > 0 && !sums_whole;
    OrrColl coll =
        data_coll(w, is_sharded ? ORR_REDUCE_SCATTER : ORR_ALL_REDUCE, w->precision->reduce,
                  ORR_COMM_DP_GRADIENT, ORR_COMM_ID_GRADIENT, n_params, "grads");
    if (sums_whole)
        coll.group = ORR_GROUP_DP_CP;
    uint32_t op = orr_emit_coll(&w->emit, w->b, ORR_STREAM_DP, &coll);
    orr_builder_wait(w->b, ready);
    return w->replicas > 1 && !sums_whole ? reduce_replicas(w, n_params) : op;
}

/* Buckets smaller than what is final take a call each (a bucket of 0: a unit at a time), unless
 * what comes is cut at tensors already. */
uint32_t orr_lower__reduce(OrrLower *w, uint64_t n_params, uint32_t ready) {
    bool is_whole = w->fw->bucket_whole_tensors || reduces_at_once(w);
    uint64_t most =
        is_whole ? 0 : (uint64_t)(w->fw->bucket_bytes / orr_dtype_bytes(w->precision->reduce));
    for (; most > 0 && n_params > most; n_params -= most)
        reduce_once(w, most, ready);
    return reduce_once(w, n_params, ready);
}

OrrColl orr_lower__gather(const OrrLower *w, uint64_t n_params, const char *label) {
    return data_coll(w, ORR_ALL_GATHER, w->precision->gather, ORR_COMM_DP_PARAMETER,
                     ORR_COMM_ID_PARAMETER, n_params, label);
}

bool orr_lower__reduces(const OrrLower *w) {
    return w->dp > 1;
}

bool orr_lower__reduces_inside(const OrrLower *w) {
    if (!orr_lower__reduces(w))
        return false;
    if (w->layout->zero_stage == 3)
        return true;
    if (reduces_at_once(w))
        return false;
    if (w->layout->zero_stage == 2 && w->fw->reduce_when != ORR_REDUCE_AT_END)
        return true;
    return w->fw->overlap_grad_reduce;
}

int64_t orr_lower__buffer_bytes(const OrrLower *w, uint64_t n_params) {
    if (!orr_lower__reduces(w) || w->layout->zero_stage != 2 || !w->fw->shard_gradient_buffer)
        return 0;
    return (int64_t)((double)n_params * orr_dtype_bytes(w->precision->gradients));
}

bool orr_lower__gathers_behind(const OrrLower *w) {
    return w->dp > 1 && (w->layout->zero_stage == 1 || w->layout->zero_stage == 2) &&
           w->fw->overlap_param_gather;
}

static bool makes_gradients(const OrrSlot *slot) {
    return slot->pass == ORR_B || slot->pass == ORR_W;
}

/* Position of slot @i among those of its chunk that make gradients, and how many there are. */
static uint32_t gradient_index(const OrrOrder *o, uint32_t stage, uint32_t i, uint32_t *n) {
    uint32_t index = 0;
    const OrrSlot *slot = &o->slots[i];
    *n = 0;
    for (uint32_t j = o->first[stage]; j < o->first[stage + 1]; j++) {
        if (!makes_gradients(&o->slots[j]) || o->slots[j].chunk != slot->chunk)
            continue;
        if (j == i)
            index = *n;
        (*n)++;
    }
    return index;
}

static bool is_first_forward(const OrrOrder *o, uint32_t stage, uint32_t i) {
    for (uint32_t j = o->first[stage]; j < i; j++)
        if (o->slots[j].pass == ORR_F && o->slots[j].chunk == o->slots[i].chunk)
            return false;
    return true;
}

uint32_t orr_lower__variant(const OrrLower *w, uint32_t stage, uint32_t i) {
    const OrrOrder *o = w->in->order;
    const OrrSlot *slot = &o->slots[i];
    bool keeps = w->layout->zero_stage == 3 && w->dp > 1 && !w->layout->reshard_after_forward;
    uint32_t variant = keeps ? ORR_GATHER_KEEP : 0;
    if (slot->pass == ORR_F)
        return (keeps || orr_lower__gathers_behind(w)) && is_first_forward(o, stage, i)
                   ? variant | ORR_GRAD_FIRST
                   : variant;
    if (!makes_gradients(slot))
        return variant;
    uint32_t n, j = gradient_index(o, stage, i, &n), run = n;
    if (w->layout->zero_stage == 2 && w->fw->reduce_when == ORR_REDUCE_EACH_MICRO_BATCH)
        run = 1;
    if (w->layout->zero_stage == 2 && w->fw->reduce_when == ORR_REDUCE_EACH_RUN)
        run = w->layout->pp;
    if (j % run == 0)
        variant |= ORR_GRAD_FIRST;
    if (j % run == run - 1 || j == n - 1)
        variant |= ORR_GRAD_FINAL;
    return variant;
}
