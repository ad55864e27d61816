#include "tests/exec_helpers.h"

#include <glib.h>
#include <string.h>

static uint32_t kernel_segment(OrrBuilder *b, OrrPass pass) {
    OrrKernel k = {.kind = ORR_K_GEMM, .m = pass + 1, .n = 1, .k = 1, .batch = 1, .launches = 1};
    g_strlcpy(k.label, orr_pass_name(pass), sizeof k.label);
    orr_builder_segment_begin(b, k.label);
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    return orr_builder_segment_end(b);
}

static uint32_t message(OrrBuilder *b, bool is_send, bool is_back, uint32_t peer) {
    static const OrrStream streams[2][2] = {{ORR_STREAM_PP_RECV, ORR_STREAM_PP_RECV_BACK},
                                            {ORR_STREAM_PP_SEND, ORR_STREAM_PP_SEND_BACK}};
    OrrP2pPart part = {.is_send = is_send,
                       .group = ORR_GROUP_PP,
                       .comm = is_back,
                       .purpose = ORR_COMM_PP,
                       .peer = peer,
                       .bytes = 1000};
    orr_builder_segment_begin(b, "message");
    orr_builder_p2p(b, streams[is_send][is_back], "message", false, &part, 1);
    return orr_builder_segment_end(b);
}

static uint32_t step_end(OrrBuilder *b, bool has_barrier) {
    OrrKernel k = {.kind = ORR_K_OPTIMIZER, .m = 99, .batch = 1, .launches = 1, .label = "end"};
    orr_builder_segment_begin(b, "end");
    uint32_t op = ORR_NONE;
    if (has_barrier) {
        OrrKernel before = {.kind = ORR_K_GRADIENT, .m = 98, .batch = 1, .launches = 1};
        OrrColl c = {.kind = ORR_ALL_REDUCE,
                     .group = ORR_GROUP_MODEL,
                     .bytes = 4,
                     .purpose = ORR_COMM_STEP_END};
        uint32_t norm = orr_builder_kernel(b, ORR_STREAM_COMPUTE, &before);
        op = orr_builder_coll(b, ORR_STREAM_COPY, &c);
        orr_builder_wait(b, norm);
    }
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    orr_builder_wait(b, op);
    orr_builder_step_end(b);
    return orr_builder_segment_end(b);
}

typedef struct {
    bool exists, is_back;
    uint32_t peer;
} Edge;

static Edge edge(const OrrOrder *o, uint32_t s, const OrrSlot *slot, bool is_output) {
    uint32_t n = o->shape.n_stages * o->shape.n_chunks;
    uint32_t v = o->virtual_stage[s * o->shape.n_chunks + slot->chunk];
    bool is_back = slot->pass != ORR_F, up = is_back != is_output;
    if (slot->pass == ORR_W || (up ? v + 1 >= n : v == 0))
        return (Edge){false, false, 0};
    uint32_t u = up ? v + 1 : v - 1;
    for (uint32_t i = 0; i < n; i++)
        if (o->virtual_stage[i] == u)
            return (Edge){i / o->shape.n_chunks != s, is_back, i / o->shape.n_chunks};
    return (Edge){false, false, 0};
}

