/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide.h: the C interface. N members of one graph, loaded and run as one model:
 *
 *   wide_graph_create_named("mlp", NULL, &graph);
 *   wide_plan_create(context, graph, &options, &plan);
 *   wide_model_create(context, plan, parameters, num_members, &model);
 *   wide_model_run(model, inputs, num_inputs, outputs, num_outputs, &execution);
 *
 * Every function returns a wide_status, and its result through its last argument, which is
 * written only where it returns WIDE_OK. For any other status, wide_last_error() says what was
 * wrong, what was got and what expected. Nothing throws, aborts or exits through this interface.
 * Functions that return void or text cannot fail; every *_destroy takes NULL.
 *
 * Structs begin with struct_size, which the caller sets to sizeof: `wide_plan_options options =
 * {.struct_size = sizeof options}`. A field that is zero has its default. All elements of an array
 * of structs have the same struct_size. A pointer to options may be NULL where the comment says so.
 * In a struct of an earlier version the missing fields have their defaults. One of a later version
 * is accepted where the fields unknown to the library are zero; where the library writes to it, it
 * sets those to zero.
 *
 * Handles may be destroyed in any order, since each keeps alive what it needs of others; the caller
 * keeps alive what it lends (memory of views, streams, vendors' handles, an allocator).
 * Text and views that a handle hands out are valid as long as the handle.
 *
 * Threads: wide_last_error() is per thread. Graphs, plans and files' members never change and may
 * be used by all threads at once; so may models and chunked models for runs, each thread with its
 * own stream and workspace, and replays, whose runs take turns. Calls that change a model's members
 * or read them back take turns; on CUDA, make them on the stream of the runs or while nothing runs;
 * on the CPU they may come at any time: a change waits for the runs in progress, and later runs
 * wait for it. Contexts, builders, parameters and vendor handles are for one thread at a time. A
 * handle may not be destroyed while another thread uses it, nor, on CUDA, before the work queued
 * with it is complete where it is a tensor, model, chunked model, replay or ragged plan: its memory
 * goes back to its allocator at once. wide_synchronize() waits for the work.
 *
 * Status, devices, streams and memory: wide_runtime.h, which this includes. Custom graphs:
 * wide_builder.h; graphs of ONNX files: wide_onnx.h. In C++ only: primitives by
 * themselves (wide/linear.hpp, ..), operations that are not layers (GraphBuilder::append), graphs
 * as text, NumPy's files, tuning caches and checkpoints in memory, single steps of a run.
 */
#ifndef WIDE_WIDE_H
#define WIDE_WIDE_H

#include <stddef.h>
#include <stdint.h>

#include "wide/wide_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wide_graph wide_graph;           /* the network of one member */
typedef struct wide_parameters wide_parameters; /* tensors by name: a member's parameters */
typedef struct wide_members wide_members;       /* all members of a file or of several */
typedef struct wide_plan wide_plan;             /* how a graph runs with N members on a device */
typedef struct wide_model wide_model;           /* a plan with its members' parameters */
typedef struct wide_chunked wide_chunked;       /* a model that takes its batch in pieces */
typedef struct wide_replay wide_replay;         /* a model's run, captured */

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct wide_model_sizes {
  size_t struct_size; /* other fields 0: the model's own */
  wide_dtype dtype;
  int64_t layers, width, heads, seq, image, classes, vocab;
} wide_model_sizes;

/* mlp, mlp256, deep_mlp, agent, convnet, resblock, resnet18, unet, bert or vit; `sizes` may be
 * NULL. */
WIDE_API wide_status wide_graph_create_named(const char* name, const wide_model_sizes* sizes,
                                             wide_graph** out);

typedef struct wide_weight_quantization {
  size_t struct_size;
  const char* format;        /* "fp8_e4m3", "int8", "fp6_e3m2", "int4" or "fp4_e2m1" */
  int64_t group_size;        /* inputs that share a scale: 64 or 128; 0: 128 */
  const char* const* layers; /* nodes' names; none: all linear layers that are not quantised yet */
  int64_t num_layers;
} wide_weight_quantization;

typedef struct wide_graph_info {
  size_t struct_size;
  const char* name;
  int64_t num_parameters; /* tensors that each member has */
  int64_t num_inputs, num_outputs;
} wide_graph_info;

/* An input or output of a graph; what a plan makes of it for its members: wide_plan_input. */
typedef struct wide_graph_value {
  size_t struct_size;
  const char* name;
  wide_dtype dtype;
  int32_t rank;
  int64_t shape[WIDE_MAX_RANK]; /* of one member; where it has rows, the first is WIDE_BATCH */
  int32_t is_shared;            /* an input that is one for all members */
} wide_graph_value;

/* A parameter as members are loaded with it. */
typedef struct wide_parameter_info {
  size_t struct_size;
  const char* name;
  wide_dtype dtype; /* WIDE_FP32, WIDE_FP16 and WIDE_BF16 are given as any of these */
  int32_t rank;
  int64_t shape[WIDE_MAX_RANK]; /* of one member */
  int32_t is_shared; /* of a plan's: stored once, so that members whose values differ are refused */
} wide_parameter_info;

WIDE_API wide_status wide_graph_query(const wide_graph* graph, wide_graph_info* out);
WIDE_API wide_status wide_graph_parameter(const wide_graph* graph, int64_t index,
                                          wide_parameter_info* out);
WIDE_API wide_status wide_graph_input(const wide_graph* graph, int64_t index,
                                      wide_graph_value* out);
WIDE_API wide_status wide_graph_output(const wide_graph* graph, int64_t index,
                                       wide_graph_value* out);

/* The same network with quantised weights in its linear layers: members' parameters are unchanged,
 * and are quantised when they are loaded. x is fp16 or bf16 on CUDA. */
WIDE_API wide_status wide_graph_quantize(const wide_graph* graph,
                                         const wide_weight_quantization* how, wide_graph** out);

typedef struct wide_output_ensembles {
  size_t struct_size;
  /* "mean", "sum", "variance" (of K members: over K - 1), "vote", "log_mean_exp"; none: mean */
  const char* const* ensembles;
  int64_t num_ensembles;
  const char* const* outputs; /* their names; none: all that are not ensembles */
  int64_t num_outputs;
  int32_t keeps_members; /* each member's result stays an output, before its ensembles */
} wide_output_ensembles;

/* The same network, of a file as well, with ensembles in place of outputs: the mean of "y" is
 * "y.mean", and so on, in their order. `what` may be NULL. */
WIDE_API wide_status wide_graph_ensemble(const wide_graph* graph, const wide_output_ensembles* what,
                                         wide_graph** out);
WIDE_API void wide_graph_destroy(wide_graph* graph);

/* ---- members' parameters --------------------------------------------------------------------- */

WIDE_API wide_status wide_parameters_create(wide_parameters** out);
/* To try out a graph: drawn for this member from `seed`. */
WIDE_API wide_status wide_parameters_create_random(const wide_graph* graph, uint64_t seed,
                                                   int64_t member, wide_parameters** out);
/* Variations of one member: 0 is as `parameters`, which lie densely packed on the CPU; in others
 * every floating element is multiplied by a factor in [1 - spread, 1 + spread] from `seed`. */
WIDE_API wide_status wide_parameters_create_perturbed(const wide_parameters* parameters,
                                                      double spread, uint64_t seed, int64_t member,
                                                      wide_parameters** out);
/* Parameters that are equal, bit for bit, in all `members`: candidates for shared_parameters. */
WIDE_API wide_status wide_parameters_create_equal(const wide_graph* graph,
                                                  const wide_parameters* const* members,
                                                  int64_t num_members, wide_parameters** out);
/* Those whose names begin with `prefix`, by the rest of their names: one member's of a file that
 * has several, "member0.". Refused where there is none, unless the prefix is "". */
WIDE_API wide_status wide_parameters_create_prefixed(const wide_parameters* parameters,
                                                     const char* prefix, wide_parameters** out);
/* Replaces one of that name. The memory stays the caller's and is not copied; it may be null only
 * where there are no elements. */
WIDE_API wide_status wide_parameters_set(wide_parameters* parameters, const char* name,
                                         const wide_view* view);
/* Every tensor of a safetensors file, or of an index of several; mapped, not copied. */
WIDE_API wide_status wide_parameters_load(wide_parameters* parameters, const char* path);
/* Of such a file only what `graph` has as parameters, each as `prefix` and its name: others, of any
 * dtype, are left. Refused where one is missing, or of a dtype that wide lacks. `prefix` NULL: "";
 * `graph` NULL: all tensors whose names begin with the prefix, by the rest of their names. */
WIDE_API wide_status wide_parameters_load_for(wide_parameters* parameters, const char* path,
                                              const char* prefix, const wide_graph* graph);
/* As a safetensors file; tensors lie densely packed on the CPU. A crash leaves the old file or the
 * new one. */
WIDE_API wide_status wide_parameters_save(const wide_parameters* parameters, const char* path);
/* Data from a file may be written to: that changes what the handles of this load or open see, never
 * the file. */
WIDE_API wide_status wide_parameters_get(const wide_parameters* parameters, const char* name,
                                         wide_view* out);
/* The names in order, then NULL: for (i = 0; (name = wide_parameters_name(p, i)); ++i) */
WIDE_API const char* wide_parameters_name(const wide_parameters* parameters, int64_t index);
WIDE_API void wide_parameters_destroy(wide_parameters* parameters);

typedef struct wide_members_info {
  size_t struct_size;
  const char* graph; /* its name */
  int64_t num_members;
} wide_members_info;

/* What wide_model_save wrote, mapped: do not shorten or write to the file while it is used. */
WIDE_API wide_status wide_members_open(const char* path, wide_members** out);
WIDE_API wide_status wide_members_query(const wide_members* members, wide_members_info* out);
/* Of ONNX files; WIDE_UNSUPPORTED for others, which hold parameters and no graph. */
WIDE_API wide_status wide_members_graph(const wide_members* members, wide_graph** out);
/* Constants that a file fills with one number are expanded to all their elements. */
WIDE_API wide_status wide_members_get(const wide_members* members, int64_t member,
                                      wide_parameters** out);
WIDE_API void wide_members_destroy(wide_members* members);

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct wide_strategy {
  size_t struct_size;
  const char* primitive; /* "linear", or "all"; or a node's name, which is looked up first, unless
                            it is a primitive's, too */
  const char* strategy;  /* "sequential" */
} wide_strategy;

typedef struct wide_plan_options {
  size_t struct_size;
  int64_t num_members; /* 0: 1 */
  int64_t batch;       /* rows of every input, per member; 0: 1 */
  /* Rows of each member, in order, as many numbers as there are members; a member may have none.
   * Such a plan is "ragged": members' rows follow one another, [sum of batches, D], and `batch`
   * becomes the largest of these. A shared input has `batch` rows, of which a member reads as many
   * of the first as it has rows. NULL, with num_batches 0: `batch` each. */
  const int64_t* batches;
  int64_t num_batches;
  /* NULL: "default"; "fast": tf32, and quantised weights may be rounded to 16 bits, in a workspace
   * that then holds all of a layer's; "debug", "safe" */
  const char* preset;
  int32_t allows_tf32; /* fp32 products may round their operands to tf32 */
  int32_t drops_out;   /* Monte Carlo: dropout is active */
  /* Parameters that are the same for all members; what depends on these alone is computed once. */
  const char* const* shared_parameters;
  int64_t num_shared_parameters;
  /* Each name once. Others are chosen automatically. Linear layers whose strategy is named are not
   * fused into an mlp, unless a strategy is named for that as well. */
  const wide_strategy* strategies;
  int64_t num_strategies;
  int32_t disable_batchnorm_folding; /* into the preceding product */
  int32_t disable_fusion;            /* of activations and residuals with the preceding product */
  int32_t disable_memory_reuse;      /* activations keep their memory after their last reader */
  int32_t disable_copies;            /* graphs that need implicit copies are refused, by node */
  const char* tuning;                /* a file of `wbench tune`, read while the plan is made */
  /* The layout of images between convolutions; WIDE_CHANNELS_AUTO: last where that is expected to
   * be faster, else as in the graph. */
  wide_channels channels;
  /* Every row is run by one member, which the row names. Inputs and outputs are those of one
   * member, [batch, D], and after the graph's inputs there is another, "member_ids", [batch];
   * linear layers and norms of members' own give zeros where an id is that of no member; what other
   * nodes make of such a row is unspecified. Only the device reads ids, so that one plan, and one
   * captured graph, is for any. Members differ in linear layers, layernorm, rmsnorm and chain only.
   */
  int32_t is_routed;
  /* K, the members that run each row of a routed plan: a mixture of experts, of which the graph is
   * one. Outputs are sums over a row's K members, each times its gate where there are gates; ids of
   * no member add nothing. 0: 1 */
  int64_t choices;
  /* Who says which members run a row, by which the inputs after the graph's differ. NULL: "ids"
   *   "ids"        "member_ids", [batch, K], or [batch] for K = 1
   *   "gated_ids"  "member_ids", and "gates", fp32, of the same shape
   *   "scores"     "scores" [batch, N], N >= K, of the first output's dtype: the K members with the
   *                largest of a row run it */
  const char* router;
  /* How "scores" become gates. NULL: "softmax", of the K; "softmax_all", of all N; "sigmoid", of
   * each; "none": the scores themselves */
  const char* gate;
  /* The id of member 0, where members are a part of all there are: of the experts of one device.
   * What is not for these members adds nothing: outputs of all parts add up to the whole. */
  int64_t first_id;
  int64_t num_scores; /* N of "scores", all members there are; 0: first_id + num_members */
  wide_dtype
      id_dtype; /* of "member_ids": WIDE_INT32 or WIDE_INT64; 0, which is WIDE_FP32: WIDE_INT64 */
} wide_plan_options;

typedef struct wide_plan_info {
  size_t struct_size;
  int64_t num_members, batch;
  int64_t num_inputs, num_outputs, num_parameters, num_steps;
  int64_t weights_bytes;   /* what a model allocates */
  int64_t workspace_bytes; /* the caller's, for each concurrent run */
  int64_t input_bytes, output_bytes, total_bytes;
  int64_t activation_bytes, scratch_bytes; /* workspace_bytes is their sum */
  int64_t table_bytes;               /* what a ragged plan itself owns on CUDA from its creation */
  int32_t calls_cublas, calls_cudnn; /* a run needs handles of these libraries */
  /* Of the host, on any device, not in total_bytes: a model's parameters that its weights do not
   * hold as they were given, such as quantised ones. wide_model_get_parameter() needs them. */
  int64_t host_bytes;
} wide_plan_info;

/* An input or output as the caller provides it: densely packed. */
typedef struct wide_operand {
  size_t struct_size;
  const char* name;
  wide_dtype dtype;
  int32_t rank;
  /* Of all members: [B, N*D], [B, N*C, H, W], [N, B, ..], ragged [sum of batches, D]. */
  int64_t shape[WIDE_MAX_RANK];
  int32_t member_axis; /* along which members are joined; -1: one for all members */
  int32_t is_stacked;  /* members have an axis of their own, in front */
  /* Of a ragged plan, num_members + 1 entries: member i has the rows from first_rows[i] up to
   * first_rows[i + 1]. NULL: the operand is one for all members, or the plan is not ragged. */
  const int64_t* first_rows;
  int64_t num_members; /* of the plan */
} wide_operand;

/* A node as it runs. */
typedef struct wide_step {
  size_t struct_size;
  const char* node;
  const char* primitive;
  const char* strategy; /* "" for copies */
  const char* explain;
  int64_t num_members; /* 1 for what all members share */
  int64_t scratch_bytes;
  int64_t member;   /* in a ragged plan, the one member that this computes; -1: all */
  int32_t is_tuned; /* the strategy is that of options.tuning */
} wide_step;

WIDE_API wide_status wide_plan_create(const wide_context* context, const wide_graph* graph,
                                      const wide_plan_options* options, wide_plan** out);
WIDE_API wide_status wide_plan_query(const wide_plan* plan, wide_plan_info* out);
WIDE_API wide_status wide_plan_input(const wide_plan* plan, int64_t index, wide_operand* out);
WIDE_API wide_status wide_plan_output(const wide_plan* plan, int64_t index, wide_operand* out);
/* Member `index` of the operand's num_members: its part of the operand's tensor, for wide_copy:
 * [B, D] of [B, N*D], or its rows in a ragged plan; the whole where it is one for all members. */
WIDE_API wide_status wide_operand_member(const wide_operand* operand, const wide_view* view,
                                         int64_t index, wide_view* out);
/* As wide_graph_parameter of the plan's graph, in the same order. */
WIDE_API wide_status wide_plan_parameter(const wide_plan* plan, int64_t index,
                                         wide_parameter_info* out);
WIDE_API wide_status wide_plan_step(const wide_plan* plan, int64_t index, wide_step* out);
/* What the passes did, and a line for each step. */
WIDE_API const char* wide_plan_explain(const wide_plan* plan);
WIDE_API void wide_plan_destroy(wide_plan* plan); /* where ragged: when its runs are complete */

/* The largest number of members whose total_bytes is at most `bytes`, on the CPU together with
 * host_bytes, 0 where not even one fits; a value that takes 2^44 bytes or more for all members does
 * not fit. options.num_members is ignored; options.batches is refused, here and below. */
WIDE_API wide_status wide_largest_num_members_that_fits(const wide_context* context,
                                                        const wide_graph* graph,
                                                        const wide_plan_options* options,
                                                        int64_t bytes, int64_t* out);
/* Likewise the largest batch up to `most`; options.batch is ignored. */
WIDE_API wide_status wide_largest_batch_that_fits(const wide_context* context,
                                                  const wide_graph* graph,
                                                  const wide_plan_options* options, int64_t bytes,
                                                  int64_t most, int64_t* out);

/* ---- models ---------------------------------------------------------------------------------- */

/* What one run needs besides its operands; `workspace` is aligned to 256 bytes, or anything, NULL
 * too, where the plan's workspace_bytes is 0. */
typedef struct wide_execution {
  size_t struct_size;
  void* stream;
  void* workspace;
  int64_t workspace_bytes;
  const wide_handles* handles; /* may be NULL where the plan calls no vendor's library */
} wide_execution;

/* One wide_parameters for each member, copied; waits for it. Parameters on the device are read on a
 * stream of its own, so whatever writes them must be complete. PyTorch's NAME.num_batches_tracked
 * beside a NAME.running_mean is ignored; other names that the graph lacks are refused. */
WIDE_API wide_status wide_model_create(const wide_context* context, const wide_plan* plan,
                                       const wide_parameters* const* members, int64_t num_members,
                                       wide_model** out);
/* Enqueues every step, operands in the order of the plan's. Outputs overlap neither inputs nor one
 * another, and nothing overlaps the workspace. Never waits; allocates nothing, except in a thread's
 * first run; may be captured in a CUDA graph. */
WIDE_API wide_status wide_model_run(const wide_model* model, const wide_view* inputs,
                                    int64_t num_inputs, const wide_view* outputs,
                                    int64_t num_outputs, const wide_execution* execution);
/* Replaces all parameters of a member, on `stream`, after whatever writes them there. Does not wait
 * where all are on the device, dense, of the graph's dtype and stored as they are given: then it
 * may be captured, and their memory must last until the stream is past this. What is converted,
 * reordered, folded, packed, quantised or shared by members passes through the host. */
WIDE_API wide_status wide_model_replace(wide_model* model, int64_t member,
                                        const wide_parameters* parameters, void* stream);
/* Sets one parameter of a member, by its name in the graph; the others keep their values. Otherwise
 * as wide_model_replace. */
WIDE_API wide_status wide_model_set_parameter(wide_model* model, int64_t member, const char* name,
                                              const wide_view* view, void* stream);
/* Makes member `to` a copy of member `from`. Does not wait. */
WIDE_API wide_status wide_model_clone(wide_model* model, int64_t from, int64_t to, void* stream);
/* A member's parameters as they were given, rounded to the graph's dtype where that differs, copied
 * to the host. Waits. */
WIDE_API wide_status wide_model_get(const wide_model* model, int64_t member, void* stream,
                                    wide_parameters** out);
/* One of them, into the memory of `destination`, on the host or the device: densely packed, of the
 * graph's dtype, or of fp32, fp16 or bf16 where that is one of these. Waits. */
WIDE_API wide_status wide_model_get_parameter(const wide_model* model, int64_t member,
                                              const char* name, const wide_view* destination,
                                              void* stream);
/* Masked members are left out of ensembles but still computed; one must remain. Does not wait. */
WIDE_API wide_status wide_model_mask(wide_model* model, int64_t member, void* stream);
WIDE_API wide_status wide_model_unmask(wide_model* model, int64_t member, void* stream);
WIDE_API wide_status wide_model_is_masked(const wide_model* model, int64_t member, int32_t* out);
/* Moves the unmasked members to the front, in order, and masks those after them. Stores the number
 * of unmasked members in `*out`. If `was` is not NULL it must have room for num_members entries;
 * was[i] gets the previous index of the member now at i, for each unmasked one. Does not wait. */
WIDE_API wide_status wide_model_compact(wide_model* model, void* stream, int64_t* was,
                                        int64_t* out);
/* For a plan with drops_out: member i draws its numbers from seed + i. For another pass take
 * another `sequence` < floor(2^64 / number of dropouts), not another seed: with seed + 1 member i
 * drops what member i + 1 dropped with `seed`. Until then both are 0. Does not wait. */
WIDE_API wide_status wide_model_seed_dropout(wide_model* model, uint64_t seed, uint64_t sequence,
                                             void* stream);
/* The same with a seed for each member, in their order. */
WIDE_API wide_status wide_model_seed_members(wide_model* model, const uint64_t* seeds,
                                             int64_t num_seeds, uint64_t sequence, void* stream);
/* As wide_model_seed_dropout with the same seeds and the next sequence, computed on the device: it
 * may be captured together with a run, so that each replay is another pass of Monte Carlo dropout.
 * Does not wait. */
WIDE_API wide_status wide_model_advance_dropout(wide_model* model, void* stream);
/* All members' parameters in one safetensors file, for wide_members_open. Waits. */
WIDE_API wide_status wide_model_save(const wide_model* model, const char* path, void* stream);
WIDE_API wide_status wide_model_plan(const wide_model* model, wide_plan** out);
/* The same members for another batch: a change of a member changes both models. Operands lie as the
 * new plan says. */
WIDE_API wide_status wide_model_with_batch(const wide_model* model, int64_t batch,
                                           wide_model** out);
/* Likewise, with a number of rows for each member, as options.batches. */
WIDE_API wide_status wide_model_with_batches(const wide_model* model, const int64_t* batches,
                                             int64_t num_batches, wide_model** out);
/* The first members alone: the others are neither read nor computed. wide_model_compact brings
 * those that a search goes on with to the front. Operands are of fewer members, as the plan says.
 * Where the other model masks all of these, ensembles of these alone are those of no member: a
 * mean is NaN. */
WIDE_API wide_status wide_model_with_num_members(const wide_model* model, int64_t num_members,
                                                 wide_model** out);
WIDE_API void wide_model_destroy(wide_model* model); /* when its runs are complete */

/* How far each of num_members is from itself run alone, node by node, on random inputs: out[i] is
 * member i's largest difference over the largest value, for ensembles of their inputs. Device
 * parameters must be complete, as for wide_model_create. options.num_members is ignored. */
WIDE_API wide_status wide_model_validate(const wide_context* context, const wide_graph* graph,
                                         const wide_plan_options* options,
                                         const wide_parameters* const* members, int64_t num_members,
                                         uint64_t seed, double* out);

/* Runs `batch` rows on a model, some at a time: operands as the plan's but for that extent.
 * WIDE_UNSUPPORTED where an operand is stacked, for a ragged model, and where dropout drops: every
 * piece would have the same mask. */
WIDE_API wide_status wide_chunked_create(const wide_model* model, int64_t batch,
                                         wide_chunked** out);
WIDE_API wide_status wide_chunked_workspace_bytes(const wide_chunked* chunked, int64_t* out);
WIDE_API wide_status wide_chunked_run(const wide_chunked* chunked, const wide_view* inputs,
                                      int64_t num_inputs, const wide_view* outputs,
                                      int64_t num_outputs, const wide_execution* execution);
WIDE_API void wide_chunked_destroy(wide_chunked* chunked); /* when its runs are complete */

typedef struct wide_replay_options {
  size_t struct_size;
  /* Every run begins with wide_model_advance_dropout, in the same launch: each is another pass of
   * Monte Carlo dropout, the first that of the sequence after the seeded one. */
  int32_t advances_dropout;
} wide_replay_options;

/* A run on fixed operands, captured once: running it is one launch of a CUDA graph, on the CPU the
 * run itself. Operands, workspace and handles must outlive it. Its runs, from any threads and
 * streams, take turns and write the same outputs, which hold the last run's results. options: NULL
 * for none. */
WIDE_API wide_status wide_replay_create(const wide_model* model, const wide_view* inputs,
                                        int64_t num_inputs, const wide_view* outputs,
                                        int64_t num_outputs, const wide_execution* execution,
                                        const wide_replay_options* options, wide_replay** out);
WIDE_API wide_status wide_replay_run(const wide_replay* replay, void* stream);
WIDE_API void wide_replay_destroy(wide_replay* replay); /* when its runs are complete */

#ifdef __cplusplus
}
#endif

#endif
