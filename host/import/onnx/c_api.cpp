// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wide_onnx.h. It makes libwide's handles, and libwide keeps its errors.
#include "host/c_api/handles.hpp"
#include "wide/onnx.hpp"
#include "wide/wide_onnx.h"

using namespace wide;
using namespace wide::c_api;

namespace {

std::vector<std::string> texts(const char* const* given, int64_t count, const char* name) {
  require_array(given, count, name);
  std::vector<std::string> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(text(given[i], element_name(name, i)));
  return all;
}

OnnxOptions onnx_options_of(const wide_onnx_options* options) {
  const wide_onnx_options given = options_or_default(options, "options");
  OnnxOptions all;
  require_array(given.extents, given.num_extents, "options.extents");
  for (int64_t i = 0; i < given.num_extents; ++i) {
    const wide_onnx_extent one =
        sized(element_of(given.extents, i), element_name("options.extents", i).c_str());
    all.extents.insert_or_assign(text(one.name, element_name("options.extents", i, ".name")),
                                 one.extent);
  }
  all.shared_inputs = texts(given.shared_inputs, given.num_shared_inputs, "options.shared_inputs");
  require_array(given.fixed_inputs, given.num_fixed_inputs, "options.fixed_inputs");
  for (int64_t i = 0; i < given.num_fixed_inputs; ++i) {
    const wide_onnx_fixed_input one =
        sized(element_of(given.fixed_inputs, i), element_name("options.fixed_inputs", i).c_str());
    all.fixed_inputs.insert_or_assign(
        text(one.name, element_name("options.fixed_inputs", i, ".name")), one.value);
  }
  all.outputs = texts(given.outputs, given.num_outputs, "options.outputs");
  return all;
}

/// Each member keeps all files: which ones hold its tensors is not known here.
wide_members as_members(const OnnxModel& model) {
  const auto kept = std::make_shared<const OnnxModel>(model);
  wide_members members{model.graph().name(), model.graph(), {}};
  for (int64_t i = 0; i < model.num_members(); ++i) {
    members.members.push_back({model.parameters(i), {kept}});
  }
  return members;
}

}  // namespace

wide_status wide_onnx_open(const char* const* paths, int64_t num_paths,
                           const wide_onnx_options* options, wide_members** out) {
  return created(__func__, out, [&] {
    return as_members(OnnxModel::open(texts(paths, num_paths, "paths"), onnx_options_of(options)));
  });
}

wide_status wide_onnx_parse(const wide_onnx_file* files, int64_t num_files,
                            const wide_onnx_options* options, wide_members** out) {
  return created(__func__, out, [&] {
    require_array(files, num_files, "files");
    std::vector<OnnxBytes> all;
    for (int64_t i = 0; i < num_files; ++i) {
      const wide_onnx_file one = sized(element_of(files, i), element_name("files", i).c_str());
      const auto* data = static_cast<const std::byte*>(one.data);
      require_array(data, one.bytes, element_name("files", i, ".data").c_str());
      all.push_back({{data, static_cast<size_t>(one.bytes)},
                     text(one.name, element_name("files", i, ".name"))});
    }
    return as_members(OnnxModel::parse(all, onnx_options_of(options)));
  });
}
