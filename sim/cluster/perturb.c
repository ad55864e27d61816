/* See perturb.h. Draws are counter-based: the speed of a rank depends on the seed and its number,
 * not on how many ranks there are. A detour keeps to the node's own links: which leaf the
 * neighbour's NIC hangs on is left out. */
#include "sim/cluster/perturb.h"

#include <math.h>
#include <string.h>

#include "sim/base/random.h"
#include "sim/base/words.h"

static const struct {
    const char *name;
    OrrPerturbDraw draw;
} draws[] = {
    {"normal", ORR_DRAW_NORMAL}, {"uniform", ORR_DRAW_UNIFORM}, {"lognormal", ORR_DRAW_LOGNORMAL}};

OrrPerturbs *orr_perturbs_new(void) {
    return g_new0(OrrPerturbs, 1);
}

static void item_clear(OrrPerturb *item) {
    g_free(item->what);
    g_free(item->value);
    g_free(item->link);
    g_free(item->file);
    g_free(item->table);
}

void orr_perturbs_free(OrrPerturbs *p) {
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n; i++)
        item_clear(&p->items[i]);
    g_free(p->items);
    g_free(p);
}

/* "17", "0-7" (where @may_run) or "*". */
static bool parse_run(const char *text, bool may_run, OrrPerturb *item) {
    if (strcmp(text, "*") == 0) {
        item->last = ORR_NONE;
        return true;
    }
    const char *dash = may_run ? strchr(text, '-') : NULL;
    g_autofree char *head = dash ? g_strndup(text, (gsize)(dash - text)) : g_strdup(text);
    guint64 first, last;
    if (!g_ascii_string_to_unsigned(head, 10, 0, ORR_NONE - 1, &first, NULL))
        return false;
    last = first;
    if (dash && !g_ascii_string_to_unsigned(dash + 1, 10, first, ORR_NONE - 1, &last, NULL))
        return false;
    item->first = (uint32_t)first;
    item->last = (uint32_t)last;
    return true;
}

static bool parse_target(const char *text, OrrPerturb *item, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ":", -1);
    guint n = g_strv_length(words);
    if (n == 1 && strcmp(words[0], "jitter") == 0) {
        item->target = ORR_PERTURB_JITTER;
        return true;
    }
    if (n == 3 && strcmp(words[0], "gpu") == 0) {
        item->target = ORR_PERTURB_GPU;
        if (!parse_run(words[1], true, item))
            return orr_fail_input(error, "perturbation %s: '%s' is no rank; 17, 0-7 or * would do",
                                  text, words[1]);
        if (strcmp(words[2], "speed") == 0)
            return true;
        return orr_fail_input(error, "perturbation %s: '%s': of a GPU, speed would do", text,
                              words[2]);
    }
    if (n == 3 && strcmp(words[0], "link") == 0) {
        item->target = ORR_PERTURB_LINK;
        item->link = g_strdup(words[1]);
    } else if (n == 4 && strcmp(words[0], "nic") == 0) {
        item->target = ORR_PERTURB_NIC;
        guint64 index;
        if (!parse_run(words[1], true, item))
            return orr_fail_input(error, "perturbation %s: '%s' is no node; 3, 0-7 or * would do",
                                  text, words[1]);
        if (!g_ascii_string_to_unsigned(words[2], 10, 0, 255, &index, NULL))
            return orr_fail_input(error,
                                  "perturbation %s: '%s' is no NIC; its number in the node would "
                                  "do",
                                  text, words[2]);
        item->index = (uint32_t)index;
    } else {
        return orr_fail_input(error,
                              "perturbation %s: gpu:RANK:speed, link:NAME:bandwidth, "
                              "nic:NODE:INDEX:bandwidth or jitter would do",
                              text);
    }
    if (strcmp(words[n - 1], "bandwidth") != 0)
        return orr_fail_input(error, "perturbation %s: '%s': of a link, bandwidth would do", text,
                              words[n - 1]);
    return true;
}

static bool number(const char *text, double *out) {
    char *end;
    *out = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && !g_ascii_isspace(text[0]);
}

/* Nine deviations of a normal draw: no draw of 53 bits lies further out (Box and Muller 1958). */
#define FAR 9.0

/* The range that the draws of @item can take. */
static void extent(const OrrPerturb *item, double *low, double *high) {
    *low = item->a, *high = item->a;
    if (item->draw == ORR_DRAW_NORMAL)
        *low = item->a - FAR * item->b, *high = item->a + FAR * item->b;
    if (item->draw == ORR_DRAW_UNIFORM)
        *high = item->b;
    if (item->draw == ORR_DRAW_LOGNORMAL)
        *low = item->a * exp(-FAR * item->b), *high = item->a * exp(FAR * item->b);
}

