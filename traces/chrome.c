/* Chrome JSON, object form, as chrome://tracing, Perfetto, TensorBoard and HolisticTraceAnalysis
 * read it: one process a rank, one thread a stream, times in microseconds with three decimals.
 *
 * Kernels carry the names and arguments that the PyTorch profiler gives them (kineto traces;
 * PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp). Left out: CPU operators and launch
 * calls, so analyses of the launch queue find nothing. Arrows join calls of ranks in the same file
 * only. Source of the format: Trace Event Format (Google, 2016). */
#include "traces/traces_priv.h"

#include "sim/io/json_write.h"

#include <string.h>

#define TID_PASS 100    /* a track above the streams that shows the passes of the pipeline */
#define PG_RANKS_MAX 64 /* members listed of a process group; a list of thousands helps nobody */

typedef struct {
    uint64_t correlation;
    bool stream_named[ORR_N_STREAMS];
    OrrTracePass pass;
    OrrTraceBins bins;
} Rank;

typedef struct {
    const OrrTraceContext *context;
    const OrrTraceView *view;
    OrrJsonWriter w;
    Rank *ranks;
    GHashTable *calls; /* "communicator of a rank" -> number of calls so far; looked up only */
} Chrome;

static void event_begin(Chrome *c, const char *phase, const char *category, const char *name,
                        uint32_t pid, uint32_t tid) {
    orr_json_begin_object_inline(&c->w, NULL);
    orr_json_put_string(&c->w, "ph", phase);
    if (category)
        orr_json_put_string(&c->w, "cat", category);
    orr_json_put_string(&c->w, "name", name);
    orr_json_put_int(&c->w, "pid", pid);
    orr_json_put_int(&c->w, "tid", tid);
}

static void metadata(Chrome *c, const char *name, uint32_t pid, uint32_t tid, const char *key,
                     const char *text, int64_t number) {
    event_begin(c, "M", NULL, name, pid, tid);
    orr_json_put_us(&c->w, "ts", 0);
    orr_json_begin_object(&c->w, "args");
    if (text)
        orr_json_put_string(&c->w, key, text);
    else
        orr_json_put_int(&c->w, key, number);
    orr_json_end_object(&c->w);
    orr_json_end_object(&c->w);
}

static void name_process(Chrome *c, uint32_t rank) {
    g_autofree char *what = c->context->rank_name(c->context->data, rank);
    g_autofree char *name = g_strdup_printf("rank %u: %s", rank, what);
    metadata(c, "process_name", rank, 0, "name", name, 0);
    metadata(c, "process_labels", rank, 0, "labels", c->context->gpu, 0);
    metadata(c, "process_sort_index", rank, 0, "sort_index", NULL, rank);
    metadata(c, "thread_name", rank, TID_PASS, "name", "passes", 0);
    metadata(c, "thread_sort_index", rank, TID_PASS, "sort_index", NULL, -1);
}

static void head(Chrome *c) {
    orr_json_begin_object(&c->w, NULL);
    orr_json_put_int(&c->w, "schemaVersion", 1);
    orr_json_begin_object_inline(&c->w, "distributedInfo");
    orr_json_put_string(&c->w, "backend", "nccl");
    orr_json_put_int(&c->w, "rank", c->view->ranks[0]);
    orr_json_put_int(&c->w, "world_size", c->context->world_size);
    orr_json_end_object(&c->w);
    orr_json_put_string(&c->w, "displayTimeUnit", "ms");
    orr_json_begin_array(&c->w, "traceEvents");
}

static void *chrome_begin(const OrrTraceContext *context, const OrrTraceView *view, OrrOut *out) {
    Chrome *c = g_new0(Chrome, 1);
    c->context = context, c->view = view;
    c->w = (OrrJsonWriter){.out = out, .is_pretty = true};
    c->ranks = g_new0(Rank, view->n_ranks);
    c->calls = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    head(c);
    for (uint32_t i = 0; i < view->n_ranks; i++) {
        orr_trace__bins_init(&c->ranks[i].bins);
        name_process(c, view->ranks[i]);
    }
    return c;
}

static void name_stream(Chrome *c, uint32_t rank, Rank *r, uint32_t stream) {
    if (r->stream_named[stream])
        return;
    r->stream_named[stream] = true;
    g_autofree char *name =
        g_strdup_printf("stream %u: %s", stream, orr_stream_name((OrrStream)stream));
    metadata(c, "thread_name", rank, stream, "name", name, 0);
    metadata(c, "thread_sort_index", rank, stream, "sort_index", NULL, stream);
}

/* How often this rank has called this communicator so far, counting from 0. */
static guint count_call(Chrome *c, const char *communicator) {
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(c->calls, communicator));
    g_hash_table_replace(c->calls, g_strdup(communicator), GUINT_TO_POINTER(n + 1));
    return n;
}

