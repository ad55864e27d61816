/* Every file of the shared samples that an importer is for, with what must come of it. Skips where
 * the samples are absent. */
#include "tests/near.h"

#include <string.h>

#include "config.h"
#include "sim/cli/importers.h"

#ifdef HAVE_YAML
#define Y(says) says
#define L(lines) lines
#else /* YAML is refused then */
#define Y(says) "built without libyaml"
#define L(lines) 0
#endif

#define ANY 9999 /* lines: the file is read, says tells what of it */

/* lines: of the output, 0: the file is refused. says: stands in the output, the notes or the
 * error. */
typedef struct {
    const char *importer, *file, *op;
    guint lines;
    const char *says;
    const char *gpu; /* topology: --gpu, with --nic 200G; config: the cluster */
} Expected;

#define N "nccl-tests"
#define NL "nccl-tests-logs/"
#define T "topology"
#define K "kineto"
#define F "config"
#define C "chakra"
#define A "a100-sxm-80"
static const Expected all[] = {
    {N, NL "aws-1.log", NULL, 59, "used as far as it is whole, 29 rows"},
    {N, NL "aws-3.log", NULL, 13, "busbw over algbw leaves 16"},
    {N, NL "bigscience-all_reduce_bench-a100.txt", NULL, 0, "no result of all_reduce_bench"},
    {N, NL "cw-1.log", NULL, 11, "busbw over algbw leaves"},
    {N, NL "cw-3.log", NULL, 13, NULL},
    {N, NL "fork-json-by-size.json", NULL, 0, "identifier = \"nccl-tests structured output\""},
    {N, NL "h100-8gpu-sweep-1.log", NULL, 65, "leave all_reduce"},
    {N, NL "issue-tree-2node-4nic.log", NULL, 11, "leaves 2 of them"},
    {N, NL "new-json-v3.json", NULL, 11, NULL},
    {N, NL "new-layout-version-lines.log", NULL, 11, NULL},
    {N, NL "oci-1.log", NULL, 11, NULL},
    {N, NL "odd-empty.log", NULL, 0, "the file is empty"},
    {N, NL "odd-mpirun-tagged.log", NULL, 65, NULL},
    {N, NL "odd-nan.log", NULL, 63, "a time is not a number: the row is left out"},
    {N, NL "odd-timestamps.log", NULL, 65, NULL},
    {N, NL "odd-truncated.log", NULL, 29, ":27: the row is cut and left out"},
    {N, NL "odd-two-runs-one-file.log", NULL, 0, "say --op with 2 names"},
    {N, NL "odd-two-runs-one-file.log", "all_reduce,all_gather", 129, "wrong collective"},
    {N, NL "odd-wrong-nonzero.log", NULL, 57, ":44: the test found wrong values"},
    {N, NL "old-2.8-a100-allgather.log", NULL, 0, "its name suggests all_gather"},
    {N, NL "old-2.8-a100-allgather.log", "all_gather", 59, "5 rows of size 0"},
    {N, NL "old-2.8-a100-allreduce.log", NULL, 65, "leave all_reduce"},
    {N, NL "old-2.8-a100-broadcast.log", NULL, 65, "leave broadcast"},
    {N, NL "old-2.8-a100-reducescatter.log", NULL, 59, "leave reduce_scatter"},
#define ML "megatron-logs/"
#define TL "torchtitan-logs/"
    {"log", ML "bloom-176b-chronicle-lines.log", NULL, ANY, "step_time = 106315 ms"},
    {"log", ML "deepspeed-chat-step1.log", NULL, ANY, "differences of time stamps"},
    {"log", ML "megatron-ds-3d-n16-on.log", NULL, ANY, "framework = Megatron-DeepSpeed\ngpus = 64"},
    {"log", ML "megatron-new-moe.log", NULL, ANY, "tflops_per_gpu = 494.6"},
    {"log", ML "megatron-v100-perf-n16.log", NULL, ANY, "all 3 steps have iterations without"},
    {"log", ML "megatron-v100-tp4-pp16-m4.log", NULL, ANY, "step_time = 2740.05 ms"},
    {"log", ML "megatron-v100-tp4-pp4-m4.log", NULL, ANY, "step_time = 1380.6 ms"},
    {"log", ML "megatron-v100-tp4-pp64-m4.log", NULL, ANY, "step_time = 6715.3 ms"},
    {"log", TL "titan-dsv3-2.log", NULL, 0, "none reports a step"},
    {"log", TL "titan-h100-1.log", NULL, ANY, "8 lines repeat the step before"},
    {"log", TL "titan-moe-b200.log", NULL, ANY, "step_time = 2000 ms"},
#define XL "nccl-topo-xml/"
    {T, XL "aws-g5.48xl-topo.xml", NULL, 0, "the pci entries have no class"},
    {T, XL "aws-p4d-24xl-topo.xml", NULL, ANY, "nics = 4 NICs\nnic = 12.5 GB/s\nnet = efa"},
    {T, XL "azure-ncv4-topo.xml", NULL, ANY, "links lead to itself"},
    {T, XL "azure-ndv2-topo.xml", NULL, 0, "8 GPUs: the listing does not name them"},
    {T, XL "azure-ndv2-topo.xml", NULL, ANY, "does not show NVLink", "v100-sxm2-32"},
    {T, XL "azure-ndv4-topo.xml", NULL, 0, "8 GPUs: the listing does not name them"},
    {T, XL "azure-ndv4-topo.xml", NULL, ANY, "nics = 8 NICs\nnic = 25 GB/s", A},
    {T, XL "gb200-tray-synthetic.xml", NULL, ANY, "domain_nodes = 18 nodes"},
    {T, XL "oci-H100-topology.xml", NULL, ANY,
     "nics = 16 NICs\nnic = 22.5 GB/s\nnet = roce\n"
     "nic_pcie = 63.0154 GB/s"},
    {T, XL "oci-topo-flattened.xml", NULL, 0, "8 GPUs: the listing does not name them"},
    {T, XL "oci-topo-flattened.xml", NULL, ANY, "nics = 8 NICs", A},
    {T, XL "odd-degraded-pcie.xml", NULL, ANY, ":6: 0000:0f:00.0: PCIe link at 8.0 GT/s"},
    {T, XL "odd-degraded-pcie.xml", NULL, ANY, "nic_pcie = 15.7538 GB/s"},
    {T, XL "odd-entity-bomb.xml", NULL, 0, "declares entities"},
    {T, XL "odd-truncated.xml", NULL, 0, ":84: not sound XML"},
    {T, XL "rccl-topo_16p1h_vm.xml", NULL, 0, "Instinct MI250X"},
    {T, XL "rccl-topo_16p1h_vm.xml", NULL, 0, "node.gpus = 16 with nvlink = mesh", A},
    {T, XL "rccl-topo_3p_pcie.xml", NULL, 0, "Instinct MI210"},
    {T, XL "rccl-topo_3p_pcie.xml", NULL, ANY, "nvlink = none", A},
    {T, XL "rccl-topo_4p1h.xml", NULL, ANY, "mesh = 0 1 1 0; 1 0 0 1; 1 0 0 1; 0 1 1 0", A},
    {T, XL "rccl-topo_4p3l_ia.xml", NULL, ANY, "mesh = 0 1 1 1 0 0 0 0;", A},
    {T, XL "rccl-topo_8p_90a.xml", NULL, ANY, "mesh = 0 1 1 0 0 0 1 0;", A},
    {T, XL "rccl-topo_8p_940.xml", NULL, ANY, "mesh = 0 1 1 1 1 1 1 1;", A},
    {T, XL "rccl-topo_8p_940vm.xml", NULL, ANY, "mesh = 0 1 1 1 1 1 1 1;", A},
    {T, XL "rccl-topo_8p_pcie.xml", NULL, ANY, "nvlink = none", A},
    {T, XL "rccl-topo_8p_rome_4n_1.xml", NULL, 0, "Instinct MI100"},
    {T, XL "rccl-topo_8p_rome_4n_1.xml", NULL, ANY, "mesh = 0 1 1 1 0 0 0 0;", A},
#define HL "hwloc-xml/"
    {T, HL "32em64t-2n8c2t-pci-normalio.xml", NULL, 0, "Tesla M2075"},
    {T, HL "32em64t-2n8c2t-pci-normalio.xml", NULL, ANY, "gpus = 3 GPUs", A},
    {T, HL "nvidiaDGX2.xml", NULL, 0, "16 GPUs of PCI device 10de:1db8 (V100 SXM3 32 GB)"},
    {T, HL "nvidiaDGX2.xml", NULL, ANY, "gpus = 16 GPUs\nnvlink = switch", "v100-sxm2-32"},
    {T, HL "power8gpudistances.xml", NULL, 0, "P100 SXM2"},
    {T, HL "power8gpudistances.xml", NULL, ANY, "mesh = 0 2 0 0; 2 0 0 0; 0 0 0 2; 0 0 2 0", A},
#define IL "ibnetdiscover/"
    {T, IL "exporter-test.out", NULL, ANY, "3 hosts, 2 switches, 4 links", A},
    {T, IL "exporter-test3.out", NULL, 0, "no link from a switch to an adapter"},
    {T, IL "topograph-bad.out", NULL, 0, "no link from a switch to an adapter"},
    {T, IL "topograph-example.out", NULL, ANY, "111 hosts, 22 switches", A},
    {T, IL "topograph-example.out", NULL, ANY, "fabric = rail", A},
#define SL "nvidia-smi-topo/"
    {T, SL "4gpu-nv12.txt", NULL, 0, "4 GPUs: the listing does not name them"},
    {T, SL "4gpu-nv12.txt", NULL, ANY, "nvlink = switch", A},
    {T, SL "4gpu-phb-g5.txt", NULL, ANY, "nvlink = none", "a10-24"},
    {T, SL "8gpu-a100-10nic.txt", NULL, ANY, "2 of 10 NICs are across the sockets", A},
    {T, SL "8gpu-xgmi-rocm-smi.txt", NULL, ANY, "mesh = 0 1 1 1 1 1 1 1;", A},
    {T, SL "ml-engineering-1.txt", NULL, ANY, "mesh = 0 2; 2 0", A},
    {T, SL "ml-engineering-3.txt", NULL, ANY, "nvlink = switch", A},
    {T, SL "ml-engineering-4.txt", NULL, ANY, "nvlink = switch\nnvls = yes", "h100"},
    {T, SL "odd-gb200-nv18-4gpu.txt", NULL, ANY, "nics = 4 NICs", "gb200"},
#define KL "kineto-traces/"
    {K, KL "alexnet-critical-path.json.gz", NULL, 24, NULL},
    {K, KL "call-stack-backward-thread.json", NULL, 9, "gemm"},
    {K, KL "cuda-event-sync.json.gz", NULL, 12, NULL},
    {K, KL "deepseek-train-overlap.json", NULL, 99, "all_to_all"},
    {K, KL "mi250-toy.json.gz", NULL, 20, NULL},
    {K, KL "nccl-metadata.json.gz", NULL, 83, "all_reduce,40,fp32,8196000,2,0,3,"},
    {K, KL "odd-unterminated.json", NULL, 9, "used up to the last whole one, 1 of them"},
    {K, KL "sampled-128gpu-rank0.json.gz", NULL, 210, "send_recv"},
    {K, KL "tiny-base.json.gz", NULL, 11, NULL},
    {K, KL "tiny-test.json.gz", NULL, 11, NULL},
#define CL "chakra-et/"
    {C, CL "astra-all_reduce-4npus.0.et", NULL, 2, "none of 1 operations has a duration"},
    {C, CL "astra-all_reduce-4npus.1.et", NULL, 2, NULL},
    {C, CL "astra-all_reduce-4npus.2.et", NULL, 2, NULL},
    {C, CL "astra-custom_ring_8npus.0.et", NULL, 36, "28 of 35 operations have no duration"},
    {C, CL "chakra-chakra.0.et", NULL, 3665, "broadcast,212480,28000,"},
    {C, CL "linear_et.json.gz", NULL, 932, "none of 931 operations has a duration"},
    {C, CL "odd-is-json.et", NULL, 0, "the trace has no node"},
    {C, CL "odd-truncated.et", NULL, 0, "byte 3: the file ends within a message"},
    {C, CL "resnet_1gpu_et-1.0.3-chakra.0.0.4.json.gz", NULL, 14392, "none of 14391 operations"},
    {C, CL "simple_add_et-1.0.1.json.gz", NULL, 39, "none of 38 operations has a duration"},
#define FL "train-configs/"
#define NO "says nothing of"
#define NO_ARGUMENTS "no Megatron arguments"
    {F, FL "aicb-G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt", NULL, 0, NO_ARGUMENTS},
    {F, FL "astra-HGX-H100-validated.json", NULL, 0, NO},
    {F, FL "astra-HGX-H100-validated.yml", NULL, 0, Y(NO)},
    {F, FL "bloom-176b.slurm", NULL, 0, "(it runs on 192 GPUs); say --set job.cluster=..."},
    {F, FL "bloom-176b.slurm", NULL, ANY, "layers = 70\nhidden = 14336\nheads = 112",
     "jean-zay-a100:192"},
    {F, FL "calculon-exec-3072.json", NULL, 0, NO},
    {F, FL "calculon-gpt3-175B.json", NULL, 0, NO},
    {F, FL "calculon-megatron-1T.json", NULL, 0, NO},
    {F, FL "calculon-turing-530B.json", NULL, 0, NO},
    {F, FL "ds-ds_config.json", NULL, 0,
     "--set job.cluster=... --set batch.sequence=... --set "
     "job.model=..."},
    {F, FL "ds-ds_config_fp16_z3.json", NULL, 0, "train_micro_batch_size_per_gpu = auto"},
    {F, FL "ds-zf_config.json", NULL, 0, "offloading to the CPU is not modelled"},
    {F, FL "gpt2-meg-n16.slurm", NULL, ANY, "layers = 64\nhidden = 9216", "jean-zay-v100:64"},
    {F, FL "megatron-gpt3.sbatch", NULL, ANY, "NODES is not set in the script: 2 of", "aws-p4d:16"},
    {F, FL "megatron-gpt3.sbatch", NULL, ANY, "tp = 4\npp = 2", "aws-p4d:16"},
    {F, FL "megatron-gpt_16b_perf-baseline.json", NULL, 0, NO},
    {F, FL "megatron-gpt_16b_perf.yaml", NULL, 0, Y(NO)},
    {F, FL "megatron-hybrid_2b_perf-baseline.json", NULL, 0, NO},
    {F, FL "megatron-hybrid_2b_perf.yaml", NULL, 0, Y(NO)},
    {F, FL "nanotron-config_qwen.yaml", NULL, L(ANY), Y("kv_heads = 4"), "h100-ib:8"},
    {F, FL "nanotron-config_tiny_llama.yaml", NULL, L(ANY), Y("framework = nanotron"), "h100-ib:8"},
    {F, FL "nanotron-llamoe.yaml", NULL, 0, Y("(it runs on 2 GPUs); say --set job.cluster=...")},
    {F, FL "nanotron-llamoe.yaml", NULL, L(ANY), Y("experts = 4\nexperts_per_token = 1"),
     "h100-ib:8"},
    {F, FL "simai-busbw.yaml", NULL, 0, Y("not sound YAML")},
    {F, FL "simai-microAllReduce.txt", NULL, 0, NO_ARGUMENTS},
    {F, FL "simumax-deepseekv3.json", NULL, 0, NO},
    {F, FL "simumax-llama3-70b.json", NULL, 0, NO},
    {F, FL "simumax-mixtral-8x7b.json", NULL, 0, NO},
    {F, FL "simumax-tp1_pp4_vp2_sync_mbs1_mbc8_no_ckpt.json", NULL, 0, NO},
    {F, FL "torchtitan-custom_schedule.csv", NULL, 0, NO_ARGUMENTS},
    {F, FL "torchtitan-deepseek_v3_671b.toml", NULL, 0, "say --set job.cluster=..."},
    {F, FL "torchtitan-deepseek_v3_671b.toml", NULL, ANY, "experts = 256\nexperts_per_token = 8",
     "h100-ib:256"},
    {F, FL "torchtitan-deepseek_v3_671b.toml", NULL, ANY,
     "has experts, which can't be simulated yet: orrery step will refuse the job", "h100-ib:256"},
    {F, FL "vtrain-mtnlg.json", NULL, 0, NO},
#define H "hf"
#define HF "hf-configs/"
    {H, HF "bert-base-uncased.json", NULL, 0,
     ":16: model_type = \"bert\": this model is an encoder; decoders will do"},
    {H, HF "deepseek-v2-lite-16b.json", NULL, 0,
     ":22: model_type = \"deepseek_v2\": this model has latent attention (MLA) or a mixture of "
     "expert"},
    {H, HF "deepseek-v3.json", NULL, 0,
     ":22: model_type = \"deepseek_v3\": this model has latent attention (MLA) or a mixture of "
     "expert"},
    {H, HF "falcon-40b.json", NULL, ANY, "expect_parameters = 41303293952\n"},
    {H, HF "gemma-4-26b-a4b.json", NULL, 0,
     ":65: text_config.model_type = \"gemma4_text\": this model is a mixture of experts, which is "
     "not"},
    {H, HF "gemma2-2b.json", NULL, ANY, "expect_parameters = 2614341888\n"},
    {H, HF "gemma2-9b.json", NULL, ANY, "expect_parameters = 9241705984\n"},
    {H, HF "gemma3-12b.json", NULL, ANY, "expect_parameters = 11765788416\n"},
    {H, HF "gemma3-27b.json", NULL, ANY, "expect_parameters = 27009002240\n"},
    {H, HF "gpt-neox-20b.json", NULL, ANY, "expect_parameters = 20554567680\n"},
    {H, HF "gpt-oss-20b.json", NULL, 0,
     ":42: model_type = \"gpt_oss\": this model is a mixture of experts, which is not built yet"},
    {H, HF "gpt2.json", NULL, ANY, "expect_parameters = 124439808\n"},
    {H, HF "llama-2-13b.json", NULL, ANY, "expect_parameters = 13015864320\n"},
    {H, HF "llama-2-70b.json", NULL, ANY, "expect_parameters = 68976648192\n"},
    {H, HF "llama-2-7b.json", NULL, ANY, "expect_parameters = 6738415616\n"},
    {H, HF "llama-3-8b.json", NULL, ANY, "expect_parameters = 8030261248\n"},
    {H, HF "llama-3.1-405b.json", NULL, ANY, "expect_parameters = 405853388800\n"},
    {H, HF "llama-3.1-70b.json", NULL, ANY, "expect_parameters = 70553706496\n"},
    {H, HF "llama-3.1-8b.json", NULL, ANY, "expect_parameters = 8030261248\n"},
    {H, HF "llama-3.2-1b.json", NULL, ANY, "expect_parameters = 1235814400\n"},
    {H, HF "llama-4-maverick-17b-128e.json", NULL, 0,
     ":17: text_config.model_type = \"llama4_text\": this model is a mixture of experts, which is "
     "not"},
    {H, HF "minimax-m2.5.json", NULL, 0,
     ":5: model_type = \"minimax_m2\": this model is a mixture of experts, which is not built yet"},
    {H, HF "mistral-7b-v0.3.json", NULL, ANY, "expect_parameters = 7248023552\n"},
    {H, HF "mixtral-8x7b.json", NULL, 0,
     ":13: model_type = \"mixtral\": this model is a mixture of experts, which is not built yet"},
    {H, HF "nemotron-h-56b.json", NULL, 0,
     ":30: model_type = \"nemotron_h\": this model mixes attention with state-space or recurrent "
     "laye"},
    {H, HF "odd-huge.json", NULL, 0,
     ":11: num_hidden_layers = 1000000000000: is out of range; 1 to 10000 will do"},
    {H, HF "odd-missing-layers.json", NULL, 0,
     ":1: num_hidden_layers: is missing; a whole number from 1 to 10000 will do"},
    {H, HF "odd-nan-and-trailing-comma.json", NULL, 0, ":1:150: NaN is not JSON"},
    {H, HF "odd-string-numbers.json", NULL, 0, ":6: hidden_size = \"4096\": is not a whole number"},
    {H, HF "opt-175b.json", NULL, ANY, "expect_parameters = 174604468224\n"},
    {H, HF "qwen2.5-1.5b.json", NULL, ANY, "expect_parameters = 1543714304\n"},
    {H, HF "qwen2.5-32b.json", NULL, ANY, "expect_parameters = 32763876352\n"},
    {H, HF "qwen2.5-7b.json", NULL, ANY, "expect_parameters = 7615616512\n"},
    {H, HF "qwen3-0.6b.json", NULL, ANY, "expect_parameters = 596049920\n"},
    {H, HF "qwen3-235b-a22b.json", NULL, 0,
     ":18: model_type = \"qwen3_moe\": this model is a mixture of experts, which is not built yet"},
    {H, HF "qwen3-30b-a3b.json", NULL, 0,
     ":18: model_type = \"qwen3_moe\": this model is a mixture of experts, which is not built yet"},
    {H, HF "qwen3-8b.json", NULL, ANY, "expect_parameters = 8190735360\n"},
    {H, HF "qwen3-vl-30b-a3b.json", NULL, 0,
     ":21: text_config.model_type = \"qwen3_vl_moe_text\": this model is a mixture of experts, "
     "which "},
    {H, HF "shrunk-baichuan.json", NULL, ANY, "expect_parameters = 615782400\n"},
    {H, HF "shrunk-bloom.json", NULL, ANY, "expect_parameters = 564168704\n"},
    {H, HF "shrunk-falcon-7b.json", NULL, ANY, "expect_parameters = 504547584\n"},
    {H, HF "shrunk-gptbigcode.json", NULL, ANY, "expect_parameters = 227059968\n"},
    {H, HF "shrunk-gptj.json", NULL, ANY, "expect_parameters = 614290656\n"},
    {H, HF "shrunk-gptneox.json", NULL, ANY, "expect_parameters = 324057088\n"},
    {H, HF "shrunk-jamba.json", NULL, 0,
     ":23: model_type = \"jamba\": this model mixes attention with state-space or recurrent "
     "layers"},
    {H, HF "shrunk-phi.json", NULL, ANY, "expect_parameters = 340871680\n"},
    {H, HF "shrunk-phi3.json", NULL, ANY, "expect_parameters = 310256640\n"},
    {H, HF "shrunk-t5.json", NULL, 0,
     ":14: model_type = \"t5\": this model is an encoder-decoder; decoders will do"},
    {H, HF "t5-v1_1-xxl.json", NULL, 0,
     ":16: model_type = \"t5\": this model is an encoder-decoder; decoders will do"},
#define X "failures"
#define XF "failure-traces/"
#define NO_HISTORY "no history of failures: columns component and count"
    {X, XF "acme-cluster_summary.csv", NULL, 0, NO_HISTORY},
    {X, XF "acme-seren-schema.csv", NULL, ANY, "2 jobs, 0 ended by NODE_FAIL, 1 FAILED"},
    {X, XF "llama3-54day-interruptions.csv", NULL, 0, "--ranks 16384 --window 54d would do"},
    {X, XF "pai-minibatch-times-job1.csv", NULL, 0, NO_HISTORY},
    {X, XF "pai-openb_node_list_gpu_node.csv", NULL, 0, NO_HISTORY},
    {X, XF "philly_runtime_head.csv", NULL, 0, NO_HISTORY},
    {X, XF "sacct-P.txt", NULL, ANY, "4 jobs, 1 ended by NODE_FAIL"},
#define CM "cluster-models/"
#define NO_LISTING "neither XML nor a listing of ibnetdiscover"
    {T, CM "aiconfigurator-a100_sxm.yaml", NULL, 0, NO_LISTING},
    {T, CM "aiconfigurator-b200_sxm.yaml", NULL, 0, NO_LISTING},
    {T, CM "calculon-a100_80g.json", NULL, 0, NO_LISTING},
    {T, CM "calculon-h100_80g_nvl8.json", NULL, 0, NO_LISTING},
    {T, CM "slurm-example_cluster.toml", NULL, 0, NO_LISTING},
    {T, CM "topograph-large.yaml", NULL, 0, NO_LISTING},
    {T, CM "topograph-medium.yaml", NULL, 0, NO_LISTING},
    {T, CM "topograph-nvl72.yaml", NULL, 0, NO_LISTING},
};

