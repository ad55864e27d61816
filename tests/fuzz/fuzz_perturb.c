/* Perturbations: a text a line, as --perturb has them, and behind a line "table" the table of
 * speeds that the last of them names. What is accepted must leave every rank a speed and every link
 * a share. */
#include <string.h>

#include "sim/api/step_priv.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/loader.h"

#define N_RANKS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *text = g_strndup((const char *)data, size);
    if (!g_utf8_validate(text, -1, NULL))
        return 0; /* the command line and job files are checked before */
    GError *error = NULL;
    char *table = strstr(text, "\ntable\n");
    if (table)
        *table = 0, table += strlen("\ntable\n");
    g_auto(GStrv) lines = g_strsplit(text, "\n", 32);
    g_autoptr(OrrPerturbs) p = orr_perturbs_new();
    for (guint i = 0; lines[i]; i++) {
        bool is_sound = orr_perturbs_add(p, lines[i], &error);
        fuzz_check_error(is_sound ? p : NULL, &error);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->items[i].file)
            continue;
        const char *rows = table ? table : "rank,speed\n0,0.5\n";
        bool is_read = orr_step__parse_speeds(&p->items[i], rows, strlen(rows), N_RANKS, &error);
        fuzz_check_error(is_read ? p : NULL, &error);
        if (!is_read)
            return 0;
    }
    static OrrCluster *cluster; /* one for all inputs */
    if (!cluster)
        cluster = orr_topology_cluster("flat:8 node:4 gpu:v100-sxm2-32", NULL, NULL);
    g_assert(cluster);
    bool is_sound = orr_perturbs_check(p, cluster, N_RANKS, &error);
    fuzz_check_error(is_sound ? p : NULL, &error);
    if (!is_sound)
        return 0;
    for (uint32_t rank = 0; rank < N_RANKS; rank++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            double speed = orr_perturbs_speed(p, rank, seed);
            g_assert(speed >= ORR_PERTURB_MIN_SPEED && speed <= ORR_PERTURB_MAX_SPEED);
        }
    for (uint32_t link = 0; link < orr_cluster_n_links(cluster); link++) {
        double factor = orr_perturbs_link(p, cluster, link);
        g_assert(factor >= 0 && factor <= 1);
    }
    return 0;
}
