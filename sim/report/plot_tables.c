/* Tables for plots. Owners are grouped, since nobody tells thirty colours apart; the report has
 * them all. */
#include "sim/report/plot_tables.h"

#include "sim/io/csv.h"

typedef enum {
    GEMMS,
    ATTENTION,
    STREAMED,
    OPTIMIZER,
    INTERFERENCE,
    BUBBLE,
    EXPOSED_TP,
    EXPOSED_DP,
    EXPOSED_OTHER,
    STRAGGLER,
    HOST,
    DATA,
    STEP_END,
    N_COLUMNS
} Column;

static const char *const column_names[N_COLUMNS] = {
    "matrix products",      "attention",
    "memory-bound kernels", "optimizer and gradients",
    "interference",         "pipeline bubble",
    "exposed TP",           "exposed DP",
    "other exposed",        "waiting for a later rank",
    "host not ready",       "waiting for input",
    "end of step elsewhere"};

/* Owners that are not named here: kernels are memory-bound, exposed communication is other. */
static const struct {
    int owner;
    Column column;
} places[] = {
    {ORR_K_GEMM, GEMMS},
    {ORR_K_GROUPED_GEMM, GEMMS},
    {ORR_K_ATTENTION, ATTENTION},
    {ORR_K_BATCHED_GEMM, ATTENTION},
    {ORR_K_SOFTMAX, ATTENTION},
    {ORR_K_OPTIMIZER, OPTIMIZER},
    {ORR_K_GRADIENT, OPTIMIZER},
    {ORR_OWN_INTERFERENCE, INTERFERENCE},
    {ORR_OWN_BUBBLE, BUBBLE},
    {ORR_OWN_EXPOSED_FIRST + ORR_COMM_TP, EXPOSED_TP},
    {ORR_OWN_EXPOSED_FIRST + ORR_COMM_SP, EXPOSED_TP},
    {ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_GRADIENT, EXPOSED_DP},
    {ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_PARAMETER, EXPOSED_DP},
    {ORR_OWN_STRAGGLER, STRAGGLER},
    {ORR_OWN_HOST, HOST},
    {ORR_OWN_DATA, DATA},
    {ORR_OWN_STEP_END, STEP_END},
};

static Column column_of(int owner) {
    for (guint i = 0; i < G_N_ELEMENTS(places); i++)
        if (places[i].owner == owner)
            return places[i].column;
    return owner < ORR_N_KERNEL_KINDS ? STREAMED : EXPOSED_OTHER;
}

static void account_row(OrrCsvWriter *w, const char *name, const int64_t *account_ns) {
    int64_t sums[N_COLUMNS] = {0};
    for (int o = 0; o < ORR_N_OWNERS; o++)
        sums[column_of(o)] += account_ns[o];
    orr_csv_put(w, name);
    for (int c = 0; c < N_COLUMNS; c++)
        orr_csv_put_double(w, (double)sums[c] * 1e-6);
    orr_csv_end_row(w);
}

void orr_report_account_table(const OrrRecord *r, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    orr_csv_put(&w, "stage");
    for (int c = 0; c < N_COLUMNS; c++)
        orr_csv_put(&w, column_names[c]);
    orr_csv_end_row(&w);
    account_row(&w, "mean", r->time_account_ns);
    for (uint32_t s = 0; s < r->n_stages; s++) {
        g_autofree char *name = g_strdup_printf("%u", r->stages[s].stage);
        account_row(&w, name, r->stages[s].account_ns);
    }
}

void orr_report_memory_table(const OrrRecord *r, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {"stage",     "capacity",  "peak",        "weights",
                                         "gradients", "optimizer", "activations", "logits",
                                         "buffers",   "allocator", "context",     NULL};
    orr_csv_put_row(&w, header);
    for (uint32_t s = 0; s < r->n_stages; s++) {
        const OrrRecordStage *g = &r->stages[s];
        orr_csv_put_int(&w, g->stage);
        orr_csv_put_double(&w, (double)r->capacity_bytes / 0x1p30);
        orr_csv_put_double(&w, (double)g->peak_bytes / 0x1p30);
        for (int m = 0; m < ORR_N_MEM_KINDS; m++)
            orr_csv_put_double(&w, (double)g->mem_bytes[m] / 0x1p30);
        orr_csv_end_row(&w);
    }
}
