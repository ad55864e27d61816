/* How an activity uses what it shares: the vocabulary of load vectors and of the solver. */
#ifndef ORR_CORE_USE_H
#define ORR_CORE_USE_H

#include <stdint.h>

#define ORR_COEF_ONE 65536u

typedef struct {
    uint32_t constraint;
    uint32_t coef;  /* in 1/ORR_COEF_ONE, above 0 */
    uint32_t count; /* how many equal activities of this one's multiplicity meet on this constraint
                     * (folding: differs by constraint): usage is count * coef * x, while the scale
                     * of x is set by the largest coef alone. At least 1. */
} OrrUse;

#endif
