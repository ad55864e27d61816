#include "sim/judge/check.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/stats.h"

#define FROM_BYTES (64 << 10) /* ours: below, latencies of the host decide */
#define PLATEAU_SPAN 4        /* ours: sizes within this of the largest make the plateau */
#define LIKELY_FRAC 0.15      /* ours: a cause that comes this near is worth a word */
#define MAX_CAUSES 3

/* Faults as a change of place or force. */
typedef struct {
    const char *code, *words;
    bool (*apply)(OrrCommPlace *place, OrrNcclForce *force, double management);
} Fault;

static bool sockets(OrrCommPlace *p, OrrNcclForce *f, double management) {
    if (p->n_domains < 2 || management <= 0)
        return false;
    f->use_sockets = true;
    p->net = ORR_NET_ETHERNET;
    p->nic_bytes_per_s = management;
    p->nics_per_domain = 1;
    p->gpus_per_nic = p->max_per_domain;
    return true;
}

static bool one_nic(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)f, (void)management;
    if (p->n_domains < 2 || p->nics_per_domain <= 1)
        return false;
    p->nics_per_domain = 1;
    p->gpus_per_nic = p->max_per_domain;
    return true;
}

static bool half_nics(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)f, (void)management;
    if (p->n_domains < 2 || p->nics_per_domain < 4)
        return false;
    p->nics_per_domain = p->nics_per_domain / 2;
    p->gpus_per_nic = MAX(2, p->gpus_per_nic);
    return true;
}

/* Reads of a GPU's memory across the CPUs' link: 10 to 13 GB/s on hosts with PCIe 4 (public
 * reports, as NVIDIA/nccl issue 1357); a NIC without GPUDirect fares alike. */
#define ACROSS_SOCKETS_BYTES_PER_S 12e9
static bool across_sockets(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)f, (void)management;
    if (p->n_domains < 2 || p->nic_bytes_per_s <= ACROSS_SOCKETS_BYTES_PER_S)
        return false;
    p->nic_bytes_per_s = ACROSS_SOCKETS_BYTES_PER_S;
    return true;
}

/* Eight flows on eight uplinks by hash: the slowest one's share averages 0.41 (balls in bins). */
#define COLLIDING_SHARE 0.41
static bool collisions(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)f, (void)management;
    if (p->n_domains < 2)
        return false;
    p->fabric_bytes_per_s = COLLIDING_SHARE * p->nic_bytes_per_s;
    return true;
}

static bool nvls_off(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)management;
    if (!p->has_nvls)
        return false;
    f->nvls_off = true;
    return true;
}

static bool no_p2p(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)management;
    if (p->nvlink == ORR_NVLINK_NONE || p->max_per_domain < 2)
        return false;
    f->p2p_off = true;
    return true;
}

static bool only_ll(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)p, (void)management;
    f->proto = ORR_PROTO_LL;
    return true;
}

static bool few_channels(OrrCommPlace *p, OrrNcclForce *f, double management) {
    (void)p, (void)management;
    f->max_channels = 2;
    return true;
}

static const Fault faults[] = {
    {"sockets",
     "traffic between nodes goes over sockets on the management network (NCCL_IB_HCA, "
     "NCCL_NET or a missing plugin), not over the fast NICs",
     sockets},
    {"one_nic", "all GPUs of a node share one NIC", one_nic},
    {"half_of_the_nics", "half of the NICs are used, two GPUs a NIC", half_nics},
    {"nic_across_the_socket", "the NICs in use sit behind the other CPU, or GPUDirect is off",
     across_sockets},
    {"ecmp_collisions", "flows collide on uplinks that a hash picks", collisions},
    {"nvls_off", "reduction in the NVLink switch (NVLS) is off", nvls_off},
    {"no_p2p", "GPUs of a node do not reach each other by NVLink (peer-to-peer is off)", no_p2p},
    {"protocol_ll", "the LL protocol is forced (NCCL_PROTO), which halves the payload", only_ll},
    {"few_channels", "two channels only (NCCL_MAX_NCHANNELS or few SMs)", few_channels},
};

static double expected_ns(const OrrMeasuredTable *t, const OrrMeasuredCollective *row,
                          const OrrCommPlace *place, const OrrNcclForce *force, OrrCollPlan *plan,
                          GError **error) {
    OrrDtype dtype = row->dtype < ORR_N_DTYPES ? row->dtype : ORR_FP32;
    if (!orr_collective_plan(t->kind, row->bytes, dtype, place, force, plan, error))
        return 0;
    return (double)orr_collective_ns(plan, row->bytes);
}

/* Mean of |ln(measured / expected)| over the sizes that tell; negative where NCCL refuses. */
static double error_of(const OrrMeasuredTable *t, const OrrCommPlace *place,
                       const OrrNcclForce *force) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        double measured = orr_measured_time_ns(&t->rows[i]);
        OrrCollPlan plan;
        if (measured <= 0 || t->rows[i].bytes < FROM_BYTES)
            continue;
        double expected = expected_ns(t, &t->rows[i], place, force, &plan, NULL);
        if (expected <= 0)
            return -1;
        sum += fabs(log(measured / expected));
        n++;
    }
    return n > 0 ? sum / n : -1;
}

