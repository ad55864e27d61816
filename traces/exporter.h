/* A form in which spans leave the house. One file an exporter; the table is in exporters.c. */
#ifndef TRACES_EXPORTER_H
#define TRACES_EXPORTER_H

#include "sim/core/probe.h"
#include "sim/io/file.h"
#include "sim/program/program.h"

/* Whom the spans are about, and what their numbers stand for. Borrowed; callbacks get @data. */
typedef struct {
    const OrrProgram *program;
    const char *job, *gpu;
    uint32_t world_size, gpus_per_node;
    int64_t step_time_ns;    /* known once the run has ended: exporters look at their end */
    double peak_flops_per_s; /* of one GPU, for the MFU counter; 0: no such counter */
    void *data;
    /* What to call a rank: "stage 3, TP 0, DP 12"; g_free. */
    char *(*rank_name)(void *data, uint32_t rank);
    /* Members of a group instance, in position order, borrowed; returns how many. */
    uint32_t (*group)(void *data, OrrGroup kind, uint32_t group, const uint32_t **members);
    /* The rank at @position of the group of that kind that @rank is in. */
    uint32_t (*peer)(void *data, uint32_t rank, OrrGroup kind, uint32_t position);
    /* How a collective runs; ORR_N_ALGOS and ORR_N_PROTOS where that is not known. */
    void (*plan)(void *data, const OrrSpan *span, OrrAlgo *algo, OrrProto *proto);
} OrrTraceContext;

/* The ranks of one output and the window that was asked for. */
typedef struct {
    const uint32_t *ranks; /* ascending */
    uint32_t n_ranks;
    int64_t from_ns, to_ns; /* spans that touch [from, to) are inside */
    bool is_profile;        /* one rank, as a profiler of that rank would write it */
} OrrTraceView;

/* What did not go into the output. */
typedef struct {
    uint64_t n_spans, n_outside; /* written; left out because of the window */
    uint32_t n_other_ranks;      /* of the job, not asked for */
} OrrTraceCounts;

typedef struct {
    const char *name, *summary, *source;
    const char *suffix; /* of its files: ".json" */
    bool is_per_rank;   /* a file holds one rank, not compressed: PREFIX.RANK.et */
    /* State for one output. Both are borrowed until `end`. */
    void *(*begin)(const OrrTraceContext *context, const OrrTraceView *view, OrrOut *out);
    /* Spans of a stream in order; those outside of the window come too, marked, so that calls can
     * be counted. Only ranks of the view. */
    void (*span)(void *state, const OrrSpan *span, bool is_inside);
    /* Writes what is left and frees the state. */
    void (*end)(void *state, const OrrTraceCounts *counts);
} OrrExporter;

#endif
