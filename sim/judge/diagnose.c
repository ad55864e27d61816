/* Which fault, or pair of faults, explains measured tables. Bayes over a list: each fault has a
 * prior and a grid of levels; the residuals ln(measured / expected) under it are taken as normal
 * with the spread that the model has on sound machines. Sizes of a table are not independent, so
 * they count as a few observations a band of sizes, not one each. What no fault explains goes to
 * one that is not known. Cost: some hundred hypotheses times the rows, microseconds each. */
#include "sim/judge/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/judge/faults.h"

/* Bands of sizes and the model's spread in each, on sound machines: doc/accuracy.md, collectives
 * (ln; single systems are off by 20 % in short messages and 5 above 1 MiB). */
#define N_BANDS 3
static const struct {
    int64_t from_bytes;
    double sigma;
} bands[N_BANDS] = {{ORR_CHECK_FROM_BYTES, 0.30}, {1 << 20, 0.15}, {64 << 20, 0.08}};
#define OBSERVATIONS_PER_BAND 2.0 /* ours: so many independent ones, however many sizes */
#define UNKNOWN_SIGMAS 2.5        /* ours: a fault that fits worse than this is not it */
#define UNKNOWN_PRIOR 0.05
#define MARK_FACTOR 50.0   /* ours: words of NCCL in the log weigh more than any fit */
#define LEAST_SHARE 0.02   /* ours: less likely causes are not worth a line */
#define LIKELY_FRAC 0.30   /* ours: a cause that leaves more than that unexplained is none */
#define GAIN_OF_A_PAIR 0.5 /* ours: a second fault must halve the error that one leaves */
#define MAX_CAUSES 6

typedef struct {
    const OrrFault *faults[2];
    double levels[2];
    double weight, best; /* sum over levels, and its largest part */
    double error_frac;
    double plateau_bytes_per_s; /* busbw at the largest size of the last table, at the best */
} Guess;

typedef struct {
    const OrrCheckCase *cases;
    uint32_t n_cases;
    OrrCheckCase *changed; /* n_cases, where a guess is tried */
    GArray *guesses;       /* Guess */
    double single_error[ORR_MAX_FAULTS];
    double sound_error;
} Search;

static int band_of(int64_t bytes) {
    int band = -1;
    for (int b = 0; b < N_BANDS; b++)
        if (bytes >= bands[b].from_bytes)
            band = b;
    return band;
}

/* Log of the likelihood of one table, up to what all guesses share; false where NCCL refuses or no
 * size tells. */
static bool likelihood(const OrrCheckCase *c, double *log_likelihood) {
    double sum[N_BANDS] = {0};
    uint32_t n[N_BANDS] = {0}, total = 0;
    for (uint32_t i = 0; i < c->table->n_rows; i++) {
        const OrrMeasuredCollective *row = &c->table->rows[i];
        double measured = orr_measured_time_ns(row);
        int b = band_of(row->bytes);
        OrrCollPlan plan;
        if (measured <= 0 || b < 0)
            continue;
        double expected = orr_check__expected_ns(c, row, &plan, NULL);
        if (expected <= 0)
            return false;
        double sigmas = log(measured / expected) / bands[b].sigma;
        sum[b] += sigmas * sigmas;
        n[b]++, total++;
    }
    for (int b = 0; b < N_BANDS; b++)
        if (n[b] > 0)
            *log_likelihood -= OBSERVATIONS_PER_BAND / 2 * sum[b] / n[b];
    return total > 0;
}

static double plateau_of(const OrrCheckCase *c) {
    const OrrMeasuredCollective *largest = NULL;
    for (uint32_t i = 0; i < c->table->n_rows; i++)
        if (orr_measured_time_ns(&c->table->rows[i]) > 0 &&
            (!largest || c->table->rows[i].bytes > largest->bytes))
            largest = &c->table->rows[i];
    OrrCollPlan plan;
    double ns = largest ? orr_check__expected_ns(c, largest, &plan, NULL) : 0;
    return ns > 0 ? (double)largest->bytes / ns * 1e9 *
                        orr_measured_bus_factor(c->table->kind, c->place.n_ranks)
                  : 0;
}

