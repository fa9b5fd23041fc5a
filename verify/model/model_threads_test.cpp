// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// On the CPU members change while other threads run: what a run computes is that of the members
// before a change or behind it, never of some of both. On CUDA streams see to that; what changes
// members or reads them back takes turns there, too.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/chunked_model.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using test::ModelRun;

namespace {

using Bytes = std::vector<std::byte>;

/// Makes the members the one thing (0) or the other (1).
using Change = std::function<void(int)>;
/// Runs once, to be called by one thread.
using Compute = std::function<void()>;

/// An output and a workspace of a thread's own.
struct Lane {
  Tensor y, workspace;
  TensorView out;
  Lane(const Context& context, const ModelRun& run)
      : y(context, run.plan().outputs()[0].dtype, run.plan().outputs()[0].shape),
        workspace(context, Dtype::uint8, {run.plan().workspace_bytes()}),
        out(y) {}
  Lane(const Lane&) = delete;
  ModelArguments arguments(const ModelRun& run) const {
    return {run.arguments().inputs, {&out, 1}};
  }
  Execution execution() { return {Stream::cpu(), {workspace.data(), workspace.bytes()}}; }
  Bytes read() const {
    const auto* bytes = static_cast<const std::byte*>(y.data());
    return {bytes, bytes + y.bytes()};
  }
};

/// Two threads compute, each by a function that `make` gives it, while a third changes members.
void check(ModelRun& run, const Change& change, const std::function<Compute(Lane&)>& make) {
  // Of runs and of changes: a thousand are enough to be torn without a lock.
  const int64_t least = test::wants_small_cases() ? 200 : 1000;
  const Context& context = run.context();
  std::vector<Bytes> expected;
  for (const int which : {0, 1}) {
    change(which);
    Lane lane(context, run);
    make(lane)();
    expected.push_back(lane.read());
  }
  REQUIRE(expected[0] != expected[1]);

  std::atomic<bool> is_over{false};
  std::atomic<int64_t> num_runs{0}, num_torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      Lane lane(context, run);
      const Compute compute = make(lane);
      do {
        std::memset(lane.y.data(), 0xff, static_cast<size_t>(lane.y.bytes()));
        compute();
        const Bytes got = lane.read();
        num_torn += std::count(expected.begin(), expected.end(), got) == 0 ? 1 : 0;
        ++num_runs;
      } while (!is_over);
    });
  }
  for (int64_t i = 0; i < least || num_runs < least; ++i) change(static_cast<int>(i % 2));
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(num_torn == 0);
}

Context two_threads() {
  return Context::cpu({.num_threads = 2, .allocator = nullptr});
}

}  // namespace

TEST_CASE("model threads: members are replaced and cloned while others run") {
  ModelRun run(two_threads(), test::small_model("deep_mlp"), {.num_members = 3, .batch = 8});
  const Stream cpu = Stream::cpu();
  const MemberParameters sets[] = {run.parameters_of(8), run.parameters_of(9)};
  const auto plain = [&](Lane& lane) -> Compute {
    return [&] { run.model().run(lane.arguments(run), lane.execution()); };
  };
  const auto replayed = [&](Lane& lane) -> Compute {
    const auto replay = std::make_shared<const ModelReplay>(run.context(), run.model(),
                                                            lane.arguments(run), lane.execution());
    return [replay, cpu] { replay->run(cpu); };
  };
  const Change replace = [&](int which) { run.model().replace(1, sets[which], cpu); };
  const Change set = [&](int which) {
    run.model().set(1, "fc1.weight", sets[which].at("fc1.weight"), cpu);
  };
  const Change clone = [&](int which) { run.model().clone(2 * which, 1, cpu); };
  check(run, replace, plain);
  check(run, set, plain);
  check(run, clone, plain);
  check(run, replace, replayed);
}

TEST_CASE("model threads: runs of one replay take turns") {
  const Context alone = Context::cpu({.num_threads = 1, .allocator = nullptr});
  ModelRun run(alone, make_named_model("deep_mlp"), {.num_members = 4, .batch = 8});
  const Stream cpu = Stream::cpu();
  const ModelReplay replay(run.context(), run.model(), run.arguments(), run.execution());
  const auto output = [&] {
    const TensorView y = run.arguments().outputs[0];
    const auto* bytes = static_cast<const std::byte*>(y.data);
    return Bytes(bytes, bytes + y.span_bytes());
  };
  replay.run(cpu);
  const Bytes expected = output();
  // Both threads run it once, at the same time, and what is left there is looked at.
  const int pairs = test::wants_small_cases() ? 20 : 100;
  std::atomic<int> num_ready{0};
  const auto run_together = [&](int until) {
    ++num_ready;
    while (num_ready < until) std::this_thread::yield();
    replay.run(cpu);
    ++num_ready;
    while (num_ready < until + 2) std::this_thread::yield();
  };
  std::thread other([&] {
    for (int i = 0; i < pairs; ++i) run_together(4 * i + 2);
  });
  int num_wrong = 0;
  for (int i = 0; i < pairs; ++i) {
    run_together(4 * i + 2);
    num_wrong += output() == expected ? 0 : 1;
  }
  other.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("model threads: a run in pieces is of the same members in all of them") {
  ModelRun run(two_threads(), test::small_model("mlp"), {.num_members = 2, .batch = 24});
  const MemberParameters sets[] = {run.parameters_of(8), run.parameters_of(9)};
  const ChunkedModel chunked(run.model().with_batch(5), 24);
  check(
      run, [&](int which) { run.model().replace(0, sets[which], Stream::cpu()); },
      [&](Lane& lane) -> Compute {
        return [&] { chunked.run(lane.arguments(run), lane.execution()); };
      });
}

TEST_CASE("model threads: changes come one after another, and what is read back is one's own") {
  const Context device = GENERATE(from_range(test::devices_at_hand()));
  CAPTURE(to_string(device.device()));
  const int num_rounds = device.device().type == DeviceType::cpu ? 1000 : 100;
  ModelRun run(device, test::small_model("mlp"), {.num_members = 2, .batch = 2});
  const Stream stream = run.stream();
  std::atomic<int64_t> num_torn{0};
  std::vector<std::thread> threads;
  std::vector<MemberParameters> sets;
  for (int64_t id = 8; id < 11; ++id) sets.push_back(run.parameters_of(id));
  for (const MemberParameters& own : sets) {
    threads.emplace_back([&] {
      for (int i = 0; i < num_rounds; ++i) {
        run.model().replace(1, own, stream);
        const OwnedParameters got = run.model().get(1, stream);
        const auto is_of = [&](const MemberParameters& given) {
          return std::all_of(got.begin(), got.end(), [&](const auto& parameter) {
            const auto& [name, tensor] = parameter;
            return std::memcmp(tensor.data(), given.at(name).data,
                               static_cast<size_t>(tensor.bytes())) == 0;
          });
        };
        num_torn += std::count_if(sets.begin(), sets.end(), is_of) == 1 ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_torn == 0);
}
