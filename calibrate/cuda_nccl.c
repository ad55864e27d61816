/* Collectives through NCCL: one process with many GPUs and a thread for each, or one a GPU. All
 * groups of a shape have communicators; which of them work is the case's. Compiled to a refusal
 * without NCCL.
 *
 * Times are from the first launch on a GPU to the end there, the slowest GPU counts; under MPI all
 * processes start together behind a barrier. Beside a collective, products of 4096 x 4096 x 4096 in
 * BF16 run on another stream for somewhat longer; the first half of them is timed, all of which
 * lies within the collectives. */
#include "config.h"

#include "calibrate/cuda_comms.h"
#include "calibrate/fill.h"
#include "calibrate/kernels.h"

#include <math.h>
#include <string.h>

#ifdef HAVE_NCCL

/* Side of the products that run beside. */
#define BESIDE 4096
/* Of the collectives' time that the products would fill alone: beside them they last longer. */
#define BESIDE_SHARE 1.2

typedef struct {
    void *send, *receive;
    bool takes_part;
    int place;
    ncclComm_t comm;
    OrrWork *product; /* beside; or NULL */
} Member;

typedef struct {
    Member *members; /* one a GPU of this process */
    int64_t elements, send_elements, receive_elements;
    double last_ns;
} Collective;

static ncclDataType_t type_of(OrrDtype dtype) {
    return dtype == ORR_BF16 ? ncclBfloat16 : dtype == ORR_FP16 ? ncclFloat16 : ncclFloat32;
}

/* A part for each member, in sends and receives of one group. */
static ncclResult_t all_to_all(const Member *m, size_t part, size_t bytes, ncclDataType_t type,
                               int n, cudaStream_t stream) {
    for (int peer = 0; peer < n; peer++) {
        const char *from = (const char *)m->send + (size_t)peer * bytes;
        char *to = (char *)m->receive + (size_t)peer * bytes;
        ncclResult_t status = ncclSend(from, part, type, peer, m->comm, stream);
        if (status == ncclSuccess)
            status = ncclRecv(to, part, type, peer, m->comm, stream);
        if (status != ncclSuccess)
            return status;
    }
    return ncclSuccess;
}

static ncclResult_t enqueue(const OrrCase *c, const Collective *s, const Member *m,
                            cudaStream_t stream) {
    ncclDataType_t type = type_of(c->dtype);
    int n = (int)c->group_gpus;
    size_t all = (size_t)s->elements, part = all / (size_t)n;
    ncclResult_t status;
    switch ((OrrCollective)c->op) {
    case ORR_ALL_REDUCE:
        return ncclAllReduce(m->send, m->receive, all, type, ncclSum, m->comm, stream);
    case ORR_ALL_GATHER:
        return ncclAllGather(m->send, m->receive, part, type, m->comm, stream);
    case ORR_REDUCE_SCATTER:
        return ncclReduceScatter(m->send, m->receive, part, type, ncclSum, m->comm, stream);
    case ORR_ALL_TO_ALL:
        return all_to_all(m, part, part * orr_cuda__size(c->dtype), type, n, stream);
    case ORR_BROADCAST:
        return ncclBroadcast(m->send, m->receive, all, type, 0, m->comm, stream);
    case ORR_REDUCE:
        return ncclReduce(m->send, m->receive, all, type, ncclSum, 0, m->comm, stream);
    case ORR_SEND_RECV: /* each to the next, as nccl-tests has it */
        status = ncclSend(m->send, all, type, (m->place + 1) % n, m->comm, stream);
        return status != ncclSuccess
                   ? status
                   : ncclRecv(m->receive, all, type, (m->place + n - 1) % n, m->comm, stream);
    case ORR_N_COLLECTIVES:
        break;
    }
    return ncclInvalidArgument;
}

static bool run(OrrCuda *cuda, OrrWork *w, GError **error) {
    const Collective *s = w->state;
    if (!orr_cuda__nccl_ok(ncclGroupStart(), "ncclGroupStart", error))
        return false;
    ncclResult_t status = ncclSuccess;
    for (int i = 0; status == ncclSuccess && i < cuda->n_gpus; i++)
        if (s->members[i].takes_part)
            status = enqueue(&w->c, s, &s->members[i], cuda->gpus[i].stream);
    ncclResult_t end = ncclGroupEnd();
    return orr_cuda__nccl_ok(status != ncclSuccess ? status : end,
                             orr_collective_name((OrrCollective)w->c.op), error);
}

