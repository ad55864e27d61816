/* Checking in for a pass: a member is ready when its compute and TP streams are at the begin of the
 * call and have what they wait for outside of it; when all are, the pass is due.
 *
 * Both streams are asked each time, since what one waits for may be an older item by the time the
 * other has all: an end is noted when it is the last of its stream, or never. Members of an island
 * do the same, as a rule at the same time, so what is waited for is looked up once for all. Cost:
 * a few instructions a member and wait. What is inlined by force is so for each of the two lanes by
 * itself: what differs between them is known then. */
#include "sim/base/large.h"
#include "sim/exec/cause.h"
#include "sim/exec/pass.h"

#include <string.h>

/* Waits of lane @k across calls. */
static OrrPassNeed *add_needs(const OrrExec *x, const OrrCompiledRole *role, uint32_t call,
                              uint32_t k, OrrPassNeed *to) {
    const uint32_t *first = &role->first_cross[call * ORR_N_STREAMS + orr_pass_lane[k]];
    for (int is_local = 0; is_local < 2; is_local++)
        for (uint32_t i = first[0]; i < first[1]; i++) {
            const OrrCrossWait *c = &role->cross[i];
            if (x->is_external[c->src_stream] != is_local)
                *to++ = (OrrPassNeed){c->src_stream, c->src_count,
                                      role->rows[role->n_calls].base[c->src_stream], c->steps_back};
        }
    return to;
}

void orr_pass__needs_new(const OrrExec *x) {
    OrrPasses *p = x->passes;
    uint32_t n_roles = x->bound->program->n_roles, n = 0;
    for (uint32_t r = 0; r < n_roles; r++)
        n += x->compiled->roles[r].rows[x->compiled->roles[r].n_calls].first_cross;
    OrrPassNeed *to = p->all_needs = g_new(OrrPassNeed, n + 1);
    p->needs = g_new(OrrPassNeeds *, n_roles + 1);
    for (uint32_t r = 0; r < n_roles; r++) {
        const OrrCompiledRole *role = &x->compiled->roles[r];
        p->needs[r] = g_new0(OrrPassNeeds, role->n_calls + 1);
        for (uint32_t c = 0; c < role->n_calls; c++) {
            OrrPassNeeds *needs = &p->needs[r][c];
            const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[c].segment];
            needs->n_lanes = cs->n_items[ORR_STREAM_TP] > 0 ? 2 : 1;
            needs->n_synced = role->rows[c].syncs_before;
            for (uint32_t k = 0; k < needs->n_lanes; k++) {
                needs->needs[k] = to;
                to = add_needs(x, role, c, k, to);
                needs->n[k] = (uint32_t)(to - needs->needs[k]);
            }
        }
    }
}

void orr_pass__needs_clear(const OrrExec *x) {
    OrrPasses *p = x->passes;
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++)
        g_free(p->needs[r]);
    g_free(p->needs);
    g_free(p->all_needs);
}

/* A call at whose begin streams are. */
typedef struct {
    const OrrPassNeeds *needs;
    uint32_t step, key;
    uint32_t n_synced; /* host synchronisations that it waits for */
} Call;

static Call call_of(const OrrExec *x, uint32_t r, const OrrLane *l) {
    const OrrCompiledRole *role = orr_pass__role(x, r);
    const OrrPassNeeds *needs = &orr_pass__of(x, r)->needs[l->call];
    return (Call){needs, l->step, orr_pass__key(x, r, l),
                  l->step * role->rows[role->n_calls].syncs_before + needs->n_synced};
}

/* Items that must have ended; 0: in this step none. */
static inline uint32_t count_of(const OrrPassNeed *need, uint32_t step) {
    return need->steps_back <= step ? (step - need->steps_back) * need->in_step + need->n : 0;
}

/* Lane @k of the rank has had all that it waits for from outside since @at_ns, last of all item
 * @index of stream @cause. */
