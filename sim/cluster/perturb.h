/* What is not as it should be: slow GPUs, degraded links, missing NICs.
 *
 * A perturbation is a target and a value, as `--perturb` and the group [perturb] of a job have it:
 *   gpu:17:speed=0.9                rank 17 computes at 0.9 of its speed; gpu:0-7 a run of ranks,
 *                                   gpu:* all of them
 *   gpu:*:speed~normal(1,0.01)      drawn for each rank with the seed; uniform(A,B),
 * lognormal(MEDIAN, SIGMA) likewise gpu:*:speed=@speeds.csv         from a table with the columns
 * rank and speed; others keep theirs link:node3/nic1/out:bandwidth=0.5   a link by its name
 * (orr_cluster_link_name) nic:3:1:bandwidth=0.5           NIC 1 of node 3, both ways; nic:*:1 that
 * rail of all nodes nic:3:1:bandwidth=0             it is missing: its bytes go over the next NIC
 * of the node
 *   jitter=0.02                     every stretch of kernels between two meetings takes its time
 * times a normal draw of its own, of mean 1 and that standard deviation Several that hit the same
 * rank or link multiply; jitters add up by their squares. */
#ifndef ORR_CLUSTER_PERTURB_H
#define ORR_CLUSTER_PERTURB_H

#include "sim/cluster/cluster.h"

typedef enum {
    ORR_PERTURB_GPU,
    ORR_PERTURB_LINK,
    ORR_PERTURB_NIC,
    ORR_PERTURB_JITTER
} OrrPerturbTarget;
typedef enum {
    ORR_DRAW_FIXED, /* a */
    ORR_DRAW_NORMAL,
    ORR_DRAW_UNIFORM,
    ORR_DRAW_LOGNORMAL,
    ORR_DRAW_TABLE /* values of @file */
} OrrPerturbDraw;

typedef struct {
    char *what, *value; /* as the report says it: "gpu:17:speed", "0.9" or "~normal(1,0.01)" */
    OrrPerturbTarget target;
    uint32_t first, last; /* ranks, or nodes; ORR_NONE in last: to the end */
    uint32_t index;       /* NIC of its node */
    char *link;           /* name */
    OrrPerturbDraw draw;
    double a, b;
    char *file;
    double *table; /* [n_table] speed by rank, 0: not in the table; orr_perturb_set_table */
    uint32_t n_table;
} OrrPerturb;

typedef struct {
    OrrPerturb *items;
    uint32_t n;
} OrrPerturbs;

#define ORR_PERTURB_MIN_SPEED 0.001 /* ours: below, a GPU is out of order, not slow */
#define ORR_PERTURB_MAX_SPEED 4.0   /* ours: beyond, it is another GPU */

OrrPerturbs *orr_perturbs_new(void);
void orr_perturbs_free(OrrPerturbs *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrPerturbs, orr_perturbs_free)
/* Parses "TARGET:...=VALUE" and appends it. Errors (ORR_ERROR_INPUT) name the word that is wrong
 * and what would do. */
bool orr_perturbs_add(OrrPerturbs *p, const char *text, GError **error);
/* Rows of a table; copied. Errors: a speed out of range, a rank that comes twice. */
bool orr_perturb_set_table(OrrPerturb *item, const uint32_t *ranks, const double *speeds,
                           uint32_t n, GError **error);
/* Whether all that they name is there. Errors: a rank beyond the job, an unknown link, a node
 * without any NIC left, speeds whose product leaves the limits. */
bool orr_perturbs_check(const OrrPerturbs *p, const OrrCluster *c, uint32_t n_ranks,
                        GError **error);
/* Whether anything depends on the seed. */
bool orr_perturbs_are_drawn(const OrrPerturbs *p);

/* Speed of @rank, 1 = as it should be; within the limits above once checked. */
double orr_perturbs_speed(const OrrPerturbs *p, uint32_t rank, uint64_t seed);
bool orr_perturbs_have_speeds(const OrrPerturbs *p);
bool orr_perturbs_have_links(const OrrPerturbs *p);
bool orr_perturbs_have_missing(const OrrPerturbs *p); /* NICs */
/* What is left of @link, 1 = all; 0: the NIC is missing. */
double orr_perturbs_link(const OrrPerturbs *p, const OrrCluster *c, uint32_t link);
/* Appends the links (uint32_t) that are named, perhaps several times. */
void orr_perturbs_links(const OrrPerturbs *p, const OrrCluster *c, GArray *links);
#define ORR_PERTURB_MAX_JITTER 0.2 /* ours: five deviations still leave some time */
/* Standard deviation of a stretch of kernels, as a part of its time; 0: none. */
double orr_perturbs_jitter(const OrrPerturbs *p);
/* Where the bytes of @link go: itself, or, of a missing NIC, the same way through the next NIC of
 * the node that is there; ORR_NONE if none is. */
uint32_t orr_perturbs_detour(const OrrPerturbs *p, const OrrCluster *c, uint32_t link);

#endif