/* Mean over the cases that tell; negative: none does. */
static double error_of(const OrrCheckCase *cases, uint32_t n) {
    double sum = 0;
    uint32_t n_telling = 0;
    for (uint32_t i = 0; i < n; i++) {
        double error = orr_check__error(&cases[i]);
        if (error < 0)
            continue;
        sum += error;
        n_telling++;
    }
    return n_telling > 0 ? sum / n_telling : -1;
}

/* The faults of a guess on one table. */
typedef struct {
    const OrrFault *fabric, *other; /* either may be NULL */
    double other_level;
    bool may_be_sound; /* this table's fabric, among several tables */
    double level;      /* out: the likeliest of the fabric; 0: sound */
    bool is_changed;   /* out */
} Trial;

static bool apply(const OrrFault *fault, double level, OrrCheckCase *c) {
    if (!fault || (fault->is_above_nodes && c->place.n_domains < 2))
        return false;
    return fault->apply(&c->place, &c->force, level, c->management_bytes_per_s);
}

/* Likelihood of one table. A fabric's level belongs to the placement and may differ from table to
 * table of one machine, so it is summed over here; *@c becomes the likeliest. Negative: no size of
 * the table tells, or NCCL refuses. */
static double weigh(OrrCheckCase *c, Trial *t) {
    OrrCheckCase sound = *c, likeliest = *c;
    uint32_t n = t->fabric ? orr_fault_levels(t->fabric) : 0, n_tried = 0;
    double sum = 0, best = -1;
    for (uint32_t i = 0; i <= n; i++) {
        OrrCheckCase tried = sound;
        double log_likelihood = 0;
        bool is_thin = i < n && apply(t->fabric, t->fabric->levels[i], &tried);
        if (t->fabric && !is_thin && (i < n || !t->may_be_sound))
            continue;
        bool is_other = apply(t->other, t->other_level, &tried);
        if (!likelihood(&tried, &log_likelihood))
            continue;
        double weight = exp(log_likelihood);
        sum += weight, n_tried++;
        if (weight <= best)
            continue;
        best = weight;
        likeliest = tried;
        t->level = is_thin ? t->fabric->levels[i] : 0;
        t->is_changed = is_thin || is_other;
    }
    *c = likeliest;
    return n_tried > 0 ? sum / n_tried : -1;
}

/* Sums and keeps the best: one level of the fault that is not of the fabric. */
static void try_level(Search *s, Guess *g, Trial t, double prior) {
    double weight = prior, fabric_level = 0;
    bool tells = false, is_changed = false;
    memcpy(s->changed, s->cases, s->n_cases * sizeof *s->cases);
    for (uint32_t i = 0; i < s->n_cases; i++) {
        t.level = 0, t.is_changed = false;
        double w = weigh(&s->changed[i], &t);
        if (w < 0)
            continue;
        tells = true;
        is_changed |= t.is_changed;
        weight *= w;
        fabric_level = fmax(fabric_level, t.level);
    }
    if (!tells || !is_changed || (t.fabric && fabric_level == 0))
        return;
    g->weight += weight;
    if (weight <= g->best)
        return;
    g->best = weight;
    g->levels[0] = t.fabric ? fabric_level : t.other_level;
    g->levels[1] = t.other_level;
    g->error_frac = error_of(s->changed, s->n_cases);
    g->plateau_bytes_per_s = plateau_of(&s->changed[s->n_cases - 1]);
}

static double prior_of(const Search *s, const OrrFault *fault) {
    for (uint32_t i = 0; i < s->n_cases; i++)
        if (orr_fault_mark(fault, s->cases[i].log))
            return fault->prior * MARK_FACTOR;
    return fault->prior;
}

/* Every level of one fault that is not of the fabric, after @fabric or NULL. */
static void try_levels(Search *s, Guess *g, const OrrFault *fabric, const OrrFault *other) {
    double prior = (fabric ? prior_of(s, fabric) : 1) * (other ? prior_of(s, other) : 1);
    uint32_t n = other ? orr_fault_levels(other) : 1;
    for (uint32_t i = 0; i < n; i++)
        try_level(s, g,
                  (Trial){.fabric = fabric,
                          .other = other,
                          .other_level = other ? other->levels[i] : 0,
                          .may_be_sound = s->n_cases > 1},
                  prior / n);
}

