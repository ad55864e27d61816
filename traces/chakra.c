#include "traces/chakra.h"

#include <string.h>

#include "sim/io/csv.h"
#include "sim/io/text.h"
#include "traces/chakra_priv.h"
#include "traces/protobuf.h"

#define LIMIT_BYTES ((gsize)2 << 30) /* ours: a rank's step has some MB */
#define MAX_NODES 50000000           /* ours: keeps indices and the sort within memory */

/* In the order of et_def.proto's CollectiveCommType. */
static const OrrCollective comm_types[] = {
    ORR_ALL_REDUCE,    ORR_REDUCE,     ORR_ALL_GATHER,     ORR_N_COLLECTIVES, /* gather */
    ORR_N_COLLECTIVES,                                                        /* scatter */
    ORR_BROADCAST,     ORR_ALL_TO_ALL, ORR_REDUCE_SCATTER, ORR_REDUCE_SCATTER,
    ORR_N_COLLECTIVES, /* barrier */
};

uint8_t orr_chakra_comm_type(OrrCollective kind) {
    for (uint8_t i = 0; i < G_N_ELEMENTS(comm_types); i++)
        if (comm_types[i] == kind)
            return i;
    return 255;
}

OrrCollective orr_chakra_collective(uint64_t comm_type) {
    return comm_type < G_N_ELEMENTS(comm_types) ? comm_types[comm_type] : ORR_N_COLLECTIVES;
}

void orr_traces__chakra_add(OrrChakraDraft *draft, OrrReplayNode node, uint64_t type,
                            uint64_t comm_type) {
    node.kind = type == ORR_CHAKRA_COLL   ? ORR_REPLAY_COLLECTIVE
                : type == ORR_CHAKRA_SEND ? ORR_REPLAY_SEND
                : type == ORR_CHAKRA_RECV ? ORR_REPLAY_RECEIVE
                : type != ORR_CHAKRA_COMP ? ORR_REPLAY_OTHER
                : node.is_host            ? ORR_REPLAY_HOST
                                          : ORR_REPLAY_COMPUTE;
    if (node.is_host && node.kind == ORR_REPLAY_COLLECTIVE)
        node.kind = ORR_REPLAY_HOST; /* PyTorch's call, beside NCCL's kernel */
    node.collective =
        node.kind == ORR_REPLAY_COLLECTIVE ? orr_chakra_collective(comm_type) : ORR_N_COLLECTIVES;
    if (!node.name)
        node.name = g_strdup("");
    g_array_append_val(draft->nodes, node);
}

typedef struct {
    char *name;
    uint64_t number; /* of any integer type */
    char *text;
} Attribute;

static char *text_of(OrrWire bytes) {
    return g_utf8_make_valid((const char *)bytes.at, (gssize)(bytes.end - bytes.at));
}

static bool read_attribute(OrrWire message, Attribute *a) {
    OrrWireField f;
    bool is_sound;
    while (orr_wire_field(&message, &f, &is_sound)) {
        if (f.number == 1 && f.type == 2) {
            g_free(a->name);
            a->name = text_of(f.bytes);
        } else if (f.number == 29 && f.type == 2) { /* string_val */
            g_free(a->text);
            a->text = text_of(f.bytes);
        } else if (f.type == 0) {
            /* sint32 and sint64 (15, 17) zigzag; the other integer members are plain */
            bool is_zigzag = f.number == 15 || f.number == 17;
            a->number = is_zigzag ? (f.value >> 1) ^ (0 - (f.value & 1)) : f.value;
        }
    }
    return is_sound && a->name;
}

static void attribute_clear(Attribute *a) {
    g_free(a->name);
    g_free(a->text);
}

typedef struct {
    OrrReplayNode node;
    uint64_t type, comm_type;
} Node;

static void take_attribute(Node *n, const Attribute *a) {
    int64_t value = (int64_t)MIN(a->number, (uint64_t)INT64_MAX);
    if (strcmp(a->name, "is_cpu_op") == 0)
        n->node.is_host = a->number != 0;
    else if (strcmp(a->name, "tid") == 0 || strcmp(a->name, "stream") == 0)
        n->node.stream = value;
    else if (strcmp(a->name, "comm_type") == 0)
        n->comm_type = a->number;
    else if (strcmp(a->name, "comm_size") == 0)
        n->node.bytes = value;
    else if (strcmp(a->name, "duration_ns") == 0) {
        n->node.duration_ns = value;
        n->node.has_duration = true;
    }
}

