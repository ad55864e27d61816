#include "sim/io/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/io/file.h"

#define HEAD "orrery-journal 1 "
#define LIMIT_BYTES ((gsize)1 << 32) /* ours: a million seeds are a gigabyte */
#define SUM_DIGITS 8                 /* CRC-32 in hexadecimal */

struct OrrJournal {
    char *path;
    int fd;
    off_t end; /* of the last whole line */
    GPtrArray *lines;
};

void orr_journal_free(OrrJournal *j) {
    if (!j)
        return;
    if (j->fd >= 0) {
        fsync(j->fd);
        close(j->fd);
    }
    g_ptr_array_unref(j->lines);
    g_free(j->path);
    g_free(j);
}

guint orr_journal_n_lines(const OrrJournal *j) {
    return j->lines->len;
}

const char *orr_journal_line(const OrrJournal *j, guint i) {
    return j->lines->pdata[i];
}

static guint32 sum_of(const char *line, gsize length) {
    return (guint32)crc32(0, (const Bytef *)line, (uInt)length);
}

/* A line behind its sum: "1a2b3c4d text". */
static bool is_whole(const char *line, gsize length) {
    if (length < SUM_DIGITS + 1 || line[SUM_DIGITS] != ' ')
        return false;
    char sum[SUM_DIGITS + 1];
    g_snprintf(sum, sizeof sum, "%08x", sum_of(line + SUM_DIGITS + 1, length - SUM_DIGITS - 1));
    return memcmp(sum, line, SUM_DIGITS) == 0;
}

/* Lines up to the first that is not whole, which must be the last thing in the file. */
static bool read_lines(OrrJournal *j, const char *text, gsize length, GError **error) {
    const char *at = memchr(text, '\n', length), *end = text + length;
    for (at = at + 1; at < end;) {
        const char *stop = memchr(at, '\n', (gsize)(end - at));
        if (!stop || !is_whole(at, (gsize)(stop - at))) {
            if (stop && stop + 1 < end)
                return orr_fail_input(error,
                                      "%s: line %u is damaged; delete the file to begin anew",
                                      j->path, j->lines->len + 2);
            break;
        }
        g_ptr_array_add(j->lines,
                        g_strndup(at + SUM_DIGITS + 1, (gsize)(stop - at) - SUM_DIGITS - 1));
        at = stop + 1;
    }
    j->end = at - text;
    return true;
}

static bool check_head(const char *path, const char *text, const char *key, GError **error) {
    g_autofree char *head = g_strdup_printf(HEAD "%s\n", key);
    if (g_str_has_prefix(text, head))
        return true;
    if (!g_str_has_prefix(text, HEAD))
        return orr_fail_input(error, "%s: is no store of finished work; another name would do",
                              path);
    return orr_fail_input(error,
                          "%s: holds the work of other inputs or another version; delete it, "
                          "or give another name",
                          path);
}

static bool load(OrrJournal *j, const char *key, GError **error) {
    g_autofree char *text = NULL;
    gsize length = 0;
    struct stat st;
    bool is_there = stat(j->path, &st) == 0;
    if (!is_there || (S_ISREG(st.st_mode) && st.st_size == 0)) { /* empty: of mktemp, or killed */
        g_autofree char *head = g_strdup_printf(HEAD "%s\n", key);
        if (!orr_file_write(j->path, head, error))
            return false;
    }
    if (stat(j->path, &st) == 0 && !S_ISREG(st.st_mode))
        return orr_fail_env(error, "%s: is no plain file, so nothing can be kept there", j->path);
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (j->fd < 0)
        return orr_fail_env(error, "%s: cannot write: %s", j->path, g_strerror(errno));
    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return orr_fail_env(error, "%s: another run is writing to it", j->path);
    text = orr_file_read(j->path, LIMIT_BYTES, &length, error);
    if (!text || !check_head(j->path, text, key, error) || !read_lines(j, text, length, error))
        return false;
    if ((gsize)j->end < length && ftruncate(j->fd, j->end) != 0)
        return orr_fail_env(error, "%s: cannot cut off its torn end: %s", j->path,
                            g_strerror(errno));
    return true;
}

OrrJournal *orr_journal_open(const char *path, const char *key, GError **error) {
    g_autoptr(OrrJournal) j = g_new0(OrrJournal, 1);
    j->path = g_strdup(path);
    j->fd = -1;
    j->lines = g_ptr_array_new_with_free_func(g_free);
    return load(j, key, error) ? g_steal_pointer(&j) : NULL;
}

bool orr_journal_append(OrrJournal *j, const char *line, GError **error) {
    gsize length = strlen(line);
    g_assert(!memchr(line, '\n', length));
    g_autofree char *text = g_strdup_printf("%08x %s\n", sum_of(line, length), line);
    gsize total = strlen(text), done = 0;
    while (done < total) {
        gssize n = write(j->fd, text + done, total - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int why = errno;
            if (ftruncate(j->fd, j->end) != 0)
                why = errno;
            return orr_fail_env(error, "%s: cannot write: %s; what was there before is kept",
                                j->path, g_strerror(why));
        }
        done += (gsize)n;
    }
    j->end += (off_t)total;
    return true;
}
