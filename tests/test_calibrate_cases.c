/* Cases of the calibrator: columns, work, grids, shapes brought as CSV, groups of GPUs, options. */
#include "calibrate/grid.h"
#include "calibrate/options.h"

#include "tests/calibrate_helpers.h"
#include "tests/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const OrrDeviceFacts two_nodes = {.device = "fake", .n_gpus = 16, .n_per_node = 8};

static OrrGridWish wish_all(bool is_full) {
    OrrGridWish wish = {.is_full = is_full};
    for (int k = 0; k < ORR_N_CASE_KINDS; k++)
        wish.kinds[k] = true;
    return wish;
}

static void test_case_columns_read_back_what_they_wrote(void **state) {
    (void)state;
    OrrGridWish wish = wish_all(true);
    g_autoptr(GArray) cases = orr_grid_cases(&wish, &two_nodes);
    for (guint i = 0; i < cases->len; i += 7) {
        const OrrCase *c = &g_array_index(cases, OrrCase, i);
        OrrCase back = {0};
        for (guint column = 0; column < ORR_N_CASE_COLUMNS; column++) {
            g_autofree char *text = orr_case_cell(c, column);
            assert_true(orr_case_read(&back, column, text, NULL));
        }
        g_autofree char *key = orr_case_key(c), *again = orr_case_key(&back);
        assert_string_equal(key, again);
    }
}

static void test_case_work_follows_the_formulas(void **state) {
    (void)state;
    OrrCase gemm = {.kind = ORR_CASE_GEMM, .dtype = ORR_BF16, .m = 128, .n = 256, .k = 512};
    assert_near(orr_case_flops(&gemm), 2.0 * 128 * 256 * 512, 0);
    assert_near(orr_case_bytes(&gemm), 2.0 * (128 * 512 + 512 * 256 + 128 * 256), 0);
    OrrCase attention = {.kind = ORR_CASE_ATTENTION,
                         .dtype = ORR_BF16,
                         .batch = 1,
                         .sequence = 1024,
                         .heads = 8,
                         .kv_heads = 8,
                         .head_dim = 64};
    double full = orr_case_flops(&attention);
    assert_near(full, 4.0 * 8 * 1024 * 1024 * 64, 0);
    attention.is_causal = 1;
    assert_near(orr_case_flops(&attention), full / 2, 0);
    attention.pass = ORR_PASS_DGRAD;
    assert_near(orr_case_flops(&attention), full / 2 * 2.5, 0);
    assert_near(orr_case_bus_factor(ORR_ALL_REDUCE, 8), 1.75, 0);
    assert_near(orr_case_bus_factor(ORR_ALL_GATHER, 8), 0.875, 0);
    assert_near(orr_case_bus_factor(ORR_BROADCAST, 8), 1, 0);
}

static void test_grid_has_no_case_twice_and_none_with_a_flaw(void **state) {
    (void)state;
    for (int is_full = 0; is_full < 2; is_full++) {
        OrrGridWish wish = wish_all(is_full);
        g_autoptr(GArray) cases = orr_grid_cases(&wish, &two_nodes);
        g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        for (guint i = 0; i < cases->len; i++) {
            const OrrCase *c = &g_array_index(cases, OrrCase, i);
            g_autofree char *flaw = orr_case_flaw(c);
            assert_null(flaw);
            assert_true(g_hash_table_add(keys, orr_case_key(c)));
        }
    }
}

static guint count(const GArray *cases, OrrCaseKind kind, OrrDtype dtype, OrrKernelPass pass) {
    guint n = 0;
    for (guint i = 0; i < cases->len; i++) {
        const OrrCase *c = &g_array_index(cases, OrrCase, i);
        n += c->kind == kind && c->dtype == dtype && c->pass == pass;
    }
    return n;
}

static void test_grid_covers_every_kind_dtype_and_pass(void **state) {
    (void)state;
    OrrGridWish wish = wish_all(false);
    g_autoptr(GArray) cases = orr_grid_cases(&wish, &two_nodes);
    static const OrrDtype dtypes[] = {ORR_BF16, ORR_FP16, ORR_FP8, ORR_TF32, ORR_FP32};
    for (guint d = 0; d < G_N_ELEMENTS(dtypes); d++)
        assert_true(count(cases, ORR_CASE_GEMM, dtypes[d], ORR_PASS_FORWARD) > 8);
    assert_true(count(cases, ORR_CASE_GEMM, ORR_BF16, ORR_PASS_DGRAD) > 8);
    assert_true(count(cases, ORR_CASE_GEMM, ORR_BF16, ORR_PASS_WGRAD) > 8);
    assert_true(count(cases, ORR_CASE_ATTENTION, ORR_BF16, ORR_PASS_DGRAD) > 8);
    for (int kind = 0; kind < ORR_N_CASE_KINDS; kind++) {
        guint n = 0;
        for (guint i = 0; i < cases->len; i++)
            n += g_array_index(cases, OrrCase, i).kind == (OrrCaseKind)kind;
        assert_true(n >= 3);
    }
}

