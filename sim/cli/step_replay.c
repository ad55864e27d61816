#include "sim/cli/step_replay.h"

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "sim/exec/exec.h"
#include "sim/io/json_write.h"
#include "sim/lower/replay.h"
#include "traces/chakra.h"

#define LIMIT_BYTES ((gsize)2 << 30) /* as for traces */

/* JSON with nodes, and not one of our records. */
static bool is_json_trace(const char *ref) {
    gsize length;
    if (!g_str_has_suffix(ref, ".json") && !g_str_has_suffix(ref, ".json.gz"))
        return false;
    g_autofree char *text = orr_file_read(ref, LIMIT_BYTES, &length, NULL);
    return text && g_strstr_len(text, (gssize)length, "\"nodes\"") &&
           !g_strstr_len(text, (gssize)length, "\"orrery.");
}

bool orr_cli_is_trace(const char *ref) {
    return g_str_has_suffix(ref, ".et") || g_str_has_suffix(ref, ".et.gz") || is_json_trace(ref);
}

static const char *const kind_names[] = {"host", "compute", "collective",
                                         "send", "receive", "other"};

/* Recorded time and number of operations by kind. */
static void put_kinds(OrrOut *out, OrrJsonWriter *json, const OrrReplay *replay) {
    for (int kind = 0; kind <= ORR_REPLAY_OTHER; kind++) {
        int64_t total_ns = 0, count = 0;
        for (uint32_t i = 0; i < replay->n_nodes; i++) {
            const OrrReplayNode *node = &replay->nodes[i];
            bool is_mine = node->kind == (OrrReplayKind)kind;
            if (is_mine && node->duration_ns < INT64_MAX / 2 - total_ns)
                total_ns += node->duration_ns;
            count += is_mine;
        }
        if (json) {
            orr_json_begin_object_inline(json, kind_names[kind]);
            orr_json_put_int(json, "operations", count);
            orr_json_put_int(json, "recorded_ns", total_ns);
            orr_json_end_object(json);
        } else if (count > 0) {
            orr_out_printf(out,
                           "  %-12s %8" G_GINT64_FORMAT " operations  %14" G_GINT64_FORMAT " ns\n",
                           kind_names[kind], count, total_ns);
        }
    }
}

static void write_json(OrrOut *out, const OrrReplay *replay, const OrrExecResult *result) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    orr_json_put_string(&w, "schema", "orrery.replay/1");
    orr_json_put_string(&w, "version", PACKAGE_VERSION);
    orr_json_put_string(&w, "input", replay->name);
    orr_json_put_string(&w, "source", replay->source);
    orr_json_put_int(&w, "rank", replay->rank);
    orr_json_put_int(&w, "step_time_ns", result->step_time_ns);
    orr_json_put_bool(&w, "is_periodic", result->is_periodic);
    orr_json_begin_object(&w, "kinds");
    put_kinds(out, &w, replay);
    orr_json_end_object(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

static void write_text(OrrOut *out, const OrrReplay *replay, const OrrExecResult *result) {
    orr_out_printf(out, "%s (%s), rank %d\n", replay->name, replay->source, replay->rank);
    orr_out_puts(out, "recorded durations, run in the order of streams and dependencies\n");
    orr_out_printf(out, "step time %" G_GINT64_FORMAT " ns\n", result->step_time_ns);
    put_kinds(out, NULL, replay);
}

bool orr_cli_step_replay(const OrrCli *cli, const char *path, GError **error) {
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = path, .notes = notes};
    g_autoptr(OrrReplay) replay = orr_chakra_read(&import, error);
    fputs(notes->str, stderr);
    if (!replay)
        return false;
    g_autoptr(OrrProgram) program = NULL;
    g_autoptr(OrrBound) bound = orr_lower_replay(replay, &program, error);
    OrrExecOptions options = {.self_check = orr_cli_has(cli, "self-check")};
    g_autoptr(OrrExecResult) result = bound ? orr_exec_run(bound, &options, error) : NULL;
    g_autoptr(OrrOut) out = result ? orr_cli_output(cli, error) : NULL;
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        write_json(out, replay, result);
    else
        write_text(out, replay, result);
    return orr_out_commit(out, error);
}
