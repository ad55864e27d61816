/* Every algorithm is run symbolically, chunk by chunk: each rank must end with what the collective
 * promises, and the bytes counted on its links must be those of the plan. */
#include "tests/near.h"

#include <string.h>

#include "sim/collective/algorithms.h"

#define MAX_RANKS 64
#define MAX_CHUNKS 128

/* Which ranks' contributions a rank holds of each chunk, and what went over its links. */
typedef struct {
    uint32_t domains, local, n, chunks;
    double size; /* of a chunk, as part of the collective's size */
    uint64_t have[MAX_RANKS][MAX_CHUNKS], before[MAX_RANKS][MAX_CHUNKS];
    double nv_out[MAX_RANKS], nv_in[MAX_RANKS], nic_out[MAX_RANKS], nic_in[MAX_RANKS];
} Sim;

static Sim *new_sim(uint32_t domains, uint32_t local, uint32_t chunks, double size) {
    Sim *s = calloc(1, sizeof(*s));
    s->domains = domains;
    s->local = local;
    s->n = domains * local;
    s->chunks = chunks;
    s->size = size;
    return s;
}

/* All ranks hold their own part of every chunk: the start of a reduction. */
static Sim *new_reduction(uint32_t domains, uint32_t local, uint32_t chunks) {
    Sim *s = new_sim(domains, local, chunks, 1.0 / chunks);
    for (uint32_t r = 0; r < s->n; r++)
        for (uint32_t c = 0; c < chunks; c++)
            s->have[r][c] = UINT64_C(1) << r;
    return s;
}

/* Rank r holds chunk r only: the start of a gather. */
static Sim *new_gather(uint32_t domains, uint32_t local) {
    Sim *s = new_sim(domains, local, domains * local, 1.0 / (domains * local));
    for (uint32_t r = 0; r < s->n; r++)
        s->have[r][r] = 1;
    return s;
}

/* What is sent in a round is what was there before it. */
static void new_round(Sim *s) {
    memcpy(s->before, s->have, sizeof(s->before));
}

static void count(Sim *s, uint32_t from, uint32_t to) {
    if (from / s->local == to / s->local) {
        s->nv_out[from] += s->size;
        s->nv_in[to] += s->size;
    } else {
        s->nic_out[from / s->local] += s->size;
        s->nic_in[to / s->local] += s->size;
    }
}

static void send_copy(Sim *s, uint32_t from, uint32_t to, uint32_t chunk) {
    count(s, from, to);
    s->have[to][chunk] = s->before[from][chunk];
}

static void send_reduce(Sim *s, uint32_t from, uint32_t to, uint32_t chunk) {
    count(s, from, to);
    assert_true((s->have[to][chunk] & s->before[from][chunk]) == 0); /* nothing is added twice */
    s->have[to][chunk] |= s->before[from][chunk];
}

/* NVLink switch: @owner reads the sum over its domain; writes to all of it. */
static void switch_reduce(Sim *s, uint32_t owner, uint32_t chunk) {
    uint32_t first = owner - owner % s->local;
    for (uint32_t r = first; r < first + s->local; r++) {
        s->nv_out[r] += s->size;
        s->have[owner][chunk] |= s->before[r][chunk];
    }
    s->nv_in[owner] += s->size;
}

static void switch_multicast(Sim *s, uint32_t owner, uint32_t chunk) {
    uint32_t first = owner - owner % s->local;
    s->nv_out[owner] += s->size;
    for (uint32_t r = first; r < first + s->local; r++) {
        s->nv_in[r] += s->size;
        s->have[r][chunk] = s->before[owner][chunk];
    }
}

/* SHARP: ranks @member of every domain send a chunk up and get the sum back. */
static void fabric_reduce(Sim *s, uint32_t member, uint32_t chunk) {
    uint64_t sum = 0;
    for (uint32_t d = 0; d < s->domains; d++) {
        sum |= s->before[d * s->local + member][chunk];
        s->nic_out[d] += s->size;
        s->nic_in[d] += s->size;
    }
    for (uint32_t d = 0; d < s->domains; d++)
        s->have[d * s->local + member][chunk] = sum;
}

