/* Passes remembered: what an island does from the begin of a call to its end, when nothing external
 * reaches into it, depends only on the segment, the hardware of its ranks and when each of them
 * could begin, relative to the first. The first time it is executed event by event and its outcome
 * is recorded; later times the outcome is applied: the same nanoseconds for a hundredth of the
 * work.
 *
 * A call is such a pass if its segment has operations of the compute and TP streams only, no host
 * synchronisation, and waits for other calls at its begin only. It is applied only while the host
 * is ahead of every start in it and no external communication slows the island's kernels. */
#include "sim/exec/exec_priv.h"

#define N_BUCKETS 65536u
#define N_LANES 2 /* compute and TP */

static const uint32_t lanes[N_LANES] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};

typedef struct {
    int64_t free_ns, blocker_end_ns;
    OrrEnded ended, blocker;
} LaneExit;

typedef struct {
    int64_t owner_ns[ORR_N_OWNERS];
    LaneExit lane[N_LANES];
} RankExit;

typedef struct {
    uint32_t rank, lane, item; /* rank: position in the island */
    int64_t end_ns;
} Mark;

typedef struct {
    uint32_t index;
    OrrCommSum sum;
} SumPart;

/* An item of the log: times, ranks and indices relative to the pass. */
typedef struct {
    uint32_t rank, lane, item;
    bool is_before; /* what it waited for ended before the pass */
    OrrLogged logged;
} LogPart;

/* All times relative to the earliest begin. */
typedef struct OrrPass Pass;
struct OrrPass {
    Pass *next;
    uint64_t hash;
    uint32_t segment, n_ranks;
    int64_t *key; /* begin of each lane of each rank; weight and hardware kind of each rank */
    RankExit *exits;
    GArray *marks; /* Mark */
    GArray *sums;  /* SumPart */
    GArray *log;   /* LogPart; NULL without a log */
    bool is_whole;
};

/* What an island is at. */
typedef struct {
    Pass *recording;
    uint32_t n_ready, n_left;
    int64_t first_ns;
} IslandPass;

struct OrrMemo {
    Pass **bucket;
    IslandPass *islands;
    uint8_t *is_pass; /* [n_segments] */
    GPtrArray *all;
};

static bool is_pass_segment(const OrrExec *x, uint32_t s) {
    const OrrCompiledSegment *cs = &x->compiled->segments[s];
    for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
        if (q != ORR_STREAM_COMPUTE && q != ORR_STREAM_TP && cs->n_items[q] > 0)
            return false;
    const OrrItem *item = x->compiled->items + cs->first_item[ORR_STREAM_COMPUTE];
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++)
        if (item[i].is_step_end)
            return false;
    /* the last collective must have waited for one of the same pass */
    return cs->n_syncs == 0 && cs->n_items[ORR_STREAM_COMPUTE] > 0 &&
           cs->n_items[ORR_STREAM_TP] != 1;
}

void orr_exec__memo_new(OrrExec *x) {
    if (x->draws || x->options->probe || x->options->is_plain || x->is_external[ORR_STREAM_TP])
        return;
    uint32_t n = x->bound->program->n_segments;
    x->memo = g_new0(OrrMemo, 1);
    x->memo->bucket = g_new0(Pass *, N_BUCKETS);
    x->memo->islands = g_new0(IslandPass, x->n_islands);
    x->memo->is_pass = g_new0(uint8_t, n + 1);
    x->memo->all = g_ptr_array_new();
    for (uint32_t s = 0; s < n; s++)
        x->memo->is_pass[s] = is_pass_segment(x, s);
}

void orr_exec__memo_clear(OrrExec *x) {
    if (!x->memo)
        return;
    for (guint i = 0; i < x->memo->all->len; i++) {
        Pass *p = x->memo->all->pdata[i];
        g_free(p->key);
        g_free(p->exits);
        g_array_free(p->marks, TRUE);
        g_array_free(p->sums, TRUE);
        if (p->log)
            g_array_free(p->log, TRUE);
        g_free(p);
    }
    g_ptr_array_free(x->memo->all, TRUE);
    g_free(x->memo->bucket);
    g_free(x->memo->islands);
    g_free(x->memo->is_pass);
    g_free(x->memo);
}

