/* Sets of normal variables whose variances are kept in parts, by what they are common to (first
 * order canonical forms; Visweswariah et al., DAC 2004). A set stands for the largest of them.
 *
 * Of two forms a part is common as far as both have it; the last part is private to one rank, and
 * common only to forms of that rank. */
#ifndef ORR_EXEC_FORMS_H
#define ORR_EXEC_FORMS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define ORR_MAX_FORMS 24u /* of a set */

typedef struct {
    double *parts;  /* [n_slots * max * n_parts] variances */
    double *ns;     /* [n_slots * max] means */
    uint32_t *rank; /* [n_slots * max] whose private part a form has */
    uint8_t *count; /* [n_slots] forms of a set */
    uint32_t max, n_parts;
} OrrForms;

/* @n_slots empty sets of at most @max forms. */
OrrForms orr_forms_new(gsize n_slots, uint32_t max, uint32_t n_parts);
void orr_forms_clear(OrrForms *f);

/* Adds a form to set @slot, unless it is never the larger one; drops those that never are then.
 * Where there are too many, the two that are most alike become one. */
void orr_forms_add(OrrForms *f, gsize slot, const double *form, double ns, uint32_t rank);
/* Adds set @of of @from, its means from @base_ns on. */
void orr_forms_add_all(OrrForms *f, gsize slot, const OrrForms *from, gsize of, double base_ns);
/* Mean of the largest of a set that is not empty; its form in @form [n_parts]. */
double orr_forms_largest(const OrrForms *f, gsize slot, double *form);

static inline double *orr_form_parts(const OrrForms *f, gsize slot, uint32_t i) {
    return f->parts + (slot * f->max + i) * f->n_parts;
}

static inline double *orr_form_ns(const OrrForms *f, gsize slot, uint32_t i) {
    return f->ns + slot * f->max + i;
}

static inline uint32_t *orr_form_rank(const OrrForms *f, gsize slot, uint32_t i) {
    return f->rank + slot * f->max + i;
}

#endif
