// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is told of softmax, and what it cannot be told.
#include <catch2/catch_test_macros.hpp>

#include "host/pointwise/softmax_cudnn.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using P = SoftmaxProblem;

namespace {

P problem() {
  P p{.num_members = 3, .rows = 5, .features = 7};
  p.x = p.y = {21, 7};
  return p;
}

std::string reason(void (*change)(P&)) {
  P p = problem();
  change(p);
  return softmax_cudnn_unsupported_reason(p);
}

}  // namespace

TEST_CASE("softmax: cuDNN is told of the rows of all members as of one matrix") {
  const auto rows_of = [](void (*change)(P&)) {
    P p = problem();
    change(p);
    REQUIRE(softmax_cudnn_unsupported_reason(p).empty());
    return describe_softmax_cudnn(p);
  };
  const CudnnRows packed = rows_of([](P& p) { p.dtype = Dtype::bf16; });
  CHECK((packed.rows == 15 && packed.features == 7 && packed.type == CudnnType::bf16));
  CHECK((packed.x_stride == 7 && packed.y_stride == 7));
  const CudnnRows apart = rows_of([](P& p) { p.x = {30, 10}; });
  CHECK((apart.x_stride == 10 && apart.y_stride == 7));
  const CudnnRows own = rows_of([](P& p) { p.num_members = 1, p.y.row = 9; });
  CHECK((own.rows == 5 && own.x_stride == 21 && own.y_stride == 9));
  const CudnnRows flat = rows_of([](P& p) { p.rows = 1, p.x = p.y = {0, 8}; });
  CHECK((flat.rows == 3 && flat.x_stride == 8));
}

TEST_CASE("softmax: what cuDNN cannot be told of is refused with the reason") {
  CHECK(reason([](P&) {}) == "");
  CHECK(reason([](P& p) { p.y.row = 22; }) == "the rows of all members do not lie at one distance");
  CHECK(reason([](P& p) { p.num_members = 1, p.x.row = 3; }) == "rows overlap, and cuDNN's do not");
  CHECK(reason([](P& p) { p.rows = 1 << 27; }) == "cuDNN takes up to 2^31 - 1 elements");
  P broadcast = problem();
  broadcast.x = {0, 0};
  CHECK_THROWS_AS(SoftmaxCudnn(test::kCudnnH200, broadcast), Error);
}

TEST_CASE("softmax: cuDNN takes the rows of every dtype where there is no device") {
  test::require_cudnn_planning();
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    P p = problem();
    p.dtype = dtype;
    const SoftmaxCudnn softmax(test::kCudnnH200, p);
    CHECK(softmax.explain() == "cudnnSoftmaxForward");
  }
}

TEST_CASE("softmax: cuDNN on CUDA does what the CPU does", "[gpu]") {
  const Context context = test::require_cuda();
  const VendorHandles handles(context);
  if (handles.cudnn() == nullptr) SKIP("no cuDNN: " << handles.cudnn_unavailable_reason());
  const std::vector<double> values = test::uniform(15 * 7, -8, 8, 1);
  for (const bool is_log : {false, true}) {
    const auto run = [&](const Context& on, const char* strategy) {
      P p = problem();
      p.is_log = is_log;
      const Tensor x = test::upload(on, Dtype::fp32, {5, 21}, values);
      Tensor y(on, Dtype::fp32, {5, 21});
      test::run_plan(on, make_softmax_plan(on, p, {strategy}), SoftmaxArguments{x, y});
      return test::download(on, y);
    };
    const std::vector<double> expected = run(Context::cpu(), "wide");
    for (const char* strategy : {"cudnn", "sequential"}) {
      const std::vector<double> got = run(context, strategy);
      for (size_t i = 0; i < got.size(); ++i) {
        CHECK(test::worse_ratio(0, got[i], expected[i], 1) < 1e-5);
      }
    }
  }
}
