/* Files of failures: a group a cause, its rate as a count in a window of observation, as a mean
 * time of one unit, or per thousand node-days. */
#include "workloads/loader_run.h"

#include "sim/io/csv.h"
#include "sim/io/data.h"
#include "sim/io/file.h"
#include "workloads/loader_priv.h"

#include <string.h>

#define MAX_EVENTS_BYTES (64u << 20)      /* ours: a million times are 10 MB */
#define NS_MAX (100 * 365.25 * 86400e9)   /* a century, far below INT64_MAX ns */
#define MTBF_MAX (1e6 * 365.25 * 86400e9) /* ours: of one part, a million years */

/* The window that counts are of. */
typedef struct {
    double ns, gpus, nodes, switches, racks;
    const OrrOverride *overrides; /* of the command line */
    uint32_t n_overrides;
    OrrSources *sources; /* NULL: nobody asks */
} Window;

/* The last way in which the command line says how often a cause strikes; NULL: it does not. */
static const char *chosen_rate(const Window *w, const char *group) {
    static const char *const ways[] = {"count", "mtbf", "per_1000_node_days", "events", NULL};
    const char *chosen = NULL;
    for (uint32_t i = 0; i < w->n_overrides; i++)
        if (strcmp(w->overrides[i].group, group) == 0 && g_strv_contains(ways, w->overrides[i].key))
            chosen = w->overrides[i].key;
    return chosen;
}

/* Whether that key says the rate: one of the command line takes the place of the file's. */
static bool says_rate(OrrKeys *keys, const Window *w, const char *group, const char *key) {
    const char *chosen = chosen_rate(w, group);
    return orr_keys_has(keys, group, key) && (!chosen || strcmp(chosen, key) == 0);
}

static double units_in(const Window *w, OrrFailureUnit unit) {
    const double all[ORR_N_UNITS] = {w->gpus, w->nodes, w->switches, w->racks, 1};
    return all[unit];
}

/* A time of the cause, else of the group [failures], else @fallback. */
static int64_t time_of(OrrKeys *keys, const char *group, const char *key, double fallback) {
    bool is_own = orr_keys_has(keys, group, key);
    double common =
        orr_keys_number(keys, "failures", key, ORR_DIM_TIME, 0, NS_MAX, fallback, ORR_KEY_QUIET);
    return (int64_t)orr_keys_number(keys, group, key, ORR_DIM_TIME, 0, NS_MAX, is_own ? 0 : common,
                                    ORR_KEY_QUIET);
}

static void read_rate(OrrKeys *keys, const Window *w, OrrFailureKind *k) {
    const char *g = k->name;
    double count = orr_keys_number(keys, g, "count", ORR_DIM_NONE, 0, 1e12, 0, ORR_KEY_QUIET);
    double mtbf = orr_keys_number(keys, g, "mtbf", ORR_DIM_TIME, 1, MTBF_MAX, 0, ORR_KEY_QUIET);
    double rate =
        orr_keys_number(keys, g, "per_1000_node_days", ORR_DIM_NONE, 0, 1e9, 0, ORR_KEY_QUIET);
    bool has_count = says_rate(keys, w, g, "count"), has_mtbf = says_rate(keys, w, g, "mtbf");
    bool has_rate = says_rate(keys, w, g, "per_1000_node_days");
    int given = has_count + has_mtbf + has_rate + says_rate(keys, w, g, "events");
    if (given != 1) {
        orr_keys_complain(
            keys, g, "mtbf",
            "how often does it strike? one of mtbf, count, per_1000_node_days and events "
            "would do");
    } else if (has_count) {
        double units = units_in(w, k->unit);
        if (!(w->ns > 0) || !(units > 0))
            orr_keys_complain(keys, g, "count",
                              "needs the window it was counted in; window = 54 d and gpus, nodes, "
                              "switches or racks in [failures] would do");
        else if (count > 0)
            k->mean_ns = w->ns * units / count;
    } else if (has_rate && rate > 0) {
        k->mean_ns = 86400e9 * 1000 / rate;
        if (k->unit != ORR_UNIT_NODE)
            orr_keys_complain(keys, g, "per_1000_node_days", "is of nodes; unit = node would do");
    } else if (has_mtbf) {
        k->mean_ns = mtbf;
    }
}

