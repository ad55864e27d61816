/* Random pipelines whose sends can be told late (sim/exec/convoy.c): the streams of a pass wait for
 * what is received and for nothing else from outside, sends wait for the last kernels before them.
 * Two or three stages: in a chain, one that receives from two others, or one that sends to two. One
 * thing in two of three programs is otherwise. */
#include "tests/random_passes.h"

#include <glib.h>

typedef enum {
    TWO,
    CHAIN,
    FAN_IN,  /* the last stage receives from the others in turn */
    FAN_OUT, /* the first one sends to the others in turn */
    N_SHAPES
} Shape;

typedef enum {
    INPUT_OF_KERNELS_ONLY, /* some passes wait for their input with their kernels, not with TP */
    GRADIENT_BEFORE,       /* for a reduction too */
    KERNELS_AFTER_SEND,    /* kernels wait for the send before */
    RECEIVE_AFTER_SEND,
    SEND_AFTER_RECEIVE,    /* some of it is sent on as it is */
    COLLECTIVE_IS_ASKED,   /* another stream waits for one within a pass */
    SEND_OF_FIRST_KERNELS, /* sends do not wait for the last kernels of the pass */
    INPUT_OF_LAST_STEP,    /* the first pass waits for the last input of the step before */
    TWO_SIZES,             /* sends are of two sizes */
    SLOW_HOST,             /* of the first stage: some sends are issued late */
    N_ODDITIES
} Oddity;

typedef struct {
    RandomJob *j;
    Shape shape;
    uint32_t oddity; /* N_ODDITIES or more: none */
    uint32_t host_percent, ring_percent;
    uint32_t messages[RANDOM_MAX_STAGES][RANDOM_MAX_STAGES][2][2]; /* from, to, size, is_send */
    uint32_t end, pause; /* segments; @pause: host work alone */
    bool has_gather;
} Pipeline;

static void draw_pass(const Pipeline *p, RandomSegment *s) {
    RandomJob *j = p->j;
    uint32_t n = 1 + random_draw(j, 3);
    orr_builder_segment_begin(j->b, "pass");
    random_kernel(j, 1 + random_draw(j, 60));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t compute = orr_builder_last_on(j->b, ORR_STREAM_COMPUTE);
        random_coll(j, ORR_STREAM_TP, ORR_GROUP_TP, ORR_COMM_TP);
        orr_builder_wait(j->b, compute);
        uint32_t tp = orr_builder_last_on(j->b, ORR_STREAM_TP);
        random_kernel(j, 1 + random_draw(j, 60));
        orr_builder_wait(j->b, tp);
        compute = orr_builder_last_on(j->b, ORR_STREAM_COMPUTE);
        bool has_ring = random_chance(j, p->ring_percent);
        for (uint32_t k = 0; has_ring && k < 1u + (p->oddity == GRADIENT_BEFORE); k++) {
            random_coll(j, ORR_STREAM_DP, ORR_GROUP_DP_CP, ORR_COMM_DP_GRADIENT);
            orr_builder_wait(j->b, compute);
        }
    }
    if (random_chance(j, p->host_percent))
        orr_builder_host(j->b, 1 + random_draw(j, 150));
    s->is_led = false;
    s->n_ops = orr_builder_n_ops(j->b);
    for (uint32_t i = 0; i < s->n_ops; i++)
        s->stream[i] = orr_builder_stream(j->b, i);
    s->id = orr_builder_segment_end(j->b);
}

/* From which stage @stage receives in micro-batch @i, and to which it sends; ORR_NONE: none. */
static uint32_t source_of(const Pipeline *p, uint32_t stage, uint32_t i) {
    if (p->shape == FAN_IN)
        return stage == 2 ? i % 2 : ORR_NONE;
    if (p->shape == FAN_OUT)
        return stage == 1 + i % 2 ? 0 : ORR_NONE;
    return stage > 0 ? stage - 1 : ORR_NONE;
}

static uint32_t target_of(const Pipeline *p, uint32_t stage, uint32_t i) {
    for (uint32_t to = 0; to < p->j->n_stages; to++)
        if (source_of(p, to, i) == stage)
            return to;
    return ORR_NONE;
}

