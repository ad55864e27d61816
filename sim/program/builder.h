/* Builds a program: descriptors are interned (equal ones get one index), segments are open one at
 * a time, then roles list calls. */
#ifndef ORR_PROGRAM_BUILDER_H
#define ORR_PROGRAM_BUILDER_H

#include "sim/program/program.h"

typedef struct OrrBuilder OrrBuilder;
OrrBuilder *orr_builder_new(void);
/* Frees the builder and returns the program; open segment or role is a programmer's error. */
OrrProgram *orr_builder_finish(OrrBuilder *b);
void orr_builder_free(OrrBuilder *b);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrBuilder, orr_builder_free)

/* Opens a segment; operations are appended to it until orr_builder_segment_end, which returns its
 * index (an identical earlier segment is reused). @label printf-free. */
void orr_builder_segment_begin(OrrBuilder *b, const char *label);
uint32_t orr_builder_segment_end(OrrBuilder *b);

/* Each appends one operation and returns its index in the open segment. */
uint32_t orr_builder_kernel(OrrBuilder *b, OrrStream stream, const OrrKernel *kernel);
uint32_t orr_builder_coll(OrrBuilder *b, OrrStream stream, const OrrColl *coll);
uint32_t orr_builder_p2p(OrrBuilder *b, OrrStream stream, const char *label, bool is_eager,
                         const OrrP2pPart *parts, uint32_t n_parts);
/* Host work; waits added to it make the host block (a synchronisation). */
uint32_t orr_builder_host(OrrBuilder *b, uint32_t host_ns);
/* The last operation appended waits for @op (index in the segment). ORR_NONE is ignored; more than
 * ORR_MAX_WAITS is an assertion. A wait on an op of the same stream is dropped as implied. */
void orr_builder_wait(OrrBuilder *b, uint32_t op);
/* The same for any op of the open segment. */
void orr_builder_op_wait(OrrBuilder *b, uint32_t op, uint32_t for_op);
/* Memory effect of the last operation appended. Zero is ignored. */
void orr_builder_mem(OrrBuilder *b, OrrMemKind kind, bool is_after, int64_t delta_bytes);
/* Frees @bytes behind the last operation appended that a collective beside it may still read. */
void orr_builder_mem_shared(OrrBuilder *b, OrrMemKind kind, int64_t bytes);
void orr_builder_step_end(OrrBuilder *b);        /* marks the last operation appended */
uint32_t orr_builder_n_ops(const OrrBuilder *b); /* operations in the open segment so far */
/* Index of the last op on @stream in the open segment, or ORR_NONE. */
uint32_t orr_builder_last_on(const OrrBuilder *b, OrrStream stream);
/* Index of the first op on @stream in the open segment, or ORR_NONE. */
uint32_t orr_builder_first_on(const OrrBuilder *b, OrrStream stream);
/* Stream of an op of the open segment. */
OrrStream orr_builder_stream(const OrrBuilder *b, uint32_t op);

void orr_builder_role_begin(OrrBuilder *b, const char *label, uint32_t stage);
void orr_builder_role_static(OrrBuilder *b, OrrMemKind kind, int64_t bytes); /* adds */
/* Of the optimizer's bytes, @bytes come to be in the first update, as @n tensors. */
void orr_builder_role_late(OrrBuilder *b, int64_t bytes, uint32_t n);
/* Appends a call and returns its index within the role. */
uint32_t orr_builder_call(OrrBuilder *b, uint32_t segment, OrrPass pass, uint32_t chunk,
                          uint32_t micro_batch);
/* Operation @op of call @call waits for @src_op of the earlier call @src_call. @op ORR_FIRST_OP:
 * the first op of the segment; @src_op ORR_LAST_OP: its last. */
#define ORR_FIRST_OP 0u
#define ORR_LAST_OP UINT32_MAX
void orr_builder_call_wait(OrrBuilder *b, uint32_t call, uint32_t op, uint32_t src_call,
                           uint32_t src_op, uint32_t steps_back);
void orr_builder_role_end(OrrBuilder *b);

#endif
