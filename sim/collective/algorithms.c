#include "sim/collective/algorithms.h"

extern const OrrAlgorithm orr_algorithm_ring, orr_algorithm_tree, orr_algorithm_nvls,
    orr_algorithm_nvls_tree, orr_algorithm_collnet_direct, orr_algorithm_collnet_chain,
    orr_algorithm_direct, orr_algorithm_hierarchical, orr_algorithm_pairwise, orr_algorithm_naive;

static const OrrAlgorithm *const table[] = {
    &orr_algorithm_ring,      &orr_algorithm_tree,           &orr_algorithm_nvls,
    &orr_algorithm_nvls_tree, &orr_algorithm_collnet_direct, &orr_algorithm_collnet_chain,
    &orr_algorithm_direct,    &orr_algorithm_hierarchical,   &orr_algorithm_pairwise,
    &orr_algorithm_naive};
_Static_assert(sizeof(table) / sizeof(table[0]) == ORR_N_ALGOS, "an algorithm lacks a row");

const OrrAlgorithm *orr_algorithm(OrrAlgo algo) {
    return table[algo];
}
