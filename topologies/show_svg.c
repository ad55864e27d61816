/* The picture: core, pods or spine, leaves, nodes, and one node opened up, in layers of boxes.
 * A layer draws at most MAX_BOXES boxes, the last one after an ellipsis. */
#include <string.h>

#include "sim/base/units.h"
#include "topologies/show_priv.h"

enum { WIDTH = 1000, MARGIN = 40, MAX_BOXES = 8, ROW_HEIGHT = 100, BOX_HEIGHT = 44, TOP = 72 };

/* Okabe and Ito's palette, safe for the colour-blind; pale fills of the same hues. */
#define COLOUR_SWITCH "#cfe3f1"
#define COLOUR_NODE "#fbe6c2"
#define COLOUR_GPU "#cdeadf"
#define COLOUR_LINE "#56606b"
#define COLOUR_FAINT "#d3d8dd"

typedef struct {
    char name[16], note[96]; /* in the boxes: name and number; above the layer */
    uint32_t total;
    const char *fill;
    bool is_mesh; /* every box is connected to every box above (rails) */
} Layer;

typedef struct {
    uint32_t n, total; /* drawn, there */
    double x[MAX_BOXES], width;
    uint32_t id[MAX_BOXES]; /* number of the thing drawn */
} Boxes;

static void escape(GString *out, const char *text) {
    g_autofree char *safe = g_markup_escape_text(text, -1);
    g_string_append(out, safe);
}

/* Integers only: printf's %f follows the locale. */
static void text_at(GString *out, double x, double y, uint32_t size, const char *anchor,
                    const char *text) {
    g_string_append_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"%u\" text-anchor=\"%s\">",
                           (int)x, (int)y, size, anchor);
    escape(out, text);
    g_string_append(out, "</text>\n");
}

static void box_at(GString *out, double x, double y, double width, double height,
                   const char *fill) {
    g_string_append_printf(out,
                           "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
                           "fill=\"%s\" stroke=\"" COLOUR_LINE "\"/>\n",
                           (int)x, (int)y, (int)width, (int)height, fill);
}

static void line_between(GString *out, double x1, double y1, double x2, double y2, bool is_faint) {
    g_string_append_printf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\"/>\n",
                           (int)x1, (int)y1, (int)x2, (int)y2,
                           is_faint ? COLOUR_FAINT : COLOUR_LINE);
}

/* Places the boxes of a layer side by side in [left, left + span]. */
static Boxes place(uint32_t total, double left, double span) {
    Boxes b = {.total = total, .n = MIN(total, MAX_BOXES)};
    double gap = 14, ellipsis = total > b.n ? 26 : 0;
    double pitch = (span - ellipsis + gap) / b.n;
    b.width = MIN(pitch - gap, 220);
    double used = b.n * (b.width + gap) - gap + ellipsis, at = left + (span - used) / 2;
    for (uint32_t i = 0; i < b.n; i++) {
        bool is_last = i + 1 == b.n;
        at += is_last ? ellipsis : 0;
        b.x[i] = at;
        b.id[i] = is_last ? total - 1 : i;
        at += b.width + gap;
    }
    return b;
}

static void draw_boxes(GString *out, const Layer *layer, const Boxes *b, double y) {
    for (uint32_t i = 0; i < b->n; i++) {
        g_autofree char *count = orr_units_count(b->id[i]);
        g_autofree char *label =
            b->total > 1 ? g_strdup_printf("%s %s", layer->name, count) : g_strdup(layer->name);
        box_at(out, b->x[i], y, b->width, BOX_HEIGHT, layer->fill);
        text_at(out, b->x[i] + b->width / 2, y + BOX_HEIGHT / 2 + 5, 13, "middle", label);
    }
    if (b->total > b->n)
        text_at(out, b->x[b->n - 1] - 20, y + BOX_HEIGHT / 2 + 4, 16, "middle", "...");
}

/* Links of a layer to the one above: to its first box, or to all (of the first box last, so that
 * they lie on top; the others faint). */
