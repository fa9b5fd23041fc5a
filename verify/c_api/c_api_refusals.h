/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: calls that are wrong, each with the status and the words that it must get.
 */
#ifndef WIDE_VERIFY_C_API_REFUSALS_H
#define WIDE_VERIFY_C_API_REFUSALS_H

#include "verify/c_api/c_api_nulls.h"

static void refuse_contexts(void) {
  wide_context* context = NULL;
  wide_context_options options = {.struct_size = 7};
  REFUSED("wide_context_create: out is null", wide_context_create(NULL, NULL));
  REFUSED("options.struct_size is 7, expected sizeof", wide_context_create(&options, &context));
  options.struct_size = sizeof options;
  options.num_threads = -2;
  REFUSED("num_threads is -2", wide_context_create(&options, &context));
  options.num_threads = 4097;
  REFUSED("num_threads is 4097, expected 0 to 4096", wide_context_create(&options, &context));
  options.num_threads = 0;
  options.device.type = 5;
  REFUSED("options.device is {5, 0}, expected {WIDE_CPU, 0}",
          wide_context_create(&options, &context));
  options.device.type = WIDE_CUDA;
  OK(wide_num_cuda_devices(&options.device.ordinal)); /* the first that there is not */
  FAILS(WIDE_CUDA_ERROR, "cuda: ", wide_context_create(&options, &context));
  options.device.type = WIDE_CPU;
  options.device.ordinal = 0;
  options.allocate = count_allocate;
  REFUSED("one of allocate and deallocate", wide_context_create(&options, &context));
  CHECK(context == NULL);
  REFUSED("out is null", wide_num_cuda_devices(NULL));
  wide_stream* stream = NULL;
  wide_handles* handles = NULL;
  REFUSED("context is null", wide_stream_create(NULL, &stream));
  REFUSED("context is null", wide_synchronize(NULL, NULL));
  REFUSED("context is null", wide_handles_create(NULL, &handles));
  REFUSED("cublas and cudnn are null", wide_handles_borrow(NULL, NULL, &handles));
}

/* Strides that a view has no words for: those of a torch.expand() along every axis would say that
 * there is memory for all elements. */
static void refuse_dlpack_strides(void) {
  float one[1] = {3}, all[64 * 64];
  int64_t extents[2] = {64, 64}, strides[2] = {0, 0};
  DLManagedTensor repeated = {
      .dl_tensor = {.data = one, .ndim = 2, .shape = extents, .strides = strides}};
  repeated.dl_tensor.device.device_type = kDLCPU;
  repeated.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
  wide_view view = {.struct_size = sizeof view};
  FAILS(WIDE_UNSUPPORTED, "the view is [64, 64] with strides [0, 0], one element repeated",
        wide_view_from_dlpack(&repeated, &view));
  CHECK(view.rank == 0 && view.data == NULL);
  strides[0] = -64, strides[1] = 1;
  FAILS(WIDE_UNSUPPORTED, "dlpack: strides [-64, 1], expected none below 0",
        wide_view_from_dlpack(&repeated, &view));
  strides[0] = 0; /* rows are one another: a copy wants each element at its own place */
  repeated.dl_tensor.data = all;
  OK(wide_view_from_dlpack(&repeated, &view));
  CHECK(view.strides[0] == 0 && view.strides[1] == 1);
  const wide_view dense = host_view(all, 2, extents);
  REFUSED("copy: strides [0, 1] and [64, 1] of [64, 64]", wide_copy(&view, &dense, NULL));
  extents[0] = extents[1] = 1, strides[1] = 0; /* one element is where it is */
  OK(wide_view_from_dlpack(&repeated, &view));
  CHECK(view.shape[0] == 1 && view.data == all);
}