static const OrrCompiledRole *role_of(const OrrExec *x, uint32_t r) {
    return &x->compiled->roles[x->bound->role[r]];
}

/* Names a call of a lane over all steps; never 0. */
static uint32_t call_key(const OrrExec *x, uint32_t r, const OrrLane *l) {
    return l->step * role_of(x, r)->n_calls + l->call + 1;
}

static const OrrCompiledSegment *segment_of(const OrrExec *x, uint32_t r, uint32_t *index) {
    const OrrLane *l = &x->ranks[r].lane[ORR_STREAM_COMPUTE];
    *index = role_of(x, r)->calls[l->call].segment;
    return &x->compiled->segments[*index];
}

/* Ranks of the island of @r: a TP group, or itself. */
static uint32_t members(const OrrExec *x, uint32_t r, const uint32_t **list) {
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    if (!x->is_local_group[ORR_GROUP_TP]) {
        *list = NULL;
        return 1;
    }
    uint32_t g = tp->group_of[r];
    *list = tp->members + tp->first_member[g];
    return tp->first_member[g + 1] - tp->first_member[g];
}

/* Whether the head of this lane begins a pass that is to be taken as a whole. */
bool orr_exec__begins_pass(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = &x->ranks[r].lane[s];
    if (!x->memo || l->item != 0 || x->ranks[r].released == call_key(x, r, l))
        return false;
    const OrrCompiledRole *role = role_of(x, r);
    if (!x->memo->is_pass[role->calls[l->call].segment])
        return false;
    const OrrCallRow *row = &role->rows[l->call];
    for (uint32_t i = row->first_cross; i < row[1].first_cross; i++)
        if (role->cross[i].item != 0)
            return false;
    return true;
}

/* The island takes this call event by event: a stream could begin while the other is not there yet,
 * and they slow each other. Ranks that had checked in go on from where they were; none of their
 * streams has done anything since. */
static void opt_out(OrrExec *x, uint32_t r, uint32_t key) {
    const uint32_t *list;
    uint32_t n = members(x, r, &list);
    x->memo->islands[x->island_of[r]].n_ready = 0;
    for (uint32_t m = 0; m < n; m++)
        x->ranks[list ? list[m] : r].released = key;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < N_LANES; k++) {
            uint32_t q = list ? list[m] : r;
            OrrLane *l = &x->ranks[q].lane[lanes[k]];
            if (l->state == ORR_LANE_CHECKED)
                l->state = ORR_LANE_BLOCKED;
            if (l->state == ORR_LANE_BLOCKED)
                orr_exec__try_start(x, q, lanes[k]);
        }
}

/* Whether the other stream can still do something that belongs before this pass. */
static bool is_other_busy(const OrrLane *other, const OrrLane *mine, bool has_items) {
    if (other->state == ORR_LANE_RUNNING || other->state == ORR_LANE_ISSUING)
        return true;
    return has_items &&
           (other->item != 0 || other->call != mine->call || other->step != mine->step);
}

/* A stream of the rank is at the begin of a pass: if both are, and have what they wait for from
 * outside, the rank is ready; if all ranks are, the pass is due. */
