#include "sim/report/json_head.h"

void orr_report__json_begin(const OrrRecord *r, const char *schema, OrrJsonWriter *w) {
    orr_json_put_string(w, "schema", schema);
    orr_json_put_string(w, "version", r->version);
    orr_json_put_int(w, "seed", (int64_t)r->seed);
}

void orr_report__json_inputs(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "inputs");
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "name", r->inputs[i].name);
        orr_json_put_string(w, "sha256", r->inputs[i].sha256);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

void orr_report__json_overrides(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "overrides");
    for (uint32_t i = 0; i < r->n_overrides; i++)
        orr_json_put_string(w, NULL, r->overrides[i]);
    orr_json_end_array(w);
}

void orr_report__json_assumptions(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "assumptions");
    for (uint32_t i = 0; i < r->n_assumptions; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "key", r->assumptions[i].key);
        orr_json_put_string(w, "value", r->assumptions[i].value);
        orr_json_put_string(w, "origin", r->assumptions[i].origin);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

void orr_report__json_warnings(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "warnings");
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "code", r->warnings[i].code);
        orr_json_put_string(w, "text", r->warnings[i].text);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

void orr_report__json_figures(const OrrRunFigure *figures, uint32_t n, OrrJsonWriter *w) {
    orr_json_begin_object(w, "percentiles");
    for (uint32_t i = 0; i < n; i++) {
        const OrrRunFigure *f = &figures[i];
        orr_json_begin_object_inline(w, f->name);
        orr_json_put_double(w, "mean", f->mean);
        orr_json_put_double(w, "ci95", f->ci95);
        orr_json_put_double(w, "p5", f->p5);
        orr_json_put_double(w, "p50", f->p50);
        orr_json_put_double(w, "p95", f->p95);
        orr_json_end_object(w);
    }
    orr_json_end_object(w);
}
