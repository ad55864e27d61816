#include "sim/api/step.h"

#include "calibrate/tables.h"
#include "sim/api/calibration.h"
#include "sim/api/step_priv.h"
#include "sim/collective/nccl_env.h"
#include "sim/io/csv.h"
#include "sim/io/data.h"
#include "sim/io/file.h"
#include "sim/program/check.h"
#include "sim/schedule/schedules.h"
#include "topologies/loader.h"

#include <string.h>

static void note_input(void *data, const char *name, const char *text, gsize length) {
    orr_sources_add_input(data, name, text, length);
}

static void note_assumption(void *data, const char *key, const char *value, const char *origin) {
    orr_sources_add_assumption(data, key, value, origin);
}

/* Every line of an error that the job's own keys are at fault for begins with its file. */
static bool of_job(const OrrStepRun *run, const char *group, bool is_right, GError **error) {
    if (is_right || !error || !*error || (*error)->code != ORR_ERROR_INPUT)
        return is_right;
    g_auto(GStrv) lines = g_strsplit((*error)->message, "\n", -1);
    g_autofree char *start =
        g_strdup_printf("%s: %s", run->job->file ? run->job->file : run->job->name, group);
    g_autofree char *between = g_strdup_printf("\n%s", start);
    g_autofree char *text = g_strjoinv(between, lines);
    g_free((*error)->message);
    (*error)->message = g_strconcat(start, text, NULL);
    return false;
}

static OrrCluster *read_cluster(OrrStepRun *run, const OrrOverride *overrides, uint32_t n,
                                bool use_management, GError **error) {
    g_autofree OrrTopologySet *sets = g_new0(OrrTopologySet, n + 3);
    uint32_t n_sets = 0;
    if (run->job->routing && run->job->routing[0])
        sets[n_sets++] = (OrrTopologySet){"cluster", "routing", run->job->routing};
    g_autofree char *seed = g_strdup_printf("%" G_GUINT64_FORMAT, run->job->seed);
    if (run->job->has_seed)
        sets[n_sets++] = (OrrTopologySet){"cluster", "seed", seed};
    if (use_management)
        sets[n_sets++] = (OrrTopologySet){"cluster", "use_management", "yes"};
    for (uint32_t i = 0; i < n; i++)
        sets[n_sets++] = (OrrTopologySet){overrides[i].group, overrides[i].key, overrides[i].value,
                                          overrides[i].origin};
    OrrTopologyNotes notes = {run->sources, note_input, note_assumption};
    OrrTopologyOptions options = {sets, n_sets, use_management ? NULL : &notes};
    OrrCluster *cluster = orr_topology_cluster(run->job->cluster_ref, &options, error);
    if (!cluster && run->job->cluster_place)
        g_prefix_error(error, "%s: ", run->job->cluster_place);
    return cluster;
}

/* The node says which names NCCL_IB_HCA may give; a name that is none of them means sockets, and
 * then the cluster is another one. */
static bool load_cluster(OrrStepRun *run, const OrrOverride *overrides, uint32_t n,
                         GError **error) {
    run->cluster = read_cluster(run, overrides, n, false, error);
    if (!run->cluster ||
        !of_job(run, "[nccl] ",
                orr_nccl_env_parse((const char *const *)run->job->nccl_names,
                                   (const char *const *)run->job->nccl_values,
                                   orr_cluster_spec(run->cluster)->node, &run->nccl, error),
                error))
        return false;
    if (!run->nccl.is_fallback)
        return true;
    orr_cluster_free(run->cluster);
    run->cluster = read_cluster(run, overrides, n, true, error);
    return run->cluster != NULL;
}

/* What the calibration says of kernels, collectives and the host. */
static void use_calibration(OrrStepRun *run) {
    const OrrCalibration *c = run->calibration;
    run->surfaces = c ? c->surfaces : NULL;
    run->nccl.force.constants = c ? c->collectives : NULL;
    run->profile = orr_calibration_profile(c, run->framework,
                                           orr_cluster_spec(run->cluster)->node->host_speed);
    run->cost = orr_cost_new(run->gpu, run->surfaces, !run->job->is_boost);
}

static bool load_calibration(OrrStepRun *run, GError **error) {
    run->gpu = orr_cluster_spec(run->cluster)->node->gpu;
    if (!orr_calibration_for(run->request->calibration, run->gpu, &run->calibration, error))
        return false;
    use_calibration(run);
    return true;
}

