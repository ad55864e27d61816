/* The coarsest partition of a graph with labelled edges in which nodes of one class see equal
 * neighbourhoods: as many edges of each label to each class.
 *
 * Classes are split until that holds. Only nodes that see a node of a new class are looked at
 * again, and the largest part of a class keeps its name (Hopcroft 1971; Paige and Tarjan 1987), so
 * a disturbance costs what it reaches. Neighbourhoods are told apart by 64-bit hashes, and the
 * outcome is then checked edge by edge: a collision is found and the work done again with other
 * hashes. Cost: about n log n edges at worst, as a rule a few visits of each. */
#ifndef ORR_EXEC_REFINE_H
#define ORR_EXEC_REFINE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Node i sees node `to` `times` times over an edge of this label. Who is seen sees back. */
typedef struct {
    uint64_t label;
    uint32_t to, times;
} OrrSight;

typedef struct {
    uint32_t n_nodes;
    uint64_t *first; /* [n_nodes + 1] */
    OrrSight *sights;
} OrrSightGraph;

/* @class [n_nodes]: at first the classes that must differ, 0 .. @n_classes - 1, each with a node;
 * at last the partition. Returns the number of its classes. */
uint32_t orr_refine(const OrrSightGraph *g, uint32_t *class, uint32_t n_classes);

#endif
