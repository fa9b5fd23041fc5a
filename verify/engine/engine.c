/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * An engine in C: members from ONNX or safetensors files, one model of them all, requests in a
 * loop, their latencies. Needs libwide, libwide_onnx and their headers, nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wide/wide_builder.h>
#include <wide/wide_onnx.h>

static const char* const kUsage =
    "usage: engine [options] [MEMBER.onnx .. | MEMBER.safetensors ..]\n"
    "Runs all members on every request, and says how long that took.\n"
    "  --extent NAME=NUMBER  of ONNX files: a symbolic extent; as often as needed\n"
    "  --model NAME          of other files or none: mlp (default), mlp256, convnet, resnet18, "
    "bert,\n"
    "                        vit, ..; own: the one that this program builds\n"
    "  --device DEVICE       cpu (default), cuda\n"
    "  --members N           without files: so many random members (default 4)\n"
    "  --ensemble KIND       in the outputs' place: mean, variance, vote, log_mean_exp, sum\n"
    "  --batch B             rows of a request (default 1)\n"
    "  --requests R          default 200\n"
    "  --write PREFIX        writes the members to PREFIX0.safetensors, .. and ends\n"
    "  -h, --help            this text\n";

enum { kMaxExtents = 8 };

typedef struct Settings {
  const char *model, *device, *prefix, *ensemble;
  int64_t num_members, batch, num_requests;
  char** files;
  wide_onnx_extent extents[kMaxExtents];
  int64_t num_extents;
} Settings;

static void fail(const char* text) {
  fprintf(stderr, "engine: %s\n", text);
  exit(1);
}
static void must(wide_status status) {
  if (status != WIDE_OK) fail(wide_last_error());
}
static void* must_have(void* memory) {
  if (memory == NULL) fail("out of memory");
  return memory;
}

static void misuse(const char* text, const char* argument) {
  fprintf(stderr, "engine: %s %s\n%s", text, argument, kUsage);
  exit(2);
}

static int64_t positive(const char* option, const char* text) {
  char* end = NULL;
  const long long number = strtoll(text, &end, 10);
  if (*end != '\0' || number < 1 || number > 1000000) {
    fprintf(stderr, "engine: %s is %s, expected a number from 1 to 1000000\n", option, text);
    exit(2);
  }
  return number;
}

/* "sequence=128" */
static void add_extent(Settings* s, char* text) {
  char* number = strchr(text, '=');
  if (number == NULL || s->num_extents == kMaxExtents)
    misuse("--extent: expected NAME=NUMBER, at most 8 times, got", text);
  *number++ = '\0';
  s->extents[s->num_extents++] =
      (wide_onnx_extent){sizeof(wide_onnx_extent), text, positive("--extent", number)};
}

static Settings parse(int argc, char** argv) {
  Settings s = {.model = "mlp", .device = "cpu", .num_members = 4, .batch = 1, .num_requests = 200};
  for (int i = 1; i < argc; ++i) {
    const char* option = argv[i];
    if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) {
      fputs(kUsage, stdout);
      exit(0);
    }
    if (option[0] != '-') {
      s.files = argv + i;
      s.num_members = argc - i;
      break;
    }
    if (i + 1 == argc) misuse("no value behind, or no such option:", option);
    char* value = argv[++i];
    if (strcmp(option, "--model") == 0)
      s.model = value;
    else if (strcmp(option, "--device") == 0)
      s.device = value;
    else if (strcmp(option, "--ensemble") == 0)
      s.ensemble = value;
    else if (strcmp(option, "--write") == 0)
      s.prefix = value;
    else if (strcmp(option, "--extent") == 0)
      add_extent(&s, value);
    else if (strcmp(option, "--members") == 0)
      s.num_members = positive(option, value);
    else if (strcmp(option, "--batch") == 0)
      s.batch = positive(option, value);
    else if (strcmp(option, "--requests") == 0)
      s.num_requests = positive(option, value);
    else
      misuse("no such option:", option);
  }
  if (strcmp(s.device, "cpu") != 0 && strcmp(s.device, "cuda") != 0)
    misuse("--device: expected cpu or cuda, got", s.device);
  return s;
}

/* A convolution, a norm, a mean over positions, and a linear layer: as an engine writes it down.
 * A builder's first error stays, so that the last call tells it. */