/* One end of an arrow, at @ts of the span. */
static void flow(Chrome *c, const OrrSpan *s, bool is_start, int64_t ts, const char *id) {
    event_begin(c, is_start ? "s" : "f", "communication", "communication", s->rank, s->stream);
    orr_json_put_us(&c->w, "ts", CLAMP(ts, s->start_ns, MAX(s->start_ns, s->end_ns - 1)));
    orr_json_put_string(&c->w, "id", id);
    if (!is_start)
        orr_json_put_string(&c->w, "bp", "e");
    orr_json_end_object(&c->w);
}

static bool flows_of(const Chrome *c, const OrrSpan *s) {
    return s->arrived_ns >= c->view->from_ns && s->arrived_ns < c->view->to_ns &&
           c->view->n_ranks > 1;
}

/* Arrows from the first member in this file to each other one, at the begin of the transfer, which
 * is the same on all of them. */
static void coll_flows(Chrome *c, const OrrSpan *s) {
    const OrrColl *coll = &c->context->program->colls[s->what];
    g_autofree char *comm =
        g_strdup_printf("c%u.%u.%u.%u", coll->group, s->group, coll->comm, s->rank);
    guint k = count_call(c, comm);
    if (!flows_of(c, s))
        return;
    const uint32_t *members;
    uint32_t n = c->context->group(c->context->data, (OrrGroup)coll->group, s->group, &members);
    uint32_t first = ORR_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (orr_trace__place(c->view, members[i]) == ORR_NONE)
            continue;
        if (first == ORR_NONE) {
            first = members[i];
            if (first != s->rank)
                break;
            continue;
        }
        g_autofree char *id =
            g_strdup_printf("%u.%u.%u.%u>%u", coll->group, s->group, coll->comm, k, members[i]);
        flow(c, s, true, s->arrived_ns, id);
    }
    if (first == s->rank || first == ORR_NONE)
        return;
    g_autofree char *id =
        g_strdup_printf("%u.%u.%u.%u>%u", coll->group, s->group, coll->comm, k, s->rank);
    flow(c, s, false, s->arrived_ns, id);
}

/* From the launch of the send to the end of the receive: a batch begins when all its parts can,
 * which may be later on the sender's side. */
static void p2p_flows(Chrome *c, const OrrSpan *s) {
    const OrrP2p *p2p = &c->context->program->p2ps[s->what];
    for (uint32_t i = 0; i < p2p->n_parts; i++) {
        const OrrP2pPart *part = &c->context->program->parts[p2p->first_part + i];
        uint32_t peer =
            c->context->peer(c->context->data, s->rank, (OrrGroup)part->group, part->peer);
        uint32_t source = part->is_send ? s->rank : peer, target = part->is_send ? peer : s->rank;
        g_autofree char *pair = g_strdup_printf("p%u.%u.%u>%u%s", part->group, part->comm, source,
                                                target, part->is_send ? "s" : "r");
        guint k = count_call(c, pair);
        if (!flows_of(c, s) || orr_trace__place(c->view, peer) == ORR_NONE)
            continue;
        g_autofree char *id =
            g_strdup_printf("p%u.%u.%u>%u.%u", part->group, part->comm, source, target, k);
        flow(c, s, part->is_send, part->is_send ? s->start_ns : s->end_ns, id);
    }
}

static void group_arguments(Chrome *c, OrrGroup kind, uint32_t group) {
    const uint32_t *members;
    uint32_t n = c->context->group(c->context->data, kind, group, &members);
    g_autofree char *name = g_strdup_printf("%s_%u", orr_group_name(kind), group);
    g_autoptr(GString) list = g_string_new("[");
    for (uint32_t i = 0; i < n && i < PG_RANKS_MAX; i++)
        g_string_append_printf(list, "%s%u", i ? ", " : "", members[i]);
    g_string_append(list, n > PG_RANKS_MAX ? ", ...]" : "]");
    orr_json_put_int(&c->w, "Group size", n);
    orr_json_put_string(&c->w, "Process Group Name", name);
    orr_json_put_string(&c->w, "Process Group Description", orr_group_name(kind));
    orr_json_put_string(&c->w, "Process Group Ranks", list->str);
}

