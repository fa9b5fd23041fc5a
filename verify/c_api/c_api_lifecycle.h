/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: what becomes of a model's members, and what a plan is told.
 */
#ifndef WIDE_VERIFY_C_API_LIFECYCLE_H
#define WIDE_VERIFY_C_API_LIFECYCLE_H

static int64_t num_steps(const wide_plan* plan) {
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_plan_query(plan, &info));
  CHECK(info.activation_bytes + info.scratch_bytes == info.workspace_bytes);
  return info.num_steps;
}

/* All members in a file, and one of them in another's place. */
static void test_checkpoint(wide_device device) {
  const char* path = scratch("members", device);
  Engine e = make_engine(device);
  wide_members* members = NULL;
  wide_parameters* second = NULL;
  wide_graph* graph = NULL;
  OK(wide_model_save(e.model, path, e.stream));
  OK(wide_members_open(path, &members));
  wide_members_info info = {.struct_size = sizeof info};
  OK(wide_members_query(members, &info));
  CHECK(info.num_members == kMembers && strcmp(info.graph, "mlp") == 0);
  FAILS(WIDE_UNSUPPORTED, "parameters of \"mlp\" and no graph",
        wide_members_graph(members, &graph));
  REFUSED("member is 3, expected one in [0, 3)", wide_members_get(members, 3, &second));
  REFUSED("member is -1", wide_members_get(members, -1, &second));
  REFUSED("out is null", wide_members_get(members, 1, NULL));
  REFUSED("out is null", wide_members_query(members, NULL));
  info.struct_size -= 1;
  REFUSED("out.struct_size is", wide_members_query(members, &info));
  OK(wide_members_get(members, 1, &second));
  wide_members_destroy(members);
  remove(path); /* it stays mapped */
  wide_view view = {.struct_size = sizeof view};
  OK(wide_parameters_get(second, "fc2.weight", &view));
  CHECK(memcmp(view.data, parameters[1][2], kOut * kHidden * sizeof(float)) == 0);
  OK(wide_model_replace(e.model, 0, second, e.stream));
  wide_parameters_destroy(second);
  float y[kBatchRows * kMembers * kOut];
  OK(run(&e));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){1, 1, 2}));

  members = NULL;
  REFUSED("model is null", wide_model_save(NULL, path, e.stream));
  REFUSED("path is null", wide_model_save(e.model, NULL, e.stream));
  FAILS(WIDE_IO_ERROR, "no-such-folder", wide_model_save(e.model, "no-such-folder/m", e.stream));
  FAILS(WIDE_IO_ERROR, "no-such-file", wide_members_open("no-such-file", &members));
  REFUSED("path is null", wide_members_open(NULL, &members));
  REFUSED("out is null", wide_members_open(path, NULL));
  REFUSED("members is null", wide_members_query(NULL, &info));
  REFUSED("members is null", wide_members_graph(NULL, &graph));
  REFUSED("members is null", wide_members_get(NULL, 0, &second));
  CHECK(members == NULL && graph == NULL);
  wide_members_destroy(NULL);
  destroy_engine(&e);
}

static void test_compact(wide_device device) {
  Engine e = make_engine(device);
  int64_t was[kMembers] = {-1, -1, -1}, count = 0;
  int32_t is_masked = 0;
  float y[kBatchRows * kMembers * kOut];
  OK(wide_model_mask(e.model, 0, e.stream));
  REFUSED("out is null", wide_model_compact(e.model, e.stream, was, NULL));
  REFUSED("model is null", wide_model_compact(NULL, e.stream, was, &count));
  OK(wide_model_compact(e.model, e.stream, was, &count));
  CHECK(count == 2 && was[0] == 1 && was[1] == 2 && was[2] == -1);
  OK(run(&e));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){1, 2, 2}));
  OK(wide_model_is_masked(e.model, 2, &is_masked));
  CHECK(is_masked == 1);
  OK(wide_model_compact(e.model, e.stream, NULL, &count)); /* again: all as it is */
  CHECK(count == 2);

  wide_model* half = NULL;
  wide_plan* plan = NULL;
  wide_plan_info info = {.struct_size = sizeof info};
  REFUSED("num_members is 4", wide_model_with_num_members(e.model, kMembers + 1, &half));
  REFUSED("model is null", wide_model_with_num_members(NULL, 1, &half));
  OK(wide_model_with_num_members(e.model, count, &half));
  OK(wide_model_plan(half, &plan));
  OK(wide_plan_query(plan, &info));
  CHECK(info.num_members == 2 && info.batch == kBatchRows);
  REFUSED("member is 2", wide_model_mask(half, 2, e.stream));
  wide_plan_destroy(plan);
  wide_model_destroy(half);
  destroy_engine(&e);
}