static uint32_t op_on(const RandomSegment *s, uint32_t stream, bool is_last) {
    for (uint32_t i = 0; i < s->n_ops; i++) {
        uint32_t op = is_last ? s->n_ops - 1 - i : i;
        if (s->stream[op] == stream)
            return op;
    }
    return ORR_NONE;
}

/* What a role has called so far. */
typedef struct {
    uint32_t n, calls[RANDOM_MAX_CALLS], sends[RANDOM_MAX_CALLS], inputs[RANDOM_MAX_CALLS];
    const RandomSegment *segments[RANDOM_MAX_CALLS];
} Done;

static uint32_t message_of(const Pipeline *p, uint32_t from, uint32_t to, uint32_t i,
                           bool is_send) {
    bool is_other = p->oddity == TWO_SIZES && (p->j->mixed >> i & 1);
    return p->messages[from][to][is_other][is_send];
}

/* The pass waits for its input, or so. */
static void wait_for_input(const Pipeline *p, const Done *d, uint32_t call, uint32_t input) {
    const RandomSegment *s = d->segments[d->n];
    RandomJob *j = p->j;
    uint32_t compute = op_on(s, ORR_STREAM_COMPUTE, false), tp = op_on(s, ORR_STREAM_TP, false);
    if (input != ORR_NONE) {
        orr_builder_call_wait(j->b, call, compute, input, 0, 0);
        if (p->oddity != INPUT_OF_KERNELS_ONLY || random_chance(j, 50))
            orr_builder_call_wait(j->b, call, tp, input, 0, 0);
    }
    if (d->n == 0)
        return;
    uint32_t before = d->n - 1,
             dp = op_on(d->segments[before], ORR_STREAM_DP, random_chance(j, 50));
    if (p->oddity == GRADIENT_BEFORE && dp != ORR_NONE && random_chance(j, 50))
        orr_builder_call_wait(j->b, call, random_chance(j, 50) ? compute : tp, d->calls[before], dp,
                              0);
    if (p->oddity == KERNELS_AFTER_SEND && d->sends[before] != ORR_NONE && random_chance(j, 50))
        orr_builder_call_wait(j->b, call, compute, d->sends[before], 0, 0);
}

static void add_micro_batch(const Pipeline *p, Done *d, uint32_t stage, uint32_t i) {
    RandomJob *j = p->j;
    uint32_t from = source_of(p, stage, i), to = target_of(p, stage, i), input = ORR_NONE;
    const RandomSegment *s = d->segments[d->n] = &j->segments[random_draw(j, j->n_segments)];
    if (from != ORR_NONE) {
        input = orr_builder_call(j->b, message_of(p, from, stage, i, false), ORR_F, 0, i);
        if (p->oddity == RECEIVE_AFTER_SEND && d->n > 0 && d->sends[d->n - 1] != ORR_NONE)
            orr_builder_call_wait(j->b, input, 0, d->sends[d->n - 1], 0, 0);
    }
    uint32_t call = d->calls[d->n] = orr_builder_call(j->b, s->id, ORR_F, 0, i);
    wait_for_input(p, d, call, input);
    d->inputs[d->n] = input;
    d->sends[d->n] = ORR_NONE;
    if (p->oddity == SLOW_HOST && stage == 0 && random_chance(j, 50))
        orr_builder_call(j->b, p->pause, ORR_F, 0, i);
    if (to != ORR_NONE) {
        uint32_t send = orr_builder_call(j->b, message_of(p, stage, to, i, true), ORR_F, 0, i);
        bool is_last = p->oddity != SEND_OF_FIRST_KERNELS || random_chance(j, 50);
        if (p->oddity == SEND_AFTER_RECEIVE && input != ORR_NONE && random_chance(j, 50))
            orr_builder_call_wait(j->b, send, 0, input, 0, 0);
        else
            orr_builder_call_wait(j->b, send, 0, call, op_on(s, ORR_STREAM_COMPUTE, is_last), 0);
        d->sends[d->n] = send;
    }
    d->n++;
}

