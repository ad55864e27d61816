/* Training logs: any bytes give a run with a step or an error that says why. */
#include "calibrate/run_log.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "fuzz.log", .notes = notes};
    g_autoptr(OrrMeasuredRun) run = orr_run_log_parse(&import, (const char *)data, size, &error);
    fuzz_check_error(run, &error);
    g_assert(g_utf8_validate(notes->str, -1, NULL));
    if (!run)
        return 0;
    g_assert(run->n_steps > 0 && run->n_used > 0 && run->n_used <= run->n_steps);
    g_assert(!(run->step_time_ns <= 0));
    g_autofree char *text = orr_run_log_format(run);
    g_assert(g_utf8_validate(text, -1, NULL));
    return 0;
}