/* More rows than the plan has: `rows` times those of `inputs`, row by row in turn. */
static void test_batches(wide_device device) {
  Engine e = make_engine(device);
  wide_model* single = NULL;
  wide_plan* plan = NULL;
  wide_chunked* chunked = NULL;
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_model_with_batch(e.model, 1, &single));
  OK(wide_model_plan(single, &plan));
  OK(wide_plan_query(plan, &info));
  CHECK(info.batch == 1 && info.num_members == kMembers);
  enum { kRows = 3 };
  int64_t bytes = 0;
  OK(wide_chunked_create(e.model, kRows, &chunked));
  OK(wide_chunked_workspace_bytes(chunked, &bytes));
  CHECK(bytes >= info.workspace_bytes && bytes <= e.execution.workspace_bytes);

  /* What changes a member changes it in both; a handle keeps alive what it needs. */
  OK(wide_model_clone(single, 2, 0, e.stream));
  wide_model_destroy(single);
  wide_plan_destroy(plan);
  const int64_t x_shape[2] = {kRows, kMembers * kIn}, y_shape[2] = {kRows, kMembers * kOut};
  float x[kRows * kMembers * kIn], all[kRows * kMembers * kOut], y[kBatchRows * kMembers * kOut];
  for (int i = 0; i < kRows * kMembers * kIn; ++i) x[i] = inputs[i % (kBatchRows * kMembers * kIn)];
  wide_tensor *x_device = NULL, *y_device = NULL;
  wide_view in = {.struct_size = sizeof in}, out = in;
  OK(wide_tensor_create(e.context, WIDE_FP32, x_shape, 2, &x_device));
  OK(wide_tensor_create(e.context, WIDE_FP32, y_shape, 2, &y_device));
  OK(wide_tensor_view(x_device, &in));
  OK(wide_tensor_view(y_device, &out));
  const wide_view x_host = host_view(x, 2, x_shape), y_host = host_view(all, 2, y_shape);
  OK(wide_copy(&x_host, &in, e.stream));
  OK(wide_chunked_run(chunked, &in, 1, &out, 1, &e.execution));
  OK(wide_copy(&out, &y_host, e.stream));
  OK(wide_synchronize(e.context, e.stream));
  CHECK(is_right(all, (const int[]){2, 1, 2}));
  memcpy(y, all + kMembers * kOut, sizeof y); /* rows 1 and 2, which is row 0 again */
  CHECK(!is_right(y, (const int[]){2, 1, 2}));
  memcpy(y, all + 2 * kMembers * kOut, sizeof y / 2);
  memcpy(y + kMembers * kOut, all + kMembers * kOut, sizeof y / 2);
  CHECK(is_right(y, (const int[]){2, 1, 2}));

  REFUSED("chunked is null", wide_chunked_run(NULL, &in, 1, &out, 1, &e.execution));
  REFUSED("execution is null", wide_chunked_run(chunked, &in, 1, &out, 1, NULL));
  REFUSED("inputs is null", wide_chunked_run(chunked, NULL, 1, &out, 1, &e.execution));
  REFUSED("outputs is null", wide_chunked_run(chunked, &in, 1, NULL, 1, &e.execution));
  REFUSED("expected [3, 18]", wide_chunked_run(chunked, &e.x_view, 1, &out, 1, &e.execution));
  REFUSED("2 inputs, expected 1", wide_chunked_run(chunked, &in, 2, &out, 1, &e.execution));
  REFUSED("9 outputs, expected 1", wide_chunked_run(chunked, &in, 1, &out, 9, &e.execution));
  REFUSED("chunked is null", wide_chunked_workspace_bytes(NULL, &bytes));
  REFUSED("out is null", wide_chunked_workspace_bytes(chunked, NULL));
  REFUSED("batch is 0", wide_chunked_create(e.model, 0, &(wide_chunked*){NULL}));
  REFUSED("model is null", wide_chunked_create(NULL, 1, &(wide_chunked*){NULL}));
  REFUSED("out is null", wide_chunked_create(e.model, 1, NULL));
  REFUSED("batch", wide_model_with_batch(e.model, 0, &(wide_model*){NULL}));
  REFUSED("model is null", wide_model_with_batch(NULL, 1, &(wide_model*){NULL}));
  REFUSED("model is null", wide_model_plan(NULL, &(wide_plan*){NULL}));
  wide_chunked_destroy(NULL);
  wide_chunked_destroy(chunked);
  wide_tensor_destroy(x_device);
  wide_tensor_destroy(y_device);
  destroy_engine(&e);
}

