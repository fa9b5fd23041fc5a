// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simcuda/device.hpp"

#include <cstdio>
#include <cstdlib>

#include "verify/simcuda/report.hpp"

namespace wide::simcuda {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A mistake must not pass for the default.
[[noreturn]] void refuse(const char* name, const std::string& expected) {
  std::fprintf(stderr, "simulated CUDA: %s is \"%s\", expected %s\n", name,
               environment(name).c_str(), expected.c_str());
  std::_Exit(2);
}

int64_t number(const char* name, int64_t otherwise = 0) {
  const std::string value = environment(name);
  if (value.empty()) return otherwise;
  char* end = nullptr;
  const int64_t parsed = std::strtoll(value.c_str(), &end, 0);
  if (*end != '\0' || parsed < 0) refuse(name, "a number that is not negative");
  return parsed;
}

size_t choice(const char* name, std::initializer_list<const char*> words) {
  const std::string value = environment(name);
  if (value.empty()) return 0;
  std::string expected = "one of";
  size_t i = 0;
  for (const char* word : words) {
    if (value == word) return i;
    expected += std::string(" ") + word;
    ++i;
  }
  refuse(name, expected);
}

}  // namespace

Device::Device() {
  static constexpr Order kOrders[] = {Order::eager, Order::lazy, Order::random};
  static constexpr simt::Delivery kDeliveries[] = {simt::Delivery::lazy, simt::Delivery::eager,
                                                   simt::Delivery::random};
  static constexpr int kArchitectures[] = {90, 80};
  architecture = kArchitectures[choice("WIDE_SIM_ARCH", {"90", "80"})];
  options.seed = static_cast<uint32_t>(number("WIDE_SIM_SEED"));
  options.delivery = kDeliveries[choice("WIDE_SIM_DELIVERY", {"lazy", "eager", "random"})];
  faults.fail_at = number("WIDE_SIM_FAIL_AT");
  faults.error =
      static_cast<cudaError_t>(number("WIDE_SIM_FAIL_WITH", cudaErrorMemoryAllocation));
  faults.is_sticky = choice("WIDE_SIM_FAIL_STICKY", {"0", "1"}) == 1;
  operations.sticky_error = [this] { return sticky; };
  operations.set_sticky_error = [this](cudaError_t error) {
    if (sticky == cudaSuccess) sticky = error;
  };
  operations.set_order(kOrders[choice("WIDE_SIM_ORDER", {"eager", "lazy", "random"})],
                       options.seed);
  default_stream.slot = operations.new_slot();
  std::atexit(report_at_exit);
}

Device& device() {
  static Device* only = new Device;
  return *only;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

bool& is_host_function() {
  thread_local bool is_one = false;
  return is_one;
}

cudaError_t begin_call(Device& d, const char* name, bool is_counted) {
  if (is_host_function()) {
    return d.misuse(cudaErrorNotPermitted,
                    std::string(name) + " in a function of cudaLaunchHostFunc");
  }
  if (is_counted && ++d.faults.num_calls == d.faults.fail_at) {
    d.faults.failed_call = name;
    if (d.faults.is_sticky) d.sticky = d.faults.error;
    return d.faults.error;
  }
  return d.sticky;
}

cudaError_t Device::misuse(cudaError_t error, const std::string& text) {
  findings.report(simt::FindingKind::host, text);
  std::fprintf(stderr, "simulated CUDA: %s\n", text.c_str());
  return error;
}

cudaError_t Device::unsupported(const std::string& what) {
  if (told_.insert(what).second)
    std::fprintf(stderr, "simulated CUDA: not simulated: %s\n", what.c_str());
  return cudaErrorNotSupported;
}

CUstream_st* Device::stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &default_stream;
  if (handle == cudaStreamPerThread) {
    (void)unsupported("cudaStreamPerThread");
    return nullptr;
  }
  return streams.contains(handle) ? handle : nullptr;
}

std::string Device::describe(const void* pointer) const {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const std::optional<simt::BufferInfo> buffer = memory.find(address);
  if (!buffer) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", pointer);
    return std::string(memory.contains(address) ? "no buffer, at " : "host memory at ") + text;
  }
  std::string text = buffer->name;
  if (address != buffer->address) text += "+" + std::to_string(address - buffer->address);
  return text + (buffer->is_freed ? ", which was freed" : "");
}

/// A blocking stream's work and the default stream's follow each other, however they come.
std::vector<OperationPointer> Device::before(const CUstream_st& stream) {
  std::vector<OperationPointer> all{stream.last};
  if (&stream == &default_stream) {
    for (const CUstream_st* other : streams) {
      if (other->is_blocking) all.push_back(other->last);
    }
    all.insert(all.end(), orphans.begin(), orphans.end());
    orphans.clear();
  } else if (stream.is_blocking) {
    all.push_back(default_stream.last);
  }
  return all;
}

cudaError_t Device::enqueue(cudaStream_t handle, Work work, cudaGraphNodeType type,
                            bool is_programmatic) {
  CUstream_st* target = stream(handle);
  if (target == nullptr) return cudaErrorInvalidResourceHandle;
  if (target->capture != nullptr) {
    if (target->capture->is_invalid) return cudaErrorStreamCaptureInvalidated;
    auto node = std::make_shared<CUgraphNode_st>();
    *node = {std::move(work), target->tail, target->slot, type, is_programmatic, nullptr};
    Nodes& nodes = target->capture->graph->nodes;
    nodes.push_back(std::move(node));
    target->tail = {static_cast<int>(nodes.size()) - 1};
    return cudaSuccess;
  }
  if (target == &default_stream) {
    for (CUstream_st* other : streams) {
      if (other->capture == nullptr || !other->is_blocking) continue;
      other->capture->is_invalid = true;
      return cudaErrorStreamCaptureImplicit;
    }
  }
  target->last = operations.submit(target->slot, before(*target), std::move(work),
                                   type == cudaGraphNodeTypeKernel, is_programmatic);
  return sticky;
}

void Device::wait_for(CUstream_st& stream) {
  for (const OperationPointer& operation : before(stream)) operations.wait(operation);
}

void Device::reset() {
  operations.forget_pending();
  default_stream.last.reset();
  orphans.clear();
  freed_later.clear();
  for (const simt::BufferInfo& buffer : memory.live()) memory.free(buffer.address);
  for (const auto& module : modules) {
    if (!module->has_variables) continue;
    retired_.push_back(std::move(module->module));
    module->has_variables = false;
  }
  for (const auto& [stub, entry] : kernels) {
    if (entry->module->module == nullptr) entry->mutant.reset();
    entry->max_dynamic_shared_bytes = -1;
  }
  for (CUstream_st* one : streams) delete one;
  for (CUevent_st* one : events) delete one;
  for (CUgraph_st* one : graphs) delete one;
  for (CUgraphExec_st* one : graph_execs) delete one;
  streams.clear();
  events.clear();
  graphs.clear();
  graph_execs.clear();
  sticky = last_error() = cudaSuccess;
  faults.fail_at = 0;
}

}  // namespace wide::simcuda
