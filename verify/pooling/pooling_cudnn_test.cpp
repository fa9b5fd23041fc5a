// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked for as pooling, where cuDNN cannot run: the graph is interpreted on the host,
// and cuDNN plans it for devices that are not at hand.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "host/pooling/pooling_cudnn.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/cudnn_interpreter.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;
using P = PoolingProblem;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

P problem(PoolingMode mode = PoolingMode::max, Dtype dtype = Dtype::fp32,
          ChannelLayout layout = ChannelLayout::channels_first) {
  P p{.num_members = 4, .batch = 2, .channels = 16, .height = 8, .width = 8};
  p.layout = layout;
  p.mode = mode;
  p.dtype = dtype;
  p.rows = p.columns = {.kernel = 3, .stride = 2, .padding = 1};
  if (mode == PoolingMode::adaptive_average) p.out_height = 2, p.out_width = 4;
  return make_pooling_plan(Context::cpu(), p).problem();
}

/// Operands, always with the same values, a NaN among them.
struct Operands {
  explicit Operands(const P& p, const Context& on = Context::cpu())
      : context(on), y(context, p.dtype, shape_of(p, p.out_height, p.out_width)) {
    const Shape shape = shape_of(p, p.height, p.width);
    std::vector<double> values = uniform(num_elements(shape), -1, 1, 1);
    values[values.size() / 2] = static_cast<double>(kNan);
    x = upload(context, p.dtype, shape, values);
  }
  static Shape shape_of(const P& p, int64_t height, int64_t width) {
    const int64_t channels = p.num_members * p.channels;
    return p.layout == ChannelLayout::channels_last ? Shape{p.batch, height, width, channels}
                                                    : Shape{p.batch, channels, height, width};
  }
  PoolingArguments arguments() { return {x, y}; }

  Context context;
  Tensor x, y;
};

/// NaN is as good as NaN.
double worst_difference(const Operands& a, const Operands& b) {
  const auto left = download(a.context, a.y), right = download(b.context, b.y);
  double worst = 0;
  bool has_nan = false;
  for (size_t i = 0; i < left.size(); ++i) {
    has_nan = has_nan || std::isnan(left[i]);
    if (std::isnan(left[i]) && std::isnan(right[i])) continue;
    worst = test::worse_ratio(worst, left[i], right[i], 1);
  }
  CHECK(has_nan);
  return worst;
}

std::string reason(P p, void (*change)(P&)) {
  change(p);
  return pooling_cudnn_unsupported_reason(p);
}

}  // namespace

