/* The steps of a run: the step simulator is asked once for each state that the run can be in
 * (phase, replicas lost, degradation), never more. */
#include "config.h"

#include "sim/api/run_priv.h"
#include "sim/api/step_priv.h"
#include "sim/model/params.h"

#include <string.h>

/* GPUs below a switch and nodes in a rack, where no cluster says so: ours, 32 nodes on a leaf of 64
 * ports, four nodes of 10 kW in a rack. */
#define NODES_PER_SWITCH 32u
#define NODES_PER_RACK 4u

typedef struct {
    int64_t step_ns, tokens;
    double mfu_frac;
} Priced;

static void note_sources(OrrRun *run, const OrrStepRun *step) {
    for (guint i = 0; i < step->sources->inputs->len; i++) {
        const OrrInput *in = step->sources->inputs->pdata[i];
        orr_record_add_input(run->head, in->name, in->sha256);
    }
    for (guint i = 0; i < step->sources->assumptions->len; i++) {
        const OrrAssumption *a = step->sources->assumptions->pdata[i];
        orr_record_add_assumption(run->head, a->key, a->value, a->origin);
    }
}

/* The step that was simulated, as a command: nobody should have to find out which overrides it had.
 */
static char *step_command(const OrrRun *run) {
    g_autoptr(GString) line = g_string_new("orrery step ");
    g_string_append(line, run->file->job_ref);
    for (guint i = 0; i < run->job_overrides->len; i++) {
        const OrrOverride *o = &g_array_index(run->job_overrides, OrrOverride, i);
        g_autofree char *text = g_strdup_printf("%s.%s=%s", o->group, o->key, o->value);
        g_autofree char *quoted = strpbrk(text, " '\"$*;~") ? g_shell_quote(text) : g_strdup(text);
        g_string_append_printf(line, " --set %s", quoted);
    }
    return g_string_free(g_steal_pointer(&line), FALSE);
}

/* Names and warnings of the nominal step become those of the run. */
static void note_nominal(OrrRun *run, const OrrStepRun *step) {
    const OrrRecord *r = orr_step_record(step);
    OrrRecord *h = run->head;
    orr_record_set(&h->job, r->job);
    orr_record_set(&h->model, r->model);
    orr_record_set(&h->cluster, r->cluster);
    orr_record_set(&h->gpu, r->gpu);
    orr_record_set(&h->framework, r->framework);
    orr_record_set(&h->schedule, r->schedule);
    orr_record_set(&h->precision, r->precision);
    orr_record_set(&h->recompute, r->recompute);
    orr_record_set(&h->calibration, r->calibration);
    for (uint32_t i = 0; i < r->n_warnings; i++)
        orr_record_add_warning(h, r->warnings[i].code, "%s", r->warnings[i].text);
    g_autofree char *command = step_command(run);
    if (r->verdict == ORR_DOES_NOT_FIT)
        orr_record_add_warning(h, "does_not_fit",
                               "the step does not fit in the memory of its GPUs; see %s", command);
    note_sources(run, step);
}

/* State that a checkpoint holds: weights as stored, the optimizer's FP32 copy if there is one, two
 * FP32 moments of Adam. */
static double state_bytes(const OrrPrecision *p) {
    return orr_dtype_bytes(p->parameters) + (p->has_master ? orr_dtype_bytes(p->master) : 0) +
           2 * orr_dtype_bytes(ORR_FP32);
}

