/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: layers with numbers of their own, each against what it is by hand.
 */
#ifndef WIDE_VERIFY_C_API_BUILDERS_H
#define WIDE_VERIFY_C_API_BUILDERS_H

enum { kImageRows = 2, kImageColumns = 4, kImage = kImageRows * kImageColumns, kMaxLayers = 16 };
static const float kPixels[kImage] = {1, -2, 3, -4, 8, 6, -7, 5};

/* A graph of one member on the CPU: x [B, 1, 2, 4], and an output for each layer. */
typedef struct Layers {
  wide_builder* builder;
  wide_value x;
  int num_outputs;
  const float* expected[kMaxLayers];
  int64_t counts[kMaxLayers];
  const int32_t* ids; /* [1, 2], of a second, shared input; or null */
} Layers;

static Layers begin_layers(void) {
  const int64_t shape[4] = {WIDE_BATCH, 1, kImageRows, kImageColumns};
  Layers layers = {.builder = make_builder(), .x = 0};
  OK(wide_builder_input(layers.builder, "x", WIDE_FP32, shape, 4, &layers.x));
  return layers;
}

/* What `y` is to be; `expected` is read by check_layers(). */
static void expect(Layers* layers, wide_value y, const float* expected, int64_t count) {
  char name[16];
  snprintf(name, sizeof name, "y%d", layers->num_outputs);
  OK(wide_builder_output(layers->builder, name, y));
  layers->expected[layers->num_outputs] = expected;
  layers->counts[layers->num_outputs++] = count;
}
#define EXPECT(layers, y, ...)                    \
  expect(layers, y, (const float[]){__VA_ARGS__}, \
         (int64_t)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)))

static void check_layers(Layers* layers, const wide_parameters* parameters_of_one) {
  wide_context* cpu = NULL;
  wide_graph* graph = NULL;
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  wide_tensor* workspace = NULL;
  OK(wide_context_create(NULL, &cpu));
  OK(wide_graph_create(layers->builder, &graph));
  OK(wide_plan_create(cpu, graph, NULL, &plan));
  OK(wide_model_create(cpu, plan, &parameters_of_one, 1, &model));
  wide_plan_info info = {.struct_size = sizeof info};
  wide_view scratch = {.struct_size = sizeof scratch};
  OK(wide_plan_query(plan, &info));
  OK(wide_tensor_create(cpu, WIDE_UINT8, &info.workspace_bytes, 1, &workspace));
  OK(wide_tensor_view(workspace, &scratch));
  float x[kImage], y[kMaxLayers][kImage] = {{0}};
  memcpy(x, kPixels, sizeof x);
  const int64_t shape[4] = {1, 1, kImageRows, kImageColumns};
  wide_view in[2] = {host_view(x, 4, shape)};
  int32_t ids[2] = {0};
  if (layers->ids != NULL) {
    const int64_t two[2] = {1, 2};
    memcpy(ids, layers->ids, sizeof ids);
    in[1] = host_view(ids, 2, two);
    in[1].dtype = WIDE_INT32;
  }
  struct { /* as of a later header */
    wide_view known;
    int64_t later;
  } out[kMaxLayers] = {0};
  for (int i = 0; i < layers->num_outputs; ++i) {
    wide_operand operand = {.struct_size = sizeof operand};
    OK(wide_plan_output(plan, i, &operand));
    out[i].known = host_view(y[i], operand.rank, operand.shape);
    out[i].known.struct_size = sizeof *out;
    int64_t count = 1;
    for (int axis = 0; axis < operand.rank; ++axis) count *= operand.shape[axis];
    CHECK(count == layers->counts[i]);
  }
  const wide_execution execution = {.struct_size = sizeof execution,
                                    .workspace = scratch.data,
                                    .workspace_bytes = info.workspace_bytes};
  OK(wide_model_run(model, in, layers->ids == NULL ? 1 : 2, &out[0].known, layers->num_outputs,
                    &execution));
  for (int i = 0; i < layers->num_outputs; ++i) {
    for (int64_t k = 0; k < layers->counts[i]; ++k) {
      char what[64];
      const float got = y[i][k], expected = layers->expected[i][k];
      snprintf(what, sizeof what, "y%d[%d] is %g, expected %g", i, (int)k, got, expected);
      check(fabsf(got - expected) < 1e-5f, what, __FILE__, __LINE__);
    }
  }
  wide_tensor_destroy(workspace);
  wide_model_destroy(model);
  wide_plan_destroy(plan);
  wide_graph_destroy(graph);
  wide_builder_destroy(layers->builder);
  wide_context_destroy(cpu);
}

