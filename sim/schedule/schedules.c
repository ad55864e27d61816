/* The table of schedules and the names that frameworks use for them. */
#include "sim/schedule/schedules.h"

#include <glib.h>

/* One line a schedule. */
#define SCHEDULES(X)                                                                               \
    X(naive)                                                                                       \
    X(gpipe)                                                                                       \
    X(1f1b)                                                                                        \
    X(interleaved)                                                                                 \
    X(interleaved_padded)                                                                          \
    X(zb_h1)

#define DECLARE(name) extern const OrrSchedule orr_schedule_##name;
SCHEDULES(DECLARE)

#define ENTRY(name) &orr_schedule_##name,
const OrrSchedule *const orr_schedules[] = {SCHEDULES(ENTRY) NULL};

static const struct {
    const char *alias, *name;
} aliases[] = {
    {"PipeDream-flush", "1f1b"},                /* Narayanan et al. 2021 */
    {"Schedule1F1B", "1f1b"},                   /* torch.distributed.pipelining */
    {"non_interleaved", "1f1b"},                /* Megatron: no virtual stages */
    {"ScheduleGPipe", "gpipe"},                 /* torch.distributed.pipelining */
    {"1f1b-i", "interleaved"},                  /* Qi et al. 2023 */
    {"interleaved_1f1b", "interleaved"},        /* Megatron's words */
    {"Interleaved1F1B", "interleaved"},         /* torchtitan */
    {"ScheduleInterleaved1F1B", "interleaved"}, /* torch.distributed.pipelining */
    {"zb-h1", "zb_h1"},                         /* Qi et al. 2023 */
};

static const OrrSchedule *by_name(const char *name) {
    for (const OrrSchedule *const *s = orr_schedules; *s != NULL; s++)
        if (g_ascii_strcasecmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}

const OrrSchedule *orr_schedule_find(const char *name, GError **error) {
    const OrrSchedule *found = by_name(name);
    for (size_t i = 0; found == NULL && i < G_N_ELEMENTS(aliases); i++)
        if (g_ascii_strcasecmp(aliases[i].alias, name) == 0)
            found = by_name(aliases[i].name);
    if (found != NULL)
        return found;
    g_autoptr(GString) names = g_string_new(NULL);
    for (const OrrSchedule *const *s = orr_schedules; *s != NULL; s++)
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", (*s)->name);
    orr_fail_input(error,
                   "no schedule is named '%s'; %s, or a custom order from a CSV file, would do",
                   name, names->str);
    return NULL;
}