static bool read_node_field(OrrChakraDraft *draft, Node *n, const OrrWireField *f,
                            int64_t *micros) {
    Attribute a = {0};
    bool is_sound = true;
    switch (f->number) {
    case 1:
        n->node.id = f->value;
        break;
    case 2:
        g_free(n->node.name);
        n->node.name = f->type == 2 ? text_of(f->bytes) : NULL;
        break;
    case 3:
        n->type = f->value;
        break;
    case 4: /* ctrl_deps */
    case 5: /* data_deps */
        is_sound = orr_wire_numbers(f, draft->dep_ids);
        while (draft->is_ctrl->len < draft->dep_ids->len)
            g_byte_array_append(draft->is_ctrl, &(uint8_t){f->number == 4}, 1);
        break;
    case 7:
        *micros = (int64_t)MIN(f->value, (uint64_t)INT64_MAX / 1000);
        break;
    case 10:
        is_sound = f->type == 2 && read_attribute(f->bytes, &a);
        if (is_sound)
            take_attribute(n, &a);
        attribute_clear(&a);
        break;
    }
    return is_sound;
}

static bool read_node(OrrChakraDraft *draft, OrrWire message, GError **error, gsize offset) {
    Node n = {.node = {.first_dep = draft->dep_ids->len}, .comm_type = UINT64_MAX};
    OrrWireField f;
    int64_t micros = -1;
    bool is_sound, is_read = true;
    while (is_read && orr_wire_field(&message, &f, &is_sound))
        is_read = read_node_field(draft, &n, &f, &micros);
    n.node.n_deps = draft->dep_ids->len - n.node.first_dep;
    if (micros > 0 && !n.node.has_duration) {
        n.node.duration_ns = micros * 1000;
        n.node.has_duration = true;
    }
    if (!is_read || !is_sound || n.type > ORR_CHAKRA_COLL) {
        g_free(n.node.name);
        return orr_fail_input(error, "%s: byte %" G_GSIZE_FORMAT ": message %u is no Chakra node",
                              draft->import->path, offset, draft->nodes->len + 1);
    }
    orr_traces__chakra_add(draft, n.node, n.type, n.comm_type);
    return true;
}

static bool read_metadata(OrrChakraDraft *draft, OrrWire message) {
    OrrWireField f;
    bool is_sound;
    while (orr_wire_field(&message, &f, &is_sound)) {
        Attribute a = {0};
        if (f.type == 2 && f.number == 1) {
            g_free(draft->version);
            draft->version = text_of(f.bytes);
        } else if (f.type == 2 && f.number == 2 && read_attribute(f.bytes, &a)) {
            if (strcmp(a.name, "schema") == 0 && a.text && !draft->version)
                draft->version = g_strdup(a.text);
            if (strcmp(a.name, "rank") == 0 && a.number < 100000000)
                draft->rank = (int32_t)a.number;
        }
        attribute_clear(&a);
    }
    return is_sound;
}

static bool read_wire(OrrChakraDraft *draft, const char *text, gsize length, GError **error) {
    const uint8_t *start = (const uint8_t *)text;
    OrrWire stream = {start, start + length}, message;
    bool is_sound, is_first = true;
    for (gsize offset = 0; orr_wire_message(&stream, &message, &is_sound);
         offset = (gsize)(stream.at - start), is_first = false) {
        if (draft->nodes->len >= MAX_NODES)
            return orr_fail_input(error, "%s: more than %d nodes", draft->import->path, MAX_NODES);
        if (is_first && !read_metadata(draft, message))
            return orr_fail_input(error,
                                  "%s: byte 0: no Chakra trace: a GlobalMetadata message, behind "
                                  "its length, would do",
                                  draft->import->path);
        if (!is_first && !read_node(draft, message, error, offset))
            return false;
    }
    if (!is_sound)
        return orr_fail_input(error,
                              "%s: byte %" G_GSIZE_FORMAT ": the file ends within a message, after "
                              "%u whole nodes; a cut trace can't be replayed",
                              draft->import->path, (gsize)(stream.at - start), draft->nodes->len);
    return true;
}

