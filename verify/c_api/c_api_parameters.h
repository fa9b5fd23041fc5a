/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: what parameters a graph has, as an engine with a file format of its own
 * asks for them.
 */
#ifndef WIDE_VERIFY_C_API_PARAMETERS_H
#define WIDE_VERIFY_C_API_PARAMETERS_H

static wide_parameter_info parameter_of(const wide_graph* graph, int64_t index) {
  wide_parameter_info info = {.struct_size = sizeof info};
  OK(wide_graph_parameter(graph, index, &info));
  return info;
}

/* A member as a loader makes it, which knows the network by its list alone: of zeros. */
static wide_parameters* make_listed(const wide_graph* graph) {
  static float zeros[kHidden * kHidden];
  wide_graph_info graph_info = {.struct_size = sizeof graph_info};
  wide_parameters* made = NULL;
  OK(wide_graph_query(graph, &graph_info));
  OK(wide_parameters_create(&made));
  for (int64_t i = 0; i < graph_info.num_parameters; ++i) {
    const wide_parameter_info info = parameter_of(graph, i);
    CHECK(info.dtype == WIDE_FP32);
    const wide_view view = host_view(zeros, info.rank, info.shape);
    OK(wide_parameters_set(made, info.name, &view));
  }
  return made;
}

/* What a graph reads and computes, before there is a plan. */
static void test_values_of_graphs(void) {
  wide_graph* graph = make_graph();
  wide_graph_info info = {.struct_size = sizeof info};
  wide_graph_value value = {.struct_size = sizeof value};
  OK(wide_graph_query(graph, &info));
  CHECK(info.num_inputs == 1 && info.num_outputs == 1);
  OK(wide_graph_input(graph, 0, &value));
  CHECK(strcmp(value.name, "x") == 0 && value.dtype == WIDE_FP32 && value.rank == 2);
  CHECK(value.shape[0] == WIDE_BATCH && value.shape[1] == kIn && !value.is_shared);
  OK(wide_graph_output(graph, 0, &value));
  CHECK(strcmp(value.name, "y") == 0 && value.dtype == WIDE_FP32 && value.rank == 2);
  CHECK(value.shape[0] == WIDE_BATCH && value.shape[1] == kOut && !value.is_shared);
  REFUSED("input is 1, expected one in [0, 1)", wide_graph_input(graph, 1, &value));
  REFUSED("output is -1, expected one in [0, 1)", wide_graph_output(graph, -1, &value));
  REFUSED("graph is null", wide_graph_input(NULL, 0, &value));
  REFUSED("graph is null", wide_graph_output(NULL, 0, &value));
  REFUSED("out is null", wide_graph_input(graph, 0, NULL));
  REFUSED("out is null", wide_graph_output(graph, 0, NULL));
  wide_graph_destroy(graph);

  wide_builder* builder = make_builder();
  const int64_t shape[3] = {WIDE_BATCH, 2, 3};
  wide_value x = 0;
  OK(wide_builder_shared_input(builder, "images", WIDE_FP32, shape, 3, &x));
  OK(wide_builder_linear(builder, "fc", x, 4, NULL, &x));
  OK(wide_builder_output(builder, "features", x));
  OK(wide_graph_create(builder, &graph));
  OK(wide_graph_input(graph, 0, &value));
  CHECK(value.is_shared && value.rank == 3 && value.shape[2] == 3);
  OK(wide_graph_output(graph, 0, &value));
  CHECK(!value.is_shared && value.shape[2] == 4 && strcmp(value.name, "features") == 0);
  wide_graph_destroy(graph);
  wide_builder_destroy(builder);
}

