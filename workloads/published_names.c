#include "workloads/published_names.h"

#include "sim/io/csv.h"
#include "sim/io/data.h"

#include <string.h>

#define MOST_COLUMNS 13

static const char *const norms[] = {"layer_norm", "rms_norm", NULL};
static const char *const activations[] = {"relu", "gelu", "silu", NULL};
static const char *const positions[] = {"none", "learned", "rope", "alibi", NULL};

static OrrCsv *load(const char *table, const char *const *columns, int *index, GError **error) {
    g_autofree char *path = orr_data_find("workloads/names", table, ".csv", error);
    g_autoptr(OrrCsv) csv = path ? orr_csv_load(path, ORR_CSV_PLAIN, error) : NULL;
    if (!csv || !orr_csv_need(csv, columns, index, error))
        return NULL;
    if (orr_csv_n_rows(csv) == 0) {
        orr_fail_input(error, "%s: has no rows", path);
        return NULL;
    }
    return g_steal_pointer(&csv);
}

static char *cell(const OrrCsv *csv, guint row, int column) {
    return g_strdup(orr_csv_cell(csv, row, column));
}

static bool read_truth(const OrrCsv *csv, guint row, int column, bool *is, GError **error) {
    int64_t value;
    if (!orr_csv_int(csv, row, column, 0, 1, &value, error))
        return false;
    *is = value == 1;
    return true;
}

static bool read_word(const OrrCsv *csv, guint row, int column, const char *const *words,
                      int *which, GError **error) {
    const char *text = orr_csv_cell(csv, row, column);
    for (*which = 0; words[*which]; ++*which)
        if (strcmp(words[*which], text) == 0)
            return true;
    g_autofree char *all = g_strjoinv(", ", (char **)words);
    return orr_csv_fail(csv, row, column, error, "one of %s would do", all);
}

static bool read_gpus(OrrPublishedNames *n, GError **error) {
    static const char *const columns[] = {"words", "gpu", NULL};
    int at[MOST_COLUMNS];
    g_autoptr(OrrCsv) csv = load("gpus", columns, at, error);
    if (!csv)
        return false;
    n->gpus = g_new0(OrrGpuName, orr_csv_n_rows(csv));
    for (; n->n_gpus < orr_csv_n_rows(csv); n->n_gpus++)
        n->gpus[n->n_gpus] = (OrrGpuName){cell(csv, n->n_gpus, at[0]), cell(csv, n->n_gpus, at[1])};
    return true;
}

static bool read_clusters(OrrPublishedNames *n, GError **error) {
    static const char *const columns[] = {"gpu", "words", "cluster", NULL};
    int at[MOST_COLUMNS];
    g_autoptr(OrrCsv) csv = load("clusters", columns, at, error);
    if (!csv)
        return false;
    n->clusters = g_new0(OrrClusterName, orr_csv_n_rows(csv));
    for (; n->n_clusters < orr_csv_n_rows(csv); n->n_clusters++)
        n->clusters[n->n_clusters] =
            (OrrClusterName){cell(csv, n->n_clusters, at[0]), cell(csv, n->n_clusters, at[1]),
                             cell(csv, n->n_clusters, at[2])};
    return true;
}

/* An empty cell leaves @value as it is. */
static bool read_bound(const OrrCsv *csv, guint row, int column, double *value, GError **error) {
    return !orr_csv_cell(csv, row, column)[0] ||
           orr_csv_number(csv, row, column, 0, 1e9, value, error);
}

static bool read_framework(const OrrCsv *csv, guint i, const int *at, OrrFrameworkName *f,
                           GError **error) {
    double pp_from = 0;
    *f = (OrrFrameworkName){.framework = cell(csv, i, at[0]),
                            .source = cell(csv, i, at[1]),
                            .gpu = cell(csv, i, at[2]),
                            .note = cell(csv, i, at[3]),
                            .model = cell(csv, i, at[6]),
                            .after_pp_fix = cell(csv, i, at[8]),
                            .profile = cell(csv, i, at[9])};
    if (!read_bound(csv, i, at[4], &f->note_from, error) ||
        !read_bound(csv, i, at[5], &f->note_below, error) ||
        !read_bound(csv, i, at[7], &pp_from, error) ||
        !read_truth(csv, i, at[10], &f->is_nearest, error))
        return false;
    f->pp_from = (uint32_t)pp_from;
    return true;
}