/* Indices of nodes so that each comes behind what it waits for, else in the order of the file. */
static uint32_t *sort_nodes(const OrrChakraDraft *draft, const uint32_t *deps, GError **error) {
    guint n = draft->nodes->len, n_done = 0, depth = 0;
    uint32_t *order = g_new(uint32_t, n + 1);
    g_autofree uint8_t *state = g_new0(uint8_t, n + 1); /* 1: on the stack, 2: done */
    g_autofree uint32_t *stack = g_new(uint32_t, n + 1), *next = g_new0(uint32_t, n + 1);
    for (guint root = 0; root < n; root++) {
        if (state[root] == 0) {
            stack[depth++] = root;
            state[root] = 1;
        }
        while (depth > 0) {
            uint32_t i = stack[depth - 1];
            const OrrReplayNode *node = &g_array_index(draft->nodes, OrrReplayNode, i);
            if (next[i] == node->n_deps) {
                state[i] = 2;
                order[n_done++] = i;
                depth--;
                continue;
            }
            uint32_t dep = deps[node->first_dep + next[i]++];
            if (dep == ORR_NONE || state[dep] == 2)
                continue;
            if (state[dep] == 1) {
                g_autofree char *name = orr_text_excerpt(node->name);
                orr_fail_input(error, "%s: node %" G_GUINT64_FORMAT " (%s) waits for itself",
                               draft->import->path, node->id, name);
                g_free(order);
                return NULL;
            }
            stack[depth++] = dep;
            state[dep] = 1;
        }
    }
    return order;
}

/* Ids to indices; ORR_NONE for nodes that are not in the file. False: an id stands twice. */
static bool resolve(const OrrChakraDraft *draft, uint32_t *deps, guint *n_missing, GError **error) {
    g_autoptr(GHashTable) index = g_hash_table_new(g_int64_hash, g_int64_equal);
    for (guint i = 0; i < draft->nodes->len; i++) {
        OrrReplayNode *node = &g_array_index(draft->nodes, OrrReplayNode, i);
        if (!g_hash_table_insert(index, &node->id, GUINT_TO_POINTER(i + 1)))
            return orr_fail_input(error, "%s: two nodes have the id %" G_GUINT64_FORMAT,
                                  draft->import->path, node->id);
    }
    /* a converter's ctrl_deps are the callers, which may wait for their callees: where there are
     * data_deps, only those order execution, as ASTRA-sim's feeder has it */
    bool has_data =
        draft->is_ctrl->len > 0 && memchr(draft->is_ctrl->data, 0, draft->is_ctrl->len) != NULL;
    for (guint k = 0; k < draft->dep_ids->len; k++) {
        deps[k] = ORR_NONE;
        if (has_data && draft->is_ctrl->data[k])
            continue;
        const uint64_t *id = &g_array_index(draft->dep_ids, uint64_t, k);
        guint at = GPOINTER_TO_UINT(g_hash_table_lookup(index, id));
        deps[k] = at > 0 ? at - 1 : ORR_NONE;
        *n_missing += at == 0;
    }
    return true;
}

static OrrReplay *finish(OrrChakraDraft *draft, GError **error) {
    guint n = draft->nodes->len, n_missing = 0;
    g_autofree uint32_t *deps = g_new(uint32_t, draft->dep_ids->len + 1);
    g_autofree uint32_t *place = g_new(uint32_t, n + 1);
    if (n == 0) {
        orr_fail_input(error, "%s: the trace has no node", draft->import->path);
        return NULL;
    }
    g_autofree uint32_t *order =
        resolve(draft, deps, &n_missing, error) ? sort_nodes(draft, deps, error) : NULL;
    if (!order)
        return NULL;
    if (n_missing > 0)
        g_string_append_printf(draft->import->notes,
                               "%s: %u dependencies on nodes that are not in the file: left out\n",
                               draft->import->path, n_missing);
    OrrReplay *replay = g_new0(OrrReplay, 1);
    replay->name = g_strdup(draft->import->path);
    replay->source =
        g_strdup_printf("Chakra execution trace %s", draft->version ? draft->version : "");
    replay->rank = draft->rank;
    replay->nodes = g_new(OrrReplayNode, n);
    replay->deps = g_new(uint32_t, draft->dep_ids->len + 1);
    for (guint i = 0; i < n; i++)
        place[order[i]] = i;
    for (guint i = 0; i < n; i++) {
        OrrReplayNode *from = &g_array_index(draft->nodes, OrrReplayNode, order[i]);
        OrrReplayNode *to = &replay->nodes[i];
        *to = *from;
        from->name = NULL;
        to->first_dep = replay->n_deps;
        for (uint32_t k = 0; k < from->n_deps; k++)
            if (deps[from->first_dep + k] != ORR_NONE)
                replay->deps[replay->n_deps++] = place[deps[from->first_dep + k]];
        to->n_deps = replay->n_deps - to->first_dep;
        /* proto3 leaves out zeros: a computation without a duration took less than half a us */
        bool is_comm = to->kind == ORR_REPLAY_COLLECTIVE || to->kind == ORR_REPLAY_SEND ||
                       to->kind == ORR_REPLAY_RECEIVE;
        replay->n_untimed += !to->has_duration && is_comm;
    }
    replay->n_nodes = n;
    return replay;
}