static void coll_arguments(Chrome *c, const OrrSpan *s, OrrAlgo algo, OrrProto proto) {
    const OrrColl *coll = &c->context->program->colls[s->what];
    const uint32_t *members;
    uint32_t n = c->context->group(c->context->data, (OrrGroup)coll->group, s->group, &members);
    int64_t whole = (int64_t)((double)coll->bytes / orr_dtype_bytes((OrrDtype)coll->dtype));
    int64_t part = n > 0 ? whole / n : whole;
    orr_json_put_string(&c->w, "Collective name",
                        orr_trace__collective_name((OrrCollective)coll->kind));
    orr_json_put_int(&c->w, "In msg nelems", coll->kind == ORR_ALL_GATHER ? part : whole);
    orr_json_put_int(&c->w, "Out msg nelems", coll->kind == ORR_REDUCE_SCATTER ? part : whole);
    orr_json_put_string(&c->w, "dtype", orr_trace__dtype_name((OrrDtype)coll->dtype));
    group_arguments(c, (OrrGroup)coll->group, s->group);
    orr_json_put_string(&c->w, "purpose", orr_comm_kind_name((OrrCommKind)coll->purpose));
    orr_json_put_int(&c->w, "bytes", coll->bytes);
    if (algo < ORR_N_ALGOS)
        orr_json_put_string(&c->w, "algorithm", orr_algo_name(algo));
    if (proto < ORR_N_PROTOS)
        orr_json_put_string(&c->w, "protocol", orr_proto_name(proto));
    orr_json_put_us(&c->w, "wait us", s->arrived_ns - s->start_ns);
}

static void p2p_arguments(Chrome *c, const OrrSpan *s) {
    const OrrP2p *p2p = &c->context->program->p2ps[s->what];
    int64_t in = 0, out = 0;
    for (uint32_t i = 0; i < p2p->n_parts; i++) {
        const OrrP2pPart *part = &c->context->program->parts[p2p->first_part + i];
        *(part->is_send ? &in : &out) += part->bytes;
    }
    const OrrP2pPart *first = &c->context->program->parts[p2p->first_part];
    uint32_t peer =
        c->context->peer(c->context->data, s->rank, (OrrGroup)first->group, first->peer);
    g_autofree char *list = g_strdup_printf("[%u, %u]", MIN(s->rank, peer), MAX(s->rank, peer));
    orr_json_put_string(&c->w, "Collective name",
                        out == 0  ? "send"
                        : in == 0 ? "recv"
                                  : "coalesced");
    /* bytes: what is sent has a dtype in the framework, but a message has none here */
    orr_json_put_int(&c->w, "In msg nelems", in);
    orr_json_put_int(&c->w, "Out msg nelems", out);
    orr_json_put_string(&c->w, "dtype", "Byte");
    orr_json_put_int(&c->w, "Group size", 2);
    orr_json_put_string(&c->w, "Process Group Name", orr_group_name((OrrGroup)first->group));
    orr_json_put_string(&c->w, "Process Group Ranks", list);
    orr_json_put_us(&c->w, "wait us", s->arrived_ns - s->start_ns);
}

static void kernel_arguments(Chrome *c, const OrrSpan *s) {
    const OrrKernel *k = &c->context->program->kernels[s->what];
    orr_json_put_string(&c->w, "dtype", orr_dtype_name((OrrDtype)k->dtype));
    if (k->m > 0) {
        g_autofree char *shape =
            g_strdup_printf("m %" G_GINT64_FORMAT ", n %" G_GINT64_FORMAT ", k %" G_GINT64_FORMAT
                            ", batch %" G_GINT64_FORMAT,
                            k->m, k->n, k->k, k->batch);
        orr_json_put_string(&c->w, "shape", shape);
    }
    orr_json_put_double(&c->w, "flops", k->flops);
    orr_json_put_double(&c->w, "bytes", k->bytes_read + k->bytes_written);
    if (k->flops > 0 && s->end_ns > s->start_ns)
        orr_json_put_double(&c->w, "TFLOP/s", k->flops / (double)(s->end_ns - s->start_ns) * 1e-3);
}

static void arguments(Chrome *c, const OrrSpan *s, Rank *r, OrrAlgo algo, OrrProto proto) {
    orr_json_begin_object(&c->w, "args");
    orr_json_put_string(&c->w, "pass", orr_trace__pass_name(s));
    orr_json_put_int(&c->w, "chunk", s->chunk);
    orr_json_put_int(&c->w, "micro_batch", s->micro_batch);
    if (s->op_kind != ORR_OP_HOST) {
        orr_json_put_int(&c->w, "External id", (int64_t)++r->correlation);
        orr_json_put_int(&c->w, "device", s->rank % MAX(c->context->gpus_per_node, 1));
        orr_json_put_int(&c->w, "context", 1);
        orr_json_put_int(&c->w, "stream", s->stream);
        orr_json_put_int(&c->w, "correlation", (int64_t)r->correlation);
    }
    if (s->op_kind == ORR_OP_KERNEL)
        kernel_arguments(c, s);
    else if (s->op_kind == ORR_OP_COLL)
        coll_arguments(c, s, algo, proto);
    else if (s->op_kind == ORR_OP_P2P)
        p2p_arguments(c, s);
    orr_json_end_object(&c->w);
}

