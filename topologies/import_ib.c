/* ibnetdiscover: the fabric of an InfiniBand subnet, as blocks ("Switch 65 "S-..." # "name"", a
 * line a port) or, with -p, one line a link. Hosts are told apart by the first word of the
 * adapter's description, as the driver sets it ("node0002 mlx5_5"). Switches that a cut listing
 * only mentions are counted as the far ends they are. */
#include "topologies/import_priv.h"

#include <string.h>

#include "sim/io/log.h"

typedef struct {
    guint n_down, n_up; /* ports to adapters, to switches */
    GHashTable *hosts;
} Switch;

typedef struct {
    GHashTable *adapters, *switches; /* by guid, sets */
} Host;

typedef struct {
    const OrrImport *import;
    GHashTable *switches, *hosts; /* by guid, by name */
    double bytes_per_s;           /* of an adapter's port; the highest */
    guint n_links, n_unnamed;
} Reader;

static void switch_free(gpointer data) {
    Switch *s = data;
    g_hash_table_unref(s->hosts);
    g_free(s);
}

static void host_free(gpointer data) {
    Host *h = data;
    g_hash_table_unref(h->adapters);
    g_hash_table_unref(h->switches);
    g_free(h);
}

static GHashTable *set_new(void) {
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static Switch *switch_of(Reader *r, const char *guid) {
    Switch *s = g_hash_table_lookup(r->switches, guid);
    if (!s) {
        s = g_new0(Switch, 1);
        s->hosts = set_new();
        g_hash_table_insert(r->switches, g_strdup(guid), s);
    }
    return s;
}

/* "4xNDR" or "4x" and "EDR"; data rates of four lanes: InfiniBand specification, volume 1. */
static double rate_of(const char *word) {
    static const struct {
        const char *name;
        double gbit_per_s;
    } rates[] = {{"SDR", 8},   {"DDR", 16},  {"QDR", 32},  {"FDR", 54.3},
                 {"EDR", 100}, {"HDR", 200}, {"NDR", 400}, {"XDR", 800}};
    double lanes = 4;
    const char *name = word, *end;
    if (orr_log_number(word, &lanes, &end) && *end == 'x')
        name = end + 1;
    for (guint i = 0; i < G_N_ELEMENTS(rates); i++)
        if (strcmp(name, rates[i].name) == 0)
            return rates[i].gbit_per_s / 4 * lanes * 1e9 / 8;
    return 0;
}

/* A link from @switch_guid to the adapter @guid of the host that @description begins with. */
static void add_adapter(Reader *r, const char *switch_guid, const char *guid,
                        const char *description, double rate) {
    if (strstr(description, "Aggregation Node")) /* the switch's own, for SHARP */
        return;
    if (strstr(description, "Mellanox Technologies")) { /* the driver's default: no host is named */
        r->n_unnamed++;
        return;
    }
    g_autofree char *name = g_strndup(description, strcspn(description, " "));
    Switch *s = switch_of(r, switch_guid);
    Host *h = g_hash_table_lookup(r->hosts, name);
    if (!h) {
        h = g_new0(Host, 1);
        h->adapters = set_new();
        h->switches = set_new();
        g_hash_table_insert(r->hosts, g_strdup(name), h);
    }
    s->n_down++;
    g_hash_table_add(s->hosts, g_strdup(name));
    g_hash_table_add(h->adapters, g_strdup(guid));
    g_hash_table_add(h->switches, g_strdup(switch_guid));
    r->bytes_per_s = MAX(r->bytes_per_s, rate);
    r->n_links++;
}

/* The text between the first pair of @quote at or behind *@at; *@at goes behind it. g_free. */
static char *quoted(const char **at, char quote) {
    const char *open = strchr(*at, quote);
    const char *close = open ? strchr(open + 1, quote) : NULL;
    if (!close)
        return NULL;
    *at = close + 1;
    return g_strndup(open + 1, (gsize)(close - open - 1));
}

/* "[1]  "H-guid"[1](..)  # "node0002 mlx5_5" lid 647 4xNDR", a port of switch @guid. */
static void read_port(Reader *r, const char *guid, const char *line) {
    const char *at = line;
    g_autofree char *far = quoted(&at, '"');
    g_autofree char *description = quoted(&at, '"');
    if (!far || !description)
        return;
    if (g_str_has_prefix(far, "S-")) {
        switch_of(r, guid)->n_up++;
        r->n_links++;
        return;
    }
    const char *last = strrchr(at, ' ');
    if (g_str_has_prefix(far, "H-"))
        add_adapter(r, guid, far, description, last ? rate_of(last + 1) : 0);
}

/* "SW  1719 10 0x..02 4x EDR - CA   134  1 0x..01 ( 'ib-i1l1s01' - 'o0001 HCA-1' )" */
static void read_pair(Reader *r, const char *line) {
    guint n;
    g_auto(GStrv) words = orr_log_words(line, &n);
    if (n < 11 || strcmp(words[0], "SW") != 0 || strcmp(words[6], "-") != 0)
        return; /* the adapters' own lines repeat the switches' */
    if (strcmp(words[7], "SW") == 0) {
        switch_of(r, words[3])->n_up++;
        r->n_links++;
        return;
    }
    const char *at = line;
    g_autofree char *near = quoted(&at, '\'');
    g_autofree char *far = quoted(&at, '\'');
    if (near && far)
        add_adapter(r, words[3], words[10], far, rate_of(words[5]));
}

static void read_log(Reader *r, const OrrLog *log) {
    g_autofree char *guid = NULL; /* of the switch whose ports follow */
    for (guint i = 0; i < log->n_lines; i++) {
        const char *line = log->lines[i], *at = line;
        if (g_str_has_prefix(line, "Switch")) {
            g_free(guid);
            guid = quoted(&at, '"');
        } else if (line[0] == '[' && guid) {
            read_port(r, guid, line);
        } else if (g_str_has_prefix(line, "SW ")) {
            read_pair(r, line);
        } else if (g_str_has_prefix(line, "Ca")) {
            g_clear_pointer(&guid, g_free);
        }
    }
}

/* Sums and highest values only: the order of hash tables does not show. */
static void count_fabric(const Reader *r, OrrFoundNode *found) {
    GHashTableIter iter;
    gpointer value;
    guint n_down = 0, n_up = 0, n_leaves = 0, n_spread = 0;
    g_hash_table_iter_init(&iter, r->switches);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Switch *s = value;
        if (s->n_down == 0)
            continue;
        n_leaves++;
        n_down += s->n_down;
        n_up += s->n_up;
        found->nodes_per_leaf = MAX(found->nodes_per_leaf, g_hash_table_size(s->hosts));
    }
    g_hash_table_iter_init(&iter, r->hosts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Host *h = value;
        n_spread += g_hash_table_size(h->switches) > 1;
    }
    found->n_nodes = g_hash_table_size(r->hosts);
    found->is_rail = n_spread * 2 > found->n_nodes;
    if (n_leaves > 1 && n_up > 0)
        found->leaf_oversubscription = MAX(1, (double)n_down / n_up);
}

