/* Events of a shared cluster: as CSV, a row an event; as a Chrome trace, a process a rack and a
 * track a node (a track a rack where there are more nodes than anybody could look at), with what
 * each job on it does; and as tables of plots. */
#include "sim/report/share_report.h"

#include "sim/io/csv.h"
#include "sim/io/json_write.h"

#include <stdlib.h>

#define MOST_ROWS 1024u /* ours: trace viewers scroll that far */
#define MOST_LANES 1024u
#define OUT_LANE (MOST_LANES - 1) /* of the time that a node is out */

typedef enum { FORM_CSV, FORM_TRACE, FORM_LEVELS, FORM_SPANS } Form;

struct OrrShareWriter {
    const OrrShareSpec *spec;
    Form form;
    OrrCsvWriter csv;
    OrrJsonWriter json;
    bool by_rack;
    GArray **lanes;     /* of each row: uint32_t job in each lane, ORR_SHARE_NONE: free */
    int64_t *out_ns;    /* of each node: since when it is out; -1 */
    int64_t *queued_ns; /* of each job: since when it waits; -1 */
};

static OrrShareWriter *writer_new(const OrrShareSpec *spec, Form form, OrrOut *out,
                                  const char *const *header) {
    OrrShareWriter *w = g_new0(OrrShareWriter, 1);
    w->spec = spec;
    w->form = form;
    w->csv.out = out;
    w->queued_ns = g_new(int64_t, spec->n_jobs + 1);
    for (uint32_t i = 0; i < spec->n_jobs; i++)
        w->queued_ns[i] = -1;
    if (header)
        orr_csv_put_row(&w->csv, header);
    return w;
}

OrrShareWriter *orr_share_events_csv(const OrrShareSpec *spec, OrrOut *out) {
    static const char *const header[] = {"event", "begin_ns", "end_ns", "job", "does",
                                         "units", "node",     "nodes",  NULL};
    return writer_new(spec, FORM_CSV, out, header);
}

/* Sorted or not, runs of numbers: "0-3 7". */
static char *nodes_text(const OrrShareEvent *e) {
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < e->n_nodes;) {
        uint32_t k = i;
        while (k + 1 < e->n_nodes && e->nodes[k + 1] == e->nodes[k] + 1)
            k++;
        g_string_append_printf(text, "%s%u", i > 0 ? " " : "", e->nodes[i]);
        if (k > i)
            g_string_append_printf(text, "-%u", e->nodes[k]);
        i = k + 1;
    }
    return g_string_free(text, FALSE);
}

static int64_t units_of(const OrrShareEvent *e) {
    int64_t units = 0;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        units += e->units[i];
    return units;
}

static const char *job_name(const OrrShareWriter *w, const OrrShareEvent *e) {
    return e->job == ORR_SHARE_NONE ? "" : w->spec->jobs[e->job].name;
}

static void write_row(OrrShareWriter *w, const OrrShareEvent *e) {
    if (e->kind == ORR_SHARE_LEVELS)
        return;
    g_autofree char *nodes = nodes_text(e);
    orr_csv_put(&w->csv, orr_share_event_names[e->kind]);
    orr_csv_put_int(&w->csv, e->begin_ns);
    orr_csv_put_int(&w->csv, e->now_ns);
    orr_csv_put(&w->csv, job_name(w, e));
    orr_csv_put(&w->csv, e->kind == ORR_SHARE_SPAN ? orr_share_owner_names[e->owner] : "");
    orr_csv_put_int(&w->csv, units_of(e));
    if (e->node == ORR_SHARE_NONE)
        orr_csv_put(&w->csv, "");
    else
        orr_csv_put_int(&w->csv, e->node);
    orr_csv_put(&w->csv, nodes);
    orr_csv_end_row(&w->csv);
}

static uint32_t row_of(const OrrShareWriter *w, uint32_t node) {
    return w->by_rack ? node / w->spec->nodes_per_rack : node;
}

