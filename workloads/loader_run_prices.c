/* Files of prices. Units of money are read here: nothing else knows them. */
#include "workloads/loader_run.h"

#include "workloads/loader_priv.h"

#include <math.h>
#include <string.h>

#define HOURS_PER_MONTH (365.25 * 24 / 12) /* Julian year */

/* @text is a number and exactly that unit. */
static double money(OrrKeys *keys, const char *group, const char *key, const char *unit,
                    double fallback) {
    const char *text = orr_keys_string(keys, group, key, "", ORR_KEY_QUIET), *rest;
    if (*text == '\0')
        return fallback;
    double value;
    g_autoptr(GError) flaw = NULL;
    if (!orr_units_split(text, &value, &rest, &flaw))
        orr_keys_complain(keys, group, key, "%s; a number with the unit %s would do", flaw->message,
                          unit);
    else if (strcmp(rest, unit) != 0)
        orr_keys_complain(keys, group, key, "a number with the unit %s would do", unit);
    else if (value < 0)
        orr_keys_complain(keys, group, key, "is below 0; 0 %s or more would do", unit);
    else
        return value;
    return fallback;
}

static void read_rented(OrrKeys *keys, OrrPrices *p) {
    p->usd_per_gpu_h[ORR_CONTRACT_ON_DEMAND] = money(keys, "rented", "on_demand", "USD/GPU-h", NAN);
    p->usd_per_gpu_h[ORR_CONTRACT_RESERVED] = money(keys, "rented", "reserved", "USD/GPU-h", NAN);
    p->usd_per_gpu_h[ORR_CONTRACT_SPOT] = money(keys, "rented", "spot", "USD/GPU-h", NAN);
    p->reclaim_node_h =
        orr_keys_number(keys, "rented", "reclaim_mtbf", ORR_DIM_TIME, 0, 1e24, 0, ORR_KEY_QUIET) /
        3600e9;
    p->reclaim_notice_ns = (int64_t)orr_keys_number(keys, "rented", "reclaim_notice", ORR_DIM_TIME,
                                                    0, 1e15, 0, ORR_KEY_QUIET);
    p->reclaim_wait_ns = (int64_t)orr_keys_number(keys, "rented", "reclaim_wait", ORR_DIM_TIME, 0,
                                                  1e17, 0, ORR_KEY_QUIET);
}

static void read_owned(OrrKeys *keys, OrrPrices *p) {
    const char *g = "owned";
    p->node_usd = money(keys, g, "node", "USD", 0);
    p->network_usd = money(keys, g, "network", "USD", 0);
    p->storage_usd = money(keys, g, "storage", "USD", 0);
    p->facility_usd = money(keys, g, "facility", "USD", 0);
    p->life_h = orr_keys_number(keys, g, "life", ORR_DIM_TIME, 3600e9, 1e19, 4 * 365.25 * 86400e9,
                                ORR_KEY_OPTIONAL) /
                3600e9;
    p->residual_frac =
        orr_keys_number(keys, g, "residual", ORR_DIM_FRACTION, 0, 1, 0, ORR_KEY_OPTIONAL);
    p->utilisation_frac =
        orr_keys_number(keys, g, "utilisation", ORR_DIM_FRACTION, 0.01, 1, 1, ORR_KEY_OPTIONAL);
    p->people_usd_per_h = money(keys, g, "people", "USD/h", 0);
    p->usd_per_kwh = money(keys, g, "electricity", "USD/kWh", 0);
}

/* "2026-05" or "2026-05-31": prices age, so when they were asked is no free text. */
static char *read_date(OrrKeys *keys) {
    const char *text = orr_keys_string(keys, "prices", "date", "", ORR_KEY_REQUIRED);
    g_autofree char *whole = g_strconcat(text, strlen(text) == 7 ? "-01" : "", NULL);
    g_auto(GStrv) parts = g_strsplit(whole, "-", -1);
    guint64 value[3] = {0};
    static const gsize digits[3] = {4, 2, 2};
    bool is_fine = g_strv_length(parts) == 3;
    for (guint i = 0; is_fine && i < 3; i++)
        is_fine = strlen(parts[i]) == digits[i] &&
                  g_ascii_string_to_unsigned(parts[i], 10, 0, 9999, &value[i], NULL);
    if (*text && !(is_fine && value[0] > 0 &&
                   g_date_valid_dmy((GDateDay)value[2], (GDateMonth)value[1], (GDateYear)value[0])))
        orr_keys_complain(keys, "prices", "date", "is no date; 2026-05 or 2026-05-31 would do");
    return g_strdup(text);
}

OrrPrices *orr_workload_prices(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                               OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = orr_workloads__open("prices", ref, sources, error);
    if (!keys)
        return NULL;
    for (uint32_t i = 0; i < n_overrides; i++)
        if (orr_keys_has_group(keys, overrides[i].group))
            orr_keys_override(keys, overrides[i].group, overrides[i].key, overrides[i].value,
                              "--set");
    g_autoptr(OrrPrices) p = orr_prices_new();
    p->name = orr_workloads__stem(orr_keys_name(keys));
    p->summary = g_strdup(orr_keys_string(keys, "prices", "summary", "", ORR_KEY_QUIET));
    p->source = g_strdup(orr_keys_string(keys, "prices", "source", "", ORR_KEY_REQUIRED));
    p->date = read_date(keys);
    p->node_gpus = (double)orr_keys_int(keys, "prices", "gpus_per_node", "GPUs", 1, 1 << 16, 8,
                                        ORR_KEY_OPTIONAL);
    read_rented(keys, p);
    read_owned(keys, p);
    p->node_watts =
        orr_keys_number(keys, "energy", "node", ORR_DIM_POWER, 0, 1e7, 0, ORR_KEY_QUIET);
    p->idle_frac =
        orr_keys_number(keys, "energy", "idle", ORR_DIM_FRACTION, 0, 1, 0, ORR_KEY_OPTIONAL);
    p->pue = orr_keys_number(keys, "energy", "pue", ORR_DIM_NONE, 1, 5, 1, ORR_KEY_OPTIONAL);
    p->carbon_kg_per_kwh = money(keys, "energy", "carbon", "kg/kWh", 0);
    p->usd_per_byte_h = money(keys, "storage", "kept", "USD/GB-month", 0) / 1e9 / HOURS_PER_MONTH;
    p->egress_usd_per_byte = money(keys, "storage", "egress", "USD/GB", 0) / 1e9;
    if (!orr_keys_finish(keys, error))
        return NULL;
    if (sources)
        orr_workloads__note_defaults(sources, keys, NULL, "default of price files");
    return g_steal_pointer(&p);
}
