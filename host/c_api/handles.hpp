// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the handles of wide.h hold. Each keeps alive what it needs of others.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/c_api/guard.hpp"
#include "wide/graph.hpp"
#include "wide/model.hpp"
#include "wide/safetensors.hpp"

struct wide_context {
  wide::Context context;
};
struct wide_stream {
  wide::OwnedStream stream;
};
struct wide_handles {
  wide::VendorHandles handles;
};
struct wide_tensor {
  std::shared_ptr<const wide::Tensor> tensor;
};
struct wide_builder {
  wide::GraphBuilder builder;
  std::optional<wide::Error> first_error;
};
struct wide_graph {
  wide::Graph graph;
};
struct wide_parameters {
  wide::MemberParameters views;
  std::vector<wide::Safetensors> files;  ///< that views point into, as they do into those owned
  wide::OwnedParameters owned;
};
struct wide_plan {
  wide::ModelPlan plan;
  std::string explain;
};
struct wide_model {
  wide::Context context;
  std::shared_ptr<wide::Model> model;
};
struct wide_replay {
  wide::Device device;
  std::shared_ptr<const wide::Model> model;
  wide::ModelReplay replay;
};

namespace wide::c_api {

Dtype dtype_of(wide_dtype dtype);
Dims dims_of(const int64_t* values, int32_t rank);
/// `index` is that in the array `name`; -1: it is no array.
TensorView view_of(const wide_view* view, const char* name, int64_t index = -1);
void write_view(wide_view* out, const TensorView& view);
/// Throws where the device has streams and this is none.
Stream stream_of(Device device, void* stream);

}  // namespace wide::c_api
