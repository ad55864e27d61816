/* A simulated step against a training log: by the framework's own timers where the log has them. A
 * timer and the owners of the simulated compute stream that it covers make a term; what overlaps a
 * timer's section and has none of its own is in that section on both sides. */
#include <math.h>
#include <string.h>

#include "sim/judge/judge_priv.h"

typedef enum { WORK, PIPELINE, DATA, GRADIENTS, EMBEDDING, PARAMETERS, OPTIMIZER, N_PARTS } Part;

static const char *const part_names[N_PARTS] = {
    "work",     "pipeline", "data", "gradient_reduction", "embedding_reduction", "parameter_gather",
    "optimizer"};

/* WHOLE: a section that holds all of forward and backward, NESTED in it others. */
typedef enum { APART, NESTED, WHOLE } Place;

/* Source: NVIDIA/Megatron-LM, megatron/training.py and core/pipeline_parallel/schedules.py of
 * 2021 to 2025; deepspeedai/DeepSpeed, runtime/engine.py. */
static const struct {
    const char *name;
    Part part;
    Place place;
} timers[] = {
    {"forward-backward", WORK, WHOLE},
    {"forward-compute", WORK, APART},
    {"backward-compute", WORK, APART},
    {"fwd", WORK, APART},
    {"bwd_inner", WORK, APART},
    {"forward-recv", PIPELINE, NESTED},
    {"forward-send", PIPELINE, NESTED},
    {"backward-recv", PIPELINE, NESTED},
    {"backward-send", PIPELINE, NESTED},
    {"forward-send-forward-recv", PIPELINE, NESTED},
    {"forward-send-backward-recv", PIPELINE, NESTED},
    {"backward-send-forward-recv", PIPELINE, NESTED},
    {"backward-send-backward-recv", PIPELINE, NESTED},
    {"forward-backward-send-forward-backward-recv", PIPELINE, NESTED},
    {"batch-generator", DATA, NESTED},
    {"backward-params-all-reduce", GRADIENTS, APART},
    {"backward-reduce-model-grads", GRADIENTS, APART},
    {"grads-all-reduce", GRADIENTS, APART},
    {"grads-reduce-scatter", GRADIENTS, APART},
    {"bwd_allreduce", GRADIENTS, APART},
    {"all-grads-sync", GRADIENTS, NESTED},
    {"backward-embedding-all-reduce", EMBEDDING, APART},
    {"embedding-grads-all-reduce", EMBEDDING, NESTED},
    {"backward-gather-model-params", PARAMETERS, APART},
    {"optimizer", OPTIMIZER, APART},
    {"step", OPTIMIZER, APART},
};

typedef struct {
    double ns[N_PARTS]; /* NAN: no timer */
    bool is_whole;      /* WORK came of a section that held the nested ones */
} Told;

/* batch-generator runs within forward-compute, sends and receives beside it. */
static bool is_within_work(Part part, Place place, bool is_whole) {
    return is_whole ? place == NESTED : part == DATA;
}

static Told told_by(const OrrMeasuredRun *log) {
    Told t = {0};
    double whole_ns = NAN, inside_ns = 0;
    for (int p = 0; p < N_PARTS; p++)
        t.ns[p] = NAN;
    for (size_t k = 0; k < G_N_ELEMENTS(timers); k++)
        for (uint32_t i = 0; i < log->n_timers; i++) {
            if (strcmp(timers[k].name, log->timers[i].name) != 0)
                continue;
            double ns = log->timers[i].time_ns;
            if (timers[k].place == WHOLE)
                whole_ns = ns;
            else
                t.ns[timers[k].part] =
                    (isnan(t.ns[timers[k].part]) ? 0 : t.ns[timers[k].part]) + ns;
        }
    t.is_whole = !isnan(whole_ns);
    for (size_t k = 0; k < G_N_ELEMENTS(timers); k++)
        for (uint32_t i = 0; i < log->n_timers; i++)
            if (strcmp(timers[k].name, log->timers[i].name) == 0 && timers[k].part != WORK &&
                is_within_work(timers[k].part, timers[k].place, t.is_whole))
                inside_ns += log->timers[i].time_ns;
    if (t.is_whole)
        t.ns[WORK] = whole_ns;
    if (!isnan(t.ns[WORK]))
        t.ns[WORK] = fmax(0, t.ns[WORK] - inside_ns);
    return t;
}

