/* The event queue against a plain array that is searched for its least entry. */
#include "sim/core/queue.h"
#include "tests/near.h"

#include <string.h>

enum { MAX_PENDING = 700 };

typedef struct {
    OrrEvent entries[MAX_PENDING];
    uint32_t n;
} Plain;

static bool plain_before(const OrrEvent *a, const OrrEvent *b) {
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    if (orr_event_class(a) != orr_event_class(b))
        return orr_event_class(a) < orr_event_class(b);
    if (a->id != b->id)
        return a->id < b->id;
    return orr_event_generation(a) < orr_event_generation(b);
}

static OrrEvent plain_pop(Plain *p) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < p->n; i++)
        if (plain_before(&p->entries[i], &p->entries[best]))
            best = i;
    OrrEvent e = p->entries[best];
    p->entries[best] = p->entries[--p->n];
    return e;
}

/* splitmix64 */
static uint64_t draw(uint64_t *state, uint64_t below) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static void push_both(OrrQueue *q, Plain *p, const OrrEvent *e) {
    orr_queue_push(q, e->time_ns, orr_event_class(e), orr_event_generation(e), e->id);
    p->entries[p->n++] = *e;
}

static void expect_same_pop(OrrQueue *q, Plain *p) {
    assert_int_equal(q->n, p->n);
    OrrEvent want = plain_pop(p);
    assert_true(q->heap[0].time_ns == want.time_ns);
    OrrEvent got = orr_queue_pop(q);
    assert_memory_equal(&got, &want, sizeof got);
}

/* Times, classes, ids and generations from few values, so that all kinds of ties come up, and from
 * the ends of their ranges. */
static OrrEvent random_event(uint64_t *r) {
    static const int64_t times[] = {0, 1, 5, 1000000, INT64_MAX - 1, INT64_MAX};
    static const uint32_t ids[] = {0, 1, 7, UINT32_MAX - 1, UINT32_MAX};
    static const uint32_t generations[] = {0, 1, ORR_GENERATION_MASK};
    OrrEvent e = {draw(r, 2) ? times[draw(r, G_N_ELEMENTS(times))] : (int64_t)draw(r, 1 << 20),
                  (uint32_t)draw(r, 16) << 28 | generations[draw(r, G_N_ELEMENTS(generations))],
                  ids[draw(r, G_N_ELEMENTS(ids))]};
    return e;
}

static void test_events_come_in_the_order_of_a_searched_array(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t r = seed;
        uint32_t most = 1 + (uint32_t)draw(&r, MAX_PENDING);
        Plain p = {.n = 0};
        OrrQueue q;
        orr_queue_init(&q);
        for (int i = 0; i < 3000; i++) {
            OrrEvent e = random_event(&r);
            if (p.n == 0 || (p.n < most && draw(&r, 2)))
                push_both(&q, &p, &e);
            else
                expect_same_pop(&q, &p);
        }
        while (p.n > 0)
            expect_same_pop(&q, &p);
        assert_int_equal(q.n, 0);
        orr_queue_clear(&q);
    }
}

static void test_a_queue_of_a_million_comes_out_sorted_and_in_aligned_lines(void **state) {
    (void)state;
    OrrQueue q;
    uint64_t r = 1;
    orr_queue_init(&q);
    for (uint32_t i = 0; i < 1000000; i++)
        orr_queue_push(&q, (int64_t)draw(&r, 100000), i % 16, 0, i);
    assert_int_equal((uintptr_t)&q.heap[1] % 64, 0);
    OrrEvent last = orr_queue_pop(&q);
    for (uint32_t i = 1; i < 1000000; i++) {
        OrrEvent e = orr_queue_pop(&q);
        assert_true(plain_before(&last, &e));
        last = e;
    }
    orr_queue_clear(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_come_in_the_order_of_a_searched_array),
        cmocka_unit_test(test_a_queue_of_a_million_comes_out_sorted_and_in_aligned_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
