/* A fuzz target is one file with LLVMFuzzerTestOneInput: it feeds bytes to a parser and aborts on
 * what must never be. Built with driver.c it replays a corpus and mutates it; configured with
 * --enable-libfuzzer (CC=clang) it is a libFuzzer program. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For loaders that want a file: bytes in one that lies in memory alone. */
typedef struct {
    int fd;
    char path[32];
} FuzzFile;

static inline FuzzFile fuzz_file(const void *data, size_t size) {
    FuzzFile file = {.fd = (int)syscall(SYS_memfd_create, "fuzz", 0)};
    if (file.fd < 0 || write(file.fd, data, size) != (ssize_t)size)
        g_error("no memory for a file");
    g_snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static inline void fuzz_file_clear(FuzzFile *file) {
    close(file->fd);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(FuzzFile, fuzz_file_clear)

/* Whether [@group] stands in the text. */
static inline bool fuzz_has_group(const void *data, size_t size, const char *group) {
    return g_strstr_len(data, (gssize)size, group) != NULL;
}

/* A parser that failed must say why, one that succeeded must not. */
static inline void fuzz_check_error(const void *result, GError **error) {
    g_assert((result == NULL) == (*error != NULL));
    if (*error)
        g_assert((*error)->message[0] != 0 && g_utf8_validate((*error)->message, -1, NULL));
    g_clear_error(error);
}

#endif