static Part part_of(int owner) {
    int comm = owner - (int)ORR_OWN_EXPOSED_FIRST;
    if (owner == ORR_K_OPTIMIZER || owner == ORR_OWN_STEP_END || comm == ORR_COMM_STEP_END)
        return OPTIMIZER;
    if (owner == ORR_OWN_BUBBLE || comm == ORR_COMM_PP)
        return PIPELINE;
    if (owner == ORR_OWN_DATA)
        return DATA;
    if (comm == ORR_COMM_DP_GRADIENT)
        return GRADIENTS;
    if (comm == ORR_COMM_DP_PARAMETER)
        return PARAMETERS;
    return comm == ORR_COMM_EMBEDDING ? EMBEDDING : WORK;
}

/* A rank of the last stage logs, where the log's timers are of one rank. */
static const int64_t *account_of(const OrrRecord *one, const OrrMeasuredRun *log) {
    const OrrRecordStage *last = one->n_stages > 0 ? &one->stages[one->n_stages - 1] : NULL;
    bool is_taken = false;
    for (int o = 0; last && o < ORR_N_OWNERS; o++)
        is_taken |= last->account_ns[o] != 0;
    bool is_one = log->timers_of && strstr(log->timers_of, "last stage");
    return is_one && is_taken ? last->account_ns : one->time_account_ns;
}

static void add_timers(OrrCompare *c, const OrrRecord *one, const OrrMeasuredRun *log) {
    static const Part host_of[N_PARTS] = {
        [PIPELINE] = WORK,        [DATA] = WORK,          [GRADIENTS] = WORK, [EMBEDDING] = WORK,
        [PARAMETERS] = OPTIMIZER, [OPTIMIZER] = OPTIMIZER};
    const int64_t *account = account_of(one, log);
    int64_t sim_ns[N_PARTS] = {0};
    Told told = told_by(log);
    for (int o = 0; o < ORR_N_OWNERS; o++)
        sim_ns[part_of(o)] += account[o];
    bool is_merged = false;
    for (int p = 1; p < N_PARTS; p++) {
        if (!isnan(told.ns[p]) || (Part)p == host_of[p])
            continue; /* has its own timer, or none could hold it */
        is_merged |= p == PIPELINE && (told.is_whole || sim_ns[p] > 0);
        sim_ns[host_of[p]] += sim_ns[p];
    }
    if (one->layout.pp > 1 && !isnan(told.ns[PIPELINE]) && !isnan(told.ns[EMBEDDING])) {
        /* the last stage waits there for the first: which part is a wait no timer tells */
        orr_judge__add_term(c, "pipeline_and_embedding_reduction",
                            sim_ns[PIPELINE] + sim_ns[EMBEDDING],
                            (int64_t)(told.ns[PIPELINE] + told.ns[EMBEDDING]));
        told.ns[PIPELINE] = told.ns[EMBEDDING] = NAN;
    }
    for (int p = 0; p < N_PARTS; p++) {
        bool is_all = p == WORK && is_merged;
        if (!isnan(told.ns[p]))
            orr_judge__add_term(c, is_all ? "forward_backward" : part_names[p], sim_ns[p],
                                (int64_t)told.ns[p]);
    }
    g_ptr_array_add(c->notes, g_strdup_printf("timers of the log are of %s", log->timers_of));
}

