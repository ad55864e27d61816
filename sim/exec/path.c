/* The critical path: from the last event back over what each item waited for. No bubble lies on it:
 * it is work, transfers, latencies and the host. Its parts tile the step exactly.
 *
 * Where several would do, the smallest counts: of two streams that end together, of ranks that come
 * to a meeting together, of ranks that end the step together. */
#include "sim/exec/way.h"

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

typedef struct {
    uint32_t rank, what;
    int64_t start_ns, end_ns, extra_ns;
} Block;

/* A block that lies wholly after the begin is charged by its shares, one that is cut by its first
 * kind: the begin of a step cuts at most one. */
static void charge_block(const OrrExec *x, const Block *b, Walk *w) {
    const OrrBlockTime *t =
        &x->compiled->times[(gsize)x->bound->hw[b->rank] * x->compiled->n_blocks + b->what];
    if (b->start_ns >= w->begin_ns && b->end_ns == w->at_ns && !x->draws) {
        for (uint32_t i = 0; i < t->n_shares; i++)
            w->path_ns[x->compiled->shares[t->first_share + i].kind] +=
                x->compiled->shares[t->first_share + i].ns;
        w->path_ns[ORR_PATH_HOST] += b->end_ns - b->start_ns - t->work_ns - b->extra_ns;
        w->path_ns[ORR_PATH_INTERFERENCE] += b->extra_ns;
        w->at_ns = b->start_ns;
        return;
    }
    charge(w, x->compiled->shares[t->first_share].kind, b->start_ns);
}

static void charge_item(const OrrExec *x, const OrrCause *c, Walk *w) {
    if (c->type == ORR_CAUSE_BLOCK) {
        Block b = {c->rank, c->what, c->ns[ORR_CAUSE_START], c->ns[ORR_CAUSE_END],
                   c->ns[ORR_CAUSE_PART]};
        charge_block(x, &b, w);
        return;
    }
    uint32_t transfer = ORR_PATH_TRANSFER_FIRST + c->what;
    charge(w, transfer, c->ns[ORR_CAUSE_ARRIVED] + c->ns[ORR_CAUSE_PART]);
    charge(w, ORR_PATH_LATENCY_FIRST + c->what, c->ns[ORR_CAUSE_ARRIVED]);
    charge(w, x->jitter ? (uint32_t)ORR_PATH_JITTER : transfer, c->ns[ORR_CAUSE_START]);
}

static void charge_pass_item(const OrrExec *x, const OrrPassWork *pass, const OrrPassSpot *at,
                             Walk *w) {
    int64_t end_ns = orr_exec__pass_end(pass, at), start_ns = orr_exec__pass_start(x, pass, at);
    const OrrItem *item = orr_pass__item(x, pass->segment, orr_pass_lane[at->lane], at->item);
    uint32_t r = pass->members[at->member].rank;
    if (item->type == ORR_ITEM_BLOCK) {
        gsize t = (gsize)x->bound->hw[r] * x->compiled->n_blocks + item->what;
        Block b = {r, item->what, start_ns, end_ns,
                   end_ns - start_ns - x->compiled->times[t].work_ns};
        charge_block(x, &b, w);
        return;
    }
    const OrrColl *coll = &x->bound->program->colls[item->what];
    uint32_t group = x->bound->groups[coll->group].group_of[r];
    const OrrPlan *plan = orr_exec__private_plan(x, coll->group, group, item->what);
    int64_t arrived_ns = end_ns - orr_exec__private_ns(plan);
    charge(w, ORR_PATH_TRANSFER_FIRST + coll->purpose, arrived_ns + plan->latency_ns);
    charge(w, ORR_PATH_LATENCY_FIRST + coll->purpose, arrived_ns);
}

/* From an item of a pass that was taken as a whole back to the begin of the pass. */
static void walk_pass(const OrrExec *x, const OrrCause *way, const OrrCauseSpot *from,
                      uint32_t gap_owner, Walk *w) {
    OrrPassSpot at;
    const OrrPassWork *pass = orr_exec__pass_again(x, way);
    orr_exec__pass_find(x, pass, from->rank, from->stream, from->index, &at);
    charge(w, gap_owner, orr_exec__pass_end(pass, &at));
    do {
        if (w->at_ns <= w->begin_ns)
            return;
        charge_pass_item(x, pass, &at, w);
    } while (orr_exec__pass_back(x, pass, &at));
    g_assert(pass->members[at.member].rank == way->rank);
}

void orr_exec__path(const OrrExec *x, int64_t begin_ns, int64_t end_ns, uint32_t step,
                    int64_t path_ns[ORR_N_PATH_OWNERS]) {
    Walk w = {end_ns, begin_ns, path_ns};
    OrrCauseSpot at = x->causes->ends[step].spot;
    uint32_t gap_owner = ORR_PATH_HOST; /* between an item and the end of what it waited for */
    while (at.cause != ORR_NONE && w.at_ns > begin_ns) {
        const OrrCause *c = orr_exec__cause(x, at.cause);
        if (c->type == ORR_CAUSE_WAY) {
            walk_pass(x, c, &at, gap_owner, &w);
        } else {
            charge(&w, gap_owner, c->ns[ORR_CAUSE_END]);
            charge_item(x, c, &w);
        }
        bool is_late = x->jitter && c->pred != ORR_PRED_HOST_SYNC;
        gap_owner = is_late ? ORR_PATH_JITTER : ORR_PATH_HOST;
        at = (OrrCauseSpot){c->cause, c->rank, c->pred_stream, c->pred_index};
    }
    charge(&w, ORR_PATH_HOST, begin_ns);
}
