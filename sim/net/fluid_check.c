/* The invariants of the fluid, and its counters. Rates must be those of one solve of all
 * activities, each by itself, on all links that may bind: whatever bundles, stand-ins, joint
 * activities and links out of sight save, they change none. Cost of the check: that solve, and one
 * visit a use. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

#include <inttypes.h>

/* What joint activities have on each link of a row. */
typedef struct {
    OrrWide usage, potential, pledged;
} Joint;

static Joint *joint_sums(const OrrFluid *f) {
    Joint *joint = g_new0(Joint, f->n_rows + 1);
    for (uint32_t i = 0; i < f->n_activities; i++) {
        const OrrActivity *a = &f->activities[i];
        for (uint32_t u = a->n_uses; a->is_live && u < a->n_uses + a->n_rows; u++) {
            OrrWide factor = orr_fluid__factor(&a->uses[u]);
            Joint *at = &joint[a->uses[u].constraint];
            at->usage +=
                factor * (a->bundle == ORR_FLUID_NIL ? a->top : f->bundles[a->bundle].rate);
            at->potential += factor * a->top;
            at->pledged += factor * orr_fluid__ceiling(f, a);
        }
    }
    return joint;
}

static char *link_flaw(const OrrFluid *f, uint32_t link, const Joint *joints) {
    static const Joint none = {0};
    const OrrLinkState *l = &f->links[link];
    uint32_t row = f->row_of ? f->row_of[link] : ORR_FLUID_NIL;
    const Joint *joint = row == ORR_FLUID_NIL ? &none : &joints[row];
    OrrLinkState folded = *l;
    if (l->is_folded) {
        if (l->is_watched || l->n_records > 0)
            return g_strdup_printf("link %u is used alone, and its row is folded", link);
        folded.potential = f->rows[row].potential;
        folded.pledged = f->rows[row].pledged;
        folded.slope = f->rows[row].slope;
        folded.unit = f->rows[row].unit;
        l = &folded;
    }
    OrrWide usage = joint->usage, potential = joint->potential, pledged = joint->pledged;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        const OrrActivity *a = &f->activities[f->records[r].activity];
        const OrrBundle *b = a->bundle == ORR_FLUID_NIL ? NULL : &f->bundles[a->bundle];
        OrrWide factor = orr_fluid__factor(&a->uses[r - a->first_record]);
        usage += factor * (b ? b->rate : a->top);
        potential += factor * a->top;
        pledged += factor * (b ? b->ceiling : a->top);
    }
    OrrWide held = l->pledged - pledged; /* see reserve.c */
    if (pledged > l->pledged || held != l->potential - potential)
        return g_strdup_printf(
            "link %u: %" PRIu64 " bytes/s are pledged on it, and its sum is %" PRIu64, link,
            (uint64_t)(pledged / ORR_COEF_ONE), (uint64_t)(l->pledged / ORR_COEF_ONE));
    if (l->level != ORR_LEVEL_NONE && (held > 0 || joint->potential > 0))
        return g_strdup_printf("link %u stops its users, and room is held on it", link);
    if (!l->is_watched && orr_fluid__may_bind(l))
        return g_strdup_printf("link %u may bind, and is not watched", link);
    if (usage + held > orr_fluid__capacity(l))
        return g_strdup_printf("link %u carries %" PRIu64
                               " bytes/s, more than its capacity of %" PRIu64,
                               link, (uint64_t)(usage / ORR_COEF_ONE), (uint64_t)l->capacity);
    return NULL;
}

static char *bundle_flaw(const OrrFluid *f, uint32_t bundle) {
    const OrrBundle *b = &f->bundles[bundle];
    uint64_t stop = b->top_level;
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
        stop = MIN(stop, f->links[f->uses[u].link].level);
    if (stop != b->stop || b->rate != orr_fluid__rate_at(b, b->stop))
        return g_strdup_printf("bundle %u runs at %" PRIu64
                               " bytes/s; its links let it have %" PRIu64,
                               bundle, b->rate, orr_fluid__rate_at(b, stop));
    if (b->rate > b->ceiling)
        return g_strdup_printf("bundle %u runs at %" PRIu64 " bytes/s; %" PRIu64 " are pledged",
                               bundle, b->rate, b->ceiling);
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++) {
        bool is_one = !b->is_own && orr_fluid__is_stand_in(f, f->uses[u].link);
        if (f->uses[u].total != f->uses[u].factor * (is_one ? 1 : b->n_members) ||
            !f->links[f->uses[u].link].is_watched)
            return g_strdup_printf("bundle %u: its use of link %u is not that of its members",
                                   bundle, f->uses[u].link);
    }
    return NULL;
}

