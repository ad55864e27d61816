/* What is trained and how: architecture, layout, batch, framework profile, job. Plain structs that
 * workloads/ loads; nothing here knows a cluster. */
#ifndef ORR_MODEL_SPEC_H
#define ORR_MODEL_SPEC_H

#include "sim/base/error.h"
#include "sim/terms/terms.h"

/* Bounds of plausible input, far above any published model; they keep products inside 64 bits. */
#define ORR_MODEL_MAX_LAYERS 10000

typedef enum { ORR_LAYER_NORM, ORR_RMS_NORM } OrrNormKind;
typedef enum { ORR_RELU, ORR_GELU, ORR_SILU } OrrActivation;
typedef enum { ORR_POS_NONE, ORR_POS_LEARNED, ORR_POS_ROPE, ORR_POS_ALIBI } OrrPosition;

/* A decoder-only transformer. */
typedef struct {
    char *name, *family, *source;
    uint32_t layers;
    uint32_t hidden, heads, kv_heads, head_dim, ffn;
    uint32_t vocab;         /* as in the checkpoint; frameworks may pad it */
    uint32_t max_positions; /* rows of a learned position table */
    OrrNormKind norm;
    OrrActivation activation;
    bool is_gated; /* SwiGLU, GeGLU: two up projections */
    OrrPosition position;
    double rotary_frac; /* share of head_dim that is rotated */
    bool is_tied;       /* embedding and head share weights */
    bool qkv_bias, out_bias, mlp_bias, head_bias;
    bool norm_bias;          /* LayerNorm with a bias */
    bool has_qk_norm;        /* RMSNorm on q and k, per head */
    bool has_post_norms;     /* Gemma 2/3: norms behind attention and MLP too */
    bool has_embedding_norm; /* BLOOM */
    bool is_parallel;        /* attention and MLP side by side (GPT-J, Falcon, GPT-NeoX) */
    bool shares_norm;        /* parallel block with one norm (GPT-J, Falcon-7B) */
    uint32_t window;         /* sliding window in tokens; 0: full */
    uint32_t window_every;   /* 1: every layer; n: all but each n-th layer are windowed; 0: none */
} OrrModel;
void orr_model_free(OrrModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrModel, orr_model_free)

typedef enum {
    ORR_ENDS_WITH_LAYERS,
    ORR_ENDS_OWN_CHUNK,
    ORR_ENDS_ONE_LAYER_LESS,
    ORR_ENDS_AS_LAYERS, /* embedding and head count as a layer each; stages differ by one at most */
    ORR_ENDS_BY_COST    /* stages of about equal work, the head's product counted (nanotron) */
} OrrEnds;
typedef enum {
    ORR_RECOMPUTE_NONE,
    ORR_RECOMPUTE_SELECTIVE, /* the attention core */
    ORR_RECOMPUTE_FULL,
    ORR_RECOMPUTE_PER_OP /* every second product and all that is element-wise (torchtitan) */
} OrrRecompute;
typedef enum { ORR_RECOMPUTE_UNIFORM, ORR_RECOMPUTE_BLOCK } OrrRecomputeMethod;

#define ORR_MAX_DIMS 5
typedef enum { ORR_DIM_TP, ORR_DIM_CP, ORR_DIM_EP, ORR_DIM_DP, ORR_DIM_PP } OrrRankDim;

typedef struct {
    uint32_t tp, pp, vpp, cp, ep, dp;
    bool sequence_parallel;
    uint32_t zero_stage;        /* 0..3; 3 is FSDP full shard */
    bool reshard_after_forward; /* ZeRO-3: parameters dropped after the forward, gathered again */
    uint32_t hsdp_shard;        /* ranks a shard group; 0: all of DP */
    OrrEnds ends;
    uint32_t *stage_layers; /* layers of each virtual stage; NULL: even */
    uint32_t n_stage_layers;
    OrrRankDim rank_order[ORR_MAX_DIMS]; /* fastest first: tp-cp-ep-dp-pp */
} OrrLayout;

typedef struct {
    uint32_t global_sequences, micro_sequences; /* GBS, MBS */
    uint32_t sequence_tokens;
} OrrBatch;

typedef struct {
    OrrDtype compute;    /* of GEMMs */
    OrrDtype parameters; /* storage of the weights that the forward reads */
    OrrDtype gradients;  /* accumulation buffer */
    OrrDtype reduce;     /* on the wire for gradients */
    OrrDtype gather;     /* on the wire for parameters */
    OrrDtype master;     /* optimizer's copy; moments are FP32 */
    bool has_master;
} OrrPrecision;

typedef struct {
    OrrRecompute policy;
    OrrRecomputeMethod method;
    uint32_t layers; /* full: uniform: of a checkpoint; block: recomputed in each chunk */
} OrrRecomputeSpec;

