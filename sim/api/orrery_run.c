/* Whole runs in the public face of the library, over run.h. */
#include "sim/api/orrery_priv.h"

#include "sim/api/run.h"
#include "sim/report/run_report.h"

static bool take_sets(const char *const *sets, GPtrArray *texts, GArray *overrides,
                      GError **error) {
    for (guint i = 0; sets && sets[i]; i++) {
        g_auto(GStrv) sides = g_strsplit(sets[i], "=", 2);
        g_auto(GStrv) names = g_strsplit(sides[0] ? sides[0] : "", ".", 2);
        if (!sides[0] || !sides[1] || !names[0] || !names[1] || !*names[0] || !*names[1])
            return orr_fail_usage(error, "set '%s': group.key=value would do", sets[i]);
        OrrOverride o = {g_strdup(names[0]), g_strdup(names[1]), g_strdup(sides[1])};
        g_ptr_array_add(texts, (gpointer)o.group);
        g_ptr_array_add(texts, (gpointer)o.key);
        g_ptr_array_add(texts, (gpointer)o.value);
        g_array_append_val(overrides, o);
    }
    return true;
}

static char *report(const OrrRunRequest *request, const OrrRunFormat *format, GError **error) {
    g_autoptr(OrrRun) run = orr_run_prepare(request, error);
    if (!run || !orr_run_execute(run, NULL, NULL, NULL, error))
        return NULL;
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    format->write(orr_run_record(run), out);
    return g_string_free(text, FALSE);
}

char *orrery_run_report(const char *run, uint32_t n_seeds, uint32_t n_threads, const char *format,
                        const OrreryOptions *options, OrreryError **error) {
    static const OrreryOptions defaults;
    const OrreryOptions *o = options ? options : &defaults;
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) overrides = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    const OrrRunFormat *f = orr_run_format_find(format);
    GError *inner = NULL;
    char *text = NULL;
    if (!f || n_seeds == 0) {
        orr_fail_usage(&inner, "a format text, json or csv and at least one seed would do");
    } else if (take_sets(o->sets, texts, overrides, &inner)) {
        OrrRunRequest request = {.run = run,
                                 .overrides = (const OrrOverride *)(void *)overrides->data,
                                 .n_overrides = overrides->len,
                                 .calibration = o->calibration,
                                 .seed = o->has_seed ? o->seed : 0,
                                 .n_seeds = n_seeds,
                                 .n_threads = n_threads};
        text = report(&request, f, &inner);
    }
    if (inner)
        orr_orrery__tell(error, inner);
    return text;
}
