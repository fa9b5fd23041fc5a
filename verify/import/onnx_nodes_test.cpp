// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX's own tests: every model of libonnx-testdata is imported and computes what it should, or is
// refused by the name of its node. What a graph computes is judged twice: one member by plain loops
// against ONNX's numbers, and two members, each with numbers of its own, as a model.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "host/core/file.hpp"
#include "host/import/onnx/numbers.hpp"
#include "host/model/graph_reference.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/onnx_case.hpp"
#include "wide/error.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide;
using catalog::Doubles;
namespace fs = std::filesystem;

struct Sample {
  std::string model;
  std::vector<std::string> inputs, outputs;  ///< TensorProtos
};

Sample read_sample(const fs::path& folder) {
  Sample sample{read_file(folder / "model.onnx"), {}, {}};
  const auto add = [&](const char* kind, std::vector<std::string>& to) {
    for (int i = 0;; ++i) {
      const fs::path path =
          folder / "test_data_set_0" / (std::string(kind) + std::to_string(i) + ".pb");
      if (!fs::exists(path)) return;
      to.push_back(read_file(path));
    }
  };
  add("input_", sample.inputs);
  add("output_", sample.outputs);
  return sample;
}

/// Without nodes where it is refused.
onnx::OnnxFile parsed(const std::string& model) {
  onnx::OnnxFile file;
  file.where = "model";
  try {
    onnx::read_onnx(file, model);
  } catch (const Error&) {
    return {};
  }
  return file;
}

/// None for what is no tensor that wide has: sequences, texts, doubles.
std::optional<onnx::Initializer> tensor_of(const std::string& bytes) {
  try {
    onnx::OnnxFile none;
    return onnx::read_tensor(none, bytes, "tensor");
  } catch (const Error&) {
    return {};
  }
}

std::optional<Doubles> doubles_of(const std::string& bytes) {
  const std::optional<onnx::Initializer> read = tensor_of(bytes);
  if (!read || read->data == nullptr) return {};
  if (read->type->number == 9) {  // truths are numbers in a graph
    Doubles truths{{read->shape.begin(), read->shape.end()}, {}};
    for (int64_t i = 0; i < num_elements(read->shape); ++i)
      truths.values.push_back(static_cast<double>(onnx::load_number(*read, i)));
    return truths;
  }
  if (!read->type->dtype) return {};
  return catalog::to_doubles({read->data, *read->type->dtype, read->shape, Device{}});
}

bool is_close(const Doubles& got, const Doubles& expected) {
  if (got.shape != expected.shape) return false;
  for (size_t i = 0; i < got.values.size(); ++i) {
    const double error = std::abs(got.values[i] - expected.values[i]);
    if (!(error <= 1e-6 + 1e-3 * std::abs(expected.values[i]))) return false;
  }
  return true;
}

enum class Verdict { passed, refused, wrong };
struct Outcome {
  Verdict verdict = Verdict::refused;
  std::string why;
  Graph graph;  ///< of what passed
  ErrorCode code = ErrorCode::unsupported;
};

/// With those inputs as initializers whose place is not `computed`; all inputs are computed where
/// it is -1. Only the first outputs are wanted.
Outcome try_import(const Sample& sample, int computed, size_t num_outputs) {
  const onnx::OnnxFile file = parsed(sample.model);
  std::string model = sample.model;
  std::set<std::string> initialised;
  for (const onnx::Initializer& initializer : file.initializers)
    initialised.insert(initializer.name);
  std::map<std::string, Doubles> inputs;
  size_t place = 0;
  for (const onnx::ValueInfo& info : file.inputs) {
    if (initialised.contains(info.name) || place >= sample.inputs.size()) continue;
    const std::string& tensor = sample.inputs[place];
    if (computed >= 0 && place != static_cast<size_t>(computed) && tensor_of(tensor)) {
      model += test::onnx::bytes(7, test::onnx::bytes(5, tensor + test::onnx::bytes(8, info.name)));
    } else if (const std::optional<Doubles> values = doubles_of(tensor)) {
      inputs[info.name] = *values;
    }
    ++place;
  }
  OnnxOptions options;
  if (num_outputs < file.outputs.size()) {
    for (size_t i = 0; i < num_outputs; ++i) options.outputs.push_back(file.outputs[i].name);
  }
  try {
    const OnnxModel imported = OnnxModel::parse(std::as_bytes(std::span(model)), "model", options);
    std::map<std::string, Doubles> parameters;
    for (const auto& [name, view] : imported.parameters(0))
      parameters[name] = catalog::to_doubles(view);
    const auto outputs = catalog::evaluate_graph(imported.graph(), inputs, parameters);
    for (size_t i = 0; i < num_outputs; ++i) {
      const std::optional<Doubles> expected = doubles_of(sample.outputs[i]);
      const auto got = outputs.find(file.outputs[i].name);
      if (!expected || got == outputs.end() || !is_close(got->second, *expected))
        return {Verdict::wrong, "output " + file.outputs[i].name, {}};
    }
    return {Verdict::passed, "", imported.graph()};
  } catch (const Error& error) {
    return {Verdict::refused, error.what(), {}, error.code()};
  }
}