static wide_value pointwise(Layers* l, const char* function, wide_pointwise_layer options) {
  wide_value y = 0;
  options.struct_size = sizeof options;
  char name[32];
  snprintf(name, sizeof name, "%s%d", function, l->num_outputs);
  OK(wide_builder_pointwise(l->builder, name, l->x, function, &options, &y));
  return y;
}

static void test_elements(void) {
  Layers l = begin_layers();
  wide_parameters* slopes = NULL;
  float slope[kImageColumns] = {0.5f, 0.25f, 2, 4};
  const int64_t four = kImageColumns;
  const wide_view view = host_view(slope, 1, &four);
  OK(wide_parameters_create(&slopes));
  OK(wide_parameters_set(slopes, "prelu0.weight", &view));
  EXPECT(&l, pointwise(&l, "prelu", (wide_pointwise_layer){.num_slopes = kImageColumns}),  //
         1, -0.5f, 3, -16, 8, 6, -14, 5);
  EXPECT(&l, pointwise(&l, "leaky_relu", (wide_pointwise_layer){0}),  //
         1, -0.02f, 3, -0.04f, 8, 6, -0.07f, 5);
  EXPECT(&l, pointwise(&l, "leaky_relu", (wide_pointwise_layer){.slope = 0.5f}),  //
         1, -1, 3, -2, 8, 6, -3.5f, 5);
  EXPECT(&l, pointwise(&l, "clamp", (wide_pointwise_layer){0}), 1, -1, 1, -1, 1, 1, -1, 1);
  EXPECT(&l, pointwise(&l, "clamp", (wide_pointwise_layer){.high = 6}), 1, 0, 3, 0, 6, 6, 0, 5);
  EXPECT(&l, pointwise(&l, "clamp", (wide_pointwise_layer){.low = -3}), 0, -2, 0, -3, 0, 0, -3, 0);
  EXPECT(&l, pointwise(&l, "elu", (wide_pointwise_layer){.alpha = 2}),  //
         1, 2 * expm1f(-2), 3, 2 * expm1f(-4), 8, 6, 2 * expm1f(-7), 5);
  EXPECT(&l, pointwise(&l, "softplus", (wide_pointwise_layer){.beta = 2}),  //
         log1pf(expf(2)) / 2, log1pf(expf(-4)) / 2, log1pf(expf(6)) / 2, log1pf(expf(-8)) / 2,
         log1pf(expf(16)) / 2, log1pf(expf(12)) / 2, log1pf(expf(-14)) / 2, log1pf(expf(10)) / 2);

  wide_value relu = pointwise(&l, "relu", (wide_pointwise_layer){0}), y = 0;
  OK(wide_builder_binary(l.builder, "sub", l.x, relu, "subtract", &y));
  EXPECT(&l, y, 0, -2, 0, -4, 0, 0, -7, 0);
  OK(wide_builder_binary(l.builder, "mul", l.x, relu, "multiply", &y));
  EXPECT(&l, y, 1, 0, 9, 0, 64, 36, 0, 25);
  OK(wide_builder_binary(l.builder, "div", relu, l.x, "divide", &y));
  EXPECT(&l, y, 1, 0, 1, 0, 1, 1, 0, 1);
  OK(wide_builder_binary(l.builder, "sum", l.x, relu, "add", &y));
  EXPECT(&l, y, 2, -2, 6, -4, 16, 12, -7, 10);
  check_layers(&l, slopes);
  wide_parameters_destroy(slopes);
}

