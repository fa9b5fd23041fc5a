/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * The feed-forward layer of experts of an engine's transformer, in C: one plan, and one captured
 * run for any scores. Needs libwide and its headers, nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wide/wide_builder.h>

enum { kExperts = 8, kChoices = 2, kTokens = 5, kWidth = 64, kHidden = 160, kSteps = 3 };

static void must(wide_status status) {
  if (status == WIDE_OK) return;
  fprintf(stderr, "experts: %s\n", wide_last_error());
  exit(1);
}

/* One expert: silu(x W1) * (x W3), then W2. */
static wide_graph* expert(void) {
  const int64_t tokens[2] = {WIDE_BATCH, kWidth};
  const wide_linear_layer plain = {.struct_size = sizeof plain, .has_no_bias = 1},
                          silu = {sizeof silu, "silu", 1};
  wide_builder* b = NULL;
  wide_graph* graph = NULL;
  wide_value x = 0, gate = 0, h = 0;
  must(wide_builder_create("expert", WIDE_FP32, &b));
  wide_builder_input(b, "x", WIDE_FP32, tokens, 2, &x);
  wide_builder_linear(b, "w1", x, kHidden, &silu, &gate);
  wide_builder_linear(b, "w3", x, kHidden, &plain, &h);
  wide_builder_binary(b, "product", gate, h, "multiply", &h);
  wide_builder_linear(b, "w2", h, kWidth, &plain, &h);
  wide_builder_output(b, "y", h);
  must(wide_graph_create(b, &graph)); /* tells the builder's first error, if there was one */
  wide_builder_destroy(b);
  return graph;
}

static wide_view tensor(const wide_context* context, wide_dtype dtype, int32_t rank,
                        const int64_t* shape, wide_tensor** owner) {
  wide_view view = {.struct_size = sizeof view};
  must(wide_tensor_create(context, dtype, shape, rank, owner));
  must(wide_tensor_view(*owner, &view));
  return view;
}
static wide_view host_view(float* data, int64_t rows, int64_t columns) {
  return (wide_view){
      .struct_size = sizeof(wide_view), .data = data, .rank = 2, .shape = {rows, columns}};
}

/* Tokens' scores are what the engine's router computes on the device; here the host draws them. */
static void draw(float* values, int count, uint32_t seed) {
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
}

static void serve(const wide_context* context, const wide_plan* plan, const wide_model* model) {
  float x[kTokens * kWidth], scores[kTokens * kExperts], y[kTokens * kWidth];
  const wide_view x_host = host_view(x, kTokens, kWidth), y_host = host_view(y, kTokens, kWidth),
                  scores_host = host_view(scores, kTokens, kExperts);
  wide_plan_info info = {.struct_size = sizeof info};
  wide_tensor* owners[4];
  wide_stream* stream = NULL;
  wide_replay* replay = NULL;
  must(wide_plan_query(plan, &info));
  must(wide_stream_create(context, &stream));
  void* const on = wide_stream_native(stream);
  const wide_view in[2] = {tensor(context, WIDE_FP32, 2, x_host.shape, &owners[0]),
                           tensor(context, WIDE_FP32, 2, scores_host.shape, &owners[1])};
  const wide_view out = tensor(context, WIDE_FP32, 2, y_host.shape, &owners[2]);
  const wide_view scratch = tensor(context, WIDE_UINT8, 1, &info.workspace_bytes, &owners[3]);
  const wide_execution execution = {.struct_size = sizeof execution,
                                    .stream = on,
                                    .workspace = scratch.data,
                                    .workspace_bytes = info.workspace_bytes};
  must(wide_replay_create(model, in, 2, &out, 1, &execution, NULL, &replay));
  for (int step = 0; step < kSteps; ++step) {
    draw(x, kTokens * kWidth, 1);
    draw(scores, kTokens * kExperts, 2 + (uint32_t)step);
    must(wide_copy(&x_host, &in[0], on));
    must(wide_copy(&scores_host, &in[1], on));
    must(wide_replay_run(replay, on));
    must(wide_copy(&out, &y_host, on));
    must(wide_synchronize(context, on));
    printf("step %d: y[0] is %.6g\n", step, (double)y[0]);
  }
  wide_replay_destroy(replay);
  for (int i = 0; i < 4; ++i) wide_tensor_destroy(owners[i]);
  wide_stream_destroy(stream);
}

int main(int argc, char** argv) {
  wide_context_options on = {.struct_size = sizeof on};
  if (argc > 1 && strcmp(argv[1], "cuda") == 0) on.device.type = WIDE_CUDA;
  const wide_plan_options planned = {.struct_size = sizeof planned,
                                     .num_members = kExperts,
                                     .batch = kTokens,
                                     .is_routed = 1,
                                     .choices = kChoices,
                                     .router = "scores"};
  wide_graph* graph = expert();
  wide_context* context = NULL;
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  wide_parameters* experts[kExperts];
  double worst = 0, differences[kExperts];
  must(wide_context_create(&on, &context));
  must(wide_plan_create(context, graph, &planned, &plan));
  for (int i = 0; i < kExperts; ++i) must(wide_parameters_create_random(graph, 1, i, &experts[i]));
  const wide_parameters* const* lent = (const wide_parameters* const*)experts;
  must(wide_model_create(context, plan, lent, kExperts, &model));
  must(wide_model_validate(context, graph, &planned, lent, kExperts, 1, differences));
  for (int i = 0; i < kExperts; ++i) worst = differences[i] > worst ? differences[i] : worst;
  printf("%d experts, %d for each token: off from them one by one by %.2g at most\n%s", kExperts,
         kChoices, worst, wide_plan_explain(plan));
  serve(context, plan, model);
  for (int i = 0; i < kExperts; ++i) wide_parameters_destroy(experts[i]);
  wide_model_destroy(model);
  wide_plan_destroy(plan);
  wide_context_destroy(context);
  wide_graph_destroy(graph);
  return 0;
}
