// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked for as layernorm and rmsnorm, where cuDNN cannot run: the graph is
// interpreted on the host, and cuDNN plans it for devices that are not at hand.
#include "host/norm/row_norm_cudnn.hpp"

#include <catch2/catch_test_macros.hpp>
#include <utility>

#include "verify/support/cudnn_devices.hpp"
#include "verify/support/cudnn_interpreter.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;

namespace {

ChainProblem problem(ChainNorm norm, int64_t members, bool is_affine, Dtype dtype = Dtype::fp32) {
  ChainProblem p{.num_members = members, .rows = 6, .features = 20, .dtype = dtype};
  p.norm = norm;
  p.epsilon = 0.01f;
  p.has_gamma = is_affine;
  p.has_beta = is_affine && norm == ChainNorm::layernorm;
  return complete_rows("norm", p);
}

/// Operands, always with the same values.
struct Operands {
  explicit Operands(const ChainProblem& p, const Context& on = Context::cpu())
      : context(on), x(rows(p, 1)), y(rows(p, 2)), gamma(parameters(p, 3)), beta(parameters(p, 4)) {
    arguments.x = x;
    arguments.y = y;
    if (p.has_gamma) arguments.gamma = gamma;
    if (p.has_beta) arguments.beta = beta;
  }
  Tensor rows(const ChainProblem& p, uint64_t seed) const {
    const int64_t width = p.num_members * p.features;
    return upload(context, p.dtype, {p.rows, width}, uniform(p.rows * width, 1, 3, seed));
  }
  Tensor parameters(const ChainProblem& p, uint64_t seed) const {
    return upload(context, p.dtype, {p.num_members, p.features},
                  uniform(p.num_members * p.features, -1, 1, seed));
  }

  Context context;
  Tensor x, y, gamma, beta;
  ChainArguments arguments;
};

double worst_difference(const Operands& a, const Operands& b) {
  return test::worst_difference(download(a.context, a.y), download(b.context, b.y));
}

constexpr auto kLayernorm = ChainNorm::layernorm, kRmsnorm = ChainNorm::rmsnorm;

/// What a call can do: one member's rows, or all members' without parameters.
std::vector<ChainProblem> problems() {
  return {problem(kLayernorm, 1, true), problem(kLayernorm, 3, false), problem(kRmsnorm, 1, true),
          problem(kRmsnorm, 3, false)};
}

}  // namespace

TEST_CASE("row norms: cuDNN's graph means what the CPU computes") {
  for (const ChainProblem& p : problems()) {
    const Operands ours(p), theirs(p);
    make_chain_plan(ours.context, p).run(ours.arguments, {Stream::cpu()});
    const RowNormCudnnGraph graph = describe_row_norm_cudnn(p);
    test::interpret(graph.graph, bind_row_norm_cudnn(graph, theirs.arguments));
    INFO(chain_norm_name(p.norm) << " of " << p.num_members);
    CHECK(worst_difference(ours, theirs) < 1e-5);
  }
}

TEST_CASE("row norms: what cuDNN cannot be told of is refused with the reason") {
  const auto reason = [](ChainProblem p, auto change) {
    change(p);
    return row_norm_cudnn_unsupported_reason(p);
  };
  const ChainProblem one = problem(kLayernorm, 1, true), plain = problem(kRmsnorm, 3, false);
  using Problem = ChainProblem;
  CHECK(reason(one, [](Problem&) {}) == "");
  CHECK(reason(plain, [](Problem&) {}) == "");
  CHECK(reason(plain, [](Problem& p) { p.x = p.y = {20, 6 * 20}; }) == "");  // stacked
  CHECK(reason(plain, [](Problem& p) {
          p.x = {20, 6 * 20};
        }) == "cuDNN's norms take rows without gaps between them");  // y in another order
  CHECK(reason(one, [](Problem& p) { p.x.row = 24; }) ==
        "cuDNN's norms take rows without gaps between them");
  CHECK(reason(one, [](Problem& p) { p.x.row = 24, p.rows = 1; }) == "");
  CHECK(reason(one, [](Problem& p) { p.has_beta = false; }) ==
        "cuDNN's layernorm wants gamma and beta, or neither");
  CHECK(reason(one, [](Problem& p) { p.has_residual = true; }) == "cuDNN's norms add no residual");
  CHECK(reason(one, [](Problem& p) { p.id_dtype = Dtype::int32; }) ==
        "cuDNN's norms have no rows routed by ids");
  CHECK(reason(problem(kRmsnorm, 3, true), [](Problem&) {}) ==
        "cuDNN's norms have one gamma for all rows, and members have their own");
  CHECK(test::message_of(ErrorCode::unsupported,
                         [] { RowNormCudnn(test::kCudnnH200, problem(kLayernorm, 3, true)); }) ==
        "layernorm: cudnn: cuDNN's norms have one gamma for all rows, and members have their "
        "own");
}