#define SPEEDS "0.001 to 4" /* ORR_PERTURB_MIN_SPEED to MAX_SPEED in words */

static bool speed_range(const OrrPerturb *item, GError **error) {
    double low, high;
    extent(item, &low, &high);
    if (low >= ORR_PERTURB_MIN_SPEED && high <= ORR_PERTURB_MAX_SPEED && low <= high)
        return true;
    char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE];
    const char *sign = item->draw == ORR_DRAW_FIXED ? "=" : ""; /* of a draw, part of the value */
    g_ascii_formatd(a, sizeof a, "%.6g", low);
    g_ascii_formatd(b, sizeof b, "%.6g", high);
    if (low > high)
        return orr_fail_input(error,
                              "perturbation %s%s%s: uniform(%s,%s), the lower first, would do",
                              item->what, sign, item->value, b, a);
    if (low == high)
        return orr_fail_input(error, "perturbation %s%s%s: a speed of %s; " SPEEDS " would do",
                              item->what, sign, item->value, a);
    return orr_fail_input(error,
                          "perturbation %s%s%s: speeds from %s to %s; within " SPEEDS " would do",
                          item->what, sign, item->value, a, b);
}

/* "normal(1,0.01)" */
static bool parse_draw(const char *text, OrrPerturb *item, GError **error) {
    const char *open = strchr(text, '(');
    gsize length = strlen(text);
    for (guint i = 0; open && i < G_N_ELEMENTS(draws); i++) {
        if (strlen(draws[i].name) != (gsize)(open - text) ||
            strncmp(text, draws[i].name, (gsize)(open - text)) != 0 || text[length - 1] != ')')
            continue;
        g_autofree char *inside = g_strndup(open + 1, length - (gsize)(open - text) - 2);
        g_auto(GStrv) parts = g_strsplit(inside, ",", -1);
        item->draw = draws[i].draw;
        if (g_strv_length(parts) != 2 || !number(g_strstrip(parts[0]), &item->a) ||
            !number(g_strstrip(parts[1]), &item->b))
            break;
        if (item->b < 0)
            return orr_fail_input(error, "perturbation %s%s: '%s' is below 0; 0.01 would do",
                                  item->what, item->value, parts[1]);
        return speed_range(item, error);
    }
    return orr_fail_input(error,
                          "perturbation %s%s: normal(1,0.01), uniform(0.9,1) or "
                          "lognormal(1,0.01) would do",
                          item->what, item->value);
}

static bool jitter_range(const OrrPerturb *item, GError **error) {
    if (item->a >= 0 && item->a <= ORR_PERTURB_MAX_JITTER)
        return true;
    return orr_fail_input(error,
                          "perturbation %s=%s: a standard deviation from 0 to 0.2 of a stretch of "
                          "kernels would do",
                          item->what, item->value);
}

static bool parse_value(const char *text, OrrPerturb *item, GError **error) {
    bool is_gpu = item->target == ORR_PERTURB_GPU;
    if (is_gpu && text[0] == '@' && text[1]) {
        item->draw = ORR_DRAW_TABLE;
        item->file = g_strdup(text + 1);
        return true;
    }
    if (!number(text, &item->a))
        return orr_fail_input(error, "perturbation %s=%s: '%s' is no number; %s%s would do",
                              item->what, item->value, text,
                              item->target == ORR_PERTURB_JITTER ? "0.02" : "0.9",
                              is_gpu ? ", @FILE.csv or ~normal(1,0.01)" : "");
    if (is_gpu)
        return speed_range(item, error);
    if (item->target == ORR_PERTURB_JITTER)
        return jitter_range(item, error);
    double least = item->target == ORR_PERTURB_NIC ? 0 : 0.001; /* as ORR_PERTURB_MIN_SPEED */
    if (item->a == 0 || (item->a >= 0.001 && item->a <= 1))
        if (item->a >= least)
            return true;
    return orr_fail_input(
        error, "perturbation %s=%s: a factor from 0.001 to 1 would do%s", item->what, item->value,
        item->target == ORR_PERTURB_NIC ? ", or 0 for a NIC that is missing" : "");
}

static bool parse(const char *text, OrrPerturb *item, GError **error) {
    const char *sign = strpbrk(text, "=~");
    if (!sign)
        return orr_fail_input(
            error, "perturbation %s: TARGET=VALUE would do, such as gpu:17:speed=0.9", text);
    item->what = g_strndup(text, (gsize)(sign - text));
    item->value = g_strdup(*sign == '~' ? sign : sign + 1);
    if (!parse_target(item->what, item, error))
        return false;
    if (*sign == '=')
        return parse_value(sign + 1, item, error);
    if (item->target != ORR_PERTURB_GPU)
        return orr_fail_input(error, "perturbation %s: only speeds of GPUs are drawn; =%s would do",
                              text, item->target == ORR_PERTURB_JITTER ? "0.02" : "0.5");
    return parse_draw(sign + 1, item, error);
}