/* Two faults of which neither is of the fabric. */
static void try_two(Search *s, Guess *g) {
    const OrrFault *one = g->faults[0], *other = g->faults[1];
    OrrCheckCase *sound = g_memdup2(s->cases, s->n_cases * sizeof *s->cases);
    const OrrCheckCase *kept = s->cases;
    uint32_t n = orr_fault_levels(one);
    for (uint32_t i = 0; i < n; i++) {
        bool is_changed = false;
        memcpy(sound, kept, s->n_cases * sizeof *sound);
        for (uint32_t c = 0; c < s->n_cases; c++)
            is_changed |= apply(one, one->levels[i], &sound[c]);
        if (!is_changed)
            continue;
        double before = g->best;
        Guess part = {.faults = {other, NULL}, .best = g->best / prior_of(s, one) * n};
        s->cases = sound;
        try_levels(s, &part, NULL, other);
        s->cases = kept;
        double prior = prior_of(s, one) / n;
        g->weight += part.weight * prior;
        if (part.best * prior <= before)
            continue;
        g->best = part.best * prior;
        g->levels[0] = one->levels[i];
        g->levels[1] = part.levels[1];
        g->error_frac = part.error_frac;
        g->plateau_bytes_per_s = part.plateau_bytes_per_s;
    }
    g_free(sound);
}

static void try_guess(Search *s, uint32_t one, int other) {
    const OrrFault *first = &orr_faults[one], *second = other >= 0 ? &orr_faults[other] : NULL;
    Guess g = {.faults = {first, second}, .error_frac = -1};
    bool is_fabric = first->parts == ORR_FAULT_FABRIC; /* stand first in the table */
    if (second && !is_fabric)
        try_two(s, &g);
    else
        try_levels(s, &g, is_fabric ? first : NULL, is_fabric ? second : first);
    if (!second)
        s->single_error[one] = g.error_frac >= 0 ? g.error_frac : INFINITY;
    else if (g.error_frac >= GAIN_OF_A_PAIR * fmin(s->single_error[one], s->single_error[other]))
        return;
    if (g.weight > 0 && g.error_frac >= 0 && g.error_frac <= LIKELY_FRAC &&
        g.error_frac < s->sound_error)
        g_array_append_val(s->guesses, g);
}

static void search(Search *s) {
    for (uint32_t i = 0; i < orr_n_faults; i++)
        try_guess(s, i, -1);
    for (uint32_t i = 0; i < orr_n_faults; i++)
        for (uint32_t j = i + 1; j < orr_n_faults; j++)
            if (!(orr_faults[i].parts & orr_faults[j].parts))
                try_guess(s, i, (int)j);
}

static double unknown_weight(const Search *s) {
    uint32_t n = 0; /* bands that tell, over all tables */
    for (uint32_t c = 0; c < s->n_cases; c++) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < s->cases[c].table->n_rows; i++) {
            int b = band_of(s->cases[c].table->rows[i].bytes);
            if (b >= 0 && orr_measured_time_ns(&s->cases[c].table->rows[i]) > 0)
                seen |= 1u << b;
        }
        for (int b = 0; b < N_BANDS; b++)
            n += seen >> b & 1;
    }
    return UNKNOWN_PRIOR * exp(-OBSERVATIONS_PER_BAND / 2 * n * UNKNOWN_SIGMAS * UNKNOWN_SIGMAS);
}

static int by_weight(gconstpointer a, gconstpointer b) {
    const Guess *one = a, *other = b;
    if (one->weight != other->weight)
        return one->weight > other->weight ? -1 : 1;
    for (int f = 0; f < 2; f++) {
        const char *x = one->faults[f] ? one->faults[f]->code : "";
        const char *y = other->faults[f] ? other->faults[f]->code : "";
        if (strcmp(x, y) != 0)
            return strcmp(x, y);
    }
    return 0;
}

