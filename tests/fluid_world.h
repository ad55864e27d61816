/* A fluid under random loads, small against time: sends between NICs over the uplinks of pods,
 * rings over many NICs, equal sends that go as one or hold room as one, links that change. After
 * each event every rate is that of a solve of everything, and every end that of a loop that adds up
 * the work of each flow by itself. */
#ifndef TESTS_FLUID_WORLD_H
#define TESTS_FLUID_WORLD_H

#include "tests/naive_fluid.h"

enum { NICS = 96, PODS = 4, PRIVATE = 4, MAX_FLOWS = 500, MAX_RINGS = 16, MAX_USES = 260 };
enum { JOINT = 4, ROWS = NICS / JOINT };
enum {
    FIRST_POD = 2 * NICS,
    FIRST_PRIVATE = FIRST_POD + 2 * PODS,
    N_LINKS = FIRST_PRIVATE + PRIVATE
};
#define NIC UINT64_C(50000000) /* bytes per second; small, so that flows last long */

typedef struct {
    OrrFlow flow;
    OrrUse *uses;
    OrrWide left;    /* at now_ns, in 1e-9 bytes */
    OrrReserve room; /* if is_held: it moves by itself, at its top, since from_ns */
    int64_t end_ns, from_ns;
    uint32_t id;
    bool is_joint; /* goes as one with the others from flow `first` on, or holds room as one */
    uint32_t first;
    bool is_live, is_told, is_held;
    bool is_parted; /* had room as one with the others before */
} Live;

typedef enum {
    WORLD_CROWDED, /* many sends, and rings that share NICs */
    WORLD_LIGHT,   /* few flows, hardly a ring */
    WORLD_SPARSE   /* few sends, rings that share no NICs as a rule: many of these are twins */
} WorldKind;

typedef struct {
    OrrFluid *fluid;
    WorldKind kind;
    uint64_t capacity[N_LINKS], rate[MAX_FLOWS];
    Live flows[MAX_FLOWS];
    OrrUse uses[MAX_FLOWS * 8], ring_uses[MAX_RINGS * MAX_USES];
    OrrUse joint_uses[MAX_FLOWS][4]; /* by the first of those that go as one */
    uint32_t n_joint, n_refused, n_split, n_held, n_parted, n_joined;
    int64_t now_ns, next_ns;
    uint64_t random, seed; /* now, at first */
    uint32_t pod_share;
    bool is_wild;  /* weights, coefficients and counts of all kinds */
    bool is_mixed; /* of two kinds */
} World;

/* What has happened, over several worlds. */
typedef struct {
    uint32_t n_joint, n_refused, n_split, n_held, n_parted, n_joined;
    uint64_t n_twins;
} WorldCounts;

/* Flow @at, whose uses are in place: it has yet to be given to the fluid. */
void world_start(World *w, uint32_t at, uint64_t bytes);
void world_use(World *w, Live *x, uint32_t link, uint32_t coef, uint32_t count);
/* Settles, and compares all rates and ends with those of each flow by itself. */
void world_settle(World *w);
void world_advance(World *w, int64_t now_ns);
/* Takes those that are over now. */
void world_end_due(World *w);
/* @n_events random events; a pod's uplink has 1/@pod_share of its NICs. */
void world_run(uint64_t seed, WorldKind kind, uint32_t pod_share, uint32_t n_events,
               WorldCounts *counts);

#endif
