/* The record of a run: everything that the report says, from specs, program and result. */
#include "sim/api/step_priv.h"

#include "sim/program/check.h"
#include "sim/cluster/group.h"
#include "config.h"
#include "sim/report/findings.h"

#include <math.h>
#include <string.h>

static void fill_names(const OrrStepRun *run, OrrRecord *r) {
    const OrrJob *job = run->job;
    const OrrLayout *l = &job->layout;
    r->seed = job->seed;
    orr_record_set(&r->version, PACKAGE_VERSION);
    orr_record_set(&r->job, job->name);
    orr_record_set(&r->model, run->model->name);
    orr_record_set(&r->cluster, job->cluster_ref);
    orr_record_set(&r->gpu, run->gpu->name);
    orr_record_set(&r->framework, run->framework->name);
    orr_record_set(&r->schedule, job->schedule_name);
    orr_record_set(&r->precision, orr_dtype_name(job->precision.compute));
    static const char *const policies[] = {"none", "selective", "full", "per_op"};
    orr_record_set(&r->recompute, policies[job->recompute.policy]);
    const char *kernels = run->surfaces ? run->surfaces->name : "none (roofline)";
    bool has_collectives = run->calibration && run->calibration->collectives;
    g_autofree char *both =
        has_collectives ? g_strdup_printf("%s; collectives: %s", kernels, run->calibration->name)
                        : g_strdup(kernels);
    orr_record_set(&r->calibration, both);
    for (guint i = 0; i < run->sources->inputs->len; i++) {
        const OrrInput *in = run->sources->inputs->pdata[i];
        orr_record_add_input(r, in->name, in->sha256);
    }
    for (guint i = 0; i < run->sources->assumptions->len; i++) {
        const OrrAssumption *a = run->sources->assumptions->pdata[i];
        orr_record_add_assumption(r, a->key, a->value, a->origin);
    }
    for (uint32_t i = 0; i < run->request->n_overrides; i++) {
        const OrrOverride *o = &run->request->overrides[i];
        g_autofree char *text = g_strdup_printf("%s.%s=%s", o->group, o->key, o->value);
        orr_record_add_override(r, text);
    }
    static const char *const dims[] = {"tp", "cp", "ep", "dp", "pp"};
    g_autoptr(GString) order = g_string_new(NULL);
    for (int i = 0; i < ORR_MAX_DIMS; i++)
        g_string_append_printf(order, "%s%s", i ? "-" : "", dims[l->rank_order[i]]);
    r->world_size = run->bound->n_real_ranks;
    r->layout.tp = l->tp;
    r->layout.pp = l->pp;
    r->layout.vpp = l->vpp;
    r->layout.cp = l->cp;
    r->layout.dp = l->dp;
    r->layout.ep = l->ep;
    r->layout.zero_stage = l->zero_stage;
    r->layout.sequence_parallel = l->sequence_parallel;
    r->layout.micro_batch = job->batch.micro_sequences;
    r->layout.global_batch = job->batch.global_sequences;
    r->layout.micro_batches = orr_layout_micro_batches(l, &job->batch);
    r->layout.sequence_length = job->batch.sequence_tokens;
    orr_record_set(&r->layout.rank_order, order->str);
}

/* Every formula, the job's first. */
static bool fill_flops(const OrrStepRun *run, OrrRecord *r, GError **error) {
    const OrrJob *job = run->job;
    const char *own = job->flops_formula && job->flops_formula[0] ? job->flops_formula
                                                                  : run->framework->flops_formula;
    double peak = orr_cost_peak_flops_per_s(run->cost, job->precision.compute);
    double per_gpu = 1e9 / ((double)r->step_time_ns * r->world_size);
    orr_record_set(&r->flops_formula, own);
    for (int i = -1; i < 0 || orr_flops_formulas[i]; i++) {
        const char *name = i < 0 ? own : orr_flops_formulas[i];
        double model, hardware;
        if (i >= 0 && strcmp(name, own) == 0)
            continue;
        if (!orr_flops_model(name, run->model, &job->batch, &model, error) ||
            !orr_flops_hardware(name, run->model, &job->layout, &job->batch, &job->recompute,
                                &hardware, error))
            return false;
        double share = orr_flops_model_share(name);
        if (i < 0) {
            r->model_flops_per_step = model;
            r->hardware_flops_per_step = hardware;
            r->tflops_per_gpu = model * per_gpu / 1e12;
        }
        orr_record_add_mfu(r, name, peak, model * per_gpu / 1e12,
                           peak > 0 ? model * share * per_gpu / peak : 0,
                           peak > 0 ? hardware * per_gpu / peak : 0);
    }
    return true;
}