/* Strikes at the times of a CSV file: a column `time_h`, hours since the run began. */
static void read_events(OrrKeys *keys, const Window *w, OrrFailureKind *k) {
    const char *ref = orr_keys_string(keys, k->name, "events", "", ORR_KEY_QUIET);
    if (*ref == '\0' || !says_rate(keys, w, k->name, "events"))
        return;
    g_autofree char *folder = g_path_get_dirname(orr_keys_name(keys));
    g_autofree char *path =
        g_path_is_absolute(ref) ? g_strdup(ref) : g_build_filename(folder, ref, NULL);
    GError *flaw = NULL;
    static const char *const need[] = {"time_h", NULL};
    int column = 0;
    gsize length = 0;
    g_autofree char *text = orr_file_read(path, MAX_EVENTS_BYTES, &length, &flaw);
    if (text) /* an input like the file that names it: other times are another run */
        orr_sources_add_input(w->sources, ref, text, length);
    g_autoptr(OrrCsv) csv = text ? orr_csv_parse(path, text, length, ORR_CSV_PLAIN, &flaw) : NULL;
    bool is_fine = csv && orr_csv_need(csv, need, &column, &flaw);
    double before = 0;
    k->law = ORR_LAW_EVENTS;
    k->event_ns = is_fine ? g_new0(int64_t, orr_csv_n_rows(csv) + 1) : NULL;
    for (guint i = 0; is_fine && i < orr_csv_n_rows(csv); i++) {
        double hours;
        is_fine = orr_csv_number(csv, i, column, before, 1e6, &hours, &flaw);
        if (is_fine)
            k->event_ns[k->n_events++] = (int64_t)(hours * 3600e9);
        before = is_fine ? hours : before;
    }
    if (flaw) {
        orr_keys_complain(keys, k->name, "events",
                          "%s; a CSV with a column time_h, beside the file that names it, would do",
                          flaw->message);
        g_error_free(flaw);
    }
}

/* How much slower: a number, or what to simulate. */
static void read_slow(OrrKeys *keys, OrrFailureKind *k) {
    static const char *const ways[] = {"slow_set", "slow_part", "slow"};
    const char *g = k->name, *first = NULL;
    k->slow_sets = g_strdup(orr_keys_string(keys, g, "slow_set", "", ORR_KEY_QUIET));
    k->slow_part = g_strdup(orr_keys_string(keys, g, "slow_part", "", ORR_KEY_QUIET));
    bool is_priced = *k->slow_sets != '\0' || *k->slow_part != '\0';
    bool needs_factor = k->effect == ORR_EFFECT_SLOW && !is_priced;
    k->slow_factor = 1 + orr_keys_number(keys, g, "slow", ORR_DIM_FRACTION, 0, 1000, 0,
                                         needs_factor ? ORR_KEY_REQUIRED : ORR_KEY_QUIET);
    const bool is_given[] = {*k->slow_sets != '\0', *k->slow_part != '\0', k->slow_factor > 1};
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        if (!is_given[i])
            continue;
        if (first)
            orr_keys_complain(keys, g, ways[i], "%s is given too; one would do", first);
        else if (k->effect != ORR_EFFECT_SLOW)
            orr_keys_complain(keys, g, ways[i],
                              "is of effect = slow, not of %s; that effect would do",
                              orr_effect_names[k->effect]);
        first = ways[i];
    }
}

static void read_cause(OrrKeys *keys, const Window *w, OrrFailureKind *k) {
    const char *g = k->name;
    int component = orr_keys_enum(keys, g, "component", orr_component_names, 0, ORR_KEY_REQUIRED);
    k->component = (g_free(k->component), g_strdup(orr_component_names[component]));
    k->source =
        (g_free(k->source), g_strdup(orr_keys_string(keys, g, "source", "", ORR_KEY_QUIET)));
    k->unit = (OrrFailureUnit)orr_keys_enum(keys, g, "unit", orr_failure_unit_names, ORR_UNIT_NODE,
                                            ORR_KEY_REQUIRED);
    k->law = (OrrFailureLaw)orr_keys_enum(keys, g, "law", orr_failure_law_names, 0, ORR_KEY_QUIET);
    k->shape = orr_keys_number(keys, g, "shape", ORR_DIM_NONE, 0.05, 20, 1,
                               k->law == ORR_LAW_WEIBULL ? ORR_KEY_REQUIRED : ORR_KEY_QUIET);
    k->effect = (OrrEffect)orr_keys_enum(keys, g, "effect", orr_effect_names, ORR_EFFECT_STOP,
                                         ORR_KEY_OPTIONAL);
    k->takes_all = strcmp(orr_keys_string(keys, g, "nodes", "", ORR_KEY_QUIET), "all") == 0;
    if (!k->takes_all)
        k->nodes =
            (uint32_t)orr_keys_int(keys, g, "nodes", "nodes", 0, 1 << 20, 0, ORR_KEY_OPTIONAL);
    k->scope = (OrrScope)orr_keys_enum(keys, g, "takes", orr_scope_names,
                                       k->takes_all    ? ORR_SCOPE_RACK
                                       : k->nodes == 0 ? ORR_SCOPE_PROCESS
                                       : k->nodes == 1 ? ORR_SCOPE_NODE
                                                       : ORR_SCOPE_RACK,
                                       ORR_KEY_QUIET);
    k->n_units = (uint64_t)orr_keys_int(keys, g, "units", "units", 1, 1 << 30, 1, ORR_KEY_QUIET);
    k->has_units = orr_keys_has(keys, g, "units");
    k->exclude_after =
        (uint32_t)orr_keys_int(keys, g, "exclude_after", "strikes", 0, 1 << 20, 0, ORR_KEY_QUIET);
    k->only_running = orr_keys_bool(keys, g, "only_running", false, ORR_KEY_QUIET);
    k->detect_ns = time_of(keys, g, "detect", 0);
    k->diagnose_ns = time_of(keys, g, "diagnose", 0);
    k->repair_ns = time_of(keys, g, "repair", 0);
    static const char *const seers[] = {"watchdog", "hand", NULL};
    k->by_hand = orr_keys_enum(keys, g, "detect_by", seers, 0, ORR_KEY_QUIET) == 1;
    if (k->exclude_after > 0 && k->law != ORR_LAW_EXPONENTIAL && k->law != ORR_LAW_WEIBULL)
        orr_keys_complain(keys, g, "exclude_after",
                          "is of units that fail at random; law = "
                          "exponential or weibull would do");
    bool lasts = k->effect >= ORR_EFFECT_SLOW;
    bool heals = lasts && !(k->effect == ORR_EFFECT_SLOW && k->nodes > 0);
    k->duration_ns = (int64_t)orr_keys_number(keys, g, "duration", ORR_DIM_TIME, 0, NS_MAX, 0,
                                              heals ? ORR_KEY_REQUIRED : ORR_KEY_QUIET);
    k->notice_ns =
        (int64_t)orr_keys_number(keys, g, "notice", ORR_DIM_TIME, 0, NS_MAX, 0, ORR_KEY_QUIET);
    read_slow(keys, k);
    read_rate(keys, w, k);
    if (k->law == ORR_LAW_EVENTS && chosen_rate(w, g))
        k->law = ORR_LAW_EXPONENTIAL; /* read_events says if it is that again */
    else if (k->law == ORR_LAW_EVENTS && !says_rate(keys, w, g, "events"))
        orr_keys_complain(keys, g, "law", "needs the times; events = FILE.csv would do");
    read_events(keys, w, k);
}