static wide_graph* own_graph(void) {
  wide_builder* b = NULL;
  wide_graph* graph = NULL;
  wide_value x = 0;
  const int64_t image[4] = {WIDE_BATCH, 3, 16, 16};
  wide_conv_layer conv = {.struct_size = sizeof conv, .padding_height = 1, .padding_width = 1};
  must(wide_builder_create("own", WIDE_FP32, &b));
  wide_builder_input(b, "image", WIDE_FP32, image, 4, &x);
  wide_builder_conv(b, "stem", x, 16, &conv, &x);
  wide_builder_batchnorm(b, "norm", x, 0, &x);
  wide_builder_pointwise(b, "act", x, "relu", NULL, &x);
  wide_builder_global_average_pool(b, "pool", x, &x);
  wide_builder_flatten(b, "flat", x, &x);
  wide_builder_linear(b, "head", x, 10, NULL, &x);
  wide_builder_output(b, "scores", x);
  must(wide_graph_create(b, &graph));
  wide_builder_destroy(b);
  return graph;
}

static int is_onnx(const char* path) {
  const size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

/* Members and graph of ONNX files, which stay mapped as long as one of these handles lives. */
static wide_graph* open_onnx(const Settings* s, wide_parameters** members) {
  const wide_onnx_options options = {
      .struct_size = sizeof options, .extents = s->extents, .num_extents = s->num_extents};
  wide_members* all = NULL;
  wide_graph* graph = NULL;
  must(wide_onnx_open((const char* const*)s->files, s->num_members, &options, &all));
  must(wide_members_graph(all, &graph));
  for (int64_t i = 0; i < s->num_members; ++i) must(wide_members_get(all, i, &members[i]));
  wide_members_destroy(all);
  return graph;
}

static wide_graph* load(const Settings* s, wide_parameters** members) {
  if (s->files != NULL && is_onnx(s->files[0])) return open_onnx(s, members);
  wide_graph* graph = NULL;
  if (strcmp(s->model, "own") == 0)
    graph = own_graph();
  else
    must(wide_graph_create_named(s->model, NULL, &graph));
  for (int64_t i = 0; i < s->num_members; ++i) {
    if (s->files == NULL) {
      must(wide_parameters_create_random(graph, 1, i, &members[i]));
    } else {
      must(wide_parameters_create(&members[i]));
      must(wide_parameters_load(members[i], s->files[i]));
    }
  }
  return graph;
}

/* What the members' outputs become as one. */
static wide_graph* joined(const Settings* s, wide_graph* graph) {
  const wide_output_ensembles what = {
      .struct_size = sizeof what, .ensembles = &s->ensemble, .num_ensembles = 1};
  wide_graph* one = NULL;
  must(wide_graph_ensemble(graph, &what, &one));
  wide_graph_destroy(graph);
  return one;
}

static void write_members(const Settings* s, wide_parameters* const* members) {
  for (int64_t i = 0; i < s->num_members; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s%d.safetensors", s->prefix, (int)i);
    must(wide_parameters_save(members[i], path));
    printf("%s\n", path);
  }
}

/* Inputs or outputs: each on the device, and as many zeros on the host. */
typedef struct Operands {
  int64_t count;
  wide_tensor **device, **host;
  wide_view *device_views, *host_views;
} Operands;

static Operands make_operands(const wide_context* context, const wide_context* cpu,
                              const wide_plan* plan, int64_t count,
                              wide_status (*describe)(const wide_plan*, int64_t, wide_operand*)) {
  const size_t n = (size_t)count;
  Operands o = {count, must_have(calloc(n, sizeof(void*))), must_have(calloc(n, sizeof(void*))),
                must_have(calloc(n, sizeof(wide_view))), must_have(calloc(n, sizeof(wide_view)))};
  for (int64_t i = 0; i < count; ++i) {
    wide_operand like = {.struct_size = sizeof like};
    must(describe(plan, i, &like));
    must(wide_tensor_create(context, like.dtype, like.shape, like.rank, &o.device[i]));
    must(wide_tensor_create(cpu, like.dtype, like.shape, like.rank, &o.host[i]));
    o.device_views[i].struct_size = o.host_views[i].struct_size = sizeof(wide_view);
    must(wide_tensor_view(o.device[i], &o.device_views[i]));
    must(wide_tensor_view(o.host[i], &o.host_views[i]));
  }
  return o;
}

static void destroy_operands(Operands* o) {
  for (int64_t i = 0; i < o->count; ++i)
    wide_tensor_destroy(o->device[i]), wide_tensor_destroy(o->host[i]);
  free(o->device), free(o->host), free(o->device_views), free(o->host_views);
}

/* Numbers in [-1, 1]; zeros where ids or lengths are wanted. */
static void fill(const wide_view* view) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < view->rank; ++axis) count *= view->shape[axis];
  memset(view->data, 0, (size_t)(count * wide_dtype_bytes(view->dtype)));
  for (int64_t i = 0; view->dtype == WIDE_FP32 && i < count; ++i)
    ((float*)view->data)[i] = (float)(i * 37 % 201 - 100) / 100;
}