static char *shared_files(void) {
    const char *shared = g_getenv("ORRERY_SHARED"), *top = g_getenv("top_srcdir");
    g_autofree char *beside = g_build_filename(top ? top : ORR_SRCDIR, "..", "shared", NULL);
    return g_build_filename(shared ? shared : beside, "files", NULL);
}

static const OrrImporter *importer_named(const char *name) {
    for (int i = 0; orr_importers[i]; i++)
        if (strcmp(orr_importers[i]->name, name) == 0)
            return orr_importers[i];
    fail_msg("no importer %s", name);
    return NULL;
}

static guint count_lines(const char *text) {
    guint n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void test_every_shared_file_is_read_or_refused_for_its_reason(void **state) {
    (void)state;
    g_autofree char *base = shared_files();
    if (!g_file_test(base, G_FILE_TEST_IS_DIR)) {
        g_clear_pointer(&base, g_free); /* skip() jumps over what frees */
        skip();
    }
    guint n_bad = 0;
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        const Expected *e = &all[i];
        g_autofree char *path = g_build_filename(base, e->file, NULL);
        g_autoptr(GString) notes = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        OrrImport import = {.path = path, .op = e->op, .gpu = e->gpu, .notes = notes};
        g_autofree char *cluster = g_strdup_printf("job.cluster=%s", e->gpu);
        const char *const sets[] = {cluster, NULL};
        import.nic = e->gpu ? "200G" : NULL;
        import.sets = e->gpu ? sets : NULL;
        g_autofree char *text = importer_named(e->importer)->run(&import, &error);
        guint lines = text ? count_lines(text) : 0;
        const char *said = error ? error->message : notes->str;
        bool is_said = !e->says || strstr(notes->str, e->says) || strstr(said, e->says) ||
                       (text && strstr(text, e->says));
        if ((e->lines == ANY ? lines > 0 : lines == e->lines) && is_said &&
            (text != NULL) == (error == NULL))
            continue;
        print_error("%s: %u lines (expected %u), said: %.900s\n", e->file, lines, e->lines, said);
        n_bad++;
    }
    assert_int_equal(n_bad, 0);
}

