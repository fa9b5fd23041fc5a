// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is kept of cuDNN's plans, and what handles say where there is no cuDNN.
#include <catch2/catch_test_macros.hpp>

#include "host/core/heuristic_policy.hpp"
#include "host/cudnn/cudnn_plan_cache.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/error_of.hpp"
#include "wide/error.hpp"

using namespace wide;

namespace {

CudnnGraph relu_of(int64_t positions) {
  CudnnGraph graph;
  const Shape shape{2, 8, positions};
  const auto x = graph.bind(CudnnType::fp32, shape, contiguous_strides(shape));
  const auto y = graph.bind(CudnnType::fp32, shape, contiguous_strides(shape));
  graph.append(CudnnPointwise{CudnnFunction::relu, x, kNoCudnnTensor, kNoCudnnTensor, y});
  return graph;
}

struct NoPlan final : CudnnPlan {
  void run(void*, std::span<const CudnnBinding>, const Workspace&, Stream) const override {}
};

}  // namespace

TEST_CASE("cudnn: plans and refusals of equal graphs are made once, the oldest forgotten") {
  CudnnPlanCache cache;
  int made = 0;
  const auto plan_of = [&](int64_t positions, const CudnnNumerics& numerics = {}) {
    const auto plans =
        cache.find_or_make(relu_of(positions), numerics, 1, [&](const CudnnPlan* previous) {
          CHECK(previous == nullptr);
          ++made;
          return std::make_shared<const NoPlan>();
        });
    return plans.at(0);
  };
  const auto first = plan_of(4);
  CHECK((plan_of(4) == first && made == 1));
  CHECK((plan_of(8) != first && made == 2));
  CHECK((plan_of(4, {.allows_tensor_cores = true}) != first && made == 3));
  for (int64_t positions = 100; positions < 164; ++positions) (void)plan_of(positions);
  CHECK((plan_of(4) != first && made == 3 + 64 + 1));

  const auto refuse = [&](ErrorCode code) {
    return test::error_of([&] {
      (void)cache.find_or_make(relu_of(1), {}, 1,
                               [&](const CudnnPlan*) -> std::shared_ptr<const CudnnPlan> {
                                 ++made;
                                 throw Error(code, "no");
                               });
    });
  };
  made = 0;
  CHECK((refuse(ErrorCode::out_of_memory) == "no" && refuse(ErrorCode::unsupported) == "no"));
  CHECK(made == 2);  // the first was no answer of cuDNN's
  CHECK((refuse(ErrorCode::unsupported) == "no" && made == 2));
}

TEST_CASE("cudnn: plans of one graph follow one another, and each is made once") {
  CudnnPlanCache cache;
  CudnnPlanCache::Plans made;
  auto end = ErrorCode::out_of_memory;
  const auto plans_of = [&](size_t count) {
    return cache.find_or_make(relu_of(4), {}, count,
                              [&](const CudnnPlan* previous) -> std::shared_ptr<const CudnnPlan> {
                                CHECK(previous == (made.empty() ? nullptr : made.back().get()));
                                if (made.size() == 3) throw Error(end, "no more");
                                return made.emplace_back(std::make_shared<const NoPlan>());
                              });
  };
  CHECK(plans_of(2).size() == 2);
  CHECK((plans_of(1) == CudnnPlanCache::Plans{made[0]} && made.size() == 2));
  CHECK((plans_of(3) == made && made.size() == 3));
  CHECK(test::error_of([&] { (void)plans_of(4); }) == "no more");  // that is no end
  end = ErrorCode::unsupported;
  CHECK(plans_of(4) == made);
  end = ErrorCode::out_of_memory;  // nobody asks again
  CHECK((plans_of(5) == made && plans_of(2).size() == 2));
}

TEST_CASE("cudnn: a plan of a described device is the cache's, too") {
  test::require_cudnn_planning();
  CudnnPlanCache cache;
  CudnnDevice device = test::kCudnnH200;
  device.cache = &cache;
  const auto plan = make_cudnn_plan("test", device, relu_of(64), {.allows_tensor_cores = true});
  CHECK(make_cudnn_plan("test", device, relu_of(64), {.allows_tensor_cores = true}) == plan);
}

TEST_CASE("cudnn: policies are places in the list of plans") {
  for (size_t i = 0; i < kCudnnPolicies.size(); ++i) {
    CHECK(kCudnnPolicies[i] == heuristic_policy(static_cast<int>(i)));
  }
}

TEST_CASE("cudnn: handles say why there is none, and borrow one alone") {
  const VendorHandles none(Context::cpu());
  CHECK((none.cudnn() == nullptr && !none.cudnn_unavailable_reason().empty()));
  CHECK_THROWS_AS(VendorHandles::borrow(nullptr), Error);
  int engine = 0;  // stands for a library's handle: nobody looks into it
  const VendorHandles lent = VendorHandles::borrow(nullptr, &engine);
  CHECK((lent.cudnn() == &engine && lent.cublas() == nullptr));
  CHECK(lent.cublas_unavailable_reason() == "none was lent");
  CudnnDevice absent;
  absent.ordinal = 9999;
  CHECK(cudnn_unavailable_reason(absent) != "");
}