TEST_CASE("pooling: cuDNN's graph means what the CPU computes") {
  struct Windows {
    int64_t height, width, kernel, stride, padding, out;
    bool ceil_mode, counts_padding;
  };
  const Windows all[] = {{6, 9, 3, 2, 1, 3, false, true},   // a position of the columns is left out
                         {1, 8, 2, 2, 0, 4, false, true},   // signals
                         {6, 6, 3, 3, 1, 2, true, false},   // windows that end outside
                         {7, 5, 2, 3, 1, 1, false, false},  // gaps between windows; global pools
                         {4, 8, 4, 1, 2, 2, false, true}};
  for (const Windows& w : all) {
    for (const PoolingMode mode : kAllPoolingModes) {
      for (const auto layout : {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
        P like{.num_members = 2, .batch = 2, .channels = 3, .height = w.height, .width = w.width};
        like.layout = layout;
        like.mode = mode;
        like.columns = {w.kernel, w.stride, w.padding};
        if (w.height > 1) like.rows = like.columns;
        like.ceil_mode = w.ceil_mode && mode != PoolingMode::adaptive_average;
        like.counts_padding = w.counts_padding || mode != PoolingMode::average;
        if (mode == PoolingMode::adaptive_average) {
          like.out_height = w.height % w.out == 0 ? w.out : 1;
          like.out_width = w.width % w.out == 0 ? w.out : 1;
        }
        INFO(pooling_mode_name(mode) << " " << w.height << " x " << w.width);
        const PoolingPlan plan = make_pooling_plan(Context::cpu(), like);
        const P& p = plan.problem();
        Operands ours(p), theirs(p);
        plan.run(ours.arguments(), {Stream::cpu()});
        REQUIRE(pooling_cudnn_unsupported_reason(p).empty());
        const PoolingCudnnGraph graph = describe_pooling_cudnn(p);
        test::interpret(graph.graph, bind_pooling_cudnn(graph, theirs.arguments()));
        CHECK(worst_difference(ours, theirs) < 1e-6);
      }
    }
  }
}

TEST_CASE("pooling: what cuDNN cannot be told of is refused with the reason") {
  const P max = problem(), mean = problem(PoolingMode::average);
  CHECK(reason(max, [](P&) {}) == "");
  CHECK(reason(max, [](P& p) { p.x.row = 9, p.x.channel = 80, p.x.member = 16 * 80; }) == "");
  CHECK(reason(max, [](P& p) { p.columns.dilation = 2; }) == "cuDNN's windows have no dilation");
  CHECK(reason(max, [](P& p) { p.y.member += 1; }) ==
        "members do not lie side by side as channels");
  const P parts = problem(PoolingMode::adaptive_average);
  CHECK(reason(parts, [](P&) {}) == "");
  CHECK(reason(parts, [](P& p) { p.out_width = 3; }) ==
        "adaptive windows differ, and cuDNN's are all alike");

  // ceil_mode: the last of five windows takes columns 7 to 9 of 8, and one column of padding.
  const auto end_outside = [](P& p) { p.columns.padding = 1, p.out_width = 5; };
  CHECK(reason(mean, end_outside) ==
        "a last window ends past the padding, which cuDNN's means would count");
  CHECK(reason(max, end_outside) == "");
  CHECK(reason(mean, [](P& p) { p.out_width = 5, p.counts_padding = false; }) == "");
  CHECK_THROWS_AS(PoolingCudnn(test::kCudnnH200,
                               [&] {
                                 P p = max;
                                 p.rows.dilation = 2;
                                 return p;
                               }()),
                  Error);
}

TEST_CASE("pooling: operands that cuDNN cannot be given are refused with the reason") {
  const P p = problem();
  Operands operands(p);
  PoolingArguments a = operands.arguments();
  CHECK(pooling_cudnn_unsupported_reason(a) == "");
  a.y.data = static_cast<std::byte*>(a.y.data) + 4;
  CHECK(pooling_cudnn_unsupported_reason(a) == "y is aligned to 4 bytes, expected cuDNN's = 16");
}

TEST_CASE("pooling: a member's operands begin where its values do") {
  P p = problem(PoolingMode::max, Dtype::bf16);
  Operands operands(p);
  const PoolingArguments all = operands.arguments(), third = PoolingCudnn::member_of(p, all, 2);
  const auto bytes = [](const ConstTensorView& own, const ConstTensorView& first) {
    return static_cast<const std::byte*>(own.data) - static_cast<const std::byte*>(first.data);
  };
  CHECK(bytes(third.x, all.x) == 2 * 16 * 64 * 2);
  CHECK(bytes(third.y, all.y) == 2 * 16 * 16 * 2);
  CHECK(PoolingCudnn::member_reason(p) == "");
  p.y.member += 4;
  CHECK(PoolingCudnn::member_reason(p) == "members do not all begin at multiples of 16 bytes");
}

TEST_CASE("pooling: cuDNN plans both layouts for devices that are not at hand") {
  test::require_cudnn_planning();
  using enum PoolingMode;
  const std::pair<CudnnDevice, P> cases[] = {
      {test::kCudnnH200, problem()},
      {test::kCudnnA100, problem(average, Dtype::bf16)},
      {test::kCudnnH200, problem(max, Dtype::fp16, ChannelLayout::channels_last)},
      {test::kCudnnH200, problem(average, Dtype::fp32, ChannelLayout::channels_last)}};
  for (const auto& [device, p] : cases) {
    const PoolingCudnn plan(device, p);
    INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
    CHECK(plan.explain().starts_with("engine "));
    Operands operands(p);
    CHECK_THROWS_AS(plan.run(operands.arguments(), {Stream::cpu()}), Error);  // no handle
  }
}

TEST_CASE("pooling: cuDNN on CUDA does what the CPU does", "[gpu]") {
  const Context context = test::require_cuda();
  const VendorHandles handles(context);
  if (handles.cudnn() == nullptr) SKIP("no cuDNN: " << handles.cudnn_unavailable_reason());
  for (const PoolingMode mode : {PoolingMode::max, PoolingMode::average}) {
    const P p = problem(mode);
    Operands ours(p);
    make_pooling_plan(ours.context, p).run(ours.arguments(), {Stream::cpu()});
    for (const char* strategy : {"cudnn", "sequential"}) {
      Operands theirs(p, context);
      test::run_plan(context, make_pooling_plan(context, p, {strategy}), theirs.arguments());
      INFO(strategy);
      CHECK(worst_difference(ours, theirs) < 1e-5);
    }
  }
}
