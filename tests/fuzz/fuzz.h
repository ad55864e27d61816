/* A fuzz target is one file with LLVMFuzzerTestOneInput: it feeds bytes to a parser and aborts on
 * what must never be. Built with driver.c it replays a corpus and mutates it; configured with
 * --enable-libfuzzer (CC=clang) it is a libFuzzer program. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For loaders that want a file: the bytes in a file of this process, ending in @suffix; g_free the
 * path. The same path each time. */
static inline char *fuzz_file(const uint8_t *data, size_t size, const char *suffix)
{
    char *path = g_strdup_printf("%s/orrery-fuzz-%s%s", g_get_tmp_dir(), g_get_prgname(), suffix);
    if (!g_file_set_contents(path, (const char *)data, (gssize)size, NULL))
        g_error("cannot write %s", path);
    return path;
}

/* A parser that failed must say why, one that succeeded must not. */
static inline void fuzz_check_error(const void *result, GError **error)
{
    g_assert((result == NULL) == (*error != NULL));
    if (*error)
        g_assert((*error)->message[0] != 0 && g_utf8_validate((*error)->message, -1, NULL));
    g_clear_error(error);
}

#endif
