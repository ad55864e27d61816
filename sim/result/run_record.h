/* What a whole run says: seeds of one run, each with an exact account of its wall time, and the
 * figures over them. The engine (sim/job) fills the seeds, sim/api the rest, sim/report renders it.
 * Strings are never NULL; everything is owned by the record. */
#ifndef ORR_RESULT_RUN_RECORD_H
#define ORR_RESULT_RUN_RECORD_H

#include "sim/result/record.h"

/* What the time that was lost went on. */
typedef enum {
    ORR_LOSS_QUEUE,     /* waiting for the cluster: not the run's own time (ETTR leaves it out) */
    ORR_LOSS_REQUEUE,   /* the same after a stop: back in the queue of the cluster */
    ORR_LOSS_START,     /* processes, communicators */
    ORR_LOSS_LOAD,      /* checkpoint read back */
    ORR_LOSS_DETECT,    /* until somebody or something knows */
    ORR_LOSS_DIAGNOSE,  /* until it is known which node */
    ORR_LOSS_REPLACE,   /* nodes from the spares */
    ORR_LOSS_REPAIR,    /* no spare left: waiting for a repair */
    ORR_LOSS_DOWN,      /* planned stop, or the cluster taken away */
    ORR_LOSS_REWORK,    /* steps done twice, and the step in hand */
    ORR_LOSS_SAVE,      /* training stands while a checkpoint is taken */
    ORR_LOSS_SAVE_WAIT, /* the one before is still being written */
    ORR_LOSS_SAVE_SLOW, /* steps slower while one is written over the same links */
    ORR_LOSS_SLOW,      /* steps slower than nominal: a degraded part */
    ORR_LOSS_SHRUNK,    /* steps with fewer replicas */
    ORR_LOSS_STALL,     /* training stands and goes on by itself */
    ORR_LOSS_EVALUATE,  /* evaluation passes */
    ORR_LOSS_NOISE,     /* jitter and stragglers of healthy steps */
    ORR_LOSS_END,       /* the step in hand when the time was up */
    ORR_N_LOSSES
} OrrLoss;
const char *orr_loss_name(OrrLoss loss); /* "queue" */
/* The GPUs are not the job's while it waits in a queue: nobody pays for them. */
bool orr_loss_is_queued(OrrLoss loss);
/* The GPUs wait; in the others they compute or spin at full power. */
bool orr_loss_is_idle(OrrLoss loss);

/* One seed. lost_ns is n_causes x ORR_N_LOSSES; useful_ns and all of it add up to wall_ns exactly.
 */
typedef struct {
    uint64_t seed;
    int64_t wall_ns, useful_ns;
    int64_t steps, tokens; /* kept at the end */
    int64_t reworked_steps;
    int64_t productive_ns; /* useful, and the slowness of steps that were kept */
    double mfu_ns;         /* useful time weighted by the MFU of its phase */
    int64_t checkpoints;
    int64_t most_lost_ns; /* largest single rework */
    int64_t *lost_ns;
    int64_t *strikes;                /* n_causes: how often each came */
    int64_t interruptions;           /* strikes that stopped the training */
    int64_t unclean_rollbacks;       /* silent corruption older than any checkpoint that was kept */
    int64_t short_of_nodes_ns;       /* time with fewer nodes than the job wants */
    int64_t steps_done, stepping_ns; /* those done twice too */
    double step_squares_s2;          /* sum of squares of their times */
    int64_t repairs;                 /* nodes that came to the repair shop */
    int64_t repair_wait_ns;          /* of all of them, until a hand was free */
    bool is_done;                    /* the target was reached */
    bool has_most_strikes;           /* cut off: failures so frequent that the run would not end */
    double cost_usd, energy_mwh, carbon_kg;
} OrrRunSeed;

typedef struct {
    char *name, *unit;
    double mean, deviation, ci95; /* half-width of the mean's 95 % interval; NAN for one seed */
    double p5, p50, p95;
} OrrRunFigure;

/* A cause as it was put in, with the same rate in the three ways that people state it. */
typedef struct {
    char *name, *component, *law, *effect, *source;
    double mtbf_gpu_h; /* GPU-hours between two; 0: not a failure */
    double per_1000_node_days;
    double mtbf_job_h;
    double expected; /* of the rates in the mean wall time; the caller's to fill after settling */
    double mean_count, ci95_count;
    bool is_interruption;
} OrrRunCause;