static void test_listed_parameters(wide_device device) {
  Engine e = make_engine(device);
  wide_graph_info graph = {.struct_size = sizeof graph};
  wide_plan_info plan = {.struct_size = sizeof plan};
  OK(wide_graph_query(e.graph, &graph));
  OK(wide_plan_query(e.plan, &plan));
  CHECK(strcmp(graph.name, "mlp") == 0 && graph.num_parameters == kNumParameters);
  CHECK(plan.num_parameters == kNumParameters);
  for (int p = 0; p < kNumParameters; ++p) {
    const wide_parameter_info info = parameter_of(e.graph, p);
    wide_parameter_info planned = {.struct_size = sizeof planned};
    OK(wide_plan_parameter(e.plan, p, &planned));
    CHECK(strcmp(info.name, kNames[p]) == 0 && strcmp(planned.name, kNames[p]) == 0);
    CHECK(info.rank == (p % 2 == 0 ? 2 : 1) && planned.rank == info.rank);
    CHECK(memcmp(info.shape, kShapes[p], sizeof kShapes[p]) == 0); /* unused extents are 0 */
    CHECK(memcmp(planned.shape, info.shape, sizeof info.shape) == 0);
    CHECK(info.dtype == WIDE_FP32 && planned.dtype == WIDE_FP32);
    CHECK(!info.is_shared && !planned.is_shared);
  }
  wide_parameters* listed = make_listed(e.graph);
  OK(wide_model_replace(e.model, 1, listed, e.stream));
  OK(run(&e));
  float y[kBatchRows * kMembers * kOut];
  read_output(&e, y);
  for (int i = 0; i < kOut; ++i) CHECK(y[kOut + i] == 0); /* row 0 of member 1 */
  wide_parameters_destroy(listed);

  wide_parameter_info info = {.struct_size = sizeof info};
  REFUSED("parameter is 4, expected one in [0, 4)", wide_graph_parameter(e.graph, 4, &info));
  REFUSED("parameter is -1, expected one in [0, 4)", wide_plan_parameter(e.plan, -1, &info));
  REFUSED("graph is null", wide_graph_parameter(NULL, 0, &info));
  REFUSED("plan is null", wide_plan_parameter(NULL, 0, &info));
  REFUSED("out is null", wide_graph_parameter(e.graph, 0, NULL));
  REFUSED("out is null", wide_plan_parameter(e.plan, 0, NULL));
  REFUSED("graph is null", wide_graph_query(NULL, &graph));
  REFUSED("out is null", wide_graph_query(e.graph, NULL));
  destroy_engine(&e);
}

/* The same x and the same fc1 for all members, each with an fc2 of its own. */
static void test_shared_parameters(void) {
  wide_builder* builder = make_builder();
  wide_graph* graph = NULL;
  wide_value x = 0;
  const int64_t shape[2] = {WIDE_BATCH, kIn};
  wide_builder_shared_input(builder, "x", WIDE_FP32, shape, 2, &x);
  wide_builder_linear(builder, "fc1", x, kHidden, NULL, &x);
  wide_builder_linear(builder, "fc2", x, kOut, NULL, &x);
  wide_builder_output(builder, "y", x);
  OK(wide_graph_create(builder, &graph));
  wide_builder_destroy(builder);

  wide_context* cpu = NULL;
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  const wide_plan_options options = {.struct_size = sizeof options,
                                     .num_members = 2,
                                     .shared_parameters = kNames,
                                     .num_shared_parameters = 2};
  OK(wide_context_create(NULL, &cpu));
  OK(wide_plan_create(cpu, graph, &options, &plan));
  for (int p = 0; p < kNumParameters; ++p) {
    wide_parameter_info info = {.struct_size = sizeof info};
    OK(wide_plan_parameter(plan, p, &info));
    CHECK(info.is_shared == (p < 2));
    CHECK(!parameter_of(graph, p).is_shared);
  }
  wide_parameters *zeros = make_listed(graph), *other = make_parameters(0);
  const wide_parameters* members[2] = {zeros, other};
  REFUSED("differs from that of the other members",
          wide_model_create(cpu, plan, members, 2, &model));
  wide_parameters_destroy(other);
  wide_parameters_destroy(zeros);
  wide_plan_destroy(plan);
  wide_graph_destroy(graph);
  wide_context_destroy(cpu);
}

/* A file in which names say whose tensors they are. */
static void test_prefixed_parameters(wide_device device) {
  const char* path = scratch("prefixed", device);
  wide_parameters *all = NULL, *one = NULL;
  wide_view view = {.struct_size = sizeof view};
  OK(wide_parameters_create(&all));
  for (int m = 0; m < 2; ++m) {
    for (int i = 0; i < kNumParameters; ++i) {
      char name[32];
      snprintf(name, sizeof name, "member%d.%s", m, kNames[i]);
      view = host_view(parameters[m][i], i % 2 == 0 ? 2 : 1, kShapes[i]);
      OK(wide_parameters_set(all, name, &view));
    }
  }
  OK(wide_parameters_save(all, path));
  wide_parameters_destroy(all);
  OK(wide_parameters_create(&all));
  OK(wide_parameters_load(all, path));
  REFUSED("parameters is null", wide_parameters_create_prefixed(NULL, "", &one));
  REFUSED("prefix is null", wide_parameters_create_prefixed(all, NULL, &one));
  REFUSED("out is null", wide_parameters_create_prefixed(all, "", NULL));
  REFUSED("prefix is \"member2.\"", wide_parameters_create_prefixed(all, "member2.", &one));
  OK(wide_parameters_create_prefixed(all, "member1.", &one));
  wide_parameters_destroy(all);
  remove(path);
  for (int i = 0; i < kNumParameters; ++i) {
    OK(wide_parameters_get(one, kNames[i], &view)); /* of a file that is still mapped */
    const int64_t count = kShapes[i][0] * (i % 2 == 0 ? kShapes[i][1] : 1);
    CHECK(memcmp(view.data, parameters[1][i], (size_t)count * sizeof(float)) == 0);
  }
  CHECK(wide_parameters_name(one, kNumParameters) == NULL);
  wide_parameters_destroy(one);
}

