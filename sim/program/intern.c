/* Hash index for the builder. A wrong guess of the hash costs a comparison, never a result. */
#include "sim/program/intern.h"

#include "sim/terms/terms.h"

#include <glib.h>
#include <string.h>

void orr_program__intern_clear(OrrIntern *t) {
    g_free(t->slots);
    memset(t, 0, sizeof *t);
}

/* Odd 64-bit numbers: 2^64 over the golden ratio (Knuth, TAOCP 3, 6.4) and the second multiplier of
 * the splitmix64 finaliser (Steele et al. 2014). */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* Knuth */
#define MIX UINT64_C(0x94d049bb133111eb)    /* splitmix64 */

static inline uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * MIX;
    return h ^ h >> 29; /* as far as a product's high bits need to come down */
}

static inline uint64_t word_at(const unsigned char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* One multiplication a word, in two lanes that do not wait for each other. */
uint64_t orr_program__hash(const void *data, size_t n, uint64_t seed) {
    const unsigned char *p = data;
    uint64_t a = seed ^ n * SPREAD, b = a + SPREAD, tail = 0;
    for (; n >= 16; n -= 16, p += 16) {
        a = mix(a, word_at(p));
        b = mix(b, word_at(p + 8));
    }
    if (n >= 8) {
        a = mix(a, word_at(p));
        n -= 8, p += 8;
    }
    if (n > 0) {
        memcpy(&tail, p, n);
        b = mix(b, tail);
    }
    a = mix(a, b);
    return a ^ a >> 32;
}

uint32_t orr_program__intern_next(const OrrIntern *t, uint64_t hash, uint32_t *cursor) {
    if (t->n_slots == 0)
        return ORR_NONE;
    uint32_t mask = t->n_slots - 1;
    for (uint32_t at = ((uint32_t)hash + *cursor) & mask; t->slots[at].id_plus_1 != 0;
         at = (at + 1) & mask) {
        ++*cursor;
        if (t->slots[at].hash == (uint32_t)hash)
            return t->slots[at].id_plus_1 - 1;
    }
    return ORR_NONE;
}

static void place(OrrIntern *t, uint32_t hash, uint32_t id_plus_1) {
    uint32_t mask = t->n_slots - 1, at = hash & mask;
    while (t->slots[at].id_plus_1 != 0)
        at = (at + 1) & mask;
    t->slots[at].hash = hash;
    t->slots[at].id_plus_1 = id_plus_1;
}

void orr_program__intern_add(OrrIntern *t, uint64_t hash, uint32_t id) {
    if (2 * (t->n_used + 1) > t->n_slots) {
        OrrIntern old = *t;
        t->n_slots = old.n_slots == 0 ? 64 : 2 * old.n_slots;
        t->slots = g_malloc0_n(t->n_slots, sizeof t->slots[0]);
        for (uint32_t i = 0; i < old.n_slots; i++)
            if (old.slots[i].id_plus_1 != 0)
                place(t, old.slots[i].hash, old.slots[i].id_plus_1);
        g_free(old.slots);
    }
    place(t, (uint32_t)hash, id + 1);
    t->n_used++;
}

void *orr_program__grow(void *array, uint32_t *capacity, uint32_t need, size_t size) {
    if (need <= *capacity)
        return array;
    while (*capacity < need)
        *capacity = *capacity == 0 ? 64 : *capacity + *capacity / 2;
    return g_realloc_n(array, *capacity, size);
}
