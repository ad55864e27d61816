/* orrery show schedule: the order of a pipeline as a picture in text, for equal stages, a forward
 * of 1 and a backward of 2 (halves of 1 each), no communication. */
#include "sim/cli/show.h"

#include "sim/schedule/schedules.h"

#include <math.h>
#include <string.h>

#define MAX_PASSES 20000 /* wider pictures help nobody; ours */

typedef struct {
    const OrrOrder *order;
    int64_t *end;   /* [virtual stage][F, I or B, W][micro-batch]: end time, -1: not yet */
    int64_t *start; /* of each slot */
    int64_t length;
} Play;

static int64_t *end_of(const Play *p, uint32_t virtual_stage, int what, uint32_t micro_batch) {
    return &p->end[((int64_t)virtual_stage * 2 + what) * p->order->shape.n_micro_batches +
                   micro_batch];
}

static int64_t duration(const OrrSlot *slot) {
    return slot->pass == ORR_B ? 2 : 1; /* B = 2F: two GEMMs for one */
}

/* When what @slot needs is there; -1 if it is not yet. */
static int64_t ready(const Play *p, const OrrSlot *slot, uint32_t v) {
    uint32_t last = p->order->shape.n_stages * p->order->shape.n_chunks - 1;
    if (slot->pass == ORR_F)
        return v == 0 ? 0 : *end_of(p, v - 1, 0, slot->micro_batch);
    if (slot->pass == ORR_W)
        return *end_of(p, v, 1, slot->micro_batch);
    int64_t own = *end_of(p, v, 0, slot->micro_batch);
    int64_t next = v == last ? own : *end_of(p, v + 1, 1, slot->micro_batch);
    return own < 0 || next < 0 ? -1 : MAX(own, next);
}

/* Runs the order; sound orders have no cycle (orr_order_flaw). */
static void play(Play *p) {
    const OrrOrder *o = p->order;
    g_autofree uint32_t *at = g_new0(uint32_t, o->shape.n_stages);
    g_autofree int64_t *now = g_new0(int64_t, o->shape.n_stages);
    for (bool moves = true; moves;) {
        moves = false;
        for (uint32_t s = 0; s < o->shape.n_stages; s++)
            while (o->first[s] + at[s] < o->first[s + 1]) {
                uint32_t i = o->first[s] + at[s];
                const OrrSlot *slot = &o->slots[i];
                uint32_t v = o->virtual_stage[s * o->shape.n_chunks + slot->chunk];
                int64_t from = ready(p, slot, v);
                if (from < 0)
                    break;
                p->start[i] = MAX(from, now[s]);
                now[s] = p->start[i] + duration(slot);
                if (slot->pass != ORR_W)
                    *end_of(p, v, slot->pass == ORR_F ? 0 : 1, slot->micro_batch) = now[s];
                p->length = MAX(p->length, now[s]);
                at[s]++, moves = true;
            }
    }
}

/* A cell is as wide as "B12b": pass, micro-batch and, with several chunks, a letter for the chunk.
 */
static void draw_stage(const Play *p, uint32_t stage, int cell, OrrOut *out) {
    const OrrOrder *o = p->order;
    g_autoptr(GString) row = g_string_new(NULL);
    int64_t now = 0;
    for (uint32_t i = o->first[stage]; i < o->first[stage + 1]; i++) {
        const OrrSlot *slot = &o->slots[i];
        for (; now < p->start[i]; now++)
            g_string_append_printf(row, "%-*s", cell, ".");
        g_autofree char *text =
            g_strdup_printf("%s%u%c", orr_pass_name((OrrPass)slot->pass), slot->micro_batch,
                            o->shape.n_chunks > 1 ? 'a' + slot->chunk % 26 : ' ');
        g_strchomp(text);
        int width = (int)duration(slot) * cell, n = (int)strlen(text);
        g_string_append(row, text);
        for (int k = n; k < width; k++)
            g_string_append_c(row, k == width - 1 ? ' ' : '-');
        now += duration(slot);
    }
    orr_out_printf(out, "stage %-3u |%s\n", stage, g_strchomp(row->str));
}

