/* Measured collectives of the shared files as questions to the model: the accuracy tests and the
 * fit read them alike. */
#ifndef TESTS_COLLECTIVE_ROWS_H
#define TESTS_COLLECTIVE_ROWS_H

#include "sim/collective/timed.h"

typedef struct {
    char system[40], series[24]; /* GPU or machine; software table or network */
    OrrCollective kind;
    OrrDtype dtype;
    OrrCommPlace place;
    uint32_t version;
    OrrAlgo algo; /* forced in the run, or ORR_N_ALGOS */
    OrrTimed timed;
    int64_t bytes;
    double us;
} CollRow;

/* Each appends to @rows (GArray of CollRow); false where the file is absent. @shared: the folder
 * of the shared files. */
bool coll_rows_one_node(const char *shared, GArray *rows);  /* kernels/nccl_one_node.csv */
bool coll_rows_published(const char *shared, GArray *rows); /* published/H_collectives.csv */
bool coll_rows_vtrain(const char *shared, GArray *rows);    /* published/raw, A100 and V100 nodes */
bool coll_rows_logs(const char *shared, GArray *rows);      /* files/nccl-tests-logs */
/* ORRERY_SHARED, else shared beside the checkout. g_free. */
char *coll_rows_shared(void);
/* Model's microseconds for a row under @constants (NULL: shipped). */
double coll_row_model_us(const CollRow *row, const struct OrrCollConstants *constants,
                         OrrCollPlan *plan);

#endif