/// As it is; else with one input computed and the others constants, as exporters write weights;
/// else its first output alone.
Outcome judge(const Sample& sample) {
  Outcome first = try_import(sample, -1, sample.outputs.size());
  for (const size_t num_outputs : {sample.outputs.size(), size_t{1}}) {
    for (int computed = -1; computed < static_cast<int>(sample.inputs.size()); ++computed) {
      const Outcome outcome = try_import(sample, computed, num_outputs);
      if (outcome.verdict != Verdict::refused) return outcome;
      if (computed == 0 && num_outputs == sample.outputs.size()) first = outcome;
    }
  }
  return first;
}

/// Every model, in an order of its own.
template <class Visit>
void for_each_sample(const Visit& visit) {
  for (const char* kind : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    std::set<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(fs::path(WIDE_ONNX_TESTDATA) / kind))
      folders.insert(entry.path());
    for (const fs::path& folder : folders) visit(folder.filename().string(), read_sample(folder));
  }
}

void require_testdata() {
  if (!fs::exists(WIDE_ONNX_TESTDATA)) SKIP("libonnx-testdata is not installed");
}

}  // namespace

TEST_CASE("onnx: ONNX's own tests pass, or are refused by the name of a node, input or output") {
  require_testdata();
  int num_passed = 0, num_models = 0;
  for_each_sample([&](const std::string& name, const Sample& sample) {
    CAPTURE(name);
    const Outcome outcome = judge(sample);
    CAPTURE(outcome.why);
    CHECK(outcome.verdict != Verdict::wrong);
    if (outcome.verdict == Verdict::refused) {
      CHECK(outcome.code == ErrorCode::unsupported);
      CHECK_THAT(outcome.why, Catch::Matchers::Matches(
                                  "onnx: model: (node|input|output) \".*|.*opset.*|.*axes.*"));
      return;
    }
    ++num_passed;
    // Two members, with parameters and inputs of their own.
    try {
      test::ModelRun run(Context::cpu(), outcome.graph, {.num_members = 2, .batch = 2});
      const auto outputs = run.run();
      for (const auto& [output, members] : run.reference()) {
        for (size_t m = 0; m < members.size(); ++m)
          CHECK(is_close(outputs.at(output)[m], members[m]));
      }
      ++num_models;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unsupported);
    }
  });
  // Of ONNX 1.12's 1072 models; later ones have more.
  CHECK(num_passed >= 335);
  CHECK(num_models >= 335);
}

TEST_CASE("onnx: what ONNX computes of shapes and other constants is folded to its numbers") {
  require_testdata();
  int num_folded = 0;
  for_each_sample([&](const std::string& name, const Sample& sample) {
    CAPTURE(name);
    const onnx::OnnxFile file = parsed(sample.model);
    if (file.nodes.size() != 1 || file.inputs.size() != sample.inputs.size()) return;
    const onnx::OnnxNode& node = file.nodes[0];
    std::map<std::string, onnx::Numbers, std::less<>> known;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      const std::optional<onnx::Initializer> read = tensor_of(sample.inputs[i]);
      if (!read || read->type->number == 8) return;
      const std::optional<onnx::Numbers> numbers = onnx::numbers_of(*read);
      if (!numbers) return;
      for (const long double value : numbers->values) {
        if (!numbers->is_float() && !std::isfinite(value)) return;
      }
      known[file.inputs[i].name] = *numbers;
    }
    std::vector<const onnx::Numbers*> inputs;
    for (const std::string_view input : node.inputs)
      inputs.push_back(input.empty() ? nullptr : &known.find(input)->second);
    std::optional<std::vector<onnx::Numbers>> outputs;
    try {
      outputs = onnx::fold(node, inputs);
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(error.code() == ErrorCode::unsupported);
    }
    // ONNX 1.12's files have bfloat16 as uint16.
    if (!outputs || name.find("BFLOAT16") != std::string::npos) return;
    for (size_t i = 0; i < sample.outputs.size(); ++i) {
      const std::optional<onnx::Initializer> read = tensor_of(sample.outputs[i]);
      if (!read || read->type->number == 8) return;
      const std::optional<onnx::Numbers> expected = onnx::numbers_of(*read);
      if (!expected) return;
      const onnx::Numbers& got = outputs->at(i);
      CHECK(got.shape == expected->shape);
      CHECK(got.type == expected->type);
      REQUIRE(got.values.size() == expected->values.size());
      for (size_t k = 0; k < got.values.size(); ++k) {
        const long double e = expected->values[k], g = got.values[k];
        CHECK((g == e || std::abs(g - e) <= 1e-6L + 1e-3L * std::abs(e) ||
               (std::isnan(g) && std::isnan(e))));
      }
    }
    ++num_folded;
  });
  CHECK(num_folded >= 221);
}
