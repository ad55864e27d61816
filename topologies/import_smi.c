/* `nvidia-smi topo -m` and `rocm-smi --showtopotype`: a row and a column a device. Cells are X,
 * NV12, PIX, PXB, PHB, NODE, SYS, XGMI; columns behind the devices (affinities) don't matter. */
#include "topologies/import_priv.h"

#include <string.h>

#include "sim/io/log.h"

typedef struct {
    const OrrImport *import;
    char **columns; /* GPU0 ... NIC3; borrowed from the header */
    guint n_columns, n_gpus;
    OrrFoundNode *found;
    gboolean *has_row;
} Reader;

static bool is_device(const char *word) {
    bool is_named = g_str_has_prefix(word, "GPU") || g_str_has_prefix(word, "NIC") ||
                    g_str_has_prefix(word, "mlx");
    return is_named && g_ascii_isdigit(word[strlen(word) - 1]);
}

static bool is_gpu(const char *word) {
    return g_str_has_prefix(word, "GPU");
}

static const struct {
    const char *word;
    OrrNear near;
} distances[] = {{"PIX", ORR_NEAR_PIX},
                 {"PXB", ORR_NEAR_PXB},
                 {"PHB", ORR_NEAR_PHB},
                 {"NODE", ORR_NEAR_NODE},
                 {"SYS", ORR_NEAR_SYS}};

/* A cell of row GPU @i; false: no word of such a table. */
static bool read_cell(Reader *r, guint i, guint k, const char *cell) {
    OrrFoundNode *found = r->found;
    int64_t n_links = 1;
    bool is_nvlink = g_str_has_prefix(cell, "NV") && orr_log_int(cell + 2, &n_links);
    if (strcmp(cell, "X") == 0 || strcmp(cell, "0") == 0)
        return i == k;
    if (is_nvlink || strcmp(cell, "XGMI") == 0) {
        if (n_links < 1 || n_links > 255 || k >= r->n_gpus)
            return false;
        found->links[i * r->n_gpus + k] = (uint32_t)n_links;
        return true;
    }
    for (guint d = 0; d < G_N_ELEMENTS(distances); d++)
        if (strcmp(cell, distances[d].word) == 0) {
            if (k >= r->n_gpus)
                found->near[i * found->n_nics + k - r->n_gpus] = distances[d].near;
            return true;
        }
    return strcmp(cell, "PCIE") == 0;
}

static bool read_row(Reader *r, char **words, guint n_words, uint32_t line, GError **error) {
    guint i = 0;
    while (i < r->n_gpus && strcmp(r->columns[i], words[0]) != 0)
        i++;
    if (i == r->n_gpus) /* a row of a NIC repeats what the GPUs' rows say */
        return true;
    if (n_words < r->n_columns + 1)
        return orr_fail_input(error, "%s:%u: the row of %s has %u cells, not %u", r->import->path,
                              line, words[0], n_words - 1, r->n_columns);
    for (guint k = 0; k < r->n_columns; k++)
        if (!read_cell(r, i, k, words[k + 1]))
            return orr_fail_input(error,
                                  "%s:%u: %s to %s = %s: X, NV and a number, PIX, PXB, PHB, NODE, "
                                  "SYS or XGMI would do",
                                  r->import->path, line, words[0], r->columns[k], words[k + 1]);
    r->has_row[i] = true;
    return true;
}

static bool read_header(Reader *r, char **words) {
    guint n = 0;
    while (words[n] && is_device(words[n]))
        n++;
    if (n < 1 || !is_gpu(words[0]) || n > 2 * ORR_MAX_FOUND)
        return false;
    r->columns = words;
    r->n_columns = n;
    while (r->n_gpus < n && is_gpu(words[r->n_gpus]))
        r->n_gpus++;
    r->found = orr_topologies__found_new("nvidia-smi topo -m", r->n_gpus, n - r->n_gpus);
    r->has_row = g_new0(gboolean, r->n_gpus);
    for (guint i = 0; i < n; i++)
        *(i < r->n_gpus ? &r->found->gpus[i].id : &r->found->nics[i - r->n_gpus].id) =
            g_strdup(words[i]);
    return true;
}

static bool read_lines(Reader *r, const OrrLog *log, char ***header, GError **error) {
    for (guint i = 0; i < log->n_lines; i++) {
        guint n;
        char **words = orr_log_words(log->lines[i], &n);
        bool is_row = n > 1 && is_device(words[0]) && !is_device(words[1]);
        if (!r->found && n > 0 && !is_row && read_header(r, words)) {
            *header = words;
            continue;
        }
        bool is_read = !r->found || !is_row || read_row(r, words, n, i + 1, error);
        g_strfreev(words);
        if (!is_read)
            return false;
    }
    if (!r->found)
        return orr_fail_input(
            error,
            "%s: neither XML nor a listing of ibnetdiscover, and without a row of "
            "devices (GPU0 GPU1 ...) no table of nvidia-smi topo -m or rocm-smi",
            r->import->path);
    for (guint i = 0; i < r->n_gpus; i++)
        if (!r->has_row[i])
            return orr_fail_input(error, "%s: the row of %s is missing", r->import->path,
                                  r->columns[i]);
    return true;
}

OrrFoundNode *orr_topologies__read_smi(const OrrImport *import, const char *text, gsize length,
                                       GError **error) {
    Reader r = {.import = import};
    g_auto(GStrv) header = NULL;
    g_autoptr(OrrLog) log = orr_log_parse(import->path, text, length, error);
    if (log && !read_lines(&r, log, &header, error))
        g_clear_pointer(&r.found, orr_found_node_free);
    g_free(r.has_row);
    if (r.found)
        r.found->has_links = true;
    return r.found;
}