static void note_shape(OrrRun *run, const OrrStepRun *step) {
    OrrRunShape *s = &run->shape;
    const OrrClusterSpec *c = orr_cluster_spec(step->cluster);
    const OrrLayout *l = &step->job->layout;
    s->gpus = orr_step_record(step)->world_size;
    s->gpus_per_node = c->node->gpus;
    s->nodes = (s->gpus + s->gpus_per_node - 1) / s->gpus_per_node;
    s->switches = MAX(1, orr_cluster_n_leaves(step->cluster));
    s->racks = c->fabric == ORR_FABRIC_CLOS ? s->switches
               : c->node->domain_nodes > 1
                   ? (s->nodes + c->node->domain_nodes - 1) / c->node->domain_nodes
                   : (s->nodes + NODES_PER_RACK - 1) / NODES_PER_RACK;
    s->nodes_per_switch = c->fabric == ORR_FABRIC_RAIL ? MIN(c->gpus_per_leaf, s->nodes)
                                                       : (s->nodes + s->switches - 1) / s->switches;
    uint32_t ranks = s->gpus / l->dp, per_node = MAX(1, s->gpus_per_node / ranks);
    s->replicas = MAX(1, l->dp / per_node);
    s->nodes_per_replica = MAX(1, ranks / s->gpus_per_node);
    OrrParams params;
    orr_params_count(step->model, &params);
    s->parameters = (double)params.total;
    s->state_bytes_per_parameter = state_bytes(&step->job->precision);
    s->copy_bytes_per_s = c->node->pcie_bytes_per_s;
}

/* One step with these overrides on top of the run's. @is_nominal: of the job as it is. */
static bool price(OrrRun *run, const GArray *extra, bool is_nominal, Priced *out, GError **error) {
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    g_array_append_vals(all, run->job_overrides->data, run->job_overrides->len);
    if (extra && extra->len > 0)
        g_array_append_vals(all, extra->data, extra->len);
    OrrStepRequest request = {.job = run->file->job_ref,
                              .overrides = (const OrrOverride *)(void *)all->data,
                              .n_overrides = all->len,
                              .calibration = run->request->calibration};
    if (is_nominal) { /* it is kept */
        run->step_request = request;
        run->step_request.overrides = (const OrrOverride *)(void *)run->job_overrides->data;
    }
    g_autoptr(OrrStepRun) step =
        orr_step_prepare(is_nominal ? &run->step_request : &request, error);
    if (!step || !orr_step_execute(step, NULL, NULL, 0, error))
        return false;
    const OrrRecord *r = orr_step_record(step);
    *out = (Priced){r->step_time_ns, r->tokens_per_step, r->mfu[0].mfu_frac};
    if (!is_nominal)
        return true;
    note_nominal(run, step);
    note_shape(run, step);
    run->step = g_steal_pointer(&step);
    return true;
}

static void add(OrrRun *run, GArray *to, const char *group, const char *key, char *take_value) {
    g_ptr_array_add(run->texts, take_value);
    OrrOverride o = {group, key, take_value};
    g_array_append_val(to, o);
}

/* The job with @lost replicas fewer, as overrides. The batch either shrinks with them, or each of
 * the others takes more micro-batches, rounded up. */
static bool shrink(OrrRun *run, uint32_t lost, GArray *to, GError **error) {
    OrrStepRequest request = {.job = run->file->job_ref,
                              .overrides = (const OrrOverride *)(void *)to->data,
                              .n_overrides = to->len};
    g_autoptr(OrrJob) job =
        orr_workload_job(request.job, request.overrides, request.n_overrides, NULL, error);
    if (!job)
        return false;
    uint32_t per_group = MAX(1, job->layout.dp / MAX(1, run->shape.replicas));
    uint32_t dp = job->layout.dp - lost * per_group;
    uint32_t m = orr_layout_micro_batches(&job->layout, &job->batch);
    if (run->file->recovery.elastic == ORR_ELASTIC_KEEP_BATCH) {
        uint32_t unit = job->layout.vpp > 1 ? job->layout.pp : 1; /* interleaved: P divides M */
        m = (m * job->layout.dp + dp * unit - 1) / (dp * unit) * unit;
    }
    add(run, to, "layout", "dp", g_strdup_printf("%u", dp));
    add(run, to, "batch", "global", g_strdup_printf("%u", job->batch.micro_sequences * m * dp));
    g_auto(GStrv) words = g_strsplit(job->cluster_ref, " ", 2);
    char *colon = words[0] ? strrchr(words[0], ':') : NULL;
    if (colon && job->n_gpus > 0) {
        *colon = '\0';
        add(run, to, "job", "cluster",
            g_strdup_printf("%s:%u%s%s", words[0], job->n_gpus / job->layout.dp * dp,
                            words[1] ? " " : "", words[1] ? words[1] : ""));
    }
    return true;
}

