/* Main of a fuzz target without libFuzzer.
 *
 *   fuzz_X                     replay tests/fuzz/corpus/X, then a few hundred mutations
 *   fuzz_X --seconds 20 [--seed 1]   replay, then mutate for so long
 *   fuzz_X FILE...             replay these files
 *
 * Mutation i of a seed is the same everywhere. An input that crashes or hangs is left in
 * fuzz_X.crash in the current folder. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/random.h"
#include "tests/fuzz/fuzz.h"

#define MAX_INPUT_BYTES 65536 /* parsers are linear; larger inputs only slow the search */
#define QUICK_MUTATIONS 300   /* for make check: a fraction of a second */
#define HANG_SECONDS 20       /* no input may take so long */

/* What the handler of a crash needs: the input in hand. */
static struct {
    char path[256];
    const uint8_t *data;
    size_t size;
} in_hand;

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void save_input(void) {
    int fd = open(in_hand.path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && in_hand.data && write(fd, in_hand.data, in_hand.size) < 0)
        (void)0; /* nothing to do about it: the process is dying */
    static const char text[] = "the input is in fuzz_*.crash\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        (void)0;
}

static void on_signal(int number) {
    save_input();
    signal(number, SIG_DFL);
    raise(number);
}

static void run(const uint8_t *data, size_t size) {
    /* an exact copy, so that reading past the end is seen */
    uint8_t *copy = malloc(size ? size : 1);
    if (size > 0)
        memcpy(copy, data, size);
    in_hand.data = copy;
    in_hand.size = size;
    alarm(HANG_SECONDS);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    in_hand.data = NULL;
    free(copy);
}

static GPtrArray *load(char **paths) {
    GPtrArray *corpus = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (; *paths; paths++) {
        char *text;
        gsize length;
        if (g_file_get_contents(*paths, &text, &length, NULL))
            g_ptr_array_add(corpus, g_bytes_new_take(text, MIN(length, MAX_INPUT_BYTES)));
        else
            g_printerr("cannot read %s\n", *paths);
    }
    return corpus;
}