#define MAX_SCHEDULE_BYTES (64u << 20)

static OrrOrder *custom_order(OrrStepRun *run, GError **error) {
    const char *path = run->job->schedule_name;
    gsize length;
    g_autofree char *text = orr_file_read(path, MAX_SCHEDULE_BYTES, &length, error);
    if (!text)
        return NULL;
    orr_sources_add_input(run->sources, path, text, length);
    g_autoptr(OrrCsv) csv =
        orr_csv_parse(path, text, length, ORR_CSV_NO_HEADER | ORR_CSV_RAGGED, error);
    if (!csv)
        return NULL;
    guint n = orr_csv_n_rows(csv);
    char ***rows = g_new0(char **, n + 1);
    for (guint r = 0; r < n; r++) {
        guint m = orr_csv_row_length(csv, r);
        rows[r] = g_new0(char *, m + 1);
        for (guint c = 0; c < m; c++)
            rows[r][c] = g_strdup(orr_csv_cell(csv, r, (int)c));
    }
    OrrOrder *order = orr_schedule_custom(path, rows, n, error);
    for (guint r = 0; r < n; r++)
        g_strfreev(rows[r]);
    g_free(rows);
    return order;
}

static bool load_order(OrrStepRun *run, GError **error) {
    const OrrLayout *l = &run->job->layout;
    uint32_t m = orr_layout_micro_batches(l, &run->job->batch);
    OrrPipeShape shape = {l->pp, l->vpp, m};
    run->is_custom = g_str_has_suffix(run->job->schedule_name, ".csv");
    if (run->is_custom) {
        run->order = custom_order(run, error);
        if (!run->order)
            return false;
        const OrrPipeShape *s = &run->order->shape;
        if (s->n_stages != l->pp || s->n_chunks != l->vpp || s->n_micro_batches != m)
            return orr_fail_input(
                error,
                "%s: the schedule has %u stages of %u chunks and %u micro-batches; "
                "the job's layout and batch give %u, %u and %u",
                run->job->schedule_name, s->n_stages, s->n_chunks, s->n_micro_batches, l->pp,
                l->vpp, m);
        return true;
    }
    const OrrSchedule *schedule = orr_schedule_find(run->job->schedule_name, error);
    if (!schedule)
        return false;
    run->order = schedule->order(&shape, error);
    return of_job(run, "[schedule] name: ", run->order != NULL, error);
}

/* A type that the GPU lacks would run as another one, which is not what the job asks. */
static bool check_precision(const OrrStepRun *run, GError **error) {
    OrrDtype compute = run->job->precision.compute;
    if (compute != ORR_INT8 && orr_cost_peak_flops_per_s(run->cost, compute) > 0.0)
        return true;
    g_autoptr(GString) would_do = g_string_new(NULL);
    for (int d = 0; d < ORR_N_DTYPES; d++)
        if (d != ORR_INT8 && orr_cost_peak_flops_per_s(run->cost, d) > 0.0)
            g_string_append_printf(would_do, "%s%s", would_do->len ? ", " : "", orr_dtype_name(d));
    return orr_fail_input(error, "[precision] compute = %s: %s does not train in it; %s would do",
                          orr_dtype_name(compute), run->gpu->name, would_do->str);
}

/* The run only reads what it borrows; orr_step_free knows whose it is. */
static bool borrow_specs(OrrStepRun *run, const OrrStepSpecs *s, GError **error) {
    run->job = (OrrJob *)s->job;
    run->model = (OrrModel *)s->model;
    run->framework = (OrrFramework *)s->framework;
    run->cluster = (OrrCluster *)s->cluster;
    run->calibration = (OrrCalibration *)s->calibration;
    const OrrClusterSpec *spec = orr_cluster_spec(run->cluster);
    run->gpu = spec->node->gpu;
    if (!orr_layout_check(run->model, &run->job->layout, &run->job->batch, run->framework,
                          run->job->n_gpus, error) ||
        !orr_nccl_env_parse((const char *const *)run->job->nccl_names,
                            (const char *const *)run->job->nccl_values, spec->node, &run->nccl,
                            error))
        return false;
    use_calibration(run);
    return check_precision(run, error) && load_order(run, error) &&
           orr_step__load_perturbs(run, error);
}

