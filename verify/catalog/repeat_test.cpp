// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The same bits every run: each strategy of ours again and again, while four other streams run it
// on other values (on the CPU, where a stream is its thread, four threads). What it gave when it
// ran alone it must give every time, and so must they. WIDE_TEST_REPEATS says how often: by default
// 1,000 times on a device, 20 on the CPU, twice where the device is simulated. Whether a vendor's
// library repeats itself is its own promise.
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/dice.hpp"
#include "verify/support/fake_primitive.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"

namespace wide::test {
namespace {

using catalog::Case;
using catalog::MemberOutputs;
using catalog::PrimitiveSpec;

constexpr int kBusyLanes = 4;
constexpr int64_t kMembers = 3;

int64_t num_repeats(const Context& context) {
  const int64_t otherwise = context.device().type == DeviceType::cpu ? 20
                            : Simulation::is_present()               ? 2
                                                                     : 1000;
  return from_environment("WIDE_TEST_REPEATS", otherwise);
}

/// Where a lane runs; kept from case to case, since handles take long to make.
struct Place {
  OwnedStream stream;
  VendorHandles handles;
  explicit Place(const Context& context) : stream(context), handles(context) {}
};

/// A strategy on operands and scratch memory of its own. Scratch is poisoned once: what a run
/// leaves there, the next one finds.
class Lane {
 public:
  Lane(const Context& context, const Place& place, const PrimitiveSpec& spec, const Case& point,
       const std::string& strategy, uint64_t seed)
      : place_(place) {
    catalog::WorkloadOptions options;
    options.seed = seed;
    workload_ = spec.make_workload(context, point, options);
    prepared_ = workload_->prepare(strategy);
    scratch_ = Tensor(context, Dtype::uint8, {prepared_.workspace_bytes});
    fill_bytes(scratch_.view(), 0xff, stream());
  }

  /// Only enqueues, on a device.
  void run() {
    workload_->poison_outputs(catalog::OutputOf::strategy, stream());
    prepared_.run({stream(), {scratch_.data(), scratch_.bytes()}, &place_.handles});
  }
  MemberOutputs outputs() { return workload_->read_outputs(catalog::OutputOf::strategy, stream()); }
  std::string damage() { return workload_->damage(stream()); }

 private:
  Stream stream() const { return place_.stream.get(); }

  const Place& place_;
  std::unique_ptr<catalog::Workload> workload_;
  catalog::Prepared prepared_;
  Tensor scratch_;
};

/// How many runs of all lanes gave other bits than their lane's first one, which ran alone; and
/// where the first of them did.
struct Differences {
  int64_t count = 0;
  std::string first;
  void add(const MemberOutputs& expected, const MemberOutputs& got) {
    const std::string found = first_difference(expected, got);
    if (!found.empty() && count++ == 0) first = found;
  }
};

/// Repeats one lane beside `num_busy` others.
class Repeater {
 public:
  explicit Repeater(const Context& context, int num_busy = kBusyLanes) : context_(context) {
    for (int i = 0; i <= num_busy; ++i) places_.push_back(std::make_unique<Place>(context));
  }

  Differences repeat(const PrimitiveSpec& spec, const Case& point, const std::string& strategy,
                     int64_t repeats) const;

 private:
  using Lanes = std::vector<std::unique_ptr<Lane>>;
  void run_at_once(const Lanes& lanes) const;

  Context context_;
  std::vector<std::unique_ptr<Place>> places_;
};

/// The first lane's call comes last, when the others have work.
void Repeater::run_at_once(const Lanes& lanes) const {
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < lanes.size(); ++i) {
    Lane& lane = *lanes[i];
    if (context_.device().type == DeviceType::cpu) {
      threads.emplace_back([&lane] { lane.run(); });
    } else {
      lane.run();
    }
  }
  lanes.front()->run();
}

Differences Repeater::repeat(const PrimitiveSpec& spec, const Case& point,
                             const std::string& strategy, int64_t repeats) const {
  Lanes lanes;
  std::vector<MemberOutputs> alone;
  for (size_t i = 0; i < places_.size(); ++i) {
    lanes.push_back(std::make_unique<Lane>(context_, *places_[i], spec, point, strategy, 42 + i));
    lanes.back()->run();
    alone.push_back(lanes.back()->outputs());
  }
  Differences differences;
  for (int64_t i = 0; i < repeats; ++i) {
    run_at_once(lanes);
    for (size_t k = 0; k < lanes.size(); ++k) differences.add(alone[k], lanes[k]->outputs());
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    CHECK(lanes[i]->damage() == "");
    // Outputs that are the same whatever goes in would repeat, too.
    if (i > 0) CHECK(first_difference(alone.front(), alone[i]) != "");
  }
  return differences;
}

/// In each dtype the first case with some of these words that the strategy runs: of features that
/// are no whole vectors where it takes those.
std::vector<Case> cases_with(const std::vector<Values>& all_words, const Context& context,
                             const PrimitiveSpec& spec, const std::string& strategy) {
  const int64_t size = affords_large_cases(spec) ? 67 : 7;
  const std::pair<decltype(&odd_case), int64_t> kinds[]{
      {odd_case, size}, {vector_case, size}, {vector_case, 3}};
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const auto& [make, around] : kinds) {
    for (const Values& words : all_words) {
      const Case point = make(spec, kMembers, around, words);
      if (!spec.impossible_reason(point).empty() || seen.contains(point.word("dtype"))) continue;
      const auto workload = spec.make_workload(context, point, {});
      if (!workload->unsupported_reason(strategy).empty()) continue;
      seen.insert(point.word("dtype"));
      cases.push_back(point);
    }
  }
  return cases;
}