static void fill_time(const OrrStepRun *run, OrrRecord *r) {
    const OrrExecResult *x = run->result;
    const OrrBatch *batch = &run->job->batch;
    r->step_time_ns = x->step_time_ns;
    r->first_step_ns = x->first_step_ns;
    r->is_periodic = x->is_periodic;
    r->simulated_steps = x->n_steps;
    r->tokens_per_step = (int64_t)batch->global_sequences * batch->sequence_tokens;
    r->tokens_per_s = (double)r->tokens_per_step * 1e9 / (double)r->step_time_ns;
    r->tokens_per_s_per_gpu = r->tokens_per_s / r->world_size;
    memcpy(r->time_account_ns, x->account_ns, sizeof x->account_ns);
    memcpy(r->critical_path_ns, x->path_ns, sizeof x->path_ns);
    double step = (double)x->step_time_ns, bubble = (double)x->account_ns[ORR_OWN_BUBBLE];
    double exposed = 0;
    for (int o = ORR_OWN_EXPOSED_FIRST; o <= (int)ORR_OWN_EXPOSED_LAST; o++)
        exposed += (double)x->account_ns[o];
    r->bubble_of_step_frac = bubble / step;
    r->bubble_over_ideal_frac = bubble < step ? bubble / (step - bubble) : 0;
    r->communication_share_frac = exposed / step;
    const OrrBound *b = run->folded ? run->folded : run->bound;
    r->simulation.ranks = b->n_real_ranks;
    r->simulation.representatives = b->n_ranks;
    r->simulation.operations = x->n_operations / x->n_steps;
    r->simulation.blocks = x->n_blocks / x->n_steps;
    r->simulation.events = x->n_events / x->n_steps;
}

/* Plan of the first class of the group: what the report shows. */
static const OrrPlan *shown_plan(const OrrBound *b, uint32_t coll) {
    const OrrBoundGroup *g = &b->groups[b->program->colls[coll].group];
    return g->plans ? &g->plans[coll] : NULL;
}

/* One row of the report being summed: means over the ranks of roles that take part. */
typedef struct {
    OrrCommKind kind;
    OrrCollective collective;
    uint32_t size;
    const char *algo, *proto;
    double count, bytes, transfer_ns, wait_ns, exposed_ns; /* means over all ranks */
    uint8_t *takes_part;                                   /* [n_roles] */
} CommSum;

static CommSum *comm_sum(GArray *sums, const CommSum *key, uint32_t n_roles) {
    for (guint i = 0; i < sums->len; i++) {
        CommSum *c = &g_array_index(sums, CommSum, i);
        if (c->kind == key->kind && c->collective == key->collective && c->size == key->size &&
            strcmp(c->algo, key->algo) == 0 && strcmp(c->proto, key->proto) == 0)
            return c;
    }
    g_array_append_vals(sums, key, 1);
    CommSum *c = &g_array_index(sums, CommSum, sums->len - 1);
    c->takes_part = g_new0(uint8_t, n_roles);
    return c;
}

/* Which roles call which descriptors: [n_roles * n_descriptors], collectives first. */
static uint8_t *callers(const OrrProgram *p) {
    gsize n = (gsize)p->n_colls + p->n_p2ps;
    uint8_t *calls = g_new0(uint8_t, p->n_roles * n + 1);
    for (uint32_t r = 0; r < p->n_roles; r++)
        for (uint32_t c = 0; c < p->roles[r].n_calls; c++) {
            const OrrSegment *seg = &p->segments[p->calls[p->roles[r].first_call + c].segment];
            for (uint32_t o = seg->first_op; o < seg->first_op + seg->n_ops; o++) {
                if (p->ops[o].kind == ORR_OP_COLL)
                    calls[r * n + p->ops[o].what] = 1;
                if (p->ops[o].kind == ORR_OP_P2P)
                    calls[r * n + p->n_colls + p->ops[o].what] = 1;
            }
        }
    return calls;
}

static void add_comm(CommSum *sum, const OrrExecComm *x, double bytes) {
    sum->count += x->count;
    sum->bytes += x->count * bytes;
    sum->transfer_ns += x->transfer_ns;
    sum->wait_ns += x->wait_ns;
    sum->exposed_ns += x->exposed_ns;
}

