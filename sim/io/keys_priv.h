/* What the scanner and the getters of key files share. */
#ifndef ORR_IO_KEYS_PRIV_H
#define ORR_IO_KEYS_PRIV_H

#include "sim/io/keys.h"

typedef struct {
    char *name;
    guint line;
    char *origin;  /* of an override that made it; line is 0 */
    bool is_known; /* somebody asked for a key of it */
    bool is_torn;  /* its line is broken, which has been told */
} KeyGroup;

typedef struct {
    const char *group; /* owned by its KeyGroup */
    char *key, *value;
    guint line;
    char *origin; /* of an override, else NULL */
    char *said;   /* group in messages, else NULL: @group */
    bool is_known;
    bool is_bad; /* one error a value is enough */
} KeyEntry;

typedef struct {
    guint line; /* 0: of no line; those come last */
    char *text;
} KeyFlaw;

struct OrrKeys {
    char *name, *text;
    gsize length;
    GPtrArray *groups;     /* KeyGroup, file order */
    GPtrArray *entries;    /* KeyEntry, file order, overrides without a line of their own last */
    GHashTable *by_name;   /* "group\nkey" -> KeyEntry */
    GHashTable *asked;     /* "group\nkey" that getters asked for */
    GPtrArray *asked_list; /* the same in order of asking: for suggestions */
    GArray *defaults;      /* OrrKeyDefault */
    GArray *flaws;         /* KeyFlaw */
};

void orr_keys__flaw(OrrKeys *keys, guint line, char *take_text);
KeyGroup *orr_keys__group(const OrrKeys *keys, const char *group);
KeyEntry *orr_keys__entry(const OrrKeys *keys, const char *group, const char *key);
/* The group must be there. */
KeyEntry *orr_keys__add(OrrKeys *keys, const char *group, const char *key, const char *value,
                        guint line);
KeyGroup *orr_keys__add_group(OrrKeys *keys, const char *group, guint line);
/* Splits keys->text into groups and entries, noting flaws. */
void orr_keys__scan(OrrKeys *keys);

#endif