static bool load_all(OrrStepRun *run, GError **error) {
    const OrrStepRequest *q = run->request;
    if (q->specs)
        return borrow_specs(run, q->specs, error);
    run->job = orr_workload_job(q->job, q->overrides, q->n_overrides, run->sources, error);
    if (!run->job)
        return false;
    if (q->has_seed) {
        run->job->seed = q->seed;
        run->job->has_seed = true;
    }
    uint32_t n;
    g_autofree OrrOverride *overrides =
        orr_workload_job_overrides(run->job, q->overrides, q->n_overrides, &n);
    run->model = orr_workload_model(run->job->model_ref, overrides, n, run->sources, error);
    if (!run->model)
        return false;
    run->framework =
        orr_workload_framework(run->job->framework_ref, overrides, n, run->sources, error);
    if (!run->framework)
        return false;
    uint32_t n_gpus = run->job->n_gpus;
    /* the cluster first: how many GPUs are meant is said by its name */
    return load_cluster(run, overrides, n, error) &&
           of_job(run, "",
                  orr_layout_check(run->model, &run->job->layout, &run->job->batch, run->framework,
                                   n_gpus, error),
                  error) &&
           load_calibration(run, error) && of_job(run, "", check_precision(run, error), error) &&
           load_order(run, error) && orr_step__load_perturbs(run, error);
}

OrrLowering orr_step__lowering(const OrrStepRun *run) {
    return (OrrLowering){.model = run->model,
                         .framework = run->profile ? run->profile : run->framework,
                         .job = run->job,
                         .order = run->order,
                         .is_custom_order = run->is_custom,
                         .cluster = run->cluster,
                         .placement = run->placement,
                         .cost = run->cost,
                         .force = &run->nccl.force,
                         .perturbs = run->perturbs->n > 0 ? run->perturbs : NULL,
                         .seed = run->job->seed,
                         .is_whole = run->request->is_unfolded};
}

/* Whole nanoseconds that a double holds: 104 days. Beyond, times are no longer exact. */
#define MAX_STEP_NS 9007199254740992.0

/* Whether the kernels of a step, one after another, stay far below that. */
static bool check_length(const OrrStepRun *run, GError **error) {
    const OrrProgram *p = run->program;
    g_autofree double *segment_ns = g_new0(double, p->n_segments + 1);
    for (uint32_t s = 0; s < p->n_segments; s++)
        for (uint32_t i = p->segments[s].first_op;
             i < p->segments[s].first_op + p->segments[s].n_ops; i++)
            if (p->ops[i].kind == ORR_OP_KERNEL) {
                int64_t ns = run->bound->kernel_ns[p->ops[i].what];
                segment_ns[s] += ns < 0 ? MAX_STEP_NS : (double)ns;
            }
    for (uint32_t r = 0; r < p->n_roles; r++) {
        double sum = 0;
        for (uint32_t i = 0; i < p->roles[r].n_calls; i++)
            sum += segment_ns[p->calls[p->roles[r].first_call + i].segment];
        if (sum >= MAX_STEP_NS / 64)
            return orr_fail_input(error,
                                  "%s: the kernels of a step take %" G_GINT64_FORMAT
                                  " hours, more than the 39 that are simulated; a smaller model, "
                                  "fewer tokens or more ranks would do",
                                  run->job->file ? run->job->file : run->job->name,
                                  (int64_t)(sum * 1e-9 / 3600));
    }
    return true;
}

static bool lower(OrrStepRun *run, GError **error) {
    uint32_t n = (uint32_t)orr_layout_world(&run->job->layout);
    const OrrStepSpecs *specs = run->request->specs;
    const OrrPlacement *given = specs ? specs->placement : NULL;
    run->placement = given && given->gpu_of_rank
                         ? orr_placement_explicit(run->cluster, given->gpu_of_rank, n, error)
                     : run->job->is_random_placement
                         ? orr_placement_random(run->cluster, n, run->job->seed, error)
                         : orr_placement_linear(run->cluster, n, error);
    if (!run->placement || !orr_perturbs_check(run->perturbs, run->cluster, n, error))
        return false;
    OrrLowering in = orr_step__lowering(run);
    run->program = orr_lower_program(&in, error);
    if (!run->program)
        return false;
    g_autofree char *flaw = orr_program_flaw(run->program);
    if (flaw)
        g_error("lowering made an unsound program: %s", flaw);
    if (!orr_program_check(run->program, error))
        return false;
    if (run->request->is_unbound)
        return true;
    orr_step__tell_need(run);
    run->bound = orr_lower_bind(&in, run->program, error);
    if (!run->bound || !check_length(run, error))
        return false;
    if (!run->request->is_unfolded)
        run->folded = orr_fold(run->bound);
    return true;
}

