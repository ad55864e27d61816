#include "config.h" /* for O_TMPFILE */

#include "sim/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/units.h"

#define BUFFER_BYTES 65536    /* ours: a write call per 64 KiB costs nothing against the disk */
#define READ_BYTES (1u << 18) /* ours */
#define GZIP_WINDOW (15 + 16) /* zlib manual, deflateInit2: largest window, gzip header */
#define GZIP_MEMORY 8         /* zlib manual, deflateInit2: default */
#define MAX_TEMP_NAMES 100    /* ours: stale names of as many killed runs with our process id */

struct OrrOut {
    char *path, *temp; /* temp NULL: no rename at the end */
    int fd;            /* -1: to text */
    bool owns_fd;
    bool is_unnamed; /* temp does not exist yet: O_TMPFILE */
    GString *text;
    bool is_gzip;
    z_stream zip;
    gsize n_buffered;
    int first_errno; /* of the first write that failed */
    char buffer[BUFFER_BYTES];
};

static void out_raw(OrrOut *out, const char *data, gsize length) {
    while (length > 0 && out->first_errno == 0) {
        gssize n = write(out->fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            out->first_errno = n < 0 ? errno : EIO;
            return;
        }
        data += n;
        length -= (gsize)n;
    }
}

static void out_zip(OrrOut *out, const char *data, gsize length, int flush) {
    char packed[BUFFER_BYTES];
    out->zip.next_in = (Bytef *)data;
    out->zip.avail_in = (uInt)length;
    do {
        out->zip.next_out = (Bytef *)packed;
        out->zip.avail_out = sizeof packed;
        int rc = deflate(&out->zip, flush);
        g_assert(rc != Z_STREAM_ERROR);
        out_raw(out, packed, sizeof packed - out->zip.avail_out);
    } while (out->zip.avail_out == 0);
}

static void out_flush(OrrOut *out) {
    if (out->is_gzip)
        out_zip(out, out->buffer, out->n_buffered, Z_NO_FLUSH);
    else
        out_raw(out, out->buffer, out->n_buffered);
    out->n_buffered = 0;
}

/* Calls @make with names beside the target until one is free; false with errno. */
static bool make_temp(OrrOut *out, bool (*make)(OrrOut *out)) {
    g_autofree char *dir = g_path_get_dirname(out->path), *base = g_path_get_basename(out->path);
    for (guint i = 0; i < MAX_TEMP_NAMES; i++) {
        g_free(out->temp);
        out->temp = g_strdup_printf("%s/.%s.%d-%u.tmp", dir, base, (int)getpid(), i);
        if (make(out))
            return true;
        if (errno != EEXIST)
            break;
    }
    int saved = errno;
    g_clear_pointer(&out->temp, g_free);
    errno = saved;
    return false;
}

static bool create_temp(OrrOut *out) {
    out->fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return out->fd >= 0;
}

/* Gives the file without a name the name temp (Linux, open(2), O_TMPFILE). */
static bool link_temp(OrrOut *out) {
    char self[64];
    g_snprintf(self, sizeof self, "/proc/self/fd/%d", out->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) == 0;
}

/* A file without a name in the target's folder: a killed run leaves nothing. */
static bool open_unnamed(OrrOut *out) {
    g_autofree char *dir = g_path_get_dirname(out->path);
    if (access("/proc/self/fd", X_OK) != 0)
        return false;
    out->fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    out->is_unnamed = out->fd >= 0;
    return out->is_unnamed;
}

/* Opens a new file for the target, with the target's permissions if there is one. */
static bool open_temp(OrrOut *out, const struct stat *old, GError **error) {
    if (!open_unnamed(out) && !make_temp(out, create_temp))
        return orr_fail_env(error, "%s: cannot write: %s", out->path, g_strerror(errno));
    out->owns_fd = true;
    if (old && fchmod(out->fd, old->st_mode & 07777) != 0)
        return orr_fail_env(error, "%s: cannot set its permissions: %s", out->path,
                            g_strerror(errno));
    return true;
}

