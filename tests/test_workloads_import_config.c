/* Launch scripts and configurations as job files: small texts of each kind, which load. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <string.h>

#include "config.h"
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

/* The text of the job, which must be imported. g_free. */
static char *must(const char *name, const char *text, const char *const *sets) {
    g_autoptr(GError) error = NULL;
    char *job = import_text(name, text, sets, &error);
    if (error)
        print_error("%s\n", error->message);
    assert_non_null(job);
    return job;
}

static void test_script_case_loops_appends_and_elements_are_followed(void **state) {
    (void)state;
    static const char script[] =
        "#!/bin/bash\n#SBATCH -N 4\n#SBATCH --gres=gpu:a100:8\n"
        "SIZE=${1:-7b}; export A=1 MBS=2 GLOBAL=\"128\"\n"
        "case $SIZE in\n"
        "  125m) LAYERS=12; HIDDEN=768; HEADS=12;;\n"
        "  7b|8b)\n    LAYERS=32\n    HIDDEN=4096 HEADS=32\n    ;;\n"
        "  *) LAYERS=1 ;;\nesac\n"
        "[ \"$SIZE\" == 7b ] && TP=4\n[[ $SIZE == 125m ]] && TP=1\n"
        "[ $SIZE = 125m ] || PP=(1 2 4)\n"
        "ARGS=(--num-layers $LAYERS --hidden-size $HIDDEN)\n"
        "ARGS+=(--num-attention-heads $HEADS --seq-length 2048 --vocab-size 50257)\n"
        "MORE=$(cat <<'EOF'\n --max-position-embeddings 2048 --bf16\nEOF\n)\n"
        "for GBS in $GLOBAL 256 512; do\n"
        "  torchrun --nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_ON_NODE train.py "
        "${ARGS[@]} $MORE \\\n    --tensor-model-parallel-size $TP "
        "--pipeline-model-parallel-size ${PP[1]} --micro-batch-size $MBS "
        "--global-batch-size $GBS # ${#PP[@]}\ndone\n";
    g_autofree char *text = must("own.sh", script, (const char *const[]){"job.cluster=x:32", NULL});
    static const char *const lines[] = {"\ntp = 4\n",
                                        "\npp = 2\n",
                                        "\nlayers = 32\n",
                                        "\nhidden = 4096\n",
                                        "\nheads = 32\n",
                                        "\nglobal = 128 sequences\n",
                                        "\nmicro = 2 sequences\n",
                                        "\ncompute = bf16\n"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("no %s in %s", lines[i], text);
    assert_non_null(strstr(notes->str, "for GBS in 128 ...: the first is taken"));
    g_autoptr(GError) error = NULL;
    assert_null(import_text("own.sh", script, NULL, &error));
    assert_non_null(strstr(error->message, "it runs on 32 GPUs"));
}

static void test_conditions_fp8_and_parallelism_that_is_none(void **state) {
    (void)state;
    static const char script[] =
        "ARG=${3:-MOCK}\nif [[ \"$ARG\" == no ]] || [[ -z \"$NOTHING\" && -n \"$ARG\" ]]; then\n"
        "  MORE+=(\n    \"--vocab-size 128256\" # kept\n    #\"--vocab-size 1\"\n  )\n"
        "else\n  MORE+=(--vocab-size 7)\nfi\n"
        "[ -z \"$ARG\" ] && [ $ARG = MOCK ] && TP=8\n[ -n \"$ARG\" ] && [ $ARG = MOCK ] && TP=1\n"
        "torchrun train.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
        "--seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 "
        "--global-batch-size 128 --bf16 --fp8-format hybrid --sequence-parallel "
        "--tensor-model-parallel-size $TP ${MORE[@]}\n";
    OrrModel *model;
    g_autofree char *text = must("own.sh", script, cluster);
    OrrJob *job = load(text, &model);
    assert_int_equal(model->vocab, 128256);
    assert_int_equal(job->layout.tp, 1);
    assert_false(job->layout.sequence_parallel);
    assert_int_equal(job->precision.compute, ORR_FP8);
    orr_model_free(model);
    orr_job_free(job);
}

static void test_documents_configure_deepspeed_or_hold_the_script(void **state) {
    (void)state;
    static const char deepspeed[] =
        "STAGE=1\ncat <<EOT > ds.json\n{ \"zero_optimization\": { \"stage\": $STAGE },\n"
        " \"fp16\": {\"enabled\": true} }\nEOT\n"
        "deepspeed pretrain_gpt.py --deepspeed --num-layers 24 --hidden-size 1024 "
        "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
        "--micro-batch-size 4 --global-batch-size 64 --vocab-size 50257\n";
    g_autofree char *text = must("own.sh", deepspeed, cluster);
    assert_non_null(strstr(text, "zero_stage = 1"));
    assert_non_null(strstr(text, "compute = fp16"));
    assert_non_null(strstr(text, "framework = megatron-deepspeed"));
    static const char writer[] =
        "cat > job.sh <<-EOF\n\tpython pretrain_gpt.py --num-layers 24 --hidden-size 1024 \\\n"
        "\t--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
        "--micro-batch-size 4 --global-batch-size 64 --vocab-size 50257\n\tEOF\nsbatch job.sh\n";
    g_autofree char *other = must("own.sh", writer, cluster);
    assert_non_null(strstr(other, "layers = 24"));
}

#define MOE_YAML                                                                                   \
    "ENV_VARS:\n  NCCL_DEBUG: VERSION\nMODEL_ARGS:\n  # shapes\n  --num-layers: 61\n"              \
    "  --hidden-size: 7168\n  --ffn-hidden-size: 18432\n  --num-attention-heads: 128\n"            \
    "  --kv-channels: 128\n  --swiglu: true\n  --normalization: RMSNorm\n"                         \
    "  --position-embedding-type: rope\n  --untie-embeddings-and-output-weights: true\n"           \
    "  --disable-bias-linear: true\n  --multi-latent-attention: true\n  --kv-lora-rank: 512\n"     \
    "  --q-lora-rank: 1536\n  --v-head-dim: 128\n  --num-experts: 256\n"                           \
    "  --moe-layer-freq: ([0]*3+[1]*58)\n  --moe-ffn-hidden-size: 2048\n"                          \
    "  --moe-shared-expert-intermediate-size: 2048\n  --moe-router-topk: 8\n"                      \
    "  --tensor-model-parallel-size: ${TP}\n  --expert-model-parallel-size: 32\n"                  \
    "  --micro-batch-size: 1\n  --global-batch-size: 8192\n  --seq-length: 4096\n"                 \
    "  --pad-vocab-size-to: 129280\n  --bf16: true\n  --use-distributed-optimizer: true\n"

static void test_megatron_arguments_in_yaml_and_experts(void **state) {
    (void)state;
#ifdef HAVE_YAML
    static const char *const sets[] = {"job.cluster=h100-ib:256", "TP=2", NULL};
    g_autofree char *text = must("own.yaml", MOE_YAML, sets);
    static const char *const lines[] = {
        "\ntp = 2\n",           "\nep = 32\n",           "\nexperts = 256\n",
        "\ndense_layers = 3\n", "\nexpert_ffn = 2048\n", "\nshared_experts = 1\n",
        "\nkv_rank = 512\n",    "\nzero_stage = 1\n",    "\nexperts_per_token = 8\n",
        "(Megatron YAML)\n",    "\nnorm = rms_norm\n",   "\ntied = no\n"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("no %s in %s", lines[i], text);
    assert_non_null(strstr(notes->str, "has experts, which can't be simulated yet"));
    g_autofree char *without = must("own.yaml", MOE_YAML, cluster);
    assert_null(strstr(without, "\ntp = "));
    assert_non_null(strstr(notes->str, "not set, values with them are left out: --set TP=..."));
    /* the job is whole, its model is refused by name and line */
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "orrery-config-XXXXXX.ini", NULL);
    int file = g_mkstemp(path);
    assert_true(file >= 0 && g_close(file, NULL));
    assert_true(g_file_set_contents(path, text, -1, NULL));
    g_autoptr(OrrJob) job = orr_workload_job(path, NULL, 0, NULL, &error);
    assert_null(error);
    assert_int_equal(job->layout.ep, 32);
    assert_null(orr_workload_model(job->model_ref, NULL, 0, NULL, &error));
    g_remove(path);
    assert_non_null(strstr(error->message, "[model] experts = 256: mixtures of experts can't be"));
#else
    g_autoptr(GError) error = NULL;
    assert_null(import_text("own.yaml", MOE_YAML, cluster, &error));
    assert_non_null(strstr(error->message, "without libyaml"));
#endif
}

static void test_megatron_and_nemo_sections_in_yaml(void **state) {
    (void)state;
#ifdef HAVE_YAML
    static const char megatron[] =
        "language_model:\n  num_layers: 24\n  hidden_size: 1024\n  num_attention_heads: 16\n"
        "  ffn_hidden_size: null\n  add_bias_linear: False\n  activation_func: swiglu\n"
        "  num_moe_experts: null\nmodel_parallel:\n  tensor_model_parallel_size: 2\n"
        "  sequence_parallel: True\n  bf16: True\nmicro_batch_size: 2\n"
        "global_batch_size: 128\nuntie_embeddings_and_output_weights: True\n"
        "position_embedding_type: rope\nrotary_percent: 0.5\nseq_length: 4096\n"
        "vocab_size: 50257\n";
    OrrModel *model;
    g_autofree char *text = must("own.yaml", megatron, cluster);
    OrrJob *job = load(text, &model);
    assert_int_equal(model->layers, 24);
    assert_true(model->is_gated && !model->mlp_bias && !model->is_tied);
    assert_near(model->rotary_frac, 0.5, 1e-12);
    assert_int_equal(job->layout.tp, 2);
    orr_model_free(model);
    orr_job_free(job);
    static const char nemo[] =
        "trainer:\n  devices: 8\n  num_nodes: 2\n  precision: bf16\nmodel:\n"
        "  num_layers: 32\n  hidden_size: 4096\n  ffn_hidden_size: 14336\n"
        "  num_attention_heads: 32\n  num_query_groups: 8\n  encoder_seq_length: 8192\n"
        "  micro_batch_size: 1\n  global_batch_size: 128\n  tensor_model_parallel_size: 4\n"
        "  pipeline_model_parallel_size: 1\n  bias: false\n  activation: fast-swiglu\n"
        "  normalization: rmsnorm\n  position_embedding_type: rope\n"
        "  share_embeddings_and_output_weights: false\n"
        "  activations_checkpoint_granularity: selective\n  optim:\n"
        "    name: distributed_fused_adam\n  vocab_size: 128256\n";
    g_autofree char *other = must("own.yaml", nemo, cluster);
    job = load(other, &model);
    assert_int_equal(model->kv_heads, 8);
    assert_int_equal(model->ffn, 14336);
    assert_int_equal(job->layout.zero_stage, 1);
    assert_int_equal(job->recompute.policy, ORR_RECOMPUTE_SELECTIVE);
    assert_non_null(strstr(other, "framework = nemo-2024"));
    orr_model_free(model);
    orr_job_free(job);
#else
    skip();
#endif
}

#define TITAN(name, flavor, more)                                                                  \
    "[model]\nname = \"" name "\"\nflavor = \"" flavor "\"\n[training]\nlocal_batch_size = 8\n"    \
    "seq_len = 4096\n" more

static void test_torchtitan_flavors_pipelines_and_shards(void **state) {
    (void)state;
    OrrModel *model;
    g_autofree char *dense = must("own.toml", TITAN("qwen3", "14B", ""), cluster);
    OrrJob *job = load(dense, &model);
    assert_int_equal(model->layers, 40);
    assert_true(model->has_qk_norm && !model->is_tied);
    assert_int_equal(job->layout.zero_stage, 3);
    assert_true(job->layout.reshard_after_forward);
    orr_model_free(model);
    orr_job_free(job);
    g_autofree char *stages =
        must("own.toml",
             TITAN("llama3", "8B",
                   "[parallelism]\npipeline_parallel_degree = 2\n"
                   "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                   "pipeline_parallel_microbatch_size = 2\ndata_parallel_replicate_degree = 2\n"
                   "data_parallel_shard_degree = 4\n"),
             cluster);
    job = load(stages, &model);
    assert_int_equal(job->batch.micro_sequences, 2);
    assert_int_equal(job->layout.vpp, 2);
    assert_int_equal(job->layout.hsdp_shard, 4);
    assert_false(job->layout.reshard_after_forward);
    assert_non_null(strstr(stages, "micro_batches = 4\n"));
    orr_model_free(model);
    orr_job_free(job);
    g_autofree char *experts = must("own.toml", TITAN("qwen3", "30B-A3B", ""), cluster);
    assert_non_null(strstr(experts, "experts = 128\nexperts_per_token = 8\nexpert_ffn = 768\n"));
    g_autoptr(GError) error = NULL;
    assert_null(import_text("own.toml", TITAN("flux", "dev", ""), cluster, &error));
    assert_non_null(strstr(error->message, "qwen3 0.6B, 1.7B"));
}

static void test_deepspeed_combinations(void **state) {
    (void)state;
    static const char *const sets[] = {"job.cluster=h100-ib:8", "job.model=llama3-8b",
                                       "batch.sequence=4096 tokens", NULL};
    static const struct {
        const char *text, *says;
    } fine[] = {
        {"{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 4, "
         "\"bf16\": {\"enabled\": true}}",
         "micro_batches = 4\nmicro = 2 sequences\n"},
        {"{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, "
         "\"gradient_accumulation_steps\": 4, \"bfloat16\": {\"enabled\": true}}",
         "global = 64 sequences\nmicro = 2 sequences\n"},
        {"{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1, "
         "\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"none\"}}}",
         "zero_stage = 3\n"},
        {"{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1, "
         "\"zero_optimization\": true, \"fp16\": {\"enabled\": true}}",
         "compute = fp16\n"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(fine); i++) {
        g_autofree char *job = must("own.json", fine[i].text, sets);
        if (!strstr(job, fine[i].says))
            fail_msg("no %s in %s", fine[i].says, job);
    }
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3, \"offload_param\": "
         "{\"device\": \"nvme\"}}}",
         "offload_param.device = nvme: offloading"},
        {"{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\"}",
         "--set batch.micro=..."},
        {"{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 3},,}", "own.json:2"},
        {"{\"optimizer\": {}}", "says nothing of train_batch_size"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(import_text("own.json", bad[i].text, sets, &error));
        if (!strstr(error->message, bad[i].says))
            fail_msg("no %s in %s", bad[i].says, error->message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_script_variables_arrays_and_conditions_are_followed),
        T(test_what_is_missing_is_told_at_once),
        T(test_torchtitan_tables_are_read_by_line),
        T(test_script_case_loops_appends_and_elements_are_followed),
        T(test_conditions_fp8_and_parallelism_that_is_none),
        T(test_documents_configure_deepspeed_or_hold_the_script),
        T(test_megatron_arguments_in_yaml_and_experts),
        T(test_megatron_and_nemo_sections_in_yaml),
        T(test_torchtitan_flavors_pipelines_and_shards),
        T(test_deepspeed_combinations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