bool orr_perturbs_add(OrrPerturbs *p, const char *text, GError **error) {
    OrrPerturb item = {0};
    if (!parse(text, &item, error)) {
        item_clear(&item);
        return false;
    }
    p->items = g_renew(OrrPerturb, p->items, p->n + 1);
    p->items[p->n++] = item;
    return true;
}

bool orr_perturb_set_table(OrrPerturb *item, const uint32_t *ranks, const double *speeds,
                           uint32_t n, GError **error) {
    for (uint32_t i = 0; i < n; i++) {
        if (!(speeds[i] >= ORR_PERTURB_MIN_SPEED && speeds[i] <= ORR_PERTURB_MAX_SPEED))
            return orr_fail_input(error, "%s: speed of rank %u: " SPEEDS " would do", item->file,
                                  ranks[i]);
        item->n_table = MAX(item->n_table, ranks[i] + 1);
    }
    item->table = g_new0(double, item->n_table + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (item->table[ranks[i]] > 0)
            return orr_fail_input(error, "%s: rank %u comes twice; once would do", item->file,
                                  ranks[i]);
        item->table[ranks[i]] = speeds[i];
    }
    return true;
}

static bool check_ranks(const OrrPerturb *item, uint32_t n_ranks, GError **error) {
    uint32_t worst = item->last == ORR_NONE ? 0 : item->last;
    if (item->n_table > 0)
        worst = MAX(worst, item->n_table - 1);
    if (worst < n_ranks)
        return true;
    return orr_fail_input(error, "perturbation %s=%s: there is no rank %u; 0 to %u would do",
                          item->what, item->value, worst, n_ranks - 1);
}

static bool check_nics(const OrrPerturb *item, const OrrCluster *c, GError **error) {
    uint32_t n_nodes = orr_cluster_n_nodes(c), nics = orr_cluster_spec(c)->node->nics;
    if (item->last != ORR_NONE && item->last >= n_nodes)
        return orr_fail_input(error, "perturbation %s: there is no node %u; 0 to %u would do",
                              item->what, item->last, n_nodes - 1);
    if (item->index >= nics)
        return orr_fail_input(error, "perturbation %s: a node has %u NICs; 0 to %d would do",
                              item->what, nics, (int)nics - 1);
    return true;
}

/* A node that has lost all its NICs has no way out. */
static bool check_ways_out(const OrrPerturbs *p, const OrrPerturb *item, const OrrCluster *c,
                           GError **error) {
    uint32_t last = MIN(item->last, orr_cluster_n_nodes(c) - 1);
    for (uint32_t node = item->first; node <= last; node++) {
        uint32_t link = orr_cluster_nic_link(c, node, item->index, true);
        if (orr_perturbs_detour(p, c, link) != ORR_NONE)
            continue;
        g_autofree char *name = orr_cluster_link_name(c, link);
        return orr_fail_input(error,
                              "perturbation: all NICs of the node of %s are missing; leave "
                              "one of them",
                              name);
    }
    return true;
}

/* Several that hit one rank multiply: the product must stay a speed. */
static bool check_products(const OrrPerturbs *p, uint32_t n_ranks, GError **error) {
    for (uint32_t rank = 0; p->n > 1 && rank < n_ranks; rank++) {
        double least = 1, most = 1;
        for (uint32_t i = 0; i < p->n; i++) {
            const OrrPerturb *item = &p->items[i];
            double low, high;
            if (item->target != ORR_PERTURB_GPU || rank < item->first || rank > item->last)
                continue;
            extent(item, &low, &high);
            if (item->draw == ORR_DRAW_TABLE)
                low = high = rank < item->n_table && item->table[rank] > 0 ? item->table[rank] : 1;
            least *= low, most *= high;
        }
        if (least < ORR_PERTURB_MIN_SPEED || most > ORR_PERTURB_MAX_SPEED) {
            char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE];
            return orr_fail_input(error,
                                  "perturbations: those of rank %u multiply to speeds from %s to "
                                  "%s; within " SPEEDS " would do",
                                  rank, g_ascii_formatd(a, sizeof a, "%.6g", least),
                                  g_ascii_formatd(b, sizeof b, "%.6g", most));
        }
    }
    return true;
}

