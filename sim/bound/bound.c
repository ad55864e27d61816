#include "sim/bound/bound.h"

#include <glib.h>

static void loads_clear(OrrLoads *l) {
    g_free(l->first);
    g_free(l->uses);
}

void orr_bound_free(OrrBound *bound) {
    if (!bound)
        return;
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        OrrBoundGroup *g = &bound->groups[k];
        g_free(g->group_of);
        g_free(g->first_member);
        g_free(g->members);
        g_free(g->class_of);
        g_free(g->weight);
        g_free(g->plans);
        loads_clear(&g->loads);
        g_free(g->pair_index);
        g_free(g->position_of);
        g_free(g->pair_rank);
        g_free(g->pair_class);
        g_free(g->pair_plans);
        loads_clear(&g->pair_loads);
    }
    g_free(bound->weight);
    g_free(bound->rep_of);
    g_free(bound->role);
    g_free(bound->hw);
    g_free(bound->kernel_ns);
    g_free(bound->capacity);
    g_free(bound->link_weight);
    g_free(bound);
}

void orr_bound_set_speeds(OrrBound *b, const uint32_t *speed) {
    g_autoptr(GHashTable) kinds = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    uint32_t n = b->program->n_kernels;
    GArray *times = g_array_new(FALSE, FALSE, sizeof(int64_t));
    b->n_hw = 0;
    for (uint32_t r = 0; r < b->n_ranks; r++) {
        gint64 key = (gint64)((uint64_t)b->hw[r] << 32 | speed[r]);
        gpointer found;
        if (!g_hash_table_lookup_extended(kinds, &key, NULL, &found)) {
            for (uint32_t k = 0; k < n; k++) {
                uint64_t work = (uint64_t)b->kernel_ns[(gsize)b->hw[r] * n + k] * ORR_RATE_ONE;
                int64_t ns = (int64_t)((work + speed[r] - 1) / speed[r]);
                g_array_append_val(times, ns);
            }
            found = GUINT_TO_POINTER(b->n_hw++);
            g_hash_table_insert(kinds, g_memdup2(&key, sizeof key), found);
        }
        b->hw[r] = GPOINTER_TO_UINT(found);
    }
    int64_t none = 0;
    g_array_append_val(times, none); /* a program without kernels has no row */
    g_free(b->kernel_ns);
    b->kernel_ns = (int64_t *)g_array_free(times, FALSE);
}

static char *loads_flaw(const OrrBound *b, const OrrLoads *l, uint32_t n_places, const char *kind) {
    if (l->n_loads == 0)
        return NULL;
    for (uint32_t i = 0; i < n_places * l->n_loads; i++)
        if (l->first[i] > l->first[i + 1])
            return g_strdup_printf("group %s: load vectors out of order", kind);
    for (uint32_t i = 0; i < l->first[n_places * l->n_loads]; i++)
        if (l->uses[i].constraint >= b->n_links || l->uses[i].coef == 0 || l->uses[i].count == 0)
            return g_strdup_printf("group %s: load %u has a bad link or coefficient", kind, i);
    return NULL;
}

static char *group_flaw(const OrrBound *b, const OrrBoundGroup *g, const char *kind) {
    for (uint32_t r = 0; r < b->n_ranks; r++)
        if (g->group_of[r] != ORR_NONE && g->group_of[r] >= g->n_groups)
            return g_strdup_printf("group %s: rank %u is in group %u of %u", kind, r,
                                   g->group_of[r], g->n_groups);
    for (uint32_t i = 0; i < g->n_groups; i++) {
        if (g->n_classes > 0 && g->class_of[i] >= g->n_classes)
            return g_strdup_printf("group %s: class of %u", kind, i);
        for (uint32_t m = g->first_member[i]; m < g->first_member[i + 1]; m++)
            if (g->members[m] >= b->n_ranks || g->group_of[g->members[m]] != i)
                return g_strdup_printf("group %s: member %u of %u", kind, m, i);
    }
    char *flaw = loads_flaw(b, &g->loads, g->n_groups, kind);
    if (!flaw && g->n_pairs > 0)
        flaw = loads_flaw(b, &g->pair_loads, g->n_groups * g->n_pairs, kind);
    return flaw;
}

char *orr_bound_flaw(const OrrBound *b) {
    uint64_t total = 0;
    for (uint32_t r = 0; r < b->n_ranks; r++) {
        total += b->weight[r];
        if (b->role[r] >= b->program->n_roles || b->hw[r] >= b->n_hw)
            return g_strdup_printf("rank %u: role or hardware kind out of range", r);
    }
    if (total != b->n_real_ranks)
        return g_strdup_printf("weights add up to %" G_GUINT64_FORMAT " of %u ranks", total,
                               b->n_real_ranks);
    for (uint64_t i = 0; i < (uint64_t)b->n_hw * b->program->n_kernels; i++)
        if (b->kernel_ns[i] < 1)
            return g_strdup_printf("kernel %" G_GUINT64_FORMAT " takes no time", i);
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        if (b->groups[k].n_groups == 0)
            continue;
        char *flaw = group_flaw(b, &b->groups[k], orr_group_name(k));
        if (flaw)
            return flaw;
    }
    return NULL;
}