static bool open_target(OrrOut *out, const char *path, GError **error) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return orr_fail_env(error, "%s: cannot write: it is a folder", path);
    if (exists && access(path, W_OK) != 0)
        return orr_fail_env(error, "%s: cannot write: %s", path, g_strerror(errno));
    /* /dev/stdout may be a regular file that the shell has open: it must stay that file */
    if (exists && (!S_ISREG(st.st_mode) || g_str_has_prefix(path, "/dev/"))) {
        out->path = g_strdup(path);
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
        out->owns_fd = true;
        if (out->fd < 0)
            return orr_fail_env(error, "%s: cannot write: %s", path, g_strerror(errno));
        return true;
    }
    char *real =
        exists ? realpath(path, NULL) : NULL; /* keep a symbolic link, replace its target */
    out->path = g_strdup(real ? real : path);
    free(real);
    return open_temp(out, exists ? &st : NULL, error);
}

OrrOut *orr_out_open(const char *path, GError **error) {
    g_autoptr(OrrOut) out = g_new0(OrrOut, 1);
    out->fd = -1;
    if (!path || strcmp(path, "-") == 0) {
        out->path = g_strdup("standard output");
        out->fd = STDOUT_FILENO;
        return g_steal_pointer(&out);
    }
    if (!*path) {
        orr_fail_usage(error,
                       "an output has no name; a file's, or - for standard output, would do");
        return NULL;
    }
    if (!open_target(out, path, error))
        return NULL;
    if (g_str_has_suffix(path, ".gz")) {
        int rc = deflateInit2(&out->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                              GZIP_MEMORY, Z_DEFAULT_STRATEGY);
        g_assert(rc == Z_OK);
        out->is_gzip = true;
    }
    return g_steal_pointer(&out);
}

