/* Launch scripts and configurations as job files: small texts of each kind, which load. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <string.h>

#include "workloads/import_config.h"
#include "workloads/loader.h"

static GString *notes;

static int set_up(void **state) {
    (void)state;
    notes = g_string_new(NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    g_string_free(notes, TRUE);
    return 0;
}

static char *import_text(const char *name, const char *text, const char *const *sets,
                         GError **error) {
    OrrImport import = {.path = name, .sets = sets, .notes = notes};
    return orr_import_config_text(&import, text, strlen(text), error);
}

/* The job of an imported text, and its model. */
static OrrJob *load(const char *text, OrrModel **model) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "orrery-config-XXXXXX.ini", NULL);
    int file = g_mkstemp(path);
    assert_true(file >= 0 && g_close(file, NULL));
    assert_true(g_file_set_contents(path, text, -1, NULL));
    OrrJob *job = orr_workload_job(path, NULL, 0, NULL, &error);
    if (error)
        print_error("%s\n", error->message);
    assert_non_null(job);
    *model = orr_workload_model(job->model_ref, NULL, 0, NULL, &error);
    if (error)
        print_error("%s\n", error->message);
    assert_non_null(*model);
    g_remove(path);
    return job;
}

static const char *const cluster[] = {"job.cluster=h100-ib:16", NULL};

static void test_script_variables_arrays_and_conditions_are_followed(void **state) {
    (void)state;
    static const char script[] =
        "#!/bin/bash\n#SBATCH --nodes=2\n"
        "MSIZE=2 # a comment with --num-layers 99\n"
        "if [[ ${MSIZE} == 1 ]]; then NHIDDEN=1024; NLAYERS=8\n"
        "elif [[ ${MSIZE} == 2 ]]; then NHIDDEN=2048; NLAYERS=16\n"
        "else NHIDDEN=1\nfi\n"
        ": \"${TP:=4}\"\nMBS=2\nGBS=$(( MBS * 8 * (1 + 1) ))\n"
        "declare -a ARGS=(\n  --hidden-size $NHIDDEN # width\n"
        "  --num-attention-heads 16\n)\n"
        "OPTS=\" \\\n --seq-length 2048 --max-position-embeddings 2048 \\\n "
        "--vocab-size 50257 \"\n"
        "cat <<EOT > x\n--num-layers 77\nEOT\n"
        "srun python train.py \"${ARGS[@]}\" $OPTS --num-layers $NLAYERS \\\n"
        "  --tensor-model-parallel-size $TP --micro-batch-size=$MBS "
        "--global-batch-size $GBS --bf16 `pwd` $(date)\n";
    g_autoptr(GError) error = NULL;
    g_autofree char *text = import_text("own.sh", script, cluster, &error);
    if (error)
        print_error("%s\n", error->message);
    assert_non_null(text);
    OrrModel *model;
    OrrJob *job = load(text, &model);
    assert_int_equal(model->layers, 16);
    assert_int_equal(model->hidden, 2048);
    assert_int_equal(model->ffn, 8192);
    assert_int_equal(job->layout.tp, 4);
    assert_int_equal(job->batch.global_sequences, 32);
    assert_int_equal(job->batch.micro_sequences, 2);
    orr_model_free(model);
    orr_job_free(job);
}

static void test_what_is_missing_is_told_at_once(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_null(import_text("own.json", "{\"train_batch_size\": 8, \"bf16\": {\"enabled\": true}}",
                            NULL, &error));
    assert_non_null(strstr(error->message, "--set job.cluster=... --set batch.micro=... --set "
                                           "batch.sequence=... --set job.model=..."));
    g_clear_error(&error);
    const char *const sets[] = {"job.cluster=h100-ib:8", "job.model=llama3-8b",
                                "batch.sequence=4096 tokens", "batch.micro=1 sequence", NULL};
    g_autofree char *text =
        import_text("own.json", "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3}}",
                    sets, &error);
    assert_null(error);
    assert_non_null(strstr(text, "zero_stage = 3"));
    OrrModel *model;
    OrrJob *job = load(text, &model);
    assert_int_equal(job->batch.global_sequences, 8);
    orr_model_free(model);
    orr_job_free(job);
    const char *const unknown[] = {"job.klaster=x", NULL};
    assert_null(import_text("own.json", "{\"train_batch_size\": 8}", unknown, &error));
    assert_int_equal(error->code, ORR_ERROR_USAGE);
}

static void test_torchtitan_tables_are_read_by_line(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        import_text("own.toml",
                    "[model]\nname = \"llama3\" # a comment\nflavor = \"8B\"\n[training]\n"
                    "local_batch_size = 2\nseq_len = 8192\n[parallelism]\n"
                    "tensor_parallel_degree = 2\n[activation_checkpoint]\nmode = 'full'\n",
                    cluster, &error);
    assert_null(error);
    assert_non_null(strstr(text, "model = llama3.1-8b"));
    assert_non_null(strstr(text, "tp = 2"));
    assert_non_null(strstr(text, "policy = full"));
    assert_null(import_text("own.toml", "[model]\nflavor = {\n", cluster, &error));
    assert_non_null(strstr(error->message, "own.toml:2: flavor"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_script_variables_arrays_and_conditions_are_followed),
        T(test_what_is_missing_is_told_at_once),
        T(test_torchtitan_tables_are_read_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
