// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Measures cuBLASLt's algorithms for one problem. Candidates take turns, so that a changing clock
// favours no algorithm, and the median of the rounds decides. Calls are replayed from a CUDA graph:
// enqueued one by one, short ones would all take as long as enqueueing. Operands are random,
// because the power that a multiplication takes depends on its operands.
#include <algorithm>
#include <limits>
#include <random>

#include "host/core/capture_cuda.hpp"
#include "host/core/cuda_check.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/runtime.hpp"
#include "host/linear/linear_cublaslt_call_cuda.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide {

namespace {

constexpr int kRounds = 5;
constexpr float kBlock_ms = 0.5f;  // of successive calls: long against an event's resolution
constexpr int kMaxCalls = 50;

class Event {
 public:
  Event() { WIDE_CHECK_CUDA(cudaEventCreate(&event_)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Bytes from the first element to the end of the last.
int64_t span_bytes(const BlasMatrix& matrix, int64_t num_members, Dtype dtype) {
  const int64_t columns = (matrix.columns - 1) * matrix.leading;
  const int64_t members = (num_members - 1) * matrix.member;
  return (columns + members + matrix.rows) * dtype_bytes(dtype);
}

/// `bytes` of random values in [-1, 1]: one block of them, repeated.
Tensor random_operand(const Context& context, Dtype dtype, int64_t bytes, Stream stream) {
  constexpr int64_t kBlock = 1 << 18;
  Tensor operand(context, Dtype::uint8, {bytes});
  std::vector<std::byte> block(static_cast<size_t>(std::min(kBlock, bytes)));
  std::minstd_rand random(42);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto count = static_cast<int64_t>(block.size()) / dtype_bytes(dtype);
  for (int64_t i = 0; i < count; ++i) store_element(block.data(), dtype, i, uniform(random));
  for (int64_t at = 0; at < bytes; at += kBlock) {
    runtime::copy_async(context.device().ordinal, static_cast<std::byte*>(operand.data()) + at,
                        block.data(), std::min(kBlock, bytes - at),
                        runtime::Direction::host_to_device, stream);
  }
  context.synchronize(stream);  // before the block is freed
  return operand;
}

class Search {
 public:
  Search(const Context& context, cublasLtHandle_t handle, const LinearProblem& problem,
         const CublasLtCall& call, const CublasLtMatmul& matmul, int64_t workspace_bytes)
      : handle_(handle),
        matmul_(matmul),
        stream_(context),
        workspace_(context, Dtype::uint8, {workspace_bytes}) {
    const auto random = [&](const BlasMatrix& matrix, Dtype dtype) {
      const int64_t bytes = span_bytes(matrix, problem.num_members, dtype);
      return operands_.emplace_back(random_operand(context, dtype, bytes, stream_.get())).data();
    };
    addresses_.weight = random(call.blas.weight, call.dtype);
    addresses_.x = random(call.blas.x, call.dtype);
    addresses_.y = random(call.blas.y, call.to_dtype);
    addresses_.residual = call.adds_residual ? random(call.residual, call.to_dtype) : addresses_.y;
    const BlasMatrix bias{problem.out_features, 1, problem.out_features, call.bias_member_stride};
    if (call.adds_bias()) addresses_.bias = random(bias, call.to_dtype);
  }

  using Replay = OwnedGraph<cudaGraphExec_t>;

  bool run(const cublasLtMatmulAlgo_t& algorithm) {
    return matmul_.run(handle_, addresses_, algorithm, {workspace_.data(), workspace_.bytes()},
                       native_stream(stream_.get())) == CUBLAS_STATUS_SUCCESS;
  }

  /// `calls` calls as one graph; null where one fails, even if only in a capture.
  Replay capture(const cublasLtMatmulAlgo_t& algorithm, int calls) {
    bool has_run = true;
    try {
      const OwnedGraph<cudaGraph_t> graph = capture_graph(native_stream(stream_.get()), [&] {
        for (int i = 0; i < calls && has_run; ++i) has_run = run(algorithm);
      });
      return has_run ? instantiate_graph(graph.get()) : nullptr;
    } catch (const Error&) {
      return nullptr;
    }
  }

  /// Milliseconds of a replay that follows another one: its launch time is hidden.
  float replay_ms(const Replay& replay) {
    const BesideCaptures beside;
    const cudaStream_t stream = native_stream(stream_.get());
    WIDE_CHECK_CUDA(cudaGraphLaunch(replay.get(), stream));
    WIDE_CHECK_CUDA(cudaEventRecord(begin_.get(), stream));
    WIDE_CHECK_CUDA(cudaGraphLaunch(replay.get(), stream));
    WIDE_CHECK_CUDA(cudaEventRecord(end_.get(), stream));
    WIDE_CHECK_CUDA(cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    WIDE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return milliseconds;
  }

 private:
  cublasLtHandle_t handle_;
  const CublasLtMatmul& matmul_;
  OwnedStream stream_;
  Tensor workspace_;
  std::vector<Tensor> operands_;
  CublasLtOperands addresses_;
  Event begin_, end_;
};

struct Runner {
  int calls = 1;                   ///< of a replay
  Search::Replay replay;           ///< null: the algorithm does not run
  std::vector<float> per_call_ms;  ///< of every round

  float median() const {
    if (per_call_ms.empty()) return std::numeric_limits<float>::infinity();
    std::vector<float> sorted = per_call_ms;
    std::nth_element(sorted.begin(), sorted.begin() + kRounds / 2, sorted.end());
    return sorted[kRounds / 2];
  }
};

}  // namespace

int fastest_candidate(const Context& context, cublasLtHandle_t handle, const LinearProblem& problem,
                      const CublasLtCall& call, const CublasLtMatmul& matmul,
                      const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                      int64_t workspace_bytes) {
  Search search(context, handle, problem, call, matmul, workspace_bytes);
  std::vector<Runner> runners(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    Runner& runner = runners[i];
    if (!search.run(candidates[i].algo)) continue;  // which loads the kernel
    runner.replay = search.capture(candidates[i].algo, 1);
    if (runner.replay == nullptr) continue;
    const float one = search.replay_ms(runner.replay);
    runner.calls =
        one * kMaxCalls < kBlock_ms ? kMaxCalls : std::max(1, static_cast<int>(kBlock_ms / one));
    runner.replay = search.capture(candidates[i].algo, runner.calls);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Runner& runner : runners) {
      if (runner.replay == nullptr) continue;
      const float total = search.replay_ms(runner.replay);
      runner.per_call_ms.push_back(total / static_cast<float>(runner.calls));
    }
  }
  const auto fastest =
      std::min_element(runners.begin(), runners.end(),
                       [](const Runner& a, const Runner& b) { return a.median() < b.median(); });
  const bool has_run = fastest != runners.end() && !fastest->per_call_ms.empty();
  return has_run ? static_cast<int>(fastest - runners.begin()) : -1;
}

}  // namespace wide