typedef enum {
    ORR_ATTENTION_FLASH,
    ORR_ATTENTION_UNFUSED,
    ORR_ATTENTION_MEMORY_EFFICIENT
} OrrAttentionKind;
/* Which kernels fused attention is: what the GPU's generation can do (cuDNN, FlashAttention-3), or
 * an older library on it. */
typedef enum {
    ORR_ATTENTION_NATIVE,
    ORR_ATTENTION_FLASH2,
    ORR_ATTENTION_FLASH1,
    ORR_ATTENTION_TRITON
} OrrAttentionLibrary;
/* Batches of sends and receives behind which the host waits for the device: none, all, those with
 * a receive (what comes first is its shape, which the host reads). */
typedef enum { ORR_SYNC_P2P_NONE, ORR_SYNC_P2P_ALL, ORR_SYNC_P2P_RECEIVES } OrrSyncP2p;
/* Whose memory the framework's log tells: the fullest GPU's of all, or its first rank's. */
typedef enum { ORR_PRINTED_BY_FULLEST, ORR_PRINTED_BY_FIRST } OrrPrintedBy;
/* What a framework computes from the logits of each micro-batch beside the loss: nothing;
 * Composer's cross-entropy and perplexity; InternEvo's accuracy, perplexity and loss by kind of
 * data. */
typedef enum { ORR_METRICS_NONE, ORR_METRICS_CROSS_ENTROPIES, ORR_METRICS_ACC_PERPLEX } OrrMetrics;
typedef enum { ORR_REDUCE_AT_END, ORR_REDUCE_EACH_MICRO_BATCH, ORR_REDUCE_EACH_RUN } OrrReduceWhen;

/* What a job gets whose file does not say. A dtype of ORR_AS_COMPUTE is the compute dtype (FP8 and
 * FP4: BF16, since weights are stored wider than they are multiplied). */
#define ORR_AS_COMPUTE (-1)
typedef struct {
    OrrDtype compute;
    int parameters, gradients, reduce, gather; /* OrrDtype or ORR_AS_COMPUTE */
    bool has_master;
    uint32_t zero_stage;
    bool sequence_parallel; /* where TP is above 1 */
    bool reshard_after_forward;
    OrrEnds ends;
} OrrJobDefaults;

/* What precision a job has that says no more than @compute. FP8 and FP4 are for products; what is
 * stored or sent is BF16 unless said otherwise. */
void orr_precision_default(const OrrJobDefaults *defaults, OrrDtype compute, OrrPrecision *out);

/* How a framework runs it: a data file of workloads/frameworks. Every field is explained, with its
 * source, in doc/formats.md. */
