/* Every option of every command that takes a value, with values that can't be: no number, below
 * zero, beyond any range. The message must name the option and the value and say what would do.
 * Which options there are is asked of the program: its manual is made from its tables. Options that
 * take a file or a folder take any name. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#define LEAST_OPTIONS 40 /* fewer: the manual was not read */

/* How a command is called with the option; the first that fits counts. */
typedef struct {
    const char *command, *option; /* option NULL: any other */
    const char *about;            /* what its help begins with; NULL: anything */
    const char *line;
} Way;

static const Way ways[] = {
    {"step", "threads", NULL, "step tiny --seeds 2 --jitter 0.02"},
    {"step", NULL, NULL, "step tiny"},
    {"run", "seeds", NULL, "run save-64-two-failures"},
    {"run", "calibration", NULL, "run tiny --seeds 1 --set run.steps=5"},
    {"run", NULL, NULL, "run save-64-two-failures --seeds 1"},
    {"trace", NULL, NULL, "trace tiny -o /dev/null"},
    {"plot", NULL, NULL, "plot tiny --no-draw -o plots"},
    {"show", "cluster", NULL, "show collective all_reduce 1MiB"},
    {"show", "tokens-per-s", NULL, "show model llama3-8b --gpu h100"},
    {"show", NULL, "collective:", "show collective all_reduce 1MiB -c h100-ib:8"},
    {"show", NULL, "model:", "show model llama3-8b --tokens-per-s 9000"},
    {"show", NULL, "schedule:", "show schedule 1f1b"},
    {"show", NULL, NULL, "show program tiny"},
    {"import", "nic", NULL, "import topology topo.txt --gpu h100"},
    {"import", NULL, "topology:", "import topology topo.txt"},
    {"import", NULL, "failures:", "import failures counts.csv"},
    {"import", NULL, "config:", "import config train.sh"},
    {"import", NULL, NULL, "import nccl-tests all_reduce.log"},
    {"validate", NULL, NULL, "validate"},
    {"check", "gpu", NULL, "check topo.txt all_reduce.log"},
    {"check", "nic", NULL, "check topo.txt all_reduce.log --gpu h100"},
    {"check", NULL, NULL, "check h100-ib:2 all_reduce.log"},
    {"compare", NULL, NULL, "compare tiny tiny"},
    {"calibrate", "cluster", NULL, "calibrate fit all_reduce.log"},
    {"calibrate", "gpu", NULL, NULL}, /* needs records of a machine: tests/test_calibrate_*.c */
    {"calibrate", NULL, NULL, "calibrate fit all_reduce.log -c h100-ib:2"},
};

static const char *const files[][2] = {
    {"all_reduce.log",
     "#  Rank  0 Group  0 Pid  1 on host device  0 [0x1b] NVIDIA H100\n"
     "#  Rank  1 Group  0 Pid  1 on host device  1 [0x1c] NVIDIA H100\n"
     "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
     "time   algbw   busbw #wrong\n"
     "  1073741824     268435456     float     sum      -1   4000.0  268.44  268.44      0   "
     "4000.0 "
     " 268.44  268.44      0\n"
     "# Avg bus bandwidth    : 268.44\n"},
    {"topo.txt", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV18\t0\nGPU1\tNV18\tX\t0\n"},
    {"counts.csv", "component,count\ngpu,3\n"},
    {"train.sh", "python pretrain.py --num-layers 2 --hidden-size 64\n"},
};

typedef struct {
    const char *folder;
    guint n_options, n_flaws;
} Sweep;

static int orrery(const Sweep *s, char **words, char **err) {
    const char *build = g_getenv("top_builddir");
    g_autofree char *here = g_get_current_dir(), *out = NULL;
    g_autofree char *program = g_build_filename(build ? build : here, "orrery", NULL);
    g_autofree char *full = g_canonicalize_filename(program, here);
    g_autofree char **argv = g_new0(char *, g_strv_length(words) + 2);
    int status;
    argv[0] = full;
    for (guint i = 0; words[i]; i++)
        argv[i + 1] = words[i];
    if (!g_spawn_sync(s->folder, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, err, &status, NULL))
        fail_msg("cannot run %s", full);
    if (!WIFEXITED(status))
        fail_msg("%s %s died of signal %d: %s", words[0], words[1], WTERMSIG(status), *err);
    return WEXITSTATUS(status);
}

static bool says_what_would_do(const char *text) {
    static const char *const hints[] = {"will do", "would do", "did you mean", "known are"};
    for (guint i = 0; i < G_N_ELEMENTS(hints); i++)
        if (strstr(text, hints[i]))
            return true;
    return false;
}

static const char *line_of(const char *command, const char *option, const char *help) {
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        const Way *w = &ways[i];
        if (strcmp(w->command, command) == 0 && (!w->option || strcmp(w->option, option) == 0) &&
            (!w->about || g_str_has_prefix(help, w->about)))
            return w->line;
    }
    fail_msg("orrery %s: the test does not know how to call it", command);
    return NULL;
}