void orr_exec__check_in(OrrExec *x, uint32_t r, uint32_t s) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *c = &rank->lane[ORR_STREAM_COMPUTE], *t = &rank->lane[ORR_STREAM_TP];
    const OrrLane *mine = &rank->lane[s];
    const OrrCompiledSegment *cs = &x->compiled->segments[role_of(x, r)->calls[mine->call].segment];
    bool has_tp = cs->n_items[ORR_STREAM_TP] > 0, is_ready = true;
    bool is_busy =
        s == ORR_STREAM_COMPUTE ? is_other_busy(t, c, has_tp) : is_other_busy(c, t, true);
    uint32_t k = s == ORR_STREAM_COMPUTE ? 0 : 1;
    if (is_busy) {
        bool waits_inside = mine->head->n_waits > 0;
        if (!waits_inside && orr_exec__has_begin(x, r, s, k))
            opt_out(x, r, call_key(x, r, mine));
        return;
    }
    for (int i = 0; i < 1 + has_tp; i++)
        is_ready &= orr_exec__has_begin(x, r, lanes[i], (uint32_t)i);
    if (!is_ready)
        return;
    c->state = ORR_LANE_CHECKED;
    if (has_tp)
        t->state = ORR_LANE_CHECKED;
    const uint32_t *list;
    uint32_t n = members(x, r, &list), i = x->island_of[r];
    if (++x->memo->islands[i].n_ready < n)
        return;
    int64_t last = x->now_ns;
    for (uint32_t m = 0; m < n; m++)
        for (int j = 0; j < 1 + has_tp; j++)
            last = MAX(last, x->ranks[list ? list[m] : r].begin_ns[j]);
    orr_exec__push_local(x, r, last, ORR_EV_PASS, 0, r);
}

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u; /* Fibonacci hashing, Knuth vol. 3, 6.4 */
    return h ^ (h >> 29);
}

static Pass *find(const OrrMemo *memo, uint32_t segment, const int64_t *key, uint32_t n,
                  uint64_t *hash) {
    uint64_t h = mix(segment, n);
    for (uint32_t i = 0; i < 3 * n; i++)
        h = mix(h, (uint64_t)key[i]);
    *hash = h;
    for (Pass *p = memo->bucket[h % N_BUCKETS]; p; p = p->next)
        if (p->hash == h && p->segment == segment && p->n_ranks == n &&
            memcmp(p->key, key, 3 * n * sizeof *key) == 0)
            return p;
    return NULL;
}

static OrrEnded shifted(OrrEnded e, int64_t by_ns, uint32_t step) {
    e.start_ns += by_ns;
    e.arrived_ns += by_ns;
    e.step = step;
    return e;
}

/* Nothing external reaches in, and the host is ahead of every start. */
static bool is_closed(const OrrExec *x, uint32_t r, uint32_t n, const uint32_t *list,
                      const OrrCompiledSegment *cs, int64_t first_ns) {
    const OrrIsland *island = &x->islands[x->island_of[r]];
    if (island->n_unstable > 0 || island->n_pending > 0)
        return false;
    for (uint32_t m = 0; m < n; m++) {
        uint32_t q = list ? list[m] : r;
        if (x->ranks[q].rate[0] != ORR_RATE_ONE || x->ranks[q].rate[1] != ORR_RATE_ONE ||
            orr_exec__host_at(x, q, ORR_STREAM_COMPUTE) + cs->host_ns > first_ns)
            return false;
    }
    return true;
}

static void apply_rank(OrrExec *x, uint32_t q, const OrrCompiledSegment *cs, const RankExit *e,
                       int64_t first_ns) {
    OrrRank *rank = &x->ranks[q];
    for (int o = 0; o < ORR_N_OWNERS; o++)
        rank->owner_ns[o] += e->owner_ns[o];
    for (int k = 0; k < N_LANES; k++) {
        uint32_t s = lanes[k], n = cs->n_items[s];
        OrrLane *l = &rank->lane[s];
        if (n == 0)
            continue;
        l->free_ns = first_ns + e->lane[k].free_ns;
        OrrTrail *trail = &rank->trail[s];
        trail->ended = shifted(e->lane[k].ended, first_ns, l->step);
        trail->ended_blocker = shifted(e->lane[k].blocker, first_ns, l->step);
        trail->ended_blocker_end_ns = first_ns + e->lane[k].blocker_end_ns;
        l->completed += n;
        l->item = n;
        l->state = ORR_LANE_BLOCKED;
        orr_exec__settle_head(x, q, s);
    }
    rank->idle_from_ns = rank->lane[ORR_STREAM_COMPUTE].free_ns;
}

