/* Jitter where communication slows the kernels beside it, against closed forms.
 *
 * N ranks, on each a block of w1, then one of w2; a reduction of d that begins when all have ended
 * the first slows the second to half its speed; a last meeting of 1 ns waits for the second. With
 * z, y normal, s the deviation and e(N) the mean of the largest of N, the reduction begins at
 *     b = w1 (1 + s max z), in the mean w1 (1 + s e(N)).
 * Rank i has done r (b + d - t1) of the second block when it is over, and ends that at
 *     (1 - r)(b + d) + w2 (1 + s y) + r w1 (1 + s z), where it outlives the reduction,
 *     w1 (1 + s z) + w2 (1 + s y) / r, where it does not.
 * The last of N ends e(N) deviations of the two normal terms later. */
#include "tests/near.h"

#include "sim/base/normal.h"
#include "sim/base/stats.h"
#include "sim/exec/exec.h"
#include "sim/exec/fold.h"
#include "sim/program/builder.h"

#include <glib.h>
#include <math.h>

#define N_RANKS 8u
#define W1 1000000
#define W2 3000000
#define SD 0.02
#define RATE 0.5 /* of kernels beside the reduction */
#define TAIL_NS 2

static uint32_t kernel(OrrBuilder *b, int64_t ns) {
    OrrKernel k = {.kind = ORR_K_GEMM, .m = ns, .n = 1, .k = 1, .batch = 1, .launches = 1};
    return orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
}

static uint32_t meeting(OrrBuilder *b, OrrStream stream, OrrCommKind purpose, uint32_t after) {
    OrrColl c = {.kind = ORR_ALL_REDUCE,
                 .group = ORR_GROUP_DP_CP,
                 .comm = stream,
                 .purpose = purpose,
                 .bytes = 8};
    uint32_t op = orr_builder_coll(b, stream, &c);
    orr_builder_wait(b, after);
    return op;
}

static OrrProgram *program(void) {
    OrrBuilder *b = orr_builder_new();
    orr_builder_segment_begin(b, "step");
    uint32_t first = kernel(b, W1);
    meeting(b, ORR_STREAM_DP, ORR_COMM_DP_GRADIENT, first);
    uint32_t second = kernel(b, W2);
    uint32_t last = meeting(b, ORR_STREAM_COPY, ORR_COMM_STEP_END, second);
    kernel(b, 1);
    orr_builder_wait(b, last);
    orr_builder_step_end(b);
    uint32_t segment = orr_builder_segment_end(b);
    orr_builder_role_begin(b, "rank", 0);
    orr_builder_call(b, segment, ORR_F, 0, 0);
    orr_builder_role_end(b);
    return orr_builder_finish(b);
}

static OrrBound *bind(const OrrProgram *p, int64_t reduction_ns) {
    OrrBound *b = g_new0(OrrBound, 1);
    OrrBoundGroup *g = &b->groups[ORR_GROUP_DP_CP];
    b->program = p;
    b->n_ranks = b->n_real_ranks = g->size = N_RANKS;
    b->n_hw = g->n_groups = g->n_classes = 1;
    b->weight = g_new(uint32_t, N_RANKS);
    b->role = g_new0(uint16_t, N_RANKS);
    b->hw = g_new0(uint32_t, N_RANKS);
    g->group_of = g_new0(uint32_t, N_RANKS);
    g->first_member = g_new0(uint32_t, 2);
    g->first_member[1] = N_RANKS;
    g->members = g_new(uint32_t, N_RANKS);
    g->position_of = g_new(uint32_t, N_RANKS);
    g->class_of = g_new0(uint32_t, 1);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        b->weight[r] = 1;
        g->members[r] = g->position_of[r] = r;
    }
    b->kernel_ns = g_new(int64_t, p->n_kernels);
    for (uint32_t i = 0; i < p->n_kernels; i++)
        b->kernel_ns[i] = p->kernels[i].m;
    g->plans = g_new0(OrrPlan, p->n_colls);
    for (uint32_t i = 0; i < p->n_colls; i++)
        g->plans[i] = (OrrPlan){.latency_ns = p->colls[i].comm == ORR_STREAM_DP ? reduction_ns : 1,
                                .cap_bytes_per_s = 1};
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < ORR_N_COMM_KINDS; k++)
            b->rate[c][k] = ORR_RATE_ONE;
    b->rate[0][ORR_COMM_DP_GRADIENT] = (uint32_t)(RATE * ORR_RATE_ONE);
    return b;
}

static double first_step_ns(const OrrBound *bound, bool is_sampled, uint64_t seed) {
    g_autoptr(GError) error = NULL;
    OrrExecOptions options = {.jitter_frac = SD,
                              .is_jitter_sampled = is_sampled,
                              .is_plain = !is_sampled,
                              .jitter_seed = seed,
                              .max_steps = 1};
    g_autoptr(OrrExecResult) x = orr_exec_run(bound, &options, &error);
    if (!x)
        fail_msg("%s", error->message);
    return (double)x->first_step_ns;
}

#define N_SEEDS 400u

/* Folded and drawn against @expected_ns, within a percent of what jitter costs and the error of the
 * seeds. */
static void compare(int64_t reduction_ns, double expected_ns, double sound_ns) {
    OrrProgram *p = program();
    g_autoptr(OrrBound) bound = bind(p, reduction_ns);
    g_autoptr(OrrBound) folded = orr_fold(bound);
    assert_int_equal(folded->n_ranks, 1);
    double mean = first_step_ns(folded, false, 0), cost = expected_ns - sound_ns;
    if (fabs(mean - expected_ns) > 0.01 * cost)
        fail_msg("in the mean %.0f, not %.0f; without jitter %.0f", mean, expected_ns, sound_ns);
    double drawn[N_SEEDS];
    for (uint32_t i = 0; i < N_SEEDS; i++)
        drawn[i] = first_step_ns(bound, true, i);
    double within = orr_stats_half_width95(orr_stats_deviation(drawn, N_SEEDS), N_SEEDS);
    if (fabs(orr_stats_mean(drawn, N_SEEDS) - expected_ns) > 2 * within)
        fail_msg("drawn %.0f +- %.0f, not %.0f", orr_stats_mean(drawn, N_SEEDS), within,
                 expected_ns);
    orr_program_free(p);
}

static double last_of_all(void) {
    double mean, variance;
    orr_normal_largest(N_RANKS, &mean, &variance);
    return mean;
}

static void test_leads_that_a_reduction_takes_are_those_of_the_closed_form(void **state) {
    (void)state;
    const double d = 500000, e = last_of_all();
    double begin = W1 * (1 + SD * e), fixed = W2 + RATE * W1 + TAIL_NS;
    double differs = SD * sqrt((double)W2 * W2 + RATE * W1 * RATE * W1);
    compare((int64_t)d, (1 - RATE) * (begin + d) + fixed + differs * e,
            (1 - RATE) * (W1 + d) + fixed);
}

static void test_kernels_that_are_slowed_to_their_end_differ_by_more(void **state) {
    (void)state;
    double fixed = W1 + W2 / RATE + TAIL_NS, second = W2 / RATE;
    double differs = SD * sqrt((double)W1 * W1 + second * second);
    compare(20000000, fixed + differs * last_of_all(), fixed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leads_that_a_reduction_takes_are_those_of_the_closed_form),
        cmocka_unit_test(test_kernels_that_are_slowed_to_their_end_differ_by_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
