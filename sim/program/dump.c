/* The stable text form of a program: descriptors, segments, roles; one operation a line. Numbers
 * that may be fractions are written by g_ascii_dtostr, the shortest text that reads back equal. */
#include "sim/program/program.h"

#include <glib.h>
#include <inttypes.h>

static void dump_kernels(const OrrProgram *p, FILE *out) {
    char flops[G_ASCII_DTOSTR_BUF_SIZE], reads[G_ASCII_DTOSTR_BUF_SIZE],
        writes[G_ASCII_DTOSTR_BUF_SIZE];
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const OrrKernel *k = &p->kernels[i];
        fprintf(out, "kernel %u \"%s\" %s %s %s", i, k->label, orr_kernel_kind_name(k->kind),
                orr_kernel_pass_name(k->pass), orr_dtype_name(k->dtype));
        fprintf(out, " m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " k2=%" PRId64 " batch=%" PRId64,
                k->m, k->n, k->k, k->k2, k->batch);
        fprintf(out, " heads=%u kv_heads=%u causal=%u launches=%u", k->heads, k->kv_heads,
                k->is_causal, k->launches);
        fprintf(out, " flops=%s read_bytes=%s written_bytes=%s\n",
                g_ascii_dtostr(flops, sizeof flops, k->flops),
                g_ascii_dtostr(reads, sizeof reads, k->bytes_read),
                g_ascii_dtostr(writes, sizeof writes, k->bytes_written));
    }
}

static void dump_communication(const OrrProgram *p, FILE *out) {
    for (uint32_t i = 0; i < p->n_colls; i++) {
        const OrrColl *c = &p->colls[i];
        fprintf(out, "coll %u \"%s\" %s group=%s comm=%u purpose=%s dtype=%s bytes=%" PRId64 "%s\n",
                i, c->label, orr_collective_name(c->kind), orr_group_name(c->group), c->comm,
                orr_comm_kind_name(c->purpose), orr_dtype_name(c->dtype), c->bytes,
                c->on_copy_engine ? " copy_engine" : "");
    }
    for (uint32_t i = 0; i < p->n_p2ps; i++) {
        const OrrP2p *x = &p->p2ps[i];
        fprintf(out, "p2p %u \"%s\"%s\n", i, x->label, x->is_eager ? " eager" : "");
        for (uint32_t j = x->first_part; j < x->first_part + x->n_parts; j++) {
            const OrrP2pPart *part = &p->parts[j];
            fprintf(out,
                    "  %s %s %u comm=%u purpose=%s bytes=%" PRId64 " chunk=%u micro_batch=%u\n",
                    part->is_send ? "send to" : "receive from", orr_group_name(part->group),
                    part->peer, part->comm, orr_comm_kind_name(part->purpose), part->bytes,
                    part->chunk, part->micro_batch_tag);
        }
    }
}

static void dump_op(const OrrProgram *p, const OrrOp *op, uint32_t id, FILE *out) {
    static const char *const kinds[ORR_N_OP_KINDS] = {"kernel", "coll", "p2p", "host_ns"};
    fprintf(out, "  %u %s %s %u", id, orr_stream_name(op->stream), kinds[op->kind], op->what);
    switch ((OrrOpKind)op->kind) {
    case ORR_OP_KERNEL:
        fprintf(out, " \"%s\"", p->kernels[op->what].label);
        break;
    case ORR_OP_COLL:
        fprintf(out, " \"%s\"", p->colls[op->what].label);
        break;
    case ORR_OP_P2P:
        fprintf(out, " \"%s\"", p->p2ps[op->what].label);
        break;
    case ORR_OP_HOST:
    case ORR_N_OP_KINDS:
        break;
    }
    for (uint8_t i = 0; i < op->n_waits; i++)
        fprintf(out, "%s%u", i == 0 ? " waits=" : ",", op->wait[i]);
    for (uint32_t i = op->first_mem; i < op->first_mem + op->n_mem; i++)
        fprintf(out, " %s:%s%+" PRId64, p->mems[i].is_after ? "after" : "before",
                orr_mem_kind_name(p->mems[i].kind), p->mems[i].delta_bytes);
    fprintf(out, "%s\n", op->flags & ORR_OP_STEP_END ? " step_end" : "");
}

static void dump_role(const OrrProgram *p, uint32_t r, FILE *out) {
    const OrrRole *role = &p->roles[r];
    fprintf(out, "role %u \"%s\" stage=%u\n", r, role->label, role->stage);
    for (int k = 0; k < ORR_N_MEM_KINDS; k++)
        if (role->static_bytes[k] != 0)
            fprintf(out, "  static %s %" PRId64 "\n", orr_mem_kind_name(k), role->static_bytes[k]);
    for (uint32_t c = 0; c < role->n_calls; c++) {
        const OrrCall *call = &p->calls[role->first_call + c];
        fprintf(out, "  call %u", c);
        if (call->pass < ORR_N_PASSES)
            fprintf(out, " %s chunk=%u micro_batch=%u", orr_pass_name(call->pass), call->chunk,
                    call->micro_batch);
        fprintf(out, " segment=%u \"%s\"", call->segment, p->segments[call->segment].label);
        for (uint32_t i = call->first_wait; i < call->first_wait + call->n_waits; i++) {
            const OrrCallWait *w = &p->call_waits[i];
            fprintf(out, " %u<-%u.%u%s", w->op, w->src_call, w->src_op,
                    w->steps_back ? "@step_before" : "");
        }
        fputc('\n', out);
    }
}

void orr_program_dump(const OrrProgram *program, FILE *out) {
    fprintf(out, "orrery.program/1\n");
    dump_kernels(program, out);
    dump_communication(program, out);
    for (uint32_t s = 0; s < program->n_segments; s++) {
        const OrrSegment *segment = &program->segments[s];
        fprintf(out, "segment %u \"%s\"\n", s, segment->label);
        for (uint32_t i = 0; i < segment->n_ops; i++)
            dump_op(program, &program->ops[segment->first_op + i], i, out);
    }
    for (uint32_t r = 0; r < program->n_roles; r++)
        dump_role(program, r, out);
}
