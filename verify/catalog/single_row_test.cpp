// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An engine whose rows have a pitch writes it into every problem, those of one row included, where
// nothing steps along it: such plans run on operands of that pitch, and of any other.
#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

#include "wide/binary.hpp"
#include "wide/embedding.hpp"
#include "wide/ensemble.hpp"
#include "wide/layernorm.hpp"
#include "wide/linear.hpp"
#include "wide/pointwise.hpp"
#include "wide/softmax.hpp"

namespace wide {
namespace {

constexpr int64_t kMembers = 4, kFeatures = 8, kPitch = 64;
constexpr RowStrides kStrides{kPitch, kFeatures};

/// Floats of one row, and views of them by any pitch.
struct Floats {
  std::vector<float> values = std::vector<float>(kPitch, 0.5f);
  TensorView view(int64_t pitch) {
    return {values.data(), Dtype::fp32, {1, kMembers * kFeatures}, Strides{pitch, 1}, Device{}};
  }
};

const Context kCpu = Context::cpu();

template <class Plan, class Arguments>
void check_runs(const Plan& plan, const Arguments& arguments_of) {
  for (const int64_t pitch : {kPitch, kMembers * kFeatures})
    CHECK_NOTHROW(plan.run(arguments_of(pitch), {Stream::cpu()}));
}

TEST_CASE("a pitch of rows is none of a single row") {
  Floats a, b, y;
  const auto both = [&](int64_t pitch) { return std::pair(a.view(pitch), y.view(pitch)); };
  SECTION("layernorm") {
    LayernormProblem p{.num_members = kMembers,
                       .rows = 1,
                       .features = kFeatures,
                       .has_gamma = false,
                       .has_beta = false};
    p.x = p.y = kStrides;
    check_runs(make_layernorm_plan(kCpu, p), [&](int64_t pitch) {
      const auto [x, out] = both(pitch);
      return LayernormArguments{x, {}, {}, out};
    });
  }
  SECTION("pointwise") {
    PointwiseProblem p{.num_members = kMembers, .rows = 1, .features = kFeatures};
    p.x = p.y = kStrides;
    check_runs(make_pointwise_plan(kCpu, p), [&](int64_t pitch) {
      const auto [x, out] = both(pitch);
      return PointwiseArguments{x, {}, out};
    });
  }
  SECTION("softmax") {
    SoftmaxProblem p{.num_members = kMembers, .rows = 1, .features = kFeatures};
    p.x = p.y = kStrides;
    check_runs(make_softmax_plan(kCpu, p), [&](int64_t pitch) {
      const auto [x, out] = both(pitch);
      return SoftmaxArguments{x, out};
    });
  }
  SECTION("binary") {
    BinaryProblem p{.num_members = kMembers, .rows = 1, .features = kFeatures};
    p.x = p.y = p.other = kStrides;
    check_runs(make_binary_plan(kCpu, p), [&](int64_t pitch) {
      const auto [x, out] = both(pitch);
      return BinaryArguments{x, b.view(pitch), out};
    });
  }
  SECTION("ensemble") {
    EnsembleProblem p{.num_members = kMembers, .rows = 1, .features = kFeatures};
    p.x = kStrides;
    p.y_row_stride = kPitch;
    check_runs(make_ensemble_plan(kCpu, p), [&](int64_t pitch) {
      return EnsembleArguments{
          a.view(pitch),
          {},
          TensorView(y.values.data(), Dtype::fp32, {1, kFeatures}, Strides{pitch, 1}, Device{})};
    });
  }
  SECTION("embedding") {
    std::vector<float> table(kMembers * 3 * kFeatures, 1);
    std::vector<int32_t> ids{2};
    EmbeddingProblem p;
    p.num_members = kMembers, p.vocab = 3, p.dim = kFeatures, p.batch = p.seq = 1;
    p.id_dtype = Dtype::int32, p.shared_ids = true;
    p.y = kStrides;
    p.ids_batch_stride = kPitch;
    check_runs(make_embedding_plan(kCpu, p), [&](int64_t pitch) {
      EmbeddingArguments arguments;
      arguments.ids =
          ConstTensorView(ids.data(), Dtype::int32, {1, 1}, Strides{pitch, 1}, Device{});
      arguments.table =
          ConstTensorView(table.data(), Dtype::fp32, {kMembers, 3, kFeatures}, Device{});
      arguments.y = TensorView(y.values.data(), Dtype::fp32, {1, 1, kMembers * kFeatures},
                               Strides{pitch, pitch, 1}, Device{});
      return arguments;
    });
  }
}

}  // namespace
}  // namespace wide
