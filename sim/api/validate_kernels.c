/* Published collectives and kernels against the models of cost: pure functions, no clock. */
#include "sim/api/validate_priv.h"

#include "sim/collective/collective.h"
#include "sim/collective/place.h"
#include "sim/collective/timed.h"
#include "sim/cost/cost.h"
#include "sim/judge/names.h"

#include <string.h>

static const char *call_flaw(const OrrPublishedCall *call, const char *gpu) {
    if (call->kind == ORR_N_COLLECTIVES)
        return "collective that NCCL does not have, or a broken cell";
    if (call->time_ns <= 0 || call->bytes <= 0)
        return "no time or no size";
    if (call->n_ranks < 2 || call->n_nodes < 1 || call->n_ranks % call->n_nodes != 0)
        return "gpus or nodes not stated or not even";
    if (call->dtype == ORR_N_DTYPES)
        return "dtype that is not known";
    return gpu ? NULL : "GPU without a file";
}

/* GPUs of the first nodes, as many in each; false if the machine has none so large. */
static bool place_call(const OrrPublishedCall *call, const char *gpu, OrrValidateShelf *shelf,
                       OrrCommPlace *place) {
    bool is_default;
    uint32_t per_node = call->n_ranks / call->n_nodes;
    const char *name = orr_judge_cluster(gpu, call->interconnect, &is_default);
    g_autofree char *whole = g_strdup_printf("%s:%u", name, MAX(call->n_ranks, 8));
    const OrrCluster *c = orr_validate__cluster(shelf, whole, NULL);
    if (!c)
        return false;
    uint32_t node = orr_cluster_spec(c)->node->gpus;
    bool is_spread = call->n_nodes > 1 && per_node < node;
    if (is_spread) {
        g_autofree char *larger = g_strdup_printf("%s:%u", name, call->n_nodes * node);
        c = orr_validate__cluster(shelf, larger, NULL);
        if (!c)
            return false;
    }
    g_autofree uint32_t *gpus = g_new(uint32_t, call->n_ranks);
    for (uint32_t r = 0; r < call->n_ranks; r++)
        gpus[r] = is_spread ? r / per_node * node + r % per_node : r;
    orr_comm_place_from_cluster(c, gpus, call->n_ranks, place);
    return true;
}

/* @constants NULL: the shipped ones. */
static void judge_call(const OrrPublishedCall *call, const char *gpu, OrrValidateShelf *shelf,
                       const OrrCollConstants *constants, OrrValidationRow *row) {
    OrrCommPlace place;
    OrrCollPlan plan;
    row->reason = call_flaw(call, gpu);
    if (row->reason)
        return;
    if (!place_call(call, gpu, shelf, &place)) {
        row->reason = "no machine of ours is that large";
        return;
    }
    GError *error = NULL;
    OrrNcclForce force = {.algo = call->algo,
                          .proto = ORR_N_PROTOS,
                          .version = call->version,
                          .constants = constants};
    if (!orr_collective_plan(call->kind, call->bytes, call->dtype, &place, &force, &plan, &error)) {
        row->reason = "algorithm refused";
        row->detail = g_strdup(error->message);
        g_error_free(error);
        return;
    }
    row->measured = call->time_ns;
    row->predicted = orr_collective_timed_ns(&plan, call->bytes, &place, call->timed);
}

static bool constants_of(const char *gpu, OrrValidateShelf *shelf,
                         const OrrCollConstants **constants, GError **error) {
    const OrrCalibration *calibration;
    const OrrGpu *known = gpu ? orr_validate__gpu(shelf, gpu, error) : NULL;
    *constants = NULL;
    if (!gpu)
        return true;
    if (!known || !orr_validate__calibration(shelf, known, &calibration, error))
        return false;
    *constants = calibration ? calibration->collectives : NULL;
    return true;
}

bool orr_validate__calls(const OrrPublished *facts, OrrValidateShelf *shelf, OrrValidation *v,
                         GError **error) {
    for (guint i = 0; i < facts->calls->len; i++) {
        const OrrPublishedCall *call = &g_array_index(facts->calls, OrrPublishedCall, i);
        const char *gpu = orr_judge_gpu(call->gpu);
        const OrrCollConstants *constants;
        if (!constants_of(gpu, shelf, &constants, error))
            return false;
        g_autofree char *system = g_strdup_printf(
            "%s %s", call->system,
            call->kind < ORR_N_COLLECTIVES ? orr_collective_name(call->kind) : call->what);
        OrrValidationRow row = {.kind = ORR_VALIDATED_COLLECTIVE,
                                .file = call->file,
                                .line = call->line,
                                .id = orr_validation_text(v, call->id),
                                .gpu = orr_validation_text(v, gpu ? gpu : call->gpu),
                                .group = orr_validation_text(v, system),
                                .bytes = call->bytes};
        judge_call(call, gpu, shelf, constants, &row);
        g_array_append_val(v->rows, row);
    }
    return true;
}

/* The cost of the GPU that the rows are about; one is kept, tables are of one GPU. */
typedef struct {
    const char *gpu;
    OrrCost *cost;
} LastCost;

static bool cost_of(LastCost *last, const char *name, OrrValidateShelf *shelf, GError **error) {
    const OrrCalibration *calibration;
    if (last->gpu && strcmp(last->gpu, name) == 0)
        return true;
    const OrrGpu *gpu = orr_validate__gpu(shelf, name, error);
    if (!gpu || !orr_validate__calibration(shelf, gpu, &calibration, error))
        return false;
    orr_cost_free(last->cost);
    last->gpu = name;
    last->cost = orr_cost_new(gpu, calibration ? calibration->surfaces : NULL,
                              false); /* short runs: at boost clocks */
    return true;
}

static double kernel_ns(const OrrCost *cost, const OrrPublishedKernel *k) {
    if (k->kind == ORR_K_GEMM)
        return orr_cost_linear_ns(cost, k->dtype, k->is_block_scaled, k->m, k->n, k->k);
    return orr_cost_attention_op_ns(cost, k->dtype, k->is_causal, k->batch, k->sequence_tokens,
                                    k->heads, k->kv_heads, k->head_dim);
}

bool orr_validate__kernels(const OrrPublished *facts, OrrValidateShelf *shelf, OrrValidation *v,
                           GError **error) {
    LastCost last = {0};
    bool is_fine = true;
    for (guint i = 0; i < facts->kernels->len && is_fine; i++) {
        const OrrPublishedKernel *k = &g_array_index(facts->kernels, OrrPublishedKernel, i);
        const char *gpu = orr_judge_gpu(k->gpu);
        g_autofree char *kind = g_strdup_printf("%s %s", orr_kernel_kind_name(k->kind),
                                                k->dtype < ORR_N_DTYPES ? orr_dtype_name(k->dtype)
                                                                        : "of an unknown dtype");
        OrrValidationRow row = {.kind = ORR_VALIDATED_KERNEL,
                                .file = k->file,
                                .line = k->line,
                                .id = orr_validation_text(v, k->id),
                                .gpu = orr_validation_text(v, gpu ? gpu : k->gpu),
                                .group = orr_validation_text(v, kind),
                                .reason = k->flaw ? orr_validation_text(v, k->flaw)
                                          : gpu   ? NULL
                                                  : "GPU without a file"};
        if (!row.reason) {
            is_fine = cost_of(&last, gpu, shelf, error);
            row.measured = k->time_ns;
            row.predicted = is_fine ? kernel_ns(last.cost, k) : 0;
        }
        g_array_append_val(v->rows, row);
    }
    orr_cost_free(last.cost);
    return is_fine;
}
