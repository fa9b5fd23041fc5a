// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The contents of the C headers' handles. Each keeps alive what it needs of others. libwide
// destroys those that libwide_onnx makes: both use these structs.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/c_api/guard.hpp"
#include "wide/chunked_model.hpp"
#include "wide/graph.hpp"
#include "wide/model.hpp"
#include "wide/model_replay.hpp"
#include "wide/wide_builder.h"

namespace wide::c_api {

/// Where a listing of names is, so that the next one is a step away. Of one map: a copy is nowhere.
struct Listing {
  Listing() = default;
  Listing(const Listing&) noexcept {}
  Listing& operator=(const Listing&) = delete;

  size_t num_names = 0;  ///< when `at` was reached; names are only ever added
  int64_t index = 0;
  MemberParameters::const_iterator at;
};

}  // namespace wide::c_api

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
  std::shared_ptr<wide::Tensor> tensor;
};
struct wide_builder {
  wide::GraphBuilder builder;
  std::exception_ptr first_error{};
  const char* failed_in = nullptr;  ///< the function's name, where there is a first error
};
struct wide_graph {
  wide::Graph graph;
};
struct wide_parameters {
  wide::MemberParameters views;
  std::vector<std::shared_ptr<const void>> kept;  ///< files and tensors that views point into
  mutable wide::c_api::Listing listing{};
};
struct wide_members {
  std::string graph_name;
  std::optional<wide::Graph> graph;  ///< where the files have one
  std::vector<wide_parameters> members;
};
struct wide_plan {
  wide::ModelPlan plan;
  std::string explain;
};
struct wide_model {
  wide::Context context;
  std::shared_ptr<wide::Model> model;
};
struct wide_chunked {
  wide::ModelPlan plan;
  wide::Device device;
  wide::ChunkedModel model;
};
struct wide_replay {
  wide::Device device;
  std::shared_ptr<const wide::Model> model;
  wide::ModelReplay replay;
};

namespace wide::c_api {

/// `name` is the argument's or the field's, in messages.
Dtype dtype_of(wide_dtype dtype, const char* name = "dtype");
/// None for WIDE_CHANNELS_AUTO.
std::optional<ChannelLayout> layout_of(wide_channels channels, const char* name);
Dims dims_of(const int64_t* values, int32_t rank, const char* name = "shape");
/// `index` is the place in the array `name`; -1: not an array.
TensorView view_of(const wide_view* view, const char* name, int64_t index = -1);
/// Strides of 0 along every axis, more than one element: a wide_view cannot express this.
bool is_one_repeated(const ConstTensorView& view);
/// Throws unsupported for such a view.
void write_view(wide_view* out, const TensorView& view);
/// The parameters of an array of members.
std::vector<MemberParameters> members_of(const wide_parameters* const* members,
                                         int64_t num_members);
wide_parameters parameters_of(OwnedParameters owned);
/// A parameter's, input's or output's: structs that have the same fields so far.
template <class Info>
void write_value(Info* out, const std::string& name, Dtype dtype, const Shape& shape,
                 bool is_shared) {
  Info value{};
  value.name = name.c_str();
  value.dtype = static_cast<wide_dtype>(dtype);
  value.rank = shape.rank();
  std::copy(shape.begin(), shape.end(), value.shape);
  value.is_shared = is_shared ? 1 : 0;
  write(out, value);
}
/// The number of rows of each member; `name` is the array's.
std::vector<int64_t> batches_of(const int64_t* batches, int64_t num_batches, const char* name);
/// Throws where the device has streams and this is not one.
Stream stream_of(Device device, void* stream);

}  // namespace wide::c_api
