#include "sim/judge/compare.h"

#include <stdlib.h>
#include <string.h>

#include "sim/judge/judge_priv.h"

OrrCompare *orr_judge__compare_new(void) {
    OrrCompare *c = g_new0(OrrCompare, 1);
    c->notes = g_ptr_array_new_with_free_func(g_free);
    return c;
}

void orr_compare_free(OrrCompare *c) {
    if (!c)
        return;
    g_free(c->terms);
    g_ptr_array_unref(c->notes);
    g_free(c);
}

void orr_judge__add_term(OrrCompare *c, const char *name, int64_t one_ns, int64_t other_ns) {
    if (one_ns == 0 && other_ns == 0)
        return;
    c->terms = g_renew(OrrCompareTerm, c->terms, c->n_terms + 1);
    c->terms[c->n_terms++] = (OrrCompareTerm){name, one_ns, other_ns};
}

static int by_difference(const void *a, const void *b) {
    const OrrCompareTerm *one = a, *other = b;
    int64_t x = llabs(one->other_ns - one->one_ns), y = llabs(other->other_ns - other->one_ns);
    return x != y ? (x > y ? -1 : 1) : strcmp(one->name, other->name);
}

void orr_judge__settle(OrrCompare *c, const char *rest) {
    int64_t one_ns = c->one_ns, other_ns = c->other_ns;
    for (uint32_t i = 0; i < c->n_terms; i++) {
        one_ns -= c->terms[i].one_ns;
        other_ns -= c->terms[i].other_ns;
    }
    orr_judge__add_term(c, rest, one_ns, other_ns);
    if (c->n_terms > 1)
        qsort(c->terms, c->n_terms, sizeof *c->terms, by_difference);
}

static void note_text(OrrCompare *c, const char *what, const char *one, const char *other) {
    if (strcmp(one, other) != 0)
        g_ptr_array_add(c->notes, g_strdup_printf("%s: %s, then %s", what, one, other));
}

void orr_judge__note_count(OrrCompare *c, const char *what, int64_t one, int64_t other) {
    if (one != other && one > 0 && other > 0)
        g_ptr_array_add(
            c->notes,
            g_strdup_printf("%s: %" G_GINT64_FORMAT ", then %" G_GINT64_FORMAT, what, one, other));
}

OrrCompare *orr_judge_compare_records(const OrrRecord *one, const OrrRecord *other) {
    OrrCompare *c = orr_judge__compare_new();
    const OrrRecordLayout *a = &one->layout, *b = &other->layout;
    c->one_ns = one->step_time_ns;
    c->other_ns = other->step_time_ns;
    for (int o = 0; o < ORR_N_OWNERS; o++)
        orr_judge__add_term(c, orr_owner_name((OrrOwner)o), one->time_account_ns[o],
                            other->time_account_ns[o]);
    orr_judge__settle(c, "rest");
    note_text(c, "model", one->model, other->model);
    note_text(c, "cluster", one->cluster, other->cluster);
    note_text(c, "framework", one->framework, other->framework);
    note_text(c, "schedule", one->schedule, other->schedule);
    note_text(c, "precision", one->precision, other->precision);
    note_text(c, "recompute", one->recompute, other->recompute);
    note_text(c, "calibration", one->calibration, other->calibration);
    orr_judge__note_count(c, "tp", a->tp, b->tp);
    orr_judge__note_count(c, "pp", a->pp, b->pp);
    orr_judge__note_count(c, "vpp", a->vpp, b->vpp);
    orr_judge__note_count(c, "dp", a->dp, b->dp);
    orr_judge__note_count(c, "micro-batch", a->micro_batch, b->micro_batch);
    orr_judge__note_count(c, "global batch", a->global_batch, b->global_batch);
    orr_judge__note_count(c, "sequence length", a->sequence_length, b->sequence_length);
    return c;
}
