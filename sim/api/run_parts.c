/* Degraded parts: the step with one slow GPU, NIC, NVLink port or leaf switch, as the step
 * simulation has it. Which rank it hits matters only by its colour (sim/exec/fold): ranks of one
 * colour have the same step, so one of each is simulated and the strike draws the colour by the
 * number of its ranks. Left out: two slow parts at a time, of which the slower counts. */
#include "sim/api/run_priv.h"
#include "sim/api/step_priv.h"
#include "sim/base/parallel.h"

#include <math.h>
#include <string.h>

#define MAX_CLASSES                                                                                \
    64u /* ours: a minute of simulation; of more, every n-th stands for those behind */

/* A rank that stands for @n_ranks, and what is wrong with its part: perturbations. */
typedef struct {
    uint32_t rank, n_ranks;
    double speed; /* of a GPU whose data are changed; 0: as given */
    char **texts;
    int64_t step_ns;
    GError *error;
} Class;

static void class_clear(gpointer p) {
    Class *c = p;
    g_strfreev(c->texts);
    g_clear_error(&c->error);
}

bool orr_run__perturbed_ns(const OrrRun *run, char *const *texts, int64_t *step_ns,
                           GError **error) {
    const OrrStepRun *step = run->step;
    g_autoptr(OrrPerturbs) perturbs = orr_perturbs_new();
    for (char **t = step->job->perturbs; t && *t; t++)
        if (!orr_perturbs_add(perturbs, *t, error))
            return false;
    for (char *const *t = texts; *t; t++)
        if (!orr_perturbs_add(perturbs, *t, error))
            return false;
    uint32_t n = (uint32_t)orr_layout_world(&step->job->layout);
    if (!orr_perturbs_check(perturbs, step->cluster, n, error))
        return false;
    OrrLowering in = orr_step__lowering(step);
    in.perturbs = perturbs;
    g_autoptr(OrrBound) bound = orr_lower_bind(&in, step->program, error);
    g_autoptr(OrrBound) folded = bound ? orr_fold(bound) : NULL;
    OrrExecOptions options = {0};
    g_autoptr(OrrExecResult) result = folded ? orr_exec_run(folded, &options, error) : NULL;
    if (result)
        *step_ns = result->step_time_ns;
    return result != NULL;
}

/* One rank of each colour. */
static GArray *colours(const OrrStepRun *step) {
    GArray *classes = g_array_new(FALSE, TRUE, sizeof(Class));
    g_array_set_clear_func(classes, class_clear);
    uint32_t n = step->bound->n_real_ranks;
    const uint32_t *rep = step->folded ? step->folded->rep_of : NULL;
    g_autofree uint32_t *at = g_new0(uint32_t, n); /* by representative, 1 up */
    for (uint32_t r = 0; r < n; r++) {
        uint32_t *mine = &at[rep ? rep[r] : r];
        if (*mine == 0) {
            Class c = {.rank = r};
            g_array_append_val(classes, c);
            *mine = classes->len;
        }
        g_array_index(classes, Class, *mine - 1).n_ranks++;
    }
    return classes;
}

static void thin(GArray *classes) {
    uint32_t n = classes->len, kept = 0;
    for (uint32_t i = 0; n > MAX_CLASSES && i < n; i++) {
        Class *c = &g_array_index(classes, Class, i);
        if (kept < (uint64_t)i * MAX_CLASSES / n + 1 && kept < MAX_CLASSES)
            g_array_index(classes, Class, kept++) = *c;
        else
            g_array_index(classes, Class, kept - 1).n_ranks += c->n_ranks;
    }
    if (n > MAX_CLASSES)
        g_array_set_size(classes, kept);
}