static void begin_event(OrrShareWriter *w, const char *phase, const char *name, uint32_t node,
                        uint32_t lane, int64_t ns) {
    OrrJsonWriter *j = &w->json;
    orr_json_begin_object_inline(j, NULL);
    orr_json_put_string(j, "ph", phase);
    orr_json_put_string(j, "name", name);
    orr_json_put_us(j, "ts", ns);
    orr_json_put_int(j, "pid", node / w->spec->nodes_per_rack);
    orr_json_put_int(j, "tid", (int64_t)row_of(w, node) * MOST_LANES + lane);
}

static void name_track(OrrShareWriter *w, const char *what, uint32_t node, uint32_t lane,
                       const char *name) {
    begin_event(w, "M", what, node, lane, 0);
    orr_json_begin_object(&w->json, "args");
    orr_json_put_string(&w->json, "name", name);
    orr_json_end_object(&w->json);
    orr_json_end_object(&w->json);
}

static void name_rows(OrrShareWriter *w) {
    const OrrShareSpec *s = w->spec;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint32_t rack = i / s->nodes_per_rack;
        if (i % s->nodes_per_rack == 0) {
            g_autofree char *name =
                g_strdup_printf("rack %u, block %u", rack, rack / s->racks_per_block);
            name_track(w, "process_name", i, 0, name);
        }
    }
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        g_autofree char *name = w->by_rack ? g_strdup_printf("rack %u", i / s->nodes_per_rack)
                                           : g_strdup_printf("node %u", i);
        if (!w->by_rack || i % s->nodes_per_rack == 0)
            name_track(w, "thread_name", i, 0, name);
    }
}

OrrShareWriter *orr_share_events_trace(const OrrShareSpec *spec, const char *name, OrrOut *out) {
    OrrShareWriter *w = writer_new(spec, FORM_TRACE, out, NULL);
    w->by_rack = spec->n_nodes > MOST_ROWS;
    w->lanes = g_new0(GArray *, spec->n_nodes + 1);
    w->out_ns = g_new(int64_t, spec->n_nodes + 1);
    for (uint32_t i = 0; i < spec->n_nodes; i++)
        w->out_ns[i] = -1;
    w->json = (OrrJsonWriter){.out = out, .is_pretty = true};
    orr_json_begin_object(&w->json, NULL);
    orr_json_put_string(&w->json, "share", name);
    orr_json_put_string(&w->json, "displayTimeUnit", "ms");
    orr_json_begin_array(&w->json, "traceEvents");
    name_rows(w);
    return w;
}

/* The lane of @job in the row; a free one if it has none. */
static uint32_t lane_of(OrrShareWriter *w, uint32_t row, uint32_t job) {
    if (!w->lanes[row])
        w->lanes[row] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GArray *lanes = w->lanes[row];
    uint32_t free_lane = ORR_SHARE_NONE;
    for (guint i = 0; i < lanes->len; i++) {
        uint32_t holder = g_array_index(lanes, uint32_t, i);
        if (holder == job)
            return i;
        if (holder == ORR_SHARE_NONE && free_lane == ORR_SHARE_NONE)
            free_lane = i;
    }
    if (free_lane == ORR_SHARE_NONE) {
        free_lane = lanes->len;
        g_array_append_val(lanes, job);
    }
    g_array_index(lanes, uint32_t, free_lane) = job;
    return MIN(free_lane, OUT_LANE - 1);
}

static void trace_levels(OrrShareWriter *w, const OrrShareEvent *e) {
    OrrJsonWriter *j = &w->json;
    begin_event(w, "C", "units", 0, 0, e->begin_ns);
    orr_json_begin_object(j, "args");
    for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
        orr_json_put_int(j, orr_share_owner_names[o], e->levels[o]);
    orr_json_end_object(j);
    orr_json_end_object(j);
}

