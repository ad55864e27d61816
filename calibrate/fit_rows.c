/* Reads measured kernel rows. Source of the rows: performance tables of ai-dynamo/aiconfigurator
 * (Apache-2.0), snapshot of August 2026, reduced to training shapes. */
#include "calibrate/fit_rows.h"

#include <string.h>

#define HOLD_OUT_ONE_IN 5 /* as the tables themselves leave out */
#define RARE_WEIGHT 0.2   /* small shapes: kept so that the edge is sane, not to steer the middle */
#define JUDGED_SIDE 512.0 /* residual goals hold for m, n, k from here */
#define JUDGED_FLOPS 2e10 /* attention: about 50 us and more on the fastest GPU here */

/* Which shapes a trial fit leaves out: a hash (splitmix64, Steele et al. 2014) of two sides. */
static bool is_held_out(double a, double b) {
    uint64_t x = (uint64_t)a * 0x9E3779B97F4A7C15u + (uint64_t)b;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (x ^ x >> 31) % HOLD_OUT_ONE_IN == 0;
}

static bool is_number(const char *text, double *value) {
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    return end != text && *g_strchug(end) == '\0' && *value > 0.0 && *value < 1e12;
}

static void push(GArray *rows, const FitRow *row) {
    g_array_append_vals(rows, row, 1);
}

typedef struct {
    const char *key[2]; /* leading columns that a row must match; NULL: one column only */
    uint32_t n_keys, n_numbers;
    double operand_bytes;
    bool (*make)(const double *v, double operand_bytes, FitRow *row);
} Reader;

static bool read_lines(const char *path, const Reader *reader, FitRows *out, GError **error) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return false;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(FitRow));
    bool ok = true;
    for (uint32_t i = 1; ok && lines[0] && lines[i]; i++) {
        if (!*lines[i])
            continue;
        g_auto(GStrv) cell = g_strsplit(g_strchomp(lines[i]), ",", -1);
        double value[8] = {0};
        ok = g_strv_length(cell) == reader->n_keys + reader->n_numbers;
        for (uint32_t c = 0; ok && c < reader->n_numbers; c++)
            ok = is_number(cell[reader->n_keys + c], &value[c]);
        if (!ok) {
            orr_fail_input(error, "%s:%u: '%s': expected %u names and %u positive numbers", path,
                           i + 1, lines[i], reader->n_keys, reader->n_numbers);
            break;
        }
        bool is_wanted = true;
        for (uint32_t c = 0; c < reader->n_keys; c++)
            is_wanted = is_wanted && !strcmp(cell[c], reader->key[c]);
        FitRow row = {0};
        if (is_wanted && reader->make(value, reader->operand_bytes, &row))
            push(rows, &row);
    }
    out->n_rows = rows->len;
    out->rows = (FitRow *)(void *)g_array_free(rows, FALSE);
    return ok;
}

static bool make_gemm(const double *v, double operand_bytes, FitRow *row) {
    row->gemm = (OrrGemmShape){
        .m = v[0], .n = v[1], .k = v[2], .batch = 1.0, .operand_bytes = operand_bytes};
    row->gemm.bytes = orr_form_gemm_bytes(&row->gemm);
    row->ns = v[3] * 1e3;
    row->is_judged = v[0] >= JUDGED_SIDE && v[1] >= JUDGED_SIDE && v[2] >= JUDGED_SIDE;
    row->weight = row->is_judged ? 1.0 : RARE_WEIGHT;
    row->is_held_out = is_held_out(v[1], v[2]);
    return true;
}

/* 128-block FP8: rows with m off a multiple of 4 take a padding copy in that stack. */
static bool make_gemm_aligned(const double *v, double operand_bytes, FitRow *row) {
    return (int64_t)v[0] % 4 == 0 && make_gemm(v, operand_bytes, row);
}

static bool make_attn(const double *v, double operand_bytes, FitRow *row) {
    row->attn = (OrrAttnShape){.batch = v[0],
                               .m = v[1],
                               .n = v[1],
                               .heads = v[2],
                               .kv_heads = v[3],
                               .dim_qk = v[4],
                               .dim_v = v[4],
                               .visited_frac = 1.0};
    row->attn.bytes = orr_form_attn_bytes(&row->attn, operand_bytes);
    row->ns = v[5] * 1e3;
    row->is_held_out = is_held_out(v[1] * 512.0 + v[4], v[0] * v[2]);
    return v[1] >= 16.0; /* single tokens are inference */
}

static void finish_attn(FitRows *rows, bool is_causal) {
    for (uint32_t i = 0; i < rows->n_rows; i++) {
        FitRow *row = &rows->rows[i];
        row->attn.is_causal = is_causal;
        row->is_judged = orr_form_attn_flops(&row->attn) >= JUDGED_FLOPS;
        row->weight = row->is_judged ? 1.0 : RARE_WEIGHT;
    }
}

bool fit_rows_gemm(const char *path, const char *dtype, double operand_bytes, FitRows *out,
                   GError **error) {
    Reader reader = {.key = {dtype},
                     .n_keys = 1,
                     .n_numbers = 4,
                     .operand_bytes = operand_bytes,
                     .make = strcmp(dtype, "fp8_block") ? make_gemm : make_gemm_aligned};
    return read_lines(path, &reader, out, error);
}

bool fit_rows_attn(const char *path, const char *mask, const char *dtype, double operand_bytes,
                   FitRows *out, GError **error) {
    Reader reader = {.key = {mask, dtype},
                     .n_keys = 2,
                     .n_numbers = 6,
                     .operand_bytes = operand_bytes,
                     .make = make_attn};
    bool ok = read_lines(path, &reader, out, error);
    finish_attn(out, !strcmp(mask, "causal"));
    return ok;
}
