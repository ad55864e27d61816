/* Cells: ranks that need not even be bound, because the machine and the layout repeat themselves.
 *
 * With linear placement and traffic spread over equal paths, swapping two runs of replicas that
 * fill whole nodes (or whole leaves) under the same switches, at every stage, changes nothing:
 * groups inside a run go over as they are, groups that span all runs keep their members, and links
 * follow their nodes. So one such run, a cell, is bound for each class of cells that differ neither
 * in the switches above them nor in what is perturbed. This is a first, coarse fold, made by
 * arithmetic: its cost grows with the classes, but for a few nanoseconds a rank. sim/exec/fold.c
 * refines the rest.
 *
 * Ranks: replica d (position on the data-parallel axis) has a run of ranks in each of `n_outer`
 * blocks (stages, as a rule); a cell has `n_ranks` of each block, so
 * rank = (outer * n_cells + cell) * n_ranks + offset. */
#ifndef ORR_LOWER_CELLS_H
#define ORR_LOWER_CELLS_H

#include "sim/lower/lower.h"

/* Cells that follow each other and are of one class. */
typedef struct {
    uint32_t first, n;
} OrrCellRun;

typedef struct {
    const OrrLowering *in; /* borrowed */
    uint32_t n_ranks, n_outer, n_cells;
    uint32_t n_kept;    /* classes; n_cells: nothing is alike */
    uint32_t *class_of; /* [n_cells] */
    uint32_t *kept;     /* [n_kept] the first cell of each class, ascending */
    uint32_t *size;     /* [n_kept] cells of it */
    OrrCellRun *runs;   /* of all cells */
    uint32_t n_runs;
    bool spans[ORR_N_GROUPS]; /* groups of this kind reach into every cell; else stay in one */
} OrrCells;

/* Cells for the groups that @program meets in. One cell, kept, that holds all ranks where nothing
 * can be left out: placed at random, hashed routes, @in's is_whole, or too irregular. */
OrrCells *orr_cells_new(const OrrLowering *in, const OrrProgram *program);
/* The one cell that holds all. */
OrrCells *orr_cells_whole(const OrrLowering *in);
void orr_cells_free(OrrCells *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCells, orr_cells_free)

/* Ranks that are kept, in order: their number, and the rank of the machine behind each. */
uint32_t orr_cells_n_kept_ranks(const OrrCells *c);
uint32_t orr_cells_rank(const OrrCells *c, uint32_t kept);
/* Which kept rank stands for a rank. */
uint32_t orr_cells_kept(const OrrCells *c, uint32_t rank);
uint32_t orr_cells_weight(const OrrCells *c, uint32_t kept);
/* The cell that has a link to itself, or ORR_NONE: it is shared by several, or one is alone with
 * it. */
uint32_t orr_cells_of_link(const OrrCells *c, uint32_t link);

#endif
