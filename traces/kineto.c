#include "traces/kineto.h"

#include <math.h>
#include <string.h>

#include "sim/base/stats.h"
#include "sim/io/csv.h"
#include "sim/io/json.h"
#include "traces/kineto_idle.h"
#include "traces/kineto_names.h"

#define LIMIT_BYTES ((gsize)2 << 30) /* ours: a step of a large job has some hundred MB */

typedef struct {
    double begin_us, end_us;
} Span;

/* Calls that one row counts. */
typedef struct {
    GArray *durations_us; /* double */
    guint row;
    bool is_transfer;
} Calls;

typedef struct {
    const OrrImport *import;
    const OrrJson *json;
    OrrMeasuredProfile *profile;
    GArray *kernels, *transfers;     /* rows */
    GHashTable *calls;               /* key -> Calls */
    GPtrArray *in_order;             /* Calls, as first seen */
    GArray *compute, *comm, *copies; /* Span */
    GArray *comm_row;                /* guint: row of each span in comm */
    OrrLaunches *launches;
} Reader;

OrrKernelKind orr_kineto_kernel_kind(const char *name) {
    return orr_traces__kernel_kind(name);
}

static void calls_free(gpointer data) {
    Calls *calls = data;
    g_array_unref(calls->durations_us);
    g_free(calls);
}

