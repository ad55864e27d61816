/* The option table, from which the help is made. */
#include "calibrate/options.h"

#include "sim/base/words.h"

#include <stdio.h>
#include <string.h>

static bool find_kinds(OrrCalibrateOptions *o, GError **error) {
    for (int k = 0; k < ORR_N_CASE_KINDS; k++)
        o->kinds[k] = !o->only;
    for (int i = 0; o->only && o->only[i]; i++) {
        int k = 0;
        while (orr_case_kind_names[k] && strcmp(orr_case_kind_names[k], o->only[i]) != 0)
            k++;
        if (!orr_case_kind_names[k]) {
            g_autofree char *hint = orr_words_hint(o->only[i], orr_case_kind_names);
            return orr_fail_usage(error, "--only %s: unknown kind; %s", o->only[i], hint);
        }
        o->kinds[k] = true;
    }
    return true;
}

static bool check(OrrCalibrateOptions *o, char **argv, GError **error) {
    if (argv[0] && argv[1])
        return orr_fail_usage(error, "'%s' is one word too many", argv[1]);
    if (o->is_full && o->is_quick)
        return orr_fail_usage(error, "--quick and --full exclude each other");
    if (o->minutes < 0)
        return orr_fail_usage(error, "--minutes %d: at least 1 would do", o->minutes);
    return find_kinds(o, error);
}

bool orr_calibrate_options(char **argv, OrrCalibrateOptions *o, bool *is_answered, GError **error) {
    *o = (OrrCalibrateOptions){0};
    *is_answered = false;
    gboolean wants_help = FALSE;
    const GOptionEntry entries[] = {
        {"quick", 0, 0, G_OPTION_ARG_NONE, &o->is_quick, "a coarse grid in 2 minutes (default)",
         NULL},
        {"full", 0, 0, G_OPTION_ARG_NONE, &o->is_full, "the fine grid, without a limit of time",
         NULL},
        {"minutes", 0, 0, G_OPTION_ARG_INT, &o->minutes,
         "begin no case after so long; 0, the default: --quick 2, --full no limit", "N"},
        {"only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o->only,
         "measure this kind (repeatable): gemm, batched_gemm, grouped_gemm, attention, "
         "unfused_attention, kernel, copy, launch, collective",
         "KIND"},
        {"shapes", 0, 0, G_OPTION_ARG_FILENAME, &o->shapes,
         "measure the shapes of a CSV file (orrery show shapes JOB writes one), not a grid",
         "FILE"},
        {"flush-l2", 0, 0, G_OPTION_ARG_NONE, &o->flushes_l2, "empty the L2 cache before each run",
         NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &o->output,
         "append records to FILE; what it has already is not measured again", "FILE"},
        {"list", 0, 0, G_OPTION_ARG_NONE, &o->lists, "say what would be measured, as CSV", NULL},
        {"mpi", 0, 0, G_OPTION_ARG_NONE, &o->has_mpi,
         "one process a GPU, started by mpirun or srun", NULL},
        {"device", 0, 0, G_OPTION_ARG_STRING, &o->device,
         "cuda, or fake[:GPUS[:GPUS_PER_NODE]]: a machine that only computes its times", "NAME"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &o->shows_version, "what this program was built with",
         NULL},
        {"help", 'h', 0, G_OPTION_ARG_NONE, &wants_help, "this help", NULL},
        {NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_summary(
        context, "Measures the kernels, copies, launches and collectives of this machine, as CSV "
                 "for `orrery calibrate fit`. Changes no setting of it.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) why = NULL;
    g_auto(GStrv) words = g_strdupv(argv);
    if (!g_option_context_parse_strv(context, &words, &why))
        return orr_fail_usage(error, "%s (see orrery-calibrate --help)", why->message);
    if (wants_help) {
        g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);
        fputs(help, stdout);
        *is_answered = true;
        return true;
    }
    return check(o, words, error);
}

void orr_calibrate_options_clear(OrrCalibrateOptions *o) {
    g_strfreev(o->only);
    g_free(o->shapes);
    g_free(o->output);
    g_free(o->device);
}
