/* The metrics record: allocation, and the invariants that every record must keep. */
#include "sim/result/record.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static const char *const verdict_names[] = {"fits", "tight", "does_not_fit"};

const char *orr_verdict_name(OrrVerdict v) {
    return verdict_names[v];
}

OrrVerdict orr_verdict(int64_t peak_bytes, int64_t capacity_bytes) {
    if (peak_bytes > capacity_bytes)
        return ORR_DOES_NOT_FIT;
    double headroom_frac = (double)(capacity_bytes - peak_bytes) / (double)capacity_bytes;
    return headroom_frac < ORR_TIGHT_FRAC ? ORR_TIGHT : ORR_FITS;
}

static const char *const transfer_names[ORR_N_COMM_KINDS] = {
    [ORR_COMM_TP] = "transfer_tp",
    [ORR_COMM_SP] = "transfer_sp",
    [ORR_COMM_CP] = "transfer_cp",
    [ORR_COMM_EP] = "transfer_ep",
    [ORR_COMM_PP] = "transfer_pp",
    [ORR_COMM_DP_GRADIENT] = "transfer_dp_gradient",
    [ORR_COMM_DP_PARAMETER] = "transfer_dp_parameter",
    [ORR_COMM_EMBEDDING] = "transfer_embedding",
    [ORR_COMM_STEP_END] = "transfer_step_end",
};

static const char *const latency_names[ORR_N_COMM_KINDS] = {
    [ORR_COMM_TP] = "latency_tp",
    [ORR_COMM_SP] = "latency_sp",
    [ORR_COMM_CP] = "latency_cp",
    [ORR_COMM_EP] = "latency_ep",
    [ORR_COMM_PP] = "latency_pp",
    [ORR_COMM_DP_GRADIENT] = "latency_dp_gradient",
    [ORR_COMM_DP_PARAMETER] = "latency_dp_parameter",
    [ORR_COMM_EMBEDDING] = "latency_embedding",
    [ORR_COMM_STEP_END] = "latency_step_end",
};

const char *orr_path_owner_name(uint32_t owner) {
    if (owner < ORR_PATH_INTERFERENCE)
        return orr_kernel_kind_name((OrrKernelKind)owner);
    if (owner == ORR_PATH_INTERFERENCE)
        return "interference";
    if (owner < ORR_PATH_LATENCY_FIRST)
        return transfer_names[owner - ORR_PATH_TRANSFER_FIRST];
    if (owner < ORR_PATH_HOST)
        return latency_names[owner - ORR_PATH_LATENCY_FIRST];
    return owner == ORR_PATH_HOST ? "host" : owner == ORR_PATH_DATA ? "data" : "jitter";
}

#define N_STRINGS 14
static void strings_of(OrrRecord *r, char **fields[N_STRINGS]) {
    char **all[N_STRINGS] = {&r->version,
                             &r->job,
                             &r->model,
                             &r->cluster,
                             &r->gpu,
                             &r->framework,
                             &r->schedule,
                             &r->precision,
                             &r->recompute,
                             &r->calibration,
                             &r->layout.rank_order,
                             &r->flops_formula,
                             &r->interval.regime,
                             &r->interval.outside};
    memcpy(fields, all, sizeof all);
}

OrrRecord *orr_record_new(void) {
    OrrRecord *r = g_new0(OrrRecord, 1);
    char **fields[N_STRINGS];
    strings_of(r, fields);
    for (int i = 0; i < N_STRINGS; i++)
        *fields[i] = g_strdup("");
    return r;
}