/* (x - mean) / sqrt(variance + epsilon) of `count` pixels from `first` on; without a mean: rms. */
static void normalise(float* y, int first, int count, int has_mean, float epsilon) {
  float mean = 0, square = 0;
  for (int i = first; i < first + count; ++i) mean += has_mean ? kPixels[i] / (float)count : 0;
  for (int i = first; i < first + count; ++i) {
    square += (kPixels[i] - mean) * (kPixels[i] - mean) / (float)count;
  }
  for (int i = first; i < first + count; ++i) {
    y[i] = (kPixels[i] - mean) / sqrtf(square + epsilon);
  }
}

/* gamma is 1, and 2 for the last channel or feature; beta 0 and 1. */
static void set_norm(wide_parameters* all, const char* name, int64_t count, int has_beta) {
  static float gamma[kImageColumns] = {1, 1, 1, 2}, beta[kImageColumns] = {0, 0, 0, 1};
  char text[32];
  const wide_view scale = host_view(gamma + kImageColumns - count, 1, &count);
  const wide_view shift = host_view(beta + kImageColumns - count, 1, &count);
  snprintf(text, sizeof text, "%s.weight", name);
  OK(wide_parameters_set(all, text, &scale));
  snprintf(text, sizeof text, "%s.bias", name);
  if (has_beta) OK(wide_parameters_set(all, text, &shift));
}

static void test_norms(void) {
  Layers l = begin_layers();
  wide_parameters* all = NULL;
  wide_value y = 0;
  float layer[kImage], rms[kImage], group[kImage];
  OK(wide_parameters_create(&all));
  for (int row = 0; row < kImageRows; ++row) {
    const int last = (row + 1) * kImageColumns - 1;
    normalise(layer, row * kImageColumns, kImageColumns, 1, 0.5f);
    normalise(rms, row * kImageColumns, kImageColumns, 0, 1e-5f);
    layer[last] = 2 * layer[last] + 1;
    rms[last] *= 2;
  }
  normalise(group, 0, kImage, 1, 1e-5f);
  for (int i = 0; i < kImage; ++i) group[i] = 2 * group[i] + 1;
  set_norm(all, "layer", kImageColumns, 1);
  set_norm(all, "rms", kImageColumns, 0);
  set_norm(all, "group", 1, 1);
  set_norm(all, "instance", 1, 1);
  OK(wide_builder_layernorm(l.builder, "layer", l.x, 0.5f, &y));
  expect(&l, y, layer, kImage);
  OK(wide_builder_rmsnorm(l.builder, "rms", l.x, 0, &y));
  expect(&l, y, rms, kImage);
  OK(wide_builder_groupnorm(l.builder, "group", l.x, 1, 0, &y));
  expect(&l, y, group, kImage);
  OK(wide_builder_instancenorm(l.builder, "instance", l.x, 0, &y));
  expect(&l, y, group, kImage);
  check_layers(&l, all);
  wide_parameters_destroy(all);
}