static void add_row(const OrrStepRun *run, OrrRecord *r, const CommSum *sum) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->bound->n_ranks; i++)
        n += sum->takes_part[run->bound->role[i]] ? run->bound->weight[i] : 0;
    double scale = (double)run->bound->n_real_ranks / n;
    OrrRecordComm *row = orr_record_add_comm(r);
    row->kind = sum->kind;
    row->collective = sum->collective;
    row->group_size = sum->size;
    orr_record_set(&row->algorithm, sum->algo);
    orr_record_set(&row->protocol, sum->proto);
    row->count = MAX(llround(sum->count * scale), 1); /* a few calls on few ranks are still some */
    row->bytes = llround(sum->bytes * scale);
    row->transfer_ns = llround(sum->transfer_ns * scale);
    row->wait_ns = llround(sum->wait_ns * scale);
    row->exposed_ns = llround(sum->exposed_ns * scale);
}

static double bytes_sent(const OrrProgram *p, const OrrP2p *batch) {
    double sent = 0;
    for (uint32_t k = batch->first_part; k < batch->first_part + batch->n_parts; k++)
        if (p->parts[k].is_send)
            sent += (double)p->parts[k].bytes;
    return sent;
}

static void fill_comms(const OrrStepRun *run, OrrRecord *r) {
    const OrrProgram *p = run->program;
    g_autofree uint8_t *calls = callers(p);
    g_autoptr(GArray) sums = g_array_new(FALSE, TRUE, sizeof(CommSum));
    gsize n = (gsize)p->n_colls + p->n_p2ps;
    for (uint32_t i = 0; i < n; i++) {
        bool is_coll = i < p->n_colls;
        const OrrExecComm *x =
            is_coll ? &run->result->colls[i] : &run->result->p2ps[i - p->n_colls];
        const OrrPlan *plan = is_coll ? shown_plan(run->bound, i) : NULL;
        CommSum key = {.kind = ORR_COMM_PP,
                       .collective = ORR_SEND_RECV,
                       .size = 2,
                       .algo = "send",
                       .proto = ""};
        if (x->count <= 0 || (is_coll && !plan))
            continue;
        if (is_coll)
            key = (CommSum){.kind = p->colls[i].purpose,
                            .collective = p->colls[i].kind,
                            .size = run->bound->groups[p->colls[i].group].size,
                            .algo = orr_algo_name(plan->algo),
                            .proto = orr_proto_name(plan->proto)};
        CommSum *sum = comm_sum(sums, &key, p->n_roles);
        add_comm(sum, x,
                 is_coll ? (double)p->colls[i].bytes : bytes_sent(p, &p->p2ps[i - p->n_colls]));
        for (uint32_t k = 0; k < p->n_roles; k++)
            sum->takes_part[k] |= calls[k * n + i];
    }
    for (guint i = 0; i < sums->len; i++) {
        add_row(run, r, &g_array_index(sums, CommSum, i));
        g_free(g_array_index(sums, CommSum, i).takes_part);
    }
}

static void fill_group(const OrrStepRun *run, OrrRecord *r, OrrGroup kind) {
    const OrrLayout *l = &run->job->layout;
    uint32_t size = orr_layout_group_size(l, kind), n = orr_layout_n_groups(l, kind);
    if (size < 2 || n == 0)
        return;
    g_autofree uint32_t *members = g_new(uint32_t, size);
    g_autofree uint32_t *gpus = g_new(uint32_t, size);
    uint32_t position;
    uint32_t mine = orr_layout_group_of(l, kind, 0, &position);
    orr_layout_members(l, kind, mine == ORR_NONE ? 0 : mine, members);
    for (uint32_t i = 0; i < size; i++)
        gpus[i] = orr_placement_gpu(run->placement, members[i]);
    OrrGroupShape shape;
    orr_cluster_group_shape(run->cluster, gpus, NULL, size, &shape);
    OrrRecordGroup *g = orr_record_add_group(r);
    g->kind = kind;
    g->size = size;
    g->n_groups = n;
    g->nodes = shape.n_nodes;
    g->domains = shape.n_domains;
    g_autoptr(GString) text = g_string_new(NULL);
    bool is_run = members[size - 1] - members[0] == size - 1;
    if (is_run)
        g_string_printf(text, "%u-%u", members[0], members[size - 1]);
    for (uint32_t i = 0; !is_run && i < size; i++)
        if (size <= 6 || i < 3 || i == size - 1)
            g_string_append_printf(text, "%s%u", i == 0 ? "" : ",", members[i]);
        else if (i == 3)
            g_string_append(text, ",...");
    orr_record_set(&g->members, text->str);
    const OrrClusterSpec *spec = orr_cluster_spec(run->cluster);
    static const char *const nets[] = {"", "ib", "roce", "ethernet"};
    if (shape.n_domains > 1)
        orr_record_set(&g->network, run->nccl.is_fallback                  ? "sockets"
                                    : spec->node->net < G_N_ELEMENTS(nets) ? nets[spec->node->net]
                                                                           : "rdma");
}

