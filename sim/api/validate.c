/* Published runs through the step simulator, in parallel. Each row's job is made in memory by the
 * rules of sim/judge; results go to the row's own place, so no order of threads shows. */
#include "sim/api/validate.h"

#include "config.h"
#include "sim/api/step.h"
#include "sim/api/validate_priv.h"
#include "sim/base/parallel.h"
#include "sim/judge/mapping.h"
#include "sim/judge/tally.h"
#include "sim/model/params.h"

#include <string.h>

/* One published run on its way. */
typedef struct {
    const OrrPublishedRun *row;
    OrrJudgeCase mapped;
    const OrrCluster *cluster;
    const OrrFramework *framework;
    const OrrCalibration *calibration;
    const char *reason; /* static; NULL: simulated */
    char *detail;
    double step_ns, measured_ns, peak_bytes;
    bool fits;
} Case;

typedef struct {
    Case *cases;
    guint n_cases;
} Work;

static void skip(Case *c, const char *reason, GError *error) {
    c->reason = reason;
    c->detail = g_strdup(error ? error->message : NULL);
    g_clear_error(&error);
}

static double source_tflops(const Case *c, const OrrRecord *r) {
    if (!c->mapped.is_hardware_flops || r->mfu[0].mfu_frac <= 0)
        return r->tflops_per_gpu;
    return r->tflops_per_gpu * r->mfu[0].hfu_frac / r->mfu[0].mfu_frac;
}

static void take_memory(Case *c, const OrrStepRun *run) {
    uint32_t n_roles = orr_step_program(run)->n_roles;
    int64_t(*by_kind)[ORR_N_MEM_KINDS] = g_malloc0(n_roles * sizeof *by_kind);
    int64_t worst = 0, shown = 0;
    orr_step_memory(run, by_kind);
    for (uint32_t s = 0; s < n_roles; s++) {
        int64_t sum = 0;
        for (int k = 0; k < ORR_N_MEM_KINDS; k++)
            sum += by_kind[s][k];
        worst = MAX(worst, sum);
        /* frameworks print what PyTorch's allocator holds: neither context nor NCCL's buffers */
        sum -= by_kind[s][ORR_MEM_CONTEXT] + by_kind[s][ORR_MEM_COMM_BUFFERS];
        if (c->mapped.is_allocated)
            sum -= by_kind[s][ORR_MEM_ALLOCATOR];
        if (s == 0 || c->framework->memory_printed_by == ORR_PRINTED_BY_FULLEST)
            shown = MAX(shown, sum);
    }
    g_free(by_kind);
    c->peak_bytes = (double)shown;
    c->fits = worst <= (int64_t)orr_step_node(run)->gpu->hbm_bytes;
}

static void simulate(Case *c) {
    uint32_t node = orr_cluster_spec(c->cluster)->node->gpus;
    const char *why = orr_judge_complete(c->row, c->framework, node, &c->mapped);
    if (why) {
        skip(c, why, NULL);
        return;
    }
    GError *error = NULL;
    bool is_trial = c->row->is_trial;
    OrrStepSpecs specs = {.job = c->mapped.job,
                          .model = c->mapped.model,
                          .framework = c->framework,
                          .cluster = c->cluster,
                          .calibration = c->calibration};
    OrrStepRequest request = {.specs = &specs};
    g_autoptr(OrrStepRun) run = orr_step_prepare(&request, &error);
    if (!run) {
        skip(c, "layout or schedule refused", error);
        return;
    }
    take_memory(c, run);
    if (is_trial)
        return;
    if (!orr_step_execute(run, NULL, NULL, 0, &error)) {
        skip(c, "not executed", error);
        return;
    }
    const OrrRecord *record = orr_step_record(run);
    c->step_ns = (double)record->step_time_ns;
    c->measured_ns =
        orr_judge_measured_ns(c->row, &c->mapped, c->step_ns, source_tflops(c, record));
}

static void run_piece(void *data, uint32_t i) {
    Work *work = data;
    if (!work->cases[i].reason)
        simulate(&work->cases[i]);
}

/* Names and shared files; a cluster that is too small is the row's fault, a broken file of ours is
 * not. */
static bool begin(Case *c, const OrrValidateRequest *q, OrrValidateShelf *shelf, GError **error) {
    c->mapped.names = shelf->names;
    c->reason = orr_judge_begin(c->row, q->is_all_rows, &c->mapped);
    if (c->reason)
        return true;
    c->framework = orr_validate__framework(shelf, c->mapped.profile, error);
    if (!c->framework)
        return false;
    GError *flaw = NULL;
    c->cluster = orr_validate__cluster(shelf, c->mapped.cluster_ref, &flaw);
    if (!c->cluster) {
        skip(c, "cluster refused", flaw);
        return true;
    }
    const OrrGpu *gpu = orr_cluster_spec(c->cluster)->node->gpu;
    return orr_validate__calibration(shelf, gpu, &c->calibration, error);
}