static void trace_span(OrrShareWriter *w, const OrrShareEvent *e) {
    OrrJsonWriter *j = &w->json;
    uint32_t before = ORR_SHARE_NONE;
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        uint32_t row = row_of(w, e->nodes[i]);
        if (row == before)
            continue;
        before = row;
        g_autofree char *name =
            e->owner == ORR_SHARE_USEFUL
                ? g_strdup(job_name(w, e))
                : g_strdup_printf("%s: %s", job_name(w, e), orr_share_owner_names[e->owner]);
        begin_event(w, "X", name, e->nodes[i], lane_of(w, row, e->job), e->begin_ns);
        orr_json_put_us(j, "dur", e->now_ns - e->begin_ns);
        orr_json_begin_object(j, "args");
        orr_json_put_string(j, "job", job_name(w, e));
        orr_json_put_string(j, "does", orr_share_owner_names[e->owner]);
        orr_json_put_int(j, "units here", e->units[i]);
        orr_json_put_int(j, "units", units_of(e));
        orr_json_end_object(j);
        orr_json_end_object(j);
    }
}

static void free_lanes(OrrShareWriter *w, uint32_t job) {
    for (uint32_t row = 0; row < w->spec->n_nodes; row++)
        for (guint i = 0; w->lanes[row] && i < w->lanes[row]->len; i++)
            if (g_array_index(w->lanes[row], uint32_t, i) == job)
                g_array_index(w->lanes[row], uint32_t, i) = ORR_SHARE_NONE;
}

static void trace_instant(OrrShareWriter *w, const OrrShareEvent *e) {
    uint32_t node = e->node != ORR_SHARE_NONE ? e->node : e->n_nodes > 0 ? e->nodes[0] : 0;
    bool is_node = e->node != ORR_SHARE_NONE;
    g_autofree char *name = g_strdup_printf("%s%s%s", job_name(w, e), is_node ? "" : ": ",
                                            orr_share_event_names[e->kind]);
    uint32_t lane = is_node ? OUT_LANE : 0;
    begin_event(w, "i", name, node, lane, e->now_ns);
    orr_json_put_string(&w->json, "s", is_node ? "t" : "p");
    orr_json_end_object(&w->json);
    if (!is_node)
        return;
    if (e->kind == ORR_SHARE_NODE_BACK && w->out_ns[node] >= 0) {
        begin_event(w, "X", "out", node, lane, w->out_ns[node]);
        orr_json_put_us(&w->json, "dur", e->now_ns - w->out_ns[node]);
        orr_json_end_object(&w->json);
        w->out_ns[node] = -1;
    } else if (w->out_ns[node] < 0 && e->kind != ORR_SHARE_NODE_NOTICE) {
        w->out_ns[node] = e->now_ns;
    }
}

static void write_trace(OrrShareWriter *w, const OrrShareEvent *e) {
    if (e->kind == ORR_SHARE_LEVELS)
        trace_levels(w, e);
    else if (e->kind == ORR_SHARE_SPAN)
        trace_span(w, e);
    else
        trace_instant(w, e);
    if (e->kind == ORR_SHARE_REQUEUED || e->kind == ORR_SHARE_ENDED)
        free_lanes(w, e->job);
}

OrrShareWriter *orr_share_events_levels(const OrrShareSpec *spec, OrrOut *out) {
    OrrShareWriter *w = writer_new(spec, FORM_LEVELS, out, NULL);
    orr_csv_put(&w->csv, "time_h");
    for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
        orr_csv_put(&w->csv, orr_share_owner_names[o]);
    orr_csv_end_row(&w->csv);
    return w;
}

static void write_levels(OrrShareWriter *w, const OrrShareEvent *e) {
    const int64_t at[] = {e->begin_ns, e->now_ns};
    for (int i = 0; i < 2; i++) {
        orr_csv_put_double(&w->csv, (double)at[i] / 3600e9);
        for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
            orr_csv_put_double(&w->csv, (double)e->levels[o] / w->spec->slices_per_gpu);
        orr_csv_end_row(&w->csv);
    }
}

OrrShareWriter *orr_share_events_spans(const OrrShareSpec *spec, OrrOut *out) {
    static const char *const header[] = {"row", "job", "begin_h", "end_h", "does", "gpus", NULL};
    return writer_new(spec, FORM_SPANS, out, header);
}

