/* orrery show collective: a table as nccl-tests prints it, of what the idle machine would do. */
#include "sim/cli/show.h"

#include "sim/base/units.h"
#include "sim/base/words.h"
#include "sim/api/calibration.h"
#include "sim/cli/show_detailed.h"
#include "sim/cli/show_log.h"
#include "sim/collective/nccl_env.h"
#include "sim/collective/table.h"
#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "topologies/loader.h"

#include <string.h>

typedef struct {
    OrrCollective kind;
    OrrDtype dtype;
    int64_t min_bytes, max_bytes;
    const char *cluster_ref;
    uint32_t n_gpus;
    OrrCollRow *rows;
    uint32_t n_rows;
} Question;

/* NCCL_NAME=VALUE, apart. */
typedef struct {
    GPtrArray *names, *values;
} Words;

static bool read_kind(const char *name, OrrCollective *kind, GError **error) {
    for (int c = 0; c < ORR_N_COLLECTIVES; c++)
        if (strcmp(orr_collective_names[c], name) == 0) {
            *kind = (OrrCollective)c;
            return true;
        }
    g_autofree char *hint = orr_words_hint(name, orr_collective_names);
    return orr_fail_usage(error, "orrery show collective: unknown collective '%s'; %s", name, hint);
}

static bool read_bytes(const char *text, int64_t *bytes, GError **error) {
    double value;
    GError *inner = NULL;
    if (!orr_units_parse(text, ORR_DIM_BYTES, &value, &inner)) {
        orr_fail_usage(error, "orrery show collective: size '%s': %s", text, inner->message);
        g_error_free(inner);
        return false;
    }
    if (!(value >= 1 && value <= 0x1p50))
        return orr_fail_usage(error, "orrery show collective: size '%s': 1 B to 1 PiB would do",
                              text);
    *bytes = (int64_t)value;
    return true;
}

static bool read_sizes(const char *text, Question *q, GError **error) {
    g_auto(GStrv) ends = g_strsplit(text, "..", 2);
    if (!read_bytes(ends[0], &q->min_bytes, error))
        return false;
    q->max_bytes = q->min_bytes;
    if (ends[1] && !read_bytes(ends[1], &q->max_bytes, error))
        return false;
    return q->max_bytes >= q->min_bytes ||
           orr_fail_usage(error,
                          "orrery show collective: sizes '%s': the second must not be the "
                          "smaller",
                          text);
}

static bool read_dtype(const char *name, OrrDtype *dtype, GError **error) {
    *dtype = ORR_FP32; /* nccl-tests' default */
    for (int d = 0; name && d < ORR_N_DTYPES; d++)
        if (strcmp(orr_dtype_names[d], name) == 0) {
            *dtype = (OrrDtype)d;
            return true;
        }
    return !name || orr_fail_usage(error,
                                   "orrery show collective: --dtype %s: fp32, bf16, fp16 or "
                                   "fp8 would do",
                                   name);
}

/* NAME=VALUE words behind the size. */
static bool read_environment(const OrrCli *cli, const Words *w, GError **error) {
    const char *word;
    for (guint i = 3; (word = orr_cli_argument(cli, i)); i++) {
        const char *equals = strchr(word, '=');
        if (!g_str_has_prefix(word, "NCCL_") || !equals)
            return orr_fail_usage(error, "orrery show collective: '%s': NCCL_NAME=VALUE would do",
                                  word);
        g_ptr_array_add(w->names, g_strndup(word, (gsize)(equals - word)));
        g_ptr_array_add(w->values, g_strdup(equals + 1));
    }
    g_ptr_array_add(w->names, NULL);
    g_ptr_array_add(w->values, NULL);
    return true;
}

/* GROUP.KEY=VALUE words of --set; they live in @words. */
static bool read_sets(const OrrCli *cli, GPtrArray *words, GArray *sets, GError **error) {
    for (guint i = 0; i < orr_cli_n_values(cli, "set"); i++) {
        const char *text = orr_cli_nth_value(cli, "set", i);
        char *group = g_strdup(text);
        g_ptr_array_add(words, group);
        char *dot = strchr(group, '.'), *equals = dot ? strchr(dot, '=') : NULL;
        if (!equals)
            return orr_fail_usage(error, "orrery show collective: --set '%s': GROUP.KEY=VALUE",
                                  text);
        *dot = *equals = 0;
        if (strcmp(group, "cluster") != 0 && strcmp(group, "node") != 0 &&
            strcmp(group, "gpu") != 0)
            return orr_fail_usage(error,
                                  "orrery show collective: --set '%s': keys of cluster, node and "
                                  "gpu can be set here",
                                  text);
        OrrTopologySet set = {group, dot + 1, equals + 1};
        g_array_append_val(sets, set);
    }
    return true;
}