static const char *text_of(JsonObject *o, const char *key) {
    JsonNode *node = o ? json_object_get_member(o, key) : NULL;
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

/* NAN if it is absent or no number. */
static double number_of(JsonObject *o, const char *key) {
    JsonNode *node = o ? json_object_get_member(o, key) : NULL;
    if (!node || !JSON_NODE_HOLDS_VALUE(node))
        return NAN;
    GType type = json_node_get_value_type(node);
    return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE ? json_node_get_double(node) : NAN;
}

static JsonObject *object_of(JsonObject *o, const char *key) {
    JsonNode *node = json_object_get_member(o, key);
    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static int64_t stream_of(JsonObject *event, JsonObject *args) {
    double stream = number_of(args, "stream");
    if (isnan(stream))
        stream = number_of(event, "tid");
    return stream >= 0 && stream < 1e15 ? (int64_t)stream : -1;
}

/* The counts of @key, made with the row that comes next if it is new. */
static Calls *calls_of(Reader *r, const char *key, guint next_row, bool *is_new) {
    Calls *calls = g_hash_table_lookup(r->calls, key);
    *is_new = calls == NULL;
    if (!calls) {
        calls = g_new0(Calls, 1);
        calls->durations_us = g_array_new(FALSE, FALSE, sizeof(double));
        calls->row = next_row;
        g_hash_table_insert(r->calls, g_strdup(key), calls);
        g_ptr_array_add(r->in_order, calls);
    }
    return calls;
}

/* Bytes by the convention of nccl-tests, from the counts that PyTorch's record_param_comms gives.
 */
static int64_t transfer_bytes(OrrCollective kind, JsonObject *args, double element) {
    double in = number_of(args, "In msg nelems"), out = number_of(args, "Out msg nelems");
    double n = kind == ORR_ALL_GATHER ? out : in;
    if (isnan(n))
        n = isnan(in) ? out : in;
    return n > 0 && n < 1e15 ? (int64_t)(n * element) : 0;
}

static void add_transfer(Reader *r, JsonObject *event, JsonObject *args, const char *name,
                         Span span) {
    OrrMeasuredTransfer t = {.dtype = ORR_N_DTYPES, .stream = stream_of(event, args)};
    const char *collective = text_of(args, "Collective name"), *type = text_of(args, "dtype");
    const char *group = text_of(args, "Process Group Name");
    double element = 0, size = number_of(args, "Group size");
    t.has_kind = (collective && orr_traces__transfer_kind(collective, &t.kind)) ||
                 orr_traces__transfer_kind(name, &t.kind);
    if (type && orr_traces__dtype(type, &t.dtype, &element))
        t.bytes = transfer_bytes(t.kind, args, element);
    t.group_size = size >= 1 && size < 1e8 ? (uint32_t)size : 0;
    g_autofree char *key =
        g_strdup_printf("t %s %d %" G_GINT64_FORMAT " %u %s %" G_GINT64_FORMAT, name, (int)t.kind,
                        t.bytes, t.group_size, group ? group : "", t.stream);
    bool is_new;
    Calls *calls = calls_of(r, key, r->transfers->len, &is_new);
    calls->is_transfer = true;
    if (is_new) {
        t.name = g_strdup(name);
        t.group = g_strdup(group);
        g_array_append_val(r->transfers, t);
    }
    double us = span.end_us - span.begin_us;
    g_array_append_val(calls->durations_us, us);
    g_array_append_val(r->comm, span);
    g_array_append_val(r->comm_row, calls->row);
}

static void add_kernel(Reader *r, JsonObject *event, JsonObject *args, const char *name,
                       Span span) {
    OrrMeasuredKernel k = {.kind = orr_traces__kernel_kind(name), .stream = stream_of(event, args)};
    g_autofree char *key = g_strdup_printf("k %s %" G_GINT64_FORMAT, name, k.stream);
    bool is_new;
    Calls *calls = calls_of(r, key, r->kernels->len, &is_new);
    if (is_new) {
        k.name = g_strdup(name);
        g_array_append_val(r->kernels, k);
    }
    double us = span.end_us - span.begin_us;
    g_array_append_val(calls->durations_us, us);
    g_array_append_val(r->compute, span);
    r->profile->kind_ns[k.kind] += us * 1e3;
}

static void read_event(Reader *r, JsonObject *event) {
    const char *phase = text_of(event, "ph"), *name = text_of(event, "name");
    const char *category = text_of(event, "cat");
    double ts = number_of(event, "ts"), dur = number_of(event, "dur");
    if (!phase || strcmp(phase, "X") != 0 || !name)
        return;
    if (g_str_has_prefix(name, "ProfilerStep#") && category &&
        strcmp(category, "user_annotation") == 0)
        r->profile->n_steps++;
    if (!category || isnan(ts) || !(dur >= 0) || !(fabs(ts) < 1e18) || !(dur < 1e15))
        return;
    Span span = {ts, ts + dur};
    JsonObject *args = object_of(event, "args");
    bool is_kernel = strcmp(category, "kernel") == 0 || strcmp(category, "Kernel") == 0;
    if (is_kernel && orr_traces__is_transfer(name))
        add_transfer(r, event, args, name, span);
    else if (is_kernel)
        add_kernel(r, event, args, name, span);
    bool is_copy = g_str_has_prefix(category, "gpu_mem") || g_str_has_prefix(category, "Mem");
    if (is_copy)
        g_array_append_val(r->copies, span);
    double correlation = number_of(args, "correlation");
    if (is_kernel || is_copy)
        orr_traces__launches_device(r->launches, correlation, span.begin_us, span.end_us);
    else if (g_str_has_suffix(category, "_runtime") || g_str_has_suffix(category, "_driver"))
        orr_traces__launches_host(r->launches, correlation, span.begin_us);
}

static gint by_begin(gconstpointer a, gconstpointer b) {
    const Span *x = a, *y = b;
    if (x->begin_us != y->begin_us)
        return x->begin_us < y->begin_us ? -1 : 1;
    return x->end_us < y->end_us ? -1 : x->end_us > y->end_us;
}

/* The union of spans as disjoint ones, ascending; *@total_us their length. */
static GArray *unite(const GArray *a, const GArray *b, double *total_us) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Span));
    GArray *out = g_array_new(FALSE, FALSE, sizeof(Span));
    g_array_append_vals(all, a->data, a->len);
    if (b)
        g_array_append_vals(all, b->data, b->len);
    g_array_sort(all, by_begin);
    for (guint i = 0; i < all->len; i++) {
        Span span = g_array_index(all, Span, i);
        Span *last = out->len ? &g_array_index(out, Span, out->len - 1) : NULL;
        if (last && span.begin_us <= last->end_us)
            last->end_us = MAX(last->end_us, span.end_us);
        else
            g_array_append_val(out, span);
    }
    *total_us = 0;
    for (guint i = 0; i < out->len; i++)
        *total_us += g_array_index(out, Span, i).end_us - g_array_index(out, Span, i).begin_us;
    g_array_unref(all);
    return out;
}

