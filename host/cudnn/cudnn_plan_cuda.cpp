// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice among the engines of cuDNN's, and its calls.
//
// While a plan is made, statuses about the problem are cuDNN's way to say no: problems are legal
// before they come here. An engine that breaks down is passed over, too, but where no other is left
// that is an error, and lack of memory always: neither says anything about the next try. Plans are
// made for a device by its properties and need no handle, so that they belong to no thread.
#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <optional>

#include "host/core/beside_captures.hpp"
#include "host/core/check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/text.hpp"
#include "host/cudnn/cudnn_operations_cuda.hpp"
#include "host/cudnn/cudnn_plan.hpp"
#include "host/cudnn/cudnn_stream_cuda.hpp"

namespace wide {

namespace {

using cudnn::Descriptor;
using cudnn::Failed;
using cudnn::failure;
using cudnn::OnStream;
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

/// Of a call: so many that calls keep them on their stacks.
constexpr size_t kMaxOperands = 32;

void require_room(const CudnnGraph& graph) {
  const auto count = std::count_if(
      graph.tensors().begin(), graph.tensors().end(),
      [](const CudnnTensor& tensor) { return tensor.place != CudnnTensor::Place::inside; });
  if (count <= static_cast<int64_t>(kMaxOperands)) return;
  throw Refused("a graph of " + counted(count, "operand") + ", expected at most " +
                std::to_string(kMaxOperands));
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

struct Found {
  Descriptor configuration;  ///< kept, as what the plan was made of
  Descriptor plan;
  std::string explain;
  int64_t num_looked_at = 0;
};

/// The choice among the engines, and what speaks against those that were passed over.
class Search {
 public:
  /// The first configuration that is allowed and becomes a plan, behind the first `num_passed`.
  Found choose(const Descriptor& graph, const CudnnDevice& device, const CudnnNumerics& numerics,
               int64_t num_passed) {
    int64_t num_looked_at = 0;
    const Descriptor properties = properties_of(device);
    for (const auto& [mode, list] : {std::pair{CUDNN_HEUR_MODE_A, "best guesses"},
                                     std::pair{CUDNN_HEUR_MODE_FALLBACK, "fallbacks"}}) {
      std::vector<Descriptor> all;
      attempt([&] { all = configurations(graph, properties, mode); });
      for (size_t i = 0; i < all.size(); ++i) {
        if (num_looked_at++ < num_passed) continue;
        std::optional<Found> found;
        const std::string place = ", number " + std::to_string(i + 1) + " of cuDNN's " + list;
        attempt([&] { found.emplace(make(std::move(all[i]), numerics, place)); });
        if (!found) continue;
        found->num_looked_at = num_looked_at;
        return std::move(*found);
      }
    }
    if (failed_) throw Failed(*failed_);
    throw Refused("no engine: " + reason_);
  }

 private:
  /// Notes what keeps `body` from its end; lack of memory ends the search.
  template <class Body>
  void attempt(const Body& body) {
    try {
      body();
    } catch (const Failed& failed) {
      if (failed.lacks_memory) throw;
      failed_ = failed;
    } catch (const Refused& refused) {
      reason_ = refused.what();
    }
  }

  static Found make(Descriptor configuration, const CudnnNumerics& numerics,
                    const std::string& place) {
    const Engine engine = engine_of(configuration);
    std::string explain = "engine " + std::to_string(engine.index);
    for (const Note note : engine.notes) {
      if (!is_allowed(note, numerics)) {
        throw Refused(explain + " is not allowed: " + std::string(name_of(note)));
      }
    }
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    plan.finalize();
    explain += place;
    for (const Note note : engine.notes) explain += ", " + std::string(name_of(note));
    return {std::move(configuration), std::move(plan), std::move(explain)};
  }

  std::string reason_ = "it offers none";
  std::optional<Failed> failed_;
};

class Plan final : public CudnnPlan {
 public:
  Plan(const CudnnDevice& device, const CudnnGraph& graph, const CudnnNumerics& numerics,
       int64_t num_passed)
      : ordinal_(device.ordinal),
        graph_(graph),
        found_(Search().choose(graph_.whole(), device, numerics, num_passed)),
        numbers_(numbers_of(graph)) {
    require_room(graph);
    workspace_bytes_ = found_.plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
    explain_ = found_.explain;
    num_looked_at_ = found_.num_looked_at;
  }

  void run(void* cudnn, std::span<const CudnnBinding> bindings, const Workspace& workspace,
           Stream stream) const override {
    std::array<int64_t, kMaxOperands> ids;
    std::array<void*, kMaxOperands> addresses;
    size_t count = 0;
    for (const CudnnBinding& binding : bindings) {
      ids[count] = unique_id(binding.tensor);
      addresses[count++] = binding.data;
    }
    for (const Number& number : numbers_) {
      ids[count] = unique_id(number.tensor);
      addresses[count++] = const_cast<std::byte*>(number.bytes.data());
    }
    const CurrentDevice current(ordinal_);
    try {
      Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.set_all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(ids).first(count));
      pack.set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span(addresses).first(count));
      pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace.data);
      pack.finalize();
      const OnStream handle(static_cast<cudnnHandle_t>(cudnn), native_stream(stream));
      const std::lock_guard lock(executing_);
      require(cudnnBackendExecute(handle.get(), found_.plan.get(), pack.get()));
    } catch (const Refused& refused) {
      cudnn::throw_error("cudnn: ", refused);
    }
  }

 private:
  int ordinal_;
  Operations graph_;  // kept, as what the plan was made of
  Found found_;
  std::vector<Number> numbers_;
  mutable std::mutex executing_;
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
                                                   const CudnnNumerics& numerics,
                                                   const CudnnPlan* previous) {
  std::optional<CurrentDevice> current;  // what an engine loads is for its device
  std::optional<BesideCaptures> beside;
  if (device.properties.empty()) {
    current.emplace(device.ordinal);
    beside.emplace();
  }
  const int64_t num_passed = previous == nullptr ? 0 : previous->num_looked_at();
  try {
    return std::make_shared<const Plan>(device, graph, numerics, num_passed);
  } catch (const Failed& failed) {
    cudnn::throw_error(std::string(primitive) + ": cuDNN: ", failed);
  } catch (const Refused& refused) {
    throw_unsupported(std::string(primitive) + ": cuDNN: " + refused.what());
  }
}

}  // namespace wide
