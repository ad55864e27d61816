/* Changed inputs: bytes, words of a dictionary, numbers, lines, pieces of other inputs. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <glib.h>
#include <stdint.h>

#include "sim/base/random.h"

#define MUTATE_MAX_BYTES 65536 /* parsers are linear; larger inputs only slow the search */

typedef struct Mutator Mutator;

/* @corpus: GBytes*, kept by the caller. The dictionary is made of its words. */
Mutator *mutator_new(const GPtrArray *corpus, uint64_t seed);
void mutator_free(Mutator *m);
/* The @i-th input, the same everywhere, into @input. */
void mutator_make(const Mutator *m, uint64_t i, GByteArray *input);

#endif
