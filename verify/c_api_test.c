/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide.h from C11, as an engine in C has it: three members of a small network against a plain loop,
 * what becomes of members, the order of destroying, and what is refused, each by status and
 * message. "c_api_test cuda" does the same on CUDA device 0.
 */
#include "wide/wide.h"

#include <dlpack/dlpack.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMembers = 3, kBatchRows = 2, kIn = 6, kHidden = 8, kOut = 4, kNumParameters = 4 };

static int num_checks, num_failures;

static void check(int is_right, const char* what, int line) {
  ++num_checks;
  if (is_right) return;
  ++num_failures;
  printf("c_api_test.c:%d: %s; last error: %s\n", line, what, wide_last_error());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)
#define OK(call) check((call) == WIDE_OK, #call, __LINE__)

static void check_refused(wide_status got, wide_status expected, const char* words,
                          const char* what, int line) {
  char text[256];
  snprintf(text, sizeof text, "%s gives %s, expected %s with \"%s\"", what, wide_status_name(got),
           wide_status_name(expected), words);
  check(got == expected && strstr(wide_last_error(), words) != NULL, text, line);
}
#define REFUSED(words, call) check_refused(call, WIDE_INVALID_ARGUMENT, words, #call, __LINE__)
#define FAILS(status, words, call) check_refused(call, status, words, #call, __LINE__)

/* What a test works on: everything of one model. */
typedef struct Engine {
  wide_device device;
  wide_context* context;
  wide_stream* own_stream;
  void* stream;
  wide_handles* handles;
  wide_graph* graph;
  wide_plan* plan;
  wide_parameters* members[kMembers];
  wide_model* model;
  wide_tensor *x, *y, *workspace;
  wide_view x_view, y_view;
  wide_execution execution;
} Engine;

static const char* const kNames[kNumParameters] = {"fc1.weight", "fc1.bias", "fc2.weight",
                                                   "fc2.bias"};
static const int64_t kShapes[kNumParameters][2] = {
    {kHidden, kIn}, {kHidden}, {kOut, kHidden}, {kOut}};
static float parameters[kMembers + 1][kNumParameters][kHidden * kHidden];
static float inputs[kBatchRows * kMembers * kIn];

