/* Numbers and names of the text report as people read them. */
#include "sim/report/report_priv.h"

#include "sim/base/units.h"

#include <math.h>
#include <string.h>

OrrFixed orr_report__fixed(double value, int decimals) {
    static const char *const formats[] = {"%.0f", "%.1f", "%.2f", "%.3f", "%.4f"};
    OrrFixed f;
    g_ascii_formatd(f.text, sizeof f.text, formats[decimals], value);
    return f;
}

static OrrFixed with_unit(double value, int decimals, const char *unit) {
    OrrFixed f = orr_report__fixed(value, decimals);
    g_strlcat(f.text, " ", sizeof f.text);
    g_strlcat(f.text, unit, sizeof f.text);
    return f;
}

OrrFixed orr_report__percent(double frac) {
    return with_unit(frac * 100, 1, "%");
}

OrrFixed orr_report__time(double ns) {
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    int u = 0;
    while (u < 3 && fabs(ns) < units[u].ns)
        u++;
    double v = ns / units[u].ns;
    int decimals = u == 3 ? 0 : v >= 100 ? 1 : v >= 10 ? 2 : 3;
    return with_unit(v, decimals, units[u].name);
}

OrrFixed orr_report__gib(double bytes) {
    return with_unit(bytes / 0x1p30, 2, "GiB");
}

OrrFixed orr_report__count(double n) {
    OrrFixed f;
    g_autofree char *text = orr_units_count(n);
    g_strlcpy(f.text, text, sizeof f.text);
    return f;
}

static const char *const comm_words[ORR_N_COMM_KINDS] = {
    [ORR_COMM_TP] = "TP",
    [ORR_COMM_SP] = "SP",
    [ORR_COMM_CP] = "CP",
    [ORR_COMM_EP] = "EP",
    [ORR_COMM_PP] = "PP send",
    [ORR_COMM_DP_GRADIENT] = "DP gradient",
    [ORR_COMM_DP_PARAMETER] = "DP parameter",
    [ORR_COMM_EMBEDDING] = "tied embedding",
    [ORR_COMM_STEP_END] = "step end",
};

static const char *const owner_words[ORR_N_OWNERS] = {
    [ORR_K_GEMM] = "matrix products",
    [ORR_K_GROUPED_GEMM] = "grouped matrix products",
    [ORR_K_ATTENTION] = "attention (fused)",
    [ORR_K_BATCHED_GEMM] = "attention products",
    [ORR_K_SOFTMAX] = "softmax",
    [ORR_K_NORM] = "norms",
    [ORR_K_ROTARY] = "rotary",
    [ORR_K_ACTIVATION] = "activation",
    [ORR_K_RESIDUAL] = "residual",
    [ORR_K_DROPOUT] = "dropout",
    [ORR_K_EMBEDDING] = "embedding",
    [ORR_K_CROSS_ENTROPY] = "cross entropy",
    [ORR_K_ROUTER] = "router",
    [ORR_K_PERMUTE] = "permutation",
    [ORR_K_CAST] = "casts",
    [ORR_K_COPY] = "copies",
    [ORR_K_GRADIENT] = "gradient upkeep",
    [ORR_K_OPTIMIZER] = "optimizer",
    [ORR_OWN_INTERFERENCE] = "interference",
    [ORR_OWN_BUBBLE] = "pipeline bubble",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_TP] = "exposed TP",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_SP] = "exposed SP",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_CP] = "exposed CP",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_EP] = "exposed EP",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_PP] = "exposed PP send",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_GRADIENT] = "exposed DP gradient",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_PARAMETER] = "exposed DP parameter",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_EMBEDDING] = "exposed tied embedding",
    [ORR_OWN_EXPOSED_FIRST + ORR_COMM_STEP_END] = "exposed step-end sync",
    [ORR_OWN_STRAGGLER] = "waiting for a later rank",
    [ORR_OWN_HOST] = "host not ready",
    [ORR_OWN_DATA] = "waiting for input",
    [ORR_OWN_STEP_END] = "end of step elsewhere",
};

const char *orr_report__owner_words(OrrOwner owner) {
    return owner_words[owner];
}

OrrFixed orr_report__path_words(uint32_t p) {
    OrrFixed f;
    if (p < ORR_PATH_INTERFERENCE)
        g_strlcpy(f.text, owner_words[p], sizeof f.text);
    else if (p == ORR_PATH_INTERFERENCE || p >= ORR_PATH_HOST)
        g_strlcpy(f.text, p == ORR_PATH_HOST ? "host" : orr_path_owner_name(p), sizeof f.text);
    else if (p < ORR_PATH_LATENCY_FIRST)
        g_snprintf(f.text, sizeof f.text, "%s transfer", comm_words[p - ORR_PATH_TRANSFER_FIRST]);
    else
        g_snprintf(f.text, sizeof f.text, "%s latency", comm_words[p - ORR_PATH_LATENCY_FIRST]);
    return f;
}

const char *orr_report__mem_words(OrrMemKind kind) {
    static const char *const words[ORR_N_MEM_KINDS] = {"weights", "grads", "optim", "activ",
                                                       "logits",  "comm",  "cached", "context"};
    return words[kind];
}

void orr_report__wrap(OrrOut *out, const char *first, const char *text) {
    g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);
    gsize indent = strlen(first), column = indent;
    orr_out_puts(out, first);
    for (guint i = 0; words[i]; i++) {
        gsize n = strlen(words[i]);
        if (n == 0)
            continue;
        bool has_percent = words[i + 1] && words[i + 1][0] == '%';
        if (has_percent) /* a number stays with its sign */
            n += 1 + strlen(words[i + 1]);
        if (column > indent && column + 1 + n > ORR_REPORT_COLUMNS) {
            orr_out_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        orr_out_printf(out, "%s%s%s%s", column > indent ? " " : "", words[i],
                       has_percent ? " " : "", has_percent ? words[i + 1] : "");
        column += n + (column > indent);
        i += has_percent;
    }
    orr_out_puts(out, "\n");
}
