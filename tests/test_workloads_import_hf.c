/* config.json files of Hugging Face: what is modelled has its exact parameters after a round trip
 * through the model loader; what is not is refused by name. */
#include "sim/model/params.h"
#include "tests/near.h"
#include "workloads/import_hf.h"
#include "workloads/loader.h"

#include <stdio.h>
#include <string.h>

/* @total 0: refused, with @message; else @message is a part of the warnings, or NULL. Counts: model
 * cards and safetensors indices; those of cut-down files are the same formulas by hand. */
static const struct {
    const char *file;
    uint64_t total;
    const char *message;
} shared_files[] = {
    {"bert-base-uncased", 0, "is an encoder"},
    {"deepseek-v2-lite-16b", 0, "MLA"},
    {"deepseek-v3", 0, "MLA"},
    {"falcon-40b", 41303293952, NULL},
    {"gemma-4-26b-a4b", 0, "mixture of experts"},
    {"gemma2-2b", 2614341888, "vocab_size is absent: 256000"},
    {"gemma2-9b", 9241705984, "tie_word_embeddings is absent: true"},
    {"gemma3-12b", 11765788416, "only text_config is taken"},
    {"gemma3-27b", 27009002240, "only text_config is taken"},
    {"gpt-neox-20b", 20554567680, NULL},
    {"gpt-oss-20b", 0, "mixture of experts"},
    {"gpt2", 124439808, "tie_word_embeddings is absent: true"},
    {"llama-2-13b", 13015864320, NULL},
    {"llama-2-70b", 68976648192, NULL},
    {"llama-2-7b", 6738415616, NULL},
    {"llama-3-8b", 8030261248, NULL},
    {"llama-3.1-405b", 405853388800, NULL},
    {"llama-3.1-70b", 70553706496, NULL},
    {"llama-3.1-8b", 8030261248, NULL},
    {"llama-3.2-1b", 1235814400, NULL},
    {"llama-4-maverick-17b-128e", 0, "text_config.model_type"},
    {"minimax-m2.5", 0, "mixture of experts"},
    {"mistral-7b-v0.3", 7248023552, NULL},
    {"mixtral-8x7b", 0, "mixture of experts"},
    {"nemotron-h-56b", 0, "state-space"},
    {"odd-huge", 0, "num_hidden_layers = 1000000000000"},
    {"odd-missing-layers", 0, "num_hidden_layers"},
    {"odd-nan-and-trailing-comma", 0, ":1:"},
    {"odd-string-numbers", 0, "hidden_size = \"4096\""},
    {"opt-175b", 174604468224, NULL},
    {"qwen2.5-1.5b", 1543714304, NULL},
    {"qwen2.5-32b", 32763876352, NULL},
    {"qwen2.5-7b", 7615616512, NULL},
    {"qwen3-0.6b", 596049920, NULL},
    {"qwen3-235b-a22b", 0, "mixture of experts"},
    {"qwen3-30b-a3b", 0, "mixture of experts"},
    {"qwen3-8b", 8190735360, NULL},
    {"qwen3-vl-30b-a3b", 0, "mixture of experts"},
    {"shrunk-baichuan", 615782400, "rotary positions"},
    {"shrunk-bloom", 564168704, NULL},
    {"shrunk-falcon-7b", 504547584, NULL},
    {"shrunk-gptbigcode", 227059968, NULL},
    {"shrunk-gptj", 614290656, NULL},
    {"shrunk-gptneox", 324057088, NULL},
    {"shrunk-jamba", 0, "state-space"},
    {"shrunk-phi", 340871680, NULL},
    {"shrunk-phi3", 310256640, NULL},
    {"shrunk-t5", 0, "encoder-decoder"},
    {"t5-v1_1-xxl", 0, "encoder-decoder"},
};

/* Through a file and the model loader, which compares expect_parameters. */
static uint64_t parameters_of(const char *text) {
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "imported.ini", NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    GError *error = NULL;
    g_autoptr(OrrSources) sources = orr_sources_new();
    g_autoptr(OrrModel) m = orr_workload_model(path, NULL, 0, sources, &error);
    remove(path);
    remove(folder);
    if (m == NULL)
        fail_msg("%s", error->message);
    assert_int_equal(sources->assumptions->len, 0); /* the importer leaves nothing open */
    OrrParams params;
    orr_params_count(m, &params);
    return params.total;
}