/* How much of @span lies within the disjoint, ascending @spans. */
static double overlap(const GArray *spans, Span span) {
    guint low = 0, high = spans->len;
    while (low < high) { /* the first that ends behind the begin */
        guint middle = (low + high) / 2;
        if (g_array_index(spans, Span, middle).end_us <= span.begin_us)
            low = middle + 1;
        else
            high = middle;
    }
    double sum = 0;
    for (; low < spans->len && g_array_index(spans, Span, low).begin_us < span.end_us; low++) {
        Span s = g_array_index(spans, Span, low);
        sum += MIN(s.end_us, span.end_us) - MAX(s.begin_us, span.begin_us);
    }
    return sum;
}

static void divide_window(Reader *r) {
    OrrMeasuredProfile *p = r->profile;
    double compute, comm, both, busy, copies;
    GArray *united = unite(r->compute, NULL, &compute);
    for (guint i = 0; i < r->comm->len; i++) {
        Span span = g_array_index(r->comm, Span, i);
        OrrMeasuredTransfer *t =
            &g_array_index(r->transfers, OrrMeasuredTransfer, g_array_index(r->comm_row, guint, i));
        t->exposed_ns += (span.end_us - span.begin_us - overlap(united, span)) * 1e3;
    }
    g_array_unref(united);
    g_array_unref(unite(r->comm, NULL, &comm));
    g_array_unref(unite(r->copies, NULL, &copies));
    GArray *work = unite(r->compute, r->comm, &both);
    GArray *all = unite(work, r->copies, &busy);
    Span first = g_array_index(all, Span, 0), last = g_array_index(all, Span, all->len - 1);
    p->window_ns = (last.end_us - first.begin_us) * 1e3;
    p->busy_ns = busy * 1e3;
    p->compute_ns = compute * 1e3;
    p->transfer_ns = comm * 1e3;
    p->exposed_ns = (both - compute) * 1e3;
    p->copy_ns = copies * 1e3;
    p->idle_ns = p->window_ns - p->busy_ns;
    p->host_idle_ns = orr_traces__launches_idle_ns(r->launches, &p->n_launched);
    g_array_unref(work);
    g_array_unref(all);
}

static void settle_rows(Reader *r) {
    for (guint i = 0; i < r->in_order->len; i++) {
        const Calls *c = r->in_order->pdata[i];
        const double *us = (const double *)(const void *)c->durations_us->data;
        guint n = c->durations_us->len;
        double total = orr_stats_mean(us, n) * n * 1e3, median = orr_stats_median(us, n) * 1e3;
        double min = orr_stats_percentile(us, n, 0) * 1e3,
               max = orr_stats_percentile(us, n, 1) * 1e3;
        if (c->is_transfer) {
            OrrMeasuredTransfer *t = &g_array_index(r->transfers, OrrMeasuredTransfer, c->row);
            t->n_calls = n, t->total_ns = total, t->median_ns = median;
            t->min_ns = min, t->max_ns = max;
        } else {
            OrrMeasuredKernel *k = &g_array_index(r->kernels, OrrMeasuredKernel, c->row);
            k->n_calls = n, k->total_ns = total, k->median_ns = median;
            k->min_ns = min, k->max_ns = max;
        }
    }
}

static bool read_root(Reader *r, GError **error) {
    JsonNode *root = orr_json_root(r->json);
    JsonArray *events = NULL;
    if (JSON_NODE_HOLDS_ARRAY(root)) {
        events = json_node_get_array(root);
    } else {
        JsonObject *o = orr_json_root_object(r->json, error);
        if (!o || !orr_json_array(r->json, o, "traceEvents", &events, error))
            return false;
        JsonObject *info = object_of(o, "distributedInfo");
        double rank = number_of(info, "rank"), world = number_of(info, "world_size");
        r->profile->rank = rank >= 0 && rank < 1e8 ? (int32_t)rank : -1;
        r->profile->world_size = world >= 1 && world < 1e8 ? (uint32_t)world : 0;
        JsonNode *devices = json_object_get_member(o, "deviceProperties");
        if (devices && JSON_NODE_HOLDS_ARRAY(devices) &&
            json_array_get_length(json_node_get_array(devices)) > 0) {
            JsonNode *first = json_array_get_element(json_node_get_array(devices), 0);
            if (JSON_NODE_HOLDS_OBJECT(first))
                r->profile->gpu = g_strdup(text_of(json_node_get_object(first), "name"));
        }
    }
    guint n = json_array_get_length(events);
    for (guint i = 0; i < n; i++) {
        JsonNode *node = json_array_get_element(events, i);
        if (JSON_NODE_HOLDS_OBJECT(node))
            read_event(r, json_node_get_object(node));
    }
    if (r->compute->len + r->comm->len > 0)
        return true;
    return orr_fail_input(error,
                          "%s: %u events, but none of category kernel: a trace with CUDA or "
                          "ROCm activities is needed",
                          r->import->path, n);
}

