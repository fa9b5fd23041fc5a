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

struct StreamLanes::State {};

std::unique_ptr<Sampler> make_stream_sampler(const Context&, Stream, const Call&) {
  refuse();
}
std::unique_ptr<Sampler> make_graph_sampler(const Context&, Stream, const Call&, double) {
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