/* The cluster; a second time over its management network if NCCL would fall back to sockets. */
static OrrCluster *load_cluster(const Question *q, const OrrCli *cli, const Words *w,
                                OrrNcclEnv *env, OrrOut *out, GError **error) {
    g_autofree char *sized = q->n_gpus > 0 && !strpbrk(q->cluster_ref, ": ")
                                 ? g_strdup_printf("%s:%u", q->cluster_ref, q->n_gpus)
                                 : g_strdup(q->cluster_ref);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) sets = g_array_new(FALSE, FALSE, sizeof(OrrTopologySet));
    if (!read_sets(cli, words, sets, error))
        return NULL;
    OrrTopologyOptions options = {.sets = (const OrrTopologySet *)(void *)sets->data,
                                  .n_sets = sets->len};
    g_autoptr(OrrCluster) c = orr_topology_cluster(sized, &options, error);
    if (!c || !orr_nccl_env_parse((const char *const *)w->names->pdata,
                                  (const char *const *)w->values->pdata, orr_cluster_spec(c)->node,
                                  env, error))
        return NULL;
    if (env->warning)
        orr_out_printf(out, "# %s\n", env->warning);
    if (!env->is_fallback)
        return g_steal_pointer(&c);
    OrrTopologySet fallback = {"cluster", "use_management", "yes"};
    g_array_append_val(sets, fallback);
    options = (OrrTopologyOptions){.sets = (const OrrTopologySet *)(void *)sets->data,
                                   .n_sets = sets->len};
    return orr_topology_cluster(sized, &options, error);
}

static void text_row(const OrrCollRow *r, double dtype_bytes, OrrOut *out) {
    char time[40], algbw[40], busbw[40];
    g_ascii_formatd(time, sizeof time, "%.2f", (double)r->time_ns * 1e-3);
    g_ascii_formatd(algbw, sizeof algbw, "%.2f", r->algbw_bytes_per_s * 1e-9);
    g_ascii_formatd(busbw, sizeof busbw, "%.2f", r->busbw_bytes_per_s * 1e-9);
    orr_out_printf(out, "%13" G_GINT64_FORMAT " %13.0f %12s %9s %9s  %-14s %-7s %u\n", r->bytes,
                   (double)r->bytes / dtype_bytes, time, algbw, busbw, orr_algo_name(r->algo),
                   orr_proto_name(r->proto), r->n_channels);
}

static void write_text(const Question *q, OrrOut *out) {
    orr_out_printf(out, "# %s of %s over %u GPUs of %s, alone on the machine\n",
                   orr_collective_name(q->kind), orr_dtype_name(q->dtype), q->n_gpus,
                   q->cluster_ref);
    orr_out_printf(out, "#%12s %13s %12s %9s %9s  %-14s %-7s %s\n", "size", "count", "time",
                   "algbw", "busbw", "algorithm", "proto", "channels");
    orr_out_printf(out, "#%12s %13s %12s %9s %9s\n", "(B)", "(elements)", "(us)", "(GB/s)",
                   "(GB/s)");
    for (uint32_t i = 0; i < q->n_rows; i++)
        text_row(&q->rows[i], orr_dtype_bytes(q->dtype), out);
}

static void write_csv(const Question *q, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {
        "collective",        "dtype",     "n_ranks",  "size_bytes", "time_ns", "algbw_bytes_per_s",
        "busbw_bytes_per_s", "algorithm", "protocol", "n_channels", "schema",  NULL};
    orr_csv_put_row(&w, header);
    for (uint32_t i = 0; i < q->n_rows; i++) {
        const OrrCollRow *r = &q->rows[i];
        orr_csv_put(&w, orr_collective_name(q->kind));
        orr_csv_put(&w, orr_dtype_name(q->dtype));
        orr_csv_put_int(&w, q->n_gpus);
        orr_csv_put_int(&w, r->bytes);
        orr_csv_put_int(&w, r->time_ns);
        orr_csv_put_double(&w, r->algbw_bytes_per_s);
        orr_csv_put_double(&w, r->busbw_bytes_per_s);
        orr_csv_put(&w, orr_algo_name(r->algo));
        orr_csv_put(&w, orr_proto_name(r->proto));
        orr_csv_put_int(&w, r->n_channels);
        orr_csv_put(&w, "orrery.collective/1");
        orr_csv_end_row(&w);
    }
}

