/* The processes of a launch: one alone, or one a GPU under MPI. A descriptor of functions, so that
 * the runner and the collectives need not know which.
 *
 * All functions are collective: every process calls them in the same order. */
#ifndef ORR_CALIBRATE_RANKS_H
#define ORR_CALIBRATE_RANKS_H

#include "sim/base/error.h"

#include <stddef.h>

typedef struct OrrRanks OrrRanks;
struct OrrRanks {
    const char *name;
    int rank, n_ranks;  /* of processes */
    int local, n_local; /* place of this process on its node, and how many are there */
    void *state;        /* the variant's */
    void (*barrier)(OrrRanks *r);
    double (*max)(OrrRanks *r, double value);                 /* over all processes */
    void (*broadcast)(OrrRanks *r, void *data, size_t bytes); /* from process 0 */
    /* @all has room for n_ranks times @bytes. */
    void (*gather)(OrrRanks *r, const void *mine, size_t bytes, void *all);
    void (*close)(OrrRanks *r);
};

/* A process alone. */
OrrRanks *orr_ranks_alone(void);
/* One process a GPU; starts MPI. NULL with ORR_ERROR_ENV if the program was built without it. */
OrrRanks *orr_ranks_mpi(int *argc, char ***argv, GError **error);

/* The same verdict for all: false with @error (which is @mine, or says that another process failed)
 * if any process brings an error. Takes @mine, which may be NULL. */
bool orr_ranks_agree(OrrRanks *r, GError *mine, GError **error);

/* Where GPU @gpu of @n_gpus stands when they are cut into groups of @group_gpus with @stride
 * between members: number of its group and its place in it. false: in none, because its block is
 * not full.
 */
bool orr_ranks_place(int gpu, int n_gpus, int group_gpus, int stride, int *group, int *place);
/* How many such groups there are. */
int orr_ranks_n_groups(int n_gpus, int group_gpus, int stride);

#endif