OrrProgram *exec_program(const OrrOrder *o, const ExecTimes *times) {
    OrrBuilder *b = orr_builder_new();
    uint32_t pass[ORR_N_PASSES];
    for (int p = 0; p < ORR_N_PASSES; p++)
        pass[p] = kernel_segment(b, p);
    uint32_t end = step_end(b, times->has_barrier);
    uint32_t P = o->shape.n_stages;
    uint32_t *msg = g_new(uint32_t, 4 * P);
    for (uint32_t i = 0; i < 4 * P; i++)
        msg[i] = message(b, i / 2 % 2, i % 2, i / 4);
    for (uint32_t s = 0; s < P; s++) {
        orr_builder_role_begin(b, "stage", s);
        uint32_t n = o->first[s + 1] - o->first[s];
        uint32_t *receive = g_new(uint32_t, n + 1);
        for (uint32_t i = 0; i <= n; i++)
            receive[i] = ORR_NONE;
        for (uint32_t i = 0; i < n; i++) {
            const OrrSlot *slots = o->slots + o->first[s];
            for (uint32_t j = i ? i + 1 : 0; j <= i + 1 && j < n; j++) {
                Edge in = edge(o, s, &slots[j], false);
                if (in.exists)
                    receive[j] = orr_builder_call(b, msg[4 * in.peer + in.is_back], slots[j].pass,
                                                  0, slots[j].micro_batch);
            }
            uint32_t call = orr_builder_call(b, pass[slots[i].pass], slots[i].pass, slots[i].chunk,
                                             slots[i].micro_batch);
            if (receive[i] != ORR_NONE)
                orr_builder_call_wait(b, call, 0, receive[i], 0, 0);
            Edge out = edge(o, s, &slots[i], true);
            if (!out.exists)
                continue;
            uint32_t send = orr_builder_call(b, msg[4 * out.peer + 2 + out.is_back], slots[i].pass,
                                             0, slots[i].micro_batch);
            orr_builder_call_wait(b, send, 0, call, 0, 0);
        }
        orr_builder_call(b, end, ORR_N_PASSES, 0, 0);
        orr_builder_role_end(b);
        g_free(receive);
    }
    g_free(msg);
    return orr_builder_finish(b);
}

static void one_group(OrrBoundGroup *g, uint32_t n) {
    g->n_groups = 1;
    g->size = n;
    g->group_of = g_new0(uint32_t, n);
    g->position_of = g_new(uint32_t, n);
    g->first_member = g_new0(uint32_t, 2);
    g->first_member[1] = n;
    g->members = g_new(uint32_t, n);
    g->class_of = g_new0(uint32_t, 1);
    g->n_classes = 1;
    for (uint32_t i = 0; i < n; i++)
        g->members[i] = g->position_of[i] = i;
}

OrrBound *exec_bound(const OrrProgram *p, const ExecTimes *times) {
    OrrBound *b = g_new0(OrrBound, 1);
    uint32_t n = p->n_roles;
    b->program = p;
    b->n_ranks = b->n_real_ranks = n;
    b->n_hw = 1;
    b->weight = g_new(uint32_t, n);
    b->role = g_new(uint16_t, n);
    b->hw = g_new0(uint32_t, n);
    for (uint32_t r = 0; r < n; r++) {
        b->weight[r] = 1;
        b->role[r] = r;
    }
    b->kernel_ns = g_new(int64_t, p->n_kernels + 1);
    for (uint32_t i = 0; i < p->n_kernels; i++)
        b->kernel_ns[i] =
            p->kernels[i].m > ORR_N_PASSES ? 1 : MAX(times->pass_ns[p->kernels[i].m - 1], 1);
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < ORR_N_COMM_KINDS; k++)
            b->rate[c][k] = ORR_RATE_ONE;
    OrrBoundGroup *g = &b->groups[ORR_GROUP_PP];
    one_group(g, n);
    g->n_pairs = n * n;
    g->pair_index = g_new(uint32_t, n * n);
    g->pair_rank = g_new(uint32_t, 2 * n * n);
    g->pair_class = g_new0(uint32_t, n * n);
    for (uint32_t i = 0; i < n * n; i++) {
        g->pair_index[i] = i;
        g->pair_rank[2 * i] = i / n;
        g->pair_rank[2 * i + 1] = i % n;
    }
    g->n_pair_classes = 1;
    g->pair_plans = g_new0(OrrPlan, p->n_parts + 1);
    for (uint32_t i = 0; i < p->n_parts; i++)
        g->pair_plans[i] = (OrrPlan){.latency_ns = times->send_ns, .cap_bytes_per_s = 1};
    g = &b->groups[ORR_GROUP_MODEL];
    one_group(g, n);
    g->plans = g_new0(OrrPlan, p->n_colls + 1);
    for (uint32_t i = 0; i < p->n_colls; i++)
        g->plans[i] = (OrrPlan){.latency_ns = 1, .cap_bytes_per_s = 1};
    return b;
}