static float next_random(void) {
  static uint32_t state = 12345;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static wide_view host_view(void* data, int32_t rank, const int64_t* shape) {
  wide_view view = {.struct_size = sizeof view, .data = data, .dtype = WIDE_FP32, .rank = rank};
  memcpy(view.shape, shape, (size_t)rank * sizeof *shape);
  return view;
}

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
  wide_value x = WIDE_ABSENT;
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

static wide_plan_options plan_options(const Engine* e) {
  /* On a GPU without the vendors' libraries, too. */
  static const wide_strategy simt[] = {{sizeof(wide_strategy), "linear", "simt"}};
  wide_plan_options options = {
      .struct_size = sizeof options, .num_members = kMembers, .batch = kBatchRows};
  if (e->device.type == WIDE_CUDA) options.strategies = simt, options.num_strategies = 1;
  return options;
}

/* Every handle that a run needs, in the order in which an engine makes them. */
static Engine make_engine(wide_device device) {
  Engine e = {.device = device};
  const wide_context_options context_options = {
      .struct_size = sizeof context_options, .device = device, .num_threads = 2};
  OK(wide_context_create(&context_options, &e.context));
  OK(wide_stream_create(e.context, &e.own_stream));
  e.stream = wide_stream_native(e.own_stream);
  OK(wide_handles_create(e.context, &e.handles));
  e.graph = make_graph();
  const wide_plan_options options = plan_options(&e);
  OK(wide_plan_create(e.context, e.graph, &options, &e.plan));
  for (int m = 0; m < kMembers; ++m) e.members[m] = make_parameters(m);
  const wide_parameters* lent[kMembers] = {e.members[0], e.members[1], e.members[2]};
  OK(wide_model_create(e.context, e.plan, lent, kMembers, &e.model));

  wide_plan_info info = {.struct_size = sizeof info};
  wide_operand operand = {.struct_size = sizeof operand};
  OK(wide_plan_query(e.plan, &info));
  OK(wide_plan_input(e.plan, 0, &operand));
  OK(wide_tensor_create(e.context, operand.dtype, operand.shape, operand.rank, &e.x));
  OK(wide_plan_output(e.plan, 0, &operand));
  OK(wide_tensor_create(e.context, operand.dtype, operand.shape, operand.rank, &e.y));
  OK(wide_tensor_create(e.context, WIDE_UINT8, &info.workspace_bytes, 1, &e.workspace));
  e.x_view.struct_size = e.y_view.struct_size = sizeof(wide_view);
  OK(wide_tensor_view(e.x, &e.x_view));
  OK(wide_tensor_view(e.y, &e.y_view));
  wide_view scratch = {.struct_size = sizeof scratch};
  OK(wide_tensor_view(e.workspace, &scratch));
  e.execution = (wide_execution){.struct_size = sizeof(wide_execution),
                                 .stream = e.stream,
                                 .workspace = scratch.data,
                                 .workspace_bytes = info.workspace_bytes,
                                 .handles = e.handles};
  const wide_view host = host_view(inputs, 2, e.x_view.shape);
  OK(wide_copy(&host, &e.x_view, e.stream));
  OK(wide_synchronize(e.context, e.stream));
  return e;
}

static void destroy_engine(Engine* e) {
  wide_tensor_destroy(e->workspace);
  wide_tensor_destroy(e->y);
  wide_tensor_destroy(e->x);
  wide_model_destroy(e->model);
  for (int m = 0; m < kMembers; ++m) wide_parameters_destroy(e->members[m]);
  wide_plan_destroy(e->plan);
  wide_graph_destroy(e->graph);
  wide_handles_destroy(e->handles);
  wide_stream_destroy(e->own_stream);
  wide_context_destroy(e->context);
}

static void read_output(const Engine* e, float* y) {
  const wide_view host = host_view(y, e->y_view.rank, e->y_view.shape);
  OK(wide_copy(&e->y_view, &host, e->stream));
  OK(wide_synchronize(e->context, e->stream));
}

/* The plain loop: y of one member with the parameters of `set`. */
static void reference(int member, int set, float* y) {
  for (int b = 0; b < kBatchRows; ++b) {
    double hidden[kHidden];
    for (int h = 0; h < kHidden; ++h) {
      double sum = parameters[set][1][h];
      for (int i = 0; i < kIn; ++i) {
        sum += (double)parameters[set][0][h * kIn + i] * inputs[(b * kMembers + member) * kIn + i];
      }
      hidden[h] = sum > 0 ? sum : 0;
    }
    for (int o = 0; o < kOut; ++o) {
      double sum = parameters[set][3][o];
      for (int h = 0; h < kHidden; ++h) sum += parameters[set][2][o * kHidden + h] * hidden[h];
      y[b * kOut + o] = (float)sum;
    }
  }
}

/* Whether y [B, N * out] is what members with these sets of parameters compute. */
static int is_right(const float* y, const int* sets) {
  for (int m = 0; m < kMembers; ++m) {
    float expected[kBatchRows * kOut];
    reference(m, sets[m], expected);
    for (int b = 0; b < kBatchRows; ++b) {
      for (int o = 0; o < kOut; ++o) {
        const float difference = y[(b * kMembers + m) * kOut + o] - expected[b * kOut + o];
        if (!(fabsf(difference) < 1e-4f)) return 0;
      }
    }
  }
  return 1;
}

static wide_status run(const Engine* e) {
  return wide_model_run(e->model, &e->x_view, 1, &e->y_view, 1, &e->execution);
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
  OK(wide_replay_create(e.model, &e.x_view, 1, &e.y_view, 1, &e.execution, &replay));
  wide_parameters* other = make_parameters(3);
  OK(wide_model_replace(e.model, 1, other, e.stream));
  OK(wide_model_clone(e.model, 1, 2, e.stream));
  OK(wide_replay_run(replay, e.stream));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 3, 3}));

  /* A member read back, through a file, into another place. */
  const char* path = "c_api_test.safetensors";
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

static void test_queries(wide_device device) {
  Engine e = make_engine(device);
  wide_context_info context = {.struct_size = sizeof context};
  OK(wide_context_query(e.context, &context));
  CHECK(strlen(context.name) > 0 && context.device.type == device.type);
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_plan_query(e.plan, &info));
  CHECK(info.num_members == kMembers && info.batch == kBatchRows);
  CHECK(info.num_inputs == 1 && info.num_outputs == 1 && info.num_steps == 2);
  CHECK(info.input_bytes == (int64_t)sizeof inputs);
  CHECK(info.weights_bytes > 0 && info.total_bytes > info.weights_bytes);
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
  OK(wide_largest_n_that_fits(e.context, e.graph, &options, info.total_bytes, &most));
  CHECK(most >= kMembers && most < 2 * kMembers);
  OK(wide_largest_n_that_fits(e.context, e.graph, &options, 1, &most));
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
  OK(wide_replay_create(e.model, &e.x_view, 1, &e.y_view, 1, &e.execution, &replay));
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

#include "verify/c_api_refusals.h"

int main(int argc, char** argv) {
  const wide_device device = {argc > 1 && strcmp(argv[1], "cuda") == 0 ? WIDE_CUDA : WIDE_CPU, 0};
  for (int s = 0; s <= kMembers; ++s) {
    for (int i = 0; i < kNumParameters; ++i) {
      for (int k = 0; k < kHidden * kHidden; ++k) parameters[s][i][k] = next_random();
    }
  }
  for (int i = 0; i < kBatchRows * kMembers * kIn; ++i) inputs[i] = next_random();
  CHECK(strcmp(wide_last_error(), "") == 0);
  test_numbers(device);
  test_queries(device);
  test_masks(device);
  test_lifetimes(device);
  test_allocator();
  test_refusals(device);
  printf("c_api_test: %d checks, %d failed\n", num_checks, num_failures);
  return num_failures == 0 ? 0 : 1;
}