bool orr_out_probe(const char *path, GError **error) {
    struct stat st;
    if (path && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return true;
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    return out != NULL;
}

OrrOut *orr_out_to_string(GString *text) {
    OrrOut *out = g_new0(OrrOut, 1);
    out->fd = -1;
    out->text = text;
    return out;
}

void orr_out_write(OrrOut *out, const char *data, gsize length) {
    if (out->text) {
        g_string_append_len(out->text, data, (gssize)length);
        return;
    }
    while (length > 0 && out->first_errno == 0) {
        gsize n = MIN(length, BUFFER_BYTES - out->n_buffered);
        memcpy(out->buffer + out->n_buffered, data, n);
        out->n_buffered += n;
        data += n;
        length -= n;
        if (out->n_buffered == BUFFER_BYTES)
            out_flush(out);
    }
}

void orr_out_puts(OrrOut *out, const char *text) {
    orr_out_write(out, text, strlen(text));
}

void orr_out_printf(OrrOut *out, const char *format, ...) {
    char small[512];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = g_vsnprintf(small, sizeof small, format, args);
    if (n >= 0 && (gsize)n < sizeof small) {
        orr_out_write(out, small, (gsize)n);
    } else {
        g_autofree char *large = g_strdup_vprintf(format, again);
        orr_out_puts(out, large);
    }
    va_end(again);
    va_end(args);
}

void orr_out_double(OrrOut *out, double value) {
    g_autofree char *text = orr_units_double(value);
    orr_out_puts(out, text);
}

bool orr_out_has_failed(const OrrOut *out) {
    return out->first_errno != 0;
}

/* The folder too, so that the new name survives a power cut; failure to do so is no error. */
static void sync_folder(const char *path) {
    g_autofree char *dir = g_path_get_dirname(path);
    int fd = open(dir, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

bool orr_out_commit(OrrOut *out, GError **error) {
    if (out->text)
        return true;
    out_flush(out);
    if (out->is_gzip)
        out_zip(out, NULL, 0, Z_FINISH);
    bool has_temp = out->temp || out->is_unnamed;
    if (has_temp && out->first_errno == 0 && fsync(out->fd) != 0)
        out->first_errno = errno;
    if (out->is_unnamed && out->first_errno == 0 && !make_temp(out, link_temp))
        out->first_errno = errno;
    if (out->owns_fd && close(out->fd) != 0 && out->first_errno == 0)
        out->first_errno = errno;
    out->owns_fd = false;
    if (out->temp && out->first_errno == 0 && rename(out->temp, out->path) != 0)
        out->first_errno = errno;
    if (out->first_errno != 0)
        return orr_fail_env(error, "%s: cannot write: %s", out->path, g_strerror(out->first_errno));
    if (out->temp)
        sync_folder(out->path);
    g_clear_pointer(&out->temp, g_free);
    return true;
}

void orr_out_free(OrrOut *out) {
    if (!out)
        return;
    if (out->owns_fd && out->fd >= 0)
        close(out->fd);
    if (out->temp)
        unlink(out->temp);
    if (out->is_gzip)
        deflateEnd(&out->zip);
    g_free(out->temp);
    g_free(out->path);
    g_free(out);
}

bool orr_file_write(const char *path, const char *text, GError **error) {
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    orr_out_puts(out, text);
    return orr_out_commit(out, error);
}

struct OrrFolder {
    GPtrArray *made; /* paths, those inside first */
};

OrrFolder *orr_folder_make(const char *path, GError **error) {
    if (!*path) {
        orr_fail_usage(error, "a folder has no name; one to be made would do");
        return NULL;
    }
    g_autoptr(OrrFolder) folder = g_new0(OrrFolder, 1);
    folder->made = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *at = g_strdup(path);
    while (!g_file_test(at, G_FILE_TEST_EXISTS)) {
        char *above = g_path_get_dirname(at);
        g_ptr_array_add(folder->made, at);
        at = above;
    }
    if (g_mkdir_with_parents(path, 0777) != 0) {
        orr_fail_env(error, "%s: cannot make this folder: %s", path, g_strerror(errno));
        return NULL;
    }
    return g_steal_pointer(&folder);
}

void orr_folder_free(OrrFolder *folder) {
    if (!folder)
        return;
    for (guint i = 0; i < folder->made->len; i++)
        rmdir(folder->made->pdata[i]); /* refused where something came to be in it: that stays */
    g_ptr_array_unref(folder->made);
    g_free(folder);
}

char *orr_file_sha256(const char *text, gsize length) {
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
}

/* Reads on until the end; NULL with @error. */
static GString *read_all(gzFile gz, const char *path, gsize limit_bytes, GError **error) {
    g_autoptr(GString) text = g_string_sized_new(READ_BYTES);
    for (;;) {
        gsize old = text->len;
        g_string_set_size(text, old + READ_BYTES);
        int n = gzread(gz, text->str + old, READ_BYTES);
        g_string_set_size(text, old + (gsize)MAX(n, 0));
        int rc = Z_OK;
        const char *what = gzerror(gz, &rc);
        if (n < 0 || rc == Z_BUF_ERROR) {
            orr_fail_input(error, "%s: cannot read: %s", path,
                           rc == Z_BUF_ERROR ? "the compressed file is cut short"
                           : rc == Z_ERRNO   ? g_strerror(errno)
                                             : what);
            return NULL;
        }
        if (text->len > limit_bytes) {
            g_autofree char *most = orr_units_bytes((double)limit_bytes);
            orr_fail_input(error, "%s: is larger than the %s that such a file may have", path,
                           most);
            return NULL;
        }
        if (n == 0)
            return g_steal_pointer(&text);
    }
}

char *orr_file_read(const char *path, gsize limit_bytes, gsize *length, GError **error) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
        orr_fail_input(error, "%s: cannot read: %s", path,
                       fd < 0 ? g_strerror(errno) : "it is a folder");
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    gzFile gz = gzdopen(fd, "rb");
    g_assert(gz != NULL); /* only memory can fail here, and GLib ends the program on that too */
    GString *text = read_all(gz, path, limit_bytes, error);
    gzclose(gz);
    if (!text)
        return NULL;
    if (length)
        *length = text->len;
    return g_string_free(text, FALSE);
}