static void refuse_tensors(const Engine* e) {
  wide_tensor* tensor = NULL;
  const int64_t shape[2] = {2, 3}, negative[1] = {-4};
  REFUSED("dtype is 8, expected one of", wide_tensor_create(e->context, 8, shape, 2, &tensor));
  REFUSED("rank is 7, expected 0 to 6", wide_tensor_create(e->context, 0, shape, 7, &tensor));
  REFUSED("shape is null, expected 2", wide_tensor_create(e->context, 0, NULL, 2, &tensor));
  REFUSED("-4", wide_tensor_create(e->context, 0, negative, 1, &tensor));
  wide_view view = {.struct_size = sizeof view - 1};
  REFUSED("out.struct_size is", wide_tensor_view(e->x, &view));
  float data[6];
  const wide_view a = host_view(data, 2, shape);
  wide_view b = host_view(data, 1, shape);
  REFUSED("source: view is null", wide_copy(NULL, &a, e->stream));
  REFUSED("source is fp32 [2, 3], destination fp32 [2]", wide_copy(&a, &b, e->stream));
  b.device.type = 3;
  REFUSED("destination: device.type is 3", wide_copy(&a, &b, e->stream));
  REFUSED("managed is null", wide_view_from_dlpack(NULL, &view));
  REFUSED("tensor is null", wide_tensor_to_dlpack(NULL, &(DLManagedTensor*){NULL}));
  DLManagedTensor foreign = {.dl_tensor = {.ndim = 1, .shape = (int64_t[]){2}}};
  foreign.dl_tensor.device.device_type = kDLVulkan;
  foreign.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
  view.struct_size = sizeof view;
  FAILS(WIDE_UNSUPPORTED, "dlpack: device type", wide_view_from_dlpack(&foreign, &view));
  refuse_dlpack_strides();
}

/* One builder for each wrong call, since a builder's first error stays. */
#define REFUSED_BY_BUILDER(words, call)                         \
  do {                                                          \
    wide_builder* b = make_builder();                           \
    wide_value x = 0, y = 0;                                    \
    const int64_t two_axes[2] = {WIDE_BATCH, kIn};              \
    OK(wide_builder_input(b, "x", WIDE_FP32, two_axes, 2, &x)); \
    REFUSED(words, call);                                       \
    CHECK(y == 0);                                              \
    wide_builder_destroy(b);                                    \
  } while (0)

static void refuse_quantization(void) {
  wide_graph *mlp = NULL, *graph = NULL;
  OK(wide_graph_create_named("mlp", NULL, &mlp));
  const char* layers[1] = {"fc9"};
  wide_weight_quantization how = {.struct_size = sizeof how, .format = "int4"};
  REFUSED("graph is null", wide_graph_quantize(NULL, &how, &graph));
  REFUSED("how is null", wide_graph_quantize(mlp, NULL, &graph));
  REFUSED("out is null", wide_graph_quantize(mlp, &how, NULL));
  how.num_layers = 1;
  REFUSED("how.layers is null, expected 1 element", wide_graph_quantize(mlp, &how, &graph));
  how.layers = layers;
  REFUSED("no linear layer \"fc9\"", wide_graph_quantize(mlp, &how, &graph));
  how.num_layers = 0, how.group_size = 32;
  REFUSED("group_size is 32, expected 64 or 128", wide_graph_quantize(mlp, &how, &graph));
  how.group_size = 0, how.format = "packed";
  REFUSED("how.format is \"packed\", expected fp8_e4m3", wide_graph_quantize(mlp, &how, &graph));
  how.format = NULL;
  REFUSED("how.format is null", wide_graph_quantize(mlp, &how, &graph));
  how.struct_size = 0;
  REFUSED("how.struct_size is 0", wide_graph_quantize(mlp, &how, &graph));
  CHECK(graph == NULL);
  wide_graph_destroy(mlp);
}