static void all_must_hold_sums(const Sim *s) {
    uint64_t all = s->n == 64 ? UINT64_MAX : (UINT64_C(1) << s->n) - 1;
    for (uint32_t r = 0; r < s->n; r++)
        for (uint32_t c = 0; c < s->chunks; c++)
            assert_true(s->have[r][c] == all);
}

static void all_must_hold_all(const Sim *s) {
    for (uint32_t r = 0; r < s->n; r++)
        for (uint32_t c = 0; c < s->chunks; c++)
            assert_true(s->have[r][c] == 1);
}

static OrrCommPlace place_of(const Sim *s) {
    return (OrrCommPlace){.n_ranks = s->n,
                          .n_domains = s->domains,
                          .min_per_domain = s->local,
                          .max_per_domain = s->local,
                          .n_nodes = s->domains,
                          .max_per_node = s->local,
                          .arch = ORR_ARCH_HOPPER,
                          .nvlink = ORR_NVLINK_SWITCH,
                          .has_nvls = true,
                          .has_sharp = true,
                          .nvlink_bytes_per_s = 450e9,
                          .net = ORR_NET_IB,
                          .nic_bytes_per_s = 50e9,
                          .nics_per_domain = 3,
                          .gpus_per_nic = 1};
}

/* The plan's bytes on the busiest rank and NIC (all NICs of a domain share evenly) are ours. */
static void plan_must_agree(Sim *s, OrrCollective kind, OrrAlgo algo) {
    OrrCommPlace place = place_of(s);
    OrrNcclForce force = {.algo = algo, .proto = ORR_PROTO_SIMPLE, .sharp_on = true};
    OrrCollPlan plan;
    GError *error = NULL;
    double nv = 0, nic = 0;
    if (algo == ORR_ALGO_PAIRWISE)
        force.algo = ORR_N_ALGOS;
    if (!orr_collective_plan(kind, 1 << 20, ORR_BF16, &place, &force, &plan, &error))
        fail_msg("%s", error->message);
    for (uint32_t r = 0; r < s->n; r++) {
        nv = fmax(nv, fmax(s->nv_out[r], s->nv_in[r]));
        nic = fmax(nic, fmax(s->nic_out[r], s->nic_in[r]));
    }
    if (fabs(plan.nvlink_per_rank - nv) > 1e-9 || fabs(plan.nic_per_nic * 3 - nic) > 1e-9)
        fail_msg("%s over %u x %u: plan %g and %g, counted %g and %g", orr_algo_name(algo),
                 s->domains, s->local, plan.nvlink_per_rank, plan.nic_per_nic * 3, nv, nic);
    free(s);
}

static void ring_scatter(Sim *s) {
    for (uint32_t step = 0; step + 1 < s->n; step++) {
        new_round(s);
        for (uint32_t r = 0; r < s->n; r++)
            send_reduce(s, r, (r + 1) % s->n, (r + s->n - step) % s->n);
    }
}

static void ring_gather(Sim *s, uint32_t shift) {
    for (uint32_t step = 0; step + 1 < s->n; step++) {
        new_round(s);
        for (uint32_t r = 0; r < s->n; r++)
            send_copy(s, r, (r + 1) % s->n, (r + shift + s->n - step) % s->n);
    }
}

static void run_ring(uint32_t domains, uint32_t local) {
    Sim *s = new_reduction(domains, local, domains * local);
    ring_scatter(s);
    ring_gather(s, 1);
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_RING);
    s = new_reduction(domains, local, domains * local);
    ring_scatter(s);
    for (uint32_t r = 0; r < s->n; r++)
        assert_int_equal(__builtin_popcountll(s->have[r][(r + 1) % s->n]), s->n);
    plan_must_agree(s, ORR_REDUCE_SCATTER, ORR_ALGO_RING);
    s = new_gather(domains, local);
    ring_gather(s, 0);
    all_must_hold_all(s);
    plan_must_agree(s, ORR_ALL_GATHER, ORR_ALGO_RING);
}

