/* Every shipped run, and the answers that they are there for. Slow: make check-long. */
#include "tests/near.h"

#include "sim/api/run.h"
#include "sim/io/csv.h"
#include "sim/job/formula.h"

#include <string.h>

static OrrRun *run_of(OrrRunRequest *q, const char *name, uint32_t seeds) {
    *q = (OrrRunRequest){.run = name, .n_seeds = seeds};
    g_autoptr(GError) error = NULL;
    OrrRun *run = orr_run_prepare(q, &error);
    if (!run || !orr_run_execute(run, NULL, NULL, NULL, &error))
        fail_msg("%s: %s", name, error->message);
    return run;
}

static double figure(const OrrRun *run, const char *name) {
    return orr_run_record_figure(orr_run_record(run), name)->mean;
}

static void test_every_shipped_run_ends_and_adds_up(void **state) {
    (void)state;
    g_autoptr(GPtrArray) runs = orr_run_list("runs", NULL);
    assert_true(runs->len >= 15);
    for (guint i = 0; i < runs->len; i++) {
        const OrrListed *l = runs->pdata[i];
        OrrRunRequest q;
        g_autoptr(OrrRun) run = run_of(&q, l->name, 3); /* execute checks each account */
        for (int s = 0; s < 3; s++) {
            const OrrRunSeed *seed = &orr_run_record(run)->seeds[s];
            if (orr_run_spec(run)->length_ns > 0)
                assert_int_equal(seed->wall_ns, orr_run_spec(run)->length_ns);
            else
                assert_true(seed->is_done);
        }
    }
}

/* 70 B on 500 B tokens: twice the GPUs are nearly half the days; what is lost is simulated. */
static void test_days_fall_and_gpu_hours_rise_with_gpus(void **state) {
    (void)state;
    static const uint32_t sizes[] = {32, 64, 128, 256, 512, 1024};
    double days[6], gpu_hours[6], mfu[6];
    for (guint i = 0; i < 6; i++) {
        g_autofree char *name = g_strdup_printf("llama70b-500b-%u", sizes[i]);
        OrrRunRequest q;
        g_autoptr(OrrRun) run = run_of(&q, name, 40);
        days[i] = figure(run, "wall_ns") / 86400e9;
        gpu_hours[i] = figure(run, "gpu_hours");
        mfu[i] = orr_run_record(run)->mfu_frac;
        assert_near(figure(run, "cost_usd"), gpu_hours[i] * 3, 0.02);
    }
    for (guint i = 1; i < 6; i++) {
        assert_true(days[i] < days[i - 1] * 0.56 && days[i] > days[i - 1] * 0.49);
        assert_true(gpu_hours[i] > gpu_hours[i - 1]);
        assert_true(mfu[i] <= mfu[i - 1] * 1.001);
    }
    assert_true(gpu_hours[5] < gpu_hours[0] * 1.2); /* 32 times the GPUs at five sixths or more */
}

/* Rows J030 to J035: rates per thousand node-days and the MTTF that they project. */
static void test_fleet_mttf_is_the_published_projection(void **state) {
    (void)state;
    const char *folder = g_getenv("ORRERY_SHARED"), *top = g_getenv("top_srcdir");
    g_autofree char *beside = g_build_filename(top ? top : ".", "..", "shared", NULL);
    g_autofree char *path =
        g_build_filename(folder ? folder : beside, "published", "J_reliability.csv", NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        skip();
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    int gpus = orr_csv_column(csv, "gpus"), metric = orr_csv_column(csv, "metric");
    int value = orr_csv_column(csv, "value");
    guint seen = 0;
    g_autoptr(OrrFailureSet) set = orr_workload_failures("meta-rsc1", NULL, 0, NULL, NULL);
    for (guint i = 0; i < orr_csv_n_rows(csv); i++) {
        if (strcmp(orr_csv_cell(csv, i, metric), "projected MTTF") != 0)
            continue;
        double n, hours;
        assert_true(orr_csv_number(csv, i, gpus, 1, 1e9, &n, NULL));
        assert_true(orr_csv_number(csv, i, value, 0, 1e9, &hours, NULL));
        assert_near(set->kinds[0].mean_ns / 3600e9 / (n / 8), hours, 0.03); /* printed to 0.01 h */
        seen++;
    }
    assert_int_equal(seen, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shipped_run_ends_and_adds_up),
        cmocka_unit_test(test_days_fall_and_gpu_hours_rise_with_gpus),
        cmocka_unit_test(test_fleet_mttf_is_the_published_projection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
