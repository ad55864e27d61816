/* Exponential kinds are one Poisson process of the summed rate. Weibull kinds, and those whose
 * units are excluded after some strikes, are one renewal process a unit, all units new when the run
 * begins; only the earliest strike of each waits in a queue. Strikes come in wall time, also while
 * the job is down. */
#include "sim/job/strikes.h"

#include <math.h>

typedef struct OrrStrikeClock {
    OrrRandom random, extra, place;
    uint64_t index; /* strikes taken or waiting */
    uint64_t taken;
    double at_ns; /* exact time of the waiting strike */
    int64_t next_ns;
    double scale_ns; /* Weibull */
    OrrQueue units;  /* Weibull: next strike of each unit */
} Clock;

static int64_t whole(double ns) {
    return ns < 0x1p62 ? (int64_t)ceil(ns) : INT64_MAX;
}

/* Each unit has a clock of its own: where its age counts, or how often it has struck. */
static bool has_unit_clocks(const OrrFailureKind *k) {
    return k->law == ORR_LAW_WEIBULL || (k->law == ORR_LAW_EXPONENTIAL && k->exclude_after > 0);
}

static void push_unit(Clock *c, const OrrFailureKind *k, int64_t from_ns, uint32_t unit,
                      uint32_t renewal) {
    if (k->exclude_after > 0 && renewal >= k->exclude_after)
        return;
    double life = c->scale_ns * orr_random_weibull(c->random, unit, renewal, k->shape);
    if ((double)from_ns + life < 0x1p62)
        orr_queue_push(&c->units, from_ns + whole(life), 0, renewal, unit);
}

static void advance_units(Clock *c, const OrrFailureKind *k) {
    if (c->index > 0) {
        OrrEvent e = orr_queue_pop(&c->units);
        push_unit(c, k, e.time_ns, e.id, orr_event_generation(&e) + 1);
    }
    c->next_ns = c->units.n > 0 ? c->units.heap[0].time_ns : INT64_MAX;
}

static void advance(Clock *c, const OrrFailureKind *k) {
    if (has_unit_clocks(k)) {
        advance_units(c, k);
        c->index++;
        return;
    }
    switch (k->law) {
    case ORR_LAW_WEIBULL:
    case ORR_LAW_EXPONENTIAL:
        c->at_ns +=
            k->mean_ns / (double)k->n_units * orr_random_exponential(c->random, c->index, 0);
        c->next_ns = whole(c->at_ns);
        break;
    case ORR_LAW_PERIODIC:
        c->at_ns += k->mean_ns / (double)k->n_units;
        c->next_ns = whole(c->at_ns);
        break;
    case ORR_LAW_EVENTS:
        c->next_ns = c->index < k->n_events ? k->event_ns[c->index] : INT64_MAX;
        break;
    }
    c->index++;
}

static void find_next(OrrStrikes *s) {
    s->next = 0;
    s->next_ns = INT64_MAX;
    if (s->n_taken >= ORR_MOST_STRIKES)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->clocks[i].next_ns < s->next_ns) {
            s->next = i;
            s->next_ns = s->clocks[i].next_ns;
        }
}

void orr_strikes_init(OrrStrikes *s, const OrrRunSpec *spec, uint64_t seed) {
    *s = (OrrStrikes){.spec = spec, .n = spec->n_kinds};
    s->clocks = g_new0(Clock, spec->n_kinds + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        const OrrFailureKind *k = &spec->kinds[i];
        Clock *c = &s->clocks[i];
        g_autofree char *name = g_strconcat("strike:", k->name, NULL);
        g_autofree char *extra = g_strconcat("repair:", k->name, NULL);
        g_autofree char *place = g_strconcat("place:", k->name, NULL);
        c->random = orr_random(seed, name);
        c->extra = orr_random(seed, extra);
        c->place = orr_random(seed, place);
        orr_queue_init(&c->units);
        if (has_unit_clocks(k)) {
            c->scale_ns = k->mean_ns / tgamma(1 + 1 / k->shape); /* mean of a Weibull of scale 1 */
            for (uint64_t u = 0; u < k->n_units; u++)
                push_unit(c, k, 0, (uint32_t)u, 0);
        }
        advance(c, k);
    }
    find_next(s);
}

void orr_strikes_clear(OrrStrikes *s) {
    for (uint32_t i = 0; i < s->n; i++)
        orr_queue_clear(&s->clocks[i].units);
    g_free(s->clocks);
}

void orr_strikes_take(OrrStrikes *s) {
    Clock *c = &s->clocks[s->next];
    c->taken = c->index;
    s->n_taken++;
    advance(c, &s->spec->kinds[s->next]);
    find_next(s);
}

double orr_strikes_exponential(const OrrStrikes *s, uint32_t kind, uint32_t what) {
    return orr_random_exponential(s->clocks[kind].extra, s->clocks[kind].taken, what);
}

double orr_strikes_uniform(const OrrStrikes *s, uint32_t kind, uint32_t what) {
    return orr_random_uniform(s->clocks[kind].place, s->clocks[kind].taken, what);
}
