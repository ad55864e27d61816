/* The way back through a pass that was taken as a whole: what each of its items waited for last,
 * from what the recursion has made of it.
 *
 * All items of a pass from which the same begin is reached (a member's compute or TP stream, and
 * what that had waited for from outside) share a record. The pass itself is kept as the begins of
 * its members, with the first of its records, and evaluated again where the path goes through it.
 *
 * These records are most of what is kept, so begins are packed: after the first begin and the step
 * a number a member and lane (compute, then TP if it has items), or one for all where they are
 * alike: nanoseconds since the first begin, and in the lowest bit whether an item of another stream
 * was waited for. 4 bytes each, or 8 if it does not fit. Then, where kernels were slowed from
 * outside, the rates of each member at its begin, and three words a change of them. */
#include "sim/exec/way.h"

#include <string.h>

/* Of OrrCause.form. */
enum { IS_WIDE = 1, HAS_TP = 2, IS_SLOWED = 4, IS_ALIKE = 8 /* compute; the next bit: TP */ };
enum { FIRST_NS, STEP, PACKED };
#define MAX_BEGINS (ORR_PASS_LANES * ORR_MAX_ISLAND)
#define CHANGE_WORDS 3u /* time, member, rates */

static const OrrPassMember *result_of(const OrrPassWork *w, uint32_t m) {
    return &w->members[w->members[m].same_as];
}

/* Who came last to collective @j, the first of equals. */
static uint32_t last_of(const OrrPassWork *w, uint32_t j) {
    for (uint32_t m = 0; m < w->n; m++)
        if (result_of(w, m)->waits[j].wait_ns == 0)
            return m;
    g_assert_not_reached();
}

static uint32_t need_of(const OrrExec *x, const OrrPassWork *w, const OrrPassSpot *at) {
    return x->passes->need[w->segment->first_item[orr_pass_lane[at->lane]] + at->item];
}

int64_t orr_exec__pass_end(const OrrPassWork *w, const OrrPassSpot *at) {
    return result_of(w, at->member)->end_ns[at->lane][at->item];
}

/* When the stream was free for the item. */
static int64_t free_ns(const OrrPassWork *w, const OrrPassSpot *at) {
    if (at->item == 0)
        return w->starts[at->member].begin.begin_ns[at->lane];
    return result_of(w, at->member)->end_ns[at->lane][at->item - 1];
}

/* When the items of the other lane had ended that the item waits for. */
static int64_t came_ns(const OrrExec *x, const OrrPassWork *w, const OrrPassSpot *at) {
    uint32_t need = need_of(x, w, at);
    return need > 0 ? result_of(w, at->member)->end_ns[1 - at->lane][need - 1] : INT64_MIN;
}

int64_t orr_exec__pass_start(const OrrExec *x, const OrrPassWork *w, const OrrPassSpot *at) {
    return MAX(free_ns(w, at), came_ns(x, w, at));
}

void orr_exec__pass_find(const OrrExec *x, const OrrPassWork *w, uint32_t r, uint32_t s,
                         uint32_t index, OrrPassSpot *at) {
    const OrrCompiledRole *role = orr_pass__role(x, r);
    uint32_t before = w->step * role->rows[role->n_calls].base[s] + role->rows[w->call].base[s];
    *at = (OrrPassSpot){.lane = s == ORR_STREAM_COMPUTE ? 0 : 1, .item = index - before};
    while (w->members[at->member].rank != r)
        at->member++;
}

/* The bit that a begin needs beside its time: of streams that end together the smaller counts. */
static bool is_outside(const OrrBegin *b, uint32_t lane) {
    return lane == 0 ? b->cause[0] > ORR_STREAM_TP : b->cause[1] != ORR_STREAM_TP;
}