/* A file of a larger network, with tensors of dtypes that wide lacks: "mask", and one of `type`
 * in the place of net.fc2.bias. */
static void write_larger_file(const char* path, const char* type) {
  char header[2048];
  int64_t end = 2;
  int length = snprintf(header, sizeof header,
                        "{\"mask\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}");
  for (int i = 0; i < kNumParameters; ++i) {
    const int has_columns = kShapes[i][1] != 0, is_last = i == kNumParameters - 1;
    const int64_t begin = end, count = kShapes[i][0] * (has_columns ? kShapes[i][1] : 1);
    char columns[24] = "";
    if (has_columns) snprintf(columns, sizeof columns, ",%d", (int)kShapes[i][1]);
    end += count * (int64_t)sizeof(float);
    length += snprintf(header + length, sizeof header - (size_t)length,
                       ",\"net.%s\":{\"dtype\":\"%s\",\"shape\":[%d%s],\"data_offsets\":[%d,%d]}",
                       kNames[i], is_last ? type : "F32", (int)kShapes[i][0], columns, (int)begin,
                       (int)end);
  }
  length += snprintf(header + length, sizeof header - (size_t)length, "}");
  const uint64_t size = (uint64_t)length;
  remove(path); /* it may be mapped */
  FILE* file = fopen(path, "wb");
  fwrite(&size, sizeof size, 1, file);
  fwrite(header, 1, (size_t)length, file);
  fwrite("\1\0", 1, 2, file);
  for (int i = 0; i < kNumParameters; ++i)
    fwrite(parameters[1][i], sizeof(float),
           (size_t)(kShapes[i][0] * (kShapes[i][1] != 0 ? kShapes[i][1] : 1)), file);
  fclose(file);
}

/* Of a file that has more, what a graph needs. */
static void test_loading_for_a_graph(wide_device device) {
  const char* path = scratch("larger", device);
  wide_graph* graph = make_graph();
  wide_parameters* own = NULL;
  wide_view view = {.struct_size = sizeof view};
  write_larger_file(path, "F32");
  OK(wide_parameters_create(&own));
  FAILS(WIDE_UNSUPPORTED, "mask", wide_parameters_load(own, path));
  FAILS(WIDE_UNSUPPORTED, "mask", wide_parameters_load_for(own, path, NULL, NULL));
  REFUSED("no tensor \"fc1.weight\"", wide_parameters_load_for(own, path, NULL, graph));
  REFUSED("no tensor \"nets.fc1.weight\"", wide_parameters_load_for(own, path, "nets.", graph));
  REFUSED("parameters is null", wide_parameters_load_for(NULL, path, "net.", graph));
  REFUSED("path is null", wide_parameters_load_for(own, NULL, "net.", graph));
  CHECK(wide_parameters_name(own, 0) == NULL);
  for (int with_graph = 0; with_graph < 2; ++with_graph) {
    OK(wide_parameters_load_for(own, path, "net.", with_graph ? graph : NULL));
    CHECK(wide_parameters_name(own, kNumParameters) == NULL);
    for (int i = 0; i < kNumParameters; ++i) {
      OK(wide_parameters_get(own, kNames[i], &view));
      CHECK(memcmp(view.data, parameters[1][i], (size_t)kShapes[i][0] * sizeof(float)) == 0);
    }
    wide_parameters_destroy(own);
    OK(wide_parameters_create(&own));
  }
  write_larger_file(path, "I32");
  OK(wide_parameters_load_for(own, path, "net.", graph)); /* a model refuses it */
  write_larger_file(path, "U32");
  FAILS(WIDE_UNSUPPORTED, "net.fc2.bias", wide_parameters_load_for(own, path, "net.", graph));
  remove(path);
  wide_parameters_destroy(own);
  wide_graph_destroy(graph);
}

#endif
