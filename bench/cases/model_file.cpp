// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/model_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "host/model/model_catalog.hpp"
#include "wide/error.hpp"
#include "wide/models.hpp"
#if WIDE_HAS_ONNX
#include "wide/onnx.hpp"
#endif

namespace wide::bench {

namespace {

constexpr std::string_view kPrefix = "model:";
/// How far members' weights are from the file's: enough to make outputs differ, too little to
/// make activations grow.
[[maybe_unused]] constexpr double kSpread = 0.05;

/// Parses "sequence=128" texts by name, each name once.
[[maybe_unused]] std::map<std::string, double> numbers_of(const char* option,
                                                          const std::vector<std::string>& texts,
                                                          bool is_extent) {
  std::map<std::string, double> numbers;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string_view digits =
        std::string_view(text).substr(std::min(equals, text.size() - 1) + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size();
    const bool is_in = !is_extent || (value >= 1 && value <= 0x1p31 && std::floor(value) == value);
    const bool is_good = equals != std::string::npos && equals > 0 && is_number && is_in;
    if (!is_good || !numbers.emplace(text.substr(0, equals), value).second) {
      throw Error(ErrorCode::invalid_argument,
                  std::string(option) + " is \"" + text + "\", expected NAME=NUMBER, " +
                      (is_extent ? "a number from 1 to 2^31, " : "") + "each name once");
    }
  }
  return numbers;
}

}  // namespace

std::string ModelFileOptions::words() const {
  std::string all;
  for (const std::string& text : extents) all += " --extent " + text;
  for (const std::string& text : fixed_inputs) all += " --fixed-input " + text;
  if (!output.empty()) all += " --model-output " + output;
  return all;
}

bool is_model_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".onnx");
}

void load_model_file(const std::string& op, [[maybe_unused]] const ModelFileOptions& options) {
  for (const catalog::PrimitiveSpec* spec : catalog::models()) {
    if (spec->name == op) return;
  }
  const std::string path = op.starts_with(kPrefix) ? op.substr(kPrefix.size()) : op;
#if WIDE_HAS_ONNX
  OnnxOptions import;
  for (const auto& [name, number] : numbers_of("--extent", options.extents, true))
    import.extents[name] = static_cast<int64_t>(number);
  import.fixed_inputs = numbers_of("--fixed-input", options.fixed_inputs, false);
  if (!options.output.empty()) import.outputs = {options.output};
  const OnnxModel model = OnnxModel::open(path, import);
  const MemberParameters parameters = model.parameters(0);
  (void)catalog::add_model(path, model.graph(), [model, parameters](uint64_t seed, int64_t id) {
    return perturbed_parameters(parameters, kSpread, seed, id);
  });
#else
  throw Error(ErrorCode::unsupported,
              "--model " + path + ": this build has no ONNX importer (WIDE_ONNX)");
#endif
}

}  // namespace wide::bench