static const int64_t kBatches[kMembers] = {2, 0, 1};
enum { kRaggedRows = 3 };

/* Runs a model with these batches on the rows of `inputs` that its members have; whether it gives
 * what members with these sets of parameters compute of them. */
static int is_ragged_right(const Engine* e, const wide_model* model, const int* sets) {
  float x[kRaggedRows * kIn], y[kRaggedRows * kOut], expected[kBatchRows * kOut];
  int64_t row = 0;
  for (int m = 0; m < kMembers; ++m) {
    for (int64_t b = 0; b < kBatches[m]; ++b, ++row) {
      memcpy(x + row * kIn, inputs + (b * kMembers + m) * kIn, kIn * sizeof *x);
    }
  }
  const int64_t x_shape[2] = {kRaggedRows, kIn}, y_shape[2] = {kRaggedRows, kOut};
  const wide_view x_host = host_view(x, 2, x_shape), y_host = host_view(y, 2, y_shape);
  wide_tensor *x_device = NULL, *y_device = NULL, *workspace = NULL;
  wide_view in = {.struct_size = sizeof in}, out = in, scratch = in;
  wide_plan* plan = NULL;
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_model_plan(model, &plan));
  OK(wide_plan_query(plan, &info));
  OK(wide_tensor_create(e->context, WIDE_FP32, x_shape, 2, &x_device));
  OK(wide_tensor_create(e->context, WIDE_FP32, y_shape, 2, &y_device));
  OK(wide_tensor_create(e->context, WIDE_UINT8, &info.workspace_bytes, 1, &workspace));
  OK(wide_tensor_view(x_device, &in));
  OK(wide_tensor_view(y_device, &out));
  OK(wide_tensor_view(workspace, &scratch));
  wide_execution execution = e->execution;
  execution.workspace = scratch.data, execution.workspace_bytes = info.workspace_bytes;
  OK(wide_copy(&x_host, &in, e->stream));
  OK(wide_model_run(model, &in, 1, &out, 1, &execution));
  OK(wide_copy(&out, &y_host, e->stream));
  OK(wide_synchronize(e->context, e->stream));
  wide_tensor_destroy(workspace);
  wide_tensor_destroy(y_device);
  wide_tensor_destroy(x_device);
  wide_plan_destroy(plan);
  int is_right = 1;
  const float* at = y;
  for (int m = 0; m < kMembers; ++m) {
    reference(m, sets[m], expected);
    for (int64_t i = 0; i < kBatches[m] * kOut; ++i) {
      is_right = is_right && fabsf(*at++ - expected[i]) < 1e-4f;
    }
  }
  return is_right;
}

/* Members with rows of their own: a plan of them, and a model that others have become. On a GPU
 * without the vendors' libraries, too. */
