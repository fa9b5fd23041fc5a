// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's descriptors as what they are told: attributes by name.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "verify/simvendors/device_memory.hpp"

namespace wide::simvendors {

/// What a cudnnHandle_t is here.
struct Handle {
  KeptMemory kept = keep_memory();
  LoadedKernels kernels;
  cudaStream_t stream = nullptr;
};

/// What the simulated cuDNN does not know, or was not told.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CudnnDescriptor {
  /// Descriptors among the values are kept, as they are when they are set.
  struct Attribute {
    std::vector<std::byte> bytes;
    std::vector<std::shared_ptr<const CudnnDescriptor>> descriptors;
  };

  cudnnBackendDescriptorType_t type{};
  bool is_final = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes{};

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
  void set(cudnnBackendAttributeName_t name, int64_t value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    attributes[name].bytes.assign(bytes, bytes + sizeof(value));
  }
  template <class Value>
  std::vector<Value> all(cudnnBackendAttributeName_t name) const {
    const std::vector<std::byte>& bytes = at(name).bytes;
    std::vector<Value> values(bytes.size() / sizeof(Value));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
    return values;
  }
  template <class Value>
  Value one(cudnnBackendAttributeName_t name) const {
    const auto bytes = at(name).bytes;
    Value value{};
    if (bytes.size() != sizeof(Value)) throw Refused("an attribute has not one value");
    std::memcpy(&value, bytes.data(), sizeof(Value));
    return value;
  }
  const std::vector<std::shared_ptr<const CudnnDescriptor>>& descriptors(
      cudnnBackendAttributeName_t name) const {
    return at(name).descriptors;
  }
  const CudnnDescriptor& descriptor(cudnnBackendAttributeName_t name) const {
    const auto& values = descriptors(name);
    if (values.size() != 1) throw Refused("an attribute has not one descriptor");
    return *values.front();
  }

 private:
  const Attribute& at(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) throw Refused("attribute " + std::to_string(name) + " not set");
    return found->second;
  }
};

}  // namespace wide::simvendors
