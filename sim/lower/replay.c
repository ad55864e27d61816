#include "sim/lower/replay.h"

#include <string.h>

#include "sim/program/builder.h"

#define N_SLOTS (ORR_N_STREAMS - 1) /* all but the host's */
#define NO_OP (-1)

typedef struct {
    const OrrReplay *replay;
    OrrBuilder *b;
    int64_t stream[N_SLOTS]; /* of the trace, by slot */
    bool is_host[N_SLOTS];
    int64_t busy_ns[N_SLOTS];
    uint32_t n_slots;
    int64_t *last; /* [n_nodes * n_slots]: the last operation on each slot that a node implies */
    int64_t on_slot[N_SLOTS]; /* last operation so far */
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

/* What node @i implies so far: the union of what it waits for. */
static void gather(const Replayer *r, uint32_t i, int64_t *need) {
    const OrrReplayNode *node = &r->replay->nodes[i];
    for (uint32_t k = 0; k < r->n_slots; k++)
        need[k] = NO_OP;
    for (uint32_t d = 0; d < node->n_deps; d++) {
        const int64_t *of = &r->last[(gsize)r->replay->deps[node->first_dep + d] * r->n_slots];
        for (uint32_t k = 0; k < r->n_slots; k++)
            need[k] = MAX(need[k], of[k]);
    }
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

static bool add(Replayer *r, uint32_t i, GError **error) {
    const OrrReplayNode *node = &r->replay->nodes[i];
    int slot = slot_of(r, node);
    int64_t need[N_SLOTS], *mine = &r->last[(gsize)i * r->n_slots];
    gather(r, i, need);
    memcpy(mine, need, r->n_slots * sizeof *mine);
    if (node->duration_ns <= 0) { /* takes no time: who waits for it waits for what it waits for */
        mine[slot] = MAX(mine[slot], r->on_slot[slot]);
        return true;
    }
    OrrKernel kernel = {0};
    describe(r, i, &kernel);
    uint32_t op = orr_builder_kernel(r->b, (OrrStream)(slot + 1), &kernel), n_waits = 0;
    for (uint32_t k = 0; k < r->n_slots; k++) {
        if ((int)k == slot || need[k] == NO_OP)
            continue;
        if (n_waits++ == ORR_MAX_WAITS)
            return orr_fail_input(error,
                                  "%s: node %" G_GUINT64_FORMAT " (%s) waits for more than %d "
                                  "other streams",
                                  r->replay->name, node->id, node->name, ORR_MAX_WAITS);
        orr_builder_wait(r->b, (uint32_t)need[k]);
    }
    g_array_append_val(r->kernel_ns, node->duration_ns);
    r->on_slot[slot] = mine[slot] = op;
    r->n_ops++;
    return true;
}

/* The host waits for all streams: a step begins when the one before has ended everywhere. */
static void end_step(Replayer *r) {
    uint32_t n = 0;
    orr_builder_step_end(r->b);
    for (uint32_t k = 0; k < r->n_slots; k++) {
        if (r->on_slot[k] == NO_OP)
            continue;
        if (n++ % ORR_MAX_WAITS == 0)
            orr_builder_host(r->b, 0);
        orr_builder_wait(r->b, (uint32_t)r->on_slot[k]);
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
    for (uint32_t i = 0; is_built && i < r->replay->n_nodes; i++)
        is_built = add(r, i, error);
    if (is_built && r->n_ops == 0)
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
        r.on_slot[k] = NO_OP;
    if (!find_slots(&r, error))
        return NULL;
    r.last = g_new(int64_t, (gsize)replay->n_nodes * r.n_slots + 1);
    r.kernel_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r.b = orr_builder_new();
    bool is_built = build(&r, error);
    g_free(r.last);
    *program = orr_builder_finish(r.b);
    if (is_built)
        return bind(*program, r.kernel_ns);
    g_array_unref(r.kernel_ns);
    g_clear_pointer(program, orr_program_free);
    return NULL;
}
