// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// "auto" over the full sweep, every dtype and device, with nothing proved, all proved, and one
// thing proved at a time; and what a tuning cache makes of it.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bench/cases/expand.hpp"
#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/catalog.hpp"
#include "wide/wide.hpp"

namespace wide {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace test;  // devices

const std::array kDevices{
    kH200, kA100,       gpu("a generic device", 89, 60), gpu("a later device", 120, 170),
    kT4,   DeviceInfo{}};

const catalog::StrategyInfo& info_of(LinearStrategy strategy, DeviceType device) {
  const auto& all = catalog::find_primitive("linear").strategies;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& info) {
    return info.device == device && info.name == strategy_name(strategy);
  });
  REQUIRE(found != all.end());
  return *found;
}

/// Of every hand-written strategy, on all devices.
std::vector<VerifiedStrategy> all_proved() {
  std::vector<VerifiedStrategy> table;
  for (const auto& info : catalog::find_primitive("linear").strategies) {
    for (const DeviceInfo& device : kDevices) {
      if (info.kind == catalog::StrategyKind::hand_written)
        table.push_back({"linear", info.name, device.compute_capability});
    }
  }
  return table;
}

/// Every case of the sweep "full" as a problem, in every dtype, with its variants.
std::vector<LinearProblem> problems() {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("linear");
  std::vector<LinearProblem> list;
  for (const auto& point : bench::expand(spec, catalog::find_sweep(spec, "full"), {}).cases) {
    LinearProblem p;
    p.num_members = point.integer("n");
    p.batch = point.integer("batch");
    p.in_features = p.out_features = point.integer("d");
    p.epilogue.has_bias = true;
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      p.dtype = dtype;
      list.push_back(complete_linear_problem(p));
    }
    for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
      LinearProblem eight = p;
      eight.dtype = dtype;
      eight.y_dtype = Dtype::bf16;
      list.push_back(complete_linear_problem(eight));
    }
    LinearProblem quantized = p;
    quantized.dtype = Dtype::bf16;
    quantized.weight_format = WeightFormat::int8;
    list.push_back(complete_linear_problem(quantized));
    LinearProblem other = p;
    other.dtype = Dtype::fp32;
    other.allow_tf32 = true;
    list.push_back(complete_linear_problem(other));
    other = p;
    other.shared_input = true;
    list.push_back(complete_linear_problem(other));
    other = p;
    other.epilogue.activation = Activation::gelu;
    other.epilogue.residual = Residual::after_activation;
    list.push_back(complete_linear_problem(other));
    other = p;
    other.in_features += 1;  // ragged
    other.out_features += 3;
    list.push_back(complete_linear_problem(other));
  }
  return list;
}

/// tf32x3 is asked for by name alone: it is slower than what strict fp32 needs, or better than what
/// tf32 does.
bool is_automatic(LinearStrategy strategy) {
  return strategy != LinearStrategy::tf32x3;
}

/// Of fp8 and quantised weights alone there may be no strategy that a device can run and that needs
/// no proof (vendors' and sequential) or has it.
bool has_any(const LinearProblem& problem, const DeviceInfo& device,
             std::span<const VerifiedStrategy> verified) {
  const bool is_cpu = device.device.type == DeviceType::cpu;
  const auto names = linear_strategy_names(device.device.type);
  const bool has = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    const auto strategy = *parse_linear_strategy(name, device.device.type);
    if (!linear_unsupported_reason(strategy, problem, device).empty()) return false;
    const bool is_vendors =
        info_of(strategy, device.device.type).kind == catalog::StrategyKind::vendor;
    return is_cpu || is_vendors || strategy == LinearStrategy::sequential ||
           (is_automatic(strategy) &&
            is_verified_in(verified, "linear", name, device.compute_capability));
  });
  REQUIRE((has || is_fp8(problem.dtype) || is_quantized(problem)));
  return has;
}

/// What the choice must be, whatever is proved.
void check_choice(const LinearProblem& problem, const DeviceInfo& device,
                  std::span<const VerifiedStrategy> verified) {
  if (!has_any(problem, device, verified)) {
    REQUIRE_THROWS_AS(choose_linear_strategy(problem, device, verified), Error);
    return;
  }
  const LinearChoice choice = choose_linear_strategy(problem, device, verified);
  const std::string name(strategy_name(choice.strategy));
  INFO(tuning_key(problem).problem << " on " << device.name << ": " << choice.explain);
  REQUIRE(linear_unsupported_reason(choice.strategy, problem, device) == "");
  REQUIRE(choice.explain.starts_with(name + ": "));
  REQUIRE(choice.explain.size() > name.size() + 2);
  REQUIRE(choice.explain.find('\n') == std::string::npos);
  REQUIRE(choice.policy.empty());
  const bool needs_proof =
      device.device.type == DeviceType::cuda &&
      info_of(choice.strategy, device.device.type).kind == catalog::StrategyKind::hand_written;
  REQUIRE((!needs_proof || is_verified_in(verified, "linear", name, device.compute_capability)));
}