static void draw_links(GString *out, const Layer *layer, const Boxes *b, const Boxes *above,
                       double y) {
    double top = y - (ROW_HEIGHT - BOX_HEIGHT);
    for (uint32_t i = b->n; i-- > 0;)
        for (uint32_t j = 0; j < (layer->is_mesh ? above->n : 1); j++)
            line_between(out, b->x[i] + b->width / 2, y, above->x[j] + above->width / 2, top,
                         layer->is_mesh && i > 0);
}

static void name_layer(Layer *layer, const char *name, uint32_t total, const char *fill) {
    g_strlcpy(layer->name, name, sizeof layer->name);
    layer->total = total;
    layer->fill = fill;
}

/* Fills @layers (at least 4) from the top; returns how many. Notes tell the links upwards. */
static uint32_t list_layers(const OrrCluster *c, Layer *layers) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    uint32_t n = 0, pods = orr_cluster_n_pods(c), leaves = orr_cluster_n_leaves(c);
    bool is_rail = s->fabric == ORR_FABRIC_RAIL;
    g_autofree char *pod_up = orr_show__bits(orr_show__pod_up_bytes_per_s(c));
    g_autofree char *leaf_up = orr_show__bits(orr_show__leaf_up_bytes_per_s(c));
    g_autofree char *pod_over = orr_show__oversubscription(s->pod_oversubscription);
    g_autofree char *leaf_over = orr_show__oversubscription(s->leaf_oversubscription);
    g_autofree char *nic = orr_show__bits(s->node->nic_bytes_per_s);
    g_autofree char *n_pods = orr_units_count(pods), *n_leaves = orr_units_count(leaves);
    g_autofree char *n_nodes = orr_units_count(orr_cluster_n_nodes(c));
    memset(layers, 0, 4 * sizeof *layers);
    if (orr_show__has_fabric(c) && pods > 1) {
        name_layer(&layers[n++], "core", 1, COLOUR_SWITCH);
        name_layer(&layers[n], "pod", pods, COLOUR_SWITCH);
        g_snprintf(layers[n++].note, sizeof layers->note, "%s pods, each %s up, %s", n_pods, pod_up,
                   pod_over);
    } else if (orr_show__has_fabric(c) && leaves > 1) {
        name_layer(&layers[n++], "spine", 1, COLOUR_SWITCH);
    }
    if (orr_show__has_fabric(c) && leaves > 1) {
        uint32_t shown =
            is_rail ? s->node->nics : orr_show__nodes_per_pod(c) / orr_show__nodes_per_leaf(c);
        name_layer(&layers[n], is_rail ? "rail" : "leaf", MAX(1, MIN(shown, leaves)),
                   COLOUR_SWITCH);
        g_snprintf(layers[n++].note, sizeof layers->note, "%s leaves in all, each %s up, %s",
                   n_leaves, leaf_up, leaf_over);
    } else {
        name_layer(&layers[n++], "switch", 1, COLOUR_SWITCH);
    }
    name_layer(&layers[n], "node", orr_show__nodes_per_leaf(c), COLOUR_NODE);
    layers[n].is_mesh = is_rail && leaves > 1;
    g_snprintf(layers[n++].note, sizeof layers->note, "%s nodes in all, each %u x %s", n_nodes,
               s->node->nics, nic);
    return n;
}