static void put_pass(Chrome *c, const OrrTracePass *p) {
    const OrrSpan *s = &p->first;
    g_autofree char *name =
        s->pass < ORR_N_PASSES
            ? g_strdup_printf("%s%u c%u", orr_pass_name((OrrPass)s->pass), s->micro_batch, s->chunk)
            : g_strdup("step begin/end");
    event_begin(c, "X", "user_annotation", name, s->rank, TID_PASS);
    orr_json_put_us(&c->w, "ts", s->start_ns);
    orr_json_put_us(&c->w, "dur", p->end_ns - s->start_ns);
    orr_json_end_object(&c->w);
}

static void chrome_span(void *state, const OrrSpan *s, bool is_inside) {
    Chrome *c = state;
    Rank *r = &c->ranks[orr_trace__place(c->view, s->rank)];
    if (s->op_kind == ORR_OP_COLL)
        coll_flows(c, s);
    else if (s->op_kind == ORR_OP_P2P)
        p2p_flows(c, s);
    if (!is_inside)
        return;
    OrrTracePass done;
    if (orr_trace__pass_add(&r->pass, s, &done))
        put_pass(c, &done);
    orr_trace__bins_add(
        &r->bins, s, s->op_kind == ORR_OP_KERNEL ? c->context->program->kernels[s->what].flops : 0);
    name_stream(c, s->rank, r, s->stream);
    OrrAlgo algo = ORR_N_ALGOS;
    OrrProto proto = ORR_N_PROTOS;
    if (s->op_kind == ORR_OP_COLL)
        c->context->plan(c->context->data, s, &algo, &proto);
    char name[ORR_TRACE_NAME_MAX];
    orr_trace__name(c->context, s, algo, name);
    event_begin(c, "X", s->op_kind == ORR_OP_HOST ? "cpu_op" : "kernel", name, s->rank, s->stream);
    orr_json_put_us(&c->w, "ts", s->start_ns);
    orr_json_put_us(&c->w, "dur", s->end_ns - s->start_ns);
    arguments(c, s, r, algo, proto);
    orr_json_end_object(&c->w);
}

static void counter(Chrome *c, uint32_t rank, int64_t ts, const char *name, const char *key,
                    double value) {
    event_begin(c, "C", NULL, name, rank, 0);
    orr_json_put_us(&c->w, "ts", ts);
    orr_json_begin_object(&c->w, "args");
    orr_json_put_double(&c->w, key, value);
    orr_json_end_object(&c->w);
    orr_json_end_object(&c->w);
}

/* A counter holds from its time to the next one, so each bin is written at its begin. */
static void counters(Chrome *c, uint32_t rank, const OrrTraceBins *b) {
    double width = (double)b->width_ns;
    uint32_t first = (uint32_t)MIN(c->view->from_ns / b->width_ns, ORR_TRACE_BINS);
    for (uint32_t i = first; i <= b->n; i++) {
        int64_t ts = i * b->width_ns;
        bool is_last = i == b->n;
        counter(c, rank, ts, "busy share: compute", "frac", is_last ? 0 : b->compute_ns[i] / width);
        counter(c, rank, ts, "busy share: communication", "frac",
                is_last ? 0 : MIN(b->comm_ns[i] / width, 1));
        if (c->context->peak_flops_per_s > 0)
            counter(c, rank, ts, "FLOP/s over peak", "frac",
                    is_last ? 0 : b->flops[i] / (width * 1e-9) / c->context->peak_flops_per_s);
    }
}

static void chrome_end(void *state, const OrrTraceCounts *counts) {
    Chrome *c = state;
    for (uint32_t i = 0; i < c->view->n_ranks; i++) {
        if (c->ranks[i].pass.is_open)
            put_pass(c, &c->ranks[i].pass);
        counters(c, c->view->ranks[i], &c->ranks[i].bins);
    }
    orr_json_end_array(&c->w);
    orr_json_put_string(&c->w, "traceName", c->context->job);
    orr_json_begin_object_inline(&c->w, "leftOut");
    orr_json_put_int(&c->w, "spans_outside_window", (int64_t)counts->n_outside);
    orr_json_put_int(&c->w, "ranks", counts->n_other_ranks);
    orr_json_end_object(&c->w);
    orr_json_end_object(&c->w);
    orr_out_puts(c->w.out, "\n");
    g_hash_table_unref(c->calls);
    g_free(c->ranks);
    g_free(c);
}

const OrrExporter orr_trace__chrome = {
    .name = "chrome",
    .summary = "Chrome JSON for Perfetto, chrome://tracing, TensorBoard, HolisticTraceAnalysis",
    .source = "Trace Event Format (Google, 2016); kineto traces of PyTorch",
    .suffix = ".json",
    .begin = chrome_begin,
    .span = chrome_span,
    .end = chrome_end,
};
