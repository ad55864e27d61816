/* Random programs with passes: see test_exec_passes.c. */
#ifndef TESTS_RANDOM_PASSES_H
#define TESTS_RANDOM_PASSES_H

#include "sim/program/builder.h"

#include <stdbool.h>
#include <stdint.h>

#define RANDOM_MAX_OPS 16u
#define RANDOM_MAX_SEGMENTS 6u
#define RANDOM_MAX_CALLS 8u
#define RANDOM_MAX_STAGES 3u

typedef struct {
    uint32_t id, n_ops;
    uint8_t stream[RANDOM_MAX_OPS];
    bool is_led; /* by a collective, for which its first kernel waits */
} RandomSegment;

typedef struct {
    uint64_t seed;
    uint32_t drawn;
    uint32_t tp, dp, n_stages, n_segments, n_calls;
    bool is_tidy;    /* collectives wait for kernels before, kernels for collectives */
    bool has_links;  /* that sends and rings of gradients share */
    bool is_chained; /* segments are chains of collectives and kernels */
    bool is_paced;   /* and sends follow each other closely, from stage to stage, as a rule alone */
    bool is_crowded; /* paced, and most sends find a ring on their links; both streams of a pass
                      * wait for what is received */
    bool is_brief;   /* crowded: all sends are short */
    bool is_pipeline; /* of random_pipeline */
    uint32_t n_pairs;
    uint8_t pairs[RANDOM_MAX_STAGES][2]; /* stages of which one sends to the other */
    uint32_t mixed; /* paced: calls that send the other of two messages, a bit each */
    RandomSegment segments[RANDOM_MAX_SEGMENTS];
    OrrBuilder *b;
} RandomJob;

/* A number below @n, the next of the job's. */
uint32_t random_draw(RandomJob *j, uint32_t n);
bool random_chance(RandomJob *j, uint32_t percent);
/* Draws the shape of the job (but for its seed and kind) and its program. */
OrrProgram *random_program(RandomJob *j);
/* random_convoys.c: the same of a pipeline whose sends can be told late. */
OrrProgram *random_pipeline(RandomJob *j);

/* Their parts; each returns the index of what it adds. */
uint32_t random_kernel(RandomJob *j, uint32_t ns);
uint32_t random_coll(RandomJob *j, OrrStream stream, OrrGroup group, OrrCommKind purpose);
uint32_t random_message(RandomJob *j, bool is_send, uint32_t peer, uint32_t bytes);
uint32_t random_step_end(RandomJob *j, bool has_gather);

#endif