static void add_row(OrrValidation *v, const Case *c, OrrValidated kind) {
    const OrrPublishedRun *row = c->row;
    bool is_step = kind == ORR_VALIDATED_STEP;
    OrrValidationRow out = {
        .kind = kind,
        .file = row->file,
        .line = row->line,
        .id = orr_validation_text(v, row->id),
        .gpu = orr_validation_text(v, c->mapped.gpu ? c->mapped.gpu : row->gpu),
        .group = orr_validation_text(v, c->mapped.profile ? c->mapped.profile : row->framework),
        .cluster = g_strdup(c->mapped.cluster_ref),
        .source = orr_validation_text(v, row->source),
        .arch = c->cluster ? orr_arch_names[orr_cluster_spec(c->cluster)->node->gpu->arch] : NULL,
        .n_gpus = row->gpus,
        .tp = c->mapped.job ? c->mapped.job->layout.tp : 0,
        .pp = c->mapped.job ? c->mapped.job->layout.pp : 0,
        .measured = is_step ? c->measured_ns : row->memory_bytes,
        .predicted = is_step ? c->step_ns : c->peak_bytes,
        .reason = c->reason ? orr_validation_text(v, c->reason) : NULL,
        .detail = g_strdup(c->detail),
    };
    g_array_append_val(v->rows, out);
}

static void count_trial(OrrValidationFits *fits, const Case *c) {
    if (c->reason)
        fits->skipped++;
    else if (c->row->outcome == ORR_OUTCOME_RAN)
        c->fits ? fits->ran_fits++ : fits->ran_not++;
    else
        c->fits ? fits->failed_fits++ : fits->failed_not++;
}

/* A trial's flaw makes it no trial: its outcome is none, but its table has outcomes. */
static void add_runs(OrrValidation *v, const Work *work) {
    for (guint i = 0; i < work->n_cases; i++) {
        const Case *c = &work->cases[i];
        if (c->row->is_trial)
            count_trial(&v->fits, c);
        else
            add_row(v, c, ORR_VALIDATED_STEP);
        if (c->row->memory_bytes > 0 && !c->reason)
            add_row(v, c, ORR_VALIDATED_MEMORY);
    }
    for (int r = 0; r < ORR_N_JUDGE_RULES; r++) {
        OrrValidationRule rule = {orr_judge_rules[r].key, orr_judge_rules[r].rule, 0};
        for (guint i = 0; i < work->n_cases; i++)
            rule.rows += !work->cases[i].reason && (work->cases[i].mapped.rules >> r & 1);
        if (rule.rows > 0)
            g_array_append_val(v->rules, rule);
    }
}

static bool validate_runs(const OrrValidateRequest *q, OrrValidateShelf *shelf, OrrValidation *v,
                          GError **error) {
    GArray *runs = q->facts->runs;
    Work work = {.cases = g_new0(Case, runs->len + 1), .n_cases = runs->len};
    bool is_fine = true;
    for (guint i = 0; i < runs->len && is_fine; i++) {
        work.cases[i].row = &g_array_index(runs, OrrPublishedRun, i);
        is_fine = begin(&work.cases[i], q, shelf, error);
    }
    if (is_fine) {
        OrrParallelProgress progress = {q->progress, q->data};
        orr_parallel(work.n_cases, q->n_threads, run_piece, &work, &progress);
        add_runs(v, &work);
    }
    for (guint i = 0; i < work.n_cases; i++) {
        orr_judge_case_clear(&work.cases[i].mapped);
        g_free(work.cases[i].detail);
    }
    g_free(work.cases);
    return is_fine;
}

OrrValidation *orr_validate(const OrrValidateRequest *q, GError **error) {
    g_autoptr(OrrValidation) v = orr_validation_new();
    const OrrPublished *facts = q->facts;
    OrrValidateShelf shelf;
    v->version = PACKAGE_VERSION;
    v->calibration = orr_validation_text(v, q->calibration ? q->calibration : "each GPU's own");
    v->is_all_rows = q->is_all_rows;
    g_strfreev(v->files);
    v->files = g_strdupv(facts->files);
    g_strfreev(v->hashes);
    v->hashes = g_strdupv(facts->hashes);
    g_strfreev(v->others);
    v->others = g_new0(char *, facts->others->len + 1);
    for (guint i = 0; i < facts->others->len; i++)
        v->others[i] = g_strdup(facts->others->pdata[i]);
    bool is_fine = orr_validate__shelf_init(&shelf, q->calibration, error) &&
                   validate_runs(q, &shelf, v, error) && orr_validate__calls(q, &shelf, v, error) &&
                   orr_validate__kernels(facts, &shelf, v, error);
    orr_validate__shelf_clear(&shelf);
    if (!is_fine)
        return NULL;
    orr_judge_tally(v);
    return g_steal_pointer(&v);
}
