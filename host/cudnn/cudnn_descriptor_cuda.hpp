// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A descriptor of cuDNN's backend API that is its owner's, with attributes in C++'s types.
#pragma once

#include <cudnn_graph.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace wide::cudnn {

/// A status that is no success, in cuDNN's own words.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Where cuDNN or the machine broke down: no answer about the problem, which may do another time.
struct Failed final : Refused {
  Failed(const std::string& what, bool lacks) : Refused(what), lacks_memory(lacks) {}
  bool lacks_memory;
};
/// A failure, or a refusal where there should be none any more, as callers see it: out_of_memory or
/// cudnn.
[[noreturn]] void throw_error(const std::string& whose, const Refused& refused);

/// "CUDNN_STATUS_NOT_SUPPORTED: what the library adds to it"
std::string failure(cudnnStatus_t status);
/// Throws Failed or Refused for anything but success.
void require(cudnnStatus_t status);

template <class Value>
constexpr cudnnBackendAttributeType_t type_of();
#define WIDE_CUDNN_TYPE(Value, type)                       \
  template <>                                              \
  constexpr cudnnBackendAttributeType_t type_of<Value>() { \
    return type;                                           \
  }
WIDE_CUDNN_TYPE(int32_t, CUDNN_TYPE_INT32)
WIDE_CUDNN_TYPE(int64_t, CUDNN_TYPE_INT64)
WIDE_CUDNN_TYPE(double, CUDNN_TYPE_DOUBLE)
WIDE_CUDNN_TYPE(bool, CUDNN_TYPE_BOOLEAN)
WIDE_CUDNN_TYPE(char, CUDNN_TYPE_CHAR)
WIDE_CUDNN_TYPE(void*, CUDNN_TYPE_VOID_PTR)
WIDE_CUDNN_TYPE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE)
WIDE_CUDNN_TYPE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE)
WIDE_CUDNN_TYPE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE)
WIDE_CUDNN_TYPE(cudnnNanPropagation_t, CUDNN_TYPE_NAN_PROPOGATION)
WIDE_CUDNN_TYPE(cudnnReduceTensorOp_t, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE)
WIDE_CUDNN_TYPE(cudnnResampleMode_t, CUDNN_TYPE_RESAMPLE_MODE)
WIDE_CUDNN_TYPE(cudnnPaddingMode_t, CUDNN_TYPE_PADDING_MODE)
WIDE_CUDNN_TYPE(cudnnBackendNormMode_t, CUDNN_TYPE_NORM_MODE)
WIDE_CUDNN_TYPE(cudnnBackendNormFwdPhase_t, CUDNN_TYPE_NORM_FWD_PHASE)
WIDE_CUDNN_TYPE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE)
WIDE_CUDNN_TYPE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE)
#undef WIDE_CUDNN_TYPE

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    require(cudnnBackendCreateDescriptor(type, &handle_));
  }
  ~Descriptor() {
    if (handle_ != nullptr) (void)cudnnBackendDestroyDescriptor(handle_);
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  cudnnBackendDescriptor_t get() const { return handle_; }

  template <class Value>
  void set_all(cudnnBackendAttributeName_t name, std::span<const Value> values) {
    require(cudnnBackendSetAttribute(handle_, name, type_of<Value>(),
                                     static_cast<int64_t>(values.size()), values.data()));
  }
  template <class Value>
  void set(cudnnBackendAttributeName_t name, const Value& value) {
    set_all(name, std::span<const Value>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    require(
        cudnnBackendSetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_));
  }
  void finalize() { require(cudnnBackendFinalize(handle_)); }

  /// Up to `room` values.
  template <class Value>
  std::vector<Value> get(cudnnBackendAttributeName_t name, int64_t room) const {
    std::vector<Value> values(static_cast<size_t>(room));
    int64_t count = 0;
    require(cudnnBackendGetAttribute(handle_, name, type_of<Value>(), room, &count, values.data()));
    values.resize(static_cast<size_t>(std::min(room, count)));
    return values;
  }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace wide::cudnn
