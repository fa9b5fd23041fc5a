/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide.h from C11, as an engine in C has it: three members of a small network against a plain loop,
 * what becomes of members, the order of destroying, and what is refused, each by status and
 * message. "c_api_test cuda" does the same on CUDA device 0.
 */
#include "wide/wide_builder.h"

#include <dlpack/dlpack.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/c_api/c_case.h"

static const char* const kNames[kNumParameters] = {"fc1.weight", "fc1.bias", "fc2.weight",
                                                   "fc2.bias"};
static wide_parameters* make_parameters(int member) {
  wide_parameters* made = NULL;
  OK(wide_parameters_create(&made));
  for (int i = 0; i < kNumParameters; ++i) {
    const wide_view view = host_view(parameters[member][i], i % 2 == 0 ? 2 : 1, kShapes[i]);
    OK(wide_parameters_set(made, kNames[i], &view));
  }
  return made;
}

static wide_builder* make_builder(void) {
  wide_builder* builder = NULL;
  OK(wide_builder_create("mlp", WIDE_FP32, &builder));
  return builder;
}

/* x -> fc1 -> relu -> fc2 -> y */
static wide_graph* make_graph(void) {
  wide_builder* builder = make_builder();
  wide_graph* graph = NULL;
  wide_value x = 0;
  const int64_t shape[2] = {WIDE_BATCH, kIn};
  const wide_linear_layer relu = {.struct_size = sizeof relu, .activation = "relu"};
  OK(wide_builder_input(builder, "x", WIDE_FP32, shape, 2, &x));
  OK(wide_builder_linear(builder, "fc1", x, kHidden, &relu, &x));
  OK(wide_builder_linear(builder, "fc2", x, kOut, NULL, &x));
  OK(wide_builder_output(builder, "y", x));
  OK(wide_graph_create(builder, &graph));
  wide_builder_destroy(builder);
  return graph;
}

static Engine make_engine(wide_device device) {
  wide_parameters* members[kMembers];
  for (int m = 0; m < kMembers; ++m) members[m] = make_parameters(m);
  return start_engine(device, make_graph(), members);
}

static void test_numbers(wide_device device) {
  Engine e = make_engine(device);
  float y[kBatchRows * kMembers * kOut];
  OK(run(&e));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 1, 2}));
  CHECK(!is_right(y, (const int[]){0, 2, 1})); /* that is_right() tells members apart */

  /* Other members, and a captured run that goes on with them. */
  wide_replay* replay = NULL;
  OK(wide_replay_create(e.model, &e.x_view, 1, &e.y_view, 1, &e.execution, NULL, &replay));
  wide_parameters* other = make_parameters(3);
  OK(wide_model_replace(e.model, 1, other, e.stream));
  OK(wide_model_clone(e.model, 1, 2, e.stream));
  OK(wide_replay_run(replay, e.stream));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 3, 3}));

  /* A member read back, through a file, into another place. */
  const char* path = scratch("safetensors", device);
  wide_parameters *got = NULL, *loaded = NULL;
  OK(wide_model_get(e.model, 0, e.stream, &got));
  OK(wide_parameters_save(got, path));
  OK(wide_parameters_create(&loaded));
  OK(wide_parameters_load(loaded, path));
  CHECK(strcmp(wide_parameters_name(loaded, 0), "fc1.bias") == 0);
  CHECK(wide_parameters_name(loaded, kNumParameters) == NULL);
  wide_view view = {.struct_size = sizeof view};
  OK(wide_parameters_get(loaded, "fc1.weight", &view));
  CHECK(view.rank == 2 && view.shape[0] == kHidden && view.shape[1] == kIn);
  CHECK(memcmp(view.data, parameters[0][0], kHidden * kIn * sizeof(float)) == 0);
  OK(wide_model_replace(e.model, 2, loaded, e.stream));
  OK(wide_replay_run(replay, e.stream));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 3, 0}));
  remove(path);

  wide_parameters_destroy(loaded);
  wide_parameters_destroy(got);
  wide_parameters_destroy(other);
  wide_replay_destroy(replay);
  destroy_engine(&e);
}