static void free_lists(OrrRecord *r) {
    for (uint32_t i = 0; i < r->n_inputs; i++)
        g_free(r->inputs[i].name), g_free(r->inputs[i].sha256);
    for (uint32_t i = 0; i < r->n_assumptions; i++) {
        g_free(r->assumptions[i].key), g_free(r->assumptions[i].value);
        g_free(r->assumptions[i].origin);
    }
    for (uint32_t i = 0; i < r->n_warnings; i++)
        g_free(r->warnings[i].code), g_free(r->warnings[i].text);
    for (uint32_t i = 0; i < r->n_findings; i++) {
        g_free(r->findings[i].code), g_free(r->findings[i].evidence);
        g_free(r->findings[i].advice);
    }
    for (uint32_t i = 0; i < r->n_overrides; i++)
        g_free(r->overrides[i]);
    for (uint32_t i = 0; i < r->n_perturbs; i++)
        g_free(r->perturbs[i].what), g_free(r->perturbs[i].value);
    for (uint32_t i = 0; i < r->n_arrivals; i++)
        g_free(r->arrivals[i].what);
    for (uint32_t i = 0; i < r->n_mfu; i++)
        g_free(r->mfu[i].formula);
    for (uint32_t i = 0; i < r->n_comms; i++)
        g_free(r->comms[i].algorithm), g_free(r->comms[i].protocol);
    for (uint32_t i = 0; i < r->n_groups; i++)
        g_free(r->groups[i].members), g_free(r->groups[i].network);
}

void orr_record_free(OrrRecord *r) {
    if (!r)
        return;
    char **fields[N_STRINGS];
    strings_of(r, fields);
    for (int i = 0; i < N_STRINGS; i++)
        g_free(*fields[i]);
    free_lists(r);
    g_free(r->inputs), g_free(r->assumptions), g_free(r->warnings), g_free(r->findings);
    g_free(r->perturbs), g_free(r->stragglers), g_free(r->arrivals);
    g_free(r->sensitivities);
    g_free(r->overrides), g_free(r->mfu), g_free(r->comms), g_free(r->groups), g_free(r->stages);
    g_free(r);
}

void orr_record_set(char **field, const char *value) {
    char *copy = g_strdup(value ? value : "");
    g_free(*field);
    *field = copy;
}

/* Room for one more element; the lists are short, so one at a time is cheap enough. */
#define GROW(list, n) ((list) = g_renew(__typeof__(*(list)), (list), ++(n)), &(list)[(n)-1])

void orr_record_add_input(OrrRecord *r, const char *name, const char *sha256) {
    OrrRecordInput *e = GROW(r->inputs, r->n_inputs);
    e->name = g_strdup(name), e->sha256 = g_strdup(sha256);
}

void orr_record_add_assumption(OrrRecord *r, const char *key, const char *value,
                               const char *origin) {
    OrrRecordAssumption *e = GROW(r->assumptions, r->n_assumptions);
    e->key = g_strdup(key), e->value = g_strdup(value), e->origin = g_strdup(origin);
}

void orr_record_add_warning(OrrRecord *r, const char *code, const char *format, ...) {
    OrrRecordWarning *e = GROW(r->warnings, r->n_warnings);
    va_list args;
    va_start(args, format);
    e->code = g_strdup(code), e->text = g_strdup_vprintf(format, args);
    va_end(args);
}

void orr_record_add_finding(OrrRecord *r, const char *code, const char *evidence,
                            const char *advice) {
    OrrRecordFinding *e = GROW(r->findings, r->n_findings);
    e->code = g_strdup(code), e->evidence = g_strdup(evidence), e->advice = g_strdup(advice);
}

void orr_record_add_override(OrrRecord *r, const char *text) {
    *GROW(r->overrides, r->n_overrides) = g_strdup(text);
}

void orr_record_add_perturb(OrrRecord *r, const char *what, const char *value) {
    *GROW(r->perturbs, r->n_perturbs) = (OrrRecordPerturb){g_strdup(what), g_strdup(value)};
}

void orr_record_add_straggler(OrrRecord *r, const OrrRecordStraggler *straggler) {
    *GROW(r->stragglers, r->n_stragglers) = *straggler;
}