static ORR_INLINE void note_lane(const OrrExec *x, uint32_t r, uint32_t k, uint32_t key,
                                 int64_t at_ns, uint32_t cause, uint32_t index) {
    const OrrBegins *b = &x->passes->begins;
    b->begin_ns[r][k] = at_ns;
    b->state[r].cause[k] = cause;
    b->index[r][k] = index;
    b->key[r][k] = key;
    if (x->leaves_records)
        b->made[r][k] = orr_exec__last_cause(x, r, cause);
    if (k == 1 && cause != orr_pass_lane[k])
        b->blocker[r] = *orr_exec__ended(x, r, cause);
}

/* Changes of the rates of its kernels are noted from now on. */
static ORR_INLINE void note_state(OrrExec *x, const OrrIslandPass *pass, uint32_t r) {
    if (x->passes->begins.state[r].state == ORR_RATE_NOW)
        orr_pass__note_rates(x, pass, r);
    else
        orr_pass__begin_rates(x, r);
}

/* Whether stream @q, which ended at @end_ns, is what came last. */
static inline bool is_last(int64_t end_ns, uint32_t q, int64_t at_ns, uint32_t cause, uint32_t s) {
    return end_ns > at_ns || (end_ns == at_ns && cause != s && q < cause);
}

/* Notes since when lane @k of the rank has all, and what came last. What is older than the last of
 * its stream ended before anything that counts: see consider in lane.c. */
static void begin(OrrExec *x, OrrIslandPass *pass, uint32_t r, uint32_t k, const Call *call) {
    const OrrPassNeed *needs = call->needs->needs[k];
    uint32_t s = orr_pass_lane[k], cause = s;
    int64_t at_ns = *orr_exec__free_ns(x, r, s);
    for (uint32_t i = 0; i < call->needs->n[k]; i++) {
        uint32_t q = needs[i].stream;
        int64_t end_ns = *orr_exec__free_ns(x, r, q);
        if (is_last(end_ns, q, at_ns, cause, s) &&
            orr_exec__lane(x, r, q)->completed == count_of(&needs[i], call->step)) {
            at_ns = end_ns;
            cause = q;
        }
    }
    note_lane(x, r, k, call->key, at_ns, cause, orr_exec__lane(x, r, cause)->completed - 1);
    if (k == 0) {
        orr_exec__idle(x, r, cause, at_ns, at_ns);
        note_state(x, pass, r);
    }
    pass->n_begun += k == 0;
    pass->key = k == 0 ? call->key : pass->key;
}

/* As note_lane of all members, who are alike. */
static ORR_INLINE void note_lanes(const OrrExec *x, const OrrIslandPass *pass, uint32_t k,
                                  uint32_t key, const int64_t *at_ns, const uint32_t *cause) {
    const OrrBegins b = x->passes->begins;
    const uint32_t *list = pass->list, n = pass->n, own = orr_pass_lane[k];
    const OrrLane *lanes = ORR_STORED(x, pass->first, lanes, OrrLane);
    const OrrEnded *ended = ORR_STORED(x, pass->first, ended, OrrEnded);
    for (uint32_t m = 0; m < n; m++) {
        uint32_t r = list[m], row = x->row_at[cause[m]];
        b.begin_ns[r][k] = at_ns[m];
        b.key[r][k] = key;
        b.index[r][k] = lanes[row].completed - 1;
        b.state[r].cause[k] = cause[m];
        if (k == 1 && cause[m] != own)
            b.blocker[r] = ended[row + m];
    }
    for (uint32_t m = 0; x->leaves_records && m < n; m++)
        b.made[list[m]][k] = orr_exec__last_cause(x, list[m], cause[m]);
}