/* For the path, should it come by. */
static void note_taken(OrrExec *x, uint32_t q, uint32_t position, const Pass *p, int64_t first_ns) {
    const OrrRank *rank = &x->ranks[q];
    const OrrLane *l = &rank->lane[ORR_STREAM_COMPUTE];
    OrrTaken *t = orr_exec__taken(x, q, l->step, l->call);
    *t = (OrrTaken){.pass = p, .first_ns = first_ns, .step = l->step, .position = position};
    memcpy(t->begin_cause, rank->begin_cause, sizeof t->begin_cause);
    memcpy(t->begin_index, rank->begin_index, sizeof t->begin_index);
}

static void apply(OrrExec *x, uint32_t r, uint32_t n, const uint32_t *list,
                  const OrrCompiledSegment *cs, const Pass *p, int64_t first_ns) {
    const OrrProgram *program = x->bound->program;
    uint32_t step = x->ranks[r].lane[ORR_STREAM_COMPUTE].step;
    for (guint i = 0; i < p->marks->len; i++) {
        const Mark *m = &g_array_index(p->marks, Mark, i);
        uint32_t q = list ? list[m->rank] : r;
        orr_exec__remember_at(x, q, m->lane, x->ranks[q].lane[m->lane].completed + m->item,
                              first_ns + m->end_ns);
    }
    for (uint32_t m = 0; x->log && m < n; m++)
        note_taken(x, list ? list[m] : r, m, p, first_ns);
    for (uint32_t m = 0; m < n; m++)
        apply_rank(x, list ? list[m] : r, cs, &p->exits[m], first_ns);
    OrrCommSum *sums = x->sums + (gsize)(step % ORR_WINDOWS) * (program->n_colls + program->n_p2ps);
    for (guint i = 0; i < p->sums->len; i++) {
        const SumPart *part = &g_array_index(p->sums, SumPart, i);
        sums[part->index].count += part->sum.count;
        sums[part->index].transfer_ns += part->sum.transfer_ns;
        sums[part->index].wait_ns += part->sum.wait_ns;
        sums[part->index].exposed_ns += part->sum.exposed_ns;
    }
    x->now_ns = first_ns;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < N_LANES; k++)
            orr_exec__wake(x, list ? list[m] : r, lanes[k]);
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < N_LANES; k++)
            orr_exec__try_start(x, list ? list[m] : r, lanes[k]);
}

/* Executes the pass event by event, recording it if @p. */
static void release(OrrExec *x, uint32_t r, uint32_t n, const uint32_t *list,
                    const OrrCompiledSegment *cs, Pass *p, int64_t first_ns) {
    IslandPass *island = &x->memo->islands[x->island_of[r]];
    bool has_tp = cs->n_items[ORR_STREAM_TP] > 0;
    island->recording = p;
    island->first_ns = first_ns;
    island->n_left = n * (1 + has_tp);
    for (uint32_t m = 0; m < n; m++) {
        OrrRank *rank = &x->ranks[list ? list[m] : r];
        rank->released = call_key(x, list ? list[m] : r, &rank->lane[ORR_STREAM_COMPUTE]);
        rank->recorded = p ? rank->released : 0;
        for (int k = 0; k < 1 + has_tp; k++)
            rank->lane[lanes[k]].state = ORR_LANE_BLOCKED;
        for (int o = 0; p && o < ORR_N_OWNERS; o++)
            p->exits[m].owner_ns[o] = -rank->owner_ns[o];
    }
    x->now_ns = first_ns;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < 1 + has_tp; k++)
            orr_exec__try_start(x, list ? list[m] : r, lanes[k]);
}

static Pass *pass_new(OrrMemo *memo, uint32_t segment, const int64_t *key, uint32_t n,
                      uint64_t hash, bool has_log) {
    Pass *p = g_new0(Pass, 1);
    p->hash = hash;
    p->segment = segment;
    p->n_ranks = n;
    p->key = g_memdup2(key, 3 * n * sizeof *key);
    p->exits = g_new0(RankExit, n);
    p->marks = g_array_new(FALSE, FALSE, sizeof(Mark));
    p->sums = g_array_new(FALSE, FALSE, sizeof(SumPart));
    p->log = has_log ? g_array_new(FALSE, FALSE, sizeof(LogPart)) : NULL;
    g_ptr_array_add(memo->all, p);
    return p;
}