static bool fill_rows(OrrCheck *c, const OrrMeasuredTable *t, const OrrCommPlace *place,
                      const OrrNcclForce *force, GError **error) {
    double factor = orr_measured_bus_factor(t->kind, place->n_ranks);
    c->rows = g_new0(OrrCheckRow, t->n_rows + 1);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        const OrrMeasuredCollective *row = &t->rows[i];
        OrrCheckRow *out = &c->rows[c->n_rows];
        OrrCollPlan plan;
        out->measured_ns = orr_measured_time_ns(row);
        if (out->measured_ns <= 0 || row->bytes <= 0)
            continue;
        out->expected_ns = expected_ns(t, row, place, force, &plan, error);
        if (out->expected_ns <= 0)
            return false;
        out->bytes = row->bytes;
        out->measured_busbw_bytes_per_s = (double)row->bytes / out->measured_ns * 1e9 * factor;
        out->expected_busbw_bytes_per_s = (double)row->bytes / out->expected_ns * 1e9 * factor;
        out->ratio = out->expected_ns / out->measured_ns;
        out->algo = plan.algo;
        out->proto = plan.proto;
        c->n_rows++;
    }
    return c->n_rows > 0 || orr_fail_input(error, "%s: no row that can be used", t->name);
}

static void fill_plateau(OrrCheck *c) {
    int64_t largest = 0;
    double best = 0;
    g_autofree double *ratio = g_new(double, c->n_rows);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_rows; i++)
        largest = MAX(largest, c->rows[i].bytes);
    for (uint32_t i = 0; i < c->n_rows; i++) {
        best = fmax(best, c->rows[i].measured_busbw_bytes_per_s);
        if (c->rows[i].bytes < largest / PLATEAU_SPAN)
            continue;
        ratio[n++] = c->rows[i].ratio;
    }
    c->plateau_ratio = orr_stats_median(ratio, n);
    c->is_faster_than_wire = c->wire_bytes_per_s > 0 && best > c->wire_bytes_per_s;
}

static int by_error(const void *a, const void *b) {
    const OrrCheckCause *one = a, *other = b;
    return one->error_frac < other->error_frac ? -1 : one->error_frac > other->error_frac;
}

static void add_cause(OrrCheck *c, OrrCheckCause cause) {
    c->causes = g_renew(OrrCheckCause, c->causes, c->n_causes + 1);
    c->causes[c->n_causes++] = cause;
}

/* A fabric that is thinner above the leaves by just what is missing. */
static void add_oversubscription(OrrCheck *c, const OrrMeasuredTable *t, const OrrCommPlace *place,
                                 const OrrNcclForce *force) {
    OrrCommPlace thin = *place;
    if (place->n_domains < 2 || c->plateau_ratio >= 1)
        return;
    thin.fabric_bytes_per_s = c->plateau_ratio * place->nic_bytes_per_s;
    double error = error_of(t, &thin, force);
    if (error < 0 || error > LIKELY_FRAC || error >= c->error_frac)
        return;
    char ratio[16], rest[16];
    g_ascii_formatd(ratio, sizeof ratio, "%.1f", 1 / c->plateau_ratio);
    g_ascii_formatd(rest, sizeof rest, "%.0f", 100 * error);
    add_cause(c, (OrrCheckCause){
                     "oversubscription", "the fabric above the NICs is oversubscribed, or shared",
                     g_strdup_printf("%s:1 would explain all sizes within %s %%", ratio, rest),
                     error});
}

static void find_causes(OrrCheck *c, const OrrMeasuredTable *t, const OrrCommPlace *place,
                        const OrrNcclForce *force, double management) {
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        OrrCommPlace changed = *place;
        OrrNcclForce forced = *force;
        if (!faults[i].apply(&changed, &forced, management))
            continue;
        double error = error_of(t, &changed, &forced);
        if (error < 0 || error > LIKELY_FRAC * 2 || error >= c->error_frac)
            continue;
        char now[16], before[16];
        g_ascii_formatd(now, sizeof now, "%.0f", 100 * error);
        g_ascii_formatd(before, sizeof before, "%.0f", 100 * c->error_frac);
        add_cause(c, (OrrCheckCause){faults[i].code, faults[i].words,
                                     g_strdup_printf("then times from 64 KiB on would be %s %% off "
                                                     "on average; they are %s %% off a sound "
                                                     "machine",
                                                     now, before),
                                     error});
    }
    add_oversubscription(c, t, place, force);
    if (c->n_causes > 1)
        qsort(c->causes, c->n_causes, sizeof *c->causes, by_error);
    while (c->n_causes > MAX_CAUSES)
        g_free(c->causes[--c->n_causes].evidence);
}

OrrCheck *orr_judge_check(const OrrMeasuredTable *table, const OrrCommPlace *place,
                          const OrrNcclForce *force, double management_bytes_per_s,
                          double tolerance_frac, GError **error) {
    g_autoptr(OrrCheck) c = g_new0(OrrCheck, 1);
    c->wire_bytes_per_s = place->n_domains > 1 ? place->nic_bytes_per_s * place->nics_per_domain
                                               : place->nvlink_bytes_per_s;
    if (!fill_rows(c, table, place, force, error))
        return NULL;
    fill_plateau(c);
    c->is_within = fabs(log(c->plateau_ratio)) <= log1p(tolerance_frac);
    c->error_frac = error_of(table, place, force);
    if (!c->is_within && c->plateau_ratio < 1)
        find_causes(c, table, place, force, management_bytes_per_s);
    return g_steal_pointer(&c);
}

void orr_check_free(OrrCheck *c) {
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_causes; i++)
        g_free(c->causes[i].evidence);
    g_free(c->causes);
    g_free(c->rows);
    g_free(c);
}