/* A collective waits for what its last member has waited for. */
bool orr_exec__pass_back(const OrrExec *x, const OrrPassWork *w, OrrPassSpot *at) {
    if (at->lane == 1)
        at->member = last_of(w, at->item);
    int64_t free = free_ns(w, at), came = came_ns(x, w, at);
    bool wins = at->item == 0 && is_outside(&w->starts[at->member].begin, at->lane);
    if (came > free || (came == free && wins)) {
        at->item = need_of(x, w, at) - 1;
        at->lane = 1 - at->lane;
        return true;
    }
    return at->item-- > 0;
}

static uint32_t way_of(const OrrExec *x, const OrrPassWork *w, uint32_t j);

/* At which begin the way back from an item ends. */
static uint32_t begin_of(const OrrExec *x, const OrrPassWork *w, OrrPassSpot at) {
    while (orr_exec__pass_back(x, w, &at))
        if (at.lane == 1)
            return way_of(x, w, at.item);
    return at.member * ORR_PASS_LANES + at.lane;
}

/* The same from collective @j, by way of those before it. */
static uint32_t way_of(const OrrExec *x, const OrrPassWork *w, uint32_t j) {
    OrrCauses *c = x->causes;
    for (; c->n_ways <= j; c->n_ways++)
        c->ways[c->n_ways] = begin_of(x, w, (OrrPassSpot){.lane = 1, .item = c->n_ways});
    return c->ways[j];
}

void orr_exec__ways_begin(OrrExec *x, OrrPassWork *w) {
    OrrCauses *c = x->causes;
    if (!c->ways) {
        c->ways = g_new(uint16_t, x->passes->most_items + 1);
        c->way_records = g_new(uint32_t, MAX_BEGINS);
    }
    c->n_ways = 0;
    w->tail_way = ORR_NONE;
    for (uint32_t i = 0; i < ORR_PASS_LANES * w->n; i++)
        c->way_records[i] = ORR_NONE;
}

/* Begins of a pass on their way into a record. */
typedef struct {
    int64_t first_ns;
    uint64_t value[MAX_BEGINS];
    uint32_t n;
    uint8_t form;
} Packed;

static void pack(const OrrPassWork *w, Packed *p) {
    uint32_t n_lanes = w->segment->n_items[ORR_STREAM_TP] > 0 ? 2 : 1;
    uint64_t all = 0;
    p->form = n_lanes == 2 ? HAS_TP : 0;
    p->first_ns = INT64_MAX;
    for (uint32_t m = 0; m < w->n; m++)
        for (uint32_t k = 0; k < n_lanes; k++)
            p->first_ns = MIN(p->first_ns, w->starts[m].begin.begin_ns[k]);
    for (uint32_t k = 0; k < n_lanes; k++) {
        uint32_t first = p->n;
        bool is_alike = true;
        for (uint32_t m = 0; m < w->n; m++) {
            const OrrBegin *b = &w->starts[m].begin;
            uint64_t value = (uint64_t)(b->begin_ns[k] - p->first_ns) << 1 | is_outside(b, k);
            all |= value;
            p->value[p->n++] = value;
            is_alike &= value == p->value[first];
        }
        if (is_alike) {
            p->form |= IS_ALIKE << k;
            p->n = first + 1;
        }
    }
    if (all > UINT32_MAX)
        p->form |= IS_WIDE;
}

/* Whether the pass needs change @i of its island. */
static bool is_its_change(const OrrPassWork *w, const OrrIslandPass *pass, uint32_t i,
                          uint32_t *member) {
    for (*member = 0; *member < w->n; (*member)++)
        if (w->members[*member].rank == pass->changes[i].rank)
            return i >= w->starts[*member].begin.first_change;
    return false;
}

static uint32_t count_changes(const OrrPassWork *w, const OrrIslandPass *pass, Packed *p) {
    uint32_t n = 0, member;
    for (uint32_t i = 0; i < pass->n_changes; i++)
        n += is_its_change(w, pass, i, &member);
    bool is_slowed = n > 0;
    for (uint32_t m = 0; m < w->n; m++)
        for (int c = 0; c < 2; c++)
            is_slowed |= w->starts[m].begin.outer[c] != ORR_RATE_ONE;
    if (is_slowed)
        p->form |= IS_SLOWED;
    return n;
}

