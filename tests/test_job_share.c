/* Shared clusters: cases worked out by hand, and the account of random ones. */
#include "tests/share_cases.h"

#include "sim/base/random.h"

static void test_first_come_holds_up_the_rest(void **state) {
    (void)state;
    for (OrrSharePolicy p = ORR_SHARE_FCFS; p <= ORR_SHARE_BACKFILL; p++) {
        g_autoptr(OrrShareSpec) s = cluster(p, 4);
        submit(s, 0, 16, 10);
        submit(s, 1, 32, 5); /* waits for all of it until 10 h */
        submit(s, 2, 16, 8); /* fits beside the first until then */
        submit(s, 3, 16, 9); /* would delay the second */
        OrrShareResult r[4];
        OrrShareAccount a;
        simulate(s, r, &a);
        assert_int_equal(r[1].start_ns, 10 * H);
        assert_int_equal(r[2].start_ns, p == ORR_SHARE_FCFS ? 15 * H : 2 * H);
        assert_int_equal(r[3].start_ns, 15 * H);
        assert_int_equal(r[1].waited_ns, 9 * H);
        if (p == ORR_SHARE_FCFS)
            assert_int_equal((int64_t)a.part[ORR_SHARE_SHORT], 16 * 9 * H);
    }
}

static void test_higher_priority_goes_first_or_makes_room(void **state) {
    (void)state;
    for (OrrSharePolicy p = ORR_SHARE_PRIORITY; p <= ORR_SHARE_PREEMPT; p++) {
        g_autoptr(OrrShareSpec) s = cluster(p, 2);
        OrrShareJob *low = submit(s, 0, 16, 10);
        low->is_preemptible = true;
        low->save_ns = 3 * H, low->save_takes_ns = H, low->restart_ns = H; /* no notice */
        submit(s, 1, 16, 1);
        submit(s, 2, 16, 4)->priority = 5;
        OrrShareResult r[3];
        OrrShareAccount a;
        simulate(s, r, &a);
        if (p == ORR_SHARE_PRIORITY) {
            assert_int_equal(r[2].start_ns, 13 * H); /* ten hours of work and three to save */
            assert_int_equal(r[1].start_ns, 17 * H);
            continue;
        }
        /* no checkpoint by 2 h: all of it again, and an hour to start, behind the urgent one */
        assert_int_equal(r[2].start_ns, 2 * H);
        assert_int_equal(r[0].preemptions, 1);
        assert_int_equal(r[0].end_ns, (6 + 1 + 10 + 3) * H); /* three saves of an hour */
        assert_int_equal(r[0].lost_ns, 6 * H);
        assert_int_equal(r[0].waited_ns, 4 * H);
    }
}

static void test_notice_is_time_to_save(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_PREEMPT, 2);
    s->notice_ns = H;
    OrrShareJob *low = submit(s, 0, 16, 10);
    low->is_preemptible = true;
    low->save_ns = 100 * H, low->save_takes_ns = H / 2;
    submit(s, 2, 16, 4)->priority = 5;
    OrrShareResult r[2];
    OrrShareAccount a;
    simulate(s, r, &a);
    assert_int_equal(r[1].start_ns, 5 * H / 2); /* it goes as soon as it is saved */
    assert_int_equal(r[0].lost_ns, H / 2);      /* the save itself */
    assert_int_equal(r[0].end_ns, 13 * H / 2 + 8 * H);
}

static void test_fragments_are_told_from_lack(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 4);
    for (int i = 0; i < 4; i++)
        submit(s, 0, 5, i == 3 ? 2 : 10); /* one to a node: three units left on each */
    submit(s, 1, 8, 1);                   /* 12 are free, but no whole node */
    OrrShareResult r[5];
    OrrShareAccount a;
    simulate(s, r, &a);
    assert_int_equal(r[4].start_ns, 2 * H);
    assert_int_equal((int64_t)a.part[ORR_SHARE_FRAGMENTED], 12 * H);
    assert_int_equal((int64_t)a.part[ORR_SHARE_SHORT], 0);
}