static void refuse_graphs(void) {
  wide_graph* graph = NULL;
  wide_builder* builder = NULL;
  REFUSED("name is null", wide_graph_create_named(NULL, NULL, &graph));
  REFUSED("did you mean", wide_graph_create_named("resnet81", NULL, &graph));
  REFUSED("builder is null", wide_graph_create(NULL, &graph));
  refuse_quantization();
  REFUSED("dtype is -1", wide_builder_create("g", -1, &builder));
  REFUSED("dtype is int32, expected fp32, fp16 or bf16",
          wide_builder_create("g", WIDE_INT32, &builder));
  const int64_t no_batch[2] = {4, 4};
  const wide_linear_layer tanh_layer = {.struct_size = sizeof tanh_layer, .activation = "tahn"};
  const wide_linear_layer unsized = {.activation = "relu"};
  const wide_conv_layer three_groups = {.struct_size = sizeof three_groups, .groups = 4};
  REFUSED_BY_BUILDER("has no output", wide_graph_create(b, &graph));
  REFUSED_BY_BUILDER("out is null", wide_builder_linear(b, "fc", x, 4, NULL, NULL));
  REFUSED_BY_BUILDER("name is null", wide_builder_linear(b, NULL, x, 4, NULL, &y));
  REFUSED_BY_BUILDER("options.activation is \"tahn\", expected one of none, relu",
                     wide_builder_linear(b, "fc", x, 4, &tanh_layer, &y));
  REFUSED_BY_BUILDER("options.struct_size is 0", wide_builder_linear(b, "fc", x, 4, &unsized, &y));
  REFUSED_BY_BUILDER("fc: value is 77", wide_builder_linear(b, "fc", 77, 4, NULL, &y));
  REFUSED_BY_BUILDER("fc: value is 0", wide_builder_linear(b, "fc", 0, 4, NULL, &y));
  REFUSED_BY_BUILDER("fc", wide_builder_linear(b, "fc", x, -4, NULL, &y));
  REFUSED_BY_BUILDER("input z is [4, 4]", wide_builder_input(b, "z", WIDE_FP32, no_batch, 2, &y));
  REFUSED_BY_BUILDER("x", wide_builder_input(b, "x", WIDE_FP32, two_axes, 2, &y));
  REFUSED_BY_BUILDER("groups is 4, expected a divisor of in_channels = 6",
                     wide_builder_conv(b, "conv", x, 4, &three_groups, &y));
  const wide_conv_transpose_layer none = {.struct_size = sizeof none, .padding_width = 9};
  REFUSED_BY_BUILDER("expected 3 to 5 axes", wide_builder_conv_transpose(b, "up", x, 4, &none, &y));
  REFUSED_BY_BUILDER("expected 3 to 5 axes", wide_builder_depth_to_space(b, "shuffle", x, 2, &y));
  const wide_interpolate_layer corners = {.struct_size = sizeof corners, .coordinates = "corners"};
  REFUSED_BY_BUILDER("options.coordinates is \"corners\"",
                     wide_builder_interpolate(b, "between", x, &corners, &y));
  REFUSED_BY_BUILDER("expected 3 to 4 axes", wide_builder_interpolate(b, "between", x, NULL, &y));
  REFUSED_BY_BUILDER("product: right is fp32 [B, 6], expected a batch and two or more axes",
                     wide_builder_matmul(b, "product", x, x, NULL, &y));
  const wide_conv_layer nowhere = {.struct_size = sizeof nowhere, .x_channels = 7};
  REFUSED_BY_BUILDER("options.x_channels is 7, expected WIDE_CHANNELS_AUTO",
                     wide_builder_conv(b, "conv", x, 4, &nowhere, &y));
  REFUSED_BY_BUILDER("function is \"rleu\"", wide_builder_pointwise(b, "act", x, "rleu", NULL, &y));
  REFUSED_BY_BUILDER("turn: order is null", wide_builder_transpose(b, "turn", x, NULL, 2, &y));
  REFUSED_BY_BUILDER("ensemble is null", wide_builder_ensemble(b, "mean", x, NULL, &y));
  REFUSED_BY_BUILDER("cat: value is 0, expected one of",
                     wide_builder_concat(b, "cat", (const wide_value[]){x, 0}, 2, 1, &y));
  REFUSED_BY_BUILDER("parts is null", wide_builder_concat(b, "cat", NULL, 2, 1, &y));
  REFUSED_BY_BUILDER("an input or a parameter", wide_builder_output(b, "y", x));
  const int64_t three_axes[3] = {WIDE_BATCH, 2, kIn};
  const wide_flash_attention_layer without = {.struct_size = sizeof without,
                                              .aligns_to_lengths = 1};
  wide_value core = 0;
  REFUSED_BY_BUILDER("aligns_to_lengths is true without key_lengths, expected lengths",
                     (wide_builder_input(b, "q", WIDE_FP32, three_axes, 3, &core),
                      wide_builder_flash_attention(b, "core", core, core, core, 1, &without, &y)));
  CHECK(graph == NULL && builder == NULL);

  /* The first error stays, and the last call tells it. */
  wide_builder* failed = make_builder();
  wide_value x = 0;
  const int64_t shape[2] = {WIDE_BATCH, kIn};
  OK(wide_builder_input(failed, "x", WIDE_FP32, shape, 2, &x));
  (void)wide_builder_pointwise(failed, "act", x, "swosh", NULL, &x);
  (void)wide_builder_linear(failed, "fc", x, 4, NULL, &x);
  REFUSED("wide_graph_create: wide_builder_pointwise: act: function is \"swosh\"",
          wide_graph_create(failed, &graph));
  wide_builder_destroy(failed);
}

