#include "tests/near.h"

#include "tests/job_cases.h"

OrrRunSpec *plain(void) {
    OrrRunSpec *s = orr_run_spec_new();
    s->name = g_strdup("plain");
    s->n_gpus = 8, s->n_nodes = 4, s->n_replicas = 4;
    s->phases = g_new0(OrrRunPhase, 1);
    s->n_phases = 1;
    s->phases[0] = (OrrRunPhase){.end_tokens = INT64_MAX, .tokens_per_step = 12, .mfu_frac = 0.4};
    for (guint i = 0; i <= ORR_MAX_LOST_REPLICAS; i++)
        s->phases[0].step_ns[i] = 100 * S;
    return s;
}

OrrTier *tier(OrrRunSpec *s, int64_t block_ns, int64_t write_ns, int64_t load_ns) {
    s->checkpoint.interval_steps = 10;
    OrrTier *t = &s->checkpoint.tiers[s->checkpoint.n_tiers++];
    *t = (OrrTier){.name = g_strdup("disk"),
                   .every = 1,
                   .keep = 2,
                   .block_ns = block_ns,
                   .write_ns = write_ns,
                   .load_ns = load_ns,
                   .survives = ORR_SCOPE_ALL};
    return t;
}

OrrFailureKind *strike_at(OrrRunSpec *s, OrrEffect effect, int64_t at_ns) {
    OrrFailureKind *k = orr_run_spec_add_kind(s, "strike");
    k->law = ORR_LAW_EVENTS;
    k->event_ns = g_new(int64_t, 1);
    k->event_ns[0] = at_ns;
    k->n_events = 1;
    k->effect = effect;
    return k;
}

OrrRunSeed simulate(const OrrRunSpec *s, uint64_t seed) {
    OrrRunSeed out;
    g_autoptr(GError) error = NULL;
    if (!orr_run_spec_check(s, &error))
        fail_msg("%s", error->message);
    orr_run_seed_init(&out, seed, orr_run_n_causes(s));
    orr_run_simulate(s, seed, NULL, &out);
    g_autofree char *flaw = orr_run_seed_flaw(&out, orr_run_n_causes(s));
    if (flaw)
        fail_msg("seed %d: %s", (int)seed, flaw);
    return out;
}

int64_t lost(const OrrRunSeed *o, uint32_t cause, OrrLoss loss) {
    return o->lost_ns[cause * ORR_N_LOSSES + loss];
}
