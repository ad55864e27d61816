/* A fuzz target is one file with LLVMFuzzerTestOneInput: it feeds bytes to a parser and aborts on
 * what must never be. Built with driver.c it replays a corpus and mutates it; configured with
 * --enable-libfuzzer (CC=clang) it is a libFuzzer program. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The one temporary file of this process, a key file by its name; g_free. */
static inline char *fuzz_path(void) {
    return g_strdup_printf("%s/orrery-%s-%d.ini", g_get_tmp_dir(), g_get_prgname(), (int)getpid());
}

/* For loaders that want a file: the bytes at fuzz_path; g_free. */
static inline char *fuzz_file(const uint8_t *data, size_t size) {
    char *path = fuzz_path();
    FILE *file = fopen(path, "wb"); /* no g_file_set_contents: it waits for the disk */
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        g_error("cannot write %s", path);
    return path;
}

/* A parser that failed must say why, one that succeeded must not. */
static inline void fuzz_check_error(const void *result, GError **error) {
    g_assert((result == NULL) == (*error != NULL));
    if (*error)
        g_assert((*error)->message[0] != 0 && g_utf8_validate((*error)->message, -1, NULL));
    g_clear_error(error);
}

#endif
