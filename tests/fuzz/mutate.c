#include "tests/fuzz/mutate.h"

#include <stdbool.h>
#include <string.h>

#define MAX_WORDS 4096 /* of a dictionary */
#define MAX_WORD 40    /* bytes of one */
#define MAX_CHANGES 6  /* of an input */
#define MAX_PIECE 128  /* bytes from another input */

typedef struct {
    const uint8_t *at;
    gsize length;
} Piece;

struct Mutator {
    const GPtrArray *corpus;
    GArray *words; /* Piece, of the corpus */
    OrrRandom random;
};

/* What every text format knows: brackets, ends, odd numbers, units, broken characters. */
static const char *const tokens[] = {
    "[",    "]",    "=",        "\n",    "\"",    ",",    "{",   "}",    ":",
    "#",    " # ",  "%",        "|",     "$",     "(",    ")",   "<",    ">",
    "/>",   "\t",   "'",        "\\",    " GB/s", " GiB", "\\u", "\xff", "\xef\xbb\xbf",
    "null", "true", "\r\n",     "0x10",  "/",     "..",   "- ",  "N/A",  "source = x\n",
    "<!--", "]]>",  "\xc3\xa9", "&amp;", "---\n"};

static const char *const numbers[] = {"0",
                                      "1",
                                      "-1",
                                      "2",
                                      "1e30",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "1e-320",
                                      "0.1",
                                      "255",
                                      "65536",
                                      "2147483647",
                                      "2147483648",
                                      "4294967296",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "99999999999999999999",
                                      "1e308",
                                      "1,000"};

static bool is_word(uint8_t c) {
    return g_ascii_isalnum((char)c) || (c && strchr("_.+-%", c));
}

static bool is_digit(uint8_t c) {
    return g_ascii_isdigit((char)c) || c == '.';
}

static bool is_line(uint8_t c) {
    return c != '\n';
}

static void add_words(Mutator *m, GHashTable *seen, Piece text) {
    for (gsize at = 0; at < text.length;) {
        gsize start = at;
        while (at < text.length && is_word(text.at[at]))
            at++;
        Piece word = {text.at + start, at - start};
        char *name = g_strndup((const char *)word.at, word.length);
        if (word.length == 0 || word.length > MAX_WORD || m->words->len >= MAX_WORDS)
            g_free(name);
        else if (g_hash_table_add(seen, name))
            g_array_append_val(m->words, word);
        at += at == start;
    }
}

static Piece piece_of(const GPtrArray *corpus, guint i) {
    Piece piece;
    piece.at = g_bytes_get_data(corpus->pdata[i], &piece.length);
    return piece;
}

Mutator *mutator_new(const GPtrArray *corpus, uint64_t seed) {
    Mutator *m = g_new0(Mutator, 1);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->corpus = corpus;
    m->words = g_array_new(FALSE, FALSE, sizeof(Piece));
    m->random = orr_random(seed, "fuzz");
    for (guint i = 0; i < corpus->len; i++)
        add_words(m, seen, piece_of(corpus, i));
    return m;
}

void mutator_free(Mutator *m) {
    g_array_unref(m->words);
    g_free(m);
}

/* Draws of one input, one after another. */
typedef struct {
    const Mutator *m;
    uint64_t input, n;
} Draw;

static gsize below(Draw *d, gsize limit) {
    return limit ? orr_random_below(d->m->random, d->input, ++d->n, limit) : 0;
}

/* @piece takes the place of bytes @from to @to. */
static void replace(GByteArray *input, gsize from, gsize to, Piece piece) {
    gsize length = input->len - (to - from) + piece.length, old = input->len;
    if (length > MUTATE_MAX_BYTES)
        return;
    g_autofree uint8_t *copy = piece.length ? g_memdup2(piece.at, piece.length) : NULL;
    if (length > old)
        g_byte_array_set_size(input, (guint)length);
    if (old > to)
        memmove(input->data + from + piece.length, input->data + to, old - to);
    if (piece.length > 0)
        memcpy(input->data + from, copy, piece.length);
    g_byte_array_set_size(input, (guint)length);
}

