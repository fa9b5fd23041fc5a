// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An engine in C++: members from ONNX or safetensors files, one model of them all, requests in a
// loop, their latencies. Needs libwide, libwide_onnx and their headers, nothing else.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <wide/onnx.hpp>
#include <wide/wide.hpp>

namespace {

constexpr const char* kUsage =
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
    "  -h, --help            this text\n";

struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Settings {
  std::string model = "mlp", device = "cpu";
  int64_t num_members = 4, batch = 1, num_requests = 200;
  std::vector<std::string> files;
  std::optional<wide::EnsembleFunction> ensemble;
  wide::OnnxOptions onnx;
  bool wants_help = false;
};

int64_t positive(std::string_view option, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc{} || end != text.end() || number < 1 || number > 1000000) {
    throw Misuse(std::string(option) + " is " + std::string(text) +
                 ", expected a number from 1 to 1000000");
  }
  return number;
}

wide::EnsembleFunction ensemble_of(const std::string& name) {
  const std::optional<wide::EnsembleFunction> kind = wide::parse_ensemble_function(name);
  if (!kind) throw Misuse("--ensemble is " + name + ", expected one of those below");
  return *kind;
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "-h" || option == "--help") {
      s.wants_help = true;
      return s;
    }
    if (!option.starts_with("-")) {
      s.files.assign(argv + i, argv + argc);
      s.num_members = argc - i;
      break;
    }
    if (i + 1 == argc) throw Misuse("no value behind, or no such option: " + option);
    const std::string value = argv[++i];
    if (option == "--model")
      s.model = value;
    else if (option == "--device")
      s.device = value;
    else if (option == "--ensemble")
      s.ensemble = ensemble_of(value);
    else if (option == "--extent" && value.find('=') != value.npos)
      s.onnx.extents[value.substr(0, value.find('='))] =
          positive(option, value.substr(value.find('=') + 1));
    else if (option == "--extent")
      throw Misuse("--extent: expected NAME=NUMBER, got " + value);
    else if (option == "--members")
      s.num_members = positive(option, value);
    else if (option == "--batch")
      s.batch = positive(option, value);
    else if (option == "--requests")
      s.num_requests = positive(option, value);
    else
      throw Misuse("no such option: " + option);
  }
  if (s.device != "cpu" && s.device != "cuda")
    throw Misuse("--device is " + s.device + ", expected cpu or cuda");
  return s;
}

/// A convolution, a norm, a mean over positions, and a linear layer: as an engine writes it down.
wide::Graph own_graph() {
  using namespace wide;
  GraphBuilder g("own");
  Value x = g.input("image", {kBatch, 3, 16, 16});
  x = layers::conv(g, "stem", x, 16, {.padding = {1, 1}});
  x = layers::relu(g, "act", layers::batchnorm(g, "norm", x));
  x = layers::flatten(g, "flat", layers::global_average_pool(g, "pool", x));
  g.output("scores", layers::linear(g, "head", x, 10));
  return std::move(g).build();
}

/// What the members' outputs become as one, where that is wanted.
wide::Graph joined(const wide::Graph& graph, const Settings& s) {
  return s.ensemble ? wide::with_ensembles(graph, {.ensembles = {*s.ensemble}}) : graph;
}

/// A model, with what its files or its random members are kept in until it has been made.
wide::Model load_model(const wide::Context& context, const Settings& s) {
  if (!s.files.empty() && s.files[0].ends_with(".onnx")) {
    const wide::OnnxModel onnx = wide::OnnxModel::open(s.files, s.onnx);
    return wide::compile(context, joined(onnx.graph(), s), onnx.members(), s.batch);
  }
  const wide::Graph graph = s.model == "own" ? own_graph() : wide::make_named_model(s.model);
  std::vector<wide::Safetensors> files;
  std::vector<wide::OwnedParameters> random;
  std::vector<wide::MemberParameters> members;
  for (int64_t i = 0; i < s.num_members; ++i) {
    if (s.files.empty()) {
      random.push_back(wide::random_parameters(graph, 1, i));
      members.push_back(wide::views_of(random.back()));
    } else {
      files.push_back(wide::Safetensors::open(s.files[static_cast<size_t>(i)]));
      members.push_back(wide::parameters_of(files.back()));
    }
  }
  return wide::compile(context, joined(graph, s), members, s.batch);
}