TEST_CASE("over the full sweep auto takes what runs, and explains it") {
  const auto all = all_proved();
  const auto list = problems();
  CHECK(list.size() >= 10 * 11 * 4 * 4);
  for (const DeviceInfo& device : kDevices) {
    for (const LinearProblem& problem : list) {
      check_choice(problem, device, {});
      check_choice(problem, device, all);
    }
  }
}

TEST_CASE("over the full sweep auto takes one proved strategy or none of ours") {
  const auto list = problems();
  for (const VerifiedStrategy& one : all_proved()) {
    for (const DeviceInfo& device : kDevices) {
      for (size_t i = 0; i < list.size(); i += 5) check_choice(list[i], device, {&one, 1});
    }
  }
}

TEST_CASE("over the full sweep every policy has tiles of its own, and auto's is one of them") {
  for (const DeviceInfo& device : kDevices) {
    for (const LinearProblem& problem : problems()) {
      for (const auto name : linear_strategy_names(device.device.type)) {
        const auto strategy = *parse_linear_strategy(name, device.device.type);
        if (!linear_unsupported_reason(strategy, problem, device).empty()) continue;
        const auto own = linear_tiles(strategy, problem, device, "");
        const auto legal = linear_policies(strategy, problem);
        const auto chosen = linear_policy_name(strategy, own);
        REQUIRE(chosen.empty() == legal.empty());
        if (legal.empty()) continue;
        REQUIRE(std::count(legal.begin(), legal.end(), chosen) == 1);
        for (const auto policy : legal) {
          const auto tiles = linear_tiles(strategy, problem, device, policy);
          REQUIRE(linear_policy_name(strategy, tiles) == policy);
          REQUIRE(linear_policy_reason(strategy, problem, policy).empty());
        }
      }
    }
  }
}

LinearProblem small_problem(Dtype dtype = Dtype::bf16) {
  LinearProblem p;
  p.num_members = 4, p.batch = 16, p.in_features = 64, p.out_features = 48, p.dtype = dtype;
  p.epilogue.has_bias = true;
  return complete_linear_problem(p);
}

TEST_CASE("which policies can run a problem") {
  using enum LinearStrategy;
  CHECK(linear_policy_names(gemv).empty());
  CHECK(linear_policy_names(cublas_batched).empty());
  LinearProblem p = small_problem();
  CHECK(linear_policies(small_m, p) ==
        std::vector<std::string_view>{"m8n64", "m16n64", "m32n64", "m16n16"});
  CHECK(linear_policies(tensor_core, p).size() == 3);
  p.dtype = Dtype::fp32, p.y_dtype = Dtype::fp32;
  CHECK(linear_policies(tf32x3, p).size() == 6);  // all but 128 x 128
  p.batch = 65;
  CHECK(linear_policies(tf32x3, p) == std::vector<std::string_view>{"m64n64", "m128n64"});
  CHECK(linear_policy_reason(tf32x3, p, "m128n128") ==
        "policy \"m128n128\" of tf32x3 cannot run this problem, m64n64, m128n64 can");
  CHECK_THAT(linear_policy_reason(simt, p, "m7n7"),
             ContainsSubstring("is unknown, expected one of m16n64, m32n64, m64n64, m128n128"));
  CHECK_THAT(linear_policy_reason(gemv, p, "m16n64"), ContainsSubstring("gemv has none"));
  CHECK(linear_policy_reason(cublaslt, p, "h5").empty());
  CHECK_THAT(linear_policy_reason(cublaslt, p, "m16n64"), ContainsSubstring("h0 to h63"));
  p.num_members = 1 << 19;  // tiles that outnumber a grid, for the smallest alone
  p.out_features = 64 << 12;
  p.x = p.y = p.weight = {};
  p.bias_member_stride = 0;
  p = complete_linear_problem(p);
  CHECK(linear_policies(simt, p) == std::vector<std::string_view>{"m128n128"});
  p = small_problem();
  p.dtype = Dtype::fp8_e4m3;
  CHECK(linear_policies(simt, p) == std::vector<std::string_view>{"m64n64"});
  CHECK(linear_policies(wgmma, p) ==
        std::vector<std::string_view>{"m64n128", "m128n128", "m128n128x2"});
  p.dtype = Dtype::bf16;
  CHECK(linear_policies(wgmma, p) ==
        std::vector<std::string_view>{"m64n128", "m128n128", "m128n256", "m128n256x2"});
  p.batch = 17;  // a tile of weight_only has all rows, or 64
  CHECK(linear_policies(weight_only, p) == std::vector<std::string_view>{"m32n64", "m64n64"});
  p.batch = 65;
  CHECK(linear_policies(weight_only, p) == std::vector<std::string_view>{"m64n64"});
  CHECK(linear_policies(decoded, p).empty());
}

