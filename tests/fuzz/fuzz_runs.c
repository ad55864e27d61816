/* Run, failure, price and share files: whatever the bytes, a whole spec or a whole error; what
 * loads and needs no job is simulated for a short while, and its account must hold. */
#include "sim/job/engine.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/loader_run.h"
#include "workloads/loader_share.h"

#include <string.h>

#define DAY INT64_C(86400000000000)

/* The failures strike a plain job of eight nodes for some days. */
static void strike(const OrrFailureSet *set) {
    g_autoptr(OrrRunSpec) s = orr_run_spec_new();
    s->name = g_strdup("fuzz");
    s->n_gpus = 64, s->n_nodes = 8, s->length_ns = 3 * DAY;
    s->recovery.start_ns = 60000000000, s->recovery.hot_spares = 1;
    s->phases = g_new0(OrrRunPhase, 1);
    s->n_phases = 1;
    s->phases[0] = (OrrRunPhase){.end_tokens = INT64_MAX, .tokens_per_step = 8};
    s->phases[0].step_ns[0] = 5000000000;
    s->checkpoint.interval_steps = 100;
    s->checkpoint.n_tiers = 1;
    s->checkpoint.tiers[0] = (OrrTier){.name = g_strdup("t"),
                                       .every = 1,
                                       .keep = 2,
                                       .survives = ORR_SCOPE_ALL,
                                       .block_ns = 1000000000};
    for (uint32_t i = 0; i < set->n; i++) {
        bool is_given = set->kinds[i].law == ORR_LAW_EVENTS;
        if (!is_given && set->kinds[i].mean_ns < 1e11)
            continue; /* more strikes than a short replay can take */
        if (set->kinds[i].nodes > s->n_nodes)
            continue; /* meant for a larger job, and refused */
        OrrFailureKind *k = orr_run_spec_add_kind(s, "");
        g_free(k->name);
        orr_failure_kind_copy(k, &set->kinds[i]);
        k->n_units = 1;
    }
    OrrRunSeed seed;
    g_assert(orr_run_spec_check(s, NULL));
    orr_run_seed_init(&seed, 1, orr_run_n_causes(s));
    orr_run_simulate(s, 1, NULL, &seed);
    g_autofree char *flaw = orr_run_seed_flaw(&seed, orr_run_n_causes(s));
    if (flaw)
        g_error("%s", flaw);
    orr_run_seed_clear(&seed);
}

static void read_events(const uint8_t *data, size_t size) {
    g_auto(FuzzFile) table = fuzz_file(data, size);
    g_autofree char *text = g_strdup_printf("[failures]\nsummary = s\nsource = s\ncauses = a\n"
                                            "[a]\ncomponent = gpu\nunit = job\neffect = stop\n"
                                            "nodes = 1 node\nevents = %s\n",
                                            table.path);
    g_auto(FuzzFile) file = fuzz_file(text, strlen(text));
    GError *error = NULL;
    g_autoptr(OrrFailureSet) failures = orr_workload_failures(file.path, NULL, 0, NULL, &error);
    fuzz_check_error(failures, &error);
    if (failures)
        strike(failures);
}

static void read_run(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrRunFile) run = orr_workload_run(path, NULL, 0, NULL, &error);
    fuzz_check_error(run, &error);
}

static void read_failures(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrFailureSet) failures = orr_workload_failures(path, NULL, 0, NULL, &error);
    fuzz_check_error(failures, &error);
    if (failures)
        strike(failures);
}

static void read_prices(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrPrices) prices = orr_workload_prices(path, NULL, 0, NULL, &error);
    fuzz_check_error(prices, &error);
}

static void read_share(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrShareFile) share = orr_workload_share(path, NULL, 0, NULL, &error);
    fuzz_check_error(share, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct {
        const char *group;
        void (*read)(const char *path);
    } kinds[] = {{"[run]", read_run},
                 {"[failures]", read_failures},
                 {"[prices]", read_prices},
                 {"[share]", read_share}};
    if (size > 0 && !memchr(data, '[', size)) { /* no key file: a table of events for one */
        read_events(data, size);
        return 0;
    }
    g_auto(FuzzFile) file = fuzz_file(data, size);
    bool is_read = false;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (fuzz_has_group(data, size, kinds[i].group)) {
            kinds[i].read(file.path);
            is_read = true;
        }
    for (guint i = 0; !is_read && i < G_N_ELEMENTS(kinds); i++)
        kinds[i].read(file.path);
    return 0;
}
