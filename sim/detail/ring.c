/* Rings: a rank sends a chunk when it is free and the chunk has come.
 *
 * Two tiers, one answer. Where no link can be filled, all times follow from those of the step
 * before, and are added up step by step. Else events: an arrival at the receiver for every message,
 * and for those that share links their start and end. */
#include "sim/detail/detail_priv.h"

#include <string.h>

typedef struct {
    uint32_t phase, step; /* of the next message */
    bool is_sending;      /* or has announced its start */
    int64_t free_ns;
} Sender;

typedef struct {
    const OrrRings *rings;
    OrrClock clock;
    Sender *senders;
    uint32_t *arrived[ORR_DETAIL_MAX_PHASES]; /* [n_ranks] messages that have come */
    uint64_t n_flows;
    int64_t last_ns;
} Run;

/* Adds up: @sent is when the rank is free, @came when the message of the last step can be used. */
static int64_t add_phase(const OrrPhase *p, uint32_t n, int64_t *sent, int64_t *came,
                         int64_t *next) {
    int64_t last = 0;
    for (uint32_t t = 0; t < p->n_steps; t++) {
        for (uint32_t r = 0; r < n; r++) {
            const OrrEdge *e = &p->edges[r];
            int64_t end = MAX(sent[r], came[r]) + e->transfer_ns;
            sent[r] = end;
            next[e->to] = end + e->hop_ns;
        }
        memcpy(came, next, n * sizeof *came);
    }
    for (uint32_t r = 0; r < n; r++)
        last = MAX(last, came[r]);
    return last;
}

static void add_up(const OrrRings *r, OrrDetailResult *result) {
    uint32_t n = r->n_ranks;
    g_autofree int64_t *sent = g_new(int64_t, n);
    g_autofree int64_t *came = g_new(int64_t, n);
    g_autofree int64_t *next = g_new(int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        sent[i] = came[i] = r->start_ns;
    for (uint32_t q = 0; q < r->n_phases; q++) {
        result->time_ns = add_phase(&r->phases[q], n, sent, came, next);
        result->n_flows += (uint64_t)r->phases[q].n_steps * n;
    }
}

static bool has_chunk(const Run *x, uint32_t r) {
    const Sender *s = &x->senders[r];
    if (s->step > 0)
        return x->arrived[s->phase][r] >= s->step;
    return s->phase == 0 || x->arrived[s->phase - 1][r] == x->rings->phases[s->phase - 1].n_steps;
}

static void sent(Run *x, uint32_t r, int64_t end_ns) {
    Sender *s = &x->senders[r];
    const OrrPhase *p = &x->rings->phases[s->phase];
    orr_queue_push(&x->clock.queue, end_ns + p->edges[r].hop_ns, ORR_DETAIL_ARRIVE, s->phase, r);
    s->free_ns = end_ns;
    x->n_flows++;
    if (++s->step == p->n_steps) {
        s->step = 0;
        s->phase++;
    }
}

/* Messages that share nothing are sent ahead of the clock; others announce when they start. */
static void try_send(Run *x, uint32_t r) {
    Sender *s = &x->senders[r];
    while (!s->is_sending && s->phase < x->rings->n_phases && has_chunk(x, r)) {
        const OrrEdge *e = &x->rings->phases[s->phase].edges[r];
        int64_t start = MAX(x->clock.now_ns, s->free_ns);
        if (e->n_uses == 0) {
            sent(x, r, start + e->transfer_ns);
            continue;
        }
        s->is_sending = true;
        orr_queue_push(&x->clock.queue, start, ORR_DETAIL_START, 0, r);
    }
}

static void begin(Run *x, uint32_t r) {
    const OrrPhase *p = &x->rings->phases[x->senders[r].phase];
    const OrrEdge *e = &p->edges[r];
    OrrFlow flow = {.uses = x->rings->uses + e->first_use,
                    .n_uses = e->n_uses,
                    .weight = 1,
                    .cap_bytes_per_s = e->cap_bytes_per_s,
                    .bytes = p->bytes,
                    .owner = r};
    orr_detail__begin(&x->clock, r, &flow);
}

static void handle(void *data, uint32_t class, uint32_t r, uint32_t tag) {
    Run *x = data;
    switch (class) {
    case ORR_DETAIL_START:
        begin(x, r);
        return;
    case ORR_DETAIL_END:
        x->senders[r].is_sending = false;
        sent(x, r, x->clock.now_ns);
        try_send(x, r);
        return;
    case ORR_DETAIL_ARRIVE:
        x->arrived[tag][x->rings->phases[tag].edges[r].to]++;
        x->last_ns = x->clock.now_ns;
        try_send(x, x->rings->phases[tag].edges[r].to);
        return;
    }
}

static void run_events(const OrrRings *r, OrrDetailResult *result) {
    Run x = {.rings = r};
    orr_detail__clock_init(&x.clock, r->n_ranks, r->capacity, r->n_links);
    x.clock.handle = handle;
    x.clock.data = &x;
    x.clock.now_ns = r->start_ns;
    x.senders = g_new0(Sender, r->n_ranks);
    for (uint32_t q = 0; q < r->n_phases; q++)
        x.arrived[q] = g_new0(uint32_t, r->n_ranks);
    for (uint32_t i = 0; i < r->n_ranks; i++)
        try_send(&x, i);
    orr_detail__clock_run(&x.clock);
    result->time_ns = x.last_ns;
    result->n_flows = x.n_flows;
    result->n_shared = x.clock.n_shared;
    result->n_events = x.clock.n_events;
    OrrFluidStats stats = {0};
    if (x.clock.fluid)
        orr_fluid_stats(x.clock.fluid, &stats);
    result->n_solves = stats.solves;
    for (uint32_t q = 0; q < r->n_phases; q++)
        g_free(x.arrived[q]);
    g_free(x.senders);
    orr_detail__clock_clear(&x.clock);
}

void orr_detail__run_rings(const OrrRings *r, bool is_evented, OrrDetailResult *result) {
    (r->n_links > 0 || is_evented ? run_events : add_up)(r, result);
}