/* Nobody but the activities that are listed there uses it, and they could fill it. The others have
 * room, or are watched by nobody: that they carry no more than they can is enough. */
static bool is_solved_for(const OrrFluid *f, uint32_t link) {
    const OrrLinkState *l = &f->links[link];
    uint64_t unit = 0;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        const OrrActivity *a = &f->activities[f->records[r].activity];
        unit += orr_fluid__factor(&a->uses[r - a->first_record]);
    }
    return !l->is_folded && unit == l->unit && orr_fluid__can_bind(l);
}

/* All activities, and their uses of links that are solved for. */
static void list_all(const OrrFluid *f, const uint32_t *number, GArray *all, GArray *uses) {
    for (uint32_t i = 0; i < f->n_activities; i++) {
        const OrrActivity *a = &f->activities[i];
        OrrSolveActivity x = {uses->len, 0, a->weight, a->largest_coef, a->top};
        for (uint32_t u = 0; a->is_live && u < a->n_uses; u++) {
            OrrUse use = a->uses[u];
            if (number[use.constraint] == ORR_FLUID_NIL)
                continue;
            use.constraint = number[use.constraint];
            g_array_append_val(uses, use);
            x.n_uses++;
        }
        g_array_append_val(all, x);
    }
}

static char *rate_flaw(const OrrFluid *f) {
    g_autofree uint32_t *number = g_new(uint32_t, f->n_links + 1);
    g_autofree uint64_t *rate = g_new(uint64_t, f->n_activities + 1);
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrSolveActivity));
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autoptr(GArray) capacity = g_array_new(FALSE, FALSE, sizeof(OrrWide));
    for (uint32_t l = 0; l < f->n_links; l++) {
        number[l] = is_solved_for(f, l) ? capacity->len : ORR_FLUID_NIL;
        OrrWide most = orr_fluid__capacity(&f->links[l]);
        if (number[l] != ORR_FLUID_NIL)
            g_array_append_val(capacity, most);
    }
    list_all(f, number, all, uses);
    if (all->len == 0)
        return NULL;
    OrrSolveProblem problem = {.activities = (const OrrSolveActivity *)(void *)all->data,
                               .n = all->len,
                               .uses = (const OrrUse *)(void *)uses->data,
                               .capacity = (const OrrWide *)(void *)capacity->data,
                               .n_constraints = capacity->len,
                               .rate = rate};
    orr_solver_run(f->solver, &problem);
    for (uint32_t i = 0; i < f->n_activities; i++)
        if (f->activities[i].is_live && orr_fluid_rate(f, i) != rate[i])
            return g_strdup_printf("activity %u runs at %" PRIu64
                                   " bytes/s; a solve of everything gives it %" PRIu64,
                                   i, orr_fluid_rate(f, i), rate[i]);
    return NULL;
}

char *orr_fluid_flaw(const OrrFluid *f) {
    if (f->lost_bytes > 0)
        return g_strdup_printf("%" PRIu64 " bytes are lost: activities were ended before they were "
                               "due",
                               f->lost_bytes);
    g_autofree Joint *joint = joint_sums(f);
    for (uint32_t l = 0; l < f->n_links; l++) {
        char *flaw = link_flaw(f, l, joint);
        if (flaw != NULL)
            return flaw;
    }
    for (uint32_t i = 0; i < f->n_bundles; i++) {
        char *flaw = f->bundles[i].is_live ? bundle_flaw(f, i) : NULL;
        if (flaw != NULL)
            return flaw;
    }
    return rate_flaw(f);
}

void orr_fluid_stats(const OrrFluid *f, OrrFluidStats *stats) {
    *stats = f->stats;
}