void orr_record_add_sensitivity(OrrRecord *r, const char *name, const char *keys,
                                int64_t step_time_ns) {
    *GROW(r->sensitivities, r->n_sensitivities) = (OrrRecordSensitivity){name, keys, step_time_ns};
}

void orr_record_add_arrival(OrrRecord *r, const OrrRecordArrival *arrival) {
    OrrRecordArrival *e = GROW(r->arrivals, r->n_arrivals);
    *e = *arrival;
    e->what = g_strdup(arrival->what);
}

void orr_record_add_mfu(OrrRecord *r, const char *formula, double peak_flops_per_s,
                        double tflops_per_gpu, double mfu_frac, double hfu_frac) {
    *GROW(r->mfu, r->n_mfu) =
        (OrrRecordMfu){g_strdup(formula), peak_flops_per_s, tflops_per_gpu, mfu_frac, hfu_frac};
}

OrrRecordComm *orr_record_add_comm(OrrRecord *r) {
    OrrRecordComm *e = GROW(r->comms, r->n_comms);
    *e = (OrrRecordComm){.algorithm = g_strdup(""), .protocol = g_strdup("")};
    return e;
}

OrrRecordGroup *orr_record_add_group(OrrRecord *r) {
    OrrRecordGroup *e = GROW(r->groups, r->n_groups);
    *e = (OrrRecordGroup){.members = g_strdup(""), .network = g_strdup("")};
    return e;
}

int64_t orr_record_reserved_bytes(const OrrRecordStage *stage) {
    return stage->peak_bytes - stage->mem_bytes[ORR_MEM_CONTEXT] -
           stage->mem_bytes[ORR_MEM_COMM_BUFFERS];
}

int64_t orr_record_allocated_bytes(const OrrRecordStage *stage) {
    return orr_record_reserved_bytes(stage) - stage->mem_bytes[ORR_MEM_ALLOCATOR];
}

void orr_record_alloc_stages(OrrRecord *r, uint32_t n_stages) {
    g_free(r->stages);
    r->stages = g_new0(OrrRecordStage, n_stages);
    r->n_stages = n_stages;
    for (uint32_t s = 0; s < n_stages; s++)
        r->stages[s].stage = s;
}

static int64_t sum_of(const int64_t *parts, uint32_t n) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += parts[i];
    return sum;
}

void orr_record_settle(int64_t *account_ns, uint32_t n_owners, int64_t total_ns) {
    uint32_t largest = 0;
    for (uint32_t i = 1; i < n_owners; i++)
        if (account_ns[i] > account_ns[largest])
            largest = i;
    account_ns[largest] += total_ns - sum_of(account_ns, n_owners);
}

typedef const char *(*NameOf)(uint32_t id);

static const char *owner_name(uint32_t o) {
    return orr_owner_name((OrrOwner)o);
}

static const char *mem_name(uint32_t m) {
    return orr_mem_kind_name((OrrMemKind)m);
}

static char *account_flaw(const char *what, const int64_t *parts, uint32_t n, int64_t total,
                          NameOf name) {
    for (uint32_t i = 0; i < n; i++)
        if (parts[i] < 0)
            return g_strdup_printf("%s: %s is negative (%" G_GINT64_FORMAT ")", what, name(i),
                                   parts[i]);
    int64_t sum = sum_of(parts, n);
    if (sum == total)
        return NULL;
    return g_strdup_printf("%s adds up to %" G_GINT64_FORMAT ", not to %" G_GINT64_FORMAT, what,
                           sum, total);
}

