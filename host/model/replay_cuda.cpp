// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Capture once, launch often.
#include "host/model/replay.hpp"

#include "host/core/capture_cuda.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"

namespace wide {

namespace {

class CudaReplay final : public Replay {
 public:
  CudaReplay(const Context& context, const std::function<void(Stream)>& enqueue)
      : ordinal_(context.device().ordinal) {
    const CurrentDevice current(ordinal_);
    const OwnedStream stream(context);
    const OwnedGraph<cudaGraph_t> graph =
        capture_graph(native_stream(stream.get()), [&] { enqueue(stream.get()); });
    exec_ = instantiate_graph(graph.get());
    const BesideCaptures beside;
    WIDE_CHECK_CUDA(
        cudaGraphUpload(exec_.get(), native_stream(stream.get())));  // else the first run does
    context.synchronize(stream.get());
  }
  void launch(Stream stream) const override {
    const CurrentDevice current(ordinal_);
    WIDE_CHECK_CUDA(cudaGraphLaunch(exec_.get(), native_stream(stream)));
  }

 private:
  int ordinal_;
  OwnedGraph<cudaGraphExec_t> exec_;
};

}  // namespace

std::unique_ptr<Replay> capture_replay(const Context& context,
                                       const std::function<void(Stream)>& enqueue) {
  return std::make_unique<CudaReplay>(context, enqueue);
}

}  // namespace wide