static void test_rows_and_tables(void) {
  Layers l = begin_layers();
  wide_parameters* all = NULL;
  wide_value y = 0, ids = 0;
  float shares[kImage], logs[kImage];
  for (int row = 0; row < kImageRows; ++row) {
    float sum = 0;
    for (int i = 0; i < kImageColumns; ++i) sum += expf(kPixels[row * kImageColumns + i]);
    for (int i = row * kImageColumns; i < (row + 1) * kImageColumns; ++i) {
      shares[i] = expf(kPixels[i]) / sum;
      logs[i] = kPixels[i] - logf(sum);
    }
  }
  OK(wide_builder_softmax(l.builder, "shares", l.x, &y));
  expect(&l, y, shares, kImage);
  OK(wide_builder_log_softmax(l.builder, "logs", l.x, &y));
  expect(&l, y, logs, kImage);
  OK(wide_builder_add(l.builder, "twice", l.x, l.x, &y));
  EXPECT(&l, y, 2, -4, 6, -8, 16, 12, -14, 10);
  OK(wide_builder_dropout(l.builder, "kept", y, 0.5f, &y)); /* the plan does not drop */
  OK(wide_builder_member_dropout(l.builder, "own", y, &y));
  EXPECT(&l, y, 2, -4, 6, -8, 16, 12, -14, 10);
  EXPECT(&l, y, 2, -4, 6, -8, 16, 12, -14, 10);

  static const int32_t kIds[2] = {2, 0};
  static float table[3 * 2] = {1, 2, 3, 4, 5, 6};
  static float half[1] = {0.5f};
  const int64_t sequence[2] = {WIDE_BATCH, 2}, rows[2] = {3, 2}, one[1] = {1};
  const wide_view weights = host_view(table, 2, rows), probability = host_view(half, 1, one);
  OK(wide_parameters_create(&all));
  OK(wide_parameters_set(all, "table.weight", &weights));
  OK(wide_parameters_set(all, "own.probability", &probability));
  OK(wide_builder_shared_input(l.builder, "ids", WIDE_INT32, sequence, 2, &ids));
  OK(wide_builder_embedding(l.builder, "table", ids, 3, 2, &y));
  EXPECT(&l, y, 5, 6, 1, 2);
  l.ids = kIds;
  check_layers(&l, all);
  wide_parameters_destroy(all);
}

static void test_pools(void) {
  Layers l = begin_layers();
  wide_parameters* none = NULL;
  wide_value y = 0;
  OK(wide_parameters_create(&none));
  wide_pool_layer pool = {.struct_size = sizeof pool, .kernel_height = 2, .kernel_width = 3};
  pool.stride_width = 2;
  OK(wide_builder_max_pool(l.builder, "max", l.x, &pool, &y));
  EXPECT(&l, y, 8);
  pool.is_ceil_mode = 1;
  OK(wide_builder_max_pool(l.builder, "ceil", l.x, &pool, &y));
  EXPECT(&l, y, 8, 5);
  pool = (wide_pool_layer){.struct_size = sizeof pool, .kernel_width = 2, .dilation_width = 3};
  OK(wide_builder_max_pool(l.builder, "apart", l.x, &pool, &y));
  EXPECT(&l, y, 1, 8);
  pool = (wide_pool_layer){.struct_size = sizeof pool, .kernel_height = 2, .kernel_width = 2};
  OK(wide_builder_average_pool(l.builder, "mean", l.x, &pool, &y));
  EXPECT(&l, y, 3.25f, -0.75f);
  pool.stride_height = 1, pool.stride_width = 4, pool.padding_height = 1, pool.padding_width = 1;
  OK(wide_builder_average_pool(l.builder, "padded", l.x, &pool, &y));
  EXPECT(&l, y, 0.25f, -1, 2.25f, 0.25f, 2, 1.25f);
  pool.counts_no_padding = 1;
  OK(wide_builder_average_pool(l.builder, "inside", l.x, &pool, &y));
  EXPECT(&l, y, 1, -4, 4.5f, 0.5f, 8, 5);
  pool = (wide_pool_layer){.struct_size = sizeof pool, .kernel_width = 2, .is_channels_last = 1};
  OK(wide_builder_max_pool(l.builder, "last", l.x, &pool, &y)); /* one row of two pixels */
  EXPECT(&l, y, 8, 6, 3, 5);
  OK(wide_builder_adaptive_average_pool(l.builder, "parts", l.x, 2, 2, &y));
  EXPECT(&l, y, -0.5f, -0.5f, 7, -1);
  OK(wide_builder_global_average_pool(l.builder, "all", l.x, &y));
  EXPECT(&l, y, 1.25f);
  check_layers(&l, none);
  wide_parameters_destroy(none);
}