/* The same of all members, who are alike. */
static ORR_INLINE void begin_all(OrrExec *x, OrrIslandPass *pass, uint32_t k, const Call *call) {
    const OrrPassNeed *needs = call->needs->needs[k];
    uint32_t s = orr_pass_lane[k], cause[ORR_MAX_ISLAND];
    int64_t at_ns[ORR_MAX_ISLAND];
    memcpy(at_ns, orr_exec__free_ns(x, pass->first, s), pass->n * sizeof *at_ns);
    for (uint32_t m = 0; m < pass->n; m++)
        cause[m] = s;
    for (uint32_t i = 0; i < call->needs->n[k]; i++) {
        uint32_t q = needs[i].stream;
        const int64_t *end_ns = orr_exec__free_ns(x, pass->first, q);
        if (orr_exec__joint_lane(x, pass->first, q)->completed != count_of(&needs[i], call->step))
            continue;
        for (uint32_t m = 0; m < pass->n; m++)
            if (is_last(end_ns[m], q, at_ns[m], cause[m], s)) {
                at_ns[m] = end_ns[m];
                cause[m] = q;
            }
    }
    note_lanes(x, pass, k, call->key, at_ns, cause);
    if (k == 0)
        orr_exec__idle_all(x, pass->list, pass->n, cause, at_ns);
    for (uint32_t m = 0; k == 0 && m < pass->n; m++)
        note_state(x, pass, pass->list[m]);
    pass->n_begun += k == 0 ? pass->n : 0;
    pass->key = k == 0 ? call->key : pass->key;
}

/* The first that lane @k has not got, an external stream if there is; ORR_N_STREAMS: none. */
static ORR_INLINE uint32_t missing_of(const OrrExec *x, uint32_t r, uint32_t k, const Call *call,
                                      uint32_t *need) {
    const OrrPassNeed *needs = call->needs->needs[k];
    for (uint32_t i = 0; i < call->needs->n[k]; i++) {
        *need = count_of(&needs[i], call->step);
        if (orr_exec__lane(x, r, needs[i].stream)->completed < *need)
            return needs[i].stream;
    }
    *need = call->n_synced;
    return orr_exec__has_synced(x, r, *need) ? ORR_N_STREAMS : ORR_STREAM_HOST;
}

/* Whether lane @k has all that it waits for from outside; if not, it waits for the first that is
 * missing. */
static ORR_INLINE bool has_begin(OrrExec *x, uint32_t r, uint32_t k, const Call *call) {
    uint32_t s = orr_pass_lane[k], need;
    if (x->passes->begins.key[r][k] == call->key)
        return true;
    if (orr_exec__is_blocked(x, r, s))
        return false;
    uint32_t missing = missing_of(x, r, k, call, &need);
    orr_exec__block_on(x, r, s, missing, need);
    orr_exec__hold(x, r, s, missing < ORR_N_STREAMS && x->is_external[missing]);
    if (missing < ORR_N_STREAMS)
        return false;
    begin(x, orr_pass__of(x, r), r, k, call);
    return true;
}

/* All members are ready: the pass is due when the last of them is. */
static void schedule(OrrExec *x, const Call *call, const uint32_t *list, uint32_t n) {
    int64_t last = x->now_ns;
    for (uint32_t m = 0; m < n; m++)
        for (uint32_t k = 0; k < call->needs->n_lanes; k++)
            last = MAX(last, x->passes->begins.begin_ns[list[m]][k]);
    orr_exec__push_local(x, list[0], last, ORR_EV_PASS, orr_pass__of(x, list[0])->generation,
                         list[0]);
}

/* The streams of the rank are at the begin of the pass. Returns whether it was the last member that
 * was not ready. */
static bool ask(OrrExec *x, uint32_t r, const Call *call, uint32_t n) {
    bool is_ready = has_begin(x, r, 0, call);
    if (call->needs->n_lanes > 1)
        is_ready &= has_begin(x, r, 1, call);
    if (!is_ready)
        return false;
    for (uint32_t k = 0; k < call->needs->n_lanes; k++)
        orr_exec__own_lane(x, r, orr_pass_lane[k])->state = ORR_LANE_CHECKED;
    return ++orr_pass__of(x, r)->n_ready == n;
}

/* Whether the first that lane @k waits for, as a rule what is to be received, is lacked by all
 * members; if so they wait for it. */
