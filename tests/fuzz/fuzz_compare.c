/* orrery compare with any log or trace: what can be read is compared, and the terms add up. */
#include <math.h>
#include <string.h>

#include "calibrate/run_log.h"
#include "sim/judge/compare.h"
#include "tests/fuzz/fuzz.h"
#include "traces/kineto.h"

static void adds_up(OrrCompare *c) {
    int64_t one = 0, other = 0;
    for (uint32_t i = 0; i < c->n_terms; i++) {
        one += c->terms[i].one_ns;
        other += c->terms[i].other_ns;
    }
    g_assert(one == c->one_ns && other == c->other_ns);
    for (guint i = 0; i < c->notes->len; i++)
        g_assert(g_utf8_validate(c->notes->pdata[i], -1, NULL));
    orr_compare_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrRecord) one = orr_record_new();
    OrrImport import = {.path = "fuzz", .notes = notes};
    one->time_account_ns[ORR_K_GEMM] = 100;
    one->time_account_ns[ORR_OWN_BUBBLE] = 20;
    one->step_time_ns = 120;
    one->layout.pp = 2;
    if (size > 0 && (data[0] == '{' || data[0] == '[')) {
        g_autoptr(OrrMeasuredProfile) p =
            orr_kineto_parse(&import, (const char *)data, size, &error);
        fuzz_check_error(p, &error);
        if (p)
            adds_up(orr_judge_compare_profile(one, p));
        return 0;
    }
    g_autoptr(OrrMeasuredRun) log = orr_run_log_parse(&import, (const char *)data, size, &error);
    fuzz_check_error(log, &error);
    if (log && isfinite(log->step_time_ns) && log->step_time_ns < 1e18)
        adds_up(orr_judge_compare_log(one, log));
    return 0;
}