/* NAME.weight_ih_SUFFIX and so on of one unit that reads four features: biases alone. */
static void set_unit(wide_parameters* units, const char* name, const char* suffix, float biases[4],
                     int64_t gates) {
  static float zeros[4 * kImageColumns]; /* read when the model is made */
  const struct {
    const char* kind;
    int64_t columns;
    float* values;
  } all[] = {{"weight_ih", kImageColumns, zeros},
             {"weight_hh", 1, zeros},
             {"bias_ih", 0, biases},
             {"bias_hh", 0, zeros}};
  for (int i = 0; i < 4; ++i) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s_%s", name, all[i].kind, suffix);
    const int64_t shape[2] = {gates, all[i].columns};
    const wide_view view = host_view(all[i].values, all[i].columns == 0 ? 1 : 2, shape);
    OK(wide_parameters_set(units, full, &view));
  }
}

static void test_recurrent(void) {
  Layers l = begin_layers();
  wide_parameters* units = NULL;
  wide_value rows = 0, y = 0;
  const int64_t shape[3] = {WIDE_BATCH, kImageRows, kImageColumns};
  float open[4] = {100, 100, 100, 100}, candidate[4] = {0, -100, 0.5f, 0};
  OK(wide_parameters_create(&units));
  set_unit(units, "lstm", "l0", open, 4);
  set_unit(units, "gru", "l1", candidate, 3);
  set_unit(units, "states", "l0", open, 4);
  set_unit(units, "more", "l0", open, 4);
  set_unit(units, "both", "l0", open, 4);
  set_unit(units, "both", "l0_reverse", open, 4);
  OK(wide_builder_reshape(l.builder, "rows", l.x, shape, 3, &rows));
  OK(wide_builder_recurrent(l.builder, "lstm", rows, 1, NULL, &y));
  EXPECT(&l, y, tanhf(1), tanhf(2));
  wide_recurrent_layer layer = {.struct_size = sizeof layer, .is_gru = 1, .suffix = "l1"};
  OK(wide_builder_recurrent(l.builder, "gru", rows, 1, &layer, &y));
  EXPECT(&l, y, tanhf(0.5f), tanhf(0.5f));
  layer = (wide_recurrent_layer){.struct_size = sizeof layer, .is_bidirectional = 1};
  OK(wide_builder_recurrent(l.builder, "both", rows, 1, &layer, &y));
  EXPECT(&l, y, tanhf(1), tanhf(2), tanhf(2), tanhf(1));
  wide_value hidden = 0, cell = 0;
  layer = (wide_recurrent_layer){
      .struct_size = sizeof layer, .last_hidden = &hidden, .last_cell = &cell};
  OK(wide_builder_recurrent(l.builder, "states", rows, 1, &layer, &y));
  EXPECT(&l, hidden, tanhf(2));
  EXPECT(&l, cell, 2);
  layer.first_hidden = hidden, layer.first_cell = cell;
  OK(wide_builder_recurrent(l.builder, "more", rows, 1, &layer, &y));
  EXPECT(&l, y, tanhf(3), tanhf(4));
  EXPECT(&l, cell, 4);
  check_layers(&l, units);
  wide_parameters_destroy(units);
}

/* Two positions of four features, of which all heads' scores are as `bias` has them: the first
 * position, or the second. */
