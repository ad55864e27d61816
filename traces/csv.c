/* Spans as CSV: all of them, or the passes of the pipeline (a row a pass, for the timeline plot).
 */
#include "traces/traces_priv.h"

#include "sim/io/csv.h"

typedef struct {
    const OrrTraceContext *context;
    const OrrTraceView *view;
    OrrCsvWriter w;
    OrrTracePass *passes; /* a rank of the view each */
} Csv;

static void *begin(const OrrTraceContext *context, const OrrTraceView *view, OrrOut *out,
                   const char *const *header) {
    Csv *c = g_new0(Csv, 1);
    c->context = context, c->view = view, c->w.out = out;
    c->passes = g_new0(OrrTracePass, view->n_ranks);
    orr_csv_put_row(&c->w, header);
    return c;
}

static void finish(void *state, const OrrTraceCounts *counts) {
    (void)counts;
    Csv *c = state;
    g_free(c->passes);
    g_free(c);
}

static void *spans_begin(const OrrTraceContext *context, const OrrTraceView *view, OrrOut *out) {
    static const char *const header[] = {
        "rank",        "step",       "stream", "kind",     "name",       "pass",   "chunk",
        "micro_batch", "group_size", "bytes",  "start_ns", "arrived_ns", "end_ns", NULL};
    return begin(context, view, out, header);
}

/* Kind, group size and bytes of a span: "" and 0 where there are none. */
static const char *describe(const Csv *c, const OrrSpan *s, uint32_t *group_size, int64_t *bytes) {
    const OrrProgram *p = c->context->program;
    *group_size = 0, *bytes = 0;
    if (s->op_kind == ORR_OP_KERNEL)
        return orr_kernel_kind_name((OrrKernelKind)p->kernels[s->what].kind);
    if (s->op_kind == ORR_OP_COLL) {
        const OrrColl *coll = &p->colls[s->what];
        const uint32_t *members;
        *group_size =
            c->context->group(c->context->data, (OrrGroup)coll->group, s->group, &members);
        *bytes = coll->bytes;
        return orr_comm_kind_name((OrrCommKind)coll->purpose);
    }
    if (s->op_kind == ORR_OP_P2P) {
        const OrrP2p *p2p = &p->p2ps[s->what];
        for (uint32_t i = 0; i < p2p->n_parts; i++)
            *bytes += p->parts[p2p->first_part + i].bytes;
        *group_size = 2;
        return orr_comm_kind_name((OrrCommKind)p->parts[p2p->first_part].purpose);
    }
    return "host";
}

static void spans_span(void *state, const OrrSpan *s, bool is_inside) {
    Csv *c = state;
    if (!is_inside)
        return;
    char name[ORR_TRACE_NAME_MAX];
    OrrAlgo algo = ORR_N_ALGOS;
    OrrProto proto = ORR_N_PROTOS;
    if (s->op_kind == ORR_OP_COLL)
        c->context->plan(c->context->data, s, &algo, &proto);
    orr_trace__name(c->context, s, algo, name);
    uint32_t group_size;
    int64_t bytes;
    const char *kind = describe(c, s, &group_size, &bytes);
    orr_csv_put_int(&c->w, s->rank);
    orr_csv_put_int(&c->w, s->step);
    orr_csv_put(&c->w, orr_stream_name((OrrStream)s->stream));
    orr_csv_put(&c->w, kind);
    orr_csv_put(&c->w, name);
    orr_csv_put(&c->w, orr_trace__pass_name(s));
    orr_csv_put_int(&c->w, s->chunk);
    orr_csv_put_int(&c->w, s->micro_batch);
    orr_csv_put_int(&c->w, group_size);
    orr_csv_put_int(&c->w, bytes);
    orr_csv_put_int(&c->w, s->start_ns);
    orr_csv_put_int(&c->w, s->arrived_ns);
    orr_csv_put_int(&c->w, s->end_ns);
    orr_csv_end_row(&c->w);
}

static void *passes_begin(const OrrTraceContext *context, const OrrTraceView *view, OrrOut *out) {
    static const char *const header[] = {"row",         "rank",     "step",   "pass", "chunk",
                                         "micro_batch", "start_ns", "end_ns", NULL};
    return begin(context, view, out, header);
}

static void put_pass(Csv *c, const OrrTracePass *p) {
    orr_csv_put_int(&c->w, orr_trace__place(c->view, p->first.rank));
    orr_csv_put_int(&c->w, p->first.rank);
    orr_csv_put_int(&c->w, p->first.step);
    orr_csv_put(&c->w, orr_trace__pass_name(&p->first));
    orr_csv_put_int(&c->w, p->first.chunk);
    orr_csv_put_int(&c->w, p->first.micro_batch);
    orr_csv_put_int(&c->w, p->first.start_ns);
    orr_csv_put_int(&c->w, p->end_ns);
    orr_csv_end_row(&c->w);
}

static void passes_span(void *state, const OrrSpan *s, bool is_inside) {
    Csv *c = state;
    OrrTracePass done;
    if (is_inside && orr_trace__pass_add(&c->passes[orr_trace__place(c->view, s->rank)], s, &done))
        put_pass(c, &done);
}

static void passes_end(void *state, const OrrTraceCounts *counts) {
    Csv *c = state;
    for (uint32_t i = 0; i < c->view->n_ranks; i++)
        if (c->passes[i].is_open)
            put_pass(c, &c->passes[i]);
    finish(state, counts);
}

const OrrExporter orr_trace__csv = {
    .name = "csv",
    .summary = "A span a row",
    .source = "RFC 4180; doc/formats.md",
    .suffix = ".csv",
    .begin = spans_begin,
    .span = spans_span,
    .end = finish,
};

const OrrExporter orr_trace__passes = {
    .name = "passes",
    .summary = "A row for each forward or backward of a micro-batch, as the timeline plot draws it",
    .source = "RFC 4180; doc/formats.md",
    .suffix = ".csv",
    .begin = passes_begin,
    .span = passes_span,
    .end = passes_end,
};
