/* Files that end too early, at every byte: what is whole is used and the rest told, or the error
 * names the file and its place. */
#include "tests/near.h"

#include <string.h>

#include "calibrate/nccl_tests.h"
#include "calibrate/run_log.h"
#include "sim/cli/importers.h"
#include "topologies/import_topology.h"
#include "traces/chakra.h"
#include "traces/kineto.h"
#include "workloads/import_config.h"
#include "workloads/import_failures.h"
#include "workloads/import_hf.h"

static GString *notes;

static int set_up(void **state) {
    (void)state;
    notes = g_string_new(NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    g_string_free(notes, TRUE);
    return 0;
}

/* A sample of the fuzz corpora. */
static char *sample(const char *folder, const char *name, gsize *length) {
    const char *top = g_getenv("top_srcdir");
    g_autofree char *path =
        g_build_filename(top ? top : ORR_SRCDIR, "tests", "fuzz", "corpus", folder, name, NULL);
    char *text;
    if (!g_file_get_contents(path, &text, length, NULL))
        fail_msg("cannot read %s", path);
    return text;
}

/* "own: ..." or "own:LINE: ..." or what --set, --ranks, --op must say. */
static void check_error(const char *what, gsize at, const GError *error) {
    if (error && strstr(error->message, "own") && strlen(error->message) > 10 &&
        g_utf8_validate(error->message, -1, NULL) && error->code == ORR_ERROR_INPUT)
        return;
    fail_msg("%s, cut behind %zu bytes: %s", what, at, error ? error->message : "no error");
}

/* What an importer makes of the first @length bytes: a number that may not fall as more is there.
 */
typedef gint64 (*Reader)(const OrrImport *import, const char *text, gsize length, GError **error);

static gint64 read_collectives(const OrrImport *import, const char *text, gsize length,
                               GError **error) {
    g_autoptr(OrrMeasuredTables) tables = orr_nccl_tests_parse(import, text, length, error);
    gint64 n = 0;
    for (guint i = 0; tables && i < tables->n_tables; i++)
        n += tables->tables[i]->n_rows - tables->tables[i]->n_flawed;
    return tables ? n : -1;
}

static gint64 read_steps(const OrrImport *import, const char *text, gsize length, GError **error) {
    g_autoptr(OrrMeasuredRun) run = orr_run_log_parse(import, text, length, error);
    return run ? (gint64)run->n_steps : -1;
}

static gint64 read_profile(const OrrImport *import, const char *text, gsize length,
                           GError **error) {
    g_autoptr(OrrMeasuredProfile) p = orr_kineto_parse(import, text, length, error);
    return p ? (gint64)p->window_ns : -1;
}

static gint64 read_replay(const OrrImport *import, const char *text, gsize length, GError **error) {
    g_autoptr(OrrReplay) replay = orr_chakra_parse(import, text, length, error);
    return replay ? (gint64)replay->n_nodes : -1;
}

static gint64 read_config(const OrrImport *import, const char *text, gsize length, GError **error) {
    g_autofree char *job = orr_import_config_text(import, text, length, error);
    return job ? 0 : -1;
}

static gint64 read_failures(const OrrImport *import, const char *text, gsize length,
                            GError **error) {
    g_autofree char *copy = g_strndup(text, length);
    g_autofree char *out = orr_import_failures_text(import, copy, strlen(copy), error);
    return out ? 0 : -1;
}

static gint64 read_topology(const OrrImport *import, const char *text, gsize length,
                            GError **error) {
    g_autoptr(OrrFoundNode) found = orr_topology_find_in(import, text, length, error);
    return found ? 0 : -1;
}

static gint64 read_hf(const OrrImport *import, const char *text, gsize length, GError **error) {
    g_autofree char *out = orr_import_hf_text(import->path, text, length, import->notes, error);
    return out ? 0 : -1;
}

/* told: what the notes of a beginning that is used must have in them; NULL: nothing (a format whose
 * end can't be known). */
static const struct {
    const char *folder, *name, *path;
    Reader read;
    const char *told;
} samples[] = {
    {"nccl_tests", "old.log", "own.log", read_collectives, "whole"},
    {"nccl_tests", "interrupted.log", "own.log", read_collectives, "whole"},
    {"nccl_tests", "v3.json", "own.json", read_collectives, NULL},
    {"nccl_tests", "torch.txt", "own.txt", read_collectives, NULL},
    {"run_log", "megatron.log", "own.log", read_steps, NULL},
    {"run_log", "deepspeed.log", "own.log", read_steps, NULL},
    {"run_log", "nemo.log", "own.log", read_steps, NULL},
    {"run_log", "titan.log", "own.log", read_steps, NULL},
    {"kineto", "object.json", "own.json", read_profile, "whole"},
    {"kineto", "array.json", "own.json", read_profile, NULL},
    {"chakra", "three.et", "own.et", read_replay, NULL},
    {"chakra", "linked.json", "own.json", read_replay, NULL},
    {"import_config", "script", "own.sh", read_config, NULL},
    {"import_config", "deepspeed", "own.json", read_config, NULL},
    {"import_config", "titan", "own.toml", read_config, NULL},
    {"import_config", "nanotron", "own.yaml", read_config, NULL},
    {"import_config", "megatron-yaml", "own.yaml", read_config, NULL},
    {"import_failures", "counts", "own.csv", read_failures, NULL},
    {"import_failures", "events", "own.csv", read_failures, NULL},
    {"import_failures", "sacct", "own.txt", read_failures, NULL},
    {"import_topology", "nccl.xml", "own.xml", read_topology, NULL},
    {"import_topology", "hwloc.xml", "own.xml", read_topology, NULL},
    {"import_topology", "ib.txt", "own.txt", read_topology, NULL},
    {"import_topology", "smi.txt", "own.txt", read_topology, NULL},
    {"import_hf", "llama", "own.json", read_hf, NULL},
};

static void test_beginnings_are_used_as_far_as_whole_or_refused(void **state) {
    (void)state;
    static const char *const sets[] = {"job.cluster=h100-ib:8", NULL};
    for (guint i = 0; i < G_N_ELEMENTS(samples); i++) {
        gsize length;
        g_autofree char *text = sample(samples[i].folder, samples[i].name, &length);
        OrrImport import = {.path = samples[i].path,
                            .sets = sets,
                            .gpu = "a100-sxm-80",
                            .nic = "200G",
                            .n_ranks = 8,
                            .window_ns = 54 * 86400e9,
                            .notes = notes};
        g_autoptr(GError) whole_error = NULL;
        gint64 whole = samples[i].read(&import, text, length, &whole_error);
        gsize stride = length > 4000 ? 3 : 1; /* a few seconds in all */
        for (gsize at = 0; at < length; at += stride) {
            g_autoptr(GError) error = NULL;
            g_string_truncate(notes, 0);
            gint64 n = samples[i].read(&import, text, at, &error);
            if (n < 0)
                check_error(samples[i].name, at, error);
            else if (n > whole)
                fail_msg("%s, cut behind %zu bytes: %" G_GINT64_FORMAT " and not %" G_GINT64_FORMAT,
                         samples[i].name, at, n, whole);
            else if (n < whole && samples[i].told && !strstr(notes->str, samples[i].told) &&
                     !strstr(notes->str, "cut"))
                fail_msg("%s, cut behind %zu bytes: nothing is said: %s", samples[i].name, at,
                         notes->str);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_beginnings_are_used_as_far_as_whole_or_refused, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