static void put_span(OrrShareWriter *w, uint32_t job, int64_t begin_ns, int64_t end_ns,
                     const char *does, int64_t units) {
    orr_csv_put_int(&w->csv, job);
    orr_csv_put(&w->csv, w->spec->jobs[job].name);
    orr_csv_put_double(&w->csv, (double)begin_ns / 3600e9);
    orr_csv_put_double(&w->csv, (double)end_ns / 3600e9);
    orr_csv_put(&w->csv, does);
    orr_csv_put_double(&w->csv, (double)units / w->spec->slices_per_gpu);
    orr_csv_end_row(&w->csv);
}

static void write_span(OrrShareWriter *w, const OrrShareEvent *e) {
    if (e->kind == ORR_SHARE_SUBMITTED || e->kind == ORR_SHARE_REQUEUED)
        w->queued_ns[e->job] = e->now_ns;
    else if (e->kind == ORR_SHARE_STARTED && w->queued_ns[e->job] < e->now_ns)
        put_span(w, e->job, w->queued_ns[e->job], e->now_ns, "waiting", 0);
    else if (e->kind == ORR_SHARE_SPAN)
        put_span(w, e->job, e->begin_ns, e->now_ns, orr_share_owner_names[e->owner], units_of(e));
}

void orr_share_events_write(void *writer, const OrrShareEvent *event) {
    static void (*const forms[])(OrrShareWriter *, const OrrShareEvent *) = {
        [FORM_CSV] = write_row, [FORM_TRACE] = write_trace, [FORM_SPANS] = write_span};
    OrrShareWriter *w = writer;
    if (w->form != FORM_LEVELS)
        forms[w->form](w, event);
    else if (event->kind == ORR_SHARE_LEVELS)
        write_levels(w, event);
}

void orr_share_events_close(OrrShareWriter *w) {
    if (w->form == FORM_TRACE) {
        orr_json_end_array(&w->json);
        orr_json_end_object(&w->json);
        orr_out_puts(w->json.out, "\n");
    }
    for (uint32_t i = 0; w->lanes && i < w->spec->n_nodes; i++)
        if (w->lanes[i])
            g_array_unref(w->lanes[i]);
    g_free(w->lanes);
    g_free(w->out_ns);
    g_free(w->queued_ns);
    g_free(w);
}

typedef struct {
    int64_t waited_ns;
    uint32_t job;
} Wait;

static int by_wait(const void *a, const void *b) {
    const Wait *x = a, *y = b;
    if (x->waited_ns != y->waited_ns)
        return x->waited_ns > y->waited_ns ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

void orr_share_waits_table(const OrrShareReport *r, OrrOut *out) {
    static const char *const header[] = {"row", "job", "waited_h", "p50_h", "p95_h", "gpus", NULL};
    OrrCsvWriter w = {.out = out};
    uint32_t n = r->spec->n_jobs;
    g_autofree Wait *waits = g_new(Wait, n + 1);
    for (uint32_t i = 0; i < n; i++)
        waits[i] = (Wait){r->results[i].waited_ns, i};
    qsort(waits, n, sizeof *waits, by_wait);
    orr_csv_put_row(&w, header);
    for (uint32_t i = 0; i < n; i++) {
        const OrrShareJob *j = &r->spec->jobs[waits[i].job];
        const OrrShareJobSpread *x = &r->spreads[waits[i].job];
        orr_csv_put_int(&w, i);
        orr_csv_put(&w, j->name);
        orr_csv_put_double(&w, (double)waits[i].waited_ns / 3600e9);
        orr_csv_put_double(&w, x->waited_p50_ns / 3600e9);
        orr_csv_put_double(&w, x->waited_p95_ns / 3600e9);
        orr_csv_put_double(&w, j->gpus > 0 ? j->gpus : (double)j->slices / r->spec->slices_per_gpu);
        orr_csv_end_row(&w);
    }
}
