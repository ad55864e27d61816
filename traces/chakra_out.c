/* Chakra execution traces out: one rank a file, a node a span, linked so that a replay of the
 * recorded durations gives the recorded times to the nanosecond.
 *
 * Each node waits for the one before on its stream (consumers would start collectives too early
 * otherwise: mlcommons/chakra#215) and for an operation of another stream that ends just when it
 * begins. Where neither explains its begin (the host was late, a peer not there yet), a node "wait"
 * of the missing length stands before it. A last one fills up to the end of the step, which other
 * ranks may decide. Left out: tensors, memory.
 *
 * Source: mlcommons/chakra schema/protobuf/et_def.proto (0.0.4). */
#include "traces/traces_priv.h"

#include <string.h>

#include "traces/chakra.h"
#include "traces/protobuf.h"

typedef struct {
    const OrrTraceContext *context;
    const OrrTraceView *view;
    OrrOut *out;
    GArray *spans;       /* OrrSpan */
    GByteArray *message; /* in hand */
    uint64_t n_nodes;    /* written; ids count from 1 */
} Writer;

/* The last node of each stream, and when it ends. */
typedef struct {
    uint64_t id[ORR_N_STREAMS];
    int64_t end_ns[ORR_N_STREAMS];
} Ends;

static void *begin(const OrrTraceContext *context, const OrrTraceView *view, OrrOut *out) {
    Writer *w = g_new0(Writer, 1);
    w->context = context, w->view = view, w->out = out;
    w->spans = g_array_new(FALSE, FALSE, sizeof(OrrSpan));
    w->message = g_byte_array_new();
    return w;
}

static void span(void *state, const OrrSpan *s, bool is_inside) {
    Writer *w = state;
    if (is_inside && s->end_ns > s->start_ns)
        g_array_append_val(w->spans, *s);
}

static void flush(Writer *w) {
    GByteArray *length = g_byte_array_new();
    orr_wire_put_varint(length, w->message->len);
    orr_out_write(w->out, (const char *)length->data, length->len);
    orr_out_write(w->out, (const char *)w->message->data, w->message->len);
    g_byte_array_unref(length);
    g_byte_array_set_size(w->message, 0);
}

#define INT64_VAL 9   /* AttributeProto.int64_val */
#define BOOL_VAL 27   /* bool_val */
#define STRING_VAL 29 /* string_val */

/* An attribute into field @field of the message in hand; @text NULL: a number. */
static void put_attribute(Writer *w, uint32_t field, const char *name, uint32_t member,
                          int64_t number, const char *text) {
    GByteArray *a = g_byte_array_new();
    orr_wire_put_text(a, 1, name);
    if (text)
        orr_wire_put_text(a, STRING_VAL, text);
    else
        orr_wire_put_number(a, member, (uint64_t)number);
    orr_wire_put_bytes(w->message, field, a->data, a->len);
    g_byte_array_unref(a);
}

static void put_number(Writer *w, const char *name, int64_t number) {
    put_attribute(w, 10, name, INT64_VAL, number, NULL);
}

typedef struct {
    const char *name;
    OrrChakraType type;
    uint8_t stream;
    int64_t start_ns, duration_ns;
    uint64_t deps[2];
} Node;

/* All of a node but what is special to communication; returns its id. Flushed by the caller. */
static uint64_t put_node(Writer *w, const Node *n) {
    uint64_t id = ++w->n_nodes;
    orr_wire_put_number(w->message, 1, id);
    orr_wire_put_text(w->message, 2, n->name);
    orr_wire_put_number(w->message, 3, n->type);
    for (int k = 0; k < 2; k++)
        if (n->deps[k] > 0)
            orr_wire_put_number(w->message, 5, n->deps[k]);
    orr_wire_put_number(w->message, 6, (uint64_t)(n->start_ns / 1000));
    orr_wire_put_number(w->message, 7, (uint64_t)((n->duration_ns + 500) / 1000));
    put_attribute(w, 10, "is_cpu_op", BOOL_VAL, n->stream == ORR_STREAM_HOST, NULL);
    put_number(w, "tid", n->stream);
    put_attribute(w, 10, "stream_name", 0, 0, orr_stream_name((OrrStream)n->stream));
    put_number(w, "duration_ns", n->duration_ns);
    return id;
}

static void put_collective(Writer *w, const OrrSpan *s) {
    const OrrColl *coll = &w->context->program->colls[s->what];
    const uint32_t *members;
    uint32_t size = w->context->group(w->context->data, (OrrGroup)coll->group, s->group, &members);
    g_autofree char *group =
        g_strdup_printf("%s %u", orr_group_name((OrrGroup)coll->group), s->group);
    put_number(w, "comm_type", orr_chakra_comm_type((OrrCollective)coll->kind));
    put_number(w, "comm_size", coll->bytes);
    put_number(w, "group_size", size);
    put_attribute(w, 10, "pg_name", 0, 0, group);
}

