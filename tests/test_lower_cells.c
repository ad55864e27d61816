/* Ranks that are not bound because the machine repeats itself: what is left stands for all, and
 * folds to what all fold to. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "sim/io/data.h"
#include "tests/step_helpers.h"

#include <glib.h>
#include <string.h>

#define JOB "llama3-405b-16k"
#define SIZED(dp, sequences, gpus)                                                                 \
    "layout.dp=" dp ";batch.global=" sequences " sequences;job.cluster=clos-roce-1m:" gpus ";"

static OrrStepRun *prepare(OrrStepRequest *request, const char *job, OrrOverride *overrides,
                           const char *sets, bool is_whole) {
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) texts = g_strsplit(sets, ";", -1);
    uint32_t n = 0;
    for (char **t = texts; *t; t++) {
        g_auto(GStrv) parts = g_strsplit_set(*t, ".=", 3);
        if (g_strv_length(parts) == 3)
            overrides[n++] = (OrrOverride){g_intern_string(parts[0]), g_intern_string(parts[1]),
                                           g_intern_string(parts[2])};
    }
    *request = (OrrStepRequest){
        .job = job, .overrides = overrides, .n_overrides = n, .is_unfolded = is_whole};
    OrrStepRun *run = orr_step_prepare(request, &error);
    if (!run)
        fail_msg("%s %s: %s", job, sets, error->message);
    return run;
}

/* Every real rank, group and link is stood for once. */
static void check_weights(const OrrBound *b, const OrrLayout *layout) {
    g_autofree char *flaw = orr_bound_flaw(b);
    if (flaw)
        fail_msg("%s", flaw);
    g_autofree uint32_t *n = g_new0(uint32_t, b->n_ranks);
    for (uint32_t r = 0; r < b->n_real_ranks; r++)
        n[b->rep_of ? b->rep_of[r] : r]++;
    assert_memory_equal(n, b->weight, b->n_ranks * sizeof *n);
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        uint32_t groups = 0;
        for (uint32_t i = 0; i < b->groups[k].n_groups; i++)
            groups += b->groups[k].weight[i];
        if (b->groups[k].n_groups > 0)
            assert_int_equal(groups, orr_layout_n_groups(layout, k));
    }
}

typedef struct {
    const char *sets;
    uint32_t n_bound;
} Case;

/* 128 replicas of 8 x 16 ranks on racks of 16 GPUs: two replicas fill a rack at each stage. Stages
 * of 1,024 ranks fill thirds of pods of 3,072 GPUs: all cells of a stage are alike. A perturbed
 * cell is one of its own. */
static void test_cells_are_as_many_as_differ(void **state) {
    (void)state;
    static const Case cases[] = {
        {"", 256},
        {"perturb.a=gpu:17:speed=0.9", 512},
        {"perturb.a=gpu:17:speed=0.9;perturb.b=gpu:33:speed=0.9", 512}, /* alike */
        {"perturb.a=gpu:17:speed=0.9;perturb.b=gpu:33:speed=0.8", 768},
        {"perturb.a=nic:3:1:bandwidth=0.5", 512},
        {"perturb.a=gpu:*:speed=0.9", 256},
        {"perturb.a=link:pod0/up:bandwidth=0.5", 256}, /* shared by all cells anyway */
        {SIZED("384", "6144", "49152") "perturb.a=link:leaf5/up:bandwidth=0.5", 512},
        {SIZED("1024", "16384", "131072"), 2048}, /* stages of 2.67 pods: thirds of pods differ */
        {SIZED("384", "6144", "49152"), 256},     /* stages of one pod each */
        {"network.placement=random", 16384},
        {"network.routing=ecmp-hash", 16384},
        {"perturb.a=gpu:*:speed~normal(1,0.01)", 16384},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrStepRequest request;
        OrrOverride overrides[8];
        g_autoptr(OrrStepRun) run = prepare(&request, JOB, overrides, cases[i].sets, false);
        if (run->bound->n_ranks != cases[i].n_bound)
            fail_msg("%s: %u ranks bound, not %u", cases[i].sets, run->bound->n_ranks,
                     cases[i].n_bound);
        check_weights(run->bound, &run->job->layout);
    }
}

/* Returns whether ranks were left out. */
static bool check_fold(const char *job, const char *sets) {
    OrrStepRequest requests[2];
    OrrOverride overrides[2][8];
    g_autoptr(OrrStepRun) cut = prepare(&requests[0], job, overrides[0], sets, false);
    g_autoptr(OrrStepRun) whole = prepare(&requests[1], job, overrides[1], sets, true);
    g_autoptr(OrrBound) folded = orr_fold(whole->bound);
    assert_int_equal(whole->bound->n_ranks, whole->bound->n_real_ranks);
    if (cut->folded->n_ranks != folded->n_ranks || cut->folded->n_links != folded->n_links)
        fail_msg("%s %s: %u ranks and %u links, of all %u and %u", job, sets, cut->folded->n_ranks,
                 cut->folded->n_links, folded->n_ranks, folded->n_links);
    assert_memory_equal(cut->folded->weight, folded->weight,
                        folded->n_ranks * sizeof *folded->weight);
    assert_memory_equal(cut->folded->rep_of, folded->rep_of,
                        folded->n_real_ranks * sizeof *folded->rep_of);
    return cut->bound->n_ranks < whole->bound->n_ranks;
}

static void test_cells_fold_to_what_all_ranks_fold_to(void **state) {
    (void)state;
    static const char *const sets[] = {"", "perturb.a=gpu:17:speed=0.9",
                                       "job.cluster=meta-24k-roce:16384",
                                       "perturb.a=nic:3:1:bandwidth=0"};
    for (size_t i = 0; i < G_N_ELEMENTS(sets); i++)
        assert_true(check_fold(JOB, sets[i]));
}

/* The million ranks of one of them are left out: binding each of them takes a gigabyte. */
static void test_cells_of_every_shipped_job_fold_to_what_all_ranks_fold_to(void **state) {
    (void)state;
    g_auto(GStrv) jobs = orr_data_list("workloads/jobs", ".ini");
    uint32_t n_cut = 0;
    assert_non_null(jobs[0]);
    for (char **job = jobs; *job; job++)
        if (strcmp(*job, "llama3-405b-1m") != 0)
            n_cut += check_fold(*job, "");
    assert_true(n_cut > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_are_as_many_as_differ),
        cmocka_unit_test(test_cells_fold_to_what_all_ranks_fold_to),
        cmocka_unit_test(test_cells_of_every_shipped_job_fold_to_what_all_ranks_fold_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
