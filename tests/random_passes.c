#include "tests/random_passes.h"

#include "sim/base/random.h"

#include <glib.h>

uint32_t random_draw(RandomJob *j, uint32_t n) {
    return (uint32_t)orr_random_below(orr_random(j->seed, "passes"), j->drawn++, 0, n);
}

bool random_chance(RandomJob *j, uint32_t percent) {
    return random_draw(j, 100) < percent;
}

/* The length of a kernel is its m, in nanoseconds. */
uint32_t random_kernel(RandomJob *j, uint32_t ns) {
    OrrKernel k = {.kind = random_draw(j, 2) ? ORR_K_GEMM : ORR_K_NORM,
                   .m = ns,
                   .n = 1,
                   .k = 1,
                   .batch = 1,
                   .launches = 1};
    return orr_builder_kernel(j->b, ORR_STREAM_COMPUTE, &k);
}

uint32_t random_coll(RandomJob *j, OrrStream stream, OrrGroup group, OrrCommKind purpose) {
    OrrColl c = {.kind = ORR_ALL_REDUCE,
                 .group = group,
                 .comm = stream == ORR_STREAM_DP_PARAMETER,
                 .purpose = purpose,
                 .bytes = 1 + random_draw(j, 4)};
    return orr_builder_coll(j->b, stream, &c);
}

static void add_op(RandomJob *j) {
    uint32_t kind = random_draw(j, 10), tp = orr_builder_last_on(j->b, ORR_STREAM_TP);
    uint32_t compute = orr_builder_last_on(j->b, ORR_STREAM_COMPUTE);
    if (kind < 5) {
        random_kernel(j, 1 + random_draw(j, 60));
        if (j->is_tidy || random_chance(j, 60))
            orr_builder_wait(j->b, tp);
    } else if (kind < 8) {
        random_coll(j, ORR_STREAM_TP, ORR_GROUP_TP, ORR_COMM_TP);
        if (tp == ORR_NONE ? random_chance(j, 60) : j->is_tidy || random_chance(j, 80))
            orr_builder_wait(j->b, compute);
    } else if (kind < 9) {
        random_coll(j, ORR_STREAM_DP, ORR_GROUP_DP_CP, ORR_COMM_DP_GRADIENT);
        if (random_chance(j, 80))
            orr_builder_wait(j->b, compute);
    } else {
        random_coll(j, ORR_STREAM_DP_PARAMETER, ORR_GROUP_DP_CP, ORR_COMM_DP_PARAMETER);
        if (random_chance(j, 80))
            orr_builder_wait(j->b, compute);
    }
}

/* A collective after the kernels so far, and a kernel after that: now and then with others beside.
 */
static void add_link(RandomJob *j) {
    uint32_t compute = orr_builder_last_on(j->b, ORR_STREAM_COMPUTE);
    bool has_two = random_chance(j, 15);
    random_coll(j, ORR_STREAM_TP, ORR_GROUP_TP, ORR_COMM_TP);
    if (compute != ORR_NONE && random_chance(j, j->is_crowded && compute == 0 ? 20 : 90))
        orr_builder_wait(j->b, compute);
    if (has_two)
        random_coll(j, ORR_STREAM_TP, ORR_GROUP_TP, ORR_COMM_TP);
    if (random_chance(j, 25))
        random_kernel(j, 1 + random_draw(j, 60));
    uint32_t tp = orr_builder_last_on(j->b, ORR_STREAM_TP);
    random_kernel(j, 1 + random_draw(j, 60));
    if (random_chance(j, 90))
        orr_builder_wait(j->b, tp);
    if (random_chance(j, j->is_paced ? 25 : 6)) {
        compute = orr_builder_last_on(j->b, ORR_STREAM_COMPUTE);
        random_coll(j, ORR_STREAM_DP, ORR_GROUP_DP_CP, ORR_COMM_DP_GRADIENT);
        orr_builder_wait(j->b, compute);
    }
}

static void draw_ops(RandomJob *j, RandomSegment *s) {
    s->is_led = j->is_chained && !j->is_paced && random_chance(j, 40);
    if (!s->is_led)
        random_kernel(j, 1 + random_draw(j, 60));
    uint32_t n = j->is_crowded ? RANDOM_MAX_OPS - 2 : random_draw(j, RANDOM_MAX_OPS - 2);
    while (!j->is_chained && orr_builder_n_ops(j->b) < n)
        add_op(j);
    while (j->is_chained && orr_builder_n_ops(j->b) + 6 < MAX(n, 7))
        add_link(j);
}