static void test_full_grid_of_collectives_spans_8_bytes_to_8_gib(void **state) {
    (void)state;
    OrrGridWish wish = {.is_full = true, .kinds = {[ORR_CASE_COLLECTIVE] = true}};
    g_autoptr(GArray) cases = orr_grid_cases(&wish, &two_nodes);
    gint64 least = G_MAXINT64, most = 0;
    guint shapes = 0, crowds = 0, beside = 0, in_place = 0;
    for (guint i = 0; i < cases->len; i++) {
        const OrrCase *c = &g_array_index(cases, OrrCase, i);
        least = MIN(least, c->bytes);
        most = MAX(most, c->bytes);
        shapes |= 1u << c->ranks;
        crowds += c->n_groups > 1;
        beside += c->has_compute != 0;
        in_place += c->is_in_place != 0;
    }
    assert_int_equal(least, 8);
    assert_int_equal(most, (gint64)8 << 30);
    assert_int_equal(shapes, (1u << ORR_N_RANKS_SHAPES) - 1);
    assert_true(crowds > 100 && beside > 100 && in_place > 100);
}

static void test_one_gpu_has_no_collectives_and_no_peer_copies(void **state) {
    (void)state;
    OrrDeviceFacts one = {.device = "fake", .n_gpus = 1, .n_per_node = 1};
    OrrGridWish wish = wish_all(true);
    g_autoptr(GArray) cases = orr_grid_cases(&wish, &one);
    for (guint i = 0; i < cases->len; i++) {
        const OrrCase *c = &g_array_index(cases, OrrCase, i);
        assert_true(c->kind != ORR_CASE_COLLECTIVE);
        assert_false(c->kind == ORR_CASE_COPY && c->op == ORR_COPY_P2P);
    }
}

static void test_ranks_place_rails_and_strides(void **state) {
    (void)state;
    int group, place;
    assert_int_equal(orr_ranks_n_groups(16, 2, 8), 8); /* rails of two nodes */
    assert_true(orr_ranks_place(11, 16, 2, 8, &group, &place));
    assert_int_equal(group, 3);
    assert_int_equal(place, 1);
    assert_int_equal(orr_ranks_n_groups(16, 4, 1), 4); /* half nodes */
    assert_true(orr_ranks_place(13, 16, 4, 1, &group, &place));
    assert_int_equal(group, 3);
    assert_int_equal(place, 1);
    assert_int_equal(orr_ranks_n_groups(16, 3, 1), 5); /* the last GPU is in none */
    assert_false(orr_ranks_place(15, 16, 3, 1, &group, &place));
}

static void test_ranks_place_fills_every_group_once(void **state) {
    (void)state;
    for (int size = 2; size <= 8; size++)
        for (int stride = 1; size * stride <= 24; stride++) {
            int n = orr_ranks_n_groups(24, size, stride), seen[24][24] = {{0}};
            for (int gpu = 0; gpu < 24; gpu++) {
                int group, place;
                if (!orr_ranks_place(gpu, 24, size, stride, &group, &place))
                    continue;
                assert_true(group < n && place < size);
                assert_int_equal(seen[group][place]++, 0);
            }
            for (int g = 0; g < n; g++)
                for (int p = 0; p < size; p++)
                    assert_int_equal(seen[g][p], 1);
        }
}

