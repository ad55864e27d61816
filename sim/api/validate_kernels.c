/* Published kernels against the models of cost: pure functions, no clock. */
#include "sim/api/validate_priv.h"

#include "sim/cost/cost.h"
#include "sim/judge/names.h"

#include <string.h>

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

/* Papers time the kernel of a training library, the tables what a serving stack does with it:
 * quantisation, rotary embedding, cache writes. */
static double kernel_ns(const OrrCost *cost, const OrrPublishedKernel *k) {
    if (k->kind == ORR_K_GEMM)
        return orr_cost_linear_ns(cost, k->dtype, k->is_block_scaled, k->is_alone, k->m, k->n,
                                  k->k);
    if (k->is_alone) {
        double pairs = (double)k->sequence_tokens * (double)k->sequence_tokens;
        OrrKernel kernel = {.kind = ORR_K_ATTENTION,
                            .pass = ORR_PASS_FORWARD,
                            .dtype = (uint8_t)k->dtype,
                            .is_causal = k->is_causal,
                            .heads = k->heads,
                            .kv_heads = k->kv_heads,
                            .m = k->sequence_tokens,
                            .n = k->sequence_tokens,
                            .k = k->head_dim,
                            .batch = k->batch,
                            .launches = 1};
        /* two products, 2 FLOPs each; a mask leaves half (arXiv:2307.08691, section 4.1) */
        kernel.flops =
            4.0 * (double)(k->batch * k->heads * k->head_dim) * pairs * (k->is_causal ? 0.5 : 1.0);
        return (double)orr_cost_kernel_ns(cost, &kernel);
    }
    return orr_cost_attention_op_ns(cost, k->dtype, k->is_causal, k->batch, k->sequence_tokens,
                                    k->heads, k->kv_heads, k->head_dim);
}

bool orr_validate__kernels(const OrrPublished *facts, OrrValidateShelf *shelf, OrrValidation *v,
                           GError **error) {
    LastCost last = {0};
    bool is_fine = true;
    for (guint i = 0; i < facts->kernels->len && is_fine; i++) {
        const OrrPublishedKernel *k = &g_array_index(facts->kernels, OrrPublishedKernel, i);
        const char *gpu = orr_judge_gpu(shelf->names, k->gpu);
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