static void test_attention(void) {
  Layers l = begin_layers();
  wide_parameters* weights = NULL;
  wide_value rows = 0, none = 0, y = 0, bias = 0;
  const int64_t shape[3] = {WIDE_BATCH, kImageRows, kImageColumns}, order[3] = {0, 2, 1};
  const int64_t scores[3] = {1, kImageRows, kImageRows}, one[1] = {1};
  float far[4] = {-1e9f, 0, 0, -1e9f}, unit[3][4][4] = {{{0}}};
  for (int i = 0; i < 4; ++i) unit[2][i][i] = unit[0][i][i] = 1;
  const int64_t thirds[2] = {3 * kImageColumns, kImageColumns};
  const int64_t square[2] = {kImageColumns, kImageColumns};
  float steep[1] = {1e9f};
  const wide_view far_view = host_view(far, 3, scores), steep_view = host_view(steep, 1, one);
  const wide_view third_view = host_view(&unit[0][0][0], 2, thirds);
  const wide_view unit_view = host_view(&unit[2][0][0], 2, square);
  OK(wide_parameters_create(&weights));
  OK(wide_parameters_set(weights, "bias", &far_view));
  OK(wide_parameters_set(weights, "slopes", &steep_view));
  OK(wide_parameters_set(weights, "cross.in_proj_weight", &third_view));
  OK(wide_parameters_set(weights, "cross.out_proj.weight", &unit_view));
  OK(wide_builder_parameter(l.builder, "bias", WIDE_FP32, scores, 3, &bias));
  OK(wide_builder_reshape(l.builder, "rows", l.x, shape, 3, &rows));
  wide_flash_attention_layer core = {.struct_size = sizeof core, .bias = bias};
  OK(wide_builder_flash_attention(l.builder, "core", rows, rows, rows, 2, &core, &y));
  EXPECT(&l, y, 8, 6, -7, 5, 1, -2, 3, -4);
  core = (wide_flash_attention_layer){.struct_size = sizeof core, .scale = 1e6f, .is_causal = 1};
  OK(wide_builder_flash_attention(l.builder, "causal", rows, rows, rows, 1, &core, &y));
  EXPECT(&l, y, 1, -2, 3, -4, 8, 6, -7, 5);
  OK(wide_builder_slice(l.builder, "key", rows, 2, 0, 2, &none));
  core = (wide_flash_attention_layer){.struct_size = sizeof core, .kv_heads = 1, .scale = 1e6f};
  OK(wide_builder_flash_attention(l.builder, "shared", rows, none, none, 2, &core, &y));
  EXPECT(&l, y, 1, -2, 1, -2, 8, 6, 1, -2);
  core = (wide_flash_attention_layer){.struct_size = sizeof core, .window = 1}; /* itself alone */
  OK(wide_builder_flash_attention(l.builder, "near", rows, rows, rows, 4, &core, &y));
  expect(&l, y, kPixels, kImage);
  /* Scores that do not tell positions apart; a slope that does. */
  core = (wide_flash_attention_layer){.struct_size = sizeof core, .soft_cap = 1e-7f};
  OK(wide_builder_flash_attention(l.builder, "capped", rows, rows, rows, 1, &core, &y));
  EXPECT(&l, y, 4.5f, 2, -2, 0.5f, 4.5f, 2, -2, 0.5f);
  OK(wide_builder_parameter(l.builder, "slopes", WIDE_FP32, one, 1, &core.slopes));
  OK(wide_builder_flash_attention(l.builder, "sloped", rows, rows, rows, 1, &core, &y));
  expect(&l, y, kPixels, kImage);
  wide_attention_layer layer = {.struct_size = sizeof layer, .has_no_bias = 1, .key = rows};
  OK(wide_builder_attention(l.builder, "cross", rows, 4, &layer, &y)); /* keys of zeros: the mean */
  EXPECT(&l, y, 4.5f, 2, -2, 0.5f, 4.5f, 2, -2, 0.5f);
  OK(wide_builder_transpose(l.builder, "turn", rows, order, 3, &y));
  EXPECT(&l, y, 1, 8, -2, 6, 3, -7, -4, 5);
  check_layers(&l, weights);
  wide_parameters_destroy(weights);
}

/* Planes (1, -2), (3, -4), (8, 6), (-7, 5), by 1 and by 10 times the plane three further on. */
static void test_volumes(void) {
  Layers l = begin_layers();
  wide_parameters* weights = NULL;
  wide_value planes = 0, y = 0;
  const int64_t shape[5] = {WIDE_BATCH, 1, 4, 1, 2}, kernel[5] = {1, 1, 2, 1, 1};
  float taps[2] = {1, 10};
  const wide_view view = host_view(taps, 5, kernel);
  OK(wide_parameters_create(&weights));
  OK(wide_parameters_set(weights, "conv.weight", &view));
  OK(wide_builder_reshape(l.builder, "planes", l.x, shape, 5, &planes));
  const wide_conv_layer layer = {.struct_size = sizeof layer,
                                 .kernel_height = 1,
                                 .kernel_width = 1,
                                 .has_no_bias = 1,
                                 .kernel_depth = 2,
                                 .stride_depth = 2,
                                 .padding_depth = 1,
                                 .dilation_depth = 3};
  OK(wide_builder_conv(l.builder, "conv", planes, 1, &layer, &y));
  EXPECT(&l, y, 80, 60, 3, -4);
  check_layers(&l, weights);
  wide_parameters_destroy(weights);
}