typedef struct {
    char *name, *source, *flops_formula; /* formula whose TFLOP/s it prints */
    /* kernels */
    OrrAttentionKind attention;
    OrrAttentionLibrary attention_library;
    bool fused_softmax, fused_bias_gelu, fused_bias_dropout_add, fused_rotary, fused_norm,
        fused_cross_entropy, fused_optimizer;
    bool fused_wgrad_accumulate; /* weight gradient GEMM adds into the FP32 buffer itself */
    bool fused_qkv, fused_gate_up;
    bool sharded_loss; /* the loss is the chain for TP at any width, as Megatron-LM has it */
    bool fp32_logits;  /* a fused loss on one rank gets the logits cast to FP32 */
    bool fp32_norms;   /* the input of each norm is cast to FP32, its gradient back */
    bool norms_again;  /* norms of layers, with what leads to them, run again in the backward */
    OrrMetrics metrics;
    double dropout; /* 0: no dropout kernels, no masks */
    double attention_dropout;
    uint32_t vocab_multiple;   /* vocabulary is padded to a multiple of this times TP; 0: not */
    bool head_copies;          /* q, k, v and the context are copied to other layouts */
    bool recompute_early_stop; /* recompute ends with the last tensor that the backward needs */
    bool compiled;             /* torch.compile: chains of element-wise kernels are one */
    /* host */
    double host_launch_ns; /* host time to issue one kernel */
    double host_comm_ns;   /* to issue a collective or send */
    double host_layer_ns;  /* further host time a layer and pass (hooks, Python) */
    double host_step_ns;   /* a step: data loader, logging, LR schedule */
    double host_check_ns;  /* a collective and rank of its group: hosts compare the call first */
    bool cuda_graphs;
    OrrSyncP2p host_sync_p2p;
    bool host_sync_passes; /* the host waits for the device at the end of each pass */
    /* tensor parallel */
    bool tp_async_wgrad;     /* input gradients are reduced beside the wgrad GEMM */
    bool tp_own_shard_first; /* SP: the own shard's rows are multiplied beside their gather */
    double tp_overlap_frac;  /* share of TP transfer pipelined into the GEMM (userbuffers) */
    /* pipeline */
    bool p2p_batched;       /* batch_isend_irecv: one kernel a group of sends and receives */
    bool p2p_overlap;       /* sends and receives beside compute, waited for when needed */
    bool scatter_gather;    /* without SP: each TP rank sends 1/t, gathered at the receiver */
    bool free_output_early; /* deallocate_pipeline_outputs */
    /* data parallel */
    bool overlap_grad_reduce, overlap_param_gather;
    OrrReduceWhen reduce_when;  /* sharded gradients: when partial sums are reduced */
    bool shard_gradient_buffer; /* ZeRO-2: the buffer is 1/d outside of its reduction */
    double bucket_bytes;        /* gradient bucket; 0: one a layer */
    double param_bucket_bytes;
    bool bucket_whole_tensors; /* a bucket ends behind the tensor that fills it, not within */
    bool zero_one_call;        /* ZeRO-1, 2: gradients are reduced at once, behind the backward */
    bool gather_by_broadcasts; /* updated parameters are sent to all by each rank in turn */
    bool calls_by_lists;       /* ZeRO-3: calls take lists of views, a copy a rank and matrix */
    bool zero_all_reduce;      /* ZeRO-1 and 2: gradients are summed whole on every rank */
    bool gather_by_copies;     /* updated parameters reach their tensors slice by slice */
    uint32_t fsdp_prefetch;    /* layers gathered ahead of use */
    bool fsdp_rate_limit;      /* host waits so that at most prefetch + 1 layers are gathered */
    bool grads_as_parameters;  /* gradient buffer has the parameters' dtype */
    /* end of step */
    bool grad_norm;                   /* all-reduce of the norm, a barrier */
    bool overflow_check;              /* FP16 */
    double optimizer_bytes_per_param; /* HBM traffic of the update */
    uint32_t optimizer_launches;      /* kernels of the update; 0: one a parameter tensor */
    /* memory */
    /* What a layer keeps from forward to backward beyond the inputs of its products; the whole
     * table, with sources, is doc/models/memory.md. */
    bool store_dropout_mask;      /* a byte an element (no: the generator's state is replayed) */
    bool store_norm_output;       /* norm output kept beside its input (no: computed again) */
    bool store_activation_output; /* input of the second MLP product kept (no: computed again) */
    bool store_fp32_residual;     /* residual stream, and so the norm inputs, in FP32 */
    bool bucket_copies;           /* ZeRO-0: gradients once more, in buckets for the wire */
    bool grads_until_end;         /* a micro-batch's gradients stay to the end of its backward */
    bool records_streams;         /* what collectives of TP read is reused once they are over */
    bool gather_buffers;          /* SP: what is gathered lies in two buffers, never freed */
    OrrPrintedBy memory_printed_by;
    bool expandable_segments; /* of PyTorch's allocator */
    bool loss_in_place;       /* the softmax becomes the gradient of the logits */
    double comm_buffer_bytes;
    double extra_context_bytes;
    /* interference: rate of a kernel while a communication kernel is resident on its GPU */
    double compute_rate_frac[ORR_N_COMM_KINDS]; /* GEMM-like kernels */
    double memory_rate_frac[ORR_N_COMM_KINDS];  /* memory-bound kernels */
    OrrJobDefaults defaults;
} OrrFramework;
void orr_framework_free(OrrFramework *framework);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrFramework, orr_framework_free)

typedef struct {
    char *name, *source;
    char *model_ref, *cluster_ref, *framework_ref; /* as written; a relative path in a job file is
                                                      resolved against that file's folder */
    char *cluster_place; /* where the cluster is named, for messages; may be NULL */
    uint32_t n_gpus;     /* of the cluster reference ("NAME:16384"); 0: not stated */
    /* Groups [model], [framework], [cluster], [node], [gpu] of the job file: overrides of keys of
     * the files that it names; n_sets of each. See orr_workload_job_overrides. */
    uint32_t n_sets;
    char **set_groups, **set_keys, **set_values;
    char **set_origins; /* "FILE:LINE" or "--set" */
    OrrLayout layout;
    OrrBatch batch;
    char *file;          /* where the job was read, for messages; may be NULL */
    char *schedule_name; /* a name, or a path of a CSV */
    OrrPrecision precision;
    OrrRecomputeSpec recompute;
    /* [nccl]: names and values as the environment would have them */
    char **nccl_names, **nccl_values; /* NULL-terminated, same length */
    char *routing;                    /* spread | ecmp-hash; "": as the cluster has it */
    uint64_t seed;
    bool is_random_placement; /* nodes in random order; else rank r on GPU r */
    char **perturbs;          /* [perturb]: texts as of --perturb, NULL-terminated */
    bool has_seed;            /* said so: then also the seed of ecmp-hash */
    char *flops_formula;      /* "" = the framework's */
    bool is_boost;            /* short run: boost clocks instead of sustained ones */
} OrrJob;
void orr_job_free(OrrJob *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrJob, orr_job_free)

#endif