/* What the part of a rank is called in perturbations: NULL-terminated. */
static char **name_part(const OrrStepRun *step, const char *what, const char *key,
                        const char *value, const Class *c) {
    uint32_t gpu = orr_placement_gpu(step->placement, c->rank), n_nics;
    uint32_t node = orr_node_of_gpu(orr_cluster_spec(step->cluster), gpu);
    GPtrArray *out = g_ptr_array_new();
    if (strcmp(what, "gpu") == 0) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        if (c->speed > 0)
            g_ascii_formatd(text, sizeof text, "%.6f", c->speed);
        g_ptr_array_add(out, g_strdup_printf("gpu:%u:%s=%s", c->rank, c->speed > 0 ? "speed" : key,
                                             c->speed > 0 ? text : value));
    } else if (strcmp(what, "nic") == 0) {
        g_ptr_array_add(out, g_strdup_printf("nic:%u:%u:%s=%s", node,
                                             orr_cluster_nic_of_gpu(step->cluster, gpu, &n_nics),
                                             key, value));
    } else {
        bool is_leaf = strcmp(what, "leaf") == 0;
        g_autofree char *owner =
            is_leaf ? g_strdup_printf("leaf%u/", orr_cluster_leaf_of_gpu(step->cluster, gpu))
                    : g_strdup_printf("node%u/gpu%u/nvlink-", node,
                                      gpu % orr_cluster_spec(step->cluster)->node->gpus);
        static const char *const ways[2][2] = {{"out", "in"}, {"up", "down"}};
        for (int w = 0; w < 2; w++)
            g_ptr_array_add(
                out, g_strdup_printf("link:%s%s:%s=%s", owner, ways[is_leaf][w], key, value));
    }
    g_ptr_array_add(out, NULL);
    return (char **)g_ptr_array_free(out, FALSE);
}

static int64_t compute_ns(const OrrStepRun *step, uint32_t rank) {
    uint32_t rep = step->folded ? step->folded->rep_of[rank] : rank;
    const int64_t *account = step->result->rank_account_ns + (gsize)rep * ORR_N_OWNERS;
    int64_t sum = 0;
    for (int o = 0; o <= (int)ORR_OWN_KERNELS_END; o++)
        sum += account[o];
    return sum;
}

/* A GPU with other data (a clock, a bandwidth) computes at the speed that the whole job would have
 * with such GPUs, rank by rank. */
static bool find_speeds(OrrRun *run, GArray *classes, const char *key, const char *value,
                        GError **error) {
    OrrOverride o = {"gpu", key, value};
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    g_array_append_vals(all, run->job_overrides->data, run->job_overrides->len);
    g_array_append_val(all, o);
    OrrStepRequest request = run->step_request;
    request.overrides = (const OrrOverride *)(void *)all->data;
    request.n_overrides = all->len;
    g_autoptr(OrrStepRun) other = orr_step_prepare(&request, error);
    if (!other || !orr_step_execute(other, NULL, NULL, 0, error))
        return false;
    for (guint i = 0; i < classes->len; i++) {
        Class *c = &g_array_index(classes, Class, i);
        double speed = (double)compute_ns(run->step, c->rank) / (double)compute_ns(other, c->rank);
        c->speed = CLAMP(speed, ORR_PERTURB_MIN_SPEED, 1);
    }
    return true;
}

/* Parts that several colours share (a NIC, a leaf) come once. */
static void merge_equal(GArray *classes) {
    for (guint i = 0; i < classes->len; i++)
        for (guint j = classes->len - 1; j > i; j--) {
            Class *a = &g_array_index(classes, Class, i), *b = &g_array_index(classes, Class, j);
            if (!g_strv_equal((const char *const *)a->texts, (const char *const *)b->texts))
                continue;
            a->n_ranks += b->n_ranks;
            g_array_remove_index(classes, j);
        }
}

typedef struct {
    const OrrRun *run;
    GArray *classes;
} Work;

static void run_piece(void *data, uint32_t i) {
    Work *w = data;
    Class *c = &g_array_index(w->classes, Class, i);
    orr_run__perturbed_ns(w->run, c->texts, &c->step_ns, &c->error);
}

static bool simulate(const OrrRun *run, GArray *classes, GError **error) {
    Work w = {run, classes};
    orr_parallel(classes->len, run->request->n_threads, run_piece, &w, NULL);
    for (guint i = 0; i < classes->len; i++) {
        Class *c = &g_array_index(classes, Class, i);
        if (!c->error)
            continue;
        g_propagate_error(error, g_steal_pointer(&c->error));
        return false;
    }
    return true;
}

