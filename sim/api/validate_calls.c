/* Published collectives against the model of an idle machine; or each system's larger sizes against
 * a fit to its smaller ones. */
#include "sim/api/validate_priv.h"

#include "sim/collective/place.h"
#include "sim/collective/timed.h"
#include "sim/judge/fit.h"
#include "sim/judge/names.h"

#include <stdlib.h>
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
    const char *name = orr_judge_cluster(shelf->names, gpu, call->interconnect, &is_default);
    if (!name)
        return false;
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

/* One row on its way. */
typedef struct {
    const OrrPublishedCall *call;
    const char *gpu;   /* of ours, or NULL */
    const char *group; /* system and collective; owned by the validation */
    OrrCommPlace place;
    const OrrCollConstants *constants; /* NULL: the shipped ones */
    const char *reason, *detail;       /* NULL: to be judged */
    bool is_fitted;
} Call;

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

static OrrNcclForce force_of(const Call *c) {
    return (OrrNcclForce){.algo = c->call->algo,
                          .proto = ORR_N_PROTOS,
                          .version = c->call->version,
                          .constants = c->constants};
}

static bool begin(Call *c, OrrValidateShelf *shelf, OrrValidation *v, GError **error) {
    const OrrPublishedCall *call = c->call;
    c->gpu = orr_judge_gpu(shelf->names, call->gpu);
    g_autofree char *system = g_strdup_printf(
        "%s %s", call->system,
        call->kind < ORR_N_COLLECTIVES ? orr_collective_name(call->kind) : call->what);
    c->group = orr_validation_text(v, system);
    c->reason = call_flaw(call, c->gpu);
    if (!c->reason && !place_call(call, c->gpu, shelf, &c->place))
        c->reason = "no machine of ours is that large";
    return constants_of(c->gpu, shelf, &c->constants, error);
}

static void judge(const Call *c, OrrValidation *v) {
    const OrrPublishedCall *call = c->call;
    OrrValidationRow row = {.kind = ORR_VALIDATED_COLLECTIVE,
                            .file = call->file,
                            .line = call->line,
                            .id = orr_validation_text(v, call->id),
                            .gpu = orr_validation_text(v, c->gpu ? c->gpu : call->gpu),
                            .group = c->group,
                            .bytes = call->bytes,
                            .reason = c->reason};
    OrrCollPlan plan;
    GError *error = NULL;
    OrrNcclForce force = force_of(c);
    if (!row.reason && !orr_collective_plan(call->kind, call->bytes, call->dtype, &c->place, &force,
                                            &plan, &error)) {
        row.reason = "algorithm refused";
        row.detail = g_strdup(error->message);
        g_error_free(error);
    } else if (!row.reason) {
        row.measured = call->time_ns;
        row.predicted =
            orr_collective_timed_ns(&plan, call->bytes, &c->place, call->timed, c->constants);
    }
    g_array_append_val(v->rows, row);
}

/* The rows of one system and collective; each is a table of its own, since their GPUs and
 * algorithms may differ. */
typedef struct {
    Call **calls;
    guint n;
    OrrMeasuredCollective *rows;
    OrrMeasuredTable *tables;
    OrrFitTable *fits;
} System;

static int by_bytes(const void *a, const void *b) {
    int64_t x = (*(Call *const *)a)->call->bytes, y = (*(Call *const *)b)->call->bytes;
    return (x > y) - (x < y);
}

/* The largest size that is fitted: below the share of the distinct sizes that is held out. */
static int64_t last_fitted(const System *s, double hold_out_frac) {
    guint n_sizes = 0, seen = 0;
    for (guint i = 0; i < s->n; i++)
        n_sizes += i == 0 || s->calls[i]->call->bytes != s->calls[i - 1]->call->bytes;
    guint n_fitted = n_sizes - (guint)(hold_out_frac * n_sizes + 0.5);
    for (guint i = 0; i < s->n; i++) {
        seen += i == 0 || s->calls[i]->call->bytes != s->calls[i - 1]->call->bytes;
        if (seen > n_fitted)
            return s->calls[i]->call->bytes - 1;
    }
    return INT64_MAX;
}

static void make_tables(System *s) {
    s->rows = g_new0(OrrMeasuredCollective, s->n);
    s->tables = g_new0(OrrMeasuredTable, s->n);
    s->fits = g_new0(OrrFitTable, s->n);
    for (guint i = 0; i < s->n; i++) {
        const Call *c = s->calls[i];
        s->rows[i] = (OrrMeasuredCollective){.bytes = c->call->bytes,
                                             .dtype = c->call->dtype,
                                             .out_of_place = {.time_ns = c->call->time_ns}};
        s->tables[i] = (OrrMeasuredTable){.name = (char *)c->group,
                                          .kind = c->call->kind,
                                          .n_ranks = c->call->n_ranks,
                                          .rows = &s->rows[i],
                                          .n_rows = 1,
                                          .timed = c->call->timed};
        s->fits[i] = (OrrFitTable){&s->tables[i], c->place, force_of(c)};
    }
}

#define LEAST_SIZES 4 /* ours: to fit; systems with fewer stay as they are */

static void fit_system(System *s, double hold_out_frac, GPtrArray *fits) {
    qsort(s->calls, s->n, sizeof *s->calls, by_bytes);
    OrrFitSizes sizes = {1, last_fitted(s, hold_out_frac)};
    make_tables(s);
    OrrFit *fit = s->n < LEAST_SIZES ? NULL : orr_judge_fit(s->fits, s->n, &sizes, NULL);
    for (guint i = 0; i < s->n; i++) {
        Call *c = s->calls[i];
        c->reason = !fit                                ? "too few rows of the system to fit"
                    : c->call->bytes <= sizes.max_bytes ? "fitted, not held out"
                                                        : NULL;
        if (fit)
            c->constants = &fit->constants;
    }
    if (fit)
        g_ptr_array_add(fits, fit);
    g_free(s->rows);
    g_free(s->tables);
    g_free(s->fits);
}

static void fit_systems(Call *calls, guint n, double hold_out_frac, GPtrArray *fits) {
    for (guint i = 0; i < n; i++) {
        if (calls[i].reason || calls[i].is_fitted)
            continue;
        System s = {.calls = g_new(Call *, n)};
        for (guint j = i; j < n; j++)
            if (!calls[j].reason && calls[j].group == calls[i].group) {
                calls[j].is_fitted = true;
                s.calls[s.n++] = &calls[j];
            }
        fit_system(&s, hold_out_frac, fits);
        g_free(s.calls);
    }
}

static void free_fit(void *fit) {
    orr_fit_free(fit);
}

bool orr_validate__calls(const OrrValidateRequest *q, OrrValidateShelf *shelf, OrrValidation *v,
                         GError **error) {
    const GArray *facts = q->facts->calls;
    g_autofree Call *calls = g_new0(Call, facts->len + 1);
    g_autoptr(GPtrArray) fits = g_ptr_array_new_with_free_func(free_fit);
    bool is_fine = true;
    for (guint i = 0; is_fine && i < facts->len; i++) {
        calls[i].call = &g_array_index(facts, OrrPublishedCall, i);
        is_fine = begin(&calls[i], shelf, v, error);
    }
    if (is_fine && q->hold_out_frac > 0)
        fit_systems(calls, facts->len, q->hold_out_frac, fits);
    for (guint i = 0; is_fine && i < facts->len; i++)
        judge(&calls[i], v);
    return is_fine;
}