static guint adapters_of_a_host(const Reader *r) {
    GHashTableIter iter;
    gpointer value;
    guint most = 0;
    g_hash_table_iter_init(&iter, r->hosts);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        most = MAX(most, g_hash_table_size(((Host *)value)->adapters));
    return most;
}

OrrFoundNode *orr_topologies__read_ib(const OrrImport *import, const char *text, gsize length,
                                      GError **error) {
    g_autoptr(OrrLog) log = orr_log_parse(import->path, text, length, error);
    if (!log)
        return NULL;
    OrrFoundNode *found = NULL;
    Reader r = {.import = import};
    r.switches = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, switch_free);
    r.hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, host_free);
    read_log(&r, log);
    guint n_nics = adapters_of_a_host(&r);
    if (n_nics == 0 || n_nics > ORR_MAX_FOUND) {
        orr_fail_input(error,
                       "%s: %u lines, but no link from a switch to an adapter: a \"Switch\" "
                       "block with ports or lines \"SW ... - CA ...\" would do",
                       import->path, log->n_lines);
    } else {
        found = orr_topologies__found_new("ibnetdiscover", n_nics, n_nics);
        found->net = "ib";
        for (uint32_t i = 0; i < n_nics; i++) {
            found->gpus[i].id = g_strdup_printf("GPU%u", i);
            found->nics[i].id = g_strdup_printf("NIC%u", i);
            found->nics[i].bytes_per_s = r.bytes_per_s;
        }
        count_fabric(&r, found);
        if (r.n_unnamed > 0)
            orr_topologies__note(import, 0, "%u adapters name no host: left out", r.n_unnamed);
        orr_topologies__note(import, 0,
                             "%u hosts, %u switches, %u links; the GPUs of a host are not in it: "
                             "one for each of its %u adapters is assumed",
                             found->n_nodes, g_hash_table_size(r.switches), r.n_links, n_nics);
    }
    g_hash_table_unref(r.switches);
    g_hash_table_unref(r.hosts);
    return found;
}
