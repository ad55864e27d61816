/* DeepSpeed, NeMo and torchtitan. */
#include "calibrate/run_log_priv.h"

#include <math.h>
#include <string.h>

static bool is_count(double value) {
    return value >= 0 && value < 1e12;
}

/* The text of an option "--name value" as a number; NAN. */
static double option(const char *line, const char *name) {
    g_autofree char *key = g_strconcat("--", name, NULL);
    return orr_calibrate__field(line, key);
}

/* The command line that the launcher prints: "cmd = deepspeed main.py --zero_stage 2 ...". */
static void read_command(OrrRunReader *r, const char *line) {
    double stage = option(line, "zero_stage"), sequence = option(line, "max_seq_len");
    double micro = option(line, "per_device_train_batch_size");
    const char *model = strstr(line, "--model_name_or_path ");
    if (stage >= 0 && stage <= 3)
        r->run->zero_stage = (int32_t)stage;
    if (sequence >= 1 && is_count(sequence))
        r->run->sequence_tokens = (int64_t)sequence;
    if (micro >= 1 && is_count(micro))
        r->run->micro_batch = (int64_t)micro;
    if (model && !r->run->model) {
        model += strlen("--model_name_or_path ");
        r->run->model = g_strndup(model, strcspn(model, " "));
    }
}

/* "train_batch_size ............. 64" of the configuration that DeepSpeed prints. */
static void read_config(OrrRunReader *r, const char *line) {
    guint n;
    int64_t value;
    g_auto(GStrv) words = orr_log_words(line, &n);
    if (n < 3 || !orr_log_int(words[n - 1], &value) || value < 1 || words[n - 2][0] != '.')
        return;
    if (strcmp(words[n - 3], "train_batch_size") == 0)
        r->run->global_batch = value;
    if (strcmp(words[n - 3], "train_micro_batch_size_per_gpu") == 0)
        r->run->micro_batch = value;
    if (strcmp(words[n - 3], "world_size") == 0 && value < 1000000000 && r->run->n_gpus == 0)
        r->run->n_gpus = (uint32_t)value;
}

/* "epoch=0/micro_step=400/global_step=400, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=.." or,
 * of the pipeline engine, "steps: 10 loss: 7.9 iter time (s): 1.234 samples/sec: 103.7". */
static bool read_deepspeed(OrrRunReader *r, const char *line, uint32_t number) {
    if (g_str_has_prefix(line, "cmd = deepspeed"))
        read_command(r, line);
    if (strstr(line, "batch_size") || strstr(line, "world_size"))
        read_config(r, line);
    double time_s = orr_calibrate__field(line, "iter time (s)");
    double rate = orr_calibrate__field(line, "CurrSamplesPerSec");
    double iteration = orr_calibrate__field(line, "global_step");
    if (!isnan(time_s)) {
        iteration = orr_calibrate__field(line, "steps");
        rate = orr_calibrate__field(line, "samples/sec");
    } else if (isnan(rate)) {
        return false;
    }
    if (!is_count(iteration) || !(rate > 0))
        return false;
    OrrMeasuredStep step = orr_calibrate__step((int64_t)iteration, number);
    step.samples_per_s = rate;
    if (time_s > 0)
        step.time_ns = time_s * 1e9;
    else if (r->run->global_batch > 0)
        step.time_ns = (double)r->run->global_batch / rate * 1e9;
    double peak = orr_calibrate__field(line, "MaxMemAllocated");
    if (peak > 0) {
        step.memory_bytes = peak * 1073741824; /* DeepSpeed's GB are GiB */
        r->run->memory_what = "allocated";
    }
    orr_calibrate__add_step(r, step, orr_calibrate__stamp_s(line));
    return true;
}

const OrrRunFormat orr_calibrate__deepspeed = {"DeepSpeed", read_deepspeed};

/* "... global_step=9.000, consumed_samples=1280.0, train_step_timing in s=4.560" of the progress
 * bar, or "iteration 5/99 | ... | train_step_timing in s: 4.56 | ..." of NeMo 2. */