static int64_t plan_ns(const OrrPlan *plan) {
    double moved =
        plan->work_bytes > 0 ? 1e9 * (double)plan->work_bytes / (double)plan->cap_bytes_per_s : 0.0;
    return plan->latency_ns + (int64_t)moved;
}

/* Durations that a rank of role @role sees, by the plans of its groups. */
static OrrRolePace pace_of(const OrrBound *b, uint32_t role) {
    const OrrProgram *p = b->program;
    OrrRolePace pace = {.kernel_ns = g_new0(int64_t, p->n_kernels + 1),
                        .coll_ns = g_new0(int64_t, p->n_colls + 1),
                        .part_ns = g_new0(int64_t, p->n_parts + 1),
                        .launch_ns = b->host_launch_ns,
                        .comm_ns = b->host_comm_ns};
    uint32_t rank = 0;
    while (rank + 1 < b->n_ranks && b->role[rank] != role)
        rank++;
    memcpy(pace.kernel_ns, b->kernel_ns + (gsize)b->hw[rank] * p->n_kernels,
           p->n_kernels * sizeof *pace.kernel_ns);
    for (uint32_t i = 0; i < p->n_colls; i++) {
        const OrrBoundGroup *g = &b->groups[p->colls[i].group];
        uint32_t group = g->n_groups > 0 ? g->group_of[rank] : ORR_NONE;
        if (group != ORR_NONE && g->plans)
            pace.coll_ns[i] = plan_ns(&g->plans[(gsize)g->class_of[group] * p->n_colls + i]);
    }
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const OrrBoundGroup *g = &b->groups[p->parts[i].group];
        if (g->n_pairs > 0)
            pace.part_ns[i] = plan_ns(&g->pair_plans[i]);
    }
    return pace;
}

/* Peaks in host order, plus what the process holds besides. */
void orr_step_memory(const OrrStepRun *run, int64_t (*by_kind)[ORR_N_MEM_KINDS]) {
    const OrrProgram *p = run->program;
    const OrrFramework *f = run->framework;
    int64_t context = (int64_t)(run->gpu->context_bytes + f->extra_context_bytes);
    int64_t buffers = (int64_t)f->comm_buffer_bytes;
    g_autofree int64_t *peak = g_new0(int64_t, p->n_roles);
    g_autofree OrrRolePace *paces = run->bound ? g_new0(OrrRolePace, p->n_roles) : NULL;
    OrrMemoryTerms terms = {.limit_bytes = MAX((int64_t)run->gpu->hbm_bytes - context - buffers, 1),
                            .expands = f->expandable_segments,
                            .paces = paces};
    for (uint32_t r = 0; paces && r < p->n_roles; r++)
        paces[r] = pace_of(run->bound, r);
    orr_program_memory(p, &terms, peak, by_kind);
    for (uint32_t r = 0; r < p->n_roles; r++) {
        by_kind[r][ORR_MEM_COMM_BUFFERS] += buffers;
        by_kind[r][ORR_MEM_CONTEXT] += context;
        if (!paces)
            continue;
        g_free(paces[r].kernel_ns);
        g_free(paces[r].coll_ns);
        g_free(paces[r].part_ns);
    }
}

