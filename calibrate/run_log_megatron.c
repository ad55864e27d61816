/* Megatron-LM and Megatron-DeepSpeed. A step is "iteration N/ M | ... | elapsed time per iteration
 * (ms): X | ...", the unit was (s) in some forks; arguments are printed as "name ..... value". */
#include "calibrate/run_log_priv.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum { U32, I64 } Width;

static const struct {
    const char *name;
    size_t offset;
    Width width;
} arguments[] = {
#define M(member) offsetof(OrrMeasuredRun, member)
    {"world_size", M(n_gpus), U32},
    {"tensor_model_parallel_size", M(tp), U32},
    {"model_parallel_size", M(tp), U32}, /* before pipelines */
    {"pipeline_model_parallel_size", M(pp), U32},
    {"data_parallel_size", M(dp), U32},
    {"context_parallel_size", M(cp), U32},
    {"expert_model_parallel_size", M(ep), U32},
    {"virtual_pipeline_model_parallel_size", M(vpp), U32},
    {"num_layers", M(layers), U32},
    {"hidden_size", M(hidden), U32},
    {"num_attention_heads", M(heads), U32},
    {"padded_vocab_size", M(vocab), U32},
    {"ffn_hidden_size", M(ffn), I64},
    {"seq_length", M(sequence_tokens), I64},
    {"global_batch_size", M(global_batch), I64},
    {"micro_batch_size", M(micro_batch), I64},
#undef M
};

static void read_argument(OrrRunReader *r, const char *line) {
    guint n_words;
    if (!strstr(line, " ..."))
        return;
    g_auto(GStrv) words = orr_log_words(line, &n_words);
    if (n_words != 3 || !g_str_has_prefix(words[1], "..."))
        return;
    int64_t value;
    OrrMeasuredRun *run = r->run;
    bool is_true = strcmp(words[2], "True") == 0, is_false = strcmp(words[2], "False") == 0;
    if (strcmp(words[0], "checkpoint_activations") == 0 && (is_true || is_false))
        run->is_recompute = is_true;
    if (strcmp(words[0], "recompute_granularity") == 0)
        run->is_recompute = strcmp(words[2], "full") == 0;
    if (strcmp(words[0], "deepspeed") == 0 && is_true)
        r->is_deepspeed = true;
    if (!orr_log_int(words[2], &value) || value < 0)
        return;
    if (strcmp(words[0], "zero_stage") == 0 && value <= 3)
        run->zero_stage = (int32_t)value;
    for (guint i = 0; i < G_N_ELEMENTS(arguments); i++) {
        if (strcmp(arguments[i].name, words[0]) != 0)
            continue;
        void *at = (char *)run + arguments[i].offset;
        if (arguments[i].width == I64)
            *(int64_t *)at = value;
        else if (value < UINT32_MAX)
            *(uint32_t *)at = (uint32_t)value;
    }
}

static void set_size(uint32_t *to, double value) {
    if (value >= 1 && value < 1e9)
        *to = (uint32_t)value;
}

/* "using world size: 64, data-parallel-size: 1, tensor-model-parallel size: 4, ..." */
static void read_world(OrrRunReader *r, const char *line) {
    set_size(&r->run->n_gpus, orr_calibrate__field(line, "world size"));
    set_size(&r->run->dp, orr_calibrate__field(line, "data-parallel-size"));
    set_size(&r->run->dp, orr_calibrate__field(line, "data-parallel size"));
    set_size(&r->run->cp, orr_calibrate__field(line, "context-parallel size"));
    set_size(&r->run->cp, orr_calibrate__field(line, "context-parallel-size"));
    set_size(&r->run->tp, orr_calibrate__field(line, "tensor-model-parallel size"));
    set_size(&r->run->pp, orr_calibrate__field(line, "pipeline-model-parallel size"));
}

/* "[Rank 0] (after 10 iterations) memory (MB) | allocated: .. | max allocated: .. | ..." */
static void read_memory(OrrRunReader *r, const char *line) {
    double reserved = orr_calibrate__field(line, "max reserved");
    if (isnan(reserved) || r->steps->len == 0)
        return;
    OrrMeasuredStep *last = &g_array_index(r->steps, OrrMeasuredStep, r->steps->len - 1);
    if (!(last->memory_bytes >= reserved * 1048576)) /* of all ranks the highest; MB are MiB */
        last->memory_bytes = reserved * 1048576;
    r->run->memory_what = "reserved";
}

static void read_rates(OrrMeasuredStep *step, const char *line) {
    static const char *const names[] = {"TFLOPs", "throughput per GPU (TFLOP/s/GPU)",
                                        "tokens-per-second-per-gpu", "samples per second"};
    double tflops = orr_calibrate__field(line, names[0]);
    if (isnan(tflops))
        tflops = orr_calibrate__field(line, names[1]);
    double tokens = orr_calibrate__field(line, names[2]);
    double samples = orr_calibrate__field(line, names[3]);
    if (!isnan(tflops))
        step->tflops_per_gpu = tflops;
    if (!isnan(tokens))
        step->tokens_per_gpu_per_s = tokens;
    if (!isnan(samples))
        step->samples_per_s = samples;
}

static bool read_step(OrrRunReader *r, const char *line, uint32_t number) {
    double iteration = orr_calibrate__field(line, "iteration");
    double ms = orr_calibrate__field(line, "elapsed time per iteration (ms)");
    double s = orr_calibrate__field(line, "elapsed time per iteration (s)");
    double time_ns = isnan(ms) ? s * 1e9 : ms * 1e6;
    if (isnan(iteration) || !(time_ns > 0) || iteration < 0 || iteration > 1e12)
        return false;
    OrrMeasuredStep step = orr_calibrate__step((int64_t)iteration, number);
    step.time_ns = time_ns;
    read_rates(&step, line);
    step.is_dropped = orr_calibrate__field(line, "number of skipped iterations") > 0;
    double batch = orr_calibrate__field(line, "global batch size");
    if (batch >= 1 && batch < 1e12)
        r->run->global_batch = (int64_t)batch;
    orr_calibrate__add_step(r, step, NAN);
    return true;
}

static bool read_line(OrrRunReader *r, const char *line, uint32_t number) {
    if (strstr(line, "elapsed time per iteration"))
        return read_step(r, line, number);
    if (strstr(line, "TFLOPs:") && r->steps->len > 0) { /* the line before was wrapped */
        OrrMeasuredStep *last = &g_array_index(r->steps, OrrMeasuredStep, r->steps->len - 1);
        if (isnan(last->tflops_per_gpu))
            read_rates(last, line);
        return false;
    }
    if (strstr(line, "using world size:"))
        read_world(r, line);
    else if (strstr(line, "memory (MB)"))
        read_memory(r, line);
    else
        read_argument(r, line);
    return false;
}

const OrrRunFormat orr_calibrate__megatron = {"Megatron", read_line};
