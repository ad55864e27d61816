/* A gap of the device ends with an event. Up to the begin of its launch the host was late; from
 * there on the event waited for another stream, a peer or the launch itself. Source: the "ac2g"
 * correlation of pytorch/kineto. Cost: a sort of the device's events. */
#include "traces/kineto_idle.h"

#include <math.h>

typedef struct {
    double begin_us, end_us, launched_us; /* launched_us NAN: not known */
    int64_t correlation;
} Event;

struct OrrLaunches {
    GArray *events;
    GHashTable *launched; /* correlation -> double *, us */
};

OrrLaunches *orr_traces__launches_new(void) {
    OrrLaunches *l = g_new(OrrLaunches, 1);
    l->events = g_array_new(FALSE, FALSE, sizeof(Event));
    l->launched = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    return l;
}

void orr_traces__launches_free(OrrLaunches *l) {
    g_array_unref(l->events);
    g_hash_table_unref(l->launched);
    g_free(l);
}

static int64_t key_of(double correlation) {
    return correlation > 0 && correlation < 1e15 ? (int64_t)correlation : 0;
}

void orr_traces__launches_host(OrrLaunches *l, double correlation, double begin_us) {
    int64_t key = key_of(correlation);
    if (key != 0)
        g_hash_table_insert(l->launched, g_memdup2(&key, sizeof key),
                            g_memdup2(&begin_us, sizeof begin_us));
}

void orr_traces__launches_device(OrrLaunches *l, double correlation, double begin_us,
                                 double end_us) {
    Event event = {begin_us, end_us, NAN, key_of(correlation)};
    g_array_append_val(l->events, event);
}

static gint by_begin(gconstpointer a, gconstpointer b) {
    const Event *x = a, *y = b;
    if (x->begin_us != y->begin_us)
        return x->begin_us < y->begin_us ? -1 : 1;
    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

double orr_traces__launches_idle_ns(OrrLaunches *l, uint32_t *n) {
    double idle_us = 0, end_us = INFINITY;
    *n = 0;
    g_array_sort(l->events, by_begin);
    for (guint i = 0; i < l->events->len; i++) {
        Event *e = &g_array_index(l->events, Event, i);
        const double *launched = g_hash_table_lookup(l->launched, &e->correlation);
        e->launched_us = launched ? *launched : NAN;
        *n += launched != NULL;
        if (launched && e->begin_us > end_us) {
            double late_us = MIN(e->launched_us, e->begin_us) - end_us;
            idle_us += late_us > 0 ? late_us : 0;
        }
        end_us = i == 0 ? e->end_us : MAX(end_us, e->end_us);
    }
    return *n > 0 ? idle_us * 1e3 : NAN;
}
