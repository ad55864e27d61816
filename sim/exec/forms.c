/* See forms.h. */
#include "sim/exec/forms.h"

#include "sim/base/normal.h"

#include <math.h>
#include <string.h>

OrrForms orr_forms_new(gsize n_slots, uint32_t max, uint32_t n_parts) {
    g_assert(max <= ORR_MAX_FORMS);
    OrrForms f = {.max = max, .n_parts = n_parts};
    f.parts = g_new0(double, n_slots *max *n_parts + 1);
    f.ns = g_new0(double, n_slots *max + 1);
    f.rank = g_new0(uint32_t, n_slots * max + 1);
    f.count = g_new0(uint8_t, n_slots + 1);
    return f;
}

void orr_forms_clear(OrrForms *f) {
    g_free(f->parts);
    g_free(f->ns);
    g_free(f->rank);
    g_free(f->count);
}

static void variances(uint32_t n_parts, const double *a, const double *b, bool is_one_rank,
                      double *va, double *vb, double *both) {
    *va = *vb = *both = 0;
    for (uint32_t i = 0; i < n_parts; i++) {
        *va += a[i];
        *vb += b[i];
        *both += i + 1 == n_parts && !is_one_rank ? 0 : MIN(a[i], b[i]);
    }
}

/* @a becomes the form of the larger of the two; returns its mean. */
static double larger(uint32_t n_parts, double *a, double a_ns, const double *b, double b_ns,
                     bool is_one_rank) {
    double va, vb, both, variance, share, total = 0;
    variances(n_parts, a, b, is_one_rank, &va, &vb, &both);
    double mean = orr_normal_larger(a_ns, va, b_ns, vb, both, &variance, &share);
    if (share >= 1)
        return mean;
    for (uint32_t i = 0; i < n_parts; i++) {
        double sd = share * sqrt(fmax(a[i], 0)) + (1 - share) * sqrt(fmax(b[i], 0));
        a[i] = sd * sd;
        total += a[i];
    }
    for (uint32_t i = 0; i < n_parts && total > 0; i++)
        a[i] *= variance / total;
    return mean;
}

static void drop(OrrForms *f, gsize slot, uint32_t i) {
    uint32_t last = --f->count[slot];
    memmove(orr_form_parts(f, slot, i), orr_form_parts(f, slot, last),
            f->n_parts * sizeof *f->parts);
    *orr_form_ns(f, slot, i) = *orr_form_ns(f, slot, last);
    *orr_form_rank(f, slot, i) = *orr_form_rank(f, slot, last);
}

/* The two that are most alike become one. */
static void merge_two(OrrForms *f, gsize slot) {
    uint32_t one = 0, other = 1;
    double least = INFINITY;
    for (uint32_t a = 0; a < f->count[slot]; a++)
        for (uint32_t b = a + 1; b < f->count[slot]; b++) {
            double va, vb, both, apart = *orr_form_ns(f, slot, a) - *orr_form_ns(f, slot, b);
            variances(f->n_parts, orr_form_parts(f, slot, a), orr_form_parts(f, slot, b),
                      *orr_form_rank(f, slot, a) == *orr_form_rank(f, slot, b), &va, &vb, &both);
            double distance = apart * apart + va + vb - 2 * both;
            if (distance < least)
                least = distance, one = a, other = b;
        }
    *orr_form_ns(f, slot, one) =
        larger(f->n_parts, orr_form_parts(f, slot, one), *orr_form_ns(f, slot, one),
               orr_form_parts(f, slot, other), *orr_form_ns(f, slot, other),
               *orr_form_rank(f, slot, one) == *orr_form_rank(f, slot, other));
    drop(f, slot, other);
}

void orr_forms_add(OrrForms *f, gsize slot, const double *form, double ns, uint32_t rank) {
    const double never = 1e-4; /* what is rarer adds less than a thousandth of a deviation */
    for (uint32_t i = 0; i < f->count[slot];) {
        double va, vb, both, variance, share;
        variances(f->n_parts, orr_form_parts(f, slot, i), form, rank == *orr_form_rank(f, slot, i),
                  &va, &vb, &both);
        orr_normal_larger(*orr_form_ns(f, slot, i), va, ns, vb, both, &variance, &share);
        if (share > 1 - never)
            return;
        if (share < never)
            drop(f, slot, i);
        else
            i++;
    }
    if (f->count[slot] == f->max)
        merge_two(f, slot);
    uint32_t at = f->count[slot]++;
    memcpy(orr_form_parts(f, slot, at), form, f->n_parts * sizeof *form);
    *orr_form_ns(f, slot, at) = ns;
    *orr_form_rank(f, slot, at) = rank;
}

void orr_forms_add_all(OrrForms *f, gsize slot, const OrrForms *from, gsize of, double base_ns) {
    for (uint32_t i = 0; i < from->count[of]; i++)
        orr_forms_add(f, slot, orr_form_parts(from, of, i), base_ns + *orr_form_ns(from, of, i),
                      *orr_form_rank(from, of, i));
}

/* The lower ones go first: Clark's approximation is best for what is alike. */
double orr_forms_largest(const OrrForms *f, gsize slot, double *form) {
    uint32_t order[ORR_MAX_FORMS], n = f->count[slot];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && *orr_form_ns(f, slot, order[at - 1]) > *orr_form_ns(f, slot, i); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    memcpy(form, orr_form_parts(f, slot, order[0]), f->n_parts * sizeof *form);
    double ns = *orr_form_ns(f, slot, order[0]);
    for (uint32_t i = 1; i < n; i++)
        ns = larger(f->n_parts, form, ns, orr_form_parts(f, slot, order[i]),
                    *orr_form_ns(f, slot, order[i]),
                    *orr_form_rank(f, slot, order[0]) == *orr_form_rank(f, slot, order[i]));
    return ns;
}