/* Time of one product by itself. */
static bool time_alone(OrrCuda *cuda, Collective *s, double *ns, GError **error) {
    *ns = NAN;
    for (int i = 0; i < cuda->n_gpus; i++)
        if (s->members[i].product)
            return orr_cuda__time(cuda, s->members[i].product, 4, ns, error);
    return true;
}

/* What one GPU's thread enqueues; each GPU has one, because a process that launches for many GPUs
 * in turn takes 5 us for each, longer than short messages last. */
typedef struct {
    OrrCuda *cuda;
    OrrWork *w;
    int i; /* of the process's GPUs */
    uint32_t n, n_products, n_timed;
    int *n_ready, n_lanes; /* threads that wait for the others; atomic */
    GError *error;
} Lane;

static bool enqueue_one(const Lane *l, GError **error) {
    const Collective *s = l->w->state;
    if (!orr_cuda__nccl_ok(ncclGroupStart(), "ncclGroupStart", error))
        return false;
    ncclResult_t status = enqueue(&l->w->c, s, &s->members[l->i], l->cuda->gpus[l->i].stream);
    ncclResult_t end = ncclGroupEnd();
    return orr_cuda__nccl_ok(status != ncclSuccess ? status : end,
                             orr_collective_name((OrrCollective)l->w->c.op), error);
}

/* Products, of which the first are timed. */
static bool enqueue_beside(const Lane *l, GError **error) {
    OrrGpu *g = &l->cuda->gpus[l->i];
    OrrWork *product = ((Collective *)l->w->state)->members[l->i].product;
    if (!product)
        return true;
    cudaEventRecord(g->begin_beside, g->beside);
    for (uint32_t k = 0; k < l->n_products; k++) {
        if (!product->ops->run(l->cuda, product, error))
            return false;
        if (k + 1 == l->n_timed)
            cudaEventRecord(g->end_beside, g->beside);
    }
    return true;
}

/* The first collective is under way before the products begin. */
static bool enqueue_lane(const Lane *l, GError **error) {
    OrrGpu *g = &l->cuda->gpus[l->i];
    if (!orr_cuda__ok(cudaEventRecord(g->begin, g->stream), "cudaEventRecord", error))
        return false;
    for (uint32_t i = 0; i < l->n; i++)
        if (!enqueue_one(l, error) || (i == 0 && !enqueue_beside(l, error)))
            return false;
    return orr_cuda__ok(cudaEventRecord(g->end, g->stream), "cudaEventRecord", error);
}

static gpointer run_lane(gpointer data) {
    Lane *l = data;
    bool is_good = orr_cuda__ok(cudaSetDevice(l->cuda->gpus[l->i].id), "cudaSetDevice", &l->error);
    g_atomic_int_inc(l->n_ready);
    while (g_atomic_int_get(l->n_ready) < l->n_lanes) /* all begin together */
        g_thread_yield();
    if (is_good)
        enqueue_lane(l, &l->error);
    return NULL;
}