std::vector<Case> cases_of(const Context& context, const PrimitiveSpec& spec,
                           const std::string& strategy) {
  std::vector<Case> cases = cases_with(word_combinations(spec), context, spec, strategy);
  if (cases.empty()) cases = cases_with(word_pairs(spec), context, spec, strategy);
  INFO(spec.name << " " << strategy << " is run by no case");
  CHECK((!cases.empty() || context.info().compute_capability != 90));  // wgmma's alone
  return cases;
}

void repeat_primitives(const Context& context) {
  const int64_t repeats = num_repeats(context);
  const Repeater repeater(context);
  int64_t num_kernels = 0, num_cases = 0;
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    for (const catalog::StrategyInfo& info : spec->strategies) {
      const bool is_ours = info.kind == catalog::StrategyKind::hand_written;
      if (info.device != context.device().type || !is_ours) continue;
      const std::string strategy(info.name);
      const std::vector<Case> cases = cases_of(context, *spec, strategy);
      for (const Case& point : cases) {
        INFO(describe(*spec, point) << " --strategy " << strategy);
        const Differences differences = repeater.repeat(*spec, point, strategy, repeats);
        INFO(differences.first);
        CHECK(differences.count == 0);
      }
      num_kernels += cases.empty() ? 0 : 1;
      num_cases += std::ssize(cases);
    }
  }
  WARN(num_kernels << " strategies in " << num_cases << " cases, " << repeats << " runs of each");
}

}  // namespace

TEST_CASE("every strategy of ours gives the same bits every run on the CPU") {
  repeat_primitives(Context::cpu({.num_threads = 2, .allocator = {}}));
}

TEST_CASE("every strategy of ours gives the same bits every run on CUDA", "[gpu]") {
  repeat_primitives(require_cuda());
}

TEST_CASE("one run in a thousand that gives other bits is seen") {
  int64_t runs = 0;
  FakePrimitive fake;
  fake.strategies = {{.name = "wide"}};
  fake.strategies[0].on_run = [&] { fake.strategies[0].factor = ++runs == 500 ? 3 : 2; };
  const PrimitiveSpec spec = fake.spec();
  const Differences differences =
      Repeater(Context::cpu(), 0).repeat(spec, fake_case(2), "wide", 1000);
  CHECK(runs == 1001);
  CHECK(differences.count == 1);
  CHECK(differences.first == "member 0, row 0, column 0: 2.000000 and 3.000000");
}

TEST_CASE("so is one of what runs beside it") {
  int64_t runs = 0;
  size_t num_lanes = 0;
  FakePrimitive front, beside;  // a lane's each, since they run at once
  front.strategies = {{.name = "wide"}};
  beside.strategies = {{.name = "wide"}};
  beside.strategies[0].on_run = [&] { beside.strategies[0].factor = ++runs == 50 ? 3 : 5; };
  const PrimitiveSpec specs[] = {front.spec(), beside.spec()};
  PrimitiveSpec spec = specs[0];
  spec.make_workload = [&](const Context& context, const Case& point,
                           const catalog::WorkloadOptions& options) {
    return specs[num_lanes++].make_workload(context, point, options);
  };
  const Differences differences =
      Repeater(Context::cpu(), 1).repeat(spec, fake_case(2), "wide", 100);
  CHECK(runs == 101);
  CHECK(differences.count == 1);
  CHECK(differences.first == "member 0, row 0, column 0: 5.000000 and 3.000000");
}

}  // namespace wide::test
