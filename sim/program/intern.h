/* Private to sim/program: an open-addressed index of descriptors by their hash. The order of the
 * descriptors themselves is that of first use; the table only finds them again. */
#ifndef ORR_PROGRAM_INTERN_H
#define ORR_PROGRAM_INTERN_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    struct {
        uint32_t hash, id_plus_1; /* 0: free */
    } * slots;
    uint32_t n_slots, n_used;
} OrrIntern;

void orr_program__intern_clear(OrrIntern *t);
/* Hash of @n bytes, chained through @seed. */
uint64_t orr_program__hash(const void *data, size_t n, uint64_t seed);
/* Next candidate with this hash, or ORR_NONE; @cursor starts at 0 and is kept between calls. */
uint32_t orr_program__intern_next(const OrrIntern *t, uint64_t hash, uint32_t *cursor);
void orr_program__intern_add(OrrIntern *t, uint64_t hash, uint32_t id);

/* Makes room for @need elements of @size bytes; returns the array, which may have moved. */
void *orr_program__grow(void *array, uint32_t *capacity, uint32_t need, size_t size);

#endif
