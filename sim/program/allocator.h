/* A caching allocator as PyTorch has it on a GPU: what it holds for what is asked of it. */
#ifndef ORR_PROGRAM_ALLOCATOR_H
#define ORR_PROGRAM_ALLOCATOR_H

#include "sim/base/error.h"

typedef struct OrrAllocator OrrAllocator;
/* @limit_bytes: what the device has for it, above 0; @expands: memory is added to the end of what
 * is held (expandable_segments) and not as a segment of its own. */
OrrAllocator *orr_allocator_new(int64_t limit_bytes, bool expands);
void orr_allocator_free(OrrAllocator *allocator);

/* Whether @bytes would be found in free blocks, or in new memory within the limit. */
bool orr_allocator_has(const OrrAllocator *a, int64_t bytes);
/* A block of at least @bytes (above 0): a free block that is large enough, else new memory; at the
 * limit segments without a block in use go back first, and beyond it memory is given all the same.
 * Returns its id. */
uint32_t orr_allocator_take(OrrAllocator *a, int64_t bytes);
/* Block @id is free again, and one with free neighbours. */
void orr_allocator_give(OrrAllocator *a, uint32_t id);
/* The most that was held of the device at a time, in use or not. */
int64_t orr_allocator_peak(const OrrAllocator *a);

#endif
