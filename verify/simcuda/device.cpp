// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simcuda/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "verify/simcuda/report.hpp"

namespace wide::simcuda {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int64_t number(const char* name) {
  return std::strtoll(environment(name).c_str(), nullptr, 0);
}

/// A word of a list; anything else is a mistake that must not pass for the default.
size_t choice(const char* name, std::initializer_list<const char*> words) {
  const std::string value = environment(name);
  if (value.empty()) return 0;
  size_t i = 0;
  for (const char* word : words) {
    if (value == word) return i;
    ++i;
  }
  std::fprintf(stderr, "simulated CUDA: %s is \"%s\", expected one of", name, value.c_str());
  for (const char* word : words) std::fprintf(stderr, " %s", word);
  std::fprintf(stderr, "\n");
  std::_Exit(2);
}

/// What a thread without a context may call and still have none.
bool only_asks(std::string_view call) {
  static constexpr std::string_view kCalls[] = {
      "cudaGetDeviceCount",     "cudaGetDevice",         "cudaGetDeviceProperties",
      "cudaDeviceGetAttribute", "cudaDeviceGetPCIBusId", "cudaGetDriverEntryPointByVersion",
      "a library's work"};
  return std::find(std::begin(kCalls), std::end(kCalls), call) != std::end(kCalls);
}

}  // namespace

Device::Device() {
  static constexpr Order kOrders[] = {Order::eager, Order::lazy, Order::random};
  static constexpr simt::Delivery kDeliveries[] = {simt::Delivery::lazy, simt::Delivery::eager,
                                                   simt::Delivery::random};
  static constexpr int kArchitectures[] = {90, 80, 89, 120};
  architecture = kArchitectures[choice("WIDE_SIM_ARCH", {"90", "80", "89", "120"})];
  options.seed = static_cast<uint32_t>(number("WIDE_SIM_SEED"));
  options.delivery = kDeliveries[choice("WIDE_SIM_DELIVERY", {"lazy", "eager", "random"})];
  faults.fail_at = number("WIDE_SIM_FAIL_AT");
  if (!environment("WIDE_SIM_FAIL_WITH").empty())
    faults.error = static_cast<cudaError_t>(number("WIDE_SIM_FAIL_WITH"));
  faults.is_sticky = environment("WIDE_SIM_FAIL_STICKY") == "1";
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

bool& has_context() {
  thread_local bool has_one = false;
  return has_one;
}

cudaStreamCaptureMode& capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

cudaError_t begin_call(Device& d, const char* name, bool is_counted) {
  has_context() = has_context() || !only_asks(name);
  if (is_counted && ++d.faults.num_calls == d.faults.fail_at) {
    d.faults.failed_call = name;
    if (d.faults.is_sticky) d.sticky = d.faults.error;
    return d.faults.error;
  }
  return d.sticky;
}

void Device::misuse(const std::string& text) {
  findings.report(simt::FindingKind::host, text);
  std::fprintf(stderr, "simulated CUDA: %s\n", text.c_str());
}

cudaError_t Device::unsupported(const std::string& what) {
  if (told_.insert(what).second)
    std::fprintf(stderr, "simulated CUDA: not simulated: %s\n", what.c_str());
  return cudaErrorNotSupported;
}

CUstream_st* Device::stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
    return &default_stream;
  return streams.contains(handle) ? handle : nullptr;
}

std::vector<OperationPointer> Device::before(CUstream_st& stream) {
  std::vector<OperationPointer> all{stream.last};
  all.insert(all.end(), stream.waits.begin(), stream.waits.end());
  stream.waits.clear();
  if (&stream == &default_stream) {
    for (const CUstream_st* other : streams) {
      if (other->is_blocking) all.push_back(other->last);
    }
  } else if (stream.is_blocking) {
    all.push_back(default_stream.last);
  }
  return all;
}

cudaError_t Device::enqueue(cudaStream_t handle, Work work) {
  CUstream_st* target = stream(handle);
  if (target == nullptr) return cudaErrorInvalidResourceHandle;
  if (target->capture != nullptr) {
    auto& nodes = target->capture->graph->nodes;
    nodes.push_back({std::move(work), target->tail, target->slot});
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
  target->last = operations.submit(target->slot, before(*target), std::move(work));
  return sticky;
}

cudaError_t Device::forbid_while_capturing() {
  if (capture_mode() == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const bool heeds_others = capture_mode() == cudaStreamCaptureModeGlobal;
  cudaError_t error = cudaSuccess;
  for (CUstream_st* one : streams) {
    if (one->capture == nullptr) continue;
    const bool is_own = one->capture->thread == std::this_thread::get_id();
    const bool forbids = is_own ? one->capture->mode != cudaStreamCaptureModeRelaxed
                                : heeds_others && one->capture->mode == cudaStreamCaptureModeGlobal;
    if (!forbids) continue;
    one->capture->is_invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t Device::forbid_while_capturing(const CUstream_st& stream) {
  if (stream.capture == nullptr) return forbid_while_capturing();
  stream.capture->is_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t Device::forbid_while_capturing(const CUevent_st& event) {
  if (!event.was_captured) return forbid_while_capturing();
  if (event.capture != nullptr) event.capture->is_invalid = true;
  return cudaErrorCapturedEvent;
}

/// Waits for the last operation, and for events that the stream was told to wait for behind it.
void Device::wait_for(CUstream_st& stream) {
  for (const OperationPointer& operation : before(stream)) operations.wait(operation);
}

cudaError_t Device::synchronize() {
  cudaError_t error = cudaSuccess;
  for (CUstream_st* one : streams) {
    if (one->capture == nullptr) continue;
    one->capture->is_invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  if (error != cudaSuccess) return error;
  operations.wait_for_all();
  return sticky;
}

void Device::reset() {
  operations.forget_pending();
  default_stream.last.reset();
  default_stream.waits.clear();
  for (const simt::BufferInfo& buffer : memory.live()) memory.free(buffer.address);
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
