/* Enumerations of the field and their names, and nothing else. Each `orr_X_name` returns the
 * stable name that files, JSON and traces use; `orr_X_names` is the NULL-terminated table. */
#ifndef ORR_TERMS_TERMS_H
#define ORR_TERMS_TERMS_H

#include <stdint.h>

#define ORR_NONE UINT32_MAX

typedef enum {
    ORR_FP32,
    ORR_TF32,
    ORR_BF16,
    ORR_FP16,
    ORR_FP8,
    ORR_FP4,
    ORR_INT8,
    ORR_N_DTYPES
} OrrDtype;
const char *orr_dtype_name(OrrDtype d);
extern const char *const orr_dtype_names[];
/* Bytes of one element; 0.5 for FP4. */
double orr_dtype_bytes(OrrDtype d);

/* What a kernel on the compute stream does; also the owners of busy time. */
typedef enum {
    ORR_K_GEMM, /* any dense matrix product but the ones below */
    ORR_K_GROUPED_GEMM,
    ORR_K_ATTENTION,    /* fused attention (flash) */
    ORR_K_BATCHED_GEMM, /* unfused attention products */
    ORR_K_SOFTMAX,
    ORR_K_NORM,
    ORR_K_ROTARY,
    ORR_K_ACTIVATION, /* GELU, SwiGLU with their bias */
    ORR_K_RESIDUAL,   /* residual add with its bias and dropout */
    ORR_K_DROPOUT,
    ORR_K_EMBEDDING,
    ORR_K_CROSS_ENTROPY,
    ORR_K_ROUTER,
    ORR_K_PERMUTE,
    ORR_K_CAST,
    ORR_K_COPY,     /* transposes, copies, chunking */
    ORR_K_GRADIENT, /* accumulation of gradients, norms of them, zeroing */
    ORR_K_OPTIMIZER,
    ORR_N_KERNEL_KINDS
} OrrKernelKind;
const char *orr_kernel_kind_name(OrrKernelKind k);
extern const char *const orr_kernel_kind_names[];

typedef enum {
    ORR_PASS_FORWARD,
    ORR_PASS_DGRAD,
    ORR_PASS_WGRAD,
    ORR_N_KERNEL_PASSES
} OrrKernelPass;
const char *orr_kernel_pass_name(OrrKernelPass p);

typedef enum {
    ORR_ALL_REDUCE,
    ORR_ALL_GATHER,
    ORR_REDUCE_SCATTER,
    ORR_ALL_TO_ALL,
    ORR_BROADCAST,
    ORR_REDUCE,
    ORR_SEND_RECV,
    ORR_N_COLLECTIVES
} OrrCollective;
const char *orr_collective_name(OrrCollective c);
extern const char *const orr_collective_names[];

typedef enum {
    ORR_ALGO_RING,
    ORR_ALGO_TREE,
    ORR_ALGO_NVLS,
    ORR_ALGO_NVLS_TREE,
    ORR_ALGO_COLLNET_DIRECT,
    ORR_ALGO_COLLNET_CHAIN,
    ORR_ALGO_DIRECT,
    ORR_ALGO_HIERARCHICAL,
    ORR_ALGO_PAIRWISE,
    ORR_ALGO_NAIVE,
    ORR_N_ALGOS
} OrrAlgo;
const char *orr_algo_name(OrrAlgo a);
extern const char *const orr_algo_names[];

typedef enum { ORR_PROTO_LL, ORR_PROTO_LL128, ORR_PROTO_SIMPLE, ORR_N_PROTOS } OrrProto;
const char *orr_proto_name(OrrProto p);
extern const char *const orr_proto_names[];

