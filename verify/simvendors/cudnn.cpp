// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's backend calls on the simulated GPU: any graph of the operations that wide asks for has
// three engines, which compute what the documentation says: two best guesses and a fallback. What
// the real library refuses is not known here; it plans without a device, and tests of plans ask it.
#include <algorithm>
#include <memory>
#include <mutex>

#include "verify/simvendors/cudnn_reader.hpp"
#include "verify/simvendors/device_memory.hpp"
#include "verify/simvendors/faults.hpp"
#include "verify/support/cudnn_interpreter.hpp"

namespace wide::simvendors {

namespace {

/// Of a plan, by its engine: whoever forgets it, or takes another plan's, is found.
constexpr int64_t workspace_bytes(int64_t engine) {
  return 4096 * (engine + 1);
}
constexpr int64_t kBestGuesses = 2;  ///< engines 0 and 1; engine 2 is the fallback

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;  // cuDNN's enumerations, and int32
  }
}

/// All descriptors that live, by handle.
class Registry {
 public:
  using Pointer = std::shared_ptr<CudnnDescriptor>;
  cudnnBackendDescriptor_t add(cudnnBackendDescriptorType_t type) {
    const std::lock_guard lock(mutex_);
    auto made = std::make_shared<CudnnDescriptor>();
    made->type = type;
    void* const handle = made.get();
    all_[handle] = std::move(made);
    return handle;
  }
  void remove(cudnnBackendDescriptor_t handle) {
    const std::lock_guard lock(mutex_);
    all_.erase(handle);
  }
  Pointer operator[](cudnnBackendDescriptor_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(handle);
    if (found == all_.end()) throw Refused("no descriptor");
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<void*, Pointer> all_;
};

Registry& registry() {
  static auto* const all = new Registry;  // static plans of the program's are destroyed later
  return *all;
}

template <class Body>
cudnnStatus_t answer(const Body& body) {
  try {
    return body();
  } catch (const Refused&) {
    return CUDNN_STATUS_BAD_PARAM;
  }
}

template <class Value>
cudnnStatus_t give(Value value, int64_t room, int64_t* count, void* values) {
  if (count != nullptr) *count = 1;
  if (room > 0) std::memcpy(values, &value, sizeof(value));
  return CUDNN_STATUS_SUCCESS;
}

/// Of a heuristic: its list's configurations, into the descriptors that the caller has made. Each
/// is the graph's operations, what a plan of it will execute, and the number of its engine.
cudnnStatus_t give_configurations(const CudnnDescriptor& heuristic, int64_t room, int64_t* count,
                                  void* values) {
  const bool is_fallback =
      heuristic.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  *count = is_fallback ? 1 : kBestGuesses;
  for (int64_t i = 0; i < std::min(room, *count); ++i) {
    const auto to = registry()[static_cast<cudnnBackendDescriptor_t*>(values)[i]];
    to->attributes[CUDNN_ATTR_OPERATIONGRAPH_OPS] =
        heuristic.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
            .attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    to->set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, is_fallback ? kBestGuesses : i);
  }
  return CUDNN_STATUS_SUCCESS;
}

int64_t engine_of(const CudnnDescriptor& configuration) {
  return configuration.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
}
int64_t engine_of_plan(const CudnnDescriptor& plan) {
  return engine_of(plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
}

void compute(const CudnnCall& call, void* workspace, int64_t bytes) {
  if (workspace == nullptr) refuse_access("cuDNN's workspace");
  leave_anything(workspace, bytes);
  test::interpret(call.graph, call.bindings, device_access("cuDNN"));
}

}  // namespace
}  // namespace wide::simvendors

using namespace wide::simvendors;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  if (!is_simulated()) return CUDNN_STATUS_NOT_INITIALIZED;
  auto made = std::make_unique<Handle>();
  if (made->kept == nullptr) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  *handle = reinterpret_cast<cudnnHandle_t>(made.release());
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  *stream = reinterpret_cast<Handle*>(handle)->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  *descriptor = registry().add(type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  registry().remove(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  return answer([&] {
    const auto to = registry()[descriptor];
    if (to->is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    CudnnDescriptor::Attribute attribute;
    const size_t bytes = static_cast<size_t>(count) * bytes_of(type);
    attribute.bytes.resize(bytes);
    if (bytes > 0) std::memcpy(attribute.bytes.data(), values, bytes);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      for (int64_t i = 0; i < count; ++i) {
        const auto one = registry()[static_cast<cudnnBackendDescriptor_t const*>(values)[i]];
        const bool is_configuration = one->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
        if (!one->is_final && !is_configuration) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
        attribute.descriptors.push_back(one);
      }
    }
    to->attributes[name] = std::move(attribute);
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  return answer([&] {
    const auto of = registry()[descriptor];
    if (of->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !has_context()) {
      return CUDNN_STATUS_EXECUTION_FAILED;  // it loads kernels
    }
    if (of->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
      for (const int64_t extent : of->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)) {
        if (extent < 1) return CUDNN_STATUS_BAD_PARAM;
      }
    }
    of->is_final = true;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t room, int64_t* count,
                                       void* values) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  return answer([&] {
    const auto of = registry()[descriptor];
    switch (name) {
      case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return give_configurations(*of, room, count, values);
      case CUDNN_ATTR_ENGINECFG_ENGINE:  // into a descriptor that the caller has made
        registry()[*static_cast<cudnnBackendDescriptor_t*>(values)]->set(
            CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine_of(*of));
        if (count != nullptr) *count = 1;
        return CUDNN_STATUS_SUCCESS;
      case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return give(engine_of(*of), room, count, values);
      case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = 0;
        return CUDNN_STATUS_SUCCESS;
      case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        return give(workspace_bytes(engine_of_plan(*of)), room, count, values);
      default:
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  if (!has_context()) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!reinterpret_cast<Handle*>(handle)->kernels.load()) return CUDNN_STATUS_EXECUTION_FAILED;
  return answer([&] {
    const auto of = registry()[plan], with = registry()[pack];
    const CudnnDescriptor& graph = of->descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const CudnnCall call = read_call(graph, *with);
    void* const workspace = with->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    const int64_t bytes = workspace_bytes(engine_of_plan(*of));
    const cudaError_t error =
        enqueue(reinterpret_cast<Handle*>(handle)->stream,
                [call, workspace, bytes] { compute(call, workspace, bytes); });
    return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
  });
}

}  // extern "C"