TEST_CASE("wgmma's pairs of blocks: where they fill the device in no more rounds") {
  using enum kernels::LinearWgmmaTile;
  const auto tile = [](const DeviceInfo& device, Dtype dtype, int64_t members, int64_t batch,
                       int64_t d) {
    LinearProblem p;
    p.num_members = members, p.batch = batch, p.in_features = p.out_features = d, p.dtype = dtype;
    if (is_fp8(dtype)) p.y_dtype = Dtype::bf16;
    return choose_linear_wgmma_tile(complete_linear_problem(p), device);
  };
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp32}) {
    CHECK(tile(kH200, dtype, 1, 8192, 8192) == m128n256x2);
    CHECK(tile(kH200, dtype, 8, 1024, 1024) == m128n256x2);  // 256 tiles in two rounds, as pairs
  }
  CHECK(tile(kH200, Dtype::fp8_e4m3, 1, 8192, 8192) == m128n128x2);
  CHECK(tile(kH200, Dtype::fp8_e4m3, 1, 64, 8192) == m64n128);
  // Odd numbers of rows' tiles: 992 tiles and 512 pairs in eight rounds; 528 in four, but 272 in
  // five.
  CHECK(tile(kH200, Dtype::bf16, 1, 31 * 128, 8192) == m128n256x2);
  CHECK(tile(kH200, Dtype::bf16, 1, 33 * 128, 4096) == m128n256);
  CHECK(tile(kH200, Dtype::bf16, 1, 128, 132 * 256) == m128n256);  // one tile of rows
  CHECK(tile(kH200, Dtype::bf16, 1, 1024, 4096) == m128n256);      // 64 pairs for 66
  CHECK(tile(kH200, Dtype::bf16, 4, 256, 256) == m64n128);
  const DeviceInfo one = gpu("one multiprocessor", 90, 1), two = gpu("two", 90, 2);
  CHECK(tile(one, Dtype::bf16, 1, 256, 512) == m128n256);
  CHECK(tile(two, Dtype::bf16, 1, 256, 512) == m128n256x2);
}

TEST_CASE("the key of a problem is the same for the same problem only") {
  const LinearProblem p = small_problem();
  LinearProblem bare = p;
  bare.x = bare.y = bare.weight = {};
  bare.bias_member_stride = 0;
  CHECK(tuning_key(bare).problem == tuning_key(p).problem);
  bare.y_dtype.reset();
  CHECK(tuning_key(bare).problem == tuning_key(p).problem);
  std::vector<LinearProblem> others(17, bare);
  others[0].num_members = 5;
  others[1].batch = 17;
  others[2].in_features = 63;
  others[3].out_features = 47;
  others[4].dtype = Dtype::fp16;
  others[5].shared_input = true;
  others[6].allow_tf32 = true;
  others[7].epilogue.has_bias = false;
  others[8].epilogue.activation = Activation::silu;
  others[9].epilogue.scale = OutputScale::per_member;
  others[10].epilogue.residual = Residual::before_activation;
  others[11].epilogue.alpha = 2;
  others[12].dtype = Dtype::fp8_e4m3, others[12].y_dtype = Dtype::bf16;
  others[13].dtype = Dtype::fp8_e4m3, others[13].y_dtype = Dtype::fp16;
  others[14].weight_format = others[15].weight_format = WeightFormat::int8;
  others[14].group_size = others[16].group_size = 128, others[15].group_size = 64;
  others[16].weight_format = WeightFormat::int4;
  const auto add = [&](const LinearProblem& like, const auto& change) {
    change(others.emplace_back(like));
  };
  add(p, [](LinearProblem& one) { one.x.row += 8; });
  add(p, [](LinearProblem& one) { one.weight.member += 8; });
  add(p, [](LinearProblem& one) { one.y.row += 8; });
  add(p, [](LinearProblem& one) { one.bias_member_stride += 8; });
  add(others[10], [](LinearProblem& one) { one.residual = {400, 48}; });
  add(others[9], [](LinearProblem& one) { one.scale_member_stride = 2; });
  add(others[14], [](LinearProblem& one) { one.allow_rounded_weights = true; });
  std::vector<std::string> keys{tuning_key(p).problem};
  for (const LinearProblem& other : others) keys.push_back(tuning_key(other).problem);
  std::sort(keys.begin(), keys.end());
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
  for (const std::string& key : keys) CHECK(key.find('\n') == std::string::npos);
}

