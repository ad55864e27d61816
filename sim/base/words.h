/* Words for messages: the nearest known name, lists as people read them. */
#ifndef ORR_BASE_WORDS_H
#define ORR_BASE_WORDS_H

#include <glib.h>

/* Edits (insert, delete, replace, swap of neighbours) from @a to @b, letter case ignored. */
guint orr_words_distance(const char *a, const char *b);

/* The name nearest to @word among @names (NULL-terminated), the first of equals; NULL if none is
 * near enough to be meant. */
const char *orr_words_nearest(const char *word, const char *const *names);

/* "a, b or c"; g_free. */
char *orr_words_list(const char *const *names);

/* What to add to a message about an unknown @word: "did you mean X?" where a name is near, else
 * "known are a, b or c" (at most 64 of them); g_free. */
char *orr_words_hint(const char *word, const char *const *names);

#endif