static void refuse_layers(void) {
  const wide_attention_layer unknown_key = {.struct_size = sizeof unknown_key, .key = -3};
  const wide_pool_layer average = {.struct_size = sizeof average, .kernel_width = 99};
  REFUSED_BY_BUILDER("options.struct_size is 0",
                     wide_builder_pointwise(b, "act", x, "relu", &(wide_pointwise_layer){0}, &y));
  REFUSED_BY_BUILDER("function is \"minus\", expected one of add, subtract",
                     wide_builder_binary(b, "sub", x, x, "minus", &y));
  REFUSED_BY_BUILDER("function is null", wide_builder_binary(b, "sub", x, x, NULL, &y));
  REFUSED_BY_BUILDER("sub: value is 77, expected one of the builder's 1 values",
                     wide_builder_binary(b, "sub", x, 77, "add", &y));
  REFUSED_BY_BUILDER("att: value is -3, expected one of",
                     wide_builder_attention(b, "att", x, 2, &unknown_key, &y));
  REFUSED_BY_BUILDER("pool", wide_builder_average_pool(b, "pool", x, &average, &y));
  REFUSED_BY_BUILDER("pool", wide_builder_adaptive_average_pool(b, "pool", x, 1, 1, &y));
}

static void refuse_parameters(const Engine* e) {
  wide_parameters* parameters_of_one = make_parameters(0);
  wide_view view = {.struct_size = sizeof view, .rank = 9};
  REFUSED("out is null", wide_parameters_create(NULL));
  REFUSED("view: rank is 9", wide_parameters_set(parameters_of_one, "fc1.bias", &view));
  view = host_view(NULL, 1, kShapes[1]);
  REFUSED("view: data is null, expected [8] elements",
          wide_parameters_set(parameters_of_one, "fc1.bias", &view));
  const int64_t none[1] = {0};
  view = host_view(NULL, 1, none);
  OK(wide_parameters_set(parameters_of_one, "fc1.none", &view));
  wide_parameters_destroy(parameters_of_one);
  parameters_of_one = make_parameters(0);
  REFUSED("parameters is null", wide_parameters_load(NULL, "x.safetensors"));
  FAILS(WIDE_IO_ERROR, "no-such-file", wide_parameters_load(parameters_of_one, "no-such-file"));
  REFUSED("path is null", wide_parameters_save(parameters_of_one, NULL));
  FAILS(WIDE_IO_ERROR, "no-such-folder",
        wide_parameters_save(parameters_of_one, "no-such-folder/x.safetensors"));
  REFUSED("there is no parameter \"fc1.wieght\" among 4, did you mean fc1.weight",
          wide_parameters_get(parameters_of_one, "fc1.wieght", &view));
  CHECK(wide_parameters_name(NULL, 0) == NULL);

  /* Members that do not fit their plan. */
  wide_model* model = NULL;
  const wide_parameters* members[kMembers] = {e->members[0], parameters_of_one, NULL};
  REFUSED("members[2] is null, expected one",
          wide_model_create(e->context, e->plan, members, kMembers, &model));
  REFUSED("2 members, expected 3", wide_model_create(e->context, e->plan, members, 2, &model));
  members[2] = e->members[2];
  const int64_t short_bias[1] = {kHidden - 1};
  view = host_view(parameters[0][1], 1, short_bias);
  OK(wide_parameters_set(parameters_of_one, "fc1.bias", &view));
  REFUSED("4 members, expected 3", wide_model_create(e->context, e->plan, members, 4, &model));
  REFUSED("member 1: fc1.bias", wide_model_create(e->context, e->plan, members, kMembers, &model));
  CHECK(model == NULL);
  REFUSED("fc1.bias", wide_model_replace(e->model, 0, parameters_of_one, e->stream));
  view = host_view(parameters[0][1], 1, kShapes[1]);
  OK(wide_parameters_set(parameters_of_one, "fc1.bias", &view));
  OK(wide_parameters_set(parameters_of_one, "fc3.bias", &view));
  REFUSED("fc3.bias", wide_model_replace(e->model, 0, parameters_of_one, e->stream));
  wide_parameters_destroy(parameters_of_one);
}