static gint by_text(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Files of the corpus of this target, sorted. */
static char **corpus_paths(const char *target) {
    const char *top = g_getenv("top_srcdir");
    g_autofree char *folder =
        g_build_filename(top ? top : ORR_SRCDIR, "tests", "fuzz", "corpus", target, NULL);
    GPtrArray *paths = g_ptr_array_new();
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
    if (dir)
        g_dir_close(dir);
    g_ptr_array_sort(paths, by_text);
    g_ptr_array_add(paths, NULL);
    return (char **)g_ptr_array_free(paths, FALSE);
}

static const char *const tokens[] = {"[",
                                     "]",
                                     "=",
                                     "\n",
                                     "\"",
                                     ",",
                                     "{",
                                     "}",
                                     ":",
                                     "#",
                                     " # ",
                                     "%",
                                     "-1",
                                     "0",
                                     "1e30",
                                     "nan",
                                     "inf",
                                     "1e-320",
                                     "99999999999999999999",
                                     " GB/s",
                                     " GiB",
                                     "\\u",
                                     "\xff",
                                     "\xef\xbb\xbf",
                                     "null",
                                     "true",
                                     "\r\n",
                                     "0x10",
                                     "/",
                                     "..",
                                     "source = x\n",
                                     "2147483648"};

/* Changes @input in place: a few bytes, a token, a cut, a repetition, a piece of another input. */
static void mutate(GByteArray *input, const GPtrArray *corpus, OrrRandom r, uint64_t i,
                   uint64_t k) {
    uint64_t what = orr_random_below(r, i, k * 8, 7), x = orr_random_bits(r, i, k * 8 + 1);
    guint at = (guint)orr_random_below(r, i, k * 8 + 2, input->len + 1);
    guint n = (guint)orr_random_below(r, i, k * 8 + 3, 16) + 1;
    uint8_t byte = (uint8_t)x;
    if (what == 0 && at < input->len) {
        input->data[at] = byte;
    } else if (what == 1 && at < input->len) {
        input->data[at] ^= (uint8_t)(1u << (x % 8));
    } else if (what == 2 && at + n <= input->len) {
        g_byte_array_remove_range(input, at, n);
    } else if (what == 3 && (x & 15) == 0) {
        g_byte_array_set_size(input, at);
    } else {
        gsize length = 0;
        const uint8_t *piece = (const uint8_t *)tokens[x % G_N_ELEMENTS(tokens)];
        if (what == 6) {
            piece = g_bytes_get_data(corpus->pdata[x % corpus->len], &length);
            gsize from = length ? orr_random_below(r, i, k * 8 + 4, length) : 0;
            piece += from;
            length = MIN(length - from, (gsize)n * 8);
        } else {
            length = strlen((const char *)piece);
        }
        if (length == 0 || input->len + length > MAX_INPUT_BYTES)
            return;
        g_autofree uint8_t *copy = g_memdup2(piece, length);
        GByteArray *tail = g_byte_array_new();
        if (at < input->len)
            g_byte_array_append(tail, input->data + at, input->len - at);
        g_byte_array_set_size(input, at);
        g_byte_array_append(input, copy, (guint)length);
        if (tail->len > 0)
            g_byte_array_append(input, tail->data, tail->len);
        g_byte_array_unref(tail);
    }
}

static uint64_t search(const GPtrArray *corpus, uint64_t seed, double seconds) {
    OrrRandom r = orr_random(seed, "fuzz");
    gint64 end = g_get_monotonic_time() + (gint64)(seconds * 1e6);
    uint64_t i = 0;
    for (; seconds > 0 ? g_get_monotonic_time() < end : i < QUICK_MUTATIONS; i++) {
        gsize length;
        const uint8_t *base =
            g_bytes_get_data(corpus->pdata[orr_random_below(r, i, 1, corpus->len)], &length);
        GByteArray *input = g_byte_array_new();
        g_byte_array_append(input, base ? base : (const uint8_t *)"", (guint)length);
        uint64_t n = 1 + orr_random_below(r, i, 2, 6);
        for (uint64_t k = 1; k <= n; k++)
            mutate(input, corpus, r, i, k);
        run(input->data, input->len);
        g_byte_array_unref(input);
    }
    return i;
}

int main(int argc, char **argv) {
    double seconds = 0;
    uint64_t seed = 1;
    int first = 1;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--seconds") == 0)
            seconds = g_ascii_strtod(argv[first + 1], NULL);
        else if (strcmp(argv[first], "--seed") == 0)
            seed = g_ascii_strtoull(argv[first + 1], NULL, 10);
    }
    g_autofree char *name = g_path_get_basename(argv[0]);
    const char *target = strstr(name, "fuzz_");
    g_assert(target);
    g_set_prgname(target);
    g_snprintf(in_hand.path, sizeof in_hand.path, "%s.crash", target);
    static const int fatal[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM};
    for (guint i = 0; i < G_N_ELEMENTS(fatal); i++)
        signal(fatal[i], on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_input);

    g_auto(GStrv) paths = first < argc ? g_strdupv(argv + first) : corpus_paths(target + 5);
    g_autoptr(GPtrArray) corpus = load(paths);
    if (corpus->len == 0) {
        g_printerr("%s: no corpus\n", target);
        return 1;
    }
    for (guint i = 0; i < corpus->len; i++) {
        gsize length;
        const uint8_t *data = g_bytes_get_data(corpus->pdata[i], &length);
        run(data ? data : (const uint8_t *)"", length);
    }
    uint64_t n = first < argc ? 0 : search(corpus, seed, seconds);
    g_autofree char *file = fuzz_path();
    unlink(file);
    printf("%s: %u inputs and %lu mutations of seed %lu passed\n", target, corpus->len,
           (unsigned long)n, (unsigned long)seed);
    return 0;
}