/* A member becomes another one parameter by parameter, and is read back so, from the device. */
static void test_single_parameters(wide_device device) {
  Engine e = make_engine(device);
  float y[kBatchRows * kMembers * kOut], got[kHidden * kHidden];
  const int64_t any = kHidden * kHidden;
  wide_tensor* tensor = NULL;
  OK(wide_tensor_create(e.context, WIDE_FP32, &any, 1, &tensor));
  wide_view on_device = {.struct_size = sizeof on_device};
  OK(wide_tensor_view(tensor, &on_device));
  for (int p = 0; p < kNumParameters; ++p) {
    const int32_t rank = kShapes[p][1] == 0 ? 1 : 2;
    const int64_t count = kShapes[p][0] * (rank == 1 ? 1 : kShapes[p][1]);
    const wide_view given = host_view(parameters[3][p], rank, kShapes[p]);
    OK(wide_model_set_parameter(e.model, 0, kNames[p], &given, e.stream));
    wide_view between = host_view(on_device.data, rank, kShapes[p]);
    between.device = on_device.device;
    OK(wide_model_get_parameter(e.model, 0, kNames[p], &between, e.stream));
    OK(wide_model_set_parameter(e.model, 0, kNames[p], &between, e.stream));
    const wide_view read = host_view(got, rank, kShapes[p]);
    OK(wide_model_get_parameter(e.model, 0, kNames[p], &read, e.stream));
    CHECK(memcmp(got, parameters[3][p], (size_t)count * sizeof(float)) == 0);
  }
  OK(run(&e));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){3, 1, 2}));

  const wide_view bias = host_view(got, 1, kShapes[1]);
  REFUSED("name is null", wide_model_set_parameter(e.model, 0, NULL, &bias, e.stream));
  REFUSED("view is null", wide_model_set_parameter(e.model, 0, "fc1.bias", NULL, e.stream));
  REFUSED("there is no parameter fc9 in mlp",
          wide_model_set_parameter(e.model, 0, "fc9", &bias, e.stream));
  REFUSED("model is null", wide_model_set_parameter(NULL, 0, "fc1.bias", &bias, e.stream));
  REFUSED("destination of fc2.bias is fp32",
          wide_model_get_parameter(e.model, 0, "fc2.bias", &bias, e.stream));
  REFUSED("member is 3", wide_model_get_parameter(e.model, 3, "fc1.bias", &bias, e.stream));
  REFUSED("model is null", wide_model_get_parameter(NULL, 0, "fc1.bias", &bias, e.stream));
  REFUSED("destination: view", wide_model_get_parameter(e.model, 0, "fc1.bias", NULL, e.stream));
  wide_tensor_destroy(tensor);
  destroy_engine(&e);
}

static void test_queries(wide_device device) {
  Engine e = make_engine(device);
  wide_context_info context = {.struct_size = sizeof context};
  OK(wide_context_query(e.context, &context));
  CHECK(strlen(context.name) > 0 && context.device.type == device.type);
  CHECK(context.num_threads == (device.type == WIDE_CPU ? 2 : 0)); /* as start_engine() asks for */
  CHECK((context.num_multiprocessors > 0) == (device.type == WIDE_CUDA));
  CHECK(context.memory_bytes > 1 << 20);
  CHECK(context.device.ordinal == 0);
  int32_t num_devices = -1;
  OK(wide_num_cuda_devices(&num_devices));
  CHECK(num_devices >= (device.type == WIDE_CUDA ? 1 : 0));
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_plan_query(e.plan, &info));
  CHECK(info.num_members == kMembers && info.batch == kBatchRows);
  CHECK(info.num_inputs == 1 && info.num_outputs == 1 && info.num_steps == 2);
  CHECK(info.input_bytes == (int64_t)sizeof inputs);
  CHECK(info.weights_bytes > 0 && info.total_bytes > info.weights_bytes);
  CHECK(info.host_bytes == 0);
  CHECK(info.calls_cudnn == 0 && (info.calls_cublas == 0 || device.type == WIDE_CUDA));
  wide_operand x = {.struct_size = sizeof x};
  OK(wide_plan_input(e.plan, 0, &x));
  CHECK(strcmp(x.name, "x") == 0 && x.member_axis == 1 && !x.is_stacked && x.rank == 2);
  CHECK(x.shape[0] == kBatchRows && x.shape[1] == kMembers * kIn && x.dtype == WIDE_FP32);
  wide_step step = {.struct_size = sizeof step};
  OK(wide_plan_step(e.plan, 1, &step));
  CHECK(strcmp(step.node, "fc2") == 0 && strcmp(step.primitive, "linear") == 0);
  CHECK(strlen(step.strategy) > 0 && step.num_members == kMembers);
  CHECK(strstr(wide_plan_explain(e.plan), "fc1") != NULL);
  const wide_plan_options options = plan_options(&e);
  int64_t most = -1;
  OK(wide_largest_num_members_that_fits(e.context, e.graph, &options, info.total_bytes, &most));
  CHECK(most >= kMembers && most < 2 * kMembers);
  OK(wide_largest_num_members_that_fits(e.context, e.graph, &options, 1, &most));
  CHECK(most == 0);
  CHECK(wide_api_version() == WIDE_API_VERSION && strlen(wide_version()) >= 5);
  destroy_engine(&e);
}

static void test_masks(wide_device device) {
  Engine e = make_engine(device);
  int32_t is_masked = 0;
  OK(wide_model_mask(e.model, 1, e.stream));
  OK(wide_model_is_masked(e.model, 1, &is_masked));
  CHECK(is_masked == 1);
  OK(wide_model_mask(e.model, 2, e.stream));
  REFUSED("would leave none", wide_model_mask(e.model, 0, e.stream));
  OK(wide_model_unmask(e.model, 1, e.stream));
  OK(wide_model_is_masked(e.model, 1, &is_masked));
  CHECK(is_masked == 0);
  destroy_engine(&e);
}

