/* Pipelines: the calls of each stage in the order of the schedule, with what moves between stages.
 *
 * Overlapped (profile `p2p_overlap`): sends and receives of activations and of gradients have a
 * stream each; the receive for a pass is posted before the pass ahead of it. Blocking: between two
 * passes one batch sends what was made and receives what comes next, and compute waits for it
 * (Megatron-LM's batched isend/irecv); interleaved schedules pair a forward with a backward before
 * each batch, as Megatron's steady state does. */
#include "sim/lower/lower_priv.h"

#include <string.h>

/* A message that a slot needs or makes. */
typedef struct {
    bool exists;
    uint32_t peer, comm;
} Message;

typedef struct {
    OrrLower *w;
    uint32_t stage, first, n_slots;
    uint32_t *call;         /* call of slot i */
    uint32_t *receive;      /* call that receives the input of slot i, or ORR_NONE */
    const OrrPiece **piece; /* of slot i */
} Role;

static const OrrSlot *slot_at(const Role *role, uint32_t i) {
    return &role->w->in->order->slots[role->first + i];
}

static uint32_t virtual_of(const Role *role, const OrrSlot *slot) {
    const OrrOrder *o = role->w->in->order;
    return o->virtual_stage[role->stage * o->shape.n_chunks + slot->chunk];
}

static Message input_of(const Role *role, const OrrSlot *slot) {
    const OrrLower *w = role->w;
    uint32_t v = virtual_of(role, slot);
    Message m = {false, 0, 0};
    if (slot->pass == ORR_F && v > 0)
        m = (Message){true, w->stage_of[v - 1], ORR_COMM_ID_FORWARD};
    if ((slot->pass == ORR_B || slot->pass == ORR_I) && v + 1 < w->n_virtual)
        m = (Message){true, w->stage_of[v + 1], ORR_COMM_ID_BACKWARD};
    m.exists = m.exists && m.peer != role->stage;
    return m;
}

static Message output_of(const Role *role, const OrrSlot *slot) {
    const OrrLower *w = role->w;
    uint32_t v = virtual_of(role, slot);
    Message m = {false, 0, 0};
    if (slot->pass == ORR_F && v + 1 < w->n_virtual)
        m = (Message){true, w->stage_of[v + 1], ORR_COMM_ID_FORWARD};
    if ((slot->pass == ORR_B || slot->pass == ORR_I) && v > 0)
        m = (Message){true, w->stage_of[v - 1], ORR_COMM_ID_BACKWARD};
    m.exists = m.exists && m.peer != role->stage;
    return m;
}

static OrrP2pPart part_of(const Role *role, Message m, bool is_send) {
    return (OrrP2pPart){.is_send = is_send,
                        .group = ORR_GROUP_PP,
                        .comm = m.comm,
                        .purpose = ORR_COMM_PP,
                        .peer = m.peer,
                        .bytes = role->w->boundary_bytes};
}

static bool host_waits(const OrrFramework *f, const OrrP2pPart *parts, uint32_t n) {
    bool has_receive = false;
    for (uint32_t i = 0; i < n; i++)
        has_receive |= !parts[i].is_send;
    return !f->p2p_overlap && (f->host_sync_p2p == ORR_SYNC_P2P_ALL ||
                               (f->host_sync_p2p == ORR_SYNC_P2P_RECEIVES && has_receive));
}

/* A call that is one batch of sends and receives. */
static uint32_t p2p_call(Role *role, OrrStream stream, const OrrP2pPart *parts, uint32_t n,
                         const char *label, const OrrSlot *slot) {
    OrrBuilder *b = role->w->b;
    orr_builder_segment_begin(b, label);
    uint32_t op = orr_builder_p2p(b, stream, label, !role->w->fw->p2p_batched, parts, n);
    if (host_waits(role->w->fw, parts, n)) {
        orr_builder_host(b, 0);
        orr_builder_wait(b, op);
    }
    uint32_t segment = orr_builder_segment_end(b);
    return orr_builder_call(b, segment, slot->pass, slot->chunk, slot->micro_batch);
}

/* Sends wait for the last operation of the pass on the streams that write its output. */
static void wait_for_output(Role *role, uint32_t call, uint32_t i) {
    static const OrrStream streams[] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};
    for (int k = 0; k < 2; k++)
        if (role->piece[i]->last[streams[k]] != ORR_NONE)
            orr_builder_call_wait(role->w->b, call, ORR_FIRST_OP, role->call[i],
                                  role->piece[i]->last[streams[k]], 0);
}

/* A collective is launched behind all that the compute stream has been given so far (PyTorch's
 * collectives wait for the current stream): where a pass begins with one, behind the pass before.
 */
static void wait_for_compute_before(Role *role, uint32_t i) {
    const OrrPiece *piece = role->piece[i];
    uint32_t tp = piece->first[ORR_STREAM_TP], compute = piece->first[ORR_STREAM_COMPUTE];
    uint32_t call = role->call[i];
    if (tp == ORR_NONE || tp > compute)
        return;
    while (i-- > 0)
        if (role->piece[i]->last[ORR_STREAM_COMPUTE] != ORR_NONE) {
            orr_builder_call_wait(role->w->b, call, tp, role->call[i],
                                  role->piece[i]->last[ORR_STREAM_COMPUTE], 0);
            return;
        }
}