/// Inputs or outputs: each on the device, and as many zeros on the host.
template <class View>
struct Operands {
  std::vector<wide::Tensor> device, host;
  std::vector<View> views;
  Operands(const wide::Context& context, const wide::Context& cpu,
           std::span<const wide::ModelOperand> all) {
    for (const wide::ModelOperand& like : all) {
      views.emplace_back(device.emplace_back(context, like.dtype, like.shape));
      wide::Tensor& own = host.emplace_back(cpu, like.dtype, like.shape);
      std::memset(own.data(), 0, static_cast<size_t>(own.bytes()));
    }
  }
};

/// Numbers in [-1, 1]; zeros where ids or lengths are wanted.
void fill(wide::Tensor& x) {
  for (int64_t i = 0; x.dtype() == wide::Dtype::fp32 && i < x.num_elements(); ++i) {
    static_cast<float*>(x.data())[i] = static_cast<float>(i * 37 % 201 - 100) / 100;
  }
}

/// Requests one after the other, each from the host and back, as one launch of a captured run.
void serve(const wide::Context& context, const wide::Model& model, const Settings& s) {
  const wide::ModelPlan& plan = model.plan();
  const wide::Context cpu =
      wide::Context::cpu({.num_threads = 1, .allocator = wide::pinned_allocator(context)});
  Operands<wide::ConstTensorView> in(context, cpu, plan.inputs());
  Operands<wide::TensorView> out(context, cpu, plan.outputs());
  for (wide::Tensor& x : in.host) fill(x);
  const wide::OwnedStream stream(context);
  const wide::VendorHandles handles(context);
  wide::Tensor workspace(context, wide::Dtype::uint8, {plan.workspace_bytes()});
  const wide::Execution execution{stream.get(), {workspace.data(), workspace.bytes()}, &handles};
  const wide::ModelReplay replay(context, model, {in.views, out.views}, execution);

  using Clock = std::chrono::steady_clock;
  std::vector<double> latencies_us;
  latencies_us.reserve(static_cast<size_t>(s.num_requests));
  Clock::time_point begin{};
  for (int64_t i = -10; i < s.num_requests; ++i) {  // the first ones warm up
    const auto start = Clock::now();
    if (i == 0) begin = start;
    for (size_t k = 0; k < in.host.size(); ++k) wide::copy(in.host[k], in.device[k], stream.get());
    replay.run(stream.get());
    for (size_t k = 0; k < out.host.size(); ++k)
      wide::copy(out.device[k], out.host[k], stream.get());
    context.synchronize(stream.get());
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (i >= 0) latencies_us.push_back(took.count());
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::sort(latencies_us.begin(), latencies_us.end());
  const size_t n = latencies_us.size();
  std::printf("%d members, batch %d, %.1f MB of weights, on %s\n", static_cast<int>(s.num_members),
              static_cast<int>(s.batch), static_cast<double>(plan.memory().weights_bytes) / 1e6,
              context.info().name.c_str());
  std::printf("p50 %.1f us, p99 %.1f us, %.0f requests/s\n", latencies_us[n / 2],
              latencies_us[n * 99 / 100], static_cast<double>(n) / took.count());
  const wide::Tensor& first = out.host.front();
  if (first.dtype() == wide::Dtype::fp32)
    std::printf("first output: %.6g\n",
                static_cast<double>(*static_cast<const float*>(first.data())));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings s = parse(argc, argv);
    if (s.wants_help) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    const wide::Context context =
        s.device == "cuda" ? wide::Context::cuda(0) : wide::Context::cpu();
    serve(context, load_model(context, s), s);
    return 0;
  } catch (const Misuse& error) {
    std::fprintf(stderr, "engine: %s\n%s", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine: %s\n", error.what());
    return 1;
  }
}