static void draw_segment(RandomJob *j, RandomSegment *s) {
    orr_builder_segment_begin(j->b, "pass");
    draw_ops(j, s);
    if (j->is_tidy || random_chance(j, 70)) {
        uint32_t tp = orr_builder_last_on(j->b, ORR_STREAM_TP);
        random_kernel(j, 1 + random_draw(j, 20));
        orr_builder_wait(j->b, tp);
    }
    if (!j->is_paced && random_chance(j, j->is_chained ? 2 : 10))
        orr_builder_host(j->b, 1 + random_draw(j, 30));
    s->n_ops = orr_builder_n_ops(j->b);
    for (uint32_t i = 0; i < s->n_ops; i++)
        s->stream[i] = orr_builder_stream(j->b, i);
    s->id = orr_builder_segment_end(j->b);
}

static uint32_t first_on(const RandomSegment *s, uint32_t stream) {
    for (uint32_t i = 0; i < s->n_ops; i++)
        if (s->stream[i] == stream)
            return i;
    return ORR_NONE;
}

static uint32_t last_on(const RandomSegment *s, uint32_t stream) {
    uint32_t i = s->n_ops;
    while (i > 0 && s->stream[i - 1] != stream)
        i--;
    return i > 0 ? i - 1 : ORR_NONE;
}

uint32_t random_message(RandomJob *j, bool is_send, uint32_t peer, uint32_t bytes) {
    OrrP2pPart part = {.is_send = is_send,
                       .group = ORR_GROUP_PP,
                       .purpose = ORR_COMM_PP,
                       .peer = peer,
                       .bytes = bytes};
    orr_builder_segment_begin(j->b, is_send ? "send" : "receive");
    orr_builder_p2p(j->b, is_send ? ORR_STREAM_PP_SEND : ORR_STREAM_PP_RECV, "message", false,
                    &part, 1);
    return orr_builder_segment_end(j->b);
}

uint32_t random_step_end(RandomJob *j, bool has_gather) {
    orr_builder_segment_begin(j->b, "end");
    uint32_t before = random_kernel(j, 1 + random_draw(j, 9));
    uint32_t barrier = random_coll(j, ORR_STREAM_COPY, ORR_GROUP_MODEL, ORR_COMM_STEP_END);
    orr_builder_wait(j->b, before);
    uint32_t last = random_kernel(j, 1 + random_draw(j, 9));
    orr_builder_wait(j->b, barrier);
    orr_builder_step_end(j->b);
    if (has_gather) {
        random_coll(j, ORR_STREAM_DP_PARAMETER, ORR_GROUP_DP_CP, ORR_COMM_DP_PARAMETER);
        orr_builder_wait(j->b, last);
    }
    return orr_builder_segment_end(j->b);
}

/* A kernel that waits for a collective of its call is charged for what it waits for outside only if
 * that has not been overtaken by then: event by event that depends on when it is asked. */
static bool may_wait(const RandomSegment *s, uint32_t stream, uint32_t src_stream) {
    return !s->is_led || stream != ORR_STREAM_COMPUTE || src_stream == ORR_STREAM_TP;
}

/* The first operations of the call wait for something of earlier ones. */
static void draw_waits(RandomJob *j, uint32_t call, const RandomSegment *s, const uint32_t *calls,
                       const RandomSegment *const *done, uint32_t n) {
    static const OrrStream streams[] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP, ORR_STREAM_DP};
    for (uint32_t k = 0; k < G_N_ELEMENTS(streams) && n > 0; k++) {
        uint32_t op = first_on(s, streams[k]);
        for (uint32_t w = 0; op != ORR_NONE && w < 2; w++) {
            uint32_t from = random_chance(j, 70) ? n - 1 : random_draw(j, n);
            uint32_t src =
                random_chance(j, 60) ? done[from]->n_ops - 1 : random_draw(j, done[from]->n_ops);
            uint32_t dp = first_on(done[from], ORR_STREAM_DP);
            if (dp != ORR_NONE && random_chance(j, streams[k] == ORR_STREAM_TP ? 60 : 20))
                src = dp;
            if (random_chance(j, j->is_paced     ? 1
                                 : j->is_chained ? 10
                                 : j->is_tidy    ? 20
                                                 : 45) &&
                done[from]->stream[src] != streams[k] && done[from]->stream[src] != ORR_STREAM_HOST)
                orr_builder_call_wait(j->b, call, op, calls[from], src, 0);
        }
    }
}