/* The pass itself; its first operations wait for the input, or for its scattered parts' gather. */
static void compute_call(Role *role, uint32_t i) {
    OrrLower *w = role->w;
    const OrrSlot *slot = slot_at(role, i);
    uint32_t v = virtual_of(role, slot);
    uint32_t source = role->receive[i], source_op = 0;
    role->piece[i] =
        orr_lower__piece(w, v, slot->pass, orr_lower__variant(w, role->stage, role->first + i));
    if (source != ORR_NONE && w->fw->scatter_gather && w->layout->tp > 1 &&
        !w->layout->sequence_parallel) {
        OrrColl coll = {.kind = ORR_ALL_GATHER,
                        .group = ORR_GROUP_TP,
                        .purpose = ORR_COMM_PP,
                        .dtype = w->precision->compute,
                        .bytes = w->boundary_bytes * w->layout->tp,
                        .label = "gather received"};
        orr_builder_segment_begin(w->b, "gather received");
        uint32_t gather = orr_emit_coll(&w->emit, w->b, ORR_STREAM_TP, &coll);
        uint32_t segment = orr_builder_segment_end(w->b);
        uint32_t call = orr_builder_call(w->b, segment, slot->pass, slot->chunk, slot->micro_batch);
        orr_builder_call_wait(w->b, call, gather, source, 0, 0);
        source = call, source_op = gather;
    }
    role->call[i] =
        orr_builder_call(w->b, role->piece[i]->segment, slot->pass, slot->chunk, slot->micro_batch);
    wait_for_compute_before(role, i);
    static const OrrStream streams[] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};
    for (int k = 0; k < 2 && source != ORR_NONE; k++)
        if (role->piece[i]->first[streams[k]] != ORR_NONE)
            orr_builder_call_wait(w->b, role->call[i], role->piece[i]->first[streams[k]], source,
                                  source_op, 0);
}

static void post_receive(Role *role, uint32_t i) {
    if (i >= role->n_slots)
        return;
    Message m = input_of(role, slot_at(role, i));
    if (!m.exists)
        return;
    bool is_back = m.comm == ORR_COMM_ID_BACKWARD;
    OrrP2pPart part = part_of(role, m, false);
    role->receive[i] = p2p_call(role, is_back ? ORR_STREAM_PP_RECV_BACK : ORR_STREAM_PP_RECV, &part,
                                1, is_back ? "recv backward" : "recv forward", slot_at(role, i));
}

static void overlapped(Role *role) {
    post_receive(role, 0);
    for (uint32_t i = 0; i < role->n_slots; i++) {
        post_receive(role, i + 1);
        compute_call(role, i);
        Message m = output_of(role, slot_at(role, i));
        if (!m.exists)
            continue;
        bool is_back = m.comm == ORR_COMM_ID_BACKWARD;
        OrrP2pPart part = part_of(role, m, true);
        uint32_t call =
            p2p_call(role, is_back ? ORR_STREAM_PP_SEND_BACK : ORR_STREAM_PP_SEND, &part, 1,
                     is_back ? "send backward" : "send forward", slot_at(role, i));
        wait_for_output(role, call, i);
    }
}

/* Passes before the next batch: in the steady state of interleaved schedules a forward and the
 * backward behind it. */
static uint32_t run_length(const Role *role, uint32_t i) {
    return i + 1 < role->n_slots && slot_at(role, i + 1)->shares_batch ? 2 : 1;
}

#define MAX_BATCH 4

static void batch(Role *role, uint32_t done, uint32_t n_done, uint32_t next, uint32_t n_next) {
    OrrP2pPart parts[MAX_BATCH];
    uint32_t n = 0;
    for (uint32_t i = done; i < done + n_done; i++) {
        Message m = output_of(role, slot_at(role, i));
        if (m.exists)
            parts[n++] = part_of(role, m, true);
    }
    uint32_t n_sends = n;
    for (uint32_t i = next; i < next + n_next; i++) {
        Message m = input_of(role, slot_at(role, i));
        if (m.exists)
            parts[n++] = part_of(role, m, false);
    }
    if (n == 0)
        return;
    uint32_t at = n_done > 0 ? done : next;
    const char *label = n_sends == 0 ? "recv" : n_sends == n ? "send" : "send recv";
    uint32_t call = p2p_call(role, ORR_STREAM_PP_SEND, parts, n, label, slot_at(role, at));
    if (n_done > 0)
        wait_for_output(role, call, done + n_done - 1);
    for (uint32_t i = next; i < next + n_next; i++)
        role->receive[i] = call; /* also without an input of its own: compute waits for the batch */
}

static void blocking(Role *role) {
    uint32_t i = 0, length = run_length(role, 0);
    batch(role, 0, 0, 0, length);
    while (i < role->n_slots) {
        for (uint32_t k = 0; k < length; k++)
            compute_call(role, i + k);
        uint32_t next = i + length;
        uint32_t n_next = next < role->n_slots ? run_length(role, next) : 0;
        batch(role, i, length, next, n_next);
        i = next;
        length = n_next;
    }
}