static bool price_phase(OrrRun *run, const char *sets, bool is_nominal, OrrRunPhase *phase,
                        GError **error) {
    for (uint32_t k = 0; k <= run->spec->max_lost_replicas; k++) {
        g_autoptr(GArray) extra = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
        Priced priced;
        if (!orr_run_parse_sets(sets, run->texts, extra, error))
            return false;
        if (k > 0) {
            g_array_prepend_vals(extra, run->job_overrides->data, run->job_overrides->len);
            if (!shrink(run, k, extra, error))
                return false;
        }
        if (!price(run, extra, is_nominal && k == 0, &priced, error))
            return false;
        if (k == 0) {
            phase->tokens_per_step = priced.tokens;
            phase->mfu_frac = priced.mfu_frac;
        }
        phase->step_ns[k] = priced.step_ns;
        if (is_nominal && k == 0 && run->file->recovery.elastic != ORR_ELASTIC_NO)
            run->spec->max_lost_replicas =
                MIN(run->file->recovery.max_lost, run->shape.replicas - 1);
    }
    return true;
}

static bool price_slow(OrrRun *run, OrrFailureKind *kind, GError **error) {
    g_autoptr(GArray) extra = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    Priced priced;
    if (!kind->slow_sets || !*kind->slow_sets)
        return true;
    if (*run->file->job_ref == '\0')
        return orr_fail_input(error,
                              "failure %s: slow_set needs a job to simulate; slow = 10 %% "
                              "would do",
                              kind->name);
    if (!orr_run_parse_sets(kind->slow_sets, run->texts, extra, error) ||
        !price(run, extra, false, &priced, error))
        return false;
    const OrrRunSpec *s = run->spec;
    double nominal = (double)s->phases[s->n_phases - 1].step_ns[0];
    kind->slow_factor = MAX(1, (double)priced.step_ns / nominal);
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *key = g_strdup_printf("%s.slow", kind->name);
    g_ascii_formatd(text, sizeof text, "%.4f", kind->slow_factor - 1);
    orr_record_add_assumption(run->head, key, text, "a step simulated with slow_set");
    return true;
}

/* Without a job: what the run file says. */
static void take_given(OrrRun *run) {
    const OrrRunFile *f = run->file;
    OrrRunShape *s = &run->shape;
    s->gpus = f->gpus;
    s->gpus_per_node = MAX(1, f->gpus_per_node);
    s->nodes = (s->gpus + s->gpus_per_node - 1) / s->gpus_per_node;
    s->switches = (s->nodes + NODES_PER_SWITCH - 1) / NODES_PER_SWITCH;
    s->racks = (s->nodes + NODES_PER_RACK - 1) / NODES_PER_RACK;
    s->nodes_per_switch = MIN(NODES_PER_SWITCH, s->nodes);
    s->replicas = s->nodes_per_replica = 1;
    s->copy_bytes_per_s = 0;
    run->spec->phases[0] =
        (OrrRunPhase){.end_tokens = INT64_MAX, .tokens_per_step = (int64_t)f->tokens_per_step};
    run->spec->phases[0].step_ns[0] = (int64_t)f->step_ns;
    orr_record_set(&run->head->calibration, "none (step_time given)");
}

bool orr_run__price(OrrRun *run, GError **error) {
    OrrRunSpec *s = run->spec;
    const OrrRunFile *f = run->file;
    s->n_phases = f->n_stages + 1;
    s->phases = g_new0(OrrRunPhase, s->n_phases);
    if (f->step_ns > 0)
        take_given(run);
    else if (!price_phase(run, "", true, &s->phases[f->n_stages], error))
        return false;
    s->phases[f->n_stages].end_tokens = INT64_MAX;
    double end = 0;
    for (uint32_t i = 0; i < f->n_stages; i++) {
        if (!price_phase(run, f->stages[i].sets, false, &s->phases[i], error))
            return false;
        end += f->stages[i].tokens;
        s->phases[i].end_tokens = (int64_t)end;
    }
    for (uint32_t i = 0; run->failures && i < run->failures->n; i++)
        if (!price_slow(run, &run->failures->kinds[i], error) ||
            !orr_run__price_part(run, &run->failures->kinds[i], error))
            return false;
    return true;
}
