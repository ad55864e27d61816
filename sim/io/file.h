/* Files, whole or not at all.
 *
 * Output goes to a file without a name (or, where the file system has none, to a hidden temporary
 * one beside the target) and is renamed over the target on commit, so an interrupted run leaves the
 * old file or the whole new one. A name that ends in .gz is compressed, without a time stamp, so
 * that same contents give same bytes. Errors are remembered and told by orr_out_commit: writers
 * need not check each call. Left out: locking. */
#ifndef ORR_IO_FILE_H
#define ORR_IO_FILE_H

#include "sim/base/error.h"

/**
 * orr_file_read: all of a file, decompressed if it is gzip.
 * @limit_bytes: refuses more than this after decompression.
 * Returns: the contents with a NUL behind them (not counted in *@length, which may be NULL),
 * g_free; NULL with @error (ORR_ERROR_INPUT: absent, unreadable, a folder, too large, damaged
 * gzip).
 */
char *orr_file_read(const char *path, gsize limit_bytes, gsize *length, GError **error);

typedef struct OrrOut OrrOut;

/* @path NULL or "-" is standard output. A target that exists and is not a regular file (a pipe, a
 * device) is written directly. Errors: ORR_ERROR_ENV. */
OrrOut *orr_out_open(const char *path, GError **error);
/* Whether that would work now, before long work; leaves nothing behind. Pipes and devices are not
 * opened for it. */
bool orr_out_probe(const char *path, GError **error);
/* Appends to @text, which stays the caller's; cannot fail. */
OrrOut *orr_out_to_string(GString *text);
void orr_out_write(OrrOut *out, const char *data, gsize length);
void orr_out_puts(OrrOut *out, const char *text);
/* No %f, %e, %g: those follow the locale; use orr_out_double. */
void orr_out_printf(OrrOut *out, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The shortest decimal that reads back as the same double. */
void orr_out_double(OrrOut *out, double value);
/* true once a write has failed: long producers may stop early. */
bool orr_out_has_failed(const OrrOut *out);
/* Everything on disk under its final name, or false with @error (ORR_ERROR_ENV) and the old file
 * untouched. Either way @out is done and only orr_out_free may follow. */
bool orr_out_commit(OrrOut *out, GError **error);
/* Without a commit before it, throws the output away. */
void orr_out_free(OrrOut *out);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrOut, orr_out_free)

/* Writes @text to @path, all or nothing. */
bool orr_file_write(const char *path, const char *text, GError **error);
/* A folder for several files. Made with those above it, where they are not there; what was made and
 * is still empty when it is freed is removed again, so that a run that fails leaves none. It is to
 * be freed after the files in it are. Errors: ORR_ERROR_ENV. */
typedef struct OrrFolder OrrFolder;
OrrFolder *orr_folder_make(const char *path, GError **error);
void orr_folder_free(OrrFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrFolder, orr_folder_free)
/* SHA-256 of a text in hexadecimal; g_free. */
char *orr_file_sha256(const char *text, gsize length);

#endif