static int64_t put_rate(const uint32_t rate[2]) {
    return (int64_t)((uint64_t)rate[0] << 32 | rate[1]);
}

static void get_rate(int64_t word, uint32_t rate[2]) {
    rate[0] = (uint32_t)((uint64_t)word >> 32);
    rate[1] = (uint32_t)word;
}

static void put_changes(const OrrPassWork *w, const OrrIslandPass *pass, int64_t *to) {
    uint32_t member;
    for (uint32_t m = 0; m < w->n; m++)
        *to++ = put_rate(w->starts[m].begin.outer);
    for (uint32_t i = 0; i < pass->n_changes; i++)
        if (is_its_change(w, pass, i, &member)) {
            *to++ = pass->changes[i].at_ns;
            *to++ = member;
            *to++ = put_rate(pass->changes[i].rate);
        }
}

/* A record with the begins of the pass and the changes of rates that are known. */
static OrrCause *add_pass(OrrExec *x, OrrPassWork *w, uint32_t *id) {
    const OrrIslandPass *pass = orr_pass__of(x, w->members[0].rank);
    Packed p = {.n = 0};
    pack(w, &p);
    uint32_t n_changes = count_changes(w, pass, &p);
    uint32_t n_packed = p.form & IS_WIDE ? p.n : (p.n + 1) / 2;
    uint32_t n_slowed = p.form & IS_SLOWED ? w->n + CHANGE_WORDS * n_changes : 0;
    OrrCause *cause = orr_exec__cause_add(x, ORR_CAUSE_WAY, PACKED + n_packed + n_slowed, id);
    cause->form = p.form;
    cause->what = w->call;
    cause->ns[FIRST_NS] = p.first_ns;
    cause->ns[STEP] = w->step;
    uint32_t *narrow = (uint32_t *)(void *)(cause->ns + PACKED);
    for (uint32_t i = 0; i < p.n; i++) {
        if (p.form & IS_WIDE)
            cause->ns[PACKED + i] = (int64_t)p.value[i];
        else
            narrow[i] = (uint32_t)p.value[i];
    }
    if (p.form & IS_SLOWED)
        put_changes(w, pass, cause->ns + PACKED + n_packed);
    w->cause = *id;
    return cause;
}

/* The record for what leads back to a begin. */
static uint32_t record_at(OrrExec *x, OrrPassWork *w, uint32_t begin) {
    OrrCauses *c = x->causes;
    uint32_t *record = &c->way_records[begin];
    if (*record != ORR_NONE)
        return *record;
    OrrCause *cause;
    if (w->cause == ORR_NONE) {
        cause = add_pass(x, w, record);
    } else {
        cause = orr_exec__cause_add(x, ORR_CAUSE_WAY, 0, record);
        cause->what = w->cause;
    }
    uint32_t member = begin / ORR_PASS_LANES, k = begin % ORR_PASS_LANES;
    const OrrBegin *b = &w->starts[member].begin;
    cause->rank = w->members[member].rank;
    cause->pred = b->cause[k] == orr_pass_lane[k] ? ORR_PRED_PREVIOUS : ORR_PRED_WAIT;
    cause->pred_stream = b->cause[k];
    cause->pred_index = b->index[k];
    cause->cause = b->made[k];
    return *record;
}

uint32_t orr_exec__way_to(OrrExec *x, OrrPassWork *w, uint32_t member, uint32_t lane) {
    return record_at(x, w, member * ORR_PASS_LANES + lane);
}

/* All of the tail of a pass goes back to its meeting. */
static bool is_in_tail(const OrrPassTail *tail, const OrrPassSpot *at) {
    return tail && at->item >= (at->lane == 1 ? tail->first_coll : tail->first_block);
}

