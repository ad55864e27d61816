/* One process a GPU, over MPI. Compiled to a refusal where configure found none. */
#include "config.h"

#include "calibrate/ranks.h"

#ifdef HAVE_MPI
#include <mpi.h>

static void barrier(OrrRanks *r) {
    (void)r;
    MPI_Barrier(MPI_COMM_WORLD);
}

static double max(OrrRanks *r, double value) {
    (void)r;
    double largest = value;
    MPI_Allreduce(&value, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return largest;
}

static void broadcast(OrrRanks *r, void *data, size_t bytes) {
    (void)r;
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void gather(OrrRanks *r, const void *mine, size_t bytes, void *all) {
    (void)r;
    MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void close_mpi(OrrRanks *r) {
    MPI_Finalize();
    g_free(r);
}

OrrRanks *orr_ranks_mpi(int *argc, char ***argv, GError **error) {
    if (MPI_Init(argc, argv) != MPI_SUCCESS) {
        orr_fail_env(error, "MPI does not start");
        return NULL;
    }
    OrrRanks *r = g_new0(OrrRanks, 1);
    *r = (OrrRanks){.name = "mpi",
                    .barrier = barrier,
                    .max = max,
                    .broadcast = broadcast,
                    .gather = gather,
                    .close = close_mpi};
    MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r->n_ranks);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, r->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &r->local);
    MPI_Comm_size(node, &r->n_local);
    MPI_Comm_free(&node);
    return r;
}
#else
OrrRanks *orr_ranks_mpi(int *argc, char ***argv, GError **error) {
    (void)argc, (void)argv;
    orr_fail_env(error, "--mpi: this program was built without MPI; configure says at its end what "
                        "it found");
    return NULL;
}
#endif