/* Parents in a binary tree over @n (-1: root), in-order numbering as NCCL builds it: a node with
 * k trailing zeros stands at height k. */
static int parent_of(uint32_t n, uint32_t node) {
    uint32_t bit = 1;
    if (node == 0)
        return -1;
    while (!(node & bit))
        bit <<= 1;
    uint32_t up = (node ^ bit) | (bit << 1);
    return (int)(up >= n ? node ^ bit : up);
}

/* The second tree of the pair: mirrored for an even number of nodes, shifted for an odd one. */
static uint32_t in_tree(uint32_t tree, uint32_t n, uint32_t d) {
    return tree == 0 ? d : n % 2 == 0 ? n - 1 - d : (d + n - 1) % n;
}

static uint32_t out_of_tree(uint32_t tree, uint32_t n, uint32_t v) {
    return tree == 0 ? v : n % 2 == 0 ? n - 1 - v : (v + 1) % n;
}

static uint32_t depth_of(uint32_t n, uint32_t node) {
    int p = parent_of(n, node);
    return p < 0 ? 0 : 1 + depth_of(n, (uint32_t)p);
}

/* Chunk c goes up and down tree c % 2 between ranks @member of the domains. */
static void tree_over_domains(Sim *s, uint32_t member, uint32_t chunk) {
    uint32_t tree = chunk % 2, n = s->domains;
    for (int phase = 0; phase < 2; phase++)
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t level = phase == 0 ? 7 - k : k + 1;
            new_round(s);
            for (uint32_t d = 0; d < n; d++) {
                uint32_t v = in_tree(tree, n, d);
                if (v == 0 || depth_of(n, v) != level)
                    continue;
                uint32_t up = out_of_tree(tree, n, (uint32_t)parent_of(n, v)) * s->local + member;
                if (phase == 0)
                    send_reduce(s, d * s->local + member, up, chunk);
                else
                    send_copy(s, up, d * s->local + member, chunk);
            }
        }
}

static void chain(Sim *s, uint32_t chunk, bool down) {
    for (uint32_t k = 0; k + 1 < s->local; k++) {
        new_round(s);
        for (uint32_t d = 0; d < s->domains; d++) {
            uint32_t first = d * s->local;
            if (down)
                send_copy(s, first + k, first + k + 1, chunk);
            else
                send_reduce(s, first + s->local - 1 - k, first + s->local - 2 - k, chunk);
        }
    }
}

static void run_tree(uint32_t domains, uint32_t local) {
    Sim *s = new_reduction(domains, local, 2);
    for (uint32_t c = 0; c < 2; c++) {
        chain(s, c, false);
        tree_over_domains(s, 0, c);
        chain(s, c, true);
    }
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_TREE);
}

static void run_nvls(uint32_t domains, uint32_t local, OrrAlgo algo) {
    Sim *s = new_reduction(domains, local, 2 * local);
    for (uint32_t c = 0; c < s->chunks; c++) {
        uint32_t owner = c / 2;
        new_round(s);
        for (uint32_t d = 0; d < domains; d++)
            switch_reduce(s, d * local + owner, c);
        new_round(s);
        if (algo == ORR_ALGO_NVLS_TREE)
            tree_over_domains(s, owner, c);
        else if (domains > 1)
            fabric_reduce(s, owner, c);
        new_round(s);
        for (uint32_t d = 0; d < domains; d++)
            switch_multicast(s, d * local + owner, c);
    }
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, algo);
}

static void run_nvls_gather(uint32_t local) {
    Sim *s = new_gather(1, local);
    new_round(s);
    for (uint32_t r = 0; r < local; r++)
        switch_multicast(s, r, r);
    all_must_hold_all(s);
    plan_must_agree(s, ORR_ALL_GATHER, ORR_ALGO_NVLS);
}

