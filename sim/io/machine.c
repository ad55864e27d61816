#include "sim/io/machine.h"

#include <string.h>

guint64 orr_machine_parse_available(const char *text) {
    const char *key = "MemAvailable:", *at = strstr(text, key);
    if (!at)
        return 0;
    char *end;
    guint64 kib = g_ascii_strtoull(at + strlen(key), &end, 10);
    return g_str_has_prefix(end, " kB") ? kib * 1024 : 0;
}

guint64 orr_machine_available_bytes(void) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL))
        return 0;
    return orr_machine_parse_available(text);
}
