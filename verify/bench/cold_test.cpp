// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cold calls: the arithmetic of rotation, and the samplers that flush, rotate and count what a call
// costs the host. On the simulated GPU they run for their logic; their times mean nothing there.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "bench/timer/sampler.hpp"
#include "verify/support/devices.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr int64_t kMiB = 1 << 20;

TEST_CASE("rotation takes as many copies as cover the L2 by the factor, and two at least") {
  CHECK(copies_of({Cache::rotate, 2, 60 * kMiB, 60 * kMiB}) == 2);
  CHECK(copies_of({Cache::rotate, 2, 60 * kMiB, 7 * kMiB}) == 18);
  CHECK(copies_of({Cache::rotate, 2, 60 * kMiB, 500 * kMiB}) == 2);
  CHECK(copies_of({Cache::rotate, 3, 60 * kMiB, 45 * kMiB}) == 4);
  CHECK_THROWS_MATCHES(copies_of({Cache::rotate, 2, 60 * kMiB, kMiB / 4}), Error,
                       MessageMatches(ContainsSubstring("more than 256 copies")));
  CHECK_THROWS_MATCHES(copies_of({Cache::flush, 2, 0, kMiB}), Error,
                       MessageMatches(ContainsSubstring("how large its L2 is")));
}

TEST_CASE("short calls behind a flush have copies, others few or none") {
  const auto copies = [](int64_t touched_bytes, int64_t footprint_bytes) {
    return copies_of({Cache::flush, 2, 60 * kMiB, touched_bytes, footprint_bytes});
  };
  CHECK(copies(kMiB, kMiB) == 120);
  CHECK(copies(60 * kMiB - 1, 60 * kMiB) == 3);
  CHECK(copies(60 * kMiB, 60 * kMiB) == 1);  // long enough for two events
  CHECK(copies(kMiB / 4, kMiB) == 128);      // of 480
  CHECK(copies(0, 0) == 128);
  CHECK(copies(kMiB, 40 * kMiB) == 12);  // of 480 MiB together
  CHECK(copies(kMiB, 500 * kMiB) == 1);
  CHECK(copies_of({Cache::warm, 2, 60 * kMiB, kMiB, kMiB}) == 1);
}