/* @messages: send and receive of either kind. */
static void draw_role(RandomJob *j, uint32_t stage, const uint32_t *messages, uint32_t end,
                      bool has_gather) {
    uint32_t calls[RANDOM_MAX_CALLS], n = 0, first[RANDOM_MAX_CALLS];
    const RandomSegment *done[RANDOM_MAX_CALLS];
    orr_builder_role_begin(j->b, "stage", stage);
    for (uint32_t i = 0; i < j->n_calls; i++) {
        const RandomSegment *s = &j->segments[random_draw(j, j->n_segments)];
        const uint32_t *message_of = messages + 2 * (j->mixed >> i & 1);
        uint32_t input = stage > 0 ? orr_builder_call(j->b, message_of[1], ORR_F, 0, i) : ORR_NONE;
        uint32_t call = orr_builder_call(j->b, s->id, ORR_F, 0, i);
        draw_waits(j, call, s, calls, done, n);
        static const OrrStream streams[] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};
        for (int k = 0; k < 2 && input != ORR_NONE; k++)
            if (first_on(s, streams[k]) != ORR_NONE && may_wait(s, streams[k], ORR_STREAM_PP_RECV))
                orr_builder_call_wait(j->b, call, first_on(s, streams[k]), input, 0, 0);
        if (stage + 1 < j->n_stages) {
            uint32_t output = orr_builder_call(j->b, message_of[0], ORR_F, 0, i);
            uint32_t op = s->n_ops;
            while (s->stream[op - 1] == ORR_STREAM_HOST)
                op--;
            uint32_t tp = last_on(s, ORR_STREAM_TP);
            bool has_tp = j->is_chained && tp != ORR_NONE && random_chance(j, 60);
            if (!has_tp || random_chance(j, 60))
                orr_builder_call_wait(j->b, output, 0, call, op - 1, 0);
            if (has_tp)
                orr_builder_call_wait(j->b, output, 0, call, tp, 0);
        }
        first[n] = first_on(s, ORR_STREAM_COMPUTE);
        done[n] = s;
        calls[n++] = call;
    }
    uint32_t call = orr_builder_call(j->b, end, ORR_N_PASSES, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        static const OrrStream beside[] = {ORR_STREAM_TP, ORR_STREAM_DP};
        for (int k = 0; k < 2; k++)
            if (last_on(done[i], beside[k]) != ORR_NONE)
                orr_builder_call_wait(j->b, call, 0, calls[i], last_on(done[i], beside[k]), 0);
        if (has_gather && random_chance(j, j->is_paced ? 5 : 30) &&
            may_wait(done[i], ORR_STREAM_COMPUTE, ORR_STREAM_DP_PARAMETER))
            orr_builder_call_wait(j->b, calls[i], first[i], call, 3, 1);
        uint32_t tp = first_on(done[i], ORR_STREAM_TP);
        if (tp != ORR_NONE) /* not more than a step ahead */
            orr_builder_call_wait(j->b, calls[i], tp, call, 2, 1);
    }
    orr_builder_role_end(j->b);
}

OrrProgram *random_program(RandomJob *j) {
    j->tp = 1 + random_draw(j, 4), j->dp = 1 + random_draw(j, 3),
    j->n_stages = 1 + random_draw(j, 2);
    if (j->is_paced)
        j->tp = 2 + random_draw(j, 3), j->n_stages = 2;
    if (j->is_crowded)
        j->dp = 2 + random_draw(j, 2);
    j->is_tidy = random_chance(j, 70);
    j->n_segments = 1 + random_draw(j, RANDOM_MAX_SEGMENTS),
    j->n_calls = 1 + random_draw(j, RANDOM_MAX_CALLS - 1);
    if (j->is_crowded)
        j->n_calls = MAX(j->n_calls, 3);
    j->n_pairs = j->n_stages - 1;
    j->pairs[0][0] = 0, j->pairs[0][1] = 1;
    j->b = orr_builder_new();
    for (uint32_t i = 0; i < j->n_segments; i++)
        draw_segment(j, &j->segments[i]);
    bool has_gather = random_draw(j, 2);
    bool has_stages = j->n_stages > 1;
    uint32_t messages[4] = {ORR_NONE, ORR_NONE, ORR_NONE, ORR_NONE};
    j->mixed = j->is_paced && random_chance(j, 30) ? random_draw(j, 1u << RANDOM_MAX_CALLS) : 0;
    for (uint32_t k = 0; has_stages && k < (j->mixed ? 4u : 2u); k++)
        messages[k] = random_message(j, k % 2 == 0, k % 2 == 0, 1 + k / 2);
    uint32_t end = random_step_end(j, has_gather);
    for (uint32_t s = 0; s < j->n_stages; s++)
        draw_role(j, s, messages, end, has_gather);
    return orr_builder_finish(j->b);
}