static void check(const char *name, char *text, GError *flaw, const GString *warnings,
                  uint64_t total, const char *message) {
    g_autofree char *owned G_GNUC_UNUSED = text; /* frees it */
    g_autoptr(GError) error = flaw;
    if (total == 0) {
        if (text != NULL)
            fail_msg("%s: imported, though it cannot be modelled", name);
        assert_true(g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT));
        if (strstr(error->message, message) == NULL || strstr(error->message, name) == NULL)
            fail_msg("\"%s\" is not in: %s", message, error->message);
        return;
    }
    if (text == NULL)
        fail_msg("%s", error->message);
    uint64_t seen = parameters_of(text);
    if (seen != total)
        fail_msg("%s: %" G_GUINT64_FORMAT " parameters, not %" G_GUINT64_FORMAT, name, seen, total);
    if (message != NULL && strstr(warnings->str, message) == NULL)
        fail_msg("%s: \"%s\" is not in the warnings: %s", name, message, warnings->str);
}

static void test_every_shared_config(void **state) {
    (void)state;
    const char *root = g_getenv("ORRERY_SHARED");
    g_autofree char *folder = g_build_filename(root != NULL ? root : ORR_SRCDIR "/../shared",
                                               "files", "hf-configs", NULL);
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR)) {
        g_clear_pointer(&folder, g_free); /* skip() jumps over what frees it */
        skip();
    }
    for (size_t i = 0; i < G_N_ELEMENTS(shared_files); i++) {
        g_autofree char *file = g_strconcat(shared_files[i].file, ".json", NULL);
        g_autofree char *path = g_build_filename(folder, file, NULL);
        g_autoptr(GString) warnings = g_string_new(NULL);
        GError *error = NULL;
        char *text = orr_import_hf(path, warnings, &error);
        check(file, text, error, warnings, shared_files[i].total, shared_files[i].message);
    }
}

#define LLAMA                                                                                      \
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,"                        \
    "\"num_attention_heads\":4,\"intermediate_size\":128,\"vocab_size\":100"
/* 2 x (4 x 64^2 + 3 x 64 x 128 + 2 x 64) + 2 x 100 x 64 + 64 */
#define LLAMA_TOTAL 95040