static void take_factors(OrrRun *run, const GArray *classes, OrrFailureKind *kind) {
    const OrrRunSpec *s = run->spec;
    double nominal = (double)s->phases[s->n_phases - 1].step_ns[0], ranks = 0, mean = 0;
    kind->n_classes = classes->len;
    kind->class_factor = g_renew(double, kind->class_factor, classes->len);
    kind->class_share = g_renew(double, kind->class_share, classes->len);
    for (guint i = 0; i < classes->len; i++)
        ranks += g_array_index(classes, Class, i).n_ranks;
    double least = INFINITY, most = 0;
    for (guint i = 0; i < classes->len; i++) {
        const Class *c = &g_array_index(classes, Class, i);
        double factor = MAX(1, (double)c->step_ns / nominal);
        kind->class_factor[i] = factor;
        kind->class_share[i] = c->n_ranks / ranks;
        mean += factor * c->n_ranks / ranks;
        least = MIN(least, factor), most = MAX(most, factor);
    }
    kind->slow_factor = mean;
    char text[3][G_ASCII_DTOSTR_BUF_SIZE];
    const double values[3] = {mean - 1, least - 1, most - 1};
    for (int i = 0; i < 3; i++)
        g_ascii_formatd(text[i], sizeof text[i], "%.4f", values[i]);
    g_autofree char *key = g_strdup_printf("%s.slow", kind->name);
    g_autofree char *value = g_strdup_printf("%s (%s to %s)", text[0], text[1], text[2]);
    g_autofree char *origin =
        g_strdup_printf("steps simulated with %s, one for each of %u colours of ranks",
                        kind->slow_part, classes->len);
    orr_record_add_assumption(run->head, key, value, origin);
}

static bool price(OrrRun *run, OrrFailureKind *kind, char **words, const char *value,
                  GError **error) {
    bool is_any = g_strv_length(words) == 3 && strcmp(words[1], "any") == 0;
    static const char *const kinds[] = {"gpu", "nic", "nvlink", "leaf", NULL};
    g_autoptr(GArray) classes = NULL;
    if (is_any && !g_strv_contains((const char *const *)kinds, words[0]))
        return orr_fail_input(error,
                              "'%s' is no part; gpu:any:speed=0.8, nic:any:bandwidth=0.5, "
                              "nvlink:any:... or leaf:any:... would do",
                              words[0]);
    classes = colours(run->step);
    if (is_any)
        thin(classes);
    else
        g_array_set_size(classes, 1);
    bool is_data = is_any && strcmp(words[0], "gpu") == 0 && strcmp(words[2], "speed") != 0;
    if (is_data && !find_speeds(run, classes, words[2], value, error))
        return false;
    for (guint i = 0; i < classes->len; i++) {
        Class *c = &g_array_index(classes, Class, i);
        c->texts = is_any ? name_part(run->step, words[0], words[2], value, c)
                          : g_strsplit(kind->slow_part, "\n", -1);
    }
    merge_equal(classes);
    if (!simulate(run, classes, error))
        return false;
    take_factors(run, classes, kind);
    return true;
}

bool orr_run__price_part(OrrRun *run, OrrFailureKind *kind, GError **error) {
    if (!kind->slow_part || !*kind->slow_part)
        return true;
    if (!run->step)
        return orr_fail_input(error,
                              "failure %s: slow_part needs a job to simulate; slow = 10 %% "
                              "would do",
                              kind->name);
    const char *equals = strchr(kind->slow_part, '=');
    g_autofree char *what =
        equals ? g_strndup(kind->slow_part, (gsize)(equals - kind->slow_part)) : g_strdup("");
    g_auto(GStrv) words = g_strsplit(g_strstrip(what), ":", -1);
    g_autofree char *value = g_strstrip(g_strdup(equals ? equals + 1 : ""));
    GError *inner = NULL;
    if (price(run, kind, words, value, &inner))
        return true;
    g_propagate_prefixed_error(error, inner, "failure %s: slow_part = %s: ", kind->name,
                               kind->slow_part);
    return false;
}
