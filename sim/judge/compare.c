#include "sim/judge/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static OrrCompare *compare_new(void) {
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

static void add_term(OrrCompare *c, const char *name, int64_t one_ns, int64_t other_ns) {
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

/* Puts what the terms leave of both step times into one more of them, and sorts. */
static void settle(OrrCompare *c, const char *rest) {
    int64_t one_ns = c->one_ns, other_ns = c->other_ns;
    for (uint32_t i = 0; i < c->n_terms; i++) {
        one_ns -= c->terms[i].one_ns;
        other_ns -= c->terms[i].other_ns;
    }
    add_term(c, rest, one_ns, other_ns);
    if (c->n_terms > 1)
        qsort(c->terms, c->n_terms, sizeof *c->terms, by_difference);
}

static void note_text(OrrCompare *c, const char *what, const char *one, const char *other) {
    if (strcmp(one, other) != 0)
        g_ptr_array_add(c->notes, g_strdup_printf("%s: %s, then %s", what, one, other));
}

/* 0: not told. */
static void note_count(OrrCompare *c, const char *what, int64_t one, int64_t other) {
    if (one != other && one > 0 && other > 0)
        g_ptr_array_add(
            c->notes,
            g_strdup_printf("%s: %" G_GINT64_FORMAT ", then %" G_GINT64_FORMAT, what, one, other));
}

OrrCompare *orr_judge_compare_records(const OrrRecord *one, const OrrRecord *other) {
    OrrCompare *c = compare_new();
    const OrrRecordLayout *a = &one->layout, *b = &other->layout;
    c->one_ns = one->step_time_ns;
    c->other_ns = other->step_time_ns;
    for (int o = 0; o < ORR_N_OWNERS; o++)
        add_term(c, orr_owner_name((OrrOwner)o), one->time_account_ns[o],
                 other->time_account_ns[o]);
    settle(c, "rest");
    note_text(c, "model", one->model, other->model);
    note_text(c, "cluster", one->cluster, other->cluster);
    note_text(c, "framework", one->framework, other->framework);
    note_text(c, "schedule", one->schedule, other->schedule);
    note_text(c, "precision", one->precision, other->precision);
    note_text(c, "recompute", one->recompute, other->recompute);
    note_text(c, "calibration", one->calibration, other->calibration);
    note_count(c, "tp", a->tp, b->tp);
    note_count(c, "pp", a->pp, b->pp);
    note_count(c, "vpp", a->vpp, b->vpp);
    note_count(c, "dp", a->dp, b->dp);
    note_count(c, "micro-batch", a->micro_batch, b->micro_batch);
    note_count(c, "global batch", a->global_batch, b->global_batch);
    note_count(c, "sequence length", a->sequence_length, b->sequence_length);
    return c;
}

OrrCompare *orr_judge_compare_log(const OrrRecord *one, const OrrMeasuredRun *log) {
    OrrCompare *c = compare_new();
    const OrrRecordLayout *a = &one->layout;
    c->one_ns = one->step_time_ns;
    c->other_ns = (int64_t)ceil(log->step_time_ns);
    for (int o = 0; o < ORR_N_OWNERS; o++)
        add_term(c, orr_owner_name((OrrOwner)o), one->time_account_ns[o], one->time_account_ns[o]);
    settle(c, "not_told_by_the_log");
    note_count(c, "gpus", one->world_size, log->n_gpus);
    note_count(c, "tp", a->tp, log->tp);
    note_count(c, "pp", a->pp, log->pp);
    note_count(c, "dp", a->dp, log->dp);
    note_count(c, "global batch", a->global_batch, log->global_batch);
    note_count(c, "micro-batch", a->micro_batch, log->micro_batch);
    note_count(c, "sequence length", a->sequence_length, log->sequence_tokens);
    if (isfinite(log->step_p90_ns) && log->step_p90_ns > log->step_p10_ns) {
        char text[32];
        g_ascii_formatd(text, sizeof text, "%.1f",
                        50 * (log->step_p90_ns - log->step_p10_ns) / log->step_time_ns);
        g_ptr_array_add(c->notes,
                        g_strdup_printf("the logged steps themselves vary by +-%s %%", text));
    }
    if (isfinite(log->memory_bytes) && log->memory_bytes > 0)
        g_ptr_array_add(c->notes, g_strdup_printf("the log tells memory too: %.0f MiB",
                                                  log->memory_bytes / 0x1p20));
    return c;
}

static bool is_exposed(int owner) {
    return owner >= (int)ORR_OWN_EXPOSED_FIRST && owner <= (int)ORR_OWN_EXPOSED_LAST;
}

OrrCompare *orr_judge_compare_profile(const OrrRecord *one, const OrrMeasuredProfile *profile) {
    OrrCompare *c = compare_new();
    double steps = MAX(profile->n_steps, 1);
    int64_t exposed = 0, idle = 0;
    c->one_ns = one->step_time_ns;
    c->other_ns = (int64_t)ceil(profile->window_ns / steps);
    for (int k = 0; k < ORR_N_KERNEL_KINDS; k++)
        add_term(c, orr_kernel_kind_name((OrrKernelKind)k), one->time_account_ns[k],
                 (int64_t)(profile->kind_ns[k] / steps));
    add_term(c, "kernels_not_known_by_name", 0,
             (int64_t)(profile->kind_ns[ORR_N_KERNEL_KINDS] / steps));
    add_term(c, "copies", 0, (int64_t)(profile->copy_ns / steps));
    for (int o = ORR_N_KERNEL_KINDS; o < ORR_N_OWNERS; o++)
        *(is_exposed(o) ? &exposed : &idle) +=
            o == ORR_OWN_INTERFERENCE ? 0 : one->time_account_ns[o];
    add_term(c, "interference", one->time_account_ns[ORR_OWN_INTERFERENCE], 0);
    add_term(c, "exposed_communication", exposed, (int64_t)(profile->exposed_ns / steps));
    add_term(c, "idle", idle, (int64_t)(profile->idle_ns / steps));
    settle(c, "streams_side_by_side");
    note_count(c, "gpus", one->world_size, profile->world_size);
    g_ptr_array_add(c->notes, g_strdup("in a trace, interference is part of the kernels, and waits "
                                       "for peers are part of exposed communication"));
    if (profile->n_steps == 0)
        g_ptr_array_add(c->notes, g_strdup("the trace marks no steps: its whole window counts as "
                                           "one"));
    return c;
}
