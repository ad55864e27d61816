#include "sim/base/words.h"

#include <string.h>

#define MAX_WORD 64    /* longer words are not compared: nobody mistypes those */
#define MAX_LISTED 128 /* the keys of a framework profile; more than a message can bear */

/* Optimal string alignment distance (Damerau, CACM 7(3), 1964, without repeated edits). */
guint orr_words_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_WORD || m > MAX_WORD)
        return G_MAXUINT;
    guint rows[3][MAX_WORD + 1];
    guint *two_up = rows[0], *up = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        up[j] = (guint)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = (guint)i;
        for (size_t j = 1; j <= m; j++) {
            char x = g_ascii_tolower(a[i - 1]), y = g_ascii_tolower(b[j - 1]);
            guint best = MIN(up[j - 1] + (x != y), MIN(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == g_ascii_tolower(b[j - 2]) && y == g_ascii_tolower(a[i - 2]))
                best = MIN(best, two_up[j - 2] + 1);
            row[j] = best;
        }
        guint *spare = two_up;
        two_up = up, up = row, row = spare;
    }
    return up[m];
}

const char *orr_words_nearest(const char *word, const char *const *names) {
    const char *best = NULL;
    guint length = (guint)strlen(word);
    guint limit = MIN(MAX(1, length / 3), length - 1); /* a third of the letters wrong, not all */
    guint best_distance = G_MAXUINT;
    for (; *names && length > 0; names++) {
        guint d = orr_words_distance(word, *names);
        if (length >= 3 && g_ascii_strncasecmp(*names, word, length) == 0)
            d = MIN(d, limit); /* the beginning of a name */
        if (d <= limit && d < best_distance)
            best = *names, best_distance = d;
    }
    return best;
}

char *orr_words_list(const char *const *names) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; names[i]; i++) {
        if (i > 0)
            g_string_append(text, names[i + 1] ? ", " : " or ");
        if (i == MAX_LISTED && names[i + 1]) {
            g_string_append(text, "...");
            break;
        }
        g_string_append(text, names[i]);
    }
    return g_string_free(text, FALSE);
}

char *orr_words_hint(const char *word, const char *const *names) {
    const char *near = orr_words_nearest(word, names);
    if (near)
        return g_strdup_printf("did you mean %s?", near);
    if (!names[0])
        return g_strdup("none is known");
    g_autofree char *list = orr_words_list(names);
    return g_strdup_printf("known are %s", list);
}