/* The first forward of each chunk waits, unit by unit, for the gather behind the update of the step
 * before; later ones are behind it on the stream. */
static void wait_for_gathers(Role *role, uint32_t end_call, const OrrPiece *end) {
    OrrLower *w = role->w;
    uint32_t first = end->first[ORR_STREAM_DP_PARAMETER];
    if (first == ORR_NONE)
        return;
    for (uint32_t i = 0; i < role->n_slots; i++) {
        const OrrSlot *slot = slot_at(role, i);
        const OrrPiece *piece = role->piece[i];
        if (slot->pass != ORR_F)
            continue;
        if (!orr_lower__gathers_behind(w)) {
            if (piece->first[ORR_STREAM_COMPUTE] != ORR_NONE)
                orr_builder_call_wait(w->b, role->call[i], piece->first[ORR_STREAM_COMPUTE],
                                      end_call, end->last[ORR_STREAM_DP_PARAMETER], 1);
            return;
        }
        if (!(orr_lower__variant(w, role->stage, role->first + i) & ORR_GRAD_FIRST))
            continue;
        uint32_t before = ORR_NONE;
        for (uint32_t u = 0; u < piece->n_units; u++) {
            uint32_t gather = orr_lower__gather_of_unit(w, role->stage, slot->chunk, u);
            if (piece->unit_op[u] == ORR_NONE || gather == before)
                continue;
            orr_builder_call_wait(w->b, role->call[i], piece->unit_op[u], end_call, first + gather,
                                  1);
            before = gather;
        }
    }
}

/* The step's end waits for the last operation of every stream before it. */
static void close_step(Role *role) {
    OrrLower *w = role->w;
    OrrPiece end = {0};
    orr_lower__step_end(w, role->stage, &end);
    uint32_t call = orr_builder_call(w->b, end.segment, ORR_N_PASSES, 0, 0);
    uint32_t last = role->n_slots - 1;
    static const OrrStream streams[] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP, ORR_STREAM_DP};
    for (int k = 0; k < 3; k++) {
        uint32_t i = role->n_slots;
        while (i-- > 0 && role->piece[i]->last[streams[k]] == ORR_NONE)
            continue;
        if (i > last)
            continue;
        for (int s = 0; s < ORR_N_STREAMS; s++)
            if (s != ORR_STREAM_HOST && end.first[s] != ORR_NONE && s != (int)streams[k])
                orr_builder_call_wait(w->b, call, end.first[s], role->call[i],
                                      role->piece[i]->last[streams[k]], 0);
    }
    wait_for_gathers(role, call, &end);
}

static void build_role(OrrLower *w, uint32_t stage) {
    const OrrOrder *o = w->in->order;
    Role role = {.w = w,
                 .stage = stage,
                 .first = o->first[stage],
                 .n_slots = o->first[stage + 1] - o->first[stage]};
    role.call = g_new0(uint32_t, role.n_slots);
    role.receive = g_new0(uint32_t, role.n_slots);
    role.piece = g_new0(const OrrPiece *, role.n_slots);
    for (uint32_t i = 0; i < role.n_slots; i++)
        role.receive[i] = ORR_NONE;
    /* segments are built before the role is open */
    g_autofree char *label = g_strdup_printf("stage %u", stage);
    OrrPiece begin = {0};
    orr_lower__step_begin(w, &begin);
    orr_builder_role_begin(w->b, label, stage);
    uint64_t n_params = 0;
    uint32_t n_matrices = 0;
    for (uint32_t c = 0; c < o->shape.n_chunks; c++) {
        uint32_t v = o->virtual_stage[stage * o->shape.n_chunks + c];
        n_params += orr_lower__params(w, v);
        n_matrices += w->parts[v].n_layers * w->local.layer_matrices + w->parts[v].has_embedding +
                      w->parts[v].has_head;
    }
    int64_t by_kind[ORR_N_MEM_KINDS] = {0};
    orr_state_bytes(&w->emit, n_params, by_kind);
    by_kind[ORR_MEM_ACTIVATIONS] += orr_emit_buffer_bytes(&w->emit);
    for (int k = 0; k < ORR_N_MEM_KINDS; k++)
        orr_builder_role_static(w->b, k, by_kind[k]);
    orr_builder_role_late(w->b, orr_moment_bytes(&w->emit, n_params), 2 * n_matrices);
    orr_builder_call(w->b, begin.segment, ORR_N_PASSES, 0, 0);
    if (w->fw->p2p_overlap || w->in->is_custom_order || o->shape.n_stages == 1)
        overlapped(&role);
    else
        blocking(&role);
    close_step(&role);
    orr_builder_role_end(w->b);
    g_free(role.call);
    g_free(role.receive);
    g_free(role.piece);
}

void orr_lower__roles(OrrLower *w) {
    for (uint32_t s = 0; s < w->in->order->shape.n_stages; s++)
        build_role(w, s);
}