static void write_json(const Question *q, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_cli_json_begin(&w, "orrery.collective/1");
    orr_json_put_string(&w, "collective", orr_collective_name(q->kind));
    orr_json_put_string(&w, "dtype", orr_dtype_name(q->dtype));
    orr_json_put_string(&w, "cluster", q->cluster_ref);
    orr_json_put_int(&w, "n_ranks", q->n_gpus);
    orr_json_begin_array(&w, "rows");
    for (uint32_t i = 0; i < q->n_rows; i++) {
        const OrrCollRow *r = &q->rows[i];
        orr_json_begin_object_inline(&w, NULL);
        orr_json_put_int(&w, "size_bytes", r->bytes);
        orr_json_put_int(&w, "time_ns", r->time_ns);
        orr_json_put_double(&w, "algbw_bytes_per_s", r->algbw_bytes_per_s);
        orr_json_put_double(&w, "busbw_bytes_per_s", r->busbw_bytes_per_s);
        orr_json_put_string(&w, "algorithm", orr_algo_name(r->algo));
        orr_json_put_string(&w, "protocol", orr_proto_name(r->proto));
        orr_json_put_int(&w, "n_channels", r->n_channels);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

static bool read_question(const OrrCli *cli, Question *q, GError **error) {
    int64_t n_gpus = 0;
    if (orr_cli_has(cli, "log") &&
        (orr_cli_has(cli, "json") || orr_cli_has(cli, "csv") || orr_cli_has(cli, "detailed")))
        return orr_fail_usage(error, "orrery show collective: --log excludes --json, --csv and "
                                     "--detailed");
    if (!orr_cli_argument(cli, 2))
        return orr_fail_usage(error,
                              "orrery show collective: a size is missing; usage: orrery show "
                              "collective KIND SIZE[..SIZE] --cluster C");
    q->cluster_ref = orr_cli_value(cli, "cluster");
    if (!q->cluster_ref)
        return orr_fail_usage(error, "orrery show collective: --cluster is missing; orrery list "
                                     "clusters names them");
    if (!read_kind(orr_cli_argument(cli, 1), &q->kind, error) ||
        !read_sizes(orr_cli_argument(cli, 2), q, error) ||
        !read_dtype(orr_cli_value(cli, "dtype"), &q->dtype, error) ||
        !orr_cli_int(cli, "gpus", 1, 10000000, &n_gpus, error))
        return false;
    q->n_gpus = (uint32_t)n_gpus;
    return true;
}

static bool write_table(Question *q, const OrrCli *cli, const OrrCluster *c,
                        const OrrNcclForce *force, OrrOut *out, GError **error) {
    if (orr_cli_has(cli, "detailed")) {
        OrrDetailCase detail = {
            .cluster = c, .n_ranks = q->n_gpus, .kind = q->kind, .dtype = q->dtype, .force = force};
        return orr_cli_write_detailed(cli, &detail, q->min_bytes, q->max_bytes, q->cluster_ref, out,
                                      error);
    }
    if (!orr_collective_table(q->kind, q->dtype, c, q->n_gpus, q->min_bytes, q->max_bytes, force,
                              &q->rows, &q->n_rows, error))
        return false;
    if (orr_cli_has(cli, "log")) {
        OrrShowLog log = {c, q->kind, q->dtype, q->n_gpus, force->version, q->rows, q->n_rows};
        return orr_cli_write_log(&log, out, error);
    }
    (orr_cli_has(cli, "json")  ? write_json
     : orr_cli_has(cli, "csv") ? write_csv
                               : write_text)(q, out);
    return true;
}

bool orr_cli_show_collective(const OrrCli *cli, OrrOut *out, GError **error) {
    Question q = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
    Words words = {names, values};
    OrrNcclEnv env = {0};
    g_autoptr(OrrCalibration) calibration = NULL;
    bool is_text = !orr_cli_has(cli, "json") && !orr_cli_has(cli, "csv");
    if (!read_question(cli, &q, error) || !read_environment(cli, &words, error))
        return false;
    g_autoptr(GString) nowhere = g_string_new(NULL);
    g_autoptr(OrrOut) notes = orr_out_to_string(nowhere);
    g_autoptr(OrrCluster) c = load_cluster(&q, cli, &words, &env, is_text ? out : notes, error);
    bool is_done = c && orr_calibration_for(orr_cli_value(cli, "calibration"),
                                            orr_cluster_spec(c)->node->gpu, &calibration, error);
    if (is_done) {
        env.force.constants = calibration ? calibration->collectives : NULL;
        q.n_gpus = q.n_gpus > 0 ? q.n_gpus : orr_cluster_spec(c)->n_gpus;
        is_done = write_table(&q, cli, c, &env.force, out, error);
    }
    g_free(q.rows);
    orr_nccl_env_clear(&env);
    return is_done;
}