/* One node opened up: GPUs, what joins them, NICs. */
static void draw_node(const OrrNode *n, double y, GString *out) {
    double left = MARGIN, span = WIDTH - 2 * MARGIN, inner = span - 40;
    g_autofree char *rate = orr_units_rate(n->gpu->nvlink_bytes_per_s);
    g_autofree char *link = orr_units_rate(n->mesh_link_bytes_per_s);
    g_autofree char *pcie = orr_units_rate(n->pcie_bytes_per_s);
    g_autofree char *joint =
        n->nvlink == ORR_NVLINK_SWITCH ? g_strdup_printf("NVLink switch: %s a GPU each way%s", rate,
                                                         n->has_nvls ? ", NVLS" : "")
        : n->nvlink == ORR_NVLINK_MESH ? g_strdup_printf("NVLink mesh: links of %s each way", link)
                                       : g_strdup_printf("PCIe: %s a GPU each way", pcie);
    g_autofree char *title =
        g_strdup_printf("inside node 0: %s, %u x %s", n->name, n->gpus, n->gpu->name);
    Layer gpus = {.fill = COLOUR_GPU}, nics = {.fill = COLOUR_SWITCH};
    Boxes g = place(n->gpus, left + 20, inner), k = place(MAX(1, n->nics), left + 20, inner);
    name_layer(&gpus, "GPU", n->gpus, COLOUR_GPU);
    name_layer(&nics, "NIC", n->nics, COLOUR_SWITCH);
    box_at(out, left, y, span, n->nics ? 228 : 152, "#fdf6e7");
    text_at(out, left + 12, y + 20, 13, "start", title);
    if (n->nics) {
        draw_boxes(out, &nics, &k, y + 32);
        for (uint32_t i = 0; i < g.n; i++) {
            uint32_t nic = (uint32_t)((uint64_t)i * k.n / g.n);
            line_between(out, g.x[i] + g.width / 2, y + 108, k.x[nic] + k.width / 2, y + 32 + 44,
                         false);
        }
    }
    double base = n->nics ? y + 108 : y + 32;
    draw_boxes(out, &gpus, &g, base);
    for (uint32_t i = 0; i < g.n; i++)
        line_between(out, g.x[i] + g.width / 2, base + BOX_HEIGHT, g.x[i] + g.width / 2, base + 70,
                     false);
    box_at(out, left + 20, base + 70, inner, 34, COLOUR_NODE);
    text_at(out, WIDTH / 2.0, base + 92, 13, "middle", joint);
}

static void draw_head(const OrrCluster *c, uint32_t height, GString *out) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    g_autofree char *gpus = orr_units_count(s->n_gpus);
    g_autofree char *nodes = orr_units_count(orr_cluster_n_nodes(c));
    double cut = orr_show__bisection_bytes_per_s(c);
    g_autofree char *bisection = orr_show__bits(cut);
    g_autofree char *share = orr_show__bits(cut / (s->n_gpus > 1 ? s->n_gpus / 2.0 : 1));
    g_autofree char *title = g_strdup_printf("%s: %s GPUs in %s nodes", s->name, gpus, nodes);
    const char *network =
        orr_show__has_fabric(c) ? orr_fabric_names[s->fabric] : "management network";
    g_autofree char *note =
        cut > 0 ? g_strdup_printf("%s, %s; bisection %s each way, %s a GPU", network,
                                  orr_net_names[s->node->net], bisection, share)
                : g_strdup_printf("%s, %s", network, orr_net_names[s->node->net]);
    g_string_append_printf(out,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
                           "viewBox=\"0 0 %d %u\" font-family=\"sans-serif\" fill=\"#1b1f24\">\n"
                           "<rect width=\"%d\" height=\"%u\" fill=\"white\"/>\n",
                           WIDTH, height, WIDTH, height, WIDTH, height);
    g_string_append(out, "<title>");
    escape(out, title);
    g_string_append(out, "</title>\n");
    text_at(out, MARGIN, 38, 22, "start", title);
    text_at(out, MARGIN, 62, 14, "start", note);
}

void orr_topology_show_svg(const OrrCluster *c, GString *out) {
    Layer layers[4];
    uint32_t n = list_layers(c, layers);
    uint32_t height = TOP + n * ROW_HEIGHT + 280;
    Boxes above = {0};
    draw_head(c, height, out);
    for (uint32_t i = 0; i < n; i++) {
        double y = TOP + 24 + i * (double)ROW_HEIGHT;
        Boxes b = place(layers[i].total, MARGIN, WIDTH - 2 * MARGIN);
        if (i)
            draw_links(out, &layers[i], &b, &above, y);
        draw_boxes(out, &layers[i], &b, y);
        if (*layers[i].note) {
            g_string_append_printf(out,
                                   "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"18\" "
                                   "fill=\"white\" fill-opacity=\"0.85\"/>\n",
                                   MARGIN, (int)y - 34, (int)strlen(layers[i].note) * 7);
            text_at(out, MARGIN + 4, y - 20, 13, "start", layers[i].note);
        }
        above = b;
    }
    double y = TOP + 24 + n * (double)ROW_HEIGHT - 20;
    draw_node(orr_cluster_spec(c)->node, y, out);
    g_string_append(out, "</svg>\n");
}
