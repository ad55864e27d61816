#include "sim/collective/constant_names.h"

#include <string.h>

static double *of_law(OrrCollLaw *law, const char *key) {
    if (strcmp(key, "launch_ns") == 0)
        return &law->launch_ns;
    if (strcmp(key, "step_ns") == 0)
        return &law->step_ns;
    return strcmp(key, "eff_frac") == 0 ? &law->eff_frac : NULL;
}

/* Number of @word in @names, or -1. */
static int place_of(const char *word, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static double *of_arch(OrrCollArch *arch, char **words, guint n) {
    bool is_ring = n == 4 && strcmp(words[1], "ring") == 0;
    int proto = is_ring ? place_of(words[2], orr_proto_names) : -1;
    if (proto >= 0)
        return of_law(&arch->ring[proto], words[3]);
    if (n != 3)
        return NULL;
    if (strcmp(words[1], "nvls") == 0)
        return of_law(&arch->nvls, words[2]);
    if (strcmp(words[1], "pairs_ll") == 0)
        return of_law(&arch->pairs_ll, words[2]);
    return strcmp(words[1], "pairs") == 0 ? of_law(&arch->pairs, words[2]) : NULL;
}

static double *of_net(OrrCollNet *net, char **words, guint n) {
    int proto =
        n == 3 && strcmp(words[1], "step_ns") == 0 ? place_of(words[2], orr_proto_names) : -1;
    if (proto >= 0)
        return &net->step_ns[proto];
    if (n != 2)
        return NULL;
    if (strcmp(words[1], "tree_step_ns") == 0)
        return &net->tree_step_ns;
    if (strcmp(words[1], "launch_ns") == 0)
        return &net->launch_ns;
    return strcmp(words[1], "eff_frac") == 0 ? &net->eff_frac : NULL;
}

double *orr_coll_constant(OrrCollConstants *constants, const char *name) {
    g_auto(GStrv) words = g_strsplit(name, ".", -1);
    guint n = g_strv_length(words);
    int arch = n > 0 ? place_of(words[0], orr_arch_names) : -1;
    int net = n > 0 ? place_of(words[0], orr_net_names) : -1;
    if (arch >= 0)
        return of_arch(&constants->arch[arch], words, n);
    return net >= 0 ? of_net(&constants->net[net], words, n) : NULL;
}