/* Every rank of a domain sums its own share of the chunks, from all of the domain at once. */
static void local_scatter(Sim *s) {
    new_round(s);
    for (uint32_t r = 0; r < s->n; r++)
        for (uint32_t c = 0; c < s->chunks; c++) {
            uint32_t owner = r - r % s->local + c % s->local;
            if (owner != r)
                send_reduce(s, r, owner, c);
        }
}

static void local_gather(Sim *s) {
    new_round(s);
    for (uint32_t r = 0; r < s->n; r++)
        for (uint32_t c = 0; c < s->chunks; c++) {
            uint32_t owner = r - r % s->local + c % s->local;
            if (owner != r)
                send_copy(s, owner, r, c);
        }
}

static void run_collnet(uint32_t domains, uint32_t local) {
    Sim *s = new_reduction(domains, local, local);
    local_scatter(s);
    new_round(s);
    for (uint32_t c = 0; c < s->chunks; c++)
        fabric_reduce(s, c, c);
    local_gather(s);
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_COLLNET_DIRECT);
    s = new_reduction(domains, local, 1);
    chain(s, 0, false);
    new_round(s);
    fabric_reduce(s, 0, 0);
    chain(s, 0, true);
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_COLLNET_CHAIN);
}

/* Rings over the domains, one a local rank, for the chunks that it owns. */
static void run_hierarchical(uint32_t domains, uint32_t local) {
    Sim *s = new_reduction(domains, local, domains * local);
    local_scatter(s);
    for (uint32_t phase = 0; phase < 2; phase++)
        for (uint32_t step = 0; step + 1 < domains; step++) {
            new_round(s);
            for (uint32_t r = 0; r < s->n; r++) {
                uint32_t d = r / local, to = (d + 1) % domains * local + r % local;
                uint32_t c = (d + phase + domains - step) % domains * local + r % local;
                if (phase == 0)
                    send_reduce(s, r, to, c);
                else
                    send_copy(s, r, to, c);
            }
        }
    local_gather(s);
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_HIERARCHICAL);
}

static void run_direct(uint32_t local) {
    Sim *s = new_reduction(1, local, local);
    local_scatter(s);
    local_gather(s);
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_DIRECT);
}

static void run_naive(uint32_t domains, uint32_t local) {
    Sim *s = new_reduction(domains, local, 1);
    new_round(s);
    for (uint32_t from = 0; from < s->n; from++)
        for (uint32_t to = 0; to < s->n; to++)
            if (from != to)
                send_reduce(s, from, to, 0);
    all_must_hold_sums(s);
    plan_must_agree(s, ORR_ALL_REDUCE, ORR_ALGO_NAIVE);
}

/* Chunk c of rank r goes to rank c; here only the bytes matter, each to its own place. */
static void run_all_to_all(uint32_t domains, uint32_t local) {
    Sim *s = new_sim(domains, local, 1, 1.0 / (domains * local));
    for (uint32_t from = 0; from < s->n; from++)
        for (uint32_t to = 0; to < s->n; to++)
            if (from != to)
                count(s, from, to);
    plan_must_agree(s, ORR_ALL_TO_ALL, ORR_ALGO_PAIRWISE);
}

static void test_every_rank_ends_with_every_chunk_and_links_carry_what_plans_say(void **state) {
    (void)state;
    for (uint32_t domains = 1; domains <= 16; domains++)
        for (uint32_t local = 1; local <= 8; local++) {
            if (domains * local > MAX_RANKS || domains * local < 2)
                continue;
            run_ring(domains, local);
            run_tree(domains, local);
            run_naive(domains, local);
            run_all_to_all(domains, local);
            if (domains > 1) {
                run_hierarchical(domains, local);
                run_collnet(domains, local);
            }
            if (local > 1)
                run_nvls(domains, local, ORR_ALGO_NVLS);
            if (local > 1 && domains > 1)
                run_nvls(domains, local, ORR_ALGO_NVLS_TREE);
            if (domains == 1) {
                run_direct(local);
                run_nvls_gather(local);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_ends_with_every_chunk_and_links_carry_what_plans_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