static void refuse_strategies(const Engine* e) {
  wide_plan* plan = NULL;
  wide_plan_options options = plan_options(e);
  const wide_strategy unknown = {sizeof unknown, "linear", "fastest"};
  options.strategies = &unknown;
  options.num_strategies = 1;
  REFUSED("fastest", wide_plan_create(e->context, e->graph, &options, &plan));
  const wide_strategy half[2] = {{sizeof *half, "conv", "sequential"},
                                 {sizeof *half, "linear", NULL}};
  options.strategies = half;
  options.num_strategies = 2;
  REFUSED("options.strategies[1].strategy is null, expected one",
          wide_plan_create(e->context, e->graph, &options, &plan));
  const wide_strategy twice[2] = {{sizeof *twice, "linear", "sequential"},
                                  {sizeof *twice, "linear", "simt"}};
  options.strategies = twice;
  options.num_strategies = 2;
  REFUSED("options.strategies names \"linear\" twice, expected each name once",
          wide_plan_create(e->context, e->graph, &options, &plan));

  /* Structs of a header that is still to come. */
  const struct {
    wide_strategy known;
    int64_t later;
  } strategies[2] = {{{sizeof *strategies, "conv", "sequential"}, 0},
                     {{sizeof *strategies, "linear", "fastest"}, 0}};
  options.strategies = &strategies[0].known;
  options.num_strategies = 2;
  REFUSED("fastest", wide_plan_create(e->context, e->graph, &options, &plan));
  CHECK(plan == NULL);
}