static bool elapsed(cudaEvent_t begin, cudaEvent_t end, double *ns, GError **error) {
    float ms = 0;
    if (!orr_cuda__ok(cudaEventSynchronize(end), "waiting for the GPU", error) ||
        !orr_cuda__ok(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime", error))
        return false;
    *ns = fmax(*ns, ms * 1e6);
    return true;
}

static bool collect(OrrCuda *cuda, const Collective *s, double *ns, double *beside_ns,
                    GError **error) {
    *ns = *beside_ns = 0;
    for (int i = 0; i < cuda->n_gpus; i++) {
        OrrGpu *g = &cuda->gpus[i];
        if (s->members[i].takes_part && !elapsed(g->begin, g->end, ns, error))
            return false;
        if (s->members[i].product && !elapsed(g->begin_beside, g->end_beside, beside_ns, error))
            return false;
    }
    return true;
}

/* A thread a GPU; a process with one has no need of another. */
static bool run_lanes(const Lane *like, GError **error) {
    OrrCuda *cuda = like->cuda;
    const Collective *s = like->w->state;
    g_autofree Lane *lanes = g_new0(Lane, cuda->n_gpus);
    g_autofree GThread **threads = g_new0(GThread *, cuda->n_gpus);
    int n_ready = 0, n_lanes = 0;
    for (int i = 0; i < cuda->n_gpus; i++)
        n_lanes += s->members[i].takes_part;
    for (int i = 0; i < cuda->n_gpus; i++) {
        lanes[i] = *like;
        lanes[i].i = i;
        lanes[i].n_ready = &n_ready;
        lanes[i].n_lanes = n_lanes;
        if (s->members[i].takes_part && n_lanes > 1)
            threads[i] = g_thread_new("lane", run_lane, &lanes[i]);
        else if (s->members[i].takes_part)
            run_lane(&lanes[i]);
    }
    GError *failed = NULL;
    for (int i = 0; i < cuda->n_gpus; i++) {
        if (threads[i])
            g_thread_join(threads[i]);
        if (lanes[i].error && !failed)
            failed = lanes[i].error;
        else
            g_clear_error(&lanes[i].error);
    }
    if (!failed)
        return true;
    orr_cuda__abort_comms(cuda);
    g_propagate_error(error, failed);
    return false;
}

static bool time_collective(OrrCuda *cuda, OrrWork *w, uint32_t n, OrrTiming *timing,
                            GError **error) {
    Collective *s = w->state;
    double alone_ns = NAN, ns, beside_ns;
    if (w->c.has_compute && !time_alone(cuda, s, &alone_ns, error))
        return false;
    Lane lane = {.cuda = cuda, .w = w, .n = n};
    if (isfinite(alone_ns)) {
        double share = BESIDE_SHARE * s->last_ns * n / alone_ns;
        lane.n_products = (uint32_t)CLAMP(ceil(share), 1, 1000);
        lane.n_timed = MAX(lane.n_products / 2, 1);
    }
    cuda->ranks->barrier(cuda->ranks);
    if (!run_lanes(&lane, error) || !collect(cuda, s, &ns, &beside_ns, error))
        return false;
    timing->ns = s->last_ns = ns / n;
    if (lane.n_products) {
        timing->compute_ns = alone_ns;
        timing->compute_beside_ns = beside_ns / lane.n_timed;
    }
    return true;
}

/* What element @i of the member at @place must be; the data of a member is seeded by its place. */
static double expected(const OrrCase *c, int64_t elements, int place, int64_t i) {
    int n = (int)c->group_gpus;
    int64_t part = elements / n, at = i;
    uint64_t from = 0;
    double sum = 0;
    switch ((OrrCollective)c->op) {
    case ORR_ALL_GATHER:
        from = (uint64_t)(i / part), at = i % part;
        break;
    case ORR_ALL_TO_ALL:
        from = (uint64_t)(i / part), at = place * part + i % part;
        break;
    case ORR_SEND_RECV:
        from = (uint64_t)((place + n - 1) % n);
        break;
    case ORR_ALL_REDUCE:
    case ORR_REDUCE:
    case ORR_REDUCE_SCATTER:
        if (c->op == ORR_REDUCE_SCATTER)
            at = place * part + i;
        for (int k = 0; k < n; k++)
            sum += orr_fill_value((uint64_t)k + 1, (uint64_t)at, ORR_FILL_STEPS);
        return sum;
    case ORR_BROADCAST:
    case ORR_N_COLLECTIVES:
        break;
    }
    return orr_fill_value(from + 1, (uint64_t)at, ORR_FILL_STEPS);
}

static bool compare_member(const OrrWork *w, const Collective *s, const Member *m,
                           double *error_frac, GError **error) {
    int64_t n = s->receive_elements;
    for (uint64_t k = 0; k < 32; k++) {
        int64_t i = k == 0 ? 0 : k == 1 ? n - 1 : (int64_t)(orr_fill_hash(6, k) % (uint64_t)n);
        double is;
        if (!orr_cuda__element(m->receive, w->c.dtype, i, &is, error))
            return false;
        double difference = fabs(is - expected(&w->c, s->elements, m->place, i));
        *error_frac = fmax(*error_frac, isfinite(is) ? difference : INFINITY);
    }
    return true;
}

static bool compare(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error) {
    const Collective *s = w->state;
    *error_frac = 0;
    for (int i = 0; i < cuda->n_gpus; i++)
        if (s->members[i].takes_part &&
            (!orr_cuda__ok(cudaSetDevice(cuda->gpus[i].id), "cudaSetDevice", error) ||
             !compare_member(w, s, &s->members[i], error_frac, error)))
            return false;
    /* Values are at most 1: each of n additions may round a sum by a unit of BF16, 2^-8 of it. */
    bool adds = w->c.op == ORR_ALL_REDUCE || w->c.op == ORR_REDUCE_SCATTER || w->c.op == ORR_REDUCE;
    double unit = w->c.dtype == ORR_FP32 ? 1e-6 : 1.0 / 256;
    *tolerance_frac = adds ? 2 * (double)w->c.group_gpus * unit : 0;
    return true;
}

static void release(OrrCuda *cuda, OrrWork *w) {
    Collective *s = w->state;
    for (int i = 0; i < cuda->n_gpus; i++) {
        Member *m = &s->members[i];
        cudaSetDevice(cuda->gpus[i].id);
        cudaFree(m->send < m->receive ? m->send : m->receive);
        orr_cuda__release(cuda, m->product);
    }
    cudaSetDevice(cuda->gpus[0].id);
    g_free(s->members);
    g_free(s);
}

static const OrrCudaOps ops = {
    .run = run, .compare = compare, .time = time_collective, .release = release};

/* One allocation holds both buffers; in place they are the same, or the part of the whole that is
 * this member's. */
static bool make_buffers(OrrGpu *g, const OrrCase *c, const Collective *s, Member *m,
                         GError **error) {
    size_t e = orr_cuda__size(c->dtype);
    size_t send = (size_t)s->send_elements * e, receive = (size_t)s->receive_elements * e;
    size_t aligned = (MAX(send, 1) + 511) / 512 * 512; /* as cudaMalloc aligns */
    char *data = NULL;
    size_t bytes = c->is_in_place ? MAX(send, receive) : aligned + receive;
    if (!orr_cuda__ok(cudaMalloc((void **)&data, bytes), "cudaMalloc", error))
        return false;
    m->send = m->receive = data;
    if (!c->is_in_place)
        m->receive = data + aligned;
    else if (c->op == ORR_ALL_GATHER)
        m->send = data + (size_t)m->place * send;
    else if (c->op == ORR_REDUCE_SCATTER)
        m->receive = data + (size_t)m->place * receive;
    return orr_cuda__ok((cudaError_t)orr_kernels_fill(m->send, (int)c->dtype, s->send_elements,
                                                      (uint64_t)m->place + 1, g->stream),
                        "filling a buffer", error);
}

static bool make_member(OrrCuda *cuda, int i, const OrrCase *c, Collective *s, GError **error) {
    const OrrCollectives *shape = cuda->collectives;
    OrrGpu *g = &cuda->gpus[i];
    Member *m = &s->members[i];
    m->takes_part = shape->groups[i] >= 0 && shape->groups[i] < c->n_groups;
    m->place = shape->places[i];
    m->comm = shape->comms[i];
    if (!m->takes_part)
        return true;
    if (!orr_cuda__ok(cudaSetDevice(g->id), "cudaSetDevice", error) ||
        !make_buffers(g, c, s, m, error))
        return false;
    if (!c->has_compute)
        return true;
    OrrCase product = {
        .kind = ORR_CASE_GEMM, .dtype = ORR_BF16, .m = BESIDE, .n = BESIDE, .k = BESIDE};
    m->product = orr_cuda__gemm(cuda, g, &product, error);
    if (m->product)
        m->product->stream = g->beside;
    return m->product != NULL;
}

OrrWork *orr_cuda__collective(OrrCuda *cuda, const OrrCase *c, GError **error) {
    int64_t elements = c->bytes / (int64_t)orr_cuda__size(c->dtype), n = c->group_gpus;
    bool is_parted =
        c->op == ORR_ALL_GATHER || c->op == ORR_REDUCE_SCATTER || c->op == ORR_ALL_TO_ALL;
    if (is_parted)
        elements -= elements % n;
    if (orr_ranks_n_groups(cuda->n_world, (int)n, (int)c->stride) < c->n_groups || elements == 0) {
        orr_cuda__refuse(error, elements ? "needs more GPUs" : "fewer elements than GPUs");
        return NULL;
    }
    if (!orr_cuda__need_comms(cuda, c, error))
        return NULL;
    OrrWork *w = orr_cuda__work(&ops, c, cuda->gpus);
    Collective *s = w->state = g_new0(Collective, 1);
    s->members = g_new0(Member, cuda->n_gpus);
    s->elements = elements;
    s->send_elements = c->op == ORR_ALL_GATHER ? elements / n : elements;
    s->receive_elements = c->op == ORR_REDUCE_SCATTER ? elements / n : elements;
    bool is_good = true;
    for (int i = 0; is_good && i < cuda->n_gpus; i++)
        is_good = make_member(cuda, i, c, s, error);
    if (is_good)
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}
#else
OrrWork *orr_cuda__collective(OrrCuda *cuda, const OrrCase *c, GError **error) {
    (void)cuda, (void)c;
    orr_cuda__refuse(error, "this program was built without NCCL");
    return NULL;
}
#endif
