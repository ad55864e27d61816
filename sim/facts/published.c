/* Owners of published facts. */
#include "sim/facts/published.h"

static void clear_run(void *data) {
    OrrPublishedRun *r = data;
    g_free(r->id);
    g_free(r->source);
    g_free(r->gpu);
    g_free(r->interconnect);
    g_free(r->model);
    g_free(r->framework);
    g_free(r->schedule);
    g_free(r->recompute);
    g_free(r->precision);
    g_free(r->zero);
    g_free(r->note);
    g_free(r->after_pp_fix);
    g_free(r->flaw);
}

static void clear_call(void *data) {
    OrrPublishedCall *c = data;
    g_free(c->id);
    g_free(c->system);
    g_free(c->gpu);
    g_free(c->interconnect);
    g_free(c->what);
}

static void clear_kernel(void *data) {
    OrrPublishedKernel *k = data;
    g_free(k->id);
    g_free(k->gpu);
    g_free(k->flaw);
}

OrrPublished *orr_published_new(void) {
    OrrPublished *p = g_new0(OrrPublished, 1);
    p->files = g_new0(char *, 1);
    p->hashes = g_new0(char *, 1);
    p->runs = g_array_new(FALSE, TRUE, sizeof(OrrPublishedRun));
    p->calls = g_array_new(FALSE, TRUE, sizeof(OrrPublishedCall));
    p->kernels = g_array_new(FALSE, TRUE, sizeof(OrrPublishedKernel));
    g_array_set_clear_func(p->runs, clear_run);
    g_array_set_clear_func(p->calls, clear_call);
    g_array_set_clear_func(p->kernels, clear_kernel);
    p->others = g_ptr_array_new_with_free_func(g_free);
    return p;
}

void orr_published_free(OrrPublished *p) {
    if (!p)
        return;
    g_strfreev(p->files);
    g_strfreev(p->hashes);
    g_array_unref(p->runs);
    g_array_unref(p->calls);
    g_array_unref(p->kernels);
    g_ptr_array_unref(p->others);
    g_free(p);
}