static const struct {
    const char *text;
    uint64_t total;
    const char *message;
} own_files[] = {
    {LLAMA "}", LLAMA_TOTAL, "tie_word_embeddings is absent: false"},
    {LLAMA ",\"tie_word_embeddings\":true}", LLAMA_TOTAL - 6400, NULL},
    {LLAMA ",\"attention_bias\":true,\"mlp_bias\":true}", LLAMA_TOTAL + 2 * (4 * 64 + 2 * 128 + 64),
     NULL},
    {LLAMA ",\"num_key_value_heads\":2}", LLAMA_TOTAL - 2 * 2 * 64 * 32, NULL},
    {LLAMA ",\"head_dim\":32}", LLAMA_TOTAL + 2 * 4 * 64 * 64, NULL},
    {LLAMA ",\"_comment\":\"x\",\"rope_theta\":1e6,\"bos_token_id\":1,\"foo\":null,\"bar\":false}",
     LLAMA_TOTAL, NULL},
    {"{\"text_config\":" LLAMA "},\"vision_config\":{\"depth\":9}}", LLAMA_TOTAL,
     "only text_config"},
    {"{\"tie_word_embeddings\":true,\"text_config\":" LLAMA "}}", LLAMA_TOTAL - 6400, NULL},
    {LLAMA ",\"layer_types\":[\"full_attention\",\"full_attention\"]}", LLAMA_TOTAL, NULL},
    {LLAMA ",\"layer_types\":[\"linear_attention\",\"full_attention\"]}", 0, "linear_attention"},
    {LLAMA ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]}", 0, "sliding_window"},
    {LLAMA ",\"adapter_width\":16}", 0, "adapter_width = 16"},
    {LLAMA ",\"n_layer\":3}", 0, "n_layer = 3"},
    {LLAMA ",\"num_key_value_heads\":3}", 0, "do not divide"},
    {LLAMA ",\"hidden_act\":\"mish\"}", 0, "hidden_act = \"mish\""},
    {LLAMA ",\"hidden_act\":\"relu\"}", 0, "gated ReLU"},
    {LLAMA ",\"num_experts\":8}", 0, "mixture of experts"},
    {LLAMA ",\"is_encoder_decoder\":true}", 0, "encoder-decoder"},
    {LLAMA ",\"tie_word_embeddings\":\"yes\"}", 0, "tie_word_embeddings = \"yes\""},
    {LLAMA ",\"hidden_size\":64}", 0, "hidden_size"},
    {"{}", 0, "model_type"},
    {"[1,2]", 0, "object"},
    {"", 0, ":1"},
    {"{\"model_type\":\"llama\"", 0, ":1"},
    {"{\"model_type\":\"pelican\"}", 0, "llama, "},
    {"{\"model_type\":\"llama\",\"hidden_size\":0,\"num_hidden_layers\":-1,"
     "\"num_attention_heads\":2.5}",
     0, "num_hidden_layers = -1"},
    {"{\"model_type\":\"opt\",\"hidden_size\":64,\"num_hidden_layers\":2,\"ffn_dim\":128,"
     "\"num_attention_heads\":4,\"word_embed_proj_dim\":32}",
     0, "word_embed_proj_dim = 32"},
    {"{\"model_type\":\"phi\",\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"num_attention_heads\":4,\"qk_layernorm\":true}",
     0, "qk_layernorm"},
    {"{\"model_type\":\"gptj\",\"n_embd\":64,\"n_layer\":2,\"n_head\":4,\"rotary_dim\":32}", 0,
     "rotary_dim = 32"},
    {"{\"model_type\":\"qwen2\",\"hidden_size\":64,\"num_hidden_layers\":4,"
     "\"num_attention_heads\":4,\"use_sliding_window\":true,\"sliding_window\":8,"
     "\"max_window_layers\":2}",
     0, "max_window_layers = 2"},
    /* 12 h^2 + two norms without bias a layer, tied, no position table */
    {"{\"model_type\":\"mpt\",\"d_model\":64,\"n_layers\":2,\"n_heads\":4,\"vocab_size\":100,"
     "\"attn_config\":{\"alibi\":true}}",
     2 * (12 * 64 * 64 + 128) + 6400 + 64, "no_bias is absent"},
    {"{\"model_type\":\"mpt\",\"d_model\":64,\"n_layers\":2,\"n_heads\":4,\"vocab_size\":100,"
     "\"max_seq_len\":50,\"attn_config\":{\"alibi\":false}}",
     2 * (12 * 64 * 64 + 128) + 6400 + 64 + 50 * 64, NULL},
    /* GPT-Neo: q, k, v without bias: 12 h^2 + h + 5 h + 4 h */
    {"{\"model_type\":\"gpt_neo\",\"hidden_size\":64,\"num_layers\":2,\"num_heads\":4,"
     "\"vocab_size\":100,\"max_position_embeddings\":10,\"attention_types\":[[[\"global\","
     "\"local\"],1]]}",
     2 * (12 * 64 * 64 + 10 * 64) + 110 * 64 + 128, NULL},
    {"{\"model_type\":\"starcoder2\",\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"intermediate_size\":256,"
     "\"vocab_size\":100}",
     2 * (12 * 64 * 64 + 13 * 64) + 6400 + 128, "use_bias is absent"},
};

static void test_own_configs(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(own_files); i++) {
        g_autoptr(GString) warnings = g_string_new(NULL);
        GError *error = NULL;
        const char *text = own_files[i].text;
        char *model = orr_import_hf_text("own.json", text, strlen(text), warnings, &error);
        check("own.json", model, error, warnings, own_files[i].total, own_files[i].message);
    }
}

static void test_missing_file_is_named(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_null(orr_import_hf("/nowhere/config.json", NULL, &error));
    assert_non_null(strstr(error->message, "/nowhere/config.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shared_config),
        cmocka_unit_test(test_own_configs),
        cmocka_unit_test(test_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