static bool all_lack(OrrExec *x, const OrrIslandPass *pass, const Call *call, uint32_t k) {
    const OrrPassNeed *first = call->needs->needs[k];
    if (call->needs->n[k] == 0 || !x->is_external[first->stream])
        return false;
    uint32_t s = orr_pass_lane[k], q = first->stream, n = count_of(first, call->step);
    for (uint32_t m = 0; m < pass->n; m++)
        if (orr_exec__lane(x, pass->list[m], q)->completed >= n ||
            x->passes->begins.key[pass->list[m]][k] == call->key)
            return false;
    orr_exec__block_all_on(x, pass->list, pass->n, s, q, n);
    orr_exec__hold_all(x, pass->list, pass->n, s, true);
    return true;
}

/* The same as `ask` for all members. Returns whether all are ready. */
static bool ask_all(OrrExec *x, const OrrIslandPass *pass, const Call *call) {
    uint32_t n_lanes = call->needs->n_lanes, n_lacking = 0;
    for (uint32_t k = 0; k < n_lanes && n_lacking == k; k++)
        n_lacking += all_lack(x, pass, call, k);
    bool is_due = false;
    for (uint32_t m = 0; m < pass->n && n_lacking < n_lanes; m++)
        is_due |= ask(x, pass->list[m], call, pass->n);
    return is_due;
}

/* Members of whom it is noted since when lane @k has what it waits for. */
static uint32_t n_noted(const OrrExec *x, const OrrIslandPass *pass, const Call *call, uint32_t k) {
    uint32_t n = 0;
    for (uint32_t m = 0; m < pass->n; m++)
        n += x->passes->begins.key[pass->list[m]][k] == call->key;
    return n;
}

/* Whether the same is noted of all members. */
static bool are_noted_alike(const OrrExec *x, const OrrIslandPass *pass, const Call *call) {
    const uint32_t(*key)[ORR_PASS_LANES] = x->passes->begins.key, *first = key[pass->first];
    uint32_t differs = 0;
    for (uint32_t m = 1; m < pass->n; m++)
        differs |= (key[pass->list[m]][0] ^ first[0]) | (key[pass->list[m]][1] ^ first[1]);
    for (uint32_t k = 0; differs && k < call->needs->n_lanes; k++) {
        uint32_t noted = n_noted(x, pass, call, k);
        if (noted > 0 && noted < pass->n)
            return false;
    }
    return true;
}

/* Whether all members are at one place with all that the call asks for, and with what is noted. */
static bool are_alike(const OrrExec *x, const OrrIslandPass *pass, const Call *call) {
    uint32_t n_synced = 0;
    const uint32_t *synced = orr_exec__n_synced(x, pass->first);
    if (!are_noted_alike(x, pass, call))
        return false;
    for (uint32_t k = 0; k < call->needs->n_lanes; k++)
        for (uint32_t i = 0; i < call->needs->n[k]; i++)
            if (orr_exec__is_apart(x, pass->first, call->needs->needs[k][i].stream))
                return false;
    for (uint32_t m = 0; m < pass->n && call->n_synced > 0; m++)
        n_synced += synced[m] >= call->n_synced;
    return n_synced == 0 || n_synced == pass->n;
}

/* As has_begin of all members, who are alike. */
static bool have_begun(OrrExec *x, OrrIslandPass *pass, const Call *call, uint32_t k) {
    uint32_t s = orr_pass_lane[k], need;
    if (x->passes->begins.key[pass->first][k] == call->key)
        return true;
    if (orr_exec__is_blocked(x, pass->first, s))
        return false;
    uint32_t missing = missing_of(x, pass->first, k, call, &need);
    orr_exec__block_all_on(x, pass->list, pass->n, s, missing, need);
    orr_exec__hold_all(x, pass->list, pass->n, s,
                       missing < ORR_N_STREAMS && x->is_external[missing]);
    if (missing == ORR_N_STREAMS)
        begin_all(x, pass, k, call);
    return missing == ORR_N_STREAMS;
}

/* As ask_all where both streams of all members are at one place. */
static bool ask_alike(OrrExec *x, OrrIslandPass *pass, const Call *call) {
    bool is_ready = have_begun(x, pass, call, 0);
    if (call->needs->n_lanes > 1)
        is_ready &= have_begun(x, pass, call, 1);
    if (!is_ready)
        return false;
    for (uint32_t k = 0; k < call->needs->n_lanes; k++)
        orr_exec__joint_lane(x, pass->first, orr_pass_lane[k])->state = ORR_LANE_CHECKED;
    pass->n_ready += pass->n;
    return pass->n_ready == pass->n;
}

