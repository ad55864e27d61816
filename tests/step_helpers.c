#include "tests/near.h"

#include "tests/step_helpers.h"

#include "sim/report/formats.h"

#include <glib.h>
#include <string.h>

static void split(Step *s, const char *sets) {
    s->texts = g_strsplit(sets, ";", -1);
    s->overrides = g_new0(OrrOverride, g_strv_length(s->texts) + 1);
    uint32_t n = 0;
    for (char **t = s->texts; *t; t++) {
        g_strstrip(*t);
        if (!**t)
            continue;
        char *dot = strchr(*t, '.'), *equal = strchr(*t, '=');
        assert_non_null(dot);
        assert_non_null(equal);
        *dot = *equal = '\0';
        s->overrides[n++] = (OrrOverride){*t, dot + 1, equal + 1};
    }
    s->request.overrides = s->overrides;
    s->request.n_overrides = n;
}

Step *step_try(const char *job, const char *sets, unsigned flags, GError **error) {
    Step *s = g_new0(Step, 1);
    split(s, sets);
    s->request.job = job;
    s->request.is_unfolded = (flags & STEP_UNFOLDED) != 0;
    s->request.self_check = (flags & STEP_CHECKED) != 0;
    s->run = orr_step_prepare(&s->request, error);
    if (!s->run || !orr_step_execute(s->run, NULL, NULL, 0, error)) {
        step_free(s);
        return NULL;
    }
    s->record = orr_step_record(s->run);
    g_autofree char *flaw = orr_record_flaw(s->record);
    if (flaw)
        fail_msg("%s with %s: %s", job, sets, flaw);
    return s;
}

Step *step_new(const char *job, const char *sets, unsigned flags) {
    g_autoptr(GError) error = NULL;
    Step *s = step_try(job, sets, flags, &error);
    if (!s)
        fail_msg("%s with %s: %s", job, sets, error->message);
    return s;
}

void step_free(Step *s) {
    if (!s)
        return;
    orr_step_free(s->run);
    g_free(s->overrides);
    g_strfreev(s->texts);
    g_free(s);
}

char *step_json(const Step *s) {
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    orr_report_format_find("json")->write(s->record, out);
    orr_out_commit(out, NULL);
    return g_string_free(text, FALSE);
}

OrrRecordComm step_comm(const Step *s, OrrCommKind kind, OrrCollective collective) {
    OrrRecordComm sum = {.kind = kind, .collective = collective};
    for (uint32_t i = 0; i < s->record->n_comms; i++) {
        const OrrRecordComm *c = &s->record->comms[i];
        if (c->kind != kind || c->collective != collective)
            continue;
        sum.group_size = c->group_size;
        sum.count += c->count;
        sum.bytes += c->bytes;
        sum.transfer_ns += c->transfer_ns;
        sum.wait_ns += c->wait_ns;
        sum.exposed_ns += c->exposed_ns;
    }
    return sum;
}