void orr_exec__pass(OrrExec *x, uint32_t r) {
    OrrMemo *memo = x->memo;
    const uint32_t *list;
    uint32_t n = members(x, r, &list), index;
    const OrrCompiledSegment *cs = segment_of(x, r, &index);
    int64_t first = INT64_MAX, key[3 * ORR_MAX_ISLAND];
    bool has_tp = cs->n_items[ORR_STREAM_TP] > 0;
    memo->islands[x->island_of[r]].n_ready = 0;
    for (uint32_t m = 0; m < n; m++) {
        OrrRank *rank = &x->ranks[list ? list[m] : r];
        for (int k = 0; k < 1 + has_tp; k++)
            first = MIN(first, rank->begin_ns[k]);
        orr_exec__idle(x, list ? list[m] : r, rank->begin_cause[0], rank->begin_ns[0],
                       rank->begin_ns[0]);
    }
    for (uint32_t m = 0; m < n; m++) {
        uint32_t q = list ? list[m] : r;
        key[3 * m] = x->ranks[q].begin_ns[0] - first;
        key[3 * m + 1] = has_tp ? x->ranks[q].begin_ns[1] - first : 0;
        key[3 * m + 2] = (int64_t)((uint64_t)x->bound->weight[q] << 32 | x->bound->hw[q]);
    }
    if (!is_closed(x, r, n, list, cs, first)) {
        release(x, r, n, list, cs, NULL, first);
        return;
    }
    uint64_t hash;
    Pass *p = find(memo, index, key, n, &hash);
    if (p && p->is_whole)
        apply(x, r, n, list, cs, p, first);
    else
        release(x, r, n, list, cs, p ? NULL : pass_new(memo, index, key, n, hash, x->log != NULL),
                first);
}

static uint32_t position_in(uint32_t r, uint32_t n, const uint32_t *list) {
    for (uint32_t m = 0; list && m < n; m++)
        if (list[m] == r)
            return m;
    return 0;
}

static Pass *recording(const OrrExec *x, uint32_t r, uint32_t s) {
    if (!x->memo || (s != ORR_STREAM_COMPUTE && s != ORR_STREAM_TP))
        return NULL;
    Pass *p = x->memo->islands[x->island_of[r]].recording;
    return p && x->ranks[r].recorded == call_key(x, r, &x->ranks[r].lane[s]) ? p : NULL;
}

void orr_exec__memo_sum(OrrExec *x, uint32_t r, uint32_t s, uint32_t index, const OrrCommSum *add) {
    Pass *p = recording(x, r, s);
    if (!p)
        return;
    for (guint i = 0; i < p->sums->len; i++) {
        SumPart *part = &g_array_index(p->sums, SumPart, i);
        if (part->index != index)
            continue;
        part->sum.count += add->count;
        part->sum.transfer_ns += add->transfer_ns;
        part->sum.wait_ns += add->wait_ns;
        part->sum.exposed_ns += add->exposed_ns;
        return;
    }
    SumPart part = {index, *add};
    g_array_append_val(p->sums, part);
}

/* Called before the lane moves on: its item ends now and external streams may ask for it. */
void orr_exec__memo_mark(OrrExec *x, uint32_t r, uint32_t s) {
    Pass *p = recording(x, r, s);
    if (!p)
        return;
    const uint32_t *list;
    uint32_t n = members(x, r, &list);
    Mark mark = {position_in(r, n, list), s, x->ranks[r].lane[s].item,
                 x->now_ns - x->memo->islands[x->island_of[r]].first_ns};
    g_array_append_val(p->marks, mark);
}

/* Items of @s before this call, from the first step on. */
static uint32_t items_before(const OrrExec *x, uint32_t r, uint32_t s, uint32_t step,
                             uint32_t call) {
    const OrrCompiledRole *role = role_of(x, r);
    return step * role->rows[role->n_calls].base[s] + role->rows[call].base[s];
}

