/* orrery check on any log: tables that can be read are judged, or refused with a reason. */
#include <math.h>
#include <string.h>

#include "calibrate/nccl_tests.h"
#include "tests/check_machines.h"
#include "tests/fuzz/fuzz.h"

static void judge(const OrrMeasuredTable *table, const char *log) {
    static const OrrNcclForce unforced = {.algo = ORR_N_ALGOS, .proto = ORR_N_PROTOS};
    GError *error = NULL;
    OrrCheckCase c = {.table = table,
                      .place = check_machines[table->n_rows % CHECK_N_MACHINES].place,
                      .force = unforced,
                      .management_bytes_per_s = 1.25e9,
                      .log = log};
    g_autoptr(OrrCheck) k = orr_judge_check(&c, 0.2, &error);
    fuzz_check_error(k, &error);
    if (!k)
        return;
    g_assert(k->plateau_ratio > 0 && isfinite(k->plateau_ratio));
    g_assert(!k->is_within || k->found.n_causes == 0);
    for (uint32_t i = 0; i < k->found.n_causes; i++) {
        const OrrCheckCause *cause = &k->found.causes[i];
        g_assert(cause->likelihood_frac > 0 && cause->likelihood_frac <= 1);
        g_assert(i == 0 || cause->likelihood_frac <= cause[-1].likelihood_frac);
        g_assert(g_utf8_validate(cause->evidence, -1, NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autofree char *text = g_strndup((const char *)data, size);
    OrrImport import = {.path = "fuzz.log", .op = size % 2 ? NULL : "all_reduce", .notes = notes};
    g_autoptr(OrrMeasuredTables) tables = orr_nccl_tests_parse(&import, text, strlen(text), &error);
    fuzz_check_error(tables, &error);
    for (uint32_t i = 0; tables && i < tables->n_tables && i < 4; i++)
        judge(tables->tables[i], text);
    return 0;
}