static void sweep_option(Sweep *s, const char *command, const char *option, const char *help) {
    static const char *const values[] = {"zq!7", "-3", "1e300"};
    const char *line = line_of(command, option, help);
    for (guint i = 0; line && i < G_N_ELEMENTS(values); i++) {
        g_autofree char *text = g_strdup_printf("%s --%s=%s", line, option, values[i]);
        g_auto(GStrv) words = g_strsplit(text, " ", -1);
        g_autofree char *err = NULL;
        int status = orrery(s, words, &err);
        bool is_told = strstr(err, option) && strstr(err, values[i]) && says_what_would_do(err);
        if ((status == 2 || status == 3) && is_told)
            continue;
        print_message("orrery %s: status %d: %s\n", text, status, err);
        s->n_flaws++;
    }
    s->n_options++;
}

/* An option of the manual, "\-\-name \fIARGUMENT\fR", with its help on the line behind. */
static void read_option(Sweep *s, const char *command, char *line, const char *help) {
    g_autoptr(GString) text = g_string_new(line);
    g_string_replace(text, "\\-", "-", 0);
    g_string_replace(text, "\\fI", "", 0);
    g_string_replace(text, "\\fR", "", 0);
    const char *name = strstr(text->str, "--");
    g_auto(GStrv) words = g_strsplit(name ? name + 2 : "", " ", 2);
    bool is_file =
        words[0] && words[1] && (strcmp(words[1], "FILE") == 0 || strcmp(words[1], "DIR") == 0);
    if (words[0] && words[1] && !is_file)
        sweep_option(s, command, words[0], help);
}

static void read_manual(Sweep *s) {
    char *words[] = {(char *)"help", (char *)"--man", NULL};
    const char *build = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(build ? build : ".", "orrery", NULL), *text = NULL;
    char *argv[] = {program, words[0], words[1], NULL};
    assert_true(
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text, NULL, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *command = NULL;
    for (guint i = 0; lines[i]; i++) {
        g_auto(GStrv) word = g_strsplit(lines[i], " ", 4);
        if (g_str_has_prefix(lines[i], ".SS orrery ")) {
            g_free(command);
            command = g_strdup(word[2]);
        } else if (g_str_has_prefix(lines[i], ".SH")) {
            g_clear_pointer(&command, g_free);
        } else if (command && g_str_has_prefix(lines[i], ".B ") && lines[i + 1]) {
            read_option(s, command, lines[i], lines[i + 1]);
        }
    }
}

static void test_every_option_says_what_would_do(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-options-XXXXXX", NULL);
    Sweep s = {.folder = folder};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i][0], NULL);
        assert_true(g_file_set_contents(path, files[i][1], -1, NULL));
    }
    read_manual(&s);
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i][0], NULL);
        g_remove(path);
    }
    if (g_rmdir(folder) != 0)
        fail_msg("%s: something was written", folder);
    assert_int_equal(s.n_flaws, 0);
    assert_true(s.n_options >= LEAST_OPTIONS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_says_what_would_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
