/* Main of a fuzz target without libFuzzer.
 *
 *   fuzz_X                     replay tests/fuzz/corpus/X and beginnings of it, then a few hundred
 *                              mutations
 *   fuzz_X [--inputs 1000000] [--seconds 60] [--seed 1]   every beginning, then so many, no longer
 *   fuzz_X --more FOLDER       with the files of a folder in the corpus (repeatable)
 *   fuzz_X FILE...             replay these files
 *
 * Mutation i of a seed is the same everywhere. An input that crashes or hangs is left in
 * fuzz_X.crash in the current folder. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#define QUICK_MUTATIONS 300 /* for make check: a fraction of a second */
#define QUICK_CUTS 50       /* of an input, for make check */
#define HANG_SECONDS 20     /* of the processor: no input may take so long */
#define SLEEP_FACTOR 15u    /* by the clock, on a busy machine */

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

/* Processor time says that an input hangs on a busy machine, too; the clock, that it sleeps. */
static void watch(unsigned seconds) {
    const struct itimerval of_processor = {.it_value.tv_sec = seconds};
    setitimer(ITIMER_PROF, &of_processor, NULL);
    alarm(SLEEP_FACTOR * seconds);
}

static void run(const uint8_t *data, size_t size) {
    /* an exact copy, so that reading past the end is seen */
    uint8_t *copy = malloc(size ? size : 1);
    if (size > 0)
        memcpy(copy, data, size);
    in_hand.data = copy;
    in_hand.size = size;
    watch(HANG_SECONDS);
    LLVMFuzzerTestOneInput(copy, size);
    watch(0);
    in_hand.data = NULL;
    free(copy);
}

static GPtrArray *load(char **paths) {
    GPtrArray *corpus = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (; *paths; paths++) {
        char *text;
        gsize length;
        if (g_file_get_contents(*paths, &text, &length, NULL))
            g_ptr_array_add(corpus, g_bytes_new_take(text, MIN(length, MUTATE_MAX_BYTES)));
        else
            g_printerr("cannot read %s\n", *paths);
    }
    return corpus;
}

static gint by_text(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_folder(GPtrArray *paths, const char *folder) {
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        char *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            g_ptr_array_add(paths, path);
        else
            g_free(path);
    }
}

/* Files of the corpus of this target and of the folders of @more, sorted. */
static char **corpus_paths(const char *target, const GPtrArray *more) {
    const char *top = g_getenv("top_srcdir");
    g_autofree char *folder =
        g_build_filename(top ? top : ORR_SRCDIR, "tests", "fuzz", "corpus", target, NULL);
    GPtrArray *paths = g_ptr_array_new();
    add_folder(paths, folder);
    for (guint i = 0; i < more->len; i++)
        add_folder(paths, more->pdata[i]);
    g_ptr_array_sort(paths, by_text);
    g_ptr_array_add(paths, NULL);
    return (char **)g_ptr_array_free(paths, FALSE);
}

/* Each input cut behind each byte, or behind @most of them. */
static uint64_t cut(const GPtrArray *corpus, gsize most) {
    uint64_t n = 0;
    for (guint i = 0; i < corpus->len; i++) {
        gsize length, step;
        const uint8_t *data = g_bytes_get_data(corpus->pdata[i], &length);
        step = MAX(1, length / most);
        for (gsize at = 0; at < length; at += step, n++)
            run(data, at);
    }
    return n;
}

/* Until @seconds or @inputs are over, 0: no such limit; how many. */
static uint64_t search(const GPtrArray *corpus, uint64_t seed, double seconds, uint64_t inputs) {
    Mutator *m = mutator_new(corpus, seed);
    GByteArray *input = g_byte_array_new();
    gint64 end = g_get_monotonic_time() + (gint64)(seconds * 1e6);
    uint64_t i = 0;
    for (; (inputs == 0 || i < inputs) && (seconds <= 0 || g_get_monotonic_time() < end); i++) {
        mutator_make(m, i, input);
        run(input->data ? input->data : (const uint8_t *)"", input->len);
    }
    g_byte_array_unref(input);
    mutator_free(m);
    return i;
}

int main(int argc, char **argv) {
    double seconds = 0;
    uint64_t seed = 1, inputs = 0;
    int first = 1;
    g_autoptr(GPtrArray) more = g_ptr_array_new();
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--seconds") == 0)
            seconds = g_ascii_strtod(argv[first + 1], NULL);
        else if (strcmp(argv[first], "--seed") == 0)
            seed = g_ascii_strtoull(argv[first + 1], NULL, 10);
        else if (strcmp(argv[first], "--inputs") == 0)
            inputs = g_ascii_strtoull(argv[first + 1], NULL, 10);
        else if (strcmp(argv[first], "--more") == 0)
            g_ptr_array_add(more, argv[first + 1]);
    }
    g_autofree char *name = g_path_get_basename(argv[0]);
    const char *target = strstr(name, "fuzz_");
    g_assert(target);
    g_set_prgname(target);
    g_snprintf(in_hand.path, sizeof in_hand.path, "%s.crash", target);
    static const int fatal[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM, SIGPROF};
    for (guint i = 0; i < G_N_ELEMENTS(fatal); i++)
        signal(fatal[i], on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_input);

    g_auto(GStrv) paths = first < argc ? g_strdupv(argv + first) : corpus_paths(target + 5, more);
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
    bool is_quick = seconds <= 0 && inputs == 0;
    inputs = is_quick ? QUICK_MUTATIONS : inputs;
    uint64_t n_cut =
        first < argc || more->len > 0 ? 0 : cut(corpus, is_quick ? QUICK_CUTS : MUTATE_MAX_BYTES);
    clock_t start = clock();
    uint64_t n = first < argc ? 0 : search(corpus, seed, seconds, inputs);
    double took_s = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("%s: %u inputs, %lu beginnings of them and %lu mutations of seed %lu passed, %.0f a "
           "second of a core\n",
           target, corpus->len, (unsigned long)n_cut, (unsigned long)n, (unsigned long)seed,
           took_s > 0 ? (double)n / took_s : 0.0);
    return 0;
}