/* Whether the other stream can still do something that belongs before this pass. @has_items: it has
 * a part in it. */
static bool is_other_busy(const OrrLane *other, const OrrLane *mine, bool has_items) {
    if (other->state == ORR_LANE_RUNNING || other->state == ORR_LANE_ISSUING)
        return true;
    if (has_items)
        return other->item != 0 || other->call != mine->call || other->step != mine->step;
    return other->state != ORR_LANE_DONE &&
           (other->step < mine->step || (other->step == mine->step && other->call < mine->call));
}

static bool is_disturbed(const OrrExec *x, uint32_t r) {
    const OrrIsland *island = &x->islands[x->island_of[r]];
    return island->n_unstable > 0 || island->n_pending > 0;
}

/* A stream of the rank is at the begin of a pass: if both are, and have what they wait for from
 * outside, the rank is ready; if all ranks are, the pass is due. */
void orr_exec__check_in(OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *c = orr_exec__lane(x, r, ORR_STREAM_COMPUTE),
                  *t = orr_exec__lane(x, r, ORR_STREAM_TP);
    const OrrLane *mine = orr_exec__lane(x, r, s);
    Call call = call_of(x, r, mine);
    if (is_disturbed(x, r) && !orr_pass__can_be_open(x, r, call.key)) {
        orr_pass__release(x, r, call.key);
        return;
    }
    bool is_busy = s == ORR_STREAM_COMPUTE ? is_other_busy(t, c, call.needs->n_lanes > 1)
                                           : is_other_busy(c, t, true);
    if (is_busy) { /* they could slow each other */
        if (orr_exec__head(x, r, s)->n_waits == 0 &&
            has_begin(x, r, s != ORR_STREAM_COMPUTE, &call))
            orr_pass__release(x, r, call.key);
        return;
    }
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, r, &list);
    if (ask(x, r, &call, n))
        schedule(x, &call, list, n);
}

static bool is_at(const OrrLane *l, const OrrLane *first) {
    return l->state == ORR_LANE_BLOCKED && l->item == 0 && l->call == first->call &&
           l->step == first->step;
}

/* The members of an island are at the begin of the call at which the first of them is, if that is
 * a pass. */
static bool check_in(OrrExec *x, OrrIslandPass *pass) {
    uint32_t n = pass->n, r = pass->first;
    const OrrLane *c = orr_exec__lane(x, r, ORR_STREAM_COMPUTE),
                  *t = orr_exec__lane(x, r, ORR_STREAM_TP);
    if (c->state != ORR_LANE_BLOCKED || c->item != 0 || !pass->calls[c->call])
        return false;
    Call call = call_of(x, r, c);
    if (pass->released >= call.key)
        return false;
    bool has_tp = call.needs->n_lanes > 1;
    if (has_tp ? !is_at(t, c) : t->state != ORR_LANE_DONE)
        return false;
    bool is_joint = n > 1 && orr_exec__join(x, r, ORR_STREAM_COMPUTE) &&
                    (!has_tp || orr_exec__join(x, r, ORR_STREAM_TP));
    for (uint32_t m = 0; m < n && !is_joint; m++) {
        if (!is_at(orr_exec__lane(x, pass->list[m], ORR_STREAM_COMPUTE), c) ||
            (has_tp && !is_at(orr_exec__lane(x, pass->list[m], ORR_STREAM_TP), c)))
            return false;
    }
    if (is_disturbed(x, r) && !orr_pass__can_be_open(x, r, call.key)) {
        orr_pass__release(x, r, call.key);
        return true;
    }
    is_joint = is_joint && are_alike(x, pass, &call);
    if (is_joint ? ask_alike(x, pass, &call) : ask_all(x, pass, &call))
        schedule(x, &call, pass->list, n);
    return true;
}

bool orr_exec__check_in_all(OrrExec *x, uint32_t island) {
    return x->passes && check_in(x, &x->passes->islands[island]);
}