/// What "auto" is where the cache has `entry` for small_problem().
LinearChoice tuned(const TuningEntry& entry, std::string_view hash,
                   std::span<const VerifiedStrategy> verified = {},
                   LinearProblem p = small_problem()) {
  TuningCache cache;
  cache.set(kH200, "linear", tuning_key(small_problem()).problem, entry);
  return choose_linear_strategy(p, kH200, verified, "auto", {&cache, tuning_key(p).problem, hash});
}

bool is_taken(const LinearChoice& choice) {
  return choice.explain.find(": tuned: ") != std::string::npos;
}

TEST_CASE("a tuned strategy is taken where it runs and is proved") {
  const TuningEntry entry{"small_m", "m16n64", 12.34567, 8, "hash"};
  const LinearChoice now = tuned(entry, "hash");
  REQUIRE(is_taken(now));
  CHECK(now.strategy == LinearStrategy::small_m);
  CHECK(now.policy == "m16n64");
  CHECK(now.explain ==
        "small_m: tuned: 12.35 us with m16n64 on NVIDIA H200, the fastest of 8 candidates");

  TuningEntry stands = entry;
  stands.is_autos_own = true;
  CHECK_THAT(
      tuned(stands, "hash").explain,
      ContainsSubstring("on NVIDIA H200, auto's own choice: no other of 8 candidates was faster"));

  CHECK_THAT(tuned(entry, "later").explain,
             ContainsSubstring("tuned small_m not taken: its kernels have changed since"));
  CHECK_FALSE(is_taken(tuned({"small_m", "m16n64", 1, 8, ""}, "")));  // a build that knows no hash
  constexpr std::array proved{VerifiedStrategy{"linear", "small_m", 90}};
  CHECK(is_taken(tuned(entry, "later", proved)));
  constexpr std::array elsewhere{VerifiedStrategy{"linear", "small_m", 80}};
  CHECK_FALSE(is_taken(tuned(entry, "later", elsewhere)));
  CHECK(tuned({"cublaslt", "h3", 1, 8, "old"}, "later").policy == "h3");
  CHECK(is_taken(tuned({"sequential", "", 1, 8, "old"}, "later")));
}

TEST_CASE("a tuned strategy that does not fit is left alone, with the reason") {
  CHECK_THAT(tuned({"no_such", "", 1, 2, "h"}, "h").explain, ContainsSubstring("no such strategy"));
  CHECK_THAT(tuned({"wide", "", 1, 2, "h"}, "h").explain, ContainsSubstring("no such strategy"));
  CHECK_THAT(tuned({"gemv", "", 1, 2, "h"}, "h").explain, ContainsSubstring("at most 4 rows"));
  CHECK_THAT(tuned({"small_m", "m1n1", 1, 2, "h"}, "h").explain, ContainsSubstring("is unknown"));
  LinearProblem other = small_problem();
  other.batch = 17;
  const LinearChoice absent =
      tuned({"simt", "m16n64", 1, 2, "h"}, "h", {}, complete_linear_problem(other));
  CHECK_FALSE(is_taken(absent));
  CHECK(absent.explain.ends_with("; not in the tuning cache"));
}

TEST_CASE("a plan on the CPU reads the cache, and says so") {
  const Context context = Context::cpu();
  const LinearProblem p = small_problem();
  TuningCache cache;
  const auto explain = [&] { return make_linear_plan(context, p, {.tuning = &cache}).explain(); };
  CHECK_THAT(explain(),
             ContainsSubstring("wide: ") && ContainsSubstring("not in the tuning cache"));
  cache.set(context.info(), "linear", tuning_key(p).problem, {"sequential", "", 5, 2, ""});
  CHECK_THAT(explain(), ContainsSubstring("sequential: tuned: 5 us on "));
  CHECK(make_linear_plan(context, p, {.strategy = "wide", .tuning = &cache}).strategy() == "wide");
}

TEST_CASE("policies are refused where they cannot be") {
  const auto refusal = [](const PlanOptions& options) {
    return test::refusal_of(
        [&] { (void)make_linear_plan(Context::cpu(), small_problem(), options); });
  };
  CHECK_THAT(refusal({.policy = "m16n64"}), ContainsSubstring("strategy \"auto\" has its own"));
  CHECK_THAT(refusal({.strategy = "wide", .policy = "m16n64"}), ContainsSubstring("has none"));
  CHECK_THROWS_AS(
      make_layernorm_plan(Context::cpu(), {.num_members = 1}, {.strategy = "wide", .policy = "x"}),
      Error);
  CHECK_THROWS_AS(
      make_embedding_plan(Context::cpu(), {.num_members = 1}, {.strategy = "wide", .policy = "x"}),
      Error);
}

}  // namespace
}  // namespace wide
