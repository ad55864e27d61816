/* Events of one seed: as CSV, a row an event; and as a Chrome trace, one track of training and
 * losses, strikes as instants, progress and replicas as counters. */
#include "sim/report/run_report.h"

#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "sim/report/run_priv.h"

struct OrrRunEventWriter {
    OrrRunNames names;
    OrrCsvWriter csv;
    OrrJsonWriter json;
    bool is_trace;
};

static const char *cause_name(const OrrRunEventWriter *w, uint32_t cause) {
    return w->names.cause(w->names.data, cause);
}

OrrRunEventWriter *orr_run_events_csv(OrrOut *out, const OrrRunNames *names) {
    static const char *const header[] = {"event", "begin_ns", "end_ns", "cause",         "loss",
                                         "steps", "step",     "tokens", "lost_replicas", NULL};
    OrrRunEventWriter *w = g_new0(OrrRunEventWriter, 1);
    w->names = *names;
    w->csv.out = out;
    orr_csv_put_row(&w->csv, header);
    return w;
}

static void write_row(OrrRunEventWriter *w, const OrrRunEvent *e) {
    orr_csv_put(&w->csv, orr_run_event_names[e->kind]);
    orr_csv_put_int(&w->csv, e->begin_ns);
    orr_csv_put_int(&w->csv, e->end_ns);
    orr_csv_put(&w->csv, e->kind == ORR_RUN_TRAIN ? "" : cause_name(w, e->cause));
    orr_csv_put(&w->csv, e->kind == ORR_RUN_LOST ? orr_loss_name(e->loss) : "");
    orr_csv_put_int(&w->csv, e->steps);
    orr_csv_put_int(&w->csv, e->step);
    orr_csv_put_int(&w->csv, e->tokens);
    orr_csv_put_int(&w->csv, e->lost_replicas);
    orr_csv_end_row(&w->csv);
}

/* The names of the process and of its track. */
static void name_track(OrrJsonWriter *j, const char *what, const char *name, int tid) {
    orr_json_begin_object_inline(j, NULL);
    orr_json_put_string(j, "ph", "M");
    orr_json_put_string(j, "name", what);
    orr_json_put_int(j, "pid", 0);
    orr_json_put_int(j, "tid", tid);
    orr_json_begin_object(j, "args");
    orr_json_put_string(j, "name", name);
    orr_json_end_object(j);
    orr_json_end_object(j);
}

OrrRunEventWriter *orr_run_events_trace(OrrOut *out, const OrrRunNames *names) {
    OrrRunEventWriter *w = g_new0(OrrRunEventWriter, 1);
    w->names = *names;
    w->is_trace = true;
    w->json = (OrrJsonWriter){.out = out, .is_pretty = true};
    orr_json_begin_object(&w->json, NULL);
    orr_json_begin_array(&w->json, "traceEvents");
    name_track(&w->json, "process_name", names->run, 0);
    name_track(&w->json, "thread_name", "run", 0);
    return w;
}

static void begin_event(OrrJsonWriter *j, const char *phase, const char *name, int64_t ns) {
    orr_json_begin_object_inline(j, NULL);
    orr_json_put_string(j, "ph", phase);
    orr_json_put_string(j, "name", name);
    orr_json_put_us(j, "ts", ns);
    orr_json_put_int(j, "pid", 0);
    orr_json_put_int(j, "tid", 0);
}

static void put_counter(OrrJsonWriter *j, const char *name, int64_t ns, int64_t value) {
    begin_event(j, "C", name, ns);
    orr_json_begin_object(j, "args");
    orr_json_put_int(j, name, value);
    orr_json_end_object(j);
    orr_json_end_object(j);
}

static void put_args(const OrrRunEventWriter *w, OrrJsonWriter *j, const OrrRunEvent *e) {
    orr_json_begin_object(j, "args");
    if (e->kind != ORR_RUN_TRAIN)
        orr_json_put_string(j, "cause", cause_name(w, e->cause));
    if (e->steps != 0)
        orr_json_put_int(j, "steps", e->steps);
    orr_json_put_int(j, "step", e->step);
    orr_json_end_object(j);
}

static void write_trace(OrrRunEventWriter *w, const OrrRunEvent *e) {
    OrrJsonWriter *j = &w->json;
    bool is_span = e->kind == ORR_RUN_TRAIN || e->kind == ORR_RUN_LOST;
    if (is_span) {
        begin_event(j, "X", e->kind == ORR_RUN_TRAIN ? "train" : orr_loss_name(e->loss),
                    e->begin_ns);
        orr_json_put_us(j, "dur", e->end_ns - e->begin_ns);
    } else {
        begin_event(j, "i",
                    e->kind == ORR_RUN_STRIKE ? cause_name(w, e->cause)
                                              : orr_run_event_names[e->kind],
                    e->begin_ns);
        orr_json_put_string(j, "s", "p");
    }
    put_args(w, j, e);
    orr_json_end_object(j);
    if (e->kind == ORR_RUN_TRAIN || e->kind == ORR_RUN_ROLLBACK) {
        put_counter(j, "kept steps", e->end_ns, e->step);
        put_counter(j, "replicas lost", e->end_ns, e->lost_replicas);
    }
}

void orr_run_events_write(void *writer, const OrrRunEvent *event) {
    OrrRunEventWriter *w = writer;
    if (w->is_trace)
        write_trace(w, event);
    else
        write_row(w, event);
}

void orr_run_events_close(OrrRunEventWriter *w) {
    if (w->is_trace) {
        orr_json_end_array(&w->json);
        orr_json_put_string(&w->json, "displayTimeUnit", "ms");
        orr_json_end_object(&w->json);
        orr_out_puts(w->json.out, "\n");
    }
    g_free(w);
}