typedef struct {
    char *name;
    int64_t block_ns, write_ns, load_ns;
    uint32_t every;
    double bytes, bytes_per_day, kept_bytes, bytes_per_s;
    double write_slow_frac; /* steps are that much longer while it is written */
} OrrRunTier;

typedef struct {
    char *name, *note;
    double usd;
} OrrRunCost;

typedef struct OrrRunRecord {
    OrrRecord *head; /* version, seed, names, inputs, assumptions, warnings, findings,
                        overrides; the rest of it is unused */
    char *run, *summary;
    uint32_t n_gpus, n_nodes, n_spare_nodes;
    int64_t step_ns, tokens_per_step;
    double step_deviation_ns, mfu_frac;
    int64_t interval_ns, young_ns, daly_ns; /* 0: no checkpoints */
    uint32_t interval_steps;
    char *interval_policy;
    double state_bytes;
    OrrRunTier *tiers;
    uint32_t n_tiers;
    uint32_t n_own; /* causes that are no failures come first */
    OrrRunCause *causes;
    uint32_t n_causes;
    OrrRunSeed *seeds;
    uint32_t n_seeds;
    OrrRunFigure *figures;
    uint32_t n_figures;
    int64_t *lost_ns;           /* means, settled: n_causes x ORR_N_LOSSES */
    int64_t wall_ns, useful_ns; /* means */
    char *prices, *prices_date;
    double usd_per_gpu_h;                  /* what an hour of a GPU costs in this contract */
    double power_usd_per_gpu_h, idle_frac; /* on top where electricity is paid apart: of a busy GPU,
                                              and the share of it that a waiting one takes */
    double storage_usd;                    /* mean: checkpoints kept, the last one taken away */
    uint32_t repair_hands;                 /* 0: as many as there are broken nodes */
    OrrRunCost *costs;
    uint32_t n_costs;   /* alternatives: the same run under other contracts */
    double breakeven_h; /* on demand against on premise; 0: not asked */
} OrrRunRecord;

OrrRunRecord *orr_run_record_new(uint32_t n_causes, uint32_t n_seeds);
void orr_run_record_free(OrrRunRecord *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRunRecord, orr_run_record_free)

void orr_run_seed_init(OrrRunSeed *s, uint64_t seed, uint32_t n_causes);
void orr_run_seed_clear(OrrRunSeed *s);
/* Everything lost by that cause. */
int64_t orr_run_seed_lost(const OrrRunSeed *s, uint32_t cause);
/* NULL if useful and lost add up to the wall time and nothing is negative, else what is wrong. */
char *orr_run_seed_flaw(const OrrRunSeed *s, uint32_t n_causes);

/* From the seeds: means, figures, counts, lost times (settled to the mean wall time). The causes'
 * names and rates must be there. */
void orr_run_record_settle(OrrRunRecord *r);
const OrrRunFigure *orr_run_record_figure(const OrrRunRecord *r, const char *name);
void orr_run_record_add_cost(OrrRunRecord *r, const char *name, double usd, const char *note);
/* Mean time in queues, and that for which training stood (queues, what is idle, detection). */
int64_t orr_run_record_queued(const OrrRunRecord *r);
int64_t orr_run_record_down(const OrrRunRecord *r);
int64_t orr_run_record_lost(const OrrRunRecord *r, uint32_t cause); /* mean, all losses */

/* Where the GPU-hours and the money of a run went. GPU-hours: useful, lost and spares are all that
 * were held, GPUs and spares times the wall time less queues. USD: these and storage are the cost.
 */
typedef struct {
    double gpu_hours, usd;
} OrrRunSpent;
/* Of @lost_ns [ORR_N_LOSSES], of @useful_ns, of the spares beside a run of these losses (@lost_ns
 * [n_causes x ORR_N_LOSSES], @wall_ns). */
OrrRunSpent orr_run_spent_lost(const OrrRunRecord *r, const int64_t *lost_ns);
OrrRunSpent orr_run_spent_useful(const OrrRunRecord *r, int64_t useful_ns);
OrrRunSpent orr_run_spent_spares(const OrrRunRecord *r, const int64_t *lost_ns, int64_t wall_ns);

/* A seed as one line of integers and shortest decimals, and back: what a store keeps. g_free. */
char *orr_run_seed_line(const OrrRunSeed *s, uint32_t n_causes);
/* false if @line is not such a line of @n_causes. @s is initialised. */
bool orr_run_seed_parse(OrrRunSeed *s, uint32_t n_causes, const char *line);

#endif