static guint check_folder(const char *base, const char *folder) {
    g_autofree char *path = g_build_filename(base, folder, NULL);
    guint n = 0;
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    assert_non_null(dir);
    for (const char *name; (name = g_dir_read_name(dir)); n++) {
        g_autofree char *file = g_build_filename(folder, name, NULL);
        guint i = 0;
        while (i < G_N_ELEMENTS(all) && strcmp(all[i].file, file) != 0)
            i++;
        if (i == G_N_ELEMENTS(all))
            fail_msg("%s is in no row of the table", file);
    }
    return n;
}

static void test_table_has_every_file_of_every_folder(void **state) {
    (void)state;
    g_autofree char *base = shared_files();
    if (!g_file_test(base, G_FILE_TEST_IS_DIR)) {
        g_clear_pointer(&base, g_free); /* skip() jumps over what frees */
        skip();
    }
    guint n = 0;
    g_autoptr(GDir) dir = g_dir_open(base, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(base, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            n += check_folder(base, name);
    }
    assert_true(n > 150);
}

static void test_importers_have_a_name_a_sentence_and_a_source(void **state) {
    (void)state;
    int i = 0;
    for (; orr_importers[i]; i++) {
        assert_string_equal(orr_importers[i]->name, orr_importer_names[i]);
        assert_true(strlen(orr_importers[i]->summary) > 10);
        assert_true(strlen(orr_importers[i]->source) > 3);
    }
    assert_null(orr_importer_names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shared_file_is_read_or_refused_for_its_reason),
        cmocka_unit_test(test_table_has_every_file_of_every_folder),
        cmocka_unit_test(test_importers_have_a_name_a_sentence_and_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
