/* Chakra traces: any bytes give nodes in order or an error that says why; what can be lowered runs.
 */
#include <string.h>

#include "sim/exec/exec.h"
#include "sim/io/csv.h"
#include "sim/lower/replay.h"
#include "tests/fuzz/fuzz.h"
#include "traces/chakra.h"

/* Execution adds up times: traces of years are not what is looked for here. */
static bool is_short(const OrrReplay *replay) {
    int64_t total = 0;
    for (uint32_t i = 0; i < replay->n_nodes; i++) {
        if (replay->nodes[i].duration_ns > INT64_C(1) << 50)
            return false;
        total += replay->nodes[i].duration_ns;
    }
    return total < INT64_C(1) << 50;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "fuzz.et", .notes = notes};
    g_autoptr(OrrReplay) replay = orr_chakra_parse(&import, (const char *)data, size, &error);
    fuzz_check_error(replay, &error);
    if (!replay)
        return 0;
    for (uint32_t i = 0; i < replay->n_nodes; i++)
        for (uint32_t k = 0; k < replay->nodes[i].n_deps; k++)
            g_assert(replay->deps[replay->nodes[i].first_dep + k] < i);
    g_autofree char *text = orr_chakra_format(replay);
    g_autoptr(OrrCsv) csv = orr_csv_parse("out.csv", text, strlen(text), ORR_CSV_PLAIN, &error);
    if (!csv)
        g_error("imported, but not a table: %s", error->message);
    g_autoptr(OrrProgram) program = NULL;
    g_autoptr(OrrBound) bound = orr_lower_replay(replay, &program, &error);
    fuzz_check_error(bound, &error);
    if (bound && is_short(replay)) {
        OrrExecOptions options = {.self_check = true};
        g_autoptr(OrrExecResult) result = orr_exec_run(bound, &options, &error);
        fuzz_check_error(result, &error);
    }
    return 0;
}