/* Why ranks communicate: the communication kinds of the report. */
typedef enum {
    ORR_COMM_TP,
    ORR_COMM_SP /* unused by dense Megatron: TP covers it */,
    ORR_COMM_CP,
    ORR_COMM_EP,
    ORR_COMM_PP,
    ORR_COMM_DP_GRADIENT,  /* all-reduce or reduce-scatter of gradients */
    ORR_COMM_DP_PARAMETER, /* all-gather of parameters: ZeRO, FSDP */
    ORR_COMM_EMBEDDING,    /* tied embedding gradients, first and last stage */
    ORR_COMM_STEP_END,     /* gradient norm, overflow flag, norm weights */
    ORR_N_COMM_KINDS
} OrrCommKind;
const char *orr_comm_kind_name(OrrCommKind c);
extern const char *const orr_comm_kind_names[];

typedef enum {
    ORR_MEM_WEIGHTS,
    ORR_MEM_GRADIENTS,
    ORR_MEM_OPTIMIZER,
    ORR_MEM_ACTIVATIONS,
    ORR_MEM_LOGITS,
    ORR_MEM_COMM_BUFFERS,
    ORR_MEM_ALLOCATOR,
    ORR_MEM_CONTEXT,
    ORR_N_MEM_KINDS
} OrrMemKind;
const char *orr_mem_kind_name(OrrMemKind m);
extern const char *const orr_mem_kind_names[];

typedef enum {
    ORR_STREAM_HOST,
    ORR_STREAM_COMPUTE,
    ORR_STREAM_TP,
    ORR_STREAM_DP,
    ORR_STREAM_DP_PARAMETER,
    ORR_STREAM_PP_SEND,
    ORR_STREAM_PP_RECV, /* activations; batches of both ways */
    ORR_STREAM_PP_SEND_BACK,
    ORR_STREAM_PP_RECV_BACK, /* gradients */
    ORR_STREAM_CP,
    ORR_STREAM_EP,
    ORR_STREAM_COPY,
    ORR_N_STREAMS
} OrrStream;
const char *orr_stream_name(OrrStream s);
extern const char *const orr_stream_names[];

/* Sets of ranks that communicate, by which coordinates vary inside one group. */
typedef enum {
    ORR_GROUP_TP,
    ORR_GROUP_CP,
    ORR_GROUP_EP,
    ORR_GROUP_DP,
    ORR_GROUP_PP,
    ORR_GROUP_DP_CP,     /* gradients: every rank with the same weights */
    ORR_GROUP_EDP,       /* the same for experts */
    ORR_GROUP_EMBEDDING, /* first and last stage of one pipeline */
    ORR_GROUP_MODEL,     /* TP x PP: gradient norm */
    ORR_GROUP_HSDP_SHARD,
    ORR_GROUP_HSDP_REPLICA, /* hybrid sharding */
    ORR_GROUP_WORLD,
    ORR_N_GROUPS
} OrrGroup;
const char *orr_group_name(OrrGroup g);
extern const char *const orr_group_names[];

/* Passes of a pipeline schedule: forward, backward (whole), input half, weight half. */
typedef enum { ORR_F, ORR_B, ORR_I, ORR_W, ORR_N_PASSES } OrrPass;
const char *orr_pass_name(OrrPass p); /* "F" "B" "I" "W" */

/* Owners of time on the compute stream: the kernel kinds come first, same values, then idle. */
typedef enum {
    ORR_OWN_KERNELS_END = ORR_N_KERNEL_KINDS - 1,
    ORR_OWN_INTERFERENCE,  /* slow-down of kernels by resident communication kernels */
    ORR_OWN_BUBBLE,        /* pipeline: waiting for a stage to send */
    ORR_OWN_EXPOSED_FIRST, /* exposed latency and transfer, one a communication kind */
    ORR_OWN_EXPOSED_LAST = ORR_OWN_EXPOSED_FIRST + ORR_N_COMM_KINDS - 1,
    ORR_OWN_STRAGGLER, /* waiting for the last member of a collective */
    ORR_OWN_HOST,      /* not yet issued */
    ORR_OWN_DATA,      /* input */
    ORR_OWN_STEP_END,  /* waiting for the step to end elsewhere */
    ORR_N_OWNERS
} OrrOwner;
const char *orr_owner_name(OrrOwner o); /* "gemm", "bubble", "exposed_tp", "straggler", ... */

#endif