OrrStepRun *orr_step_prepare(const OrrStepRequest *request, GError **error) {
    g_autoptr(OrrStepRun) run = g_new0(OrrStepRun, 1);
    run->request = request;
    run->sources = orr_sources_new();
    run->members = g_new0(OrrStepMembers, ORR_N_GROUPS);
    if (!load_all(run, error) || !lower(run, error))
        return NULL;
    return g_steal_pointer(&run);
}

static void free_specs(OrrStepRun *run) {
    orr_calibration_free(run->calibration);
    orr_cluster_free(run->cluster);
    orr_framework_free(run->framework);
    orr_model_free(run->model);
    orr_job_free(run->job);
}

void orr_step_free(OrrStepRun *run) {
    if (!run)
        return;
    orr_exec_result_free(run->result);
    orr_exec_result_free(run->sound);
    g_free(run->sound_rep);
    for (int k = 0; run->members && k < ORR_N_GROUPS; k++)
        g_free(run->members[k].ranks);
    g_free(run->members);
    orr_bound_free(run->folded);
    orr_bound_free(run->bound);
    orr_program_free(run->program);
    g_free(run->profile);
    orr_placement_free(run->placement);
    orr_perturbs_free(run->perturbs);
    orr_order_free(run->order);
    orr_cost_free(run->cost);
    orr_nccl_env_clear(&run->nccl);
    orr_sources_free(run->sources);
    orr_record_free(run->record);
    if (!run->request->specs)
        free_specs(run);
    g_free(run);
}

/* Ranks of the executed bound program that stand for the asked ones. */
typedef struct {
    const OrrStepRun *run;
    const OrrProbe *probe;
    const uint32_t *ranks;
    uint32_t n_ranks;
} Expand;

static uint32_t rep_of(const OrrStepRun *run, uint32_t rank) {
    return run->folded ? run->folded->rep_of[rank] : rank;
}

/* The group of a rank and the rank's position in it. */
static uint32_t group_of(const OrrStepRun *run, OrrGroup kind, uint32_t rank) {
    uint32_t position;
    return orr_layout_group_of(&run->job->layout, kind, rank, &position);
}

/* A span of a representative is one of every asked rank that it stands for. */
static void expand(void *data, const OrrSpan *span) {
    Expand *e = data;
    const OrrProgram *p = e->run->program;
    for (uint32_t i = 0; i < e->n_ranks; i++) {
        if (rep_of(e->run, e->ranks[i]) != span->rank)
            continue;
        OrrSpan own = *span;
        own.rank = e->ranks[i];
        if (own.op_kind == ORR_OP_COLL)
            own.group = group_of(e->run, p->colls[own.what].group, own.rank);
        e->probe->span(e->probe->data, &own);
    }
}

static bool probe_run(OrrStepRun *run, const OrrBound *bound, const OrrProbe *probe,
                      const uint32_t *ranks, uint32_t n_ranks, GError **error) {
    g_autofree uint8_t *is_probed = g_new0(uint8_t, bound->n_ranks);
    for (uint32_t i = 0; i < n_ranks; i++)
        is_probed[rep_of(run, ranks[i])] = 1;
    Expand e = {run, probe, ranks, n_ranks};
    OrrProbe own = {expand, &e};
    OrrExecOptions options = {.max_steps = run->result->n_steps + 1,
                              .probe = &own,
                              .is_probed = is_probed,
                              .probe_begin_ns = run->result->step_begin_ns,
                              .probe_end_ns =
                                  run->result->step_begin_ns + run->result->step_time_ns};
    orr_step__set_jitter(run, !run->folded, run->job->seed, &options);
    g_autoptr(OrrExecResult) again = orr_exec_run(bound, &options, error);
    return again != NULL;
}

/* Records for the critical path cost a tenth of the execution. Folded and unfolded runs are the
 * same to the nanosecond, so where an unfolded run would fold well its path is that of the few
 * ranks that stand for all: NULL where that spares nothing. */
#define MOST_OF_RANKS 2 /* ours: at least half of them are spared */

static OrrBound *path_bound(const OrrStepRun *run) {
    if (run->folded || orr_perturbs_jitter(run->perturbs) > 0)
        return NULL;
    g_autoptr(OrrBound) folded = orr_fold(run->bound);
    return folded->n_ranks <= run->bound->n_ranks / MOST_OF_RANKS ? g_steal_pointer(&folded) : NULL;
}

