/* The gnuplot driver. */
#include "plots/plot.h"

#include "sim/io/data.h"
#include "sim/io/file.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define SCRIPT_LIMIT_BYTES (1 << 20) /* ours: scripts are a few kilobytes */

const OrrPlot orr_plots[] = {
    {"timeline", "passes of one pipeline over time, with its bubbles"},
    {"time_account", "where the time of the compute stream goes, mean and by stage"},
    {"memory", "memory by stage and kind against the capacity"},
    {NULL, NULL},
};

const OrrPlot orr_run_plots[] = {
    {"run_progress", "work kept over the days of a run"},
    {"run_losses", "time that a run lost, by cause"},
    {"run_interval", "goodput by checkpoint interval, against Daly's formula"},
    {"run_cost", "cost of a run by contract"},
    {NULL, NULL},
};

const OrrPlot orr_share_plots[] = {
    {"share_occupancy", "what the GPUs of a shared cluster do over time"},
    {"share_jobs", "what each job of a shared cluster does over time"},
    {"share_wait", "how long each job of a shared cluster waits"},
    {NULL, NULL},
};

const OrrPlot *orr_plot_find(const char *name) {
    for (const OrrPlot *p = orr_plots; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

bool orr_plot_names(const char *folder, const OrrPlotName *names, guint n, GError **error) {
    g_autoptr(GString) text = g_string_new("# What the scripts call things.\n");
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(text, "%s = ", names[i].name);
        if (names[i].text) {
            g_string_append_c(text, '"');
            for (const char *c = names[i].text; *c; c++) {
                if (*c == '"' || *c == '\\')
                    g_string_append_c(text, '\\');
                g_string_append_c(text, (guchar)*c < ' ' || *c == '`' ? ' ' : *c);
            }
            g_string_append(text, "\"\n");
        } else {
            char number[G_ASCII_DTOSTR_BUF_SIZE];
            g_string_append_printf(text, "%s\n",
                                   g_ascii_formatd(number, sizeof number, "%.6f", names[i].number));
        }
    }
    g_autofree char *path = g_build_filename(folder, "names.gp", NULL);
    return orr_file_write(path, text->str, error);
}

static bool copy_script(const char *name, const char *folder, GError **error) {
    g_autofree char *source = orr_data_find("plots", name, ".gp", error);
    if (!source)
        return false;
    g_autofree char *text = orr_file_read(source, SCRIPT_LIMIT_BYTES, NULL, error);
    if (!text)
        return false;
    g_autofree char *file = g_strdup_printf("%s.gp", name);
    g_autofree char *target = g_build_filename(folder, file, NULL);
    return orr_file_write(target, text, error);
}

static char *part_of(const char *folder, const char *name, const char *suffix) {
    return g_strdup_printf("%s/.%s.part%s", folder, name, suffix);
}

static void drop_parts(const char *folder, const char *name) {
    static const char *const suffixes[] = {".png", ".svg"};
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autofree char *part = part_of(folder, name, suffixes[i]);
        g_unlink(part);
    }
}

static bool take_into_place(const char *folder, const char *name, const char *suffix,
                            GError **error) {
    g_autofree char *part = part_of(folder, name, suffix);
    g_autofree char *whole = g_strdup_printf("%s/%s%s", folder, name, suffix);
    if (g_rename(part, whole) == 0)
        return true;
    return orr_fail_env(error, "%s: gnuplot drew nothing (%s)", whole, g_strerror(errno));
}

/* Signals that end a program wait until the parts of a picture are in place or gone. */
static void hold_signals(sigset_t *before) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, before);
}

/* In gnuplot, before it begins: it is ended by them at once. */
static void take_signals(gpointer before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static bool run_gnuplot(const char *gnuplot, const char *name, const char *folder, sigset_t *before,
                        GError **error) {
    g_autofree char *out = g_strdup_printf("out = '.%s.part'", name);
    g_autofree char *script = g_strdup_printf("%s.gp", name);
    char *command[] = {(char *)gnuplot, (char *)"-e", out, script, NULL};
    g_autofree char *words = NULL;
    int status;
    GError *inner = NULL;
    if (!g_spawn_sync(folder, command, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, take_signals, before, NULL,
                      &words, &status, &inner)) {
        orr_fail_env(error, "gnuplot cannot be run: %s", inner->message);
        g_error_free(inner);
        return false;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return orr_fail_env(error, "gnuplot failed on %s/%s:\n%s", folder, script, g_strchomp(words));
}

bool orr_plot_script(const OrrPlot *plot, const char *folder, GError **error) {
    return copy_script(plot->name, folder, error) && copy_script("style", folder, error);
}

bool orr_plot_draw(const OrrPlot *plot, const char *folder, GError **error) {
    if (!orr_plot_script(plot, folder, error))
        return false;
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot)
        return orr_fail_env(error,
                            "gnuplot is not installed, so nothing is drawn; tables and scripts "
                            "are in %s: install gnuplot (Debian: gnuplot-nox), then run "
                            "'gnuplot %s.gp' there",
                            folder, plot->name);
    sigset_t before;
    hold_signals(&before);
    bool is_drawn = run_gnuplot(gnuplot, plot->name, folder, &before, error) &&
                    take_into_place(folder, plot->name, ".png", error) &&
                    take_into_place(folder, plot->name, ".svg", error);
    if (!is_drawn)
        drop_parts(folder, plot->name);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* what came meanwhile comes now */
    return is_drawn;
}