static const char *put_number(char buffer[32], const char *format, double value) {
    return g_ascii_formatd(buffer, 32, format, value);
}

static char *fault_words(const OrrFault *f, double level) {
    if (!f->level_words)
        return g_strdup(f->words);
    char number[32];
    bool is_rate = level >= 1e6;
    put_number(number, is_rate || level == floor(level) ? "%.0f" : "%.2f",
               is_rate ? level * 1e-9 : level);
    const char *at = strstr(f->level_words, "%s");
    return g_strdup_printf("%s (%.*s%s%s)", f->words, (int)(at - f->level_words), f->level_words,
                           number, at + 2);
}

static void add_marks(const Search *s, const OrrFault *f, GString *text) {
    for (uint32_t i = 0; i < s->n_cases; i++) {
        const char *mark = orr_fault_mark(f, s->cases[i].log);
        if (!mark)
            continue;
        g_string_append_printf(text, "; the log says \"%s\"", mark);
        return;
    }
}

static OrrCheckCause describe(const Search *s, const Guess *g, double total) {
    const OrrFault *one = g->faults[0], *other = g->faults[1];
    char now[32], before[32], rate[32], sound[32];
    g_autofree char *first = fault_words(one, g->levels[0]);
    g_autofree char *second = other ? fault_words(other, g->levels[1]) : NULL;
    GString *evidence = g_string_new(NULL);
    g_string_append_printf(
        evidence,
        "it would give %s GB/s at the largest size, a sound machine %s; times from 64 KiB on would "
        "be %s %% off on average, now they are %s %% off",
        put_number(rate, "%.1f", g->plateau_bytes_per_s * 1e-9),
        put_number(sound, "%.1f", plateau_of(&s->cases[s->n_cases - 1]) * 1e-9),
        put_number(now, "%.0f", 100 * g->error_frac),
        put_number(before, "%.0f", 100 * s->sound_error));
    add_marks(s, one, evidence);
    if (other)
        add_marks(s, other, evidence);
    return (OrrCheckCause){
        .codes = {one->code, other ? other->code : NULL},
        .code = other ? g_strdup_printf("%s+%s", one->code, other->code) : g_strdup(one->code),
        .words = other ? g_strdup_printf("%s, and %s", first, second) : g_strdup(first),
        .evidence = g_string_free(evidence, FALSE),
        .advice =
            other ? g_strdup_printf("%s; %s", one->advice, other->advice) : g_strdup(one->advice),
        .error_frac = g->error_frac,
        .likelihood_frac = g->weight / total};
}

void orr_judge_causes(const OrrCheckCase *cases, uint32_t n, OrrCheckCauses *out) {
    g_autofree OrrCheckCase *changed = g_new0(OrrCheckCase, n + 1);
    Search s = {.cases = cases,
                .n_cases = n,
                .changed = changed,
                .guesses = g_array_new(FALSE, TRUE, sizeof(Guess)),
                .sound_error = error_of(cases, n)};
    *out = (OrrCheckCauses){0};
    search(&s);
    g_array_sort(s.guesses, by_weight);
    double total = unknown_weight(&s);
    for (guint i = 0; i < s.guesses->len; i++)
        total += g_array_index(s.guesses, Guess, i).weight;
    out->causes = g_new0(OrrCheckCause, MAX_CAUSES);
    for (guint i = 0; i < s.guesses->len && out->n_causes < MAX_CAUSES; i++) {
        const Guess *g = &g_array_index(s.guesses, Guess, i);
        if (g->weight >= LEAST_SHARE * total)
            out->causes[out->n_causes++] = describe(&s, g, total);
    }
    g_array_unref(s.guesses);
}

void orr_check_causes_clear(OrrCheckCauses *causes) {
    for (uint32_t i = 0; i < causes->n_causes; i++) {
        OrrCheckCause *c = &causes->causes[i];
        g_free(c->code), g_free(c->words), g_free(c->evidence), g_free(c->advice);
    }
    g_free(causes->causes);
    *causes = (OrrCheckCauses){0};
}
