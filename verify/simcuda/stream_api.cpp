// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include <algorithm>

#include "verify/simcuda/device.hpp"

namespace wide::simcuda {

namespace {

cudaError_t create(Device& d, cudaStream_t* handle, unsigned flags, int priority) {
  auto* stream = new CUstream_st;
  stream->slot = d.operations.new_slot();
  stream->flags = flags;
  stream->priority = priority;
  stream->is_blocking = (flags & cudaStreamNonBlocking) == 0;
  d.streams.insert(stream);
  *handle = stream;
  return cudaSuccess;
}

cudaError_t destroy(Device& d, cudaStream_t handle) {
  if (!d.streams.contains(handle)) return cudaErrorInvalidResourceHandle;
  if (handle->capture != nullptr) handle->capture->streams.erase(handle);
  d.streams.erase(handle);
  d.operations.retire_slot(handle->slot);
  delete handle;  // its work goes on
  return cudaSuccess;
}

/// The stream joins the capture that the event was recorded in.
cudaError_t join_capture(CUstream_st& stream, const CUevent_st& event) {
  if (stream.capture != nullptr && stream.capture != event.capture)
    return cudaErrorStreamCaptureMerge;
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.tail.clear();
    event.capture->streams.insert(&stream);
  }
  for (const int node : event.tail) {
    if (std::find(stream.tail.begin(), stream.tail.end(), node) == stream.tail.end())
      stream.tail.push_back(node);
  }
  return cudaSuccess;
}

cudaError_t wait_for_event(Device& d, cudaStream_t handle, cudaEvent_t event) {
  CUstream_st* stream = d.stream(handle);
  if (stream == nullptr || !d.events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (event->capture != nullptr) return join_capture(*stream, *event);
  if (event->was_captured) return cudaErrorCapturedEvent;  // of a capture that has ended
  if (stream->capture != nullptr) {
    stream->capture->is_invalid = true;  // depends on work that is not captured
    return cudaErrorStreamCaptureIsolation;
  }
  if (event->operation != nullptr) stream->waits.push_back(event->operation);
  return cudaSuccess;
}

cudaError_t record(Device& d, cudaEvent_t event, cudaStream_t handle) {
  CUstream_st* stream = d.stream(handle);
  if (stream == nullptr || !d.events.contains(event)) return cudaErrorInvalidResourceHandle;
  event->capture = stream->capture;
  event->was_captured = stream->capture != nullptr;
  if (stream->capture != nullptr) {
    event->tail = stream->tail;
    return cudaSuccess;
  }
  event->operation = d.operations.submit(stream->slot, d.before(*stream), nullptr);
  stream->last = event->operation;
  return d.sticky;
}

bool is_done(const OperationPointer& operation) {
  return operation == nullptr || operation->is_done;
}

}  // namespace

}  // namespace wide::simcuda

using namespace wide::simcuda;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return call("cudaStreamCreate", [&](Device& d) { return create(d, stream, 0, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&](Device& d) { return create(d, stream, flags, 0); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority",
              [&](Device& d) { return create(d, stream, flags, priority); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return release("cudaStreamDestroy", [&](Device& d) { return destroy(d, stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&](Device& d) {
    CUstream_st* stream = d.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = d.forbid_while_capturing(*stream); error != cudaSuccess)
      return error;
    d.wait_for(*stream);
    return d.sticky;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", [&](Device& d) {
    CUstream_st* stream = d.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = d.forbid_while_capturing(*stream); error != cudaSuccess)
      return error;
    if (!is_done(stream->last)) d.wait_for(*stream);  // work goes on while the host polls
    return d.sticky;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&](Device& d) { return wait_for_event(d, stream, event); });
}
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return call("cudaStreamGetFlags", [&](Device& d) {
    CUstream_st* stream = d.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return *flags = stream->flags, cudaSuccess;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange",
              [&](Device&) { return *least = 0, *greatest = -5, cudaSuccess; });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", [&](Device& d) {
    return d.enqueue(stream, [=](const Operation&) { return function(data), cudaSuccess; });
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](Device& d) {
    *event = new CUevent_st;
    (*event)->has_timing = (flags & cudaEventDisableTiming) == 0;
    d.events.insert(*event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return release("cudaEventDestroy", [&](Device& d) {
    if (d.events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&](Device& d) { return record(d, event, stream); });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&](Device& d) {
    if (!d.events.contains(event)) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = d.forbid_while_capturing(*event); error != cudaSuccess)
      return error;
    d.operations.wait(event->operation);
    return d.sticky;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&](Device& d) {
    if (!d.events.contains(event)) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = d.forbid_while_capturing(*event); error != cudaSuccess)
      return error;
    d.operations.wait(event->operation);
    return d.sticky;
  });
}
/// Logical time: the same in every run, and no measure of anything.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&](Device& d) {
    if (!d.events.contains(start) || !d.events.contains(end)) return cudaErrorInvalidResourceHandle;
    if (start->was_captured || end->was_captured) return cudaErrorCapturedEvent;
    const bool is_recorded = start->operation != nullptr && end->operation != nullptr;
    if (!is_recorded || !start->has_timing || !end->has_timing)
      return cudaErrorInvalidResourceHandle;
    if (!is_done(start->operation) || !is_done(end->operation)) return cudaErrorNotReady;
    *milliseconds = static_cast<float>((end->operation->end_us - start->operation->end_us) / 1000);
    return cudaSuccess;
  });
}

}  // extern "C"