TEST_CASE("a flushed sample has as many calls as it needs to last, and copies to be cold") {
  CHECK(flushed_calls(2'000, 200'000, 256) == 100);
  CHECK(flushed_calls(2'001, 200'000, 256) == 100);
  CHECK(flushed_calls(100, 200'000, 256) == 256);
  CHECK(flushed_calls(0, 200'000, 256) == 256);
  CHECK(flushed_calls(1e9, 200'000, 256) == 2);  // so that all of a case are graphs
  CHECK(flushed_calls(1e9, 200'000, 1) == 1);
  CHECK(flushed_calls(100, 200'000, 1) == 1);
}

TEST_CASE("calls take every copy equally often, and are never fewer than copies") {
  CHECK(rotated_calls(1, 18) == 18);
  CHECK(rotated_calls(18, 18) == 18);
  CHECK(rotated_calls(19, 18) == 36);
  CHECK(rotated_calls(100, 1) == 100);
}

TEST_CASE("a rotation that does not cover the L2 is told from one that does") {
  const ColdRule rule{Cache::rotate, 2, 60 * kMiB, 10 * kMiB};
  CHECK(covers_l2(rule, 12, 12));
  CHECK(covers_l2(rule, 12, 24));
  CHECK_FALSE(covers_l2(rule, 11, 11));  // 110 MiB of 120
  CHECK_FALSE(covers_l2(rule, 12, 11));  // the last copy is never taken
  CHECK_FALSE(covers_l2(rule, 12, 13));  // the first is taken twice as often
  CHECK_FALSE(covers_l2({Cache::rotate, 2, kMiB, 10 * kMiB}, 1, 4));
}

/// Bytes that calls fill, one tensor for each copy of the operands.
struct Copies {
  Copies(const Context& context_, int64_t count) : context(context_), stream(context_) {
    for (int64_t i = 0; i < count; ++i) tensors.emplace_back(context_, Dtype::int32, Shape{256});
    for (size_t i = 0; i < tensors.size(); ++i) {
      calls.push_back([this, i] {
        ++made;
        fill_bytes(tensors[i], static_cast<uint8_t>(i + 1), stream.get());
      });
    }
  }
  void clear() {
    for (Tensor& tensor : tensors) fill_bytes(tensor, 0x77, stream.get());
    made = 0;
  }
  int32_t first_of(size_t i) const {
    const Context cpu = Context::cpu();
    Tensor host(cpu, Dtype::int32, tensors[i].shape());
    copy(tensors[i], host, stream.get());
    context.synchronize(stream.get());
    return *static_cast<const int32_t*>(host.data());
  }
  Context context;
  OwnedStream stream;
  std::vector<Tensor> tensors;
  std::vector<Call> calls;
  int64_t made = 0;
};

TEST_CASE("a flushed sample is one call behind a flush") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies one(context, 1);
  const ColdRule rule{Cache::flush, 2, 4096, 1024};
  const auto sampler = make_cold_sampler(context, one.stream.get(), one.calls, rule, 32, 1);
  CHECK(sampler->timer() == "event");
  CHECK(sampler->iters_per_sample() == 1);
  one.clear();
  CHECK(sampler->sample_ns() > 0);
  CHECK(one.made == 1);
  CHECK(one.first_of(0) == 0x01010101);
  CHECK(flush_ns(context, one.stream.get(), rule) > 0);
  CHECK(sampler->calls_run_per_sample() == 0);  // what it draws is the flush's
  CHECK(sampler->note().empty());
}

/// Which copies' tensors have been filled since clear(), each by its own call.
std::vector<size_t> filled(const Copies& copies) {
  std::vector<size_t> found;
  for (size_t i = 0; i < copies.tensors.size(); ++i) {
    const int32_t first = copies.first_of(i);
    if (first == 0x77777777) continue;
    CHECK(first == 0x01010101 * static_cast<int32_t>(i + 1));
    found.push_back(i);
  }
  return found;
}

TEST_CASE("calls of a graph behind a flush have copies of their own") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies copies(context, 5);
  // Events of a clock this slow take all copies to last long enough, whatever one call takes.
  const auto sampler = make_cold_sampler(context, copies.stream.get(), copies.calls,
                                         {Cache::flush, 2, 4096, 1024}, 1e12, 1);
  CHECK(sampler->timer() == "graph");
  CHECK(sampler->iters_per_sample() == 5);
  CHECK(sampler->buffers_rotated() == 5);
  CHECK(sampler->calls_run_per_sample() == 0);
  CHECK(sampler->note().empty());
  copies.clear();
  CHECK(sampler->sample_ns() > 0);
  CHECK(copies.made == 0);
  CHECK(filled(copies) == std::vector<size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("calls that last long enough take two of their copies") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies copies(context, 5);
  copies.calls.front() = [&copies, long_call = copies.calls.front()] {
    for (int i = 0; i < 400; ++i) long_call();
  };
  for (size_t i = 1; i < copies.calls.size(); ++i) copies.calls[i] = copies.calls.front();
  const auto sampler = make_cold_sampler(context, copies.stream.get(), copies.calls,
                                         {Cache::flush, 2, 4096, 1024}, 0, 400);
  CHECK(sampler->iters_per_sample() == 2);
  CHECK(sampler->timer() == "graph");
}

TEST_CASE("a cold call of more launches than may wait in a stream is launched as a graph") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies one(context, 1);
  const auto sampler = make_cold_sampler(context, one.stream.get(), one.calls,
                                         {Cache::flush, 2, 4096, 1024}, 32, 513);
  CHECK(sampler->timer() == "event");
  CHECK_THAT(sampler->note(), ContainsSubstring("captured"));
  one.clear();
  CHECK(sampler->sample_ns() > 0);
  CHECK(one.made == 0);
  CHECK(one.first_of(0) == 0x01010101);
}

TEST_CASE("a rotating sample replays calls on every copy") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies copies(context, 5);
  const auto sampler = make_cold_sampler(context, copies.stream.get(), copies.calls,
                                         {Cache::rotate, 2, 2560, 1024}, 0, 1);
  CHECK(sampler->timer() == "graph");
  CHECK(sampler->buffers_rotated() == 5);
  CHECK(sampler->iters_per_sample() >= 5);
  CHECK(sampler->iters_per_sample() % 5 == 0);
  CHECK(sampler->calls_run_per_sample() == 2 * sampler->iters_per_sample());
  copies.clear();
  CHECK(sampler->sample_ns() > 0);
  CHECK(copies.made == 0);
  for (size_t i = 0; i < 5; ++i)
    CHECK(copies.first_of(i) == 0x01010101 * static_cast<int32_t>(i + 1));
}

TEST_CASE("copies that do not cover the L2 make no sampler") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies copies(context, 4);
  CHECK_THROWS_MATCHES(make_cold_sampler(context, copies.stream.get(), copies.calls,
                                         {Cache::rotate, 2, 2560, 1024}, 0, 1),
                       Error, MessageMatches(ContainsSubstring("do not cover the L2")));
}

TEST_CASE("what a call costs the host is measured with few launches in the queue") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Copies one(context, 1);
  const auto few = make_enqueue_sampler(context, one.stream.get(), one.calls[0], 20);
  CHECK(few->timer() == "host");
  CHECK(few->iters_per_sample() == 2);  // 40 launches of 50 that may wait
  one.clear();
  CHECK(few->sample_ns() > 0);
  CHECK(one.made == 2);
  CHECK(make_enqueue_sampler(context, one.stream.get(), one.calls[0], 1000)->iters_per_sample() ==
        1);
}

}  // namespace
}  // namespace wide::bench
