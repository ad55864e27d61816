/* What each finished item waited for, as far back as the critical path may still come by; private
 * to sim/exec.
 *
 * A record says when an item was and names the record of the one item that it waited for last, so
 * records are trees that grow together towards the past. Whoever can still be followed from (the
 * last item of a stream, what an item under way waited for, an end that may be asked for later, the
 * end of a step) is kept with all that is behind him; the rest is dropped now and then. */
#ifndef ORR_EXEC_CAUSE_H
#define ORR_EXEC_CAUSE_H

#include "sim/exec/exec_priv.h"

typedef enum {
    ORR_CAUSE_BLOCK,
    ORR_CAUSE_COMM,
    ORR_CAUSE_WAY /* of a pass that was taken as a whole: from some of its items to a begin */
} OrrCauseType;

enum { ORR_CAUSE_START, ORR_CAUSE_ARRIVED, ORR_CAUSE_END, ORR_CAUSE_PART, ORR_CAUSE_N_NS };

typedef struct {
    uint8_t type;
    uint8_t pred;        /* OrrPred: how it waited */
    uint8_t pred_stream; /* for a stream of `rank` */
    uint8_t form;        /* WAY: see way.c */
    uint32_t n_words;    /* of 8 bytes, all of the record */
    uint32_t rank;       /* a meeting waits for what the last who came has waited for */
    uint32_t cause;      /* record of what it waited for; ORR_NONE: the begin of the run */
    uint32_t pred_index; /* which item of the stream that was */
    uint32_t what;       /* block; OrrCommKind. WAY: call, or with no `ns` the record with them */
    /* BLOCK, COMM: start of the item (of the last who came), last arrival, end; interference of a
     * block, latency of a communication. WAY: see way.c. */
    int64_t ns[];
} OrrCause;

#define ORR_CAUSE_HEAD_WORDS (sizeof(OrrCause) / sizeof(uint64_t))

/* An item, for the way back: all but `cause` matters in a pass only. */
typedef struct {
    uint32_t cause, rank, stream, index;
} OrrCauseSpot;

/* A communication that is no record yet: of the last who came, and what that had waited for. */
typedef struct {
    int64_t ns[ORR_CAUSE_N_NS];
    uint32_t rank, cause, pred_index, what;
    uint8_t pred, pred_stream;
    uint32_t record; /* once it is one, else ORR_NONE */
} __attribute__((aligned(64))) OrrMet;

/* The last rank to end a step, the smallest of equals, and its last item. */
typedef struct {
    int64_t end_ns;
    OrrCauseSpot spot;
} OrrStepCause;

struct OrrCauses {
    uint64_t *words; /* records, one after the other; a record is named by its first word */
    uint32_t n_words, capacity, limit; /* limit: clear up when there are more */
    uint64_t *starts;                  /* a bit a word: a record begins here */
    uint64_t *marks;                   /* the same: to be kept */
    uint32_t *before;                  /* of 64 words each: words to be kept before */
    uint32_t *syncs;                   /* [n_ranks] what the last host synchronisation waited for */
    /* The first step of which ranks leave records: as a rule that is told, or one after it. */
    uint32_t first_step;
    uint8_t *is_early;              /* [n_ranks] is in a step before that */
    uint8_t late_of[ORR_N_STREAMS]; /* below n_lates; UINT8_MAX: no stream of batches */
    uint32_t n_lates;
    OrrMet *lates;      /* [n_ranks * n_lates] of a batch under way: who came last so far */
    OrrStepCause *ends; /* [max_steps] */
    int64_t floor_ns;   /* the path that is told goes back to here at most */
    /* of the pass in hand */
    uint16_t *ways;        /* by collective: at which begin the way back from it ends, */
    uint32_t n_ways;       /* as far as that is known */
    uint32_t *way_records; /* by begin, member * 2 + lane; ORR_NONE: not yet */
};

static inline OrrLaneCause *orr_exec__lane_cause(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, causes, OrrLaneCause) + orr_exec__slot(x, r, s);
}
static inline OrrCause *orr_exec__cause(const OrrExec *x, uint32_t id) {
    return (OrrCause *)(void *)(x->causes->words + id);
}
/* cause.c: with a path wanted only */
OrrCause *orr_exec__cause_add(OrrExec *x, OrrCauseType type, uint32_t n_ns, uint32_t *id);
/* Record of the last item of a stream that has ended. */
static inline uint32_t orr_exec__last_cause(const OrrExec *x, uint32_t r, uint32_t s) {
    return orr_exec__lane_cause(x, r, s)->last;
}
/* A send or receive of the stream ends soon. */
static inline void orr_exec__cause_prefetch(const OrrExec *x, uint32_t r, uint32_t s) {
    __builtin_prefetch(orr_exec__lane_cause(x, r, s), 1);
}
void orr_exec__cause_block(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item);
OrrMet orr_exec__met(const OrrExec *x, uint32_t r, uint32_t s, int64_t arrived_ns,
                     int64_t latency_ns);
void orr_exec__cause_coll(OrrExec *x, uint32_t r, uint32_t s, OrrMet *met);
void orr_exec__cause_part(OrrExec *x, uint32_t r, uint32_t s, OrrMet *met);
void orr_exec__cause_batch(OrrExec *x, uint32_t r, uint32_t s);
void orr_exec__cause_step_end(OrrExec *x, uint32_t r, uint32_t s, uint32_t step);
void orr_exec__cause_floor(OrrExec *x, uint32_t step);
void orr_exec__causes_new(OrrExec *x, uint32_t first_step);
bool orr_exec__causes_are_short(const OrrExec *x);
void orr_exec__causes_clear(OrrExec *x);
/* clear_up.c */
void orr_exec__causes_clear_up(OrrExec *x);

#endif
