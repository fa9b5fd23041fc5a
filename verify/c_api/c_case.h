/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the tests in C stand on: checks of conditions and of calls that must fail, by status and
 * words; and a small network, x -> fc1 -> relu -> fc2 -> y, against a plain loop.
 */
#ifndef WIDE_VERIFY_C_CASE_H
#define WIDE_VERIFY_C_CASE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wide/wide.h"

static int num_checks, num_failures;
static const char* program; /* argv[0] */

static void check(int is_right, const char* what, const char* file, int line) {
  ++num_checks;
  if (is_right) return;
  ++num_failures;
  printf("%s:%d: %s; last error: %s\n", file, line, what, wide_last_error());
}
#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
#define OK(call) check((call) == WIDE_OK, #call, __FILE__, __LINE__)

static void check_refused(wide_status got, wide_status expected, const char* words,
                          const char* what, const char* file, int line) {
  char text[256];
  snprintf(text, sizeof text, "%s gives %s, expected %s with \"%s\"", what, wide_status_name(got),
           wide_status_name(expected), words);
  check(got == expected && strstr(wide_last_error(), words) != NULL, text, file, line);
}
#define REFUSED(words, call) \
  check_refused(call, WIDE_INVALID_ARGUMENT, words, #call, __FILE__, __LINE__)
#define FAILS(status, words, call) check_refused(call, status, words, #call, __FILE__, __LINE__)

/* A file of this run's own, beside the program: several run at once. Valid until the next call. */
static const char* scratch(const char* name, wide_device device) {
  static char path[1200];
  snprintf(path, sizeof path, "%s.%d.%s", program, (int)device.type, name);
  return path;
}

enum { kMembers = 3, kBatchRows = 2, kIn = 6, kHidden = 8, kOut = 4, kNumParameters = 4 };

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

static wide_plan_options plan_options(const Engine* e) {
  /* On a GPU without the vendors' libraries, too. */
  static const wide_strategy simt[] = {{sizeof(wide_strategy), "linear", "simt"}};
  wide_plan_options options = {
      .struct_size = sizeof options, .num_members = kMembers, .batch = kBatchRows};
  if (e->device.type == WIDE_CUDA) options.strategies = simt, options.num_strategies = 1;
  return options;
}

/* Every handle that a run needs, in the order in which an engine makes them; graph and members
 * become the engine's. */
static Engine start_engine(wide_device device, wide_graph* graph, wide_parameters* const* members) {
  Engine e = {.device = device, .graph = graph};
  const wide_context_options context_options = {
      .struct_size = sizeof context_options, .device = device, .num_threads = 2};
  OK(wide_context_create(&context_options, &e.context));
  OK(wide_stream_create(e.context, &e.own_stream));
  e.stream = wide_stream_native(e.own_stream);
  OK(wide_handles_create(e.context, &e.handles));
  const wide_plan_options options = plan_options(&e);
  OK(wide_plan_create(e.context, e.graph, &options, &e.plan));
  for (int m = 0; m < kMembers; ++m) e.members[m] = members[m];
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

#endif