/* The run of bytes of one class around @at: a word, a number, a line. */
static void run_around(const GByteArray *input, gsize at, bool (*is_in)(uint8_t), gsize *from,
                       gsize *to) {
    *from = *to = at;
    while (*from > 0 && is_in(input->data[*from - 1]))
        (*from)--;
    while (*to < input->len && is_in(input->data[*to]))
        (*to)++;
}

static Piece text_piece(const char *text) {
    return (Piece){(const uint8_t *)text, strlen(text)};
}

static Piece word_piece(Draw *d) {
    if (d->m->words->len == 0 || below(d, 4) == 0)
        return text_piece(tokens[below(d, G_N_ELEMENTS(tokens))]);
    return g_array_index(d->m->words, Piece, below(d, d->m->words->len));
}

/* Some bytes of another input, or a line of it. */
static Piece other_piece(Draw *d, bool is_whole_line) {
    Piece text = piece_of(d->m->corpus, (guint)below(d, d->m->corpus->len));
    gsize from = below(d, text.length), to = from + 1 + below(d, MAX_PIECE);
    to = MIN(to, text.length);
    if (is_whole_line) {
        while (from > 0 && is_line(text.at[from - 1]))
            from--;
        for (to = from; to < text.length && is_line(text.at[to]);)
            to++;
        to += to < text.length;
    }
    return (Piece){text.at + from, to - from};
}

static void change_bytes(Draw *d, GByteArray *input, gsize at) {
    gsize n = 1 + below(d, 16);
    switch (below(d, 5)) {
    case 0:
        if (at < input->len)
            input->data[at] = (uint8_t)below(d, 256);
        break;
    case 1:
        if (at < input->len)
            input->data[at] ^= (uint8_t)(1u << below(d, 8));
        break;
    case 2:
        if (at + n <= input->len)
            replace(input, at, at + n, (Piece){NULL, 0});
        break;
    case 3:
        if (below(d, 8) == 0)
            g_byte_array_set_size(input, (guint)at);
        break;
    default:
        replace(input, at, at, other_piece(d, false));
    }
}

static void change_words(Draw *d, GByteArray *input, gsize at) {
    gsize from, to;
    switch (below(d, 4)) {
    case 0:
        replace(input, at, at, word_piece(d));
        break;
    case 1:
        run_around(input, at, is_word, &from, &to);
        replace(input, from, to, word_piece(d));
        break;
    default: /* the next number */
        while (at < input->len && !g_ascii_isdigit((char)input->data[at]))
            at++;
        run_around(input, at, is_digit, &from, &to);
        replace(input, from, to, text_piece(numbers[below(d, G_N_ELEMENTS(numbers))]));
    }
}

static void change_lines(Draw *d, GByteArray *input, gsize at) {
    gsize from, to, next, end;
    run_around(input, at, is_line, &from, &to);
    to += to < input->len;
    switch (below(d, 4)) {
    case 0: /* gone */
        replace(input, from, to, (Piece){NULL, 0});
        break;
    case 1: /* twice */
        replace(input, to, to, (Piece){input->data + from, to - from});
        break;
    case 2: /* behind the next */
        run_around(input, to, is_line, &next, &end);
        end += end < input->len;
        if (end > to) {
            g_autofree uint8_t *line = g_memdup2(input->data + from, to - from + 1);
            gsize length = to - from;
            replace(input, from, to, (Piece){NULL, 0});
            replace(input, end - length, end - length, (Piece){line, length});
        }
        break;
    default: /* one of another input in front of it */
        replace(input, from, from, other_piece(d, true));
    }
}

void mutator_make(const Mutator *m, uint64_t i, GByteArray *input) {
    Draw d = {m, i, 0};
    Piece base = piece_of(m->corpus, (guint)below(&d, m->corpus->len));
    g_byte_array_set_size(input, 0);
    if (base.length > 0)
        g_byte_array_append(input, base.at, (guint)base.length);
    for (gsize n = 1 + below(&d, MAX_CHANGES); n > 0; n--) {
        gsize at = below(&d, (gsize)input->len + 1);
        switch (below(&d, 3)) {
        case 0:
            change_bytes(&d, input, at);
            break;
        case 1:
            change_words(&d, input, at);
            break;
        default:
            change_lines(&d, input, at);
        }
    }
}
