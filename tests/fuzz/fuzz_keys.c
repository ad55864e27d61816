/* Key files: getters of every kind never fail, errors are whole, whatever the text. */
#include "sim/io/keys.h"
#include "tests/fuzz/fuzz.h"

static const char *const names[] = {"gpipe", "1f1b", "interleaved", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(OrrKeys) keys = orr_keys_parse("fuzz.ini", (const char *)data, size, &error);
    fuzz_check_error(keys, &error);
    if (!keys)
        return 0;
    orr_keys_override(keys, "job", "seed", "7", "--set");
    orr_keys_string(keys, "job", "source", NULL, ORR_KEY_REQUIRED);
    orr_keys_int(keys, "job", "seed", NULL, 0, 10, 1, 0);
    double bw = orr_keys_number(keys, "gpu", "bw", ORR_DIM_RATE, 1, 1e13, 2, 0);
    g_assert(bw >= 1 && bw <= 1e13);
    int64_t tp = orr_keys_int(keys, "layout", "tp", "GPU", 1, 64, 1, 0);
    g_assert(tp >= 1 && tp <= 64);
    int schedule = orr_keys_enum(keys, "schedule", "name", names, 0, 0);
    g_assert(schedule >= 0 && schedule < 3);
    orr_keys_bool(keys, "layout", "sequence_parallel", false, 0);
    g_strfreev(orr_keys_strings(keys, "layout", "order", 0));
    g_strfreev(orr_keys_list(keys, "nccl"));
    bool is_sound = orr_keys_finish(keys, &error);
    fuzz_check_error(is_sound ? keys : NULL, &error);
    return 0;
}