static void test_shapes_of_a_file_are_taken_once_and_others_counted(void **state) {
    (void)state;
    char *path = scratch_file("shapes.csv");
    g_file_set_contents(path,
                        "kind,dtype,pass,m,n,k,rows,columns,comment\n"
                        "gemm,bf16,wgrad,4096,8192,512,,,first\n"
                        "gemm,bf16,wgrad,4096,8192,512,,,again\n"
                        "norm,bf16,forward,,,,2048,4096,\n"
                        "router,bf16,forward,,,,2048,4096,\n",
                        -1, NULL);
    OrrGridWish wish = wish_all(false);
    g_autoptr(GArray) cases = g_array_new(FALSE, TRUE, sizeof(OrrCase));
    guint n_ignored;
    assert_true(orr_grid_shapes(path, &wish, cases, &n_ignored, NULL));
    assert_int_equal(cases->len, 2);
    assert_int_equal(n_ignored, 1);
    const OrrCase *gemm = &g_array_index(cases, OrrCase, 0);
    assert_int_equal(gemm->k, 512);
    assert_int_equal(gemm->pass, ORR_PASS_WGRAD);
    assert_int_equal(g_array_index(cases, OrrCase, 1).op, ORR_MEM_RMS_NORM);
    scratch_remove(path);
}

static void test_shapes_errors_name_line_and_column(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"m,n\n1,2\n", "kind"},
        {"kind,m,n,k\ngemm,128,x,128\n", ":2: n = x"},
        {"kind,m,n,k\ngem,128,128,128\n", "did you mean gemm"},
        {"kind,m,n,k\ngemm,128,128,\n", "needs m, n and k"},
        {"kind,dtype,m,n,k\ngemm,fp8,100,128,128\n", "multiples of 16"},
        {"kind,op,dtype,bytes\ncollective,all_reduce,bf16,64\n", "group_gpus"},
        {"kind,sequence,heads,kv_heads,head_dim,batch\nattention,64,8,3,64,1\n", "multiple"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *path = scratch_file("shapes.csv");
        g_file_set_contents(path, bad[i].text, -1, NULL);
        OrrGridWish wish = wish_all(false);
        g_autoptr(GArray) cases = g_array_new(FALSE, TRUE, sizeof(OrrCase));
        g_autoptr(GError) error = NULL;
        guint n_ignored;
        assert_false(orr_grid_shapes(path, &wish, cases, &n_ignored, &error));
        assert_int_equal(error->code, ORR_ERROR_INPUT);
        if (!strstr(error->message, bad[i].expected))
            fail_msg("'%s' is not in '%s'", bad[i].expected, error->message);
        scratch_remove(path);
    }
}

static void test_options_refuse_what_makes_no_sense(void **state) {
    (void)state;
    static const char *const bad[][4] = {
        {"orrery-calibrate", "--only", "gems", NULL},
        {"orrery-calibrate", "--quick", "--full", NULL},
        {"orrery-calibrate", "word", NULL},
        {"orrery-calibrate", "--minutes", "-3", NULL},
        {"orrery-calibrate", "--fast", NULL},
        {"orrery-calibrate", "-o", NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        OrrCalibrateOptions o;
        bool is_answered;
        g_autoptr(GError) error = NULL;
        assert_false(orr_calibrate_options((char **)bad[i], &o, &is_answered, &error));
        assert_int_equal(error->code, ORR_ERROR_USAGE);
        orr_calibrate_options_clear(&o);
    }
}

static void test_options_only_picks_kinds(void **state) {
    (void)state;
    static const char *const words[] = {"orrery-calibrate", "--only", "copy",
                                        "--only=launch",    "--full", NULL};
    OrrCalibrateOptions o;
    bool is_answered;
    assert_true(orr_calibrate_options((char **)words, &o, &is_answered, NULL));
    assert_true(o.is_full && !is_answered);
    for (int k = 0; k < ORR_N_CASE_KINDS; k++)
        assert_int_equal(o.kinds[k], k == ORR_CASE_COPY || k == ORR_CASE_LAUNCH);
    orr_calibrate_options_clear(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_columns_read_back_what_they_wrote),
        cmocka_unit_test(test_case_work_follows_the_formulas),
        cmocka_unit_test(test_grid_has_no_case_twice_and_none_with_a_flaw),
        cmocka_unit_test(test_grid_covers_every_kind_dtype_and_pass),
        cmocka_unit_test(test_full_grid_of_collectives_spans_8_bytes_to_8_gib),
        cmocka_unit_test(test_one_gpu_has_no_collectives_and_no_peer_copies),
        cmocka_unit_test(test_ranks_place_rails_and_strides),
        cmocka_unit_test(test_ranks_place_fills_every_group_once),
        cmocka_unit_test(test_shapes_of_a_file_are_taken_once_and_others_counted),
        cmocka_unit_test(test_shapes_errors_name_line_and_column),
        cmocka_unit_test(test_options_refuse_what_makes_no_sense),
        cmocka_unit_test(test_options_only_picks_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