TEST_CASE("row norms: operands that cuDNN cannot be given are refused with the reason") {
  const Operands operands(problem(kLayernorm, 1, true));
  ChainArguments a = operands.arguments;
  CHECK(row_norm_cudnn_unsupported_reason(a) == "");
  a.beta.data = static_cast<const std::byte*>(a.beta.data) + 4;
  CHECK(row_norm_cudnn_unsupported_reason(a) ==
        "beta is aligned to 4 bytes, expected cuDNN's = 16");
  a.x = a.y;
  CHECK(row_norm_cudnn_unsupported_reason(a) ==
        "y is x itself, which cuDNN's documentation does not allow");
}

TEST_CASE("row norms: a member's operands begin where its values do") {
  ChainProblem p = problem(kLayernorm, 3, true, Dtype::bf16);
  p.features = 24;
  p = complete_rows("layernorm", {.num_members = 3, .rows = 6, .features = 24, .dtype = p.dtype});
  p.gamma_member_stride = p.beta_member_stride = 24;
  const Operands operands(problem(kLayernorm, 3, true, Dtype::bf16));
  const ChainArguments& all = operands.arguments;
  const LayernormArguments third = RowNormCudnn::member_of(
      to_layernorm(p), LayernormArguments{all.x, all.gamma, all.beta, all.y}, 2);
  const auto bytes = [](const ConstTensorView& own, const ConstTensorView& first) {
    return static_cast<const std::byte*>(own.data) - static_cast<const std::byte*>(first.data);
  };
  CHECK(bytes(third.x, all.x) == 2 * 24 * 2);
  CHECK(bytes(third.y, all.y) == 2 * 24 * 2);
  CHECK(bytes(third.gamma, all.gamma) == 2 * 24 * 2);
  CHECK(bytes(third.beta, all.beta) == 2 * 24 * 2);
  CHECK(RowNormCudnn::member_reason(p) == "");
  p.y.member = 20;
  CHECK(RowNormCudnn::member_reason(p) == "members do not all begin at multiples of 16 bytes");
  p.num_members = 1;
  CHECK(RowNormCudnn::member_reason(p) == "");
}

TEST_CASE("row norms: cuDNN plans them for devices that are not at hand") {
  test::require_cudnn_planning();
  // Engines that are compiled at run time take half a second each, and come after these.
  const std::pair<CudnnDevice, ChainProblem> cases[] = {
      {test::kCudnnH200, problem(kLayernorm, 1, true, Dtype::fp16)},
      {test::kCudnnH200, problem(kLayernorm, 3, false)},
      {test::kCudnnA100, problem(kLayernorm, 1, true)},
      {test::kCudnnH200, problem(kRmsnorm, 1, true, Dtype::fp16)},
      {test::kCudnnA100, problem(kRmsnorm, 3, false)}};
  for (const auto& [device, p] : cases) {
    const RowNormCudnn plan(device, p);
    INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
    CHECK(plan.explain().starts_with("engine "));
    const Operands operands(p);
    CHECK_THROWS_AS(plan.run(operands.arguments, {Stream::cpu()}), Error);  // no handle
  }
}

TEST_CASE("row norms: cuDNN on CUDA does what the CPU does", "[gpu]") {
  const Context context = test::require_cuda();
  const VendorHandles handles(context);
  if (handles.cudnn() == nullptr) SKIP("no cuDNN: " << handles.cudnn_unavailable_reason());
  for (const ChainProblem& p : problems()) {
    const Operands ours(p);
    make_chain_plan(ours.context, p).run(ours.arguments, {Stream::cpu()});
    const Operands theirs(p, context);
    const ChainArguments& a = theirs.arguments;
    if (p.norm == kLayernorm) {
      test::run_plan(context, make_layernorm_plan(context, to_layernorm(p), {"cudnn"}),
                     LayernormArguments{a.x, a.gamma, a.beta, a.y});
    } else {
      test::run_plan(context, make_rmsnorm_plan(context, to_rmsnorm(p), {"cudnn"}),
                     RmsnormArguments{a.x, a.gamma, a.y});
    }
    INFO(chain_norm_name(p.norm) << " of " << p.num_members);
    CHECK(worst_difference(ours, theirs) < 1e-5);
  }
}
