/* The cases of a run: grids by log shape, and shapes that a user brings as CSV. */
#ifndef ORR_CALIBRATE_GRID_H
#define ORR_CALIBRATE_GRID_H

#include "calibrate/device.h"

typedef struct {
    bool is_full;    /* else what two minutes are enough for */
    bool flushes_l2; /* of kernels and copies; launches and collectives have no such choice */
    bool kinds[ORR_N_CASE_KINDS]; /* wanted */
    bool has_mpi;                 /* one process a GPU */
} OrrGridWish;

/* OrrCase, without repetition; kernels in an order that has seen a bit of everything whenever it is
 * stopped, then collectives by communicator. The same wish and facts give the same array;
 * g_array_unref. */
GArray *orr_grid_cases(const OrrGridWish *wish, const OrrDeviceFacts *facts);

/**
 * orr_grid_shapes: appends the wanted kinds of a CSV file whose header has `kind` and any columns
 * of orr_case_columns; columns of other names are ignored, as are kinds of the simulator that the
 * calibrator has no measurement for (*@n_ignored counts them). Repetitions are dropped.
 * Errors: ORR_ERROR_INPUT with file, line and column.
 */
bool orr_grid_shapes(const char *path, const OrrGridWish *wish, GArray *cases, guint *n_ignored,
                     GError **error);

#endif