static OrrMeasuredProfile *read_profile(const OrrImport *import, const OrrJson *json,
                                        GError **error) {
    g_autoptr(OrrMeasuredProfile) profile = g_new0(OrrMeasuredProfile, 1);
    profile->name = g_strdup(import->path);
    profile->rank = -1;
    Reader r = {.import = import, .json = json, .profile = profile};
    r.kernels = g_array_new(FALSE, FALSE, sizeof(OrrMeasuredKernel));
    r.transfers = g_array_new(FALSE, FALSE, sizeof(OrrMeasuredTransfer));
    r.calls = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, calls_free);
    r.in_order = g_ptr_array_new();
    r.compute = g_array_new(FALSE, FALSE, sizeof(Span));
    r.comm = g_array_new(FALSE, FALSE, sizeof(Span));
    r.copies = g_array_new(FALSE, FALSE, sizeof(Span));
    r.comm_row = g_array_new(FALSE, FALSE, sizeof(guint));
    r.launches = orr_traces__launches_new();
    bool is_read = read_root(&r, error);
    if (is_read) {
        divide_window(&r);
        settle_rows(&r);
    }
    profile->n_kernels = r.kernels->len;
    profile->kernels = (OrrMeasuredKernel *)(void *)g_array_free(r.kernels, FALSE);
    profile->n_transfers = r.transfers->len;
    profile->transfers = (OrrMeasuredTransfer *)(void *)g_array_free(r.transfers, FALSE);
    g_hash_table_unref(r.calls);
    g_ptr_array_unref(r.in_order);
    g_array_unref(r.compute);
    g_array_unref(r.comm);
    g_array_unref(r.copies);
    g_array_unref(r.comm_row);
    orr_traces__launches_free(r.launches);
    return is_read ? g_steal_pointer(&profile) : NULL;
}

/* Of a text that ends within its array of events: the part up to the last whole event, closed.
 * NULL if it is not that. */
static char *close_events(const char *text, gsize length, guint *n_events) {
    char open[64];
    guint depth = 0;
    gsize end = 0;
    bool in_string = false;
    *n_events = 0;
    for (gsize i = 0; i < length; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (depth == sizeof open)
                return NULL;
            open[depth++] = c;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
            bool in_events = depth > 0 && depth <= 2 && open[depth - 1] == '[' && c == '}';
            if (in_events) {
                end = i + 1;
                (*n_events)++;
            }
        }
    }
    if (depth == 0 || end == 0)
        return NULL;
    return g_strdup_printf("%.*s]%s", (int)MIN(end, G_MAXINT), text, open[0] == '{' ? "}" : "");
}

OrrMeasuredProfile *orr_kineto_parse(const OrrImport *import, const char *text, gsize length,
                                     GError **error) {
    GError *flaw = NULL;
    guint n_events;
    g_autoptr(OrrJson) json = orr_json_parse(import->path, text, length, ORR_JSON_INFINITY, &flaw);
    g_autofree char *closed = json ? NULL : close_events(text, length, &n_events);
    if (closed) {
        json = orr_json_parse(import->path, closed, strlen(closed), ORR_JSON_INFINITY, NULL);
        if (json) {
            g_clear_error(&flaw);
            g_string_append_printf(import->notes,
                                   "%s: the trace ends within an event (its writer was killed?): "
                                   "used up to the last whole one, %u of them\n",
                                   import->path, n_events);
        }
    }
    if (json)
        return read_profile(import, json, error);
    g_propagate_error(error, flaw);
    return NULL;
}

OrrMeasuredProfile *orr_kineto_read(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_kineto_parse(import, text, length, error) : NULL;
}