/* Without timers: more tokens than simulated, and what the log's own steps vary by. */
static void add_whole(OrrCompare *c, const OrrRecord *one, const OrrMeasuredRun *log) {
    double tokens = (double)log->global_batch * (double)log->sequence_tokens;
    double more =
        tokens > 0 && one->tokens_per_step > 0 ? tokens / (double)one->tokens_per_step - 1 : 0;
    orr_judge__add_term(c, "as_simulated", one->step_time_ns, one->step_time_ns);
    orr_judge__add_term(c, "more_tokens_a_step", 0, (int64_t)(more * (double)one->step_time_ns));
    if (isfinite(log->step_p10_ns) && log->step_p10_ns < log->step_time_ns)
        orr_judge__add_term(c, "slower_than_its_own_best_steps", 0,
                            (int64_t)(log->step_time_ns - log->step_p10_ns));
    g_ptr_array_add(c->notes,
                    g_strdup("the log has no timers: where its time goes it does not tell "
                             "(Megatron: --timing-log-level 2, DeepSpeed: wall_clock_breakdown)"));
}

static void note_frac(OrrCompare *c, const char *format, double frac) {
    char text[32];
    g_ascii_formatd(text, sizeof text, "%.1f", 100 * frac);
    g_ptr_array_add(c->notes, g_strdup_printf(format, text));
}

/* FLOPs that the log counts a step against ours: another model or formula. */
static void note_work(OrrCompare *c, const OrrRecord *one, const OrrMeasuredRun *log) {
    if (!(log->tflops_per_gpu > 0) || log->n_gpus != one->world_size || one->tflops_per_gpu <= 0)
        return;
    double theirs = log->tflops_per_gpu * log->step_time_ns;
    double ours = one->tflops_per_gpu * (double)one->step_time_ns;
    if (fabs(theirs / ours - 1) > 0.03) /* ours: rounding of a logged figure is below */
        note_frac(c,
                  "the log counts %s %% of our FLOPs a step: another formula, recomputed work, or "
                  "another model or batch",
                  theirs / ours);
}

static int64_t peak_of(const OrrRecord *one) {
    int64_t peak = 0;
    for (uint32_t i = 0; i < one->n_stages; i++)
        peak = MAX(peak, one->stages[i].peak_bytes);
    return peak;
}

OrrCompare *orr_judge_compare_log(const OrrRecord *one, const OrrMeasuredRun *log) {
    OrrCompare *c = orr_judge__compare_new();
    const OrrRecordLayout *a = &one->layout;
    c->one_ns = one->step_time_ns;
    c->other_ns = (int64_t)ceil(log->step_time_ns);
    (log->n_timers > 0 ? add_timers : add_whole)(c, one, log);
    orr_judge__settle(c, "not_told_by_the_log");
    orr_judge__note_count(c, "gpus", one->world_size, log->n_gpus);
    orr_judge__note_count(c, "tp", a->tp, log->tp);
    orr_judge__note_count(c, "pp", a->pp, log->pp);
    orr_judge__note_count(c, "dp", a->dp, log->dp);
    orr_judge__note_count(c, "global batch", a->global_batch, log->global_batch);
    orr_judge__note_count(c, "micro-batch", a->micro_batch, log->micro_batch);
    orr_judge__note_count(c, "sequence length", a->sequence_length, log->sequence_tokens);
    note_work(c, one, log);
    if (isfinite(log->step_p90_ns) && log->step_p90_ns > log->step_p10_ns)
        note_frac(c, "the logged steps themselves vary by +-%s %%",
                  0.5 * (log->step_p90_ns - log->step_p10_ns) / log->step_time_ns);
    if (isfinite(log->memory_bytes) && log->memory_bytes > 0)
        g_ptr_array_add(c->notes,
                        g_strdup_printf("memory: %.0f MiB %s in the log, %.0f MiB simulated on the "
                                        "fullest GPU, all counted",
                                        log->memory_bytes / 0x1p20,
                                        log->memory_what ? log->memory_what : "used",
                                        (double)peak_of(one) / 0x1p20));
    return c;
}