static void put_p2p(Writer *w, const OrrSpan *s) {
    const OrrP2p *p2p = &w->context->program->p2ps[s->what];
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p2p->n_parts; i++) {
        const OrrP2pPart *part = &w->context->program->parts[p2p->first_part + i];
        uint32_t peer =
            w->context->peer(w->context->data, s->rank, (OrrGroup)part->group, part->peer);
        bytes += part->bytes;
        put_number(w, part->is_send ? "comm_dst" : "comm_src", peer);
    }
    put_number(w, "comm_size", bytes);
}

static OrrChakraType type_of(const Writer *w, const OrrSpan *s) {
    const OrrProgram *p = w->context->program;
    if (s->op_kind == ORR_OP_COLL)
        return ORR_CHAKRA_COLL;
    if (s->op_kind == ORR_OP_P2P)
        return p->parts[p->p2ps[s->what].first_part].is_send ? ORR_CHAKRA_SEND : ORR_CHAKRA_RECV;
    return ORR_CHAKRA_COMP;
}

static void put_span(Writer *w, const OrrSpan *s, Ends *ends) {
    char name[ORR_TRACE_NAME_MAX];
    OrrAlgo algo = ORR_N_ALGOS;
    OrrProto proto = ORR_N_PROTOS;
    if (s->op_kind == ORR_OP_COLL)
        w->context->plan(w->context->data, s, &algo, &proto);
    orr_trace__name(w->context, s, algo, name);
    Node n = {.name = name,
              .type = type_of(w, s),
              .stream = s->stream,
              .start_ns = s->start_ns,
              .duration_ns = s->end_ns - s->start_ns};
    n.deps[0] = ends->id[s->stream];
    int64_t known = ends->end_ns[s->stream];
    for (int k = 0; k < ORR_N_STREAMS; k++)
        if (k != s->stream && ends->id[k] && ends->end_ns[k] == s->start_ns &&
            known < s->start_ns) {
            n.deps[1] = ends->id[k];
            known = s->start_ns;
        }
    if (known < s->start_ns) {
        Node wait = {"wait", ORR_CHAKRA_COMP, s->stream, known, s->start_ns - known, {n.deps[0]}};
        n.deps[0] = put_node(w, &wait);
        flush(w);
    }
    ends->id[s->stream] = put_node(w, &n);
    ends->end_ns[s->stream] = s->end_ns;
    if (s->op_kind == ORR_OP_COLL)
        put_collective(w, s);
    else if (s->op_kind == ORR_OP_P2P)
        put_p2p(w, s);
    flush(w);
}

static gint by_start(gconstpointer a, gconstpointer b) {
    const OrrSpan *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (int)x->stream - (int)y->stream;
}

static void put_metadata(Writer *w) {
    orr_wire_put_text(w->message, 1, "0.0.4");
    put_attribute(w, 2, "schema", 0, 0, "1.0.2-chakra.0.0.4");
    put_attribute(w, 2, "job", 0, 0, w->context->job);
    put_attribute(w, 2, "rank", INT64_VAL, w->view->ranks[0], NULL);
    put_attribute(w, 2, "world_size", INT64_VAL, w->context->world_size, NULL);
    put_attribute(w, 2, "step_time_ns", INT64_VAL, w->context->step_time_ns, NULL);
    flush(w);
}

/* From the rank's own last end to that of the step. */
static void put_end(Writer *w, const Ends *ends) {
    int last = 0;
    for (int k = 1; k < ORR_N_STREAMS; k++)
        if (ends->end_ns[k] > ends->end_ns[last])
            last = k;
    int64_t missing = w->context->step_time_ns - ends->end_ns[last];
    bool is_whole = w->view->from_ns <= 0 && w->view->to_ns >= w->context->step_time_ns;
    if (!is_whole || missing <= 0)
        return;
    Node n = {"wait for the step's end", ORR_CHAKRA_COMP, (uint8_t)last,
              ends->end_ns[last],        missing,         {ends->id[last]}};
    put_node(w, &n);
    flush(w);
}

static void finish(void *state, const OrrTraceCounts *counts) {
    (void)counts;
    Writer *w = state;
    Ends ends = {0};
    put_metadata(w);
    g_array_sort(w->spans, by_start);
    for (guint i = 0; i < w->spans->len; i++)
        put_span(w, &g_array_index(w->spans, OrrSpan, i), &ends);
    put_end(w, &ends);
    g_array_unref(w->spans);
    g_byte_array_unref(w->message);
    g_free(w);
}

const OrrExporter orr_trace__chakra = {
    .name = "chakra",
    .summary = "Chakra execution trace (protobuf), one rank a file; orrery step runs it again",
    .source = "mlcommons/chakra schema/protobuf/et_def.proto 0.0.4",
    .suffix = ".et",
    .is_per_rank = true,
    .begin = begin,
    .span = span,
    .end = finish,
};