OrrReplay *orr_chakra_parse(const OrrImport *import, const char *text, gsize length,
                            GError **error) {
    OrrChakraDraft draft = {.import = import, .rank = -1};
    draft.nodes = g_array_new(FALSE, FALSE, sizeof(OrrReplayNode));
    draft.dep_ids = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    draft.is_ctrl = g_byte_array_new();
    gsize at = 0;
    while (at < length && g_ascii_isspace(text[at]))
        at++;
    /* '{' as a length would make a first message of 123 bytes; JSON goes on with a quote */
    bool is_json = at + 1 < length && text[at] == '{' &&
                   (text[at + 1] == '"' || g_ascii_isspace(text[at + 1]));
    bool is_read = is_json ? orr_traces__chakra_json(&draft, text, length, error)
                           : read_wire(&draft, text, length, error);
    OrrReplay *replay = is_read ? finish(&draft, error) : NULL;
    for (guint i = 0; i < draft.nodes->len; i++)
        g_free(g_array_index(draft.nodes, OrrReplayNode, i).name);
    g_array_unref(draft.nodes);
    g_array_unref(draft.dep_ids);
    g_byte_array_unref(draft.is_ctrl);
    g_free(draft.version);
    return replay;
}

OrrReplay *orr_chakra_read(const OrrImport *import, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(import->path, LIMIT_BYTES, &length, error);
    return text ? orr_chakra_parse(import, text, length, error) : NULL;
}

char *orr_chakra_format(const OrrReplay *replay) {
    static const char *const header[] = {"id",          "name",       "kind",
                                         "stream",      "collective", "size_bytes",
                                         "duration_ns", "waits_for",  NULL};
    static const char *const kinds[] = {"host", "compute", "collective",
                                        "send", "receive", "other"};
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    for (uint32_t i = 0; i < replay->n_nodes; i++) {
        const OrrReplayNode *n = &replay->nodes[i];
        g_autoptr(GString) deps = g_string_new(NULL);
        for (uint32_t k = 0; k < n->n_deps; k++)
            g_string_append_printf(deps, "%s%" G_GUINT64_FORMAT, k ? " " : "",
                                   replay->nodes[replay->deps[n->first_dep + k]].id);
        g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, n->id);
        orr_csv_put(&w, id);
        orr_csv_put(&w, n->name);
        orr_csv_put(&w, kinds[n->kind]);
        orr_csv_put_int(&w, n->stream);
        orr_csv_put(&w,
                    n->collective == ORR_N_COLLECTIVES ? "" : orr_collective_name(n->collective));
        orr_csv_put_int(&w, n->bytes);
        orr_csv_put_int(&w, n->duration_ns);
        orr_csv_put(&w, deps->str);
        orr_csv_end_row(&w);
    }
    return g_string_free(text, FALSE);
}

static char *run(const OrrImport *import, GError **error) {
    g_autoptr(OrrReplay) replay = orr_chakra_read(import, error);
    guint n_timed = 0;
    for (uint32_t i = 0; replay && i < replay->n_nodes; i++)
        n_timed += replay->nodes[i].has_duration;
    if (replay && n_timed == 0)
        g_string_append_printf(import->notes,
                               "%s: none of %u operations has a duration: orrery step can't run "
                               "it\n",
                               import->path, replay->n_nodes);
    else if (replay && replay->n_untimed > 0)
        g_string_append_printf(import->notes,
                               "%s: %u of %u operations have no duration: orrery step can't run "
                               "it\n",
                               import->path, replay->n_untimed, replay->n_nodes);
    return replay ? orr_chakra_format(replay) : NULL;
}

const OrrImporter orr_importer_chakra = {
    .name = "chakra",
    .summary = "a Chakra execution trace (protobuf or JSON) to rows; orrery step runs it as it is",
    .source = "mlcommons/chakra schema/protobuf/et_def.proto 0.0.4",
    .run = run,
};
