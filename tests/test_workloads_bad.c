/* Broken model, framework and job files: each gives its message with line, group, key and what
 * would do, all of a file at once; none crashes. */
#include "tests/near.h"
#include "workloads/loader.h"

#include <stdio.h>
#include <string.h>

#define MODEL                                                                                      \
    "[model]\nsource = test\nlayers = 2\nhidden = 64\nheads = 4\nffn = 128\nvocab = 256\n"         \
    "norm = rms_norm\nactivation = silu\nposition = rope\n"
#define JOB "[job]\nmodel = gpt2\ncluster = h100-ib:8\nframework = megatron-2023\nsource = test\n"
#define BATCH "[batch]\nglobal = 8 sequences\nmicro = 1 sequence\nsequence = 1024 tokens\n"
#define PROFILE "[framework]\nsource = test\nbased_on = megatron-2023\n"

typedef struct {
    char kind; /* m, f, j */
    const char *text;
    const char *messages[4]; /* parts that the error must have */
} BadFile;

static const BadFile bad_files[] = {
    {'m', "", {"[model] layers", "is missing"}},
    {'m', MODEL "layer = 3\n", {":11: [model] layer = 3", "layers"}},
    {'m', MODEL "kv_heads = 3\n", {"[model] kv_heads = 3", "do not divide 4 heads"}},
    {'m', MODEL "gated = maybe\n", {"[model] gated = maybe", "yes"}},
    {'m', MODEL "norm_bias = yes\n", {"RMSNorm has no bias"}},
    {'m', MODEL "shares_norm = yes\n", {"parallel = yes"}},
    {'m', MODEL "window = 4096 layers\n", {"window", "tokens"}},
    {'m', MODEL "rotary = 150 %\n", {"[model] rotary = 150 %"}},
    {'m', MODEL "expect_parameters = 5\n", {"expect_parameters = 5", "parameters"}},
    {'m',
     "[model]\nsource = test\nlayers = -2\nhidden = 1e99\nheads = two\nffn = 128\nvocab = 256\n"
     "norm = batch_norm\nactivation = silu\nposition = rope\n",
     {"layers = -2", "heads = two", "norm = batch_norm", "hidden = 1e99"}},
    {'m',
     "[model]\nsource = test\nlayers = 2\nhidden = 65\nheads = 4\nffn = 128\nvocab = 256\n"
     "norm = rms_norm\nactivation = silu\nposition = rope\n",
     {"heads = 4", "do not divide hidden = 65"}},
    {'m',
     "[model]\nsource = test\nlayers = 2\nhidden = 64\nheads = 4\nffn = 128\nvocab = 256\n"
     "norm = layer_norm\nactivation = gelu\nposition = learned\n",
     {"max_positions", "is missing"}},
    {'m', MODEL "gated = yes\nactivation = relu\n", {"activation"}},
    {'f', "[framework]\nsource = test\n", {"flops_formula", "attention", "is missing"}},
    {'f', PROFILE "flops_formula = 7n\n", {"flops_formula = 7n", "megatron, "}},
    {'f', PROFILE "[host]\nlaunch = 6\n", {"[host] launch = 6", "us"}},
    {'f', PROFILE "[interference]\ncompute_tp = 0 %\n", {"compute_tp = 0 %"}},
    {'f', PROFILE "[kernels]\natention = flash\n", {"atention", "attention"}},
    {'f', PROFILE "[defaults]\ngradients = fp12\n", {"gradients = fp12", "compute"}},
    {'f', "[framework]\nsource = test\nbased_on = megatron-1999\n", {"based_on", "megatron-1999"}},
    {'j', "", {"[job] model", "[batch] global"}},
    {'j', JOB, {"[batch] global", "[batch] micro", "[batch] sequence"}},
    {'j', JOB BATCH "[layout]\ntp = 3\n", {"[layout] dp", "do not divide 8 GPUs"}},
    {'j', JOB BATCH "[layout]\ntp = 0\n", {"[layout] tp = 0"}},
    {'j', JOB BATCH "[layout]\ntp = 2\ntensor_parallel = 4\n", {"tensor_parallel = 4", "means tp"}},
    {'j', JOB BATCH "[layout]\nrank_order = tp-pp\n", {"rank_order", "leaves out dp"}},
    {'j', JOB BATCH "[layout]\nrank_order = tp-tp\n", {"rank_order", "said twice"}},
    {'j', JOB BATCH "[layout]\npp = 4\nstage_layers = 6, 6\n", {"stage_layers", "names 2 stages"}},
    {'j', JOB BATCH "[layout]\npp = 2\nstage_layers = 6, x\n", {"stage_layers", "\"x\""}},
    {'j', JOB BATCH "[layout]\nzero_stage = 4\n", {"zero_stage = 4", "3"}},
    {'j', JOB BATCH "[layout]\nhsdp_shard = 3\n", {"hsdp_shard", "DP 8"}},
    {'j', JOB BATCH "[layout]\nends = nowhere\n", {"ends = nowhere", "own_chunk"}},
    {'j', JOB BATCH "[schedule]\nname = 2f2b\n", {"[schedule] name = 2f2b", "1f1b"}},
    {'j', JOB BATCH "[precision]\ncompute = bf17\n", {"compute = bf17", "bf16"}},
    {'j', JOB BATCH "[recompute]\npolicy = half\n", {"policy = half", "selective"}},
    {'j', JOB BATCH "[recompute]\npolicy = full\nmethod = block\n", {"[recompute] layers"}},
    {'j', JOB BATCH "[recompute]\npolicy = none\nlayers = 2\n", {"belong to policy = full"}},
    {'j', JOB BATCH "[network]\nrouting = random\n", {"routing = random", "ecmp-hash"}},
    {'j', JOB BATCH "[nccl]\nALGO = Ring\n", {"[nccl] ALGO = Ring", "NCCL_ALGO"}},
    {'j', JOB BATCH "[bach]\nglobal = 8\n", {"[bach]"}},
    {'j', JOB BATCH "micro = 2 sequences\n", {"micro"}},
    {'j',
     JOB "[batch]\nglobal = 8 tokens\nmicro = 1\nsequence = 8\n",
     {"global = 8 tokens", "sequences"}},
    {'j', JOB BATCH "micro_batches = 4\n", {"micro_batches = 4", "said twice"}},
    {'j',
     "[job]\nmodel = gpt2\ncluster = dgx-h100\nframework = megatron-2023\nsource = x\n" BATCH,
     {"[layout] dp", "NAME:GPUS"}},
    {'j',
     "[job]\nmodel = gpt2\ncluster = h100-ib:many\nframework = megatron-2023\nsource = x\n" BATCH,
     {"cluster = h100-ib:many", "\"many\""}},
    {'j',
     "[job]\nmodel = gpt2\ncluster = h100-ib:8\nframework = megatron-2032\nsource = x\n" BATCH,
     {"framework = megatron-2032", "did you mean"}},
    {'j', "[job\n", {":1:"}},
    {'j', "\xff\xfe", {""}},
};