static void test_places_and_classes_are_kept(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_BACKFILL, 8);
    s->node_class = g_strsplit("a,a,a,a,b,b,b,b", ",", -1);
    submit(s, 0, 8, 10);                         /* node 0 */
    submit(s, 0, 16, 1)->place = ORR_PLACE_RACK; /* a whole rack */
    OrrShareJob *b = submit(s, 0, 32, 1);
    b->selector = (g_free(b->selector), g_strdup("b"));
    submit(s, 0, 40, 1); /* over racks, once there is room */
    OrrShareResult r[4];
    OrrShareAccount a;
    simulate(s, r, &a);
    assert_int_equal(r[1].racks, 1);
    assert_int_equal(r[2].start_ns, 0);
    assert_int_equal(r[2].racks, 2);
    assert_int_equal(r[3].start_ns, H);
    assert_true(r[3].racks >= 3);
    g_autoptr(GError) error = NULL;
    s->jobs[1].gpus = 24;
    assert_false(orr_share_check(s, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
}

static void test_slices_share_a_gpu_and_are_slower(void **state) {
    (void)state;
    g_autoptr(OrrShareSpec) s = cluster(ORR_SHARE_FCFS, 1);
    s->slices_per_gpu = 7, s->gpus_per_node = 1, s->slice_slow_frac = 0.1;
    for (int i = 0; i < 4; i++) {
        OrrShareJob *j = submit(s, 0, 0, 2);
        j->slices = 2, j->limit_ns = 100 * H; /* 2 of 7: three beside each other */
    }
    OrrShareResult r[4];
    OrrShareAccount a;
    simulate(s, r, &a);
    assert_int_equal(r[2].start_ns, 0);
    assert_near((double)r[0].end_ns, 2 * H * 3.5 * 1.1, 1e-9);
    assert_int_equal(r[3].start_ns, r[0].end_ns);
}

static void test_random_clusters_add_up_and_policies_end_all_jobs(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 120; n++) {
        OrrRandom x = orr_random(n, "share");
        g_autoptr(OrrShareSpec) s = cluster((OrrSharePolicy)(n % ORR_N_SHARE_POLICIES), 8);
        s->slices_per_gpu = n % 3 == 0 ? 7 : 1;
        s->notice_ns = (int64_t)(n % 2) * H / 10;
        for (uint64_t i = 0; i < 40; i++) {
            OrrShareJob *j = submit(s, (int64_t)orr_random_below(x, i, 0, 30), 1,
                                    1 + (int64_t)orr_random_below(x, i, 1, 12));
            j->gpus = 1 + (uint32_t)orr_random_below(x, i, 2, 40);
            if (s->slices_per_gpu > 1 && i % 4 == 0)
                j->gpus = 0, j->slices = 1 + (uint32_t)orr_random_below(x, i, 3, 7);
            j->limit_ns =
                j->work_ns * (1 + (int64_t)orr_random_below(x, i, 4, 3)) * (j->gpus ? 1 : 7);
            j->priority = (int32_t)orr_random_below(x, i, 5, 4);
            j->is_preemptible = i % 3 > 0;
            j->save_ns = i % 2 ? H : 0, j->save_takes_ns = H / 20, j->restart_ns = H / 30;
            j->place = j->gpus > 0 && j->gpus <= 16 ? (OrrPlace)(i % 3) : ORR_PLACE_ANY;
        }
        OrrShareResult r[40], again[40];
        OrrShareAccount a, b;
        simulate(s, r, &a);
        simulate(s, again, &b);
        assert_memory_equal(&a, &b, sizeof a);
        for (int i = 0; i < 40; i++) {
            assert_int_equal(r[i].end_ns, again[i].end_ns);
            assert_true(r[i].start_ns >= s->jobs[i].submit_ns && r[i].end_ns > r[i].start_ns);
            if (s->policy != ORR_SHARE_PREEMPT)
                assert_int_equal(r[i].preemptions, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_come_holds_up_the_rest),
        cmocka_unit_test(test_higher_priority_goes_first_or_makes_room),
        cmocka_unit_test(test_notice_is_time_to_save),
        cmocka_unit_test(test_fragments_are_told_from_lack),
        cmocka_unit_test(test_places_and_classes_are_kept),
        cmocka_unit_test(test_slices_share_a_gpu_and_are_slower),
        cmocka_unit_test(test_random_clusters_add_up_and_policies_end_all_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
