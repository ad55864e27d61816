/* Explains a run that stopped: walks from a stuck stream to what it waits for, inside the rank and
 * over the meeting with another role, until it comes back to where it has been. */
#include "sim/program/check_priv.h"

#include <glib.h>

static const char *where_text(const OrrCheck *c, uint32_t thread, char *buffer, size_t size) {
    const OrrProgram *p = c->program;
    const OrrThread *t = &c->threads[thread];
    const OrrRole *role = &p->roles[thread / ORR_N_STREAMS];
    const OrrCall *call = &p->calls[role->first_call + t->call];
    if (call->pass < ORR_N_PASSES)
        g_snprintf(buffer, size, "call %u (%s chunk %u micro-batch %u)", t->call,
                   orr_pass_name(call->pass), call->chunk, call->micro_batch);
    else
        g_snprintf(buffer, size, "call %u (%s)", t->call, p->segments[call->segment].label);
    return buffer;
}

/* The first part of the thread's operation that is still open. */
static const OrrP2pPart *open_part(OrrCheck *c, uint32_t thread, const OrrOp *op) {
    const OrrP2p *p2p = &c->program->p2ps[op->what];
    for (uint32_t i = p2p->first_part; i < p2p->first_part + p2p->n_parts; i++) {
        const OrrP2pPart *part = &c->program->parts[i];
        if (part->group != ORR_GROUP_PP && part->group != ORR_GROUP_EMBEDDING)
            continue;
        const OrrPairPlace *pair = orr_program__pair(c, thread / ORR_N_STREAMS, part);
        for (uint32_t w = pair->head; w < pair->n_waiters; w++)
            if (pair->waiters[w].thread == thread && pair->waiters[w].part == i)
                return part;
    }
    return NULL;
}

static bool has_partner(OrrCheck *c, uint32_t role, const OrrOp *op, const OrrP2pPart *part,
                        uint32_t own_stage, const OrrColl *coll) {
    if (coll != NULL && op->kind == ORR_OP_COLL) {
        const OrrColl *other = &c->program->colls[op->what];
        return other->group == coll->group && other->comm == coll->comm;
    }
    if (part == NULL || op->kind != ORR_OP_P2P)
        return false;
    const OrrP2p *p2p = &c->program->p2ps[op->what];
    for (uint32_t i = p2p->first_part; i < p2p->first_part + p2p->n_parts; i++) {
        const OrrP2pPart *other = &c->program->parts[i];
        if (other->is_send != part->is_send && other->group == part->group &&
            other->comm == part->comm && orr_program__peer_stage(c, other) == own_stage &&
            c->program->roles[role].stage == orr_program__peer_stage(c, part))
            return true;
    }
    return false;
}

/* The stream of @role that has the partner ahead of it, or ORR_NONE: none ever comes. Walks a copy
 * of the thread; what stands at its present place and has arrived is behind it. */
static uint32_t partner_stream(OrrCheck *c, uint32_t role, const OrrP2pPart *part,
                               uint32_t own_stage, const OrrColl *coll) {
    uint32_t best = ORR_NONE;
    uint64_t best_place = UINT64_MAX;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++) {
        uint32_t thread = role * ORR_N_STREAMS + s;
        OrrThread kept = c->threads[thread];
        if (kept.has_arrived)
            orr_program__thread_next(c, thread);
        for (; !orr_program__thread_at_end(c, thread); orr_program__thread_next(c, thread)) {
            if (c->threads[thread].place >= best_place)
                break;
            if (has_partner(c, role, orr_program__thread_op(c, thread), part, own_stage, coll)) {
                best = s;
                best_place = c->threads[thread].place;
                break;
            }
        }
        c->threads[thread] = kept;
    }
    return best;
}

/* The thread that this one waits for, or ORR_NONE; a meeting is told in @text. */
static uint32_t blocker(OrrCheck *c, uint32_t thread, GString *text) {
    char where[96];
    uint32_t role = thread / ORR_N_STREAMS, stage = c->program->roles[role].stage;
    const OrrThread *t = &c->threads[thread];
    const OrrOp *op = orr_program__thread_op(c, thread);
    if (!t->has_arrived) {
        uint32_t stream = orr_program__waits_for_stream(c, thread);
        if (stream != ORR_NONE)
            return role * ORR_N_STREAMS + stream;
    }
    g_string_append_printf(text, "%sstage %u waits in %s for ", text->len > 0 ? ", " : "", stage,
                           where_text(c, thread, where, sizeof where));
    uint32_t peer = ORR_NONE, stream;
    if (op->kind == ORR_OP_P2P) {
        const OrrP2pPart *part = open_part(c, thread, op);
        g_assert(part != NULL);
        peer = c->role_of_stage[orr_program__peer_stage(c, part)];
        g_string_append_printf(text, "a %s of stage %u", part->is_send ? "receive" : "send",
                               c->program->roles[peer].stage);
        stream = partner_stream(c, peer, part, stage, NULL);
    } else {
        const OrrColl *coll = &c->program->colls[op->what];
        const OrrCollPlace *place = orr_program__coll_place(c, coll);
        if (!t->has_arrived) { /* an earlier call of its own rank holds the communicator */
            g_string_append_printf(text, "its own earlier call on group %s",
                                   orr_group_name(coll->group));
            return place->waiting[role];
        }
        for (peer = 0;
             place->waiting[peer] != ORR_NONE || !orr_program__is_member(c, coll->group, peer);)
            peer++;
        g_string_append_printf(text, "stage %u to join %s \"%s\" of group %s",
                               c->program->roles[peer].stage, orr_collective_name(coll->kind),
                               coll->label, orr_group_name(coll->group));
        stream = partner_stream(c, peer, NULL, stage, coll);
    }
    if (stream == ORR_NONE) {
        g_string_append(text, ", which never comes");
        return ORR_NONE;
    }
    return peer * ORR_N_STREAMS + stream;
}

char *orr_program__hang_text(OrrCheck *c, uint32_t role) {
    const OrrProgram *p = c->program;
    g_autofree uint8_t *is_seen = g_new0(uint8_t, (size_t)p->n_roles * ORR_N_STREAMS);
    uint32_t thread = role * ORR_N_STREAMS;
    while (orr_program__thread_at_end(c, thread))
        thread++;
    g_autoptr(GString) way = g_string_new(NULL); /* up to the cycle, or to the end */
    while (thread != ORR_NONE && !is_seen[thread]) {
        is_seen[thread] = 1;
        thread = blocker(c, thread, way);
    }
    if (thread == ORR_NONE)
        return g_strdup_printf("the program hangs: %s", way->str);
    g_autoptr(GString) cycle = g_string_new(NULL);
    uint32_t start = thread;
    do {
        thread = blocker(c, thread, cycle);
    } while (thread != start);
    return g_strdup_printf("the program hangs: %s, and so on round", cycle->str);
}
