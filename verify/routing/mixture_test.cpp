// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts on the CPU. mixture_cuda_test.cpp has it on CUDA.
#include "verify/routing/mixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace wide::test {

TEST_CASE("mixture on the CPU: rows find their experts, and add up what these make") {
  const Context context = Context::cpu({.num_threads = 2, .allocator = nullptr});
  for (const GateFunction gate : {GateFunction::softmax, GateFunction::softmax_all}) {
    for (const int64_t choices : {1, 2, 6}) {
      for (const char* strategy : {"auto", "sequential"}) {
        Mixture m;
        m.gate = gate;
        m.choices = choices;
        INFO(gate_function_name(gate) << " " << choices << " choices by " << strategy);
        MixtureCalls calls(context, m, Dtype::fp32, {strategy, strategy, strategy}, 0, m.experts);
        for (const uint64_t seed : {7u, 8u}) {
          calls.set_x(m.x(seed), Stream::cpu());
          calls.run(Stream::cpu());
          CHECK(worst_difference(calls.y(), m.expected(m.x(seed))) < 1e-4);
        }
      }
    }
  }
  const Mixture m;
  MixtureCalls calls(context, m, Dtype::bf16, {}, 0, m.experts);
  calls.set_x(m.x(7), Stream::cpu());
  calls.run(Stream::cpu());
  CHECK(worst_difference(calls.y(), m.expected(m.x(7))) < 0.5);
}

TEST_CASE("mixture on the CPU: devices with some of the experts each add up to all of them") {
  const Context context = Context::cpu();
  const Mixture m;
  std::vector<double> sum(static_cast<size_t>(m.batch * m.out), 0.0);
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 4}, {4, 2}}) {
    MixtureCalls calls(context, m, Dtype::fp32, {}, first, count);
    calls.set_x(m.x(9), Stream::cpu());
    calls.run(Stream::cpu());
    const std::vector<double> own = calls.y();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  }
  CHECK(worst_difference(sum, m.expected(m.x(9))) < 1e-4);
}

}  // namespace wide::test
