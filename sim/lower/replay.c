#include "sim/lower/replay.h"

#include <string.h>

#include "sim/program/builder.h"

#define N_SLOTS (ORR_N_STREAMS - 1) /* all but the host's */
#define NOTHING (-1)

typedef struct {
    const OrrReplay *replay;
    OrrBuilder *b;
    int64_t stream[N_SLOTS]; /* of the trace, by slot */
    bool is_host[N_SLOTS];
    int64_t busy_ns[N_SLOTS];
    uint32_t n_slots;
    int64_t *last;   /* [n_nodes * n_slots]: the last node on each slot that a node implies */
    int64_t *end_ns; /* [n_nodes] as recorded durations and order make it */
    uint32_t *op;    /* [n_nodes] */
    int64_t on_slot[N_SLOTS]; /* last node so far that takes time */
    GArray *kernel_ns;
    uint32_t n_ops;
} Replayer;

static int slot_of(const Replayer *r, const OrrReplayNode *node) {
    for (uint32_t k = 0; k < r->n_slots; k++)
        if (r->stream[k] == node->stream && r->is_host[k] == node->is_host)
            return (int)k;
    return -1;
}

/* A slot a stream; the busiest of the device becomes the compute stream. */
static bool find_slots(Replayer *r, GError **error) {
    uint32_t busiest = 0;
    for (uint32_t i = 0; i < r->replay->n_nodes; i++) {
        const OrrReplayNode *node = &r->replay->nodes[i];
        int k = slot_of(r, node);
        if (k < 0 && r->n_slots == N_SLOTS)
            return orr_fail_input(error, "%s: more than %d streams and threads", r->replay->name,
                                  N_SLOTS);
        if (k < 0) {
            k = (int)r->n_slots++;
            r->stream[k] = node->stream;
            r->is_host[k] = node->is_host;
        }
        if (node->kind == ORR_REPLAY_COMPUTE && node->duration_ns < INT64_MAX / 2 - r->busy_ns[k])
            r->busy_ns[k] += node->duration_ns;
        if (r->busy_ns[k] > r->busy_ns[busiest])
            busiest = (uint32_t)k;
    }
    int64_t stream = r->stream[0];
    bool is_host = r->is_host[0];
    r->stream[0] = r->stream[busiest], r->is_host[0] = r->is_host[busiest];
    r->stream[busiest] = stream, r->is_host[busiest] = is_host;
    return true;
}

/* The last nodes that node @i waits for, and when they have ended. */
static int64_t gather(const Replayer *r, uint32_t i, int64_t *need) {
    const OrrReplayNode *node = &r->replay->nodes[i];
    int64_t start_ns = 0;
    for (uint32_t k = 0; k < r->n_slots; k++)
        need[k] = NOTHING;
    for (uint32_t d = 0; d < node->n_deps; d++) {
        uint32_t dep = r->replay->deps[node->first_dep + d];
        const int64_t *of = &r->last[(gsize)dep * r->n_slots];
        for (uint32_t k = 0; k < r->n_slots; k++)
            need[k] = MAX(need[k], of[k]);
        start_ns = MAX(start_ns, r->end_ns[dep]);
    }
    return start_ns;
}

/* Whether the node on slot @k need not be waited for, since @other on slot @by already does. */
static bool is_implied(const Replayer *r, const int64_t *need, uint32_t k, int64_t other) {
    return other != NOTHING && r->last[(gsize)other * r->n_slots + k] >= need[k];
}

/* Nodes of @need to wait for, into @waits, the latest first: those of other slots that neither the
 * node before on @slot nor another of them implies. */
static uint32_t reduce(const Replayer *r, const int64_t *need, uint32_t slot, int64_t *waits) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n_slots; k++) {
        bool is_needed =
            k != slot && need[k] != NOTHING && !is_implied(r, need, k, r->on_slot[slot]);
        for (uint32_t j = 0; is_needed && j < r->n_slots; j++)
            is_needed = j == k || j == slot || !is_implied(r, need, k, need[j]);
        if (!is_needed)
            continue;
        uint32_t at = n++;
        for (; at > 0 && r->end_ns[waits[at - 1]] < r->end_ns[need[k]]; at--)
            waits[at] = waits[at - 1];
        waits[at] = need[k];
    }
    return n;
}

static void describe(const Replayer *r, uint32_t i, OrrKernel *kernel) {
    const OrrReplayNode *node = &r->replay->nodes[i];
    kernel->kind = ORR_K_COPY;
    kernel->pass = ORR_PASS_FORWARD;
    kernel->dtype = ORR_BF16;
    kernel->launches = 1;
    kernel->m = (int64_t)i + 1; /* no two are equal: each has a duration of its own */
    g_strlcpy(kernel->label, node->name, sizeof kernel->label);
    for (char *c = kernel->label; *c; c++)
        if (!g_ascii_isgraph(*c))
            *c = '_';
}