static void test_ragged(wide_device device) {
  Engine e = make_engine(device);
  wide_plan* plan = NULL;
  wide_model *model = NULL, *other = NULL;
  wide_plan_options options = {.struct_size = sizeof options,
                               .num_members = kMembers,
                               .batches = kBatches,
                               .num_batches = kMembers};
  const wide_strategy simt = {sizeof simt, "ragged_linear", "simt"};
  if (device.type == WIDE_CUDA) options.strategies = &simt, options.num_strategies = 1;
  OK(wide_plan_create(e.context, e.graph, &options, &plan));
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_plan_query(plan, &info));
  CHECK(info.batch == 2 && info.num_members == kMembers && info.num_steps == 2);
  CHECK(info.input_bytes == kRaggedRows * kIn * (int64_t)sizeof(float));
  CHECK(device.type == WIDE_CUDA ? info.table_bytes > 0 : info.table_bytes == 0);
  CHECK(info.total_bytes == info.weights_bytes + info.workspace_bytes + info.input_bytes +
                                info.output_bytes + info.table_bytes);
  wide_operand x = {.struct_size = sizeof x}, y = x;
  OK(wide_plan_input(plan, 0, &x));
  OK(wide_plan_output(plan, 0, &y));
  CHECK(x.rank == 2 && x.shape[0] == kRaggedRows && x.shape[1] == kIn && x.first_rows != NULL);
  CHECK(y.rank == 2 && y.shape[0] == kRaggedRows && y.shape[1] == kOut && y.first_rows != NULL);
  const int64_t first_rows[kMembers + 1] = {0, 2, 2, 3};
  CHECK(x.first_rows && memcmp(x.first_rows, first_rows, sizeof first_rows) == 0);
  CHECK(y.first_rows && memcmp(y.first_rows, first_rows, sizeof first_rows) == 0);
  OK(wide_plan_input(e.plan, 0, &x));
  CHECK(x.first_rows == NULL);
  wide_step step = {.struct_size = sizeof step};
  OK(wide_plan_step(plan, 0, &step));
  CHECK(strcmp(step.primitive, "ragged_linear") == 0 && step.member == -1);

  const wide_parameters* lent[kMembers] = {e.members[0], e.members[1], e.members[2]};
  OK(wide_model_create(e.context, plan, lent, kMembers, &model));
  wide_plan_destroy(plan);
  CHECK(is_ragged_right(&e, model, (const int[]){0, 1, 2}));
  CHECK(!is_ragged_right(&e, model, (const int[]){2, 1, 0}));
  wide_model_destroy(model);
  double differences[kMembers] = {-1, -1, -1};
  if (device.type == WIDE_CPU) { /* alone they run on cuBLAS, which the simulated GPU has not */
    OK(wide_model_validate(e.context, e.graph, &options, lent, kMembers, 7, differences));
    for (int m = 0; m < kMembers; ++m) CHECK(differences[m] >= 0 && differences[m] < 1e-5);
  }
  REFUSED("batches has 3 entries, expected one per member = 2",
          wide_model_validate(e.context, e.graph, &options, lent, 2, 7, differences));

  /* On CUDA the engine's plan names `linear` alone: member after member, on slices. */
  OK(wide_model_with_batches(e.model, kBatches, kMembers, &other));
  OK(wide_model_clone(e.model, 2, 0, e.stream)); /* what changes a member changes it in both */
  CHECK(is_ragged_right(&e, other, (const int[]){2, 1, 2}));
  OK(wide_model_plan(other, &plan));
  OK(wide_plan_query(plan, &info));
  OK(wide_plan_step(plan, info.num_steps - 1, &step));
  CHECK(strcmp(step.node, "fc2") == 0 && step.member == (device.type == WIDE_CUDA ? 2 : -1));
  wide_plan_destroy(plan);
  FAILS(WIDE_UNSUPPORTED, "rows of their own", wide_chunked_create(other, 4, &(wide_chunked*){0}));
  wide_model_destroy(other);
  destroy_engine(&e);
}

