/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * An engine in C: members from safetensors files, one model of them all, requests in a loop, their
 * latencies. Needs wide.h and libwide, nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wide/wide_builder.h>

static const char* const kUsage =
    "usage: engine [options] [MEMBER.safetensors ..]\n"
    "Runs all members on every request, and says how long that took.\n"
    "  --model NAME     mlp (default), mlp256, convnet, resnet18, bert, vit, ..; own: the one "
    "that\n"
    "                   this program builds\n"
    "  --device DEVICE  cpu (default), cuda\n"
    "  --members N      without files: so many random members (default 4)\n"
    "  --batch B        rows of a request (default 1)\n"
    "  --requests R     default 200\n"
    "  --write PREFIX   writes the members to PREFIX0.safetensors, .. and ends\n"
    "  -h, --help       this text\n";

typedef struct Settings {
  const char *model, *device, *prefix;
  int64_t num_members, batch, num_requests;
  char** files;
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

static Settings parse(int argc, char** argv) {
  Settings s = {"mlp", "cpu", NULL, 4, 1, 200, NULL};
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
    const char* value = argv[++i];
    if (strcmp(option, "--model") == 0)
      s.model = value;
    else if (strcmp(option, "--device") == 0)
      s.device = value;
    else if (strcmp(option, "--write") == 0)
      s.prefix = value;
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
  wide_value x = WIDE_ABSENT;
  const int64_t image[4] = {WIDE_BATCH, 3, 16, 16};
  wide_conv_layer conv = {.struct_size = sizeof conv, .padding_height = 1, .padding_width = 1};
  must(wide_builder_create("own", WIDE_FP32, &b));
  wide_builder_input(b, "image", WIDE_FP32, image, 4, &x);
  wide_builder_conv(b, "stem", x, 16, &conv, &x);
  wide_builder_batchnorm(b, "norm", x, 0, &x);
  wide_builder_pointwise(b, "act", x, "relu", &x);
  wide_builder_global_average_pool(b, "pool", x, &x);
  wide_builder_flatten(b, "flat", x, &x);
  wide_builder_linear(b, "head", x, 10, NULL, &x);
  wide_builder_output(b, "scores", x);
  must(wide_graph_create(b, &graph));
  wide_builder_destroy(b);
  return graph;
}

static wide_parameters** load_members(const Settings* s, const wide_graph* graph) {
  wide_parameters** members = must_have(calloc((size_t)s->num_members, sizeof *members));
  for (int64_t i = 0; i < s->num_members; ++i) {
    if (s->files == NULL) {
      must(wide_parameters_create_random(graph, 1, i, &members[i]));
    } else {
      must(wide_parameters_create(&members[i]));
      must(wide_parameters_load(members[i], s->files[i]));
    }
    if (s->prefix == NULL) continue;
    char path[4096];
    snprintf(path, sizeof path, "%s%d.safetensors", s->prefix, (int)i);
    must(wide_parameters_save(members[i], path));
    printf("%s\n", path);
  }
  return members;
}

/* An operand on the device, and as many zeros on the host. */
typedef struct Operand {
  wide_tensor *device, *host;
  wide_view device_view, host_view;
} Operand;

static Operand make_operand(const wide_context* context, const wide_context* cpu,
                            const wide_operand* like) {
  Operand o = {.device_view.struct_size = sizeof(wide_view),
               .host_view.struct_size = sizeof(wide_view)};
  must(wide_tensor_create(context, like->dtype, like->shape, like->rank, &o.device));
  must(wide_tensor_create(cpu, like->dtype, like->shape, like->rank, &o.host));
  must(wide_tensor_view(o.device, &o.device_view));
  must(wide_tensor_view(o.host, &o.host_view));
  return o;
}

/* Numbers in [-1, 1]; zeros where ids or lengths are wanted. */
static void fill(const wide_view* view, int64_t bytes) {
  memset(view->data, 0, (size_t)bytes);
  if (view->dtype != WIDE_FP32) return;
  for (int64_t i = 0; i < bytes / 4; ++i)
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

int main(int argc, char** argv) {
  const Settings s = parse(argc, argv);
  wide_context *context = NULL, *cpu = NULL;
  wide_context_options options = {.struct_size = sizeof options};
  if (strcmp(s.device, "cuda") == 0) options.device.type = WIDE_CUDA;
  must(wide_context_create(&options, &context));
  must(wide_context_create(NULL, &cpu));

  wide_graph* graph = NULL;
  if (strcmp(s.model, "own") == 0)
    graph = own_graph();
  else
    must(wide_graph_create_named(s.model, NULL, &graph));
  wide_parameters** members = load_members(&s, graph);
  if (s.prefix != NULL) return 0;

  const wide_plan_options planned = {
      .struct_size = sizeof planned, .num_members = s.num_members, .batch = s.batch};
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  must(wide_plan_create(context, graph, &planned, &plan));
  must(wide_model_create(context, plan, (const wide_parameters* const*)members, s.num_members,
                         &model));
  for (int64_t i = 0; i < s.num_members; ++i) wide_parameters_destroy(members[i]);
  free(members);

  wide_plan_info info = {.struct_size = sizeof info};
  wide_operand like = {.struct_size = sizeof like};
  must(wide_plan_query(plan, &info));
  if (info.num_inputs != 1 || info.num_outputs != 1)
    fail("the model has several inputs or outputs, expected one of each");
  must(wide_plan_input(plan, 0, &like));
  const Operand x = make_operand(context, cpu, &like);
  must(wide_plan_output(plan, 0, &like));
  const Operand y = make_operand(context, cpu, &like);
  fill(&x.host_view, info.input_bytes);

  wide_stream* stream = NULL;
  wide_handles* handles = NULL;
  wide_tensor* workspace = NULL;
  wide_view scratch = {.struct_size = sizeof scratch};
  wide_replay* replay = NULL;
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
  must(wide_replay_create(model, &x.device_view, 1, &y.device_view, 1, &execution, &replay));

  double* latencies = must_have(calloc((size_t)s.num_requests, sizeof *latencies));
  double begin = 0;
  for (int64_t i = -10; i < s.num_requests; ++i) { /* the first ones warm up */
    const double start = now_us();
    if (i == 0) begin = start;
    must(wide_copy(&x.host_view, &x.device_view, on));
    must(wide_replay_run(replay, on));
    must(wide_copy(&y.device_view, &y.host_view, on));
    must(wide_synchronize(context, on));
    if (i >= 0) latencies[i] = now_us() - start;
  }
  const double seconds = (now_us() - begin) / 1e6;
  qsort(latencies, (size_t)s.num_requests, sizeof *latencies, compare_doubles);

  wide_context_info device = {.struct_size = sizeof device};
  must(wide_context_query(context, &device));
  printf("%s: %d members, batch %d, %.1f MB of weights, on %s\n", s.model, (int)s.num_members,
         (int)s.batch, (double)info.weights_bytes / 1e6, device.name);
  printf("p50 %.1f us, p99 %.1f us, %.0f requests/s\n", latencies[s.num_requests / 2],
         latencies[s.num_requests * 99 / 100], (double)s.num_requests / seconds);
  if (y.host_view.dtype == WIDE_FP32)
    printf("first output: %.6g\n", (double)*(const float*)y.host_view.data);

  free(latencies);
  wide_replay_destroy(replay);
  wide_tensor_destroy(workspace);
  wide_handles_destroy(handles);
  wide_stream_destroy(stream);
  wide_tensor_destroy(y.host), wide_tensor_destroy(y.device);
  wide_tensor_destroy(x.host), wide_tensor_destroy(x.device);
  wide_model_destroy(model);
  wide_plan_destroy(plan);
  wide_graph_destroy(graph);
  wide_context_destroy(cpu);
  wide_context_destroy(context);
  return 0;
}
