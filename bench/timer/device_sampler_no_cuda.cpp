// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A build without CUDA has no CUDA context, so none of this can be reached.
#include "bench/timer/sampler.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::unsupported, "this build of wide has no CUDA");
}

}  // namespace

ActiveDevice::ActiveDevice(const Context&) {}
ActiveDevice::~ActiveDevice() = default;

RunDevice run_device(const Context& context) {
  return {context.info(), "", ""};
}

std::string pci_bus_id(const Context&) {
  return "";
}

ProfilerRange::ProfilerRange(const Context&) : is_cuda_(false) {}
ProfilerRange::~ProfilerRange() = default;

struct StreamLanes::State {};

std::unique_ptr<Sampler> make_stream_sampler(const Context&, Stream, const Call&) {
  refuse();
}
std::unique_ptr<Sampler> make_graph_sampler(const Context&, Stream, const Call&, double) {
  refuse();
}
std::unique_ptr<Sampler> make_cold_sampler(const Context&, Stream, const std::vector<Call>&,
                                           const ColdRule&, double, int64_t) {
  refuse();
}
std::unique_ptr<Sampler> make_enqueue_sampler(const Context&, Stream, const Call&, int64_t) {
  refuse();
}
Call captured_call(const Context&, Stream, const Call&) {
  refuse();
}
double flush_ns(const Context&, Stream, const ColdRule&) {
  refuse();
}
CallLaunches launches_of(const Context&, Stream, const Call&) {
  refuse();
}
StreamLanes::StreamLanes(const Context&, Stream, int64_t, int64_t) {
  refuse();
}
StreamLanes::~StreamLanes() = default;
void StreamLanes::run(const catalog::PreparedMembers&, int64_t) const {
  refuse();
}

}  // namespace wide::bench
