/* What calibration reads: the first byte says if it is a file of constants, of the runner's
 * records (for the runner and for the fit), or of shapes. Any bytes are taken or refused with a
 * reason. */
#include <math.h>
#include <string.h>

#include "calibrate/grid.h"
#include "calibrate/record_rows.h"
#include "calibrate/records.h"
#include "sim/api/calibration.h"
#include "sim/collective/constant_names.h"
#include "tests/fuzz/fuzz.h"

static const OrrDeviceFacts facts = {.device = "fake A",
                                     .driver = "1",
                                     .cuda = "12",
                                     .cublas = "12",
                                     .cudnn = "9",
                                     .nccl = "2.27",
                                     .n_gpus = 8,
                                     .n_per_node = 8};

static void read_constants(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrCalibration) c = orr_calibration_load(path, &error);
    fuzz_check_error(c, &error);
    OrrCollConstants *k = c ? c->collectives : NULL;
    const double *launch = k ? orr_coll_constant(k, "ampere.ring.Simple.launch_ns") : NULL;
    g_assert(!launch || isfinite(*launch));
}

static void read_records(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrRecords) records = orr_records_open(path, &facts, &error);
    fuzz_check_error(records, &error);
    OrrCase c = {0};
    if (records)
        orr_records_has(records, &c);
}

static void read_rows(const char *path) {
    GError *error = NULL;
    g_autoptr(OrrRecordRows) rows = orr_record_rows_new();
    orr_record_rows_is(path);
    bool is_read = orr_record_rows_add(rows, path, &error);
    fuzz_check_error(is_read ? rows : NULL, &error);
    if (!is_read)
        return;
    OrrGpu *gpu = orr_record_rows_gpu(rows, &error);
    fuzz_check_error(gpu, &error);
    if (gpu)
        orr_record_rows_judge(rows, gpu);
    orr_gpu_free(gpu);
    for (guint i = 0; i < rows->notes->len; i++)
        g_assert(g_utf8_validate(rows->notes->pdata[i], -1, NULL));
}

static void read_shapes(const char *path) {
    GError *error = NULL;
    OrrGridWish wish = {.is_full = true};
    for (int k = 0; k < ORR_N_CASE_KINDS; k++)
        wish.kinds[k] = true;
    g_autoptr(GArray) cases = g_array_new(FALSE, FALSE, sizeof(OrrCase));
    guint n_ignored;
    bool is_read = orr_grid_shapes(path, &wish, cases, &n_ignored, &error);
    fuzz_check_error(is_read ? cases : NULL, &error);
    for (guint i = 0; is_read && i < cases->len; i++) {
        g_autofree char *flaw = orr_case_flaw(&g_array_index(cases, OrrCase, i));
        g_assert(!flaw);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    g_autoptr(GString) text = g_string_new_len((const char *)data + 1, (gssize)size - 1);
    if (data[0] == 'r') { /* the header must be whole */
        g_autofree char *header = orr_records_header();
        g_string_prepend(text, "\n");
        g_string_prepend(text, header);
    }
    g_auto(FuzzFile) file = fuzz_file(text->str, text->len);
    if (data[0] == 'r') {
        read_records(file.path);
        read_rows(file.path);
    } else if (data[0] == 's')
        read_shapes(file.path);
    else
        read_constants(file.path);
    return 0;
}
