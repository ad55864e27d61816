/* What goes wrong between GPUs, as changes to a machine or to what NCCL may use. To add one: a
 * function and a line of the table in faults.c. */
#ifndef ORR_JUDGE_FAULTS_H
#define ORR_JUDGE_FAULTS_H

#include "sim/collective/collective.h"

/* What a fault changes: two that change the same are not combined. */
typedef enum {
    ORR_FAULT_NICS = 1 << 0,   /* how many NICs */
    ORR_FAULT_RATE = 1 << 1,   /* how fast each is */
    ORR_FAULT_FABRIC = 1 << 2, /* what is above them */
    ORR_FAULT_NODE = 1 << 3,   /* NVLink */
    ORR_FAULT_CHOICE = 1 << 4, /* algorithm, protocol */
    ORR_FAULT_CHANNELS = 1 << 5,
} OrrFaultPart;

#define ORR_MAX_FAULT_LEVELS 12
#define ORR_MAX_FAULT_MARKS 4

typedef struct {
    const char *code, *words, *advice;
    const char *level_words; /* what a level is, "%s" its number; NULL: levels are not told */
    double prior;            /* how common, against the others */
    uint32_t parts;          /* ORR_FAULT_... */
    bool is_above_nodes;     /* nothing to do with a group on one node */
    double levels[ORR_MAX_FAULT_LEVELS];    /* how bad it may be; 0 ends them */
    const char *marks[ORR_MAX_FAULT_MARKS]; /* words in a log that show it; NULL ends them */
    /* Changes @place and @force; false: cannot be so here, or would change nothing. @level: of
     * levels, or 0 where there are none. @management_bytes_per_s: what NCCL falls back to. */
    bool (*apply)(OrrCommPlace *place, OrrNcclForce *force, double level,
                  double management_bytes_per_s);
} OrrFault;

extern const OrrFault orr_faults[];
extern const uint32_t orr_n_faults;
#define ORR_MAX_FAULTS 32

/* How many levels @fault has, at least 1. */
uint32_t orr_fault_levels(const OrrFault *fault);
/* The mark of @fault that @log (text of NCCL and settings NAME=VALUE) holds, or NULL. @log may be
 * NULL. */
const char *orr_fault_mark(const OrrFault *fault, const char *log);

#endif