bool orr_perturbs_check(const OrrPerturbs *p, const OrrCluster *c, uint32_t n_ranks,
                        GError **error) {
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrPerturb *item = &p->items[i];
        uint32_t link;
        if (item->target == ORR_PERTURB_GPU && !check_ranks(item, n_ranks, error))
            return false;
        if (item->target == ORR_PERTURB_NIC && !check_nics(item, c, error))
            return false;
        if (item->target == ORR_PERTURB_LINK && !orr_cluster_link_find(c, item->link, &link)) {
            g_autofree char *hint = orr_cluster_link_hint(c, item->link);
            return orr_fail_input(error, "perturbation %s: there is no link %s; %s", item->what,
                                  item->link, hint);
        }
    }
    if (!check_products(p, n_ranks, error))
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].target == ORR_PERTURB_NIC && p->items[i].a == 0 &&
            !check_ways_out(p, &p->items[i], c, error))
            return false;
    return true;
}

bool orr_perturbs_are_drawn(const OrrPerturbs *p) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].draw != ORR_DRAW_FIXED && p->items[i].draw != ORR_DRAW_TABLE)
            return true;
    return false;
}

double orr_perturbs_jitter(const OrrPerturbs *p) {
    double squares = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].target == ORR_PERTURB_JITTER)
            squares += p->items[i].a * p->items[i].a;
    return sqrt(squares);
}

bool orr_perturbs_have_speeds(const OrrPerturbs *p) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].target == ORR_PERTURB_GPU)
            return true;
    return false;
}

double orr_perturbs_speed(const OrrPerturbs *p, uint32_t rank, uint64_t seed) {
    OrrRandom random = orr_random(seed, "gpu speed");
    double speed = 1;
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrPerturb *item = &p->items[i];
        if (item->target != ORR_PERTURB_GPU || rank < item->first || rank > item->last)
            continue;
        switch (item->draw) {
        case ORR_DRAW_FIXED:
            speed *= item->a;
            break;
        case ORR_DRAW_NORMAL:
            speed *= item->a + item->b * orr_random_normal(random, rank, i);
            break;
        case ORR_DRAW_UNIFORM:
            speed *= item->a + (item->b - item->a) * orr_random_uniform(random, rank, i);
            break;
        case ORR_DRAW_LOGNORMAL:
            speed *= item->a * orr_random_lognormal(random, rank, i, item->b);
            break;
        case ORR_DRAW_TABLE:
            speed *= rank < item->n_table && item->table[rank] > 0 ? item->table[rank] : 1;
            break;
        }
    }
    return speed;
}

bool orr_perturbs_have_links(const OrrPerturbs *p) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].target != ORR_PERTURB_GPU)
            return true;
    return false;
}

bool orr_perturbs_have_missing(const OrrPerturbs *p) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->items[i].target == ORR_PERTURB_NIC && p->items[i].a == 0)
            return true;
    return false;
}

double orr_perturbs_link(const OrrPerturbs *p, const OrrCluster *c, uint32_t link) {
    OrrLinkKind kind = orr_cluster_link_kind(c, link);
    bool is_nic = kind == ORR_LINK_NIC_OUT || kind == ORR_LINK_NIC_IN;
    uint32_t owner, index, named;
    double factor = 1;
    orr_cluster_link_owner(c, link, &owner, &index);
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrPerturb *item = &p->items[i];
        if (item->target == ORR_PERTURB_LINK && orr_cluster_link_find(c, item->link, &named) &&
            named == link)
            factor *= item->a;
        if (item->target == ORR_PERTURB_NIC && is_nic && index == item->index &&
            owner >= item->first && owner <= item->last)
            factor *= item->a;
    }
    return factor;
}

void orr_perturbs_links(const OrrPerturbs *p, const OrrCluster *c, GArray *links) {
    for (uint32_t i = 0; i < p->n; i++) {
        const OrrPerturb *item = &p->items[i];
        uint32_t link;
        if (item->target == ORR_PERTURB_LINK && orr_cluster_link_find(c, item->link, &link))
            g_array_append_val(links, link);
        if (item->target != ORR_PERTURB_NIC)
            continue;
        uint32_t last = MIN(item->last, orr_cluster_n_nodes(c) - 1);
        for (uint32_t node = item->first; node <= last; node++)
            for (int way = 0; way < 2; way++) {
                link = orr_cluster_nic_link(c, node, item->index, way == 0);
                g_array_append_val(links, link);
            }
    }
}

uint32_t orr_perturbs_detour(const OrrPerturbs *p, const OrrCluster *c, uint32_t link) {
    if (orr_perturbs_link(p, c, link) > 0)
        return link;
    uint32_t nics = orr_cluster_spec(c)->node->nics, node, index;
    bool is_out = orr_cluster_link_kind(c, link) == ORR_LINK_NIC_OUT;
    orr_cluster_link_owner(c, link, &node, &index);
    for (uint32_t k = 1; k < nics; k++) {
        uint32_t next = orr_cluster_nic_link(c, node, (index + k) % nics, is_out);
        if (orr_perturbs_link(p, c, next) > 0)
            return next;
    }
    return ORR_NONE;
}
