/* A small sound record for tests of report, plots and cli: 4 stages, made-up round numbers. */
#ifndef TESTS_RECORD_FIXTURE_H
#define TESTS_RECORD_FIXTURE_H

#include "sim/result/record.h"

static inline void fixture_stages(OrrRecord *r) {
    orr_record_alloc_stages(r, 4);
    for (uint32_t s = 0; s < 4; s++) {
        OrrRecordStage *g = &r->stages[s];
        g->layers = 8, g->has_embedding = s == 0, g->has_head = s == 3;
        g->busy_ns = 700000000 + s * 10000000;
        g->mem_bytes[ORR_MEM_WEIGHTS] = INT64_C(20000000000);
        g->mem_bytes[ORR_MEM_ACTIVATIONS] = INT64_C(40000000000) - s * INT64_C(8000000000);
        g->mem_bytes[ORR_MEM_OPTIMIZER] = INT64_C(10000000000);
        for (int m = 0; m < ORR_N_MEM_KINDS; m++)
            g->peak_bytes += g->mem_bytes[m];
        g->verdict = orr_verdict(g->peak_bytes, r->capacity_bytes);
        g->account_ns[ORR_K_GEMM] = g->busy_ns;
        g->account_ns[ORR_OWN_BUBBLE] = r->step_time_ns - g->busy_ns;
    }
}

static inline void fixture_times(OrrRecord *r) {
    r->step_time_ns = 1000000001;
    r->first_step_ns = 1100000000;
    r->is_periodic = true, r->simulated_steps = 3;
    r->tokens_per_step = 64 * 2048;
    r->tokens_per_s = (double)r->tokens_per_step / ((double)r->step_time_ns * 1e-9);
    r->tokens_per_s_per_gpu = r->tokens_per_s / r->world_size;
    orr_record_set(&r->flops_formula, "megatron");
    r->model_flops_per_step = 300e12 * 1.000000001 * 64;
    r->hardware_flops_per_step = 400e12 * 1.000000001 * 64;
    r->tflops_per_gpu = 300;
    orr_record_add_mfu(r, "megatron", 989.4e12, 300, 300 / 989.4, 400 / 989.4);
    orr_record_add_mfu(r, "6n", 989.4e12, 280, 280 / 989.4, 380 / 989.4);
    r->bubble_of_step_frac = 0.15, r->bubble_over_ideal_frac = 0.1765;
    r->communication_share_frac = 0.12;
    r->time_account_ns[ORR_K_GEMM] = 500000000;
    r->time_account_ns[ORR_K_ATTENTION] = 150000000;
    r->time_account_ns[ORR_OWN_INTERFERENCE] = 20000000;
    r->time_account_ns[ORR_OWN_BUBBLE] = 150000000;
    r->time_account_ns[ORR_OWN_EXPOSED_FIRST + ORR_COMM_TP] = 120000000;
    r->time_account_ns[ORR_OWN_STRAGGLER] = 10000000;
    orr_record_settle(r->time_account_ns, ORR_N_OWNERS, r->step_time_ns);
    r->critical_path_ns[ORR_K_GEMM] = 700000000;
    r->critical_path_ns[ORR_PATH_TRANSFER_FIRST + ORR_COMM_TP] = 200000000;
    r->critical_path_ns[ORR_PATH_LATENCY_FIRST + ORR_COMM_PP] = 50000000;
    r->critical_path_ns[ORR_PATH_HOST] = 50000001;
    r->sensitivity_factor = 1.1;
    orr_record_add_sensitivity(r, "tensor cores, vector units", "gpu.peak_*", 930000001);
    orr_record_add_sensitivity(r, "host speed", "node.host_speed", 1000000002);
}

static inline void fixture_comms(OrrRecord *r) {
    OrrRecordComm *c = orr_record_add_comm(r);
    c->kind = ORR_COMM_TP, c->collective = ORR_ALL_REDUCE, c->group_size = 8;
    orr_record_set(&c->algorithm, "nvls"), orr_record_set(&c->protocol, "simple");
    c->count = 512, c->bytes = INT64_C(8589934592);
    c->transfer_ns = 120000000, c->wait_ns = 10000000, c->exposed_ns = 120000000;
    c = orr_record_add_comm(r);
    c->kind = ORR_COMM_PP, c->collective = ORR_SEND_RECV, c->group_size = 2;
    orr_record_set(&c->algorithm, "send");
    c->count = 128, c->bytes = INT64_C(536870912), c->transfer_ns = 30000000;
    c->wait_ns = 90000000, c->exposed_ns = 0;
    OrrRecordGroup *g = orr_record_add_group(r);
    g->kind = ORR_GROUP_TP, g->size = 8, g->n_groups = 8, g->nodes = 1, g->domains = 1;
    orr_record_set(&g->members, "0-7");
    g = orr_record_add_group(r);
    g->kind = ORR_GROUP_DP, g->size = 2, g->n_groups = 32, g->nodes = 2, g->domains = 2;
    orr_record_set(&g->members, "0,8"), orr_record_set(&g->network, "roce");
}

static inline OrrRecord *fixture_record(void) {
    OrrRecord *r = orr_record_new();
    orr_record_set(&r->version, "0.1.0");
    orr_record_set(&r->job, "fixture"), orr_record_set(&r->model, "llama2-7b");
    orr_record_set(&r->cluster, "test-roce:64"), orr_record_set(&r->gpu, "h100-sxm-80");
    orr_record_set(&r->framework, "megatron-2023"), orr_record_set(&r->schedule, "1f1b");
    orr_record_set(&r->precision, "bf16"), orr_record_set(&r->recompute, "none");
    orr_record_set(&r->calibration, "h100 (shipped)");
    r->seed = 1;
    r->world_size = 64;
    r->layout = (OrrRecordLayout){.tp = 8,
                                  .pp = 4,
                                  .vpp = 1,
                                  .cp = 1,
                                  .dp = 2,
                                  .ep = 1,
                                  .zero_stage = 1,
                                  .sequence_parallel = true,
                                  .micro_batch = 1,
                                  .global_batch = 64,
                                  .micro_batches = 32,
                                  .sequence_length = 2048,
                                  .rank_order = r->layout.rank_order};
    orr_record_set(&r->layout.rank_order, "tp-cp-ep-dp-pp");
    r->parameters_total = r->parameters_active = 6738415616;
    r->capacity_bytes = INT64_C(85899345920);
    r->verdict = ORR_FITS;
    fixture_times(r);
    fixture_stages(r);
    fixture_comms(r);
    orr_record_add_input(r, "jobs/fixture.job",
                         "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
    orr_record_add_assumption(r, "layout.cp", "1", "default of the loader");
    r->simulation.ranks = 64, r->simulation.representatives = 4;
    r->simulation.operations = 120000, r->simulation.blocks = 900, r->simulation.events = 5000;
    return r;
}

#endif