static void add(Replayer *r, uint32_t i) {
    const OrrReplayNode *node = &r->replay->nodes[i];
    int slot = slot_of(r, node);
    int64_t need[N_SLOTS], waits[N_SLOTS], *mine = &r->last[(gsize)i * r->n_slots];
    int64_t before = r->on_slot[slot], start_ns = gather(r, i, need);
    if (before != NOTHING)
        start_ns = MAX(start_ns, r->end_ns[before]);
    for (uint32_t k = 0; k < r->n_slots; k++)
        mine[k] =
            MAX(need[k], before == NOTHING ? NOTHING : r->last[(gsize)before * r->n_slots + k]);
    r->end_ns[i] = start_ns + CLAMP(node->duration_ns, 0, INT64_MAX - start_ns);
    if (node->duration_ns <= 0) /* who waits for it waits for what it waits for */
        return;
    OrrKernel kernel = {0};
    describe(r, i, &kernel);
    r->op[i] = orr_builder_kernel(r->b, (OrrStream)(slot + 1), &kernel);
    /* more than an operation can wait for: those that end before the latest never bind */
    uint32_t n = reduce(r, need, (uint32_t)slot, waits);
    for (uint32_t k = 0; k < MIN(n, ORR_MAX_WAITS); k++)
        orr_builder_wait(r->b, r->op[waits[k]]);
    g_array_append_val(r->kernel_ns, node->duration_ns);
    r->on_slot[slot] = mine[slot] = i;
    r->n_ops++;
}

/* The host waits for all streams: a step begins when the one before has ended everywhere. */
static void end_step(Replayer *r) {
    uint32_t n = 0;
    orr_builder_step_end(r->b);
    for (uint32_t k = 0; k < r->n_slots; k++) {
        if (r->on_slot[k] == NOTHING)
            continue;
        if (n++ % ORR_MAX_WAITS == 0)
            orr_builder_host(r->b, 0);
        orr_builder_wait(r->b, r->op[r->on_slot[k]]);
    }
}

static OrrBound *bind(const OrrProgram *program, GArray *kernel_ns) {
    OrrBound *bound = g_new0(OrrBound, 1);
    bound->program = program;
    bound->n_ranks = bound->n_real_ranks = bound->n_hw = 1;
    bound->weight = g_new(uint32_t, 1);
    bound->weight[0] = 1;
    bound->role = g_new0(uint16_t, 1);
    bound->hw = g_new0(uint32_t, 1);
    bound->kernel_ns = (int64_t *)(void *)g_array_free(kernel_ns, FALSE);
    for (int k = 0; k < ORR_N_COMM_KINDS; k++)
        bound->rate[0][k] = bound->rate[1][k] = ORR_RATE_ONE;
    return bound;
}

static bool build(Replayer *r, GError **error) {
    orr_builder_segment_begin(r->b, "replay");
    bool is_built = true;
    for (uint32_t i = 0; i < r->replay->n_nodes; i++)
        add(r, i);
    if (r->n_ops == 0)
        is_built = orr_fail_input(error, "%s: none of %u operations has a duration",
                                  r->replay->name, r->replay->n_nodes);
    if (is_built)
        end_step(r);
    uint32_t segment = orr_builder_segment_end(r->b);
    orr_builder_role_begin(r->b, "replay", 0);
    orr_builder_call(r->b, segment, ORR_N_PASSES, 0, 0);
    orr_builder_role_end(r->b);
    return is_built;
}

OrrBound *orr_lower_replay(const OrrReplay *replay, OrrProgram **program, GError **error) {
    Replayer r = {.replay = replay};
    *program = NULL;
    if (replay->n_untimed > 0) {
        orr_fail_input(error,
                       "%s: %u of %u operations have no duration; a trace that was recorded on a "
                       "machine would do",
                       replay->name, replay->n_untimed, replay->n_nodes);
        return NULL;
    }
    for (int k = 0; k < N_SLOTS; k++)
        r.on_slot[k] = NOTHING;
    if (!find_slots(&r, error))
        return NULL;
    r.last = g_new(int64_t, (gsize)replay->n_nodes * r.n_slots + 1);
    r.end_ns = g_new(int64_t, (gsize)replay->n_nodes + 1);
    r.op = g_new(uint32_t, (gsize)replay->n_nodes + 1);
    r.kernel_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r.b = orr_builder_new();
    bool is_built = build(&r, error);
    g_free(r.last);
    g_free(r.end_ns);
    g_free(r.op);
    *program = orr_builder_finish(r.b);
    if (is_built)
        return bind(*program, r.kernel_ns);
    g_array_unref(r.kernel_ns);
    g_clear_pointer(program, orr_program_free);
    return NULL;
}
