// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on CUDA at random shapes: every strategy of ours, any dtype, epilogue, strides and
// alignment, whole numbers whose sums are exact. WIDE_TEST_CASES says how many (24), WIDE_TEST_SEED
// which; scripts/sweep runs hundreds, in every order of the simulated GPU.
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "verify/linear/linear_case.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/dice.hpp"

namespace wide::test {
namespace {

struct Drawn {
  std::string strategy;
  LinearProblem problem;
  int64_t misalign = 0;
  bool is_in_place = false;  // the residual is y
};

Drawn draw(Dice& dice) {
  constexpr const char* kStrategies[] = {"simt",         "gemv",        "small_m",
                                         "tensor_core",  "wgmma",       "tf32x3",
                                         "shared_input", "weight_only", "decoded"};
  Drawn drawn;
  drawn.strategy = kStrategies[dice.between(0, std::ssize(kStrategies) - 1)];
  LinearProblem& p = drawn.problem;
  const int64_t max_batch = drawn.strategy == "gemv"      ? kMaxGemvBatch
                            : drawn.strategy == "small_m" ? kMaxSmallBatch
                                                          : 200;
  p.num_members = dice.between(1, 4);
  p.batch = dice.size(max_batch);
  p.in_features = dice.size(600);
  p.out_features = dice.size(200);
  if (drawn.strategy == "small_m" && dice.between(0, 7) == 0) {  // so long that it is divided
    p.in_features += 4096, p.out_features = std::min<int64_t>(p.out_features, 40);
  }
  constexpr Dtype kDtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8_e4m3,
                               Dtype::fp8_e5m2};
  const bool takes_fp8 = drawn.strategy == "wgmma" || drawn.strategy == "simt";
  const bool is_quantised = drawn.strategy == "weight_only" || drawn.strategy == "decoded";
  p.dtype = drawn.strategy == "tf32x3" ? Dtype::fp32
                                       : kDtypes[dice.between(is_quantised, takes_fp8 ? 4 : 2)];
  if (is_fp8(p.dtype)) p.y_dtype = dice.toss() ? Dtype::fp16 : Dtype::bf16;
  p.allow_tf32 = p.dtype == Dtype::fp32 && drawn.strategy != "tf32x3" && dice.between(0, 3) > 0;
  if (drawn.strategy == "small_m" || drawn.strategy == "tensor_core" || drawn.strategy == "wgmma") {
    p.allow_tf32 = p.dtype == Dtype::fp32;
  }
  p.epilogue.has_bias = dice.toss();
  if (dice.toss()) p.epilogue.activation = Activation::relu;
  constexpr OutputScale kScales[] = {OutputScale::none, OutputScale::per_member,
                                     OutputScale::per_output};
  constexpr Residual kResiduals[] = {Residual::none, Residual::before_activation,
                                     Residual::after_activation};
  p.epilogue.scale = kScales[dice.between(0, 2)];
  p.epilogue.residual = kResiduals[dice.between(0, 2)];
  p.epilogue.alpha = dice.toss() ? 1.0f : -0.5f;
  drawn.is_in_place = p.epilogue.residual != Residual::none && dice.toss();
  p.shared_input = drawn.strategy == "shared_input" || dice.between(0, 3) == 0;
  const int64_t vector = 16 / dtype_bytes(p.dtype);
  if (drawn.strategy == "wgmma") p.in_features = (p.in_features + vector - 1) / vector * vector;
  if (dice.toss()) {  // padded: wgmma's by whole 16 bytes
    const int64_t step = drawn.strategy == "wgmma" ? vector : 1;
    const auto padded = [&](int64_t features) { return features + dice.between(0, 2) * step; };
    const int64_t x_member = padded(p.in_features), w_row = padded(p.in_features);
    const int64_t y_member = p.out_features + dice.between(0, 3);
    if (!p.shared_input) p.x = {p.num_members * x_member, x_member};
    p.weight = {w_row, p.out_features * w_row + dice.between(0, 2) * step};
    p.y = {p.num_members * y_member + dice.between(0, 3), y_member};
    p.bias_member_stride = p.out_features + dice.between(0, 3);
    p.scale_member_stride = p.out_features + dice.between(0, 3);
    const int64_t gap = dice.between(0, 3);
    p.residual = p.y;
    if (!drawn.is_in_place) p.residual.row += gap;
  }
  if (is_quantised) {
    p.allow_rounded_weights = drawn.strategy == "decoded";
    p.weight_format = kAllWeightFormats[static_cast<size_t>(dice.between(1, 5))];
    p.group_size = dice.toss() ? 64 : 128;
    const int64_t gap = dice.between(0, 2) * kQuantizedAlignment;
    p.weight = {0, linear_member_bytes(p) + gap};
  }
  drawn.misalign = dice.between(0, 3) == 0 ? 1 : 0;
  return drawn;
}

std::string text_of(const Drawn& drawn) {
  const LinearProblem& p = drawn.problem;
  return drawn.strategy + " of " + std::to_string(p.num_members) + " x " + std::to_string(p.batch) +
         " x " + std::to_string(p.in_features) + " x " + std::to_string(p.out_features) + " " +
         std::string(dtype_name(p.dtype)) + ", weights " +
         std::string(weight_format_name(p.weight_format)) +
         (p.shared_input ? ", shared input" : "") + (p.weight.row != 0 ? ", padded" : "") +
         ", scale " + std::string(output_scale_name(p.epilogue.scale)) + ", residual " +
         std::string(residual_name(p.epilogue.residual)) + (drawn.is_in_place ? " in place" : "") +
         ", misaligned by " + std::to_string(drawn.misalign);
}

}  // namespace

TEST_CASE("linear on CUDA: random shapes, exactly", "[gpu]") {
  TestDevice bench(require_cuda());
  const int64_t count = from_environment("WIDE_TEST_CASES", 24);
  const int64_t seed = from_environment("WIDE_TEST_SEED", 1);
  Dice dice(static_cast<uint64_t>(seed));
  std::map<std::string, int64_t> ran;
  for (int64_t i = 0; i < count; ++i) {
    const Drawn drawn = draw(dice);
    INFO("seed " << seed << ", case " << i << ": " << text_of(drawn));
    const auto strategy = parse_linear_strategy(drawn.strategy, DeviceType::cuda);
    const std::string reason = linear_unsupported_reason(
        *strategy, complete_linear_problem(drawn.problem), bench.context().info());
    if (!reason.empty()) {
      REQUIRE(drawn.strategy == "wgmma");  // elsewhere than on Hopper
      continue;
    }
    check_placed(bench, drawn.problem, drawn.strategy, drawn.misalign, drawn.is_in_place);
    ++ran[drawn.strategy];
  }
  std::string summary;
  for (const auto& [strategy, cases] : ran) {
    summary += " " + strategy + " " + std::to_string(cases);
  }
  WARN("cases of linear by strategy:" << summary);
  CHECK(ran.size() >= (count >= 24 ? 5 : 1));
}

}  // namespace wide::test
