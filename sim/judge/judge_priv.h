/* What the comparisons share. */
#ifndef ORR_JUDGE_PRIV_H
#define ORR_JUDGE_PRIV_H

#include "sim/judge/compare.h"

OrrCompare *orr_judge__compare_new(void);
/* @name static; nothing where both are 0. */
void orr_judge__add_term(OrrCompare *c, const char *name, int64_t one_ns, int64_t other_ns);
/* Puts what the terms leave of both step times into one more of them, and sorts. */
void orr_judge__settle(OrrCompare *c, const char *rest);
/* A setting that differs; 0: not told. */
void orr_judge__note_count(OrrCompare *c, const char *what, int64_t one, int64_t other);

#endif
