/* Spans to files. */
#include "traces/trace.h"

#include "sim/base/error.h"
#include "traces/traces_priv.h"

#include <errno.h>
#include <string.h>

#define MAX_FILES 512 /* under the usual limit of 1024 open files; ours */

typedef struct {
    OrrTraceView view;
    OrrOut *out;
    void *state; /* of the exporter; NULL once ended */
    OrrTraceCounts counts;
} File;

struct OrrTrace {
    OrrTraceRequest request;
    File *files;
    uint32_t n_files;
    OrrFolder *folder; /* of a file a rank, else NULL */
};

static bool open_file(OrrTrace *t, File *f, const char *path, GError **error) {
    f->out = orr_out_open(path, error);
    if (!f->out)
        return false;
    f->counts.n_other_ranks = t->request.context->world_size - f->view.n_ranks;
    f->state = t->request.exporter->begin(t->request.context, &f->view, f->out);
    return true;
}

static bool open_each(OrrTrace *t, GError **error) {
    const OrrTraceRequest *q = &t->request;
    t->folder = orr_folder_make(q->directory, error);
    if (!t->folder)
        return false;
    for (uint32_t i = 0; i < q->n_ranks; i++) {
        File *f = &t->files[i];
        f->view = (OrrTraceView){&q->ranks[i], 1, q->from_ns, q->to_ns, true};
        bool is_bare = q->exporter->is_per_rank; /* NAME.RANK.et, as simulators look for them */
        g_autofree char *name =
            is_bare ? g_strdup_printf("trace.%u%s", q->ranks[i], q->exporter->suffix)
                    : g_strdup_printf("rank-%07u%s.gz", q->ranks[i], q->exporter->suffix);
        g_autofree char *path = g_build_filename(q->directory, name, NULL);
        if (!open_file(t, f, path, error))
            return false;
    }
    return true;
}

OrrTrace *orr_trace_open(const OrrTraceRequest *request, GError **error) {
    if (request->directory && request->n_ranks > MAX_FILES) {
        orr_fail_usage(error,
                       "a file a rank for %u ranks: at most %d files at once; choose fewer "
                       "ranks, or write one file",
                       request->n_ranks, MAX_FILES);
        return NULL;
    }
    if (!request->directory && request->exporter->is_per_rank && request->n_ranks > 1) {
        orr_fail_usage(error, "the format %s has one rank a file: say --per-rank DIR",
                       request->exporter->name);
        return NULL;
    }
    g_autoptr(OrrTrace) t = g_new0(OrrTrace, 1);
    t->request = *request;
    t->n_files = request->directory ? request->n_ranks : 1;
    t->files = g_new0(File, t->n_files);
    if (request->directory) {
        if (!open_each(t, error))
            return NULL;
    } else {
        t->files[0].view = (OrrTraceView){request->ranks, request->n_ranks, request->from_ns,
                                          request->to_ns, false};
        if (!open_file(t, &t->files[0], request->path, error))
            return NULL;
    }
    return g_steal_pointer(&t);
}

static void take_span(void *data, const OrrSpan *span) {
    OrrTrace *t = data;
    OrrTraceView all = {t->request.ranks, t->request.n_ranks, 0, 0, false};
    uint32_t place = orr_trace__place(&all, span->rank);
    if (place == ORR_NONE)
        return;
    File *f = &t->files[t->n_files == 1 ? 0 : place];
    bool is_inside = span->end_ns > t->request.from_ns && span->start_ns < t->request.to_ns;
    f->counts.n_spans += is_inside;
    f->counts.n_outside += !is_inside;
    t->request.exporter->span(f->state, span, is_inside);
}

OrrProbe orr_trace_probe(OrrTrace *trace) {
    return (OrrProbe){take_span, trace};
}

bool orr_trace_close(OrrTrace *t, OrrTraceCounts *counts, GError **error) {
    OrrTraceCounts sum = {.n_other_ranks = t->request.context->world_size - t->request.n_ranks};
    for (uint32_t i = 0; i < t->n_files; i++) {
        File *f = &t->files[i];
        t->request.exporter->end(g_steal_pointer(&f->state), &f->counts);
        sum.n_spans += f->counts.n_spans;
        sum.n_outside += f->counts.n_outside;
    }
    if (counts)
        *counts = sum;
    for (uint32_t i = 0; i < t->n_files; i++)
        if (!orr_out_commit(t->files[i].out, error))
            return false;
    return true;
}

void orr_trace_free(OrrTrace *t) {
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n_files; i++) {
        File *f = &t->files[i];
        if (f->state)
            t->request.exporter->end(f->state, &f->counts);
        if (f->out)
            orr_out_free(f->out);
    }
    g_free(t->files);
    orr_folder_free(t->folder);
    g_free(t);
}

static bool rank_number(const char **at, uint32_t world_size, uint32_t *rank) {
    if (!g_ascii_isdigit(**at))
        return false;
    char *end;
    errno = 0;
    guint64 v = g_ascii_strtoull(*at, &end, 10);
    if (errno || v >= world_size)
        return false;
    *rank = (uint32_t)v;
    *at = end;
    return true;
}

bool orr_trace_ranks(const char *text, uint32_t world_size, uint32_t **ranks, uint32_t *n,
                     GError **error) {
    g_autofree bool *wanted = g_new0(bool, world_size);
    const char *at = text;
    for (bool is_more = true; is_more; at++) {
        uint32_t first, last;
        bool is_sound = rank_number(&at, world_size, &first);
        last = is_sound ? first : 0;
        if (is_sound && *at == '-') {
            at++;
            is_sound = rank_number(&at, world_size, &last) && last >= first;
        }
        if (!is_sound || (*at && *at != ','))
            return orr_fail_usage(error,
                                  "ranks '%s': a list such as 0-7,64 with ranks from 0 to %u "
                                  "would do",
                                  text, world_size - 1);
        for (uint32_t r = first; r <= last; r++)
            wanted[r] = true;
        is_more = *at == ',';
    }
    *ranks = g_new(uint32_t, world_size);
    *n = 0;
    for (uint32_t r = 0; r < world_size; r++)
        if (wanted[r])
            (*ranks)[(*n)++] = r;
    return true;
}