static bool read_frameworks(OrrPublishedNames *n, GError **error) {
    static const char *const columns[] = {"framework",    "source",     "gpu",        "note",
                                          "note_from",    "note_below", "model",      "pp_from",
                                          "after_pp_fix", "profile",    "is_nearest", NULL};
    int at[MOST_COLUMNS];
    g_autoptr(OrrCsv) csv = load("frameworks", columns, at, error);
    if (!csv)
        return false;
    n->frameworks = g_new0(OrrFrameworkName, orr_csv_n_rows(csv));
    while (n->n_frameworks < orr_csv_n_rows(csv)) {
        guint i = n->n_frameworks++;
        if (!read_framework(csv, i, at, &n->frameworks[i], error))
            return false;
    }
    return true;
}

static bool read_family(const OrrCsv *csv, guint i, const int *at, OrrFamilyName *f,
                        GError **error) {
    int norm, activation, position;
    int64_t vocab;
    f->words = cell(csv, i, at[0]);
    f->framework = cell(csv, i, at[11]);
    if (!read_word(csv, i, at[1], norms, &norm, error) ||
        !read_word(csv, i, at[2], activations, &activation, error) ||
        !read_word(csv, i, at[3], positions, &position, error) ||
        !orr_csv_number(csv, i, at[4], 0, 1, &f->rotary_frac, error) ||
        !read_truth(csv, i, at[5], &f->is_gated, error) ||
        !read_truth(csv, i, at[6], &f->has_biases, error) ||
        !read_truth(csv, i, at[7], &f->has_qkv_bias, error) ||
        !read_truth(csv, i, at[8], &f->is_tied, error) ||
        !read_truth(csv, i, at[9], &f->has_embedding_norm, error) ||
        !orr_csv_int(csv, i, at[10], 1, 1 << 24, &vocab, error))
        return false;
    f->norm = (OrrNormKind)norm;
    f->activation = (OrrActivation)activation;
    f->position = (OrrPosition)position;
    f->vocab = (uint32_t)vocab;
    return true;
}

static bool read_families(OrrPublishedNames *n, GError **error) {
    static const char *const columns[] = {
        "words",    "norm", "activation",     "position", "rotary",    "gated", "biases",
        "qkv_bias", "tied", "embedding_norm", "vocab",    "framework", NULL};
    int at[MOST_COLUMNS];
    g_autoptr(OrrCsv) csv = load("families", columns, at, error);
    if (!csv)
        return false;
    n->families = g_new0(OrrFamilyName, orr_csv_n_rows(csv));
    while (n->n_families < orr_csv_n_rows(csv)) {
        guint i = n->n_families++;
        if (!read_family(csv, i, at, &n->families[i], error))
            return false;
    }
    return true;
}

OrrPublishedNames *orr_published_names_load(GError **error) {
    g_autoptr(OrrPublishedNames) n = g_new0(OrrPublishedNames, 1);
    if (!read_gpus(n, error) || !read_clusters(n, error) || !read_frameworks(n, error) ||
        !read_families(n, error))
        return NULL;
    return g_steal_pointer(&n);
}

void orr_published_names_free(OrrPublishedNames *n) {
    if (!n)
        return;
    for (guint i = 0; i < n->n_gpus; i++)
        g_free(n->gpus[i].words), g_free(n->gpus[i].gpu);
    for (guint i = 0; i < n->n_clusters; i++)
        g_free(n->clusters[i].gpu), g_free(n->clusters[i].words), g_free(n->clusters[i].cluster);
    for (guint i = 0; i < n->n_frameworks; i++) {
        OrrFrameworkName *f = &n->frameworks[i];
        g_free(f->framework), g_free(f->source), g_free(f->gpu), g_free(f->note), g_free(f->model),
            g_free(f->after_pp_fix), g_free(f->profile);
    }
    for (guint i = 0; i < n->n_families; i++)
        g_free(n->families[i].words), g_free(n->families[i].framework);
    g_free(n->gpus), g_free(n->clusters), g_free(n->frameworks), g_free(n->families);
    g_free(n);
}