static Window read_window(OrrKeys *keys) {
    Window w = {0};
    w.ns = orr_keys_number(keys, "failures", "window", ORR_DIM_TIME, 1, NS_MAX, 0, ORR_KEY_QUIET);
    w.gpus = (double)orr_keys_int(keys, "failures", "gpus", "GPUs", 1, 1 << 30, 0, ORR_KEY_QUIET);
    w.nodes =
        (double)orr_keys_int(keys, "failures", "nodes", "nodes", 1, 1 << 30, 0, ORR_KEY_QUIET);
    w.switches = (double)orr_keys_int(keys, "failures", "switches", "switches", 1, 1 << 30, 0,
                                      ORR_KEY_QUIET);
    w.racks =
        (double)orr_keys_int(keys, "failures", "racks", "racks", 1, 1 << 30, 0, ORR_KEY_QUIET);
    return w;
}

OrrFailureSet *orr_workload_failures(const char *ref, const OrrOverride *overrides,
                                     uint32_t n_overrides, OrrSources *sources, GError **error) {
    g_autofree char *path = orr_data_find("topologies/failures", ref, ".ini", error);
    g_autoptr(OrrKeys) keys = path ? orr_keys_load(path, error) : NULL;
    if (!keys)
        return NULL;
    bool is_path = strchr(ref, '/') != NULL || g_str_has_suffix(ref, ".ini");
    g_autofree char *shipped = g_strdup_printf("topologies/failures/%s.ini", ref);
    gsize length;
    const char *text = orr_keys_text(keys, &length);
    orr_sources_add_input(sources, is_path ? ref : shipped, text, length);
    for (uint32_t i = 0; i < n_overrides; i++)
        if (orr_keys_has_group(keys, overrides[i].group))
            orr_keys_override(keys, overrides[i].group, overrides[i].key, overrides[i].value,
                              "--set");
    g_autoptr(OrrFailureSet) set = orr_failure_set_new();
    g_free(set->name), g_free(set->summary), g_free(set->source);
    set->name = orr_workloads__stem(path);
    set->summary = g_strdup(orr_keys_string(keys, "failures", "summary", "", ORR_KEY_QUIET));
    set->source = g_strdup(orr_keys_string(keys, "failures", "source", "", ORR_KEY_REQUIRED));
    Window w = read_window(keys);
    w.overrides = overrides, w.n_overrides = n_overrides, w.sources = sources;
    g_auto(GStrv) causes = orr_keys_strings(keys, "failures", "causes", ORR_KEY_REQUIRED);
    for (guint i = 0; causes && causes[i]; i++) {
        for (guint j = 0; j < i; j++)
            if (strcmp(causes[i], causes[j]) == 0)
                orr_keys_complain(keys, "failures", "causes", "%s stands there twice; one would do",
                                  causes[i]);
        if (!orr_keys_has_group(keys, causes[i]))
            orr_keys_complain(keys, "failures", "causes",
                              "there is no group [%s]; the name of one would do", causes[i]);
        read_cause(keys, &w, orr_failure_set_add(set, causes[i]));
    }
    if (!orr_keys_finish(keys, error))
        return NULL;
    if (sources)
        orr_workloads__note_defaults(sources, keys, NULL, "default of failure files");
    return g_steal_pointer(&set);
}
