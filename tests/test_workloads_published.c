/* Tables of published measurements: kinds by columns, broken cells, folders. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <string.h>

#include "sim/io/file.h"
#include "workloads/published.h"

#define RUN_HEADER                                                                                 \
    "extra,id,gpus,layers,hidden,heads,seq_len,global_batch_seqs,micro_batch,step_time_s,"         \
    "recommended\n"

static OrrPublished *read(const char *text, GError **error) {
    g_autofree char *dir = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "table.csv", NULL);
    assert_true(orr_file_write(path, text, NULL));
    OrrPublished *p = orr_published_new();
    if (!orr_workload_published(dir, p, error))
        g_clear_pointer(&p, orr_published_free);
    remove(path);
    g_rmdir(dir);
    return p;
}

static void test_columns_go_by_name_and_unknown_ones_are_ignored(void **state) {
    (void)state;
    g_autoptr(OrrPublished) p = read(RUN_HEADER "x,R1,64,32,4096,32,2048,128,1,2.5,yes\n", NULL);
    assert_non_null(p);
    assert_int_equal(p->runs->len, 1);
    const OrrPublishedRun *r = &g_array_index(p->runs, OrrPublishedRun, 0);
    assert_string_equal(r->id, "R1");
    assert_int_equal(r->gpus, 64);
    assert_near(r->step_time_ns, 2.5e9, 1e-12);
    assert_int_equal(r->tp, 0);
    assert_int_equal(r->sp, -1);
    assert_true(r->is_recommended);
    assert_null(r->flaw);
}

static void test_a_cell_that_is_no_number_is_the_rows_flaw(void **state) {
    (void)state;
    g_autoptr(OrrPublished) p = read(RUN_HEADER "x,R1,many,32,4096,32,2048,128,1,2.5,yes\n"
                                                "x,R2,8,32,4096,32,2048,128,1,inf,no\n",
                                     NULL);
    const OrrPublishedRun *r = &g_array_index(p->runs, OrrPublishedRun, 0);
    assert_string_equal(r[0].flaw, "column gpus is no number");
    assert_string_equal(r[1].flaw, "column step_time_s is no number");
    assert_false(r[1].is_recommended);
}

static void test_collectives_kernels_and_trials_are_told_by_columns(void **state) {
    (void)state;
    g_autoptr(OrrPublished) calls =
        read("gpu,table,op,gpus,bytes,dtype,time_us\nh100_sxm,2.27.3,all_gather,8,1024,fp16,9.5\n",
             NULL);
    const OrrPublishedCall *c = &g_array_index(calls->calls, OrrPublishedCall, 0);
    assert_int_equal(c->kind, ORR_ALL_GATHER);
    assert_int_equal(c->version, 22703);
    assert_int_equal(c->n_nodes, 1);
    assert_near(c->time_ns, 9500, 1e-12);
    g_autoptr(OrrPublished) kernels =
        read("gpu,dtype,M,N,K,tflops\nH100,bf16,1024,2048,4096,500\n", NULL);
    const OrrPublishedKernel *k = &g_array_index(kernels->kernels, OrrPublishedKernel, 0);
    assert_near(k->time_ns, 2.0 * 1024 * 2048 * 4096 / 500e12 * 1e9, 1e-12);
    assert_false(k->is_alone); /* a serving stack's operation, unless a paper says which kernel */
    g_autoptr(OrrPublished) paper =
        read("gpu,dtype,op,M,N,K,tflops\nH100,fp8,GEMM,1024,2048,4096,1000\n", NULL);
    assert_true(g_array_index(paper->kernels, OrrPublishedKernel, 0).is_alone);
    g_autoptr(OrrPublished) trials = read(
        "id,gpus,layers,hidden,micro_batch,outcome\na,8,2,64,1,OOM\nb,8,2,64,1,Success\n", NULL);
    const OrrPublishedRun *t = &g_array_index(trials->runs, OrrPublishedRun, 0);
    assert_int_equal(t[0].outcome, ORR_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(t[1].outcome, ORR_OUTCOME_RAN);
}

static void test_other_tables_are_named_not_refused(void **state) {
    (void)state;
    g_autoptr(OrrPublished) p = read("item,low,high\nA100,1,2\n", NULL);
    assert_non_null(p);
    assert_int_equal(p->others->len, 1);
    assert_true(g_str_has_prefix(p->others->pdata[0], "table.csv: "));
}

static void test_broken_csv_is_a_located_error(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_null(read(RUN_HEADER "x,R1,64\n", &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, "table.csv:2"));
}

static void test_shipped_tables_are_whole(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = orr_workload_published_shipped(&error);
    assert_non_null(folder);
    g_autoptr(OrrPublished) p = orr_published_new();
    assert_true(orr_workload_published(folder, p, &error));
    assert_int_equal(p->others->len, 0);
    assert_true(p->runs->len > 1700);
    for (guint i = 0; i < p->runs->len; i++) {
        const OrrPublishedRun *r = &g_array_index(p->runs, OrrPublishedRun, i);
        assert_null(r->flaw);
        assert_true(r->source[0] && r->id[0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_go_by_name_and_unknown_ones_are_ignored),
        cmocka_unit_test(test_a_cell_that_is_no_number_is_the_rows_flaw),
        cmocka_unit_test(test_collectives_kernels_and_trials_are_told_by_columns),
        cmocka_unit_test(test_other_tables_are_named_not_refused),
        cmocka_unit_test(test_broken_csv_is_a_located_error),
        cmocka_unit_test(test_shipped_tables_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
