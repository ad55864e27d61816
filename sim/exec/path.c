/* The critical path: from the last event back over what each item waited for. No bubble lies on it:
 * it is work, transfers, latencies and the host. Its parts tile the step exactly. */
#include "sim/exec/exec_priv.h"

OrrLogged *orr_exec__logged(const OrrExec *x, uint32_t r, uint32_t s, uint32_t index) {
    uint32_t items = x->lane_items[x->bound->role[r] * ORR_N_STREAMS + s];
    return &x->log[x->log_first[(gsize)r * ORR_N_STREAMS + s] + index % (items * ORR_LOG_STEPS)];
}

OrrTaken *orr_exec__taken(const OrrExec *x, uint32_t r, uint32_t step, uint32_t call) {
    return &x->taken[((gsize)r * ORR_LOG_STEPS + step % ORR_LOG_STEPS) * x->taken_calls + call];
}

/* The call that has item @item of a step on stream @s: the last that begins with it or before. */
static uint32_t call_of(const OrrCompiledRole *role, uint32_t s, uint32_t item) {
    uint32_t low = 0, high = role->n_calls;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (role->rows[middle].base[s] <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* An item of the log. A pass that was taken as a whole is written there when it is asked for. */
static OrrLogged *slot(const OrrExec *x, uint32_t r, uint32_t s, uint32_t index) {
    if (x->is_external[s])
        return orr_exec__logged(x, r, s, index);
    uint32_t items = x->lane_items[x->bound->role[r] * ORR_N_STREAMS + s], step = index / items;
    uint32_t call = call_of(&x->compiled->roles[x->bound->role[r]], s, index % items);
    OrrTaken *t = orr_exec__taken(x, r, step, call);
    if (t->is_set && t->step == step)
        orr_exec__log_pass(x, r, step, call);
    return orr_exec__logged(x, r, s, index);
}

void orr_exec__log(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    const OrrLane *l = &x->ranks[r].lane[s];
    const OrrTrail *trail = &x->ranks[r].trail[s];
    OrrLogged *g = orr_exec__logged(x, r, s, l->completed);
    *g = (OrrLogged){.start_ns = l->start_ns,
                     .arrived_ns = l->arrived_ns,
                     .end_ns = x->now_ns,
                     .latency_ns = trail->latency_ns,
                     .what = item->what,
                     .last_rank = trail->last_rank,
                     .type = item->type,
                     .pred = l->pred,
                     .pred_stream = l->pred_stream,
                     .pred_index = l->pred_index};
    if (item->type == ORR_ITEM_BLOCK && s == ORR_STREAM_COMPUTE) {
        g->gap_ns = x->ranks[r].progress.gap_ns;
        g->extra_ns = x->ranks[r].progress.extra_ns;
    }
}

/* Where the walk back stands: everything after `at_ns` is charged. */
typedef struct {
    int64_t at_ns, begin_ns;
    int64_t *path_ns;
} Walk;

static void charge(Walk *w, uint32_t owner, int64_t from_ns) {
    int64_t from = MAX(from_ns, w->begin_ns);
    if (from < w->at_ns) {
        w->path_ns[owner] += w->at_ns - from;
        w->at_ns = from;
    }
}

/* A block that lies wholly after the begin is charged by its shares, one that is cut by its first
 * kind: the begin of a step cuts at most one. */
static void charge_block(const OrrExec *x, uint32_t r, const OrrLogged *g, Walk *w) {
    const OrrBlockTime *t =
        &x->compiled->times[(gsize)x->bound->hw[r] * x->compiled->n_blocks + g->what];
    if (g->start_ns >= w->begin_ns && g->end_ns == w->at_ns && !x->draws) {
        for (uint32_t i = 0; i < t->n_shares; i++)
            w->path_ns[x->compiled->shares[t->first_share + i].kind] +=
                x->compiled->shares[t->first_share + i].ns;
        w->path_ns[ORR_PATH_HOST] += g->end_ns - g->start_ns - t->work_ns - g->extra_ns;
        w->path_ns[ORR_PATH_INTERFERENCE] += g->extra_ns;
        w->at_ns = g->start_ns;
        return;
    }
    charge(w, x->compiled->shares[t->first_share].kind, g->start_ns);
}

static uint32_t purpose_of(const OrrExec *x, const OrrLogged *g) {
    OrrItem item = {.type = g->type, .what = g->what};
    bool takes_sms;
    return orr_exec__purpose(x, &item, &takes_sms);
}

/* Index of the item of rank @r, stream @s that launched the meeting at @arrived_ns. */
static uint32_t find_launch(const OrrExec *x, uint32_t r, uint32_t s, uint32_t from,
                            int64_t arrived_ns) {
    uint32_t items = x->lane_items[x->bound->role[r] * ORR_N_STREAMS + s];
    for (uint32_t back = 0; back < items * ORR_LOG_STEPS && back <= from; back++) {
        const OrrLogged *g = slot(x, r, s, from - back);
        /* with jitter the last one is later in the mean than each of them */
        if (g->start_ns == arrived_ns || (x->jitter && g->start_ns < arrived_ns))
            return from - back;
        if (g->start_ns < arrived_ns)
            break;
    }
    return ORR_NONE;
}

/* The partner's stream may be another one (send meets receive). */
static bool jump_to_last(const OrrExec *x, const OrrLogged *g, uint32_t *r, uint32_t *s,
                         uint32_t *index) {
    for (uint32_t q = 0; q < ORR_N_STREAMS; q++) {
        uint32_t stream = (*s + q) % ORR_N_STREAMS;
        uint32_t n = x->ranks[g->last_rank].lane[stream].completed;
        if (n == 0 || stream == ORR_STREAM_COMPUTE || stream == ORR_STREAM_HOST)
            continue;
        uint32_t found = find_launch(x, g->last_rank, stream, n - 1, g->arrived_ns);
        if (found == ORR_NONE || slot(x, g->last_rank, stream, found)->type != g->type)
            continue;
        *r = g->last_rank;
        *s = stream;
        *index = found;
        return true;
    }
    return false;
}

/* Steps from item to predecessor; false at the end of the path. */
static bool step_back(const OrrExec *x, Walk *w, uint32_t *r, uint32_t *s, uint32_t *index) {
    const OrrLogged *g = slot(x, *r, *s, *index);
    if (g->type == ORR_ITEM_BLOCK) {
        charge_block(x, *r, g, w);
    } else {
        charge(w, ORR_PATH_TRANSFER_FIRST + purpose_of(x, g), g->arrived_ns + g->latency_ns);
        charge(w, ORR_PATH_LATENCY_FIRST + purpose_of(x, g), g->arrived_ns);
        if (g->last_rank != *r && g->arrived_ns > g->start_ns && w->at_ns > w->begin_ns &&
            jump_to_last(x, g, r, s, index))
            g = slot(x, *r, *s, *index);
        charge(w,
               x->jitter ? (uint32_t)ORR_PATH_JITTER : ORR_PATH_TRANSFER_FIRST + purpose_of(x, g),
               g->start_ns);
    }
    if (w->at_ns <= w->begin_ns || g->pred_index == ORR_NONE || g->pred == ORR_PRED_HOST)
        return false;
    *s = g->pred_stream;
    *index = g->pred_index;
    bool is_late = x->jitter && g->pred != ORR_PRED_HOST_SYNC;
    charge(w, is_late ? ORR_PATH_JITTER : ORR_PATH_HOST, slot(x, *r, *s, *index)->end_ns);
    return w->at_ns > w->begin_ns;
}

void orr_exec__path(const OrrExec *x, int64_t begin_ns, int64_t end_ns, uint32_t step,
                    int64_t path_ns[ORR_N_PATH_OWNERS]) {
    const int64_t *end = x->end_ns + (gsize)step * x->bound->n_ranks;
    Walk w = {end_ns, begin_ns, path_ns};
    uint32_t r = 0, s = ORR_STREAM_COMPUTE;
    while (end[r] != end_ns)
        r++;
    uint32_t index = x->ranks[r].lane[s].completed - 1;
    while (slot(x, r, s, index)->end_ns > end_ns)
        index--;
    while (step_back(x, &w, &r, &s, &index))
        continue;
    charge(&w, ORR_PATH_HOST, begin_ns);
}