static bool find_path(OrrStepRun *run, const OrrBound *folded, GError **error) {
    OrrExecOptions options = {.has_path = true};
    g_autoptr(OrrExecResult) result = orr_exec_run(folded, &options, error);
    if (!result)
        return false;
    memcpy(run->result->path_ns, result->path_ns, sizeof result->path_ns);
    return true;
}

bool orr_step_execute(OrrStepRun *run, const OrrProbe *probe, const uint32_t *ranks,
                      uint32_t n_ranks, GError **error) {
    const OrrBound *bound = run->folded ? run->folded : run->bound;
    g_autoptr(OrrBound) of_path = path_bound(run);
    OrrExecOptions options = {.progress = run->request->progress,
                              .progress_data = run->request->progress_data,
                              .self_check = run->request->self_check,
                              .has_path = !of_path,
                              .has_launches = orr_step__has_arrivals(run)};
    orr_step__set_jitter(run, !run->folded, run->job->seed, &options);
    if (run->folded && options.jitter_frac > 0 && bound->n_ranks > ORR_MAX_JITTER_RANKS)
        return orr_fail_input(error,
                              "jitter in the mean takes a variance for each pair of %u ranks that "
                              "differ; --unfold --seeds N, which draws it, would do",
                              bound->n_ranks);
    run->result = orr_exec_run(bound, &options, error);
    if (!run->result)
        return false;
    if (of_path && !find_path(run, of_path, error))
        return false;
    if (run->perturbs->n > 0 && !orr_step__run_sound(run, error))
        return false;
    if (probe && n_ranks > 0 && !probe_run(run, bound, probe, ranks, n_ranks, error))
        return false;
    run->record = orr_record_new();
    return orr_step__fill(run, error) &&
           (run->request->specs || orr_step__fill_interval(run, error));
}

const OrrRecord *orr_step_record(const OrrStepRun *run) {
    return run->record;
}

const OrrProgram *orr_step_program(const OrrStepRun *run) {
    return run->program;
}

uint32_t orr_step_n_ranks(const OrrStepRun *run) {
    return run->bound->n_real_ranks;
}

uint32_t orr_step_role_of_rank(const OrrStepRun *run, uint32_t rank) {
    return orr_layout_coords(&run->job->layout, rank).pp;
}

/* Members as they were asked for last: exporters ask again and again. */
uint32_t orr_step_group(const OrrStepRun *run, OrrGroup kind, uint32_t group,
                        const uint32_t **members) {
    const OrrLayout *l = &run->job->layout;
    OrrStepMembers *m = &run->members[kind];
    uint32_t n = orr_layout_group_size(l, kind);
    if (!m->ranks || m->group != group) {
        if (!m->ranks)
            m->ranks = g_new(uint32_t, n);
        m->group = group;
        orr_layout_members(l, kind, group, m->ranks);
    }
    *members = m->ranks;
    return n;
}

uint32_t orr_step_peer(const OrrStepRun *run, uint32_t rank, OrrGroup kind, uint32_t position) {
    const uint32_t *members;
    orr_step_group(run, kind, group_of(run, kind, rank), &members);
    return members[position];
}

void orr_step_plan(const OrrStepRun *run, uint32_t rank, uint32_t coll, OrrAlgo *algo,
                   OrrProto *proto) {
    const OrrBoundGroup *g = &run->bound->groups[run->program->colls[coll].group];
    uint32_t bound = run->bound->rep_of ? run->bound->rep_of[rank] : rank;
    const OrrPlan *plan =
        &g->plans[(size_t)g->class_of[g->group_of[bound]] * run->program->n_colls + coll];
    *algo = (OrrAlgo)plan->algo;
    *proto = (OrrProto)plan->proto;
}

uint32_t orr_step_node_of_rank(const OrrStepRun *run, uint32_t rank) {
    return orr_node_of_gpu(orr_cluster_spec(run->cluster), orr_placement_gpu(run->placement, rank));
}

const OrrLayout *orr_step_layout(const OrrStepRun *run) {
    return &run->job->layout;
}

const OrrNode *orr_step_node(const OrrStepRun *run) {
    return orr_cluster_spec(run->cluster)->node;
}

double orr_step_peak_flops_per_s(const OrrStepRun *run) {
    return orr_cost_peak_flops_per_s(run->cost, run->job->precision.compute);
}
