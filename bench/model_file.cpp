// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/model_file.hpp"

#include <memory>

#include "host/model/model_catalog.hpp"
#include "wide/error.hpp"
#include "wide/models.hpp"
#if WIDE_HAS_ONNX
#include "wide/onnx.hpp"
#endif

namespace wide::bench {

namespace {

constexpr std::string_view kPrefix = "model:";
/// How far members' weights are from the file's: enough for outputs to differ, too little for
/// activations to grow.
[[maybe_unused]] constexpr double kSpread = 0.05;

}  // namespace

bool is_model_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".onnx");
}

void load_model_file(const std::string& op,
                     [[maybe_unused]] const std::map<std::string, int64_t>& extents) {
  for (const catalog::PrimitiveSpec* spec : catalog::models()) {
    if (spec->name == op) return;
  }
  const std::string path = op.starts_with(kPrefix) ? op.substr(kPrefix.size()) : op;
#if WIDE_HAS_ONNX
  const OnnxModel model = OnnxModel::open(path, {.extents = extents});
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