static uint32_t most_in_flight(const OrrOrder *o, uint32_t stage) {
    uint32_t held = 0, most = 0;
    for (uint32_t i = o->first[stage]; i < o->first[stage + 1]; i++) {
        held += o->slots[i].pass == ORR_F;
        most = MAX(most, held);
        held -= o->slots[i].pass == ORR_B || o->slots[i].pass == ORR_I;
    }
    return most;
}

static void percent(OrrOut *out, double frac) {
    char text[40];
    orr_out_printf(out, "%s %%", g_ascii_formatd(text, sizeof text, "%.1f", frac * 100));
}

static void summary(const Play *p, const OrrSchedule *s, OrrOut *out) {
    const OrrPipeShape *shape = &p->order->shape;
    double work = 3.0 * shape->n_micro_batches * shape->n_chunks;
    double bubble = ((double)p->length - work) / (double)p->length;
    orr_out_puts(out, "\nbubble: ");
    percent(out, bubble);
    orr_out_puts(out, " of the step, ");
    percent(out, (double)p->length / work - 1);
    orr_out_puts(out, " over the ideal time");
    double closed = s->bubble ? s->bubble(shape) : NAN;
    if (!isnan(closed)) {
        orr_out_puts(out, " (closed form: ");
        percent(out, closed);
        orr_out_puts(out, ")");
    }
    orr_out_printf(out, "\nactivations in flight at most, by stage:");
    for (uint32_t i = 0; i < shape->n_stages; i++)
        orr_out_printf(out, " %u", most_in_flight(p->order, i));
    orr_out_printf(out, "%s\n", shape->n_chunks > 1 ? " (chunks)" : " (micro-batches)");
}

bool orr_cli_show_schedule(const OrrCli *cli, OrrOut *out, GError **error) {
    int64_t stages = 4, micro_batches = 8, chunks = 1;
    if (!orr_cli_int(cli, "stages", 1, 1024, &stages, error) ||
        !orr_cli_int(cli, "micro-batches", 1, 4096, &micro_batches, error) ||
        !orr_cli_int(cli, "chunks", 1, 64, &chunks, error))
        return false;
    const OrrSchedule *s = orr_schedule_find(orr_cli_argument(cli, 1), error);
    if (!s)
        return false;
    OrrPipeShape shape = {(uint32_t)stages, (uint32_t)chunks, (uint32_t)micro_batches};
    if (stages * micro_batches * chunks > MAX_PASSES)
        return orr_fail_usage(error,
                              "orrery show schedule: %" G_GINT64_FORMAT " passes are too many "
                              "for a picture; at most %d",
                              stages * micro_batches * chunks, MAX_PASSES);
    g_autoptr(OrrOrder) order = s->order(&shape, error);
    if (!order)
        return false;
    gsize n_ends = (gsize)stages * (gsize)chunks * (gsize)micro_batches * 2;
    Play p = {.order = order,
              .end = g_new(int64_t, n_ends),
              .start = g_new0(int64_t, order->first[stages])};
    memset(p.end, 0xff, n_ends * sizeof *p.end);
    play(&p);
    g_autofree char *widest =
        g_strdup_printf("F%" G_GINT64_FORMAT "%s ", micro_batches - 1, chunks > 1 ? "a" : "");
    orr_out_printf(out,
                   "%s: %s\n[%s]\nP = %u stages, M = %u micro-batches, V = %u chunk%s; forward 1, "
                   "backward 2%s; '.' is idle\n\n",
                   s->name, s->summary, s->source, shape.n_stages, shape.n_micro_batches,
                   shape.n_chunks, chunks > 1 ? "s a stage" : " a stage",
                   chunks > 1 ? "; letters are chunks" : "");
    for (uint32_t i = 0; i < shape.n_stages; i++)
        draw_stage(&p, i, (int)strlen(widest), out);
    summary(&p, s, out);
    g_free(p.end);
    g_free(p.start);
    return true;
}
