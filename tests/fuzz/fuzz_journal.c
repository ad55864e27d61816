/* Stores of finished work (a first byte 's': the numbers of a seed, zeros behind them): any bytes
 * are opened up to the last whole line, or refused; what can be read can be written on and read
 * again, and a line is a sound seed or none. */
#include <string.h>

#include "sim/io/journal.h"
#include "sim/result/run_record.h"
#include "tests/fuzz/fuzz.h"

#define N_CAUSES 2

static void read_seed(const char *line) {
    OrrRunSeed seed;
    orr_run_seed_init(&seed, 1, N_CAUSES);
    if (orr_run_seed_parse(&seed, N_CAUSES, line)) {
        g_autofree char *flaw = orr_run_seed_flaw(&seed, N_CAUSES);
        g_autofree char *again = orr_run_seed_line(&seed, N_CAUSES);
        g_assert(!flaw && again);
    }
    orr_run_seed_clear(&seed);
}

/* Mutations seldom keep a line's sum and number of words: the seeds go without. */
static void read_numbers(const uint8_t *data, size_t size) {
    OrrRunSeed seed;
    orr_run_seed_init(&seed, 1, N_CAUSES);
    g_autofree char *zero = orr_run_seed_line(&seed, N_CAUSES), *text = NULL;
    orr_run_seed_clear(&seed);
    g_auto(GStrv) all = g_strsplit(zero, " ", -1);
    text = g_strndup((const char *)data, size);
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (guint i = 0; all[i] && words[i]; i++) {
        g_free(all[i]);
        all[i] = g_strdup(words[i]);
    }
    g_autofree char *line = g_strjoinv(" ", all);
    read_seed(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0 && data[0] == 's') {
        read_numbers(data + 1, size - 1);
        return 0;
    }
    g_auto(FuzzFile) file = fuzz_file(data, size);
    GError *error = NULL;
    OrrJournal *journal = orr_journal_open(file.path, "fuzz", &error);
    fuzz_check_error(journal, &error);
    if (!journal)
        return 0;
    guint n = orr_journal_n_lines(journal);
    bool is_written = orr_journal_append(journal, "more", &error);
    g_assert(is_written && !error);
    orr_journal_free(journal);
    journal = orr_journal_open(file.path, "fuzz", &error);
    g_assert(journal && orr_journal_n_lines(journal) == n + 1);
    g_assert(strcmp(orr_journal_line(journal, n), "more") == 0);
    orr_journal_free(journal);
    return 0;
}