static void *load(char kind, const char *path, GError **error) {
    switch (kind) {
    case 'm':
        return orr_workload_model(path, NULL, 0, NULL, error);
    case 'f':
        return orr_workload_framework(path, NULL, 0, NULL, error);
    default:
        return orr_workload_job(path, NULL, 0, NULL, error);
    }
}

static void test_each_broken_file_says_what_is_wrong(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "bad.ini", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(bad_files); i++) {
        const BadFile *b = &bad_files[i];
        assert_true(g_file_set_contents(path, b->text, -1, NULL));
        g_autoptr(GError) error = NULL;
        if (load(b->kind, path, &error) != NULL)
            fail_msg("loaded though broken: %s", b->text);
        assert_true(g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT));
        for (size_t k = 0; k < G_N_ELEMENTS(b->messages) && b->messages[k] != NULL; k++)
            if (strstr(error->message, b->messages[k]) == NULL)
                fail_msg("\"%s\" is not in:\n%s\nfor:\n%s", b->messages[k], error->message,
                         b->text);
        if (strstr(error->message, "bad.ini") == NULL)
            fail_msg("no file name in: %s", error->message);
    }
    remove(path);
    remove(folder);
}

static void test_unknown_names_suggest_the_nearest(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_null(orr_workload_model("llama3.1-405", NULL, 0, NULL, &error));
    assert_non_null(strstr(error->message, "llama3.1-405b"));
}

static void test_unknown_override_is_refused(void **state) {
    (void)state;
    const OrrOverride model = {"model", "layer", "3"}, job = {"layuot", "tp", "3"};
    const OrrOverride framework = {"framework", "atention", "flash"};
    g_autoptr(GError) e1 = NULL;
    assert_null(orr_workload_model("gpt2", &model, 1, NULL, &e1));
    assert_non_null(strstr(e1->message, "--set"));
    g_autoptr(GError) e2 = NULL;
    assert_null(orr_workload_job("tiny", &job, 1, NULL, &e2));
    assert_non_null(strstr(e2->message, "layuot"));
    g_autoptr(GError) e3 = NULL;
    assert_null(orr_workload_framework("megatron-2023", &framework, 1, NULL, &e3));
    assert_non_null(strstr(e3->message, "atention"));
}

static void test_circle_of_profiles_is_refused(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "self.ini", NULL);
    g_autofree char *text = g_strdup_printf("[framework]\nsource = test\nbased_on = %s\n", path);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    g_autoptr(GError) error = NULL;
    assert_null(orr_workload_framework(path, NULL, 0, NULL, &error));
    assert_non_null(strstr(error->message, "circle"));
    remove(path);
    remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_broken_file_says_what_is_wrong),
        cmocka_unit_test(test_unknown_names_suggest_the_nearest),
        cmocka_unit_test(test_unknown_override_is_refused),
        cmocka_unit_test(test_circle_of_profiles_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