/* An item that has just been logged is one of the pass in hand, perhaps. */
void orr_exec__memo_log(OrrExec *x, uint32_t r, uint32_t s, const OrrLogged *logged) {
    Pass *p = recording(x, r, s);
    if (!p)
        return;
    const uint32_t *list;
    uint32_t n = members(x, r, &list);
    const OrrLane *l = &x->ranks[r].lane[s];
    uint32_t before = items_before(x, r, logged->pred_stream, l->step, l->call);
    int64_t first = x->memo->islands[x->island_of[r]].first_ns;
    LogPart part = {.rank = position_in(r, n, list),
                    .lane = s,
                    .item = l->item,
                    .is_before = logged->pred_index == ORR_NONE || logged->pred_index < before,
                    .logged = *logged};
    part.logged.start_ns -= first;
    part.logged.arrived_ns -= first;
    part.logged.end_ns -= first;
    part.logged.pred_index -= before;
    if (logged->type == ORR_ITEM_COLL)
        part.logged.last_rank = position_in(logged->last_rank, n, list);
    g_array_append_val(p->log, part);
}

/* Writes the items of a rank in a pass taken as a whole into the log. */
void orr_exec__memo_expand(const OrrExec *x, uint32_t r, uint32_t call, const OrrTaken *t) {
    const uint32_t *list;
    members(x, r, &list);
    for (guint i = 0; i < t->pass->log->len; i++) {
        const LogPart *part = &g_array_index(t->pass->log, LogPart, i);
        if (part->rank != t->position)
            continue;
        uint32_t k = part->lane == ORR_STREAM_COMPUTE ? 0 : 1;
        uint32_t index = items_before(x, r, part->lane, t->step, call) + part->item;
        OrrLogged *g = orr_exec__logged(x, r, part->lane, index);
        *g = part->logged;
        g->start_ns += t->first_ns;
        g->arrived_ns += t->first_ns;
        g->end_ns += t->first_ns;
        if (g->type == ORR_ITEM_COLL)
            g->last_rank = list ? list[g->last_rank] : r;
        if (part->is_before) {
            g->pred = t->begin_cause[k] == part->lane ? ORR_PRED_PREVIOUS : ORR_PRED_WAIT;
            g->pred_stream = (uint8_t)t->begin_cause[k];
            g->pred_index = t->begin_index[k];
        } else {
            g->pred_index += items_before(x, r, g->pred_stream, t->step, call);
        }
    }
}

static void finish(OrrExec *x, IslandPass *island, Pass *p) {
    Pass **bucket = &x->memo->bucket[p->hash % N_BUCKETS];
    p->is_whole = true;
    p->next = *bucket;
    *bucket = p;
    island->recording = NULL;
}

/* Called when an item of the lane has ended and before it moves on to the next: if it was the last
 * of the call, its exit is noted. */
void orr_exec__memo_item(OrrExec *x, uint32_t r, uint32_t s) {
    Pass *p = recording(x, r, s);
    OrrRank *rank = &x->ranks[r];
    OrrLane *l = &rank->lane[s];
    if (!p || l->item + 1 < x->compiled->segments[p->segment].n_items[s])
        return;
    IslandPass *island = &x->memo->islands[x->island_of[r]];
    const uint32_t *list;
    uint32_t n = members(x, r, &list), k = s == ORR_STREAM_COMPUTE ? 0 : 1;
    RankExit *e = &p->exits[position_in(r, n, list)];
    e->lane[k].free_ns = x->now_ns - island->first_ns;
    e->lane[k].ended = shifted(rank->trail[s].ended, -island->first_ns, 0);
    e->lane[k].blocker = shifted(rank->trail[s].ended_blocker, -island->first_ns, 0);
    e->lane[k].blocker_end_ns = rank->trail[s].ended_blocker_end_ns - island->first_ns;
    for (int o = 0; k == 0 && o < ORR_N_OWNERS; o++)
        e->owner_ns[o] += rank->owner_ns[o];
    if (--island->n_left == 0)
        finish(x, island, p);
}