static void refuse_plans(const Engine* e) {
  wide_plan* plan = NULL;
  wide_plan_options options = plan_options(e);
  REFUSED("graph is null", wide_plan_create(e->context, NULL, &options, &plan));
  options.num_members = -1;
  REFUSED("-1", wide_plan_create(e->context, e->graph, &options, &plan));
  options = plan_options(e);
  options.preset = "fats";
  REFUSED("fats", wide_plan_create(e->context, e->graph, &options, &plan));
  options.preset = NULL;
  options.id_dtype = 77;
  REFUSED("options.id_dtype is 77, expected one of WIDE_FP32 = 0 to WIDE_UINT8 = 7",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.id_dtype = 0;
  options.num_shared_parameters = 1;
  REFUSED("options.shared_parameters is null",
          wide_plan_create(e->context, e->graph, &options, &plan));
  const char* const nameless[2] = {"fc1.bias", NULL};
  options.shared_parameters = nameless;
  options.num_shared_parameters = 2;
  REFUSED("options.shared_parameters[1] is null, expected one",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.num_shared_parameters = 0;
  options.channels = 3;
  REFUSED("options.channels is 3", wide_plan_create(e->context, e->graph, &options, &plan));
  options.channels = WIDE_CHANNELS_AUTO;
  struct {
    wide_plan_options known;
    int64_t later;
  } newer = {plan_options(e), 1};
  newer.known.struct_size = sizeof newer;
  FAILS(WIDE_UNSUPPORTED, "expected zeros after",
        wide_plan_create(e->context, e->graph, &newer.known, &plan));
  CHECK(plan == NULL);
  newer.later = 0;
  OK(wide_plan_create(e->context, e->graph, &newer.known, &plan));
  wide_plan_destroy(plan);
  plan = NULL;
  wide_operand operand = {.struct_size = sizeof operand};
  wide_step step = {.struct_size = sizeof step};
  wide_plan_info info = {.struct_size = 0};
  REFUSED("input is 1, expected one in [0, 1)", wide_plan_input(e->plan, 1, &operand));
  REFUSED("output is -1", wide_plan_output(e->plan, -1, &operand));
  REFUSED("step is 2", wide_plan_step(e->plan, 2, &step));
  REFUSED("out.struct_size is 0", wide_plan_query(e->plan, &info));
  REFUSED("out is null", wide_largest_num_members_that_fits(e->context, e->graph, NULL, 1, NULL));
}

/* Members' own batches that no plan can have, and where they have no meaning. */
static void refuse_batches(const Engine* e) {
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  int64_t most = -1;
  const int64_t right[kMembers] = {2, 0, 1}, negative[kMembers] = {2, -4, 1}, none[kMembers] = {0};
  wide_plan_options options = plan_options(e);
  options.num_batches = kMembers;
  REFUSED("options.batches is null, expected 3 elements",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.batches = right;
  options.num_batches = -1;
  REFUSED("the number of options.batches is -1",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.num_batches = 0;
  REFUSED("options.batches has 0 entries, expected one per member",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.num_batches = 2;
  REFUSED("batches has 2 entries, expected one per member = 3",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.num_batches = kMembers;
  REFUSED("options.batches has 3 entries, expected none",
          wide_largest_num_members_that_fits(e->context, e->graph, &options, 1 << 20, &most));
  REFUSED("options.batches has 3 entries, expected none",
          wide_largest_batch_that_fits(e->context, e->graph, &options, 1 << 20, 9, &most));
  options.batches = negative;
  REFUSED("batches of member 1 is -4", wide_plan_create(e->context, e->graph, &options, &plan));
  options.batches = none;
  REFUSED("batches are 0 for every member",
          wide_plan_create(e->context, e->graph, &options, &plan));
  REFUSED("model is null", wide_model_with_batches(NULL, right, kMembers, &model));
  REFUSED("batches is null, expected 3 elements",
          wide_model_with_batches(e->model, NULL, kMembers, &model));
  REFUSED("the number of batches is -2", wide_model_with_batches(e->model, right, -2, &model));
  REFUSED("batches is empty", wide_model_with_batches(e->model, NULL, 0, &model));
  REFUSED("batches has 2 entries", wide_model_with_batches(e->model, right, 2, &model));
  REFUSED("batches has 0 entries", wide_model_with_batches(e->model, right, 0, &model));
  REFUSED("batches of member 1 is -4",
          wide_model_with_batches(e->model, negative, kMembers, &model));
  REFUSED("batches are 0", wide_model_with_batches(e->model, none, kMembers, &model));
  REFUSED("out is null", wide_model_with_batches(e->model, right, kMembers, NULL));
  CHECK(plan == NULL && model == NULL && most == -1);
}

static void refuse_runs(const Engine* e) {
  const wide_view *x = &e->x_view, *y = &e->y_view;
  wide_execution execution = e->execution;
  REFUSED("model is null", wide_model_run(NULL, x, 1, y, 1, &execution));
  REFUSED("0 inputs, expected 1", wide_model_run(e->model, NULL, 0, y, 1, &execution));
  REFUSED("inputs is null, expected 1", wide_model_run(e->model, NULL, 1, y, 1, &execution));
  REFUSED("2 outputs, expected 1",
          wide_model_run(e->model, x, 1, (const wide_view[]){*y, *y}, 2, &execution));
  REFUSED("execution is null", wide_model_run(e->model, x, 1, y, 1, NULL));
  wide_view wrong = *x;
  wrong.device.type = WIDE_CPU, wrong.device.ordinal = 1;
  REFUSED("device is the CPU with ordinal 1, expected 0",
          wide_model_run(e->model, &wrong, 1, y, 1, &execution));
  wrong = *x;
  wrong.shape[1] -= 1;
  REFUSED("input x is fp32 [2, 17], expected fp32 [2, 18]",
          wide_model_run(e->model, &wrong, 1, y, 1, &execution));
  wrong = *x;
  wrong.dtype = WIDE_BF16;
  REFUSED("input x is bf16", wide_model_run(e->model, &wrong, 1, y, 1, &execution));
  wrong = *x;
  wrong.struct_size = 8;
  REFUSED("inputs[0]: view.struct_size is 8",
          wide_model_run(e->model, &wrong, 1, y, 1, &execution));
  wrong = *x;
  wrong.data = NULL;
  REFUSED("null pointer", wide_model_run(e->model, &wrong, 1, y, 1, &execution));
  wrong = *x;
  wrong.device.type = e->device.type == WIDE_CPU ? WIDE_CUDA : WIDE_CPU;
  REFUSED("expected the plan's device", wide_model_run(e->model, &wrong, 1, y, 1, &execution));
  execution.workspace_bytes = 3;
  REFUSED("workspace is 3 bytes", wide_model_run(e->model, x, 1, y, 1, &execution));
  execution = e->execution;
  execution.workspace = (char*)execution.workspace + 1;
  REFUSED("workspace is not aligned", wide_model_run(e->model, x, 1, y, 1, &execution));
  execution = e->execution;
  execution.stream = NULL;
  if (e->device.type == WIDE_CUDA)
    REFUSED("stream is null", wide_model_run(e->model, x, 1, y, 1, &execution));

  wide_replay* replay = NULL;
  wide_parameters* got = NULL;
  int32_t is_masked = -1;
  REFUSED("0 inputs", wide_replay_create(e->model, NULL, 0, y, 1, &e->execution, NULL, &replay));
  const wide_replay_options advances = {.struct_size = sizeof advances, .advances_dropout = 1};
  REFUSED("advances_dropout: nothing is dropped",
          wide_replay_create(e->model, &e->x_view, 1, y, 1, &e->execution, &advances, &replay));
  REFUSED("replay is null", wide_replay_run(NULL, e->stream));
  REFUSED("member is 3, expected one in [0, 3)",
          wide_model_replace(e->model, 3, e->members[0], e->stream));
  REFUSED("parameters is null", wide_model_replace(e->model, 0, NULL, e->stream));
  REFUSED("member is -1", wide_model_clone(e->model, 0, -1, e->stream));
  REFUSED("member is 9", wide_model_get(e->model, 9, e->stream, &got));
  REFUSED("member is 4", wide_model_mask(e->model, 4, e->stream));
  REFUSED("out is null", wide_model_is_masked(e->model, 0, NULL));
  const uint64_t seeds[kMembers] = {1, 2, 3};
  REFUSED("nothing is dropped", wide_model_seed_dropout(e->model, 1, 0, e->stream));
  REFUSED("nothing is dropped", wide_model_seed_members(e->model, seeds, kMembers, 0, e->stream));
  REFUSED("nothing is dropped", wide_model_advance_dropout(e->model, e->stream));
  REFUSED("seeds is null", wide_model_seed_members(e->model, NULL, kMembers, 0, e->stream));
  CHECK(replay == NULL && got == NULL && is_masked == -1);
}

static void test_refusals(wide_device device) {
  Engine e = make_engine(device);
  const int before = num_checks;
  refuse_contexts();
  refuse_tensors(&e);
  refuse_graphs();
  refuse_layers();
  refuse_parameters(&e);
  refuse_strategies(&e);
  refuse_plans(&e);
  refuse_batches(&e);
  refuse_runs(&e);
  refuse_nulls(&e);
  refuse_nulls_of_models(&e);
  CHECK(num_checks - before > 145);
  float y[kBatchRows * kMembers * kOut]; /* nothing of all that changed the model */
  OK(run(&e));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 1, 2}));
  destroy_engine(&e);
}

#endif
