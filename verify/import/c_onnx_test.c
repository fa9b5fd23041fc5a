/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide_onnx.h from C11: files of one architecture as members of one model against a plain loop,
 * members of one file, what becomes of them, the order of destroying, and what is refused.
 * "c_onnx_test FOLDER [cuda]": FOLDER as verify/import/onnx_files.cpp fills it.
 */
#include "wide/wide_onnx.h"

#include <stdlib.h>
#include <threads.h>

#include "verify/c_api/c_case.h"

static const char* folder;
static const char* const kNames[kNumParameters] = {"fc1.weight", "fc1.bias", "fc2.weight",
                                                   "fc2.bias"};

/* A path in the folder, of which a few are used at a time. */
static const char* path_of(const char* name) {
  static char paths[8][1024];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static wide_members* open_members(void) {
  const char* paths[kMembers] = {path_of("member0.onnx"), path_of("member1.onnx"),
                                 path_of("member2.onnx")};
  wide_members* members = NULL;
  OK(wide_onnx_open(paths, kMembers, NULL, &members));
  return members;
}

/* The plain loop's parameters, in place `set`. */
static void note_parameters(int set, const wide_parameters* from) {
  for (int i = 0; i < kNumParameters; ++i) {
    wide_view view = {.struct_size = sizeof view};
    const int64_t* shape = kShapes[i];
    OK(wide_parameters_get(from, kNames[i], &view));
    CHECK(view.rank == 2 - i % 2 && view.dtype == WIDE_FP32 && view.shape[0] == shape[0]);
    CHECK(i % 2 == 1 || view.shape[1] == shape[1]);
    const size_t count = (size_t)(shape[0] * (i % 2 == 0 ? shape[1] : 1));
    memcpy(parameters[set][i], view.data, count * sizeof(float));
  }
  CHECK(wide_parameters_name(from, kNumParameters) == NULL);
}

static wide_parameters* get_member(const wide_members* members, int64_t member) {
  wide_parameters* got = NULL;
  OK(wide_members_get(members, member, &got));
  return got;
}

static Engine make_engine(wide_device device) {
  wide_members* members = open_members();
  wide_graph* graph = NULL;
  wide_parameters* each[kMembers];
  OK(wide_members_graph(members, &graph));
  for (int m = 0; m < kMembers; ++m) each[m] = get_member(members, m);
  wide_members_destroy(members); /* parameters keep the files */
  for (int m = 0; m < kMembers; ++m) note_parameters(m, each[m]);
  return start_engine(device, graph, each);
}

static void require_output(const Engine* e, int first, int second, int third) {
  float y[kBatchRows * kMembers * kOut];
  OK(run(e));
  read_output(e, y);
  CHECK(is_right(y, (const int[]){first, second, third}));
}

static void test_files(wide_device device) {
  Engine e = make_engine(device);
  CHECK(parameters[1][0][3] == (float)((3 * 37 + 11) % 65 - 32) / 32); /* as they were written */
  CHECK(memcmp(parameters[0], parameters[2], sizeof parameters[0]) != 0);
  require_output(&e, 0, 1, 2);
  float y[kBatchRows * kMembers * kOut];
  read_output(&e, y);
  CHECK(!is_right(y, (const int[]){0, 2, 1}));
  wide_operand x = {.struct_size = sizeof x};
  OK(wide_plan_input(e.plan, 0, &x));
  CHECK(strcmp(x.name, "x") == 0 && x.shape[1] == kMembers * kIn);

  /* What a run needs no more; all that is left goes on. */
  wide_graph_destroy(e.graph), e.graph = NULL;
  for (int m = 0; m < kMembers; ++m) wide_parameters_destroy(e.members[m]), e.members[m] = NULL;
  require_output(&e, 0, 1, 2);
  destroy_engine(&e);

  wide_members* members = open_members();
  wide_members_info info = {.struct_size = sizeof info};
  OK(wide_members_query(members, &info));
  CHECK(info.num_members == kMembers && strcmp(info.graph, "network") == 0);
  REFUSED("member is 3, expected one in [0, 3)",
          wide_members_get(members, kMembers, &(wide_parameters*){NULL}));
  wide_graph* graph = NULL;
  wide_parameters* last = get_member(members, 2); /* destroyed last of all, alone */
  OK(wide_members_graph(members, &graph));
  wide_members_destroy(members);
  wide_graph_destroy(graph);
  note_parameters(3, last);
  CHECK(memcmp(parameters[3], parameters[2], sizeof parameters[2]) == 0);
  wide_parameters_destroy(last);
}

/* One file as often as one likes, and others around it. */
static void test_one_file(wide_device device) {
  Engine e = make_engine(device);
  const char* path = path_of("member2.onnx");
  wide_members* members = NULL;
  wide_parameters* near = NULL;
  wide_model* model = NULL;
  OK(wide_onnx_open(&path, 1, NULL, &members));
  wide_parameters* only = get_member(members, 0);
  wide_members_destroy(members);
  const wide_parameters* thrice[kMembers] = {only, only, only};
  OK(wide_model_create(e.context, e.plan, thrice, kMembers, &model));
  wide_model_destroy(e.model);
  e.model = model;
  require_output(&e, 2, 2, 2);
  OK(wide_parameters_create_perturbed(only, 0.5, 3, 1, &near));
  note_parameters(3, near);
  CHECK(memcmp(parameters[3], parameters[2], sizeof parameters[2]) != 0);
  OK(wide_model_replace(e.model, 1, near, e.stream));
  require_output(&e, 2, 3, 2);
  wide_parameters_destroy(near);
  wide_parameters_destroy(only);
  destroy_engine(&e);
}

enum { kFilled = 6 * 700 };
static int is_filled(const wide_view* view) {
  int count = 0;
  for (int i = 0; i < kFilled; ++i) count += ((const float*)view->data)[i] == 0.5f;
  return count == kFilled;
}

/* A weight of which a file has one number: in C it is all there, and makes a round trip. */
static void test_filled(void) {
  const char* path = path_of("filled.onnx");
  const wide_device cpu = {WIDE_CPU, 0};
  const char* saved = scratch("filled", cpu);
  wide_members* members = NULL;
  wide_graph* graph = NULL;
  wide_context* context = NULL;
  wide_plan* plan = NULL;
  wide_view view = {.struct_size = sizeof view};
  OK(wide_onnx_open(&path, 1, NULL, &members));
  OK(wide_members_graph(members, &graph));
  wide_parameters* own = get_member(members, 0);
  wide_members_destroy(members); /* parameters keep what they are shown as */
  const char* name = wide_parameters_name(own, 0);
  OK(wide_parameters_get(own, name, &view));
  CHECK(view.rank == 2 && view.shape[0] * view.shape[1] == kFilled);
  CHECK(view.strides[0] == view.shape[1] && view.strides[1] == 1);
  CHECK(is_filled(&view));

  wide_parameters* again = NULL;
  OK(wide_parameters_create(&again));
  OK(wide_parameters_set(again, name, &view));
  OK(wide_context_create(NULL, &context));
  OK(wide_plan_create(context, graph, NULL, &plan));
  const wide_parameters* const each[2] = {own, again};
  for (int i = 0; i < 2; ++i) {
    wide_model* model = NULL;
    OK(wide_model_create(context, plan, &each[i], 1, &model));
    wide_parameters* got = NULL;
    OK(wide_model_get(model, 0, NULL, &got));
    OK(wide_parameters_get(got, name, &view));
    CHECK(is_filled(&view));
    wide_parameters_destroy(got);
    wide_model_destroy(model);
  }
  OK(wide_parameters_save(own, saved));
  remove(saved);
  wide_parameters_destroy(again);
  wide_parameters_destroy(own);
  wide_plan_destroy(plan);
  wide_context_destroy(context);
  wide_graph_destroy(graph);
}

/* Members that came from ONNX, through a checkpoint and back; cloned, compacted. */
static void test_lifecycle(wide_device device) {
  const char* path = scratch("members", device);
  Engine e = make_engine(device);
  wide_members* saved = NULL;
  OK(wide_model_clone(e.model, 1, 0, e.stream));
  require_output(&e, 1, 1, 2);
  OK(wide_model_save(e.model, path, e.stream));
  OK(wide_model_replace(e.model, 2, e.members[0], e.stream));
  require_output(&e, 1, 1, 0);
  OK(wide_members_open(path, &saved));
  FAILS(WIDE_UNSUPPORTED, "\"network\"", wide_members_graph(saved, &(wide_graph*){NULL}));
  wide_parameters* back = get_member(saved, 2);
  wide_members_destroy(saved);
  remove(path);
  note_parameters(3, back);
  CHECK(memcmp(parameters[3], parameters[2], sizeof parameters[2]) == 0); /* bit for bit */
  OK(wide_model_replace(e.model, 0, back, e.stream));
  wide_parameters_destroy(back);
  require_output(&e, 2, 1, 0);
  int64_t count = 0;
  OK(wide_model_mask(e.model, 1, e.stream));
  OK(wide_model_compact(e.model, e.stream, NULL, &count));
  CHECK(count == 2);
  require_output(&e, 2, 0, 0);
  wide_parameters* got = NULL;
  OK(wide_model_get(e.model, 1, e.stream, &got));
  note_parameters(3, got);
  CHECK(memcmp(parameters[3], parameters[0], sizeof parameters[0]) == 0);
  wide_parameters_destroy(got);
  destroy_engine(&e);
}

static wide_onnx_file read_whole(const char* name) {
  wide_onnx_file file = {.struct_size = sizeof file, .name = name};
  FILE* stream = fopen(path_of(name), "rb");
  char* data = malloc(1 << 16);
  if (stream == NULL || data == NULL) {
    CHECK(!"the folder has its files");
    exit(1);
  }
  file.bytes = (int64_t)fread(data, 1, 1 << 16, stream);
  file.data = data;
  fclose(stream);
  return file;
}

static void test_parse(wide_device device) {
  wide_onnx_file files[2] = {read_whole("member0.onnx"), read_whole("member1.onnx")};
  wide_members* members = NULL;
  OK(wide_onnx_parse(files, 2, NULL, &members));
  wide_graph* graph = NULL;
  OK(wide_members_graph(members, &graph));
  wide_parameters* each[kMembers] = {get_member(members, 0), get_member(members, 1),
                                     get_member(members, 1)};
  wide_members_destroy(members);
  Engine e = start_engine(device, graph, each);
  require_output(&e, 0, 1, 1);
  destroy_engine(&e);

  members = NULL;
  const wide_onnx_file good = files[1];
  REFUSED("wide_onnx_parse: files is null", wide_onnx_parse(NULL, 2, NULL, &members));
  REFUSED("out is null", wide_onnx_parse(files, 2, NULL, NULL));
  REFUSED("there is no file", wide_onnx_parse(files, 0, NULL, &members));
  REFUSED("number of files is -1", wide_onnx_parse(files, -1, NULL, &members));
  files[1].struct_size -= 8;
  REFUSED("files[1].struct_size is", wide_onnx_parse(files, 2, NULL, &members));
  files[1] = good, files[1].data = NULL;
  REFUSED("files[1].data is null", wide_onnx_parse(files, 2, NULL, &members));
  files[1] = good, files[1].bytes = -5;
  REFUSED("-5", wide_onnx_parse(files, 2, NULL, &members));
  files[1] = good, files[1].bytes /= 2;
  REFUSED("onnx: member1.onnx: field 7", wide_onnx_parse(files, 2, NULL, &members));
  files[1] = good, files[1].name = NULL;
  REFUSED("files[1].name is null", wide_onnx_parse(files, 2, NULL, &members));
  CHECK(members == NULL);
  free((void*)files[0].data);
  free((void*)good.data);
}

/* Extents, shared and fixed inputs, outputs, each by what it changes in a plan. */
static void test_options(void) {
  const char* const path = path_of("symbolic.onnx");
  const wide_onnx_extent extent = {sizeof extent, "s", 5};
  const wide_onnx_fixed_input mask = {sizeof mask, "mask", 2};
  const char *const common = "common", *const z = "z";
  wide_onnx_options options = {.struct_size = sizeof options, .extents = &extent, .num_extents = 1};
  wide_members* members = NULL;
  wide_graph* graph = NULL;
  wide_context* cpu = NULL;
  wide_plan* plan = NULL;
  wide_operand operand = {.struct_size = sizeof operand};
  wide_plan_info info = {.struct_size = sizeof info};
  const wide_plan_options planned = {.struct_size = sizeof planned, .num_members = 3, .batch = 2};
  OK(wide_context_create(NULL, &cpu));
  for (int round = 0; round < 3; ++round) {
    if (round == 1) options.shared_inputs = &common, options.num_shared_inputs = 1;
    if (round == 1) options.fixed_inputs = &mask, options.num_fixed_inputs = 1;
    if (round == 2) options.outputs = &z, options.num_outputs = 1;
    OK(wide_onnx_open(&path, 1, &options, &members));
    OK(wide_members_graph(members, &graph));
    OK(wide_plan_create(cpu, graph, &planned, &plan));
    OK(wide_plan_query(plan, &info));
    CHECK(info.num_inputs == (round == 0 ? 3 : 2) && info.num_outputs == (round == 2 ? 1 : 2));
    OK(wide_plan_input(plan, 0, &operand));
    CHECK(operand.shape[0] == 2 && operand.shape[1] == 3 * 5);
    OK(wide_plan_input(plan, info.num_inputs - 1, &operand));
    CHECK(strcmp(operand.name, "common") == 0 && (operand.member_axis == -1) == (round > 0));
    wide_plan_destroy(plan);
    wide_graph_destroy(graph);
    wide_members_destroy(members);
  }
  wide_context_destroy(cpu);
}

static void refuse_options(void) {
  const char* const path = path_of("symbolic.onnx");
  wide_onnx_extent extent = {sizeof extent, "s", 5};
  wide_onnx_fixed_input fixed = {sizeof fixed, "maks", 1};
  const char* word = NULL;
  wide_members* members = NULL;
  FAILS(WIDE_UNSUPPORTED, "has extent \"s\" on axis 1", wide_onnx_open(&path, 1, NULL, &members));
#define REFUSED_WITH(words, ...)                                                           \
  do {                                                                                     \
    const wide_onnx_options options = {                                                    \
        .struct_size = sizeof options, .extents = &extent, .num_extents = 1, __VA_ARGS__}; \
    REFUSED(words, wide_onnx_open(&path, 1, &options, &members));                          \
  } while (0)
  REFUSED_WITH("options.shared_inputs is null", .num_shared_inputs = 1);
  REFUSED_WITH("options.shared_inputs[0] is null", .shared_inputs = &word, .num_shared_inputs = 1);
  REFUSED_WITH("options.outputs is null", .num_outputs = 1);
  REFUSED_WITH("options.outputs[0] is null", .outputs = &word, .num_outputs = 1);
  REFUSED_WITH("the number of options.outputs is -1", .num_outputs = -1);
  REFUSED_WITH("options.fixed_inputs is null", .num_fixed_inputs = 2);
  REFUSED_WITH("it has no input \"maks\"", .fixed_inputs = &fixed, .num_fixed_inputs = 1);
  word = "commmon";
  REFUSED_WITH("it has no input \"commmon\"", .shared_inputs = &word, .num_shared_inputs = 1);
  REFUSED_WITH("it has no output \"commmon\"", .outputs = &word, .num_outputs = 1);
  fixed.name = NULL;
  REFUSED_WITH("options.fixed_inputs[0].name is null", .fixed_inputs = &fixed,
               .num_fixed_inputs = 1);
  fixed.struct_size = 4;
  REFUSED_WITH("options.fixed_inputs[0].struct_size is 4", .fixed_inputs = &fixed,
               .num_fixed_inputs = 1);
  extent.extent = -7;
  const wide_onnx_options negative = {
      .struct_size = sizeof negative, .extents = &extent, .num_extents = 1};
  FAILS(WIDE_INVALID_ARGUMENT, "extent \"s\" is -7, expected 1 to 1099511627776",
        wide_onnx_open(&path, 1, &negative, &members));
  extent.name = NULL;
  REFUSED_WITH("options.extents[0].name is null", .num_outputs = 0);
  extent.struct_size = 4000; /* more than any version's */
  REFUSED_WITH("options.extents[0].struct_size is 4000", .num_outputs = 0);
#undef REFUSED_WITH
  wide_onnx_options options = {.struct_size = sizeof options, .num_extents = 1};
  REFUSED("options.extents is null", wide_onnx_open(&path, 1, &options, &members));
  options.struct_size -= 8;
  REFUSED("options.struct_size is 64, expected sizeof = 72",
          wide_onnx_open(&path, 1, &options, &members));
  struct {
    wide_onnx_options known;
    int64_t later;
  } newer = {{.struct_size = sizeof newer}, 1};
  FAILS(WIDE_UNSUPPORTED, "options of struct_size 80 has something at byte 72",
        wide_onnx_open(&path, 1, &newer.known, &members));
  CHECK(members == NULL);
}

static void refuse_files(void) {
  const char* paths[2] = {path_of("member0.onnx"), NULL};
  wide_members* members = NULL;
  REFUSED("wide_onnx_open: paths is null", wide_onnx_open(NULL, 1, NULL, &members));
  REFUSED("paths[1] is null", wide_onnx_open(paths, 2, NULL, &members));
  REFUSED("out is null", wide_onnx_open(paths, 1, NULL, NULL));
  REFUSED("there is no file", wide_onnx_open(paths, 0, NULL, &members));
  REFUSED("the number of paths is -2", wide_onnx_open(paths, -2, NULL, &members));
  paths[1] = path_of("no-such-file.onnx");
  FAILS(WIDE_IO_ERROR, "no-such-file.onnx", wide_onnx_open(paths, 2, NULL, &members));
  FAILS(WIDE_IO_ERROR, "", wide_onnx_open(&folder, 1, NULL, &members));
  paths[1] = path_of("garbage.onnx");
  REFUSED("garbage.onnx: ", wide_onnx_open(paths, 2, NULL, &members));
  paths[1] = path_of("cut.onnx");
  REFUSED("cut.onnx: field 7", wide_onnx_open(paths, 2, NULL, &members));
  paths[1] = path_of("tanh.onnx");
  REFUSED("tanh.onnx is no member of", wide_onnx_open(paths, 2, NULL, &members));
  REFUSED("node \"node_a\" is pointwise (function tanh", wide_onnx_open(paths, 2, NULL, &members));
  paths[1] = path_of("erf.onnx");
  FAILS(WIDE_UNSUPPORTED, "node \"node_a\" (Erf)", wide_onnx_open(paths, 2, NULL, &members));
  CHECK(members == NULL);
}

/* Members are read by all threads at once; each has its own last error, whichever library failed.
 */
static int read_members(void* argument) {
  const wide_members* members = argument;
  char words[64];
  snprintf(words, sizeof words, "no-such-%p", (void*)&words);
  const char* const path = words;
  int is_right = strcmp(wide_last_error(), "") == 0;
  for (int i = 0; i < 100; ++i) {
    wide_parameters* got = NULL;
    wide_graph* graph = NULL;
    is_right &= wide_members_get(members, i % kMembers, &got) == WIDE_OK;
    is_right &= wide_members_graph(members, &graph) == WIDE_OK;
    is_right &= wide_onnx_open(&path, 1, NULL, &(wide_members*){NULL}) == WIDE_IO_ERROR;
    is_right &= strstr(wide_last_error(), words) != NULL;
    wide_parameters_destroy(got);
    wide_graph_destroy(graph);
  }
  return is_right;
}

static void test_threads(void) {
  wide_members* members = open_members();
  REFUSED("paths is null", wide_onnx_open(NULL, 1, NULL, &(wide_members*){NULL}));
  thrd_t threads[3];
  for (int i = 0; i < 3; ++i) {
    CHECK(thrd_create(&threads[i], read_members, members) == thrd_success);
  }
  for (int i = 0; i < 3; ++i) {
    int is_right = 0;
    CHECK(thrd_join(threads[i], &is_right) == thrd_success && is_right);
  }
  CHECK(strstr(wide_last_error(), "wide_onnx_open: paths is null") != NULL);
  wide_members_destroy(members);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  program = argv[0];
  folder = argv[1];
  const wide_device device = {argc > 2 && strcmp(argv[2], "cuda") == 0 ? WIDE_CUDA : WIDE_CPU, 0};
  for (int i = 0; i < kBatchRows * kMembers * kIn; ++i) inputs[i] = next_random();
  test_files(device);
  test_one_file(device);
  test_filled();
  test_lifecycle(device);
  test_parse(device);
  test_options();
  refuse_options();
  refuse_files();
  test_threads();
  printf("c_onnx_test: %d checks, %d failed\n", num_checks, num_failures);
  return num_failures == 0 ? 0 : 1;
}