/* Handles in an order that an engine gets wrong: each keeps alive what it needs. */
static void test_lifetimes(wide_device device) {
  Engine e = make_engine(device);
  wide_replay* replay = NULL;
  OK(wide_replay_create(e.model, &e.x_view, 1, &e.y_view, 1, &e.execution, NULL, &replay));
  wide_context_destroy(e.context);
  wide_graph_destroy(e.graph);
  for (int m = 0; m < kMembers; ++m) wide_parameters_destroy(e.members[m]);
  wide_plan_destroy(e.plan);
  OK(run(&e));
  wide_model_destroy(e.model);
  OK(wide_replay_run(replay, e.stream));
  DLManagedTensor* managed = NULL;
  OK(wide_tensor_to_dlpack(e.y, &managed));
  wide_context* context = NULL;
  const wide_context_options options = {.struct_size = sizeof options, .device = device};
  OK(wide_context_create(&options, &context));
  e.context = context;
  float y[kBatchRows * kMembers * kOut];
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 1, 2}));
  wide_replay_destroy(replay);

  wide_tensor_destroy(e.y);
  wide_view view = {.struct_size = sizeof view};
  OK(wide_view_from_dlpack(managed, &view));
  CHECK(view.data == e.y_view.data && view.rank == 2 && view.shape[1] == kMembers * kOut);
  CHECK(managed->dl_tensor.dtype.code == kDLFloat && managed->dl_tensor.dtype.bits == 32);
  managed->deleter(managed);
  wide_tensor_destroy(e.workspace);
  wide_tensor_destroy(e.x);
  wide_handles_destroy(e.handles);
  wide_stream_destroy(e.own_stream);
  wide_context_destroy(context);

  wide_context_destroy(NULL), wide_stream_destroy(NULL), wide_handles_destroy(NULL);
  wide_tensor_destroy(NULL), wide_builder_destroy(NULL), wide_graph_destroy(NULL);
  wide_parameters_destroy(NULL), wide_plan_destroy(NULL), wide_model_destroy(NULL);
  wide_replay_destroy(NULL);
}

static int64_t live_bytes;
static void* count_allocate(void* user, int64_t bytes) {
  if (*(int64_t*)user < bytes) return NULL;
  live_bytes += bytes;
  return aligned_alloc(256, (size_t)((bytes + 255) / 256 * 256));
}
static void count_deallocate(void* user, void* data, int64_t bytes) {
  (void)user;
  live_bytes -= bytes;
  free(data);
}

static void test_allocator(void) {
  int64_t limit = 4096;
  const wide_context_options options = {.struct_size = sizeof options,
                                        .user = &limit,
                                        .allocate = count_allocate,
                                        .deallocate = count_deallocate};
  wide_context* context = NULL;
  wide_tensor* tensor = NULL;
  const int64_t shape[1] = {1000}, large[1] = {2000};
  OK(wide_context_create(&options, &context));
  OK(wide_tensor_create(context, WIDE_FP32, shape, 1, &tensor));
  CHECK(live_bytes == 4000);
  wide_tensor* untouched = tensor;
  FAILS(WIDE_OUT_OF_MEMORY, "8000 bytes",
        wide_tensor_create(context, WIDE_FP32, large, 1, &untouched));
  CHECK(untouched == tensor);
  wide_context_destroy(context);
  wide_tensor_destroy(tensor);
  CHECK(live_bytes == 0);
}

#include "verify/c_api/c_api_builders.h"
#include "verify/c_api/c_api_ensembles.h"
#include "verify/c_api/c_api_lifecycle.h"
#include "verify/c_api/c_api_mixture.h"
#include "verify/c_api/c_api_parameters.h"
#include "verify/c_api/c_api_products.h"
#include "verify/c_api/c_api_refusals.h"
#include "verify/c_api/c_api_routed.h"
#include "verify/c_api/c_api_upsampling.h"
#include "verify/c_api/c_api_views.h"

int main(int argc, char** argv) {
  program = argv[0];
  const wide_device device = {argc > 1 && strcmp(argv[1], "cuda") == 0 ? WIDE_CUDA : WIDE_CPU, 0};
  for (int s = 0; s <= kMembers; ++s) {
    for (int i = 0; i < kNumParameters; ++i) {
      for (int k = 0; k < kHidden * kHidden; ++k) parameters[s][i][k] = next_random();
    }
  }
  for (int i = 0; i < kBatchRows * kMembers * kIn; ++i) inputs[i] = next_random();
  CHECK(strcmp(wide_last_error(), "") == 0);
  test_numbers(device);
  test_single_parameters(device);
  test_queries(device);
  test_masks(device);
  test_lifetimes(device);
  test_allocator();
  test_lifecycle(device);
  test_ensembles(device);
  test_routed(device);
  test_mixture(device);
  test_views(device);
  test_upsampling();
  test_products();
  test_listed_parameters(device);
  test_shared_parameters();
  test_values_of_graphs();
  test_prefixed_parameters(device);
  test_loading_for_a_graph(device);
  test_builders();
  test_refusals(device);
  printf("c_api_test: %d checks, %d failed\n", num_checks, num_failures);
  return num_failures == 0 ? 0 : 1;
}