static void test_members(wide_device device) {
  Engine e = make_engine(device);
  const wide_parameters* lent[kMembers] = {e.members[0], e.members[1], e.members[2]};
  const wide_plan_options options = plan_options(&e);
  double differences[kMembers] = {-1, -1, -1};
  if (device.type == WIDE_CPU) { /* alone they run on cuBLAS, which the simulated GPU has not */
    OK(wide_model_validate(e.context, e.graph, &options, lent, kMembers, 7, differences));
    for (int m = 0; m < kMembers; ++m) CHECK(differences[m] >= 0 && differences[m] < 1e-5);
  }
  REFUSED("members is null",
          wide_model_validate(e.context, e.graph, &options, NULL, kMembers, 7, differences));
  REFUSED("context is null",
          wide_model_validate(NULL, e.graph, &options, lent, kMembers, 7, differences));
  REFUSED("graph is null",
          wide_model_validate(e.context, NULL, &options, lent, kMembers, 7, differences));
  REFUSED("out is null",
          wide_model_validate(e.context, e.graph, &options, lent, kMembers, 7, NULL));

  /* Members around one. */
  wide_parameters *same = NULL, *near = NULL, *equal = NULL;
  wide_view a = {.struct_size = sizeof a}, b = a;
  OK(wide_parameters_create_perturbed(e.members[0], 0.25, 9, 0, &same));
  OK(wide_parameters_create_perturbed(e.members[0], 0.25, 9, 1, &near));
  OK(wide_parameters_get(same, "fc1.weight", &a));
  OK(wide_parameters_get(near, "fc1.weight", &b));
  int num_changed = 0;
  for (int i = 0; i < kHidden * kIn; ++i) {
    const float given = parameters[0][0][i], other = ((const float*)b.data)[i];
    CHECK(((const float*)a.data)[i] == given);
    CHECK(fabsf(other - given) <= 0.2501f * fabsf(given));
    num_changed += other != given;
  }
  CHECK(num_changed > kHidden * kIn / 2);
  REFUSED("parameters is null", wide_parameters_create_perturbed(NULL, 0.25, 9, 0, &equal));
  REFUSED("out is null", wide_parameters_create_perturbed(near, 0.25, 9, 0, NULL));

  /* One tensor is the same for both, and may be shared. */
  OK(wide_parameters_get(same, "fc1.bias", &a));
  OK(wide_parameters_set(near, "fc1.bias", &a));
  const wide_parameters* const both[2] = {same, near};
  REFUSED("graph is null", wide_parameters_create_equal(NULL, both, 2, &equal));
  REFUSED("members is null", wide_parameters_create_equal(e.graph, NULL, 2, &equal));
  REFUSED("out is null", wide_parameters_create_equal(e.graph, both, 2, NULL));
  OK(wide_parameters_create_equal(e.graph, both, 2, &equal));
  wide_parameters_destroy(near);
  wide_parameters_destroy(same);
  CHECK(strcmp(wide_parameters_name(equal, 0), "fc1.bias") == 0);
  CHECK(wide_parameters_name(equal, 1) == NULL);
  OK(wide_parameters_get(equal, "fc1.bias", &a));
  CHECK(memcmp(a.data, parameters[0][1], kHidden * sizeof(float)) == 0);
  wide_parameters_destroy(equal);

  int64_t most = -1;
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_plan_query(e.plan, &info));
  OK(wide_largest_batch_that_fits(e.context, e.graph, &options, info.total_bytes, 9, &most));
  CHECK(most >= kBatchRows && most <= 9);
  OK(wide_largest_batch_that_fits(e.context, e.graph, &options, 1, 9, &most));
  CHECK(most == 0);
  REFUSED("out is null", wide_largest_batch_that_fits(e.context, e.graph, &options, 1, 9, NULL));
  REFUSED("context is null", wide_largest_batch_that_fits(NULL, e.graph, &options, 1, 9, &most));
  REFUSED("graph is null", wide_largest_batch_that_fits(e.context, NULL, &options, 1, 9, &most));
  destroy_engine(&e);
}

/* x -> conv -> norm -> relu -> fc -> y: something for every pass. */
static wide_graph* make_pass_graph(void) {
  wide_builder* builder = make_builder();
  wide_graph* graph = NULL;
  wide_value x = 0;
  const int64_t image[4] = {WIDE_BATCH, 3, 4, 5};
  const wide_conv_layer conv = {.struct_size = sizeof conv};
  wide_builder_input(builder, "x", WIDE_FP32, image, 4, &x);
  wide_builder_conv(builder, "conv", x, 6, &conv, &x);
  wide_builder_batchnorm(builder, "norm", x, 0, &x);
  wide_builder_pointwise(builder, "act", x, "relu", NULL, &x);
  wide_builder_linear(builder, "fc", x, 4, NULL, &x);
  wide_builder_output(builder, "y", x);
  OK(wide_graph_create(builder, &graph));
  wide_builder_destroy(builder);
  return graph;
}