static double now_us(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Requests one after the other, each from the host and back, as one launch of a captured run. */
static void serve(const Settings* s, const wide_context* context, const wide_plan* plan,
                  const wide_model* model) {
  wide_plan_info info = {.struct_size = sizeof info};
  wide_context_info device = {.struct_size = sizeof device};
  wide_context* cpu = NULL;
  wide_stream* stream = NULL;
  wide_handles* handles = NULL;
  wide_tensor* workspace = NULL;
  wide_view scratch = {.struct_size = sizeof scratch};
  wide_replay* replay = NULL;
  must(wide_plan_query(plan, &info));
  must(wide_context_query(context, &device));
  must(wide_context_create_host(context, &cpu));
  Operands in = make_operands(context, cpu, plan, info.num_inputs, wide_plan_input);
  Operands out = make_operands(context, cpu, plan, info.num_outputs, wide_plan_output);
  for (int64_t i = 0; i < in.count; ++i) fill(&in.host_views[i]);
  must(wide_stream_create(context, &stream));
  must(wide_handles_create(context, &handles));
  must(wide_tensor_create(context, WIDE_UINT8, &info.workspace_bytes, 1, &workspace));
  must(wide_tensor_view(workspace, &scratch));
  void* const on = wide_stream_native(stream);
  const wide_execution execution = {.struct_size = sizeof execution,
                                    .stream = on,
                                    .workspace = scratch.data,
                                    .workspace_bytes = info.workspace_bytes,
                                    .handles = handles};
  must(wide_replay_create(model, in.device_views, in.count, out.device_views, out.count, &execution,
                          NULL, &replay));

  double* latencies = must_have(calloc((size_t)s->num_requests, sizeof *latencies));
  double begin = 0;
  for (int64_t r = -10; r < s->num_requests; ++r) { /* the first ones warm up */
    const double start = now_us();
    if (r == 0) begin = start;
    for (int64_t i = 0; i < in.count; ++i)
      must(wide_copy(&in.host_views[i], &in.device_views[i], on));
    must(wide_replay_run(replay, on));
    for (int64_t i = 0; i < out.count; ++i)
      must(wide_copy(&out.device_views[i], &out.host_views[i], on));
    must(wide_synchronize(context, on));
    if (r >= 0) latencies[r] = now_us() - start;
  }
  const double seconds = (now_us() - begin) / 1e6;
  qsort(latencies, (size_t)s->num_requests, sizeof *latencies, compare_doubles);
  printf("%d members, batch %d, %.1f MB of weights, on %s\n", (int)info.num_members,
         (int)info.batch, (double)info.weights_bytes / 1e6, device.name);
  printf("p50 %.1f us, p99 %.1f us, %.0f requests/s\n", latencies[s->num_requests / 2],
         latencies[s->num_requests * 99 / 100], (double)s->num_requests / seconds);
  if (out.host_views[0].dtype == WIDE_FP32)
    printf("first output: %.6g\n", (double)*(const float*)out.host_views[0].data);

  free(latencies);
  wide_replay_destroy(replay);
  wide_tensor_destroy(workspace);
  wide_handles_destroy(handles);
  wide_stream_destroy(stream);
  destroy_operands(&out);
  destroy_operands(&in);
  wide_context_destroy(cpu);
}

int main(int argc, char** argv) {
  const Settings s = parse(argc, argv);
  wide_parameters** members = must_have(calloc((size_t)s.num_members, sizeof *members));
  wide_graph* graph = load(&s, members);
  if (s.ensemble != NULL) graph = joined(&s, graph);
  if (s.prefix != NULL) {
    write_members(&s, members);
    return 0;
  }
  wide_context_options options = {.struct_size = sizeof options};
  if (strcmp(s.device, "cuda") == 0) options.device.type = WIDE_CUDA;
  const wide_plan_options planned = {
      .struct_size = sizeof planned, .num_members = s.num_members, .batch = s.batch};
  wide_context* context = NULL;
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  must(wide_context_create(&options, &context));
  must(wide_plan_create(context, graph, &planned, &plan));
  must(wide_model_create(context, plan, (const wide_parameters* const*)members, s.num_members,
                         &model));
  for (int64_t i = 0; i < s.num_members; ++i) wide_parameters_destroy(members[i]);
  free(members);
  wide_graph_destroy(graph);
  serve(&s, context, plan, model);
  wide_model_destroy(model);
  wide_plan_destroy(plan);
  wide_context_destroy(context);
  return 0;
}