static void fill_memory(const OrrStepRun *run, OrrRecord *r) {
    uint32_t n_roles = run->program->n_roles;
    int64_t(*by_kind)[ORR_N_MEM_KINDS] = g_malloc0(n_roles * sizeof *by_kind);
    orr_step_memory(run, by_kind);
    r->capacity_bytes = (int64_t)run->gpu->hbm_bytes;
    r->verdict = ORR_FITS;
    for (uint32_t s = 0; s < n_roles; s++) {
        OrrRecordStage *stage = &r->stages[s];
        memcpy(stage->mem_bytes, by_kind[s], sizeof stage->mem_bytes);
        for (int k = 0; k < ORR_N_MEM_KINDS; k++)
            stage->peak_bytes += stage->mem_bytes[k];
        stage->verdict = orr_verdict(stage->peak_bytes, r->capacity_bytes);
        if (stage->verdict > r->verdict)
            r->verdict = stage->verdict;
    }
    g_free(by_kind);
}

static void fill_stages(const OrrStepRun *run, OrrRecord *r, const OrrStagePart *parts) {
    const OrrBound *b = run->folded ? run->folded : run->bound;
    const OrrOrder *o = run->order;
    orr_record_alloc_stages(r, run->program->n_roles);
    for (uint32_t s = 0; s < r->n_stages; s++) {
        OrrRecordStage *stage = &r->stages[s];
        for (uint32_t c = 0; c < o->shape.n_chunks; c++) {
            const OrrStagePart *part = &parts[o->virtual_stage[s * o->shape.n_chunks + c]];
            stage->layers += part->n_layers;
            stage->has_embedding |= part->has_embedding;
            stage->has_head |= part->has_head;
        }
        __int128 sum[ORR_N_OWNERS] = {0}, weight = 0;
        for (uint32_t i = 0; i < b->n_ranks; i++) {
            if (b->role[i] != s)
                continue;
            weight += b->weight[i];
            for (int k = 0; k < ORR_N_OWNERS; k++)
                sum[k] += (__int128)run->result->rank_account_ns[(gsize)i * ORR_N_OWNERS + k] *
                          b->weight[i];
        }
        for (int k = 0; k < ORR_N_OWNERS; k++)
            stage->account_ns[k] = (int64_t)(sum[k] / weight);
        orr_record_settle(stage->account_ns, ORR_N_OWNERS, r->step_time_ns);
        for (int k = 0; k <= (int)ORR_OWN_INTERFERENCE; k++)
            stage->busy_ns += stage->account_ns[k];
    }
}

static void fill_warnings(const OrrStepRun *run, OrrRecord *r) {
    bool is_drawn = !run->folded && orr_perturbs_jitter(run->perturbs) > 0;
    if (!r->is_periodic && !is_drawn)
        orr_record_add_warning(r, "not_periodic",
                               "%u simulated steps did not settle to a period; step_time_ns is the "
                               "mean of all but the first",
                               r->simulated_steps);
    if (r->layout.micro_batches < r->layout.pp)
        orr_record_add_warning(r, "few_micro_batches",
                               "%u micro-batches on %u stages: most stages idle most of the time",
                               r->layout.micro_batches, r->layout.pp);
    if (run->nccl.warning)
        orr_record_add_warning(r, run->nccl.is_fallback ? "network_sockets" : "nccl_environment",
                               "%s", run->nccl.warning);
    if (!run->surfaces)
        orr_record_add_warning(r, "no_calibration",
                               "no measured kernel table for this GPU: times come from a roofline");
}

bool orr_step__fill(OrrStepRun *run, GError **error) {
    OrrRecord *r = run->record;
    const OrrLayout *l = &run->job->layout;
    g_autofree OrrStagePart *parts = g_new0(OrrStagePart, l->pp * l->vpp);
    if (!orr_layout_split(run->model, l, parts, error))
        return false;
    OrrParams params;
    orr_params_count(run->model, &params);
    r->parameters_total = params.total;
    r->parameters_active = params.active;
    fill_names(run, r);
    fill_time(run, r);
    if (!fill_flops(run, r, error))
        return false;
    fill_comms(run, r);
    static const OrrGroup groups[] = {ORR_GROUP_TP, ORR_GROUP_CP, ORR_GROUP_EP, ORR_GROUP_PP,
                                      ORR_GROUP_DP_CP};
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++)
        fill_group(run, r, groups[i]);
    fill_stages(run, r, parts);
    fill_memory(run, r);
    orr_step__fill_perturbs(run, r);
    orr_step__fill_arrivals(run, r);
    fill_warnings(run, r);
    OrrFindingContext context = {run->model, run->job, run->framework,
                                 orr_cluster_spec(run->cluster)};
    orr_findings_add(r, &context);
    g_autofree char *flaw = orr_record_flaw(r);
    if (flaw)
        g_error("the record is unsound: %s", flaw);
    return true;
}