uint32_t orr_exec__way(OrrExec *x, OrrPassWork *w, OrrPassSpot at) {
    if (x->causes->is_early[w->members[at.member].rank])
        return ORR_NONE;
    bool is_tail = is_in_tail(w->tail, &at);
    if (is_tail && w->tail_way == ORR_NONE)
        w->tail_way = record_at(x, w, way_of(x, w, w->tail->first_coll - 1));
    if (is_tail)
        return w->tail_way;
    return record_at(x, w, at.lane == 1 ? way_of(x, w, at.item) : begin_of(x, w, at));
}

/* Returns what of the record is behind the begins. */
static const int64_t *unpack(OrrPassWork *w, const OrrCause *pass) {
    const uint32_t *narrow = (const uint32_t *)(const void *)(pass->ns + PACKED);
    uint32_t at = 0;
    for (uint32_t k = 0; k < (pass->form & HAS_TP ? 2u : 1u); k++) {
        bool is_alike = pass->form & IS_ALIKE << k;
        for (uint32_t m = 0; m < w->n; m++) {
            uint32_t i = at + (is_alike ? 0 : m);
            uint64_t value = pass->form & IS_WIDE ? (uint64_t)pass->ns[PACKED + i] : narrow[i];
            OrrBegin *b = &w->starts[m].begin;
            b->begin_ns[k] = pass->ns[FIRST_NS] + (int64_t)(value >> 1);
            if (k == 0)
                b->cause[k] = value & 1 ? ORR_STREAM_DP : ORR_STREAM_COMPUTE;
            else
                b->cause[k] = value & 1 ? ORR_STREAM_COMPUTE : ORR_STREAM_TP;
        }
        at += is_alike ? 1 : w->n;
    }
    return pass->ns + PACKED + (pass->form & IS_WIDE ? at : (at + 1) / 2);
}

/* Rates of members at their begins, and changes: the caller's, g_free. */
static OrrRateChange *unpack_changes(OrrPassWork *w, const OrrCause *pass, const int64_t *from,
                                     uint32_t *n) {
    static const uint32_t full[2] = {ORR_RATE_ONE, ORR_RATE_ONE};
    bool is_slowed = pass->form & IS_SLOWED;
    for (uint32_t m = 0; m < w->n; m++) {
        OrrBegin *b = &w->starts[m].begin;
        memcpy(b->outer, full, sizeof full);
        if (is_slowed)
            get_rate(*from++, b->outer);
        b->first_change = 0;
    }
    const int64_t *end = (const int64_t *)(const void *)pass + pass->n_words;
    *n = is_slowed ? (uint32_t)(end - from) / CHANGE_WORDS : 0;
    OrrRateChange *changes = g_new0(OrrRateChange, *n + 1);
    for (uint32_t i = 0; i < *n; i++, from += CHANGE_WORDS) {
        changes[i].at_ns = from[0];
        changes[i].rank = w->members[from[1]].rank;
        get_rate(from[2], changes[i].rate);
    }
    return changes;
}

OrrPassWork *orr_exec__pass_again(const OrrExec *x, const OrrCause *way) {
    const OrrCause *pass =
        way->n_words == ORR_CAUSE_HEAD_WORDS ? orr_exec__cause(x, way->what) : way;
    OrrPassWork *w = x->passes->whole;
    const uint32_t *list;
    w->call = pass->what;
    w->step = (uint32_t)pass->ns[STEP];
    w->segment = &x->compiled->segments[orr_pass__role(x, way->rank)->calls[w->call].segment];
    w->n = orr_pass__members(x, way->rank, &list);
    for (uint32_t m = 0; m < w->n; m++)
        w->members[m].rank = list[m];
    uint32_t n;
    g_autofree OrrRateChange *changes = unpack_changes(w, pass, unpack(w, pass), &n);
    orr_exec__recursion(x, w, changes, n);
    return w;
}