static void end_step(const Pipeline *p, const Done *d) {
    RandomJob *j = p->j;
    uint32_t end = orr_builder_call(j->b, p->end, ORR_N_PASSES, 0, 0);
    for (uint32_t i = 0; i < d->n; i++) {
        static const OrrStream beside[] = {ORR_STREAM_TP, ORR_STREAM_DP};
        const RandomSegment *s = d->segments[i];
        for (int k = 0; k < 2; k++)
            if (op_on(s, beside[k], true) != ORR_NONE)
                orr_builder_call_wait(j->b, end, 0, d->calls[i], op_on(s, beside[k], true), 0);
        if (p->oddity == COLLECTIVE_IS_ASKED && random_chance(j, 50))
            orr_builder_call_wait(j->b, end, 1, d->calls[i], op_on(s, ORR_STREAM_TP, false), 0);
        /* not more than a step ahead */
        orr_builder_call_wait(j->b, d->calls[i], op_on(s, ORR_STREAM_TP, false), end, 2, 1);
        if (p->has_gather && random_chance(j, 5))
            orr_builder_call_wait(j->b, d->calls[i], 0, end, 3, 1);
    }
    if (p->oddity == INPUT_OF_LAST_STEP && d->n > 0 && d->inputs[d->n - 1] != ORR_NONE)
        orr_builder_call_wait(j->b, d->calls[0], 0, d->inputs[d->n - 1], 0, 1);
}

static void draw_messages(Pipeline *p) {
    RandomJob *j = p->j;
    j->n_pairs = 0;
    for (uint32_t from = 0; from < j->n_stages; from++)
        for (uint32_t to = from + 1; to < j->n_stages; to++) {
            if (source_of(p, to, 0) != from && source_of(p, to, 1) != from)
                continue;
            j->pairs[j->n_pairs][0] = from;
            j->pairs[j->n_pairs++][1] = to;
            for (uint32_t k = 0; k < 4; k++)
                p->messages[from][to][k / 2][k % 2] =
                    random_message(j, k % 2, k % 2 ? to : from, 1 + k / 2);
        }
}

OrrProgram *random_pipeline(RandomJob *j) {
    Pipeline p = {.j = j, .shape = random_draw(j, N_SHAPES)};
    p.oddity = random_draw(j, N_ODDITIES + N_ODDITIES / 2);
    if (p.oddity == RECEIVE_AFTER_SEND || p.oddity == SEND_AFTER_RECEIVE)
        p.shape = CHAIN;
    j->tp = 2 + random_draw(j, 3);
    j->dp = 1 + random_draw(j, 3);
    j->n_stages = p.shape == TWO ? 2 : 3;
    j->is_tidy = random_chance(j, 70);
    j->n_segments = 1 + random_draw(j, 3);
    j->n_calls = 3 + random_draw(j, RANDOM_MAX_CALLS - 3);
    j->mixed = random_draw(j, 1u << RANDOM_MAX_CALLS);
    p.host_percent = random_chance(j, 30) ? 40 : 0;
    p.ring_percent = random_chance(j, 70) ? 25 : 0;
    p.has_gather = random_chance(j, 50);
    j->b = orr_builder_new();
    for (uint32_t i = 0; i < j->n_segments; i++)
        draw_pass(&p, &j->segments[i]);
    draw_messages(&p);
    orr_builder_segment_begin(j->b, "pause");
    orr_builder_host(j->b, 1 + random_draw(j, 300));
    p.pause = orr_builder_segment_end(j->b);
    p.end = random_step_end(j, p.has_gather);
    for (uint32_t stage = 0; stage < j->n_stages; stage++) {
        Done done = {0};
        orr_builder_role_begin(j->b, "stage", stage);
        for (uint32_t i = 0; i < j->n_calls; i++)
            if (source_of(&p, stage, i) != ORR_NONE || target_of(&p, stage, i) != ORR_NONE)
                add_micro_batch(&p, &done, stage, i);
        end_step(&p, &done);
        orr_builder_role_end(j->b);
    }
    return orr_builder_finish(j->b);
}