static bool read_nemo(OrrRunReader *r, const char *line, uint32_t number) {
    double time_s = orr_calibrate__field(line, "train_step_timing in s");
    double iteration = orr_calibrate__field(line, "global_step");
    if (isnan(iteration))
        iteration = orr_calibrate__field(line, "iteration");
    if (!(time_s > 0) || !is_count(iteration))
        return false;
    OrrMeasuredStep step = orr_calibrate__step((int64_t)iteration, number);
    step.time_ns = time_s * 1e9;
    step.tflops_per_gpu = orr_calibrate__field(line, "TFLOPS_per_GPU");
    double batch = orr_calibrate__field(line, "global_batch_size");
    double samples = orr_calibrate__field(line, "consumed_samples");
    if (batch >= 1 && is_count(batch))
        r->run->global_batch = (int64_t)batch;
    if (is_count(samples) && r->last_samples >= 0 && r->steps->len > 0 && isnan(batch)) {
        int64_t before = g_array_index(r->steps, OrrMeasuredStep, r->steps->len - 1).iteration;
        if (step.iteration == before + 1 && samples > (double)r->last_samples)
            r->run->global_batch = (int64_t)samples - r->last_samples;
    }
    r->last_samples = is_count(samples) ? (int64_t)samples : -1;
    orr_calibrate__add_step(r, step, NAN);
    return true;
}

const OrrRunFormat orr_calibrate__nemo = {"NeMo", read_nemo};

/* "CUDA capacity: NVIDIA H100 with 95.00GiB memory" */
static void read_device(OrrRunReader *r, const char *line) {
    const char *name = strstr(line, "capacity: ");
    name = name ? name + strlen("capacity: ") : NULL;
    const char *end = name ? strstr(name, " with ") : NULL;
    if (!end || r->run->gpu)
        return;
    r->run->gpu = g_strndup(name, (gsize)(end - name));
}

/* "... with local batch size 2, global batch size 16, sequence length 8192, ..." */
static void read_batch(OrrRunReader *r, const char *line) {
    double micro = orr_calibrate__field(line, "local batch size");
    double batch = orr_calibrate__field(line, "global batch size");
    double sequence = orr_calibrate__field(line, "sequence length");
    if (micro >= 1 && is_count(micro))
        r->run->micro_batch = (int64_t)micro;
    if (batch >= 1 && is_count(batch))
        r->run->global_batch = (int64_t)batch;
    if (sequence >= 1 && is_count(sequence))
        r->run->sequence_tokens = (int64_t)sequence;
}

/* "step: 1990  loss:  3.4370  memory: 68.57GiB(86.69%)  tps: 6,785  tflops: 3.1  mfu: 39.73%".
 * tps counts tokens a GPU and second. */
static bool read_torchtitan(OrrRunReader *r, const char *line, uint32_t number) {
    if (strstr(line, " capacity: "))
        read_device(r, line);
    if (strstr(line, "global batch size"))
        read_batch(r, line);
    double iteration = orr_calibrate__field(line, "step"), tps = orr_calibrate__field(line, "tps");
    if (!is_count(iteration) || !(tps > 0))
        return false;
    OrrMeasuredStep step = orr_calibrate__step((int64_t)iteration, number);
    const OrrMeasuredRun *run = r->run;
    step.tokens_per_gpu_per_s = tps;
    step.tflops_per_gpu = orr_calibrate__field(line, "tflops");
    step.mfu_frac = orr_calibrate__field(line, "mfu") / 100; /* printed in per cent */
    double memory = orr_calibrate__field(line, "memory");
    if (memory > 0) {
        step.memory_bytes = memory * 1073741824; /* GiB */
        r->run->memory_what = "reserved";
    }
    if (run->global_batch > 0 && run->sequence_tokens > 0 && run->n_gpus > 0)
        step.time_ns = (double)run->global_batch * (double)run->sequence_tokens /
                       (tps * (double)run->n_gpus) * 1e9;
    orr_calibrate__add_step(r, step, orr_calibrate__stamp_s(line));
    return true;
}

const OrrRunFormat orr_calibrate__torchtitan = {"torchtitan", read_torchtitan};
