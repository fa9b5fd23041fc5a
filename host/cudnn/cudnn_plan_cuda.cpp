// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice among the engines of cuDNN's, and its calls.
//
// While a plan is made, every status but success is cuDNN's way to say no: problems are legal
// before they come here. Plans are made for a device by its properties and need no handle, so
// that they belong to no thread.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "host/core/check.hpp"
#include "host/core/current_device.hpp"
#include "host/cudnn/cudnn_operations_cuda.hpp"
#include "host/cudnn/cudnn_plan.hpp"

namespace wide {

namespace {

using cudnn::Descriptor;
using cudnn::failure;
using cudnn::Operations;
using cudnn::Refused;
using cudnn::require;
using cudnn::unique_id;

Descriptor properties_of(const CudnnDevice& device) {
  Descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  if (device.properties.empty()) {
    d.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, static_cast<int32_t>(device.ordinal));
  } else {
    d.set_all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, device.properties);
  }
  d.finalize();
  return d;
}

using Note = cudnnBackendNumericalNote_t;

std::string_view name_of(Note note) {
  static constexpr std::array<std::string_view, 10> kNames{
      "tensor cores", "rounds its inputs", "reduced sums", "Fourier transform", "not repeatable",
      "Winograd",     "Winograd 4x4",      "Winograd 6x6", "Winograd 13x13",    "strict NaN"};
  return static_cast<size_t>(note) < kNames.size() ? kNames[static_cast<size_t>(note)] : "?";
}

bool is_allowed(Note note, const CudnnNumerics& numerics) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return numerics.allows_tensor_cores;
    case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
      return true;
    default:
      return false;
  }
}

/// What a list of engines offers, best guess first.
std::vector<Descriptor> configurations(const Descriptor& graph, const Descriptor& device,
                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  heuristic.finalize();
  int64_t count = 0;
  require(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<Descriptor> results;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    handles.push_back(results.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  }
  require(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()));
  while (std::ssize(results) > count) results.pop_back();
  if (count == 0) throw Refused(failure(CUDNN_STATUS_NOT_SUPPORTED));
  return results;
}

struct Engine {
  int64_t index = -1;
  std::vector<Note> notes;
};

Engine engine_of(const Descriptor& configuration) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  int64_t count = 0;
  require(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle));
  return {engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1).at(0),
          engine.get<Note>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)};
}

/// The four bytes of a number, where cuDNN reads them.
struct Number {
  CudnnTensorId tensor;
  std::array<std::byte, 4> bytes;
};

std::vector<Number> numbers_of(const CudnnGraph& graph) {
  std::vector<Number> numbers;
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const CudnnTensor& tensor = graph.tensors()[i];
    if (tensor.place != CudnnTensor::Place::number) continue;
    const auto id = static_cast<CudnnTensorId>(i);
    if (tensor.type == CudnnType::int32) {
      numbers.push_back(
          {id, std::bit_cast<std::array<std::byte, 4>>(static_cast<int32_t>(tensor.number))});
    } else {
      numbers.push_back(
          {id, std::bit_cast<std::array<std::byte, 4>>(static_cast<float>(tensor.number))});
    }
  }
  return numbers;
}

class Plan final : public CudnnPlan {
 public:
  Plan(const CudnnDevice& device, const CudnnGraph& graph, const CudnnNumerics& numerics)
      : ordinal_(device.ordinal),
        graph_(graph),
        plan_(choose(device, numerics)),
        numbers_(numbers_of(graph)) {
    workspace_bytes_ = plan_.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
  }

  void run(void* cudnn, std::span<const CudnnBinding> bindings, const Workspace& workspace,
           Stream stream) const override {
    std::vector<int64_t> ids;
    std::vector<void*> addresses;
    for (const CudnnBinding& binding : bindings) {
      ids.push_back(unique_id(binding.tensor));
      addresses.push_back(binding.data);
    }
    for (const Number& number : numbers_) {
      ids.push_back(unique_id(number.tensor));
      addresses.push_back(const_cast<std::byte*>(number.bytes.data()));
    }
    const CurrentDevice current(ordinal_);
    try {
      Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.set_all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
      pack.set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
      pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace.data);
      pack.finalize();
      const auto handle = static_cast<cudnnHandle_t>(cudnn);
      require(cudnnSetStream(handle, static_cast<cudaStream_t>(stream.native())));
      require(cudnnBackendExecute(handle, plan_.get(), pack.get()));
    } catch (const Refused& refused) {
      throw Error(ErrorCode::cudnn, std::string("cudnn: ") + refused.what());
    }
  }

 private:
  /// The first configuration that is allowed and becomes a plan.
  Descriptor choose(const CudnnDevice& device, const CudnnNumerics& numerics) {
    const Descriptor properties = properties_of(device);
    std::string last_reason = "it offers none";
    for (const auto& [mode, list] : {std::pair{CUDNN_HEUR_MODE_A, "best guesses"},
                                     std::pair{CUDNN_HEUR_MODE_FALLBACK, "fallbacks"}}) {
      int place = 0;
      for (Descriptor& configuration : candidates(properties, mode, last_reason)) {
        ++place;
        try {
          const Engine engine = engine_of(configuration);
          const auto forbidden = std::find_if(engine.notes.begin(), engine.notes.end(),
                                              [&](Note n) { return !is_allowed(n, numerics); });
          if (forbidden != engine.notes.end()) {
            last_reason = "engine " + std::to_string(engine.index) +
                          " is not allowed: " + std::string(name_of(*forbidden));
            continue;
          }
          Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
          plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
          plan.finalize();
          explain_ = "engine " + std::to_string(engine.index) + ", number " +
                     std::to_string(place) + " of cuDNN's " + list;
          for (const Note note : engine.notes) explain_ += ", " + std::string(name_of(note));
          configuration_.emplace(std::move(configuration));
          return plan;
        } catch (const Refused& refused) {
          last_reason = refused.what();
        }
      }
    }
    throw Refused("no engine: " + last_reason);
  }

  std::vector<Descriptor> candidates(const Descriptor& properties, cudnnBackendHeurMode_t mode,
                                     std::string& reason) const {
    try {
      return configurations(graph_.whole(), properties, mode);
    } catch (const Refused& refused) {
      reason = refused.what();
      return {};
    }
  }

  int ordinal_;
  Operations graph_;  // kept, as what the plan was made of
  std::optional<Descriptor> configuration_;
  Descriptor plan_;
  std::vector<Number> numbers_;
};

}  // namespace

std::string cudnn_unavailable_reason(const CudnnDevice& device) {
  try {
    (void)properties_of(device);
    return "";
  } catch (const Refused& refused) {
    return refused.what();
  }
}

std::shared_ptr<const CudnnPlan> find_cudnn_engine(std::string_view primitive,
                                                   const CudnnDevice& device,
                                                   const CudnnGraph& graph,
                                                   const CudnnNumerics& numerics) {
  std::optional<CurrentDevice> current;  // what an engine loads is for its device
  if (device.properties.empty()) current.emplace(device.ordinal);
  try {
    return std::make_shared<const Plan>(device, graph, numerics);
  } catch (const Refused& refused) {
    throw_unsupported(std::string(primitive) + ": cuDNN: " + refused.what());
  }
}

}  // namespace wide
