// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A graph with the engine of cuDNN's that computes it, chosen when the plan is made.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "host/cudnn/cudnn_graph.hpp"
#include "wide/context.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide {

class CudnnPlanCache;

/// What plans are made for. cuDNN makes them for devices that are not at hand, too: nothing of a
/// plan needs a GPU until it runs.
struct CudnnDevice {
  int ordinal = 0;
  std::string properties{};         ///< cuDNN's JSON of another device; empty: the one at `ordinal`
  CudnnPlanCache* cache = nullptr;  ///< of plans for this device, or none
};
/// The context's device, with the context's cache.
CudnnDevice cudnn_device(const Context& context);

/// Why this build or this machine has no cuDNN that plans for the device; empty where it has.
std::string cudnn_unavailable_reason(const CudnnDevice& device);

/// An address for a tensor in memory. Tensors are declared to begin at multiples of 16 bytes.
struct CudnnBinding {
  CudnnBinding() = default;
  CudnnBinding(CudnnTensorId tensor_, void* data_) : tensor(tensor_), data(data_) {}
  /// cuDNN's interface lacks const, even for what it only reads.
  CudnnBinding(CudnnTensorId tensor_, const ConstTensorView& view)
      : CudnnBinding(tensor_, const_cast<void*>(view.data)) {}

  CudnnTensorId tensor = kNoCudnnTensor;
  void* data = nullptr;
};
/// Those of a call, without those of operands that its graph has not. No memory of its own: calls
/// allocate nothing.
class CudnnBindings {
 public:
  CudnnBindings(std::initializer_list<CudnnBinding> all) {
    for (const CudnnBinding& one : all) {
      if (one.tensor != kNoCudnnTensor) bindings_.at(count_++) = one;
    }
  }
  operator std::span<const CudnnBinding>() const { return std::span(bindings_).first(count_); }

 private:
  std::array<CudnnBinding, 10> bindings_{};
  size_t count_ = 0;
};
inline constexpr int64_t kCudnnAlignment = 16;
/// Why operands with these addresses are none of a plan's; empty where they are. A plan is made
/// before there are any.
std::string cudnn_alignment_reason(
    std::initializer_list<std::pair<const char*, ConstTensorView>> operands);

/// May run from several threads at a time, which cuDNN's plans by themselves may not: calls enter
/// cuDNN one after another (https://github.com/pytorch/pytorch/pull/103939 has what happens else).
class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  /// On `cudnn`, a cudnnHandle_t, whose stream it sets. Neither waits nor touches device memory
  /// but the operands' and workspace_bytes() of `workspace`; cuDNN's own variant pack is host
  /// memory. Throws cudnn, or out_of_memory where cuDNN says so.
  virtual void run(void* cudnn, std::span<const CudnnBinding> bindings, const Workspace& workspace,
                   Stream stream) const = 0;

  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Which engine, of which list, and what it does to numbers.
  const std::string& explain() const { return explain_; }
  /// How many configurations cuDNN had offered with its own: the next is looked for behind them.
  int64_t num_looked_at() const { return num_looked_at_; }

 protected:
  int64_t num_looked_at_ = 0;
  int64_t workspace_bytes_ = 0;
  std::string explain_;
};

/// Of the configurations that `numerics` allow and that become a plan of the graph, cuDNN's best
/// guesses and then its fallbacks, the one at `place`. Throws unsupported with cuDNN's own words
/// where there is none, or no cuDNN; where there are fewer, with their number.
std::shared_ptr<const CudnnPlan> make_cudnn_plan(std::string_view primitive,
                                                 const CudnnDevice& device, const CudnnGraph& graph,
                                                 const CudnnNumerics& numerics, int place = 0);
/// Why `make`, which makes such plans, makes none, be it that cuDNN broke down; empty where it
/// makes them. Throws out_of_memory.
template <class Make>
std::string cudnn_refusal(const Make& make) {
  try {
    make();
    return "";
  } catch (const Error& error) {
    const bool is_cudnns =
        error.code() == ErrorCode::unsupported || error.code() == ErrorCode::cudnn;
    if (!is_cudnns) throw;
    return error.what();
  }
}
/// The first of these behind `previous`, or of all where that is null; always anew.
std::shared_ptr<const CudnnPlan> find_cudnn_engine(std::string_view primitive,
                                                   const CudnnDevice& device,
                                                   const CudnnGraph& graph,
                                                   const CudnnNumerics& numerics,
                                                   const CudnnPlan* previous);

}  // namespace wide