/* What every option of a plan does: steps of the plan, or bytes, or words. */
static void test_plan_options(wide_device device) {
  wide_context* cpu = NULL;
  wide_plan* plan = NULL;
  OK(wide_context_create(NULL, &cpu));
  wide_graph* graph = make_pass_graph();
  wide_plan_options options = {.struct_size = sizeof options, .num_members = 2, .batch = 2};
  OK(wide_plan_create(cpu, graph, &options, &plan));
  const int64_t usual = num_steps(plan);
  CHECK(strstr(wide_plan_explain(plan), "fc: x is copied") != NULL);
  wide_plan_destroy(plan);
  options.disable_batchnorm_folding = 1;
  OK(wide_plan_create(cpu, graph, &options, &plan));
  CHECK(num_steps(plan) > usual);
  wide_plan_destroy(plan);
  options.disable_batchnorm_folding = 0, options.disable_fusion = 1;
  OK(wide_plan_create(cpu, graph, &options, &plan));
  CHECK(num_steps(plan) > usual);
  wide_plan_destroy(plan);
  options.disable_fusion = 0, options.channels = WIDE_CHANNELS_LAST;
  OK(wide_plan_create(cpu, graph, &options, &plan));
  CHECK(strstr(wide_plan_explain(plan), "conv: channels last; conv is copied back\n") != NULL);
  CHECK(num_steps(plan) == usual);
  wide_plan_destroy(plan);
  options.channels = WIDE_CHANNELS_FIRST;
  OK(wide_plan_create(cpu, graph, &options, &plan));
  CHECK(strstr(wide_plan_explain(plan), "channels last") == NULL);
  wide_plan_destroy(plan);
  options.channels = WIDE_CHANNELS_AUTO, options.disable_copies = 1;
  FAILS(WIDE_UNSUPPORTED, "fc (linear): conv", wide_plan_create(cpu, graph, &options, &plan));
  wide_graph_destroy(graph);

  wide_plan_info reused = {.struct_size = sizeof reused}, kept = reused;
  options.disable_copies = 0;
  OK(wide_graph_create_named("deep_mlp", NULL, &graph));
  OK(wide_plan_create(cpu, graph, &options, &plan));
  OK(wide_plan_query(plan, &reused));
  wide_plan_destroy(plan);
  options.disable_memory_reuse = 1;
  OK(wide_plan_create(cpu, graph, &options, &plan));
  OK(wide_plan_query(plan, &kept));
  CHECK(kept.activation_bytes > reused.activation_bytes);
  wide_plan_destroy(plan);

  const char* path = scratch("tuning", device);
  FILE* file = fopen(path, "w");
  CHECK(file != NULL);
  fputs("{\"schema\": {\"name\": \"wide.tuning\", \"version\": 1}, \"entries\": []}", file);
  fclose(file);
  options.tuning = path;
  wide_step step = {.struct_size = sizeof step};
  OK(wide_plan_create(cpu, graph, &options, &plan));
  OK(wide_plan_step(plan, 0, &step));
  CHECK(strstr(step.explain, "not in the tuning cache") != NULL && step.is_tuned == 0);
  wide_plan_destroy(plan);
  remove(path);
  plan = NULL;
  FAILS(WIDE_IO_ERROR, path, wide_plan_create(cpu, graph, &options, &plan));
  CHECK(plan == NULL);
  wide_graph_destroy(graph);
  wide_context_destroy(cpu);
}

/* Quantised layers take a part of the memory, and the members that are loaded stay what they are.
 */
static void test_quantized(wide_device device) {
  wide_context* context = NULL;
  wide_graph *dense = NULL, *graph = NULL;
  wide_plan* plan = NULL;
  wide_parameters* drawn = NULL;
  const wide_context_options at = {.struct_size = sizeof at, .device = device};
  const wide_model_sizes sizes = {.struct_size = sizeof sizes, .dtype = WIDE_BF16};
  const wide_weight_quantization how = {.struct_size = sizeof how, .format = "int4"};
  const wide_plan_options options = {.struct_size = sizeof options, .num_members = 2, .batch = 3};
  wide_plan_info packed = {.struct_size = sizeof packed}, quantized = packed;
  OK(wide_context_create(&at, &context));
  OK(wide_graph_create_named("deep_mlp", &sizes, &dense));
  OK(wide_graph_quantize(dense, &how, &graph));
  OK(wide_plan_create(context, dense, &options, &plan));
  OK(wide_plan_query(plan, &packed));
  wide_plan_destroy(plan);
  OK(wide_plan_create(context, graph, &options, &plan));
  OK(wide_plan_query(plan, &quantized));
  CHECK(3 * quantized.weights_bytes < packed.weights_bytes);
  OK(wide_parameters_create_random(graph, 7, 0, &drawn));
  const wide_parameters* members[2] = {drawn, drawn};
  wide_model* model = NULL;
  OK(wide_model_create(context, plan, members, 2, &model));
  wide_model_destroy(model);
  wide_parameters_destroy(drawn);
  wide_plan_destroy(plan);
  wide_graph_destroy(graph);
  wide_graph_destroy(dense);
  wide_context_destroy(context);
}

static void test_lifecycle(wide_device device) {
  test_checkpoint(device);
  test_compact(device);
  test_batches(device);
  test_ragged(device);
  test_members(device);
  test_plan_options(device);
  test_quantized(device);
}

#endif