static char *stage_flaw(const OrrRecord *r, const OrrRecordStage *s) {
    g_autofree char *memory = g_strdup_printf("memory of stage %u", s->stage);
    char *flaw = account_flaw(memory, s->mem_bytes, ORR_N_MEM_KINDS, s->peak_bytes, mem_name);
    if (!flaw && s->verdict != orr_verdict(s->peak_bytes, r->capacity_bytes))
        flaw = g_strdup_printf("%s: verdict %s, but the bytes say %s", memory,
                               orr_verdict_name(s->verdict),
                               orr_verdict_name(orr_verdict(s->peak_bytes, r->capacity_bytes)));
    if (!flaw && sum_of(s->account_ns, ORR_N_OWNERS) != 0) {
        g_autofree char *time = g_strdup_printf("time account of stage %u", s->stage);
        flaw = account_flaw(time, s->account_ns, ORR_N_OWNERS, r->step_time_ns, owner_name);
    }
    if (!flaw && (s->busy_ns < 0 || s->busy_ns > r->step_time_ns))
        flaw = g_strdup_printf("stage %u is busy for %" G_GINT64_FORMAT
                               " ns of a step of %" G_GINT64_FORMAT " ns",
                               s->stage, s->busy_ns, r->step_time_ns);
    return flaw;
}

static char *comm_flaw(const OrrRecord *r) {
    for (uint32_t i = 0; i < r->n_comms; i++) {
        const OrrRecordComm *c = &r->comms[i];
        if (c->count < 0 || c->bytes < 0 || c->transfer_ns < 0 || c->wait_ns < 0 ||
            c->exposed_ns < 0 || c->exposed_ns > c->transfer_ns + c->wait_ns + 1)
            return g_strdup_printf(
                "communication %s over %u ranks: exposed time of %" G_GINT64_FORMAT
                " ns is not part of transfer (%" G_GINT64_FORMAT " ns) and wait (%" G_GINT64_FORMAT
                " ns), or a negative number",
                orr_comm_kind_name(c->kind), c->group_size, c->exposed_ns, c->transfer_ns,
                c->wait_ns);
    }
    return NULL;
}

static char *scalar_flaw(const OrrRecord *r) {
    if (r->step_time_ns <= 0)
        return g_strdup("step_time_ns is not positive");
    if (r->world_size == 0 || r->n_stages != r->layout.pp)
        return g_strdup_printf("%u stages for PP %u on %u ranks", r->n_stages, r->layout.pp,
                               r->world_size);
    int64_t tokens = (int64_t)r->layout.global_batch * r->layout.sequence_length;
    if (tokens != r->tokens_per_step)
        return g_strdup_printf("tokens_per_step is %" G_GINT64_FORMAT
                               ", GBS x sequence is %" G_GINT64_FORMAT,
                               r->tokens_per_step, tokens);
    double rate = (double)tokens / ((double)r->step_time_ns * 1e-9);
    if (!(fabs(r->tokens_per_s - rate) <= 1e-9 * rate))
        return g_strdup("tokens_per_s is not tokens_per_step over step_time_ns");
    if (r->n_mfu == 0 || strcmp(r->mfu[0].formula, r->flops_formula) != 0)
        return g_strdup_printf("the first MFU row is not that of '%s'", r->flops_formula);
    return NULL;
}

char *orr_record_flaw(const OrrRecord *r) {
    char *flaw = scalar_flaw(r);
    if (!flaw)
        flaw = account_flaw("time_account", r->time_account_ns, ORR_N_OWNERS, r->step_time_ns,
                            owner_name);
    bool has_path = false;
    for (uint32_t o = 0; o < ORR_N_PATH_OWNERS; o++)
        has_path |= r->critical_path_ns[o] != 0;
    if (!flaw && has_path)
        flaw = account_flaw("critical_path", r->critical_path_ns, ORR_N_PATH_OWNERS,
                            r->step_time_ns, orr_path_owner_name);
    OrrVerdict worst = ORR_FITS;
    for (uint32_t s = 0; s < r->n_stages && !flaw; s++) {
        flaw = stage_flaw(r, &r->stages[s]);
        worst = MAX(worst, r->stages[s].verdict);
    }
    if (!flaw && worst != r->verdict)
        flaw = g_strdup_printf("verdict %s, but the worst stage is %s",
                               orr_verdict_name(r->verdict), orr_verdict_name(worst));
    return flaw ? flaw : comm_flaw(r);
}