static void refuse_pool_without_outputs(void) {
  wide_builder* builder = make_builder();
  wide_value x = 0, y = 0;
  const int64_t image[4] = {WIDE_BATCH, 2, 4, 4};
  OK(wide_builder_input(builder, "x", WIDE_FP32, image, 4, &x));
  REFUSED("pool: pooling: out_height is 0, expected 1 to",
          wide_builder_adaptive_average_pool(builder, "pool", x, 0, 0, &y));
  CHECK(y == 0);
  wide_builder_destroy(builder);
}

/* Two members' masks of one input: a pass each of two sequences, the second by advancing. */
static void test_monte_carlo(void) {
  wide_context* cpu = NULL;
  wide_graph* graph = NULL;
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  wide_parameters* none = NULL;
  wide_builder* builder = make_builder();
  wide_value y = 0;
  const int64_t shape[2] = {WIDE_BATCH, kImage}, one[2] = {1, kImage}, two[2] = {1, 2 * kImage};
  OK(wide_builder_shared_input(builder, "x", WIDE_FP32, shape, 2, &y));
  OK(wide_builder_dropout(builder, "drop", y, 0.5f, &y));
  OK(wide_builder_output(builder, "y", y));
  OK(wide_graph_create(builder, &graph));
  OK(wide_context_create(NULL, &cpu));
  const wide_plan_options options = {
      .struct_size = sizeof options, .num_members = 2, .drops_out = 1};
  OK(wide_plan_create(cpu, graph, &options, &plan));
  OK(wide_parameters_create(&none));
  OK(wide_model_create(cpu, plan, (const wide_parameters*[]){none, none}, 2, &model));
  float x[kImage], passes[4][2 * kImage];
  memcpy(x, kPixels, sizeof x);
  const wide_view in = host_view(x, 2, one);
  const wide_execution execution = {.struct_size = sizeof execution};
  for (int k = 0; k < 4; ++k) {
    const wide_view out = host_view(passes[k], 2, two);
    if (k % 2 == 0) OK(wide_model_seed_dropout(model, 3, 4 + (uint64_t)(k / 2), NULL));
    if (k % 2 == 1) OK(wide_model_advance_dropout(model, NULL));
    OK(wide_model_run(model, &in, 1, &out, 1, &execution));
  }
  CHECK(memcmp(passes[1], passes[2], sizeof passes[1]) == 0);
  CHECK(memcmp(passes[0], passes[1], sizeof passes[1]) != 0);
  CHECK(memcmp(passes[2], passes[3], sizeof passes[1]) != 0);

  wide_replay* replay = NULL;
  float replayed[2 * kImage];
  const wide_view again = host_view(replayed, 2, two);
  const wide_replay_options advances = {.struct_size = sizeof advances, .advances_dropout = 1};
  OK(wide_replay_create(model, &in, 1, &again, 1, &execution, &advances, &replay));
  OK(wide_model_seed_dropout(model, 3, 4, NULL));
  OK(wide_replay_run(replay, NULL));
  CHECK(memcmp(replayed, passes[1], sizeof replayed) == 0);
  OK(wide_replay_run(replay, NULL));
  CHECK(memcmp(replayed, passes[3], sizeof replayed) == 0);
  wide_replay_destroy(replay);
  wide_model_destroy(model);
  wide_parameters_destroy(none);
  wide_plan_destroy(plan);
  wide_graph_destroy(graph);
  wide_builder_destroy(builder);
  wide_context_destroy(cpu);
}

static void test_builders(void) {
  test_attention();
  test_elements();
  test_norms();
  test_rows_and_tables();
  test_pools();
  refuse_pool_without_outputs();
  test_monte_carlo();
  test_recurrent();
  test_volumes();
}

#endif
