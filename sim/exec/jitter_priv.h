/* What the files of jitter in the mean share; see jitter.c. */
#ifndef ORR_EXEC_JITTER_PRIV_H
#define ORR_EXEC_JITTER_PRIV_H

#include "sim/base/random.h"
#include "sim/exec/forms.h"
#include "sim/exec/jitter.h"

#define ORR_FORMS_OF_EVENT 4u /* accuracy hardly gains beyond */
#define ORR_MAX_AWAITED 64    /* ends that one item waits for */
#define ORR_N_PAST 16u        /* ends of compute that are kept; what is older is not waited for */

typedef struct {
    double n, mean, variance;
} OrrJitterLargest;

/* The end of an item, that is waited for. */
typedef struct {
    uint32_t stream, index;
    double end_ns;
    const OrrForms *forms; /* what is known of it */
    gsize slot;
} OrrJitterAwaited;

/* A block of the compute stream that has ended. */
typedef struct {
    uint32_t index; /* plus 1 */
    double end_ns;
} OrrJitterPast;

struct OrrJitter {
    bool is_sampled;
    double sd;
    OrrRandom random;
    uint32_t n_ranks, n_parts; /* parts of a form: by source, common, of shards, private */
    OrrForms ended, current;   /* by lane: end of the last item; start, then end of that in hand */
    OrrForms place;
    OrrForms past;        /* [n_ranks * ORR_N_PAST] blocks that communication waits for */
    OrrJitterPast *pasts; /* the same, rings */
    double *begun_ns, *ended_begun_ns; /* [n_ranks] transfer of TP: in hand, the last */
    uint32_t *n_past;                  /* [n_ranks] since the beginning */
    /* [n_ranks * ORR_N_STREAMS * ORR_N_STREAMS]: how many items of each stream have surely ended
     * when the last item of a stream has, and when the one in hand begins */
    uint32_t *follows, *will_follow;
    OrrJitterAwaited awaited[ORR_MAX_AWAITED];
    uint32_t n_awaited;
    uint8_t *has_met;             /* [n_places] what is there is of the last meeting */
    OrrForms causes;              /* one slot: what the item in hand waits for; absolute means */
    double *copies[ORR_N_GROUPS]; /* [n_groups] members of a group over the weights it lists */
    double *scratch, *edge;       /* [n_parts] */
    GArray *largest;              /* OrrJitterLargest, by n as they came */
};

static inline gsize orr_jitter__lane(uint32_t r, uint32_t s) {
    return (gsize)r * ORR_N_STREAMS + s;
}

static inline uint32_t orr_jitter__common(const OrrJitter *j) {
    return j->n_ranks;
}

static inline uint32_t orr_jitter__own(const OrrJitter *j) {
    return j->n_ranks + 2;
}

static inline uint32_t orr_jitter__shards(const OrrJitter *j) {
    return j->n_ranks + 1;
}

/* Mean and variance of the largest of @n. */
const OrrJitterLargest *orr_jitter__largest(OrrJitter *j, double n);
/* Variance of a form. */
double orr_jitter__sum(const OrrJitter *j, const double *form);
/* The form, private to *@rank, becomes one of rank @r: what is private to another is common to the
 * pipeline. */
void orr_jitter__make_own(const OrrJitter *j, double *form, uint32_t *rank, uint32_t r);

#endif
