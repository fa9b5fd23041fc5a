// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a tuning cache knows problems by: whatever a problem is compared by makes another key, and
// what the catalogue says of a case is what a plan asks for.

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <set>
#include <type_traits>

#include "host/attention/attention_problem.hpp"
#include "host/attention/flash_attention_problem.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/embedding/embedding_problem.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/row_norm.hpp"
#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/ensemble_run.hpp"
#include "host/pointwise/pointwise_problem.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "host/pooling/interpolate_problem.hpp"
#include "host/pooling/pooling_problem.hpp"
#include "host/recurrent/recurrent_problem.hpp"
#include "host/routing/routing_run.hpp"
#include "host/routing/top_k_run.hpp"
#include "verify/support/cases.hpp"
#include "wide/wide.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::StartsWith;

/// Every field has a byte that differs: flipping one makes another bool, enumerator, number or
/// optional, and what it makes no other of is padding. So fields of later days are looked at, too.
template <class Problem>
void check_every_byte(const Problem& problem) {
  static_assert(std::is_trivially_copyable_v<Problem>);
  const std::string key = problem_key(problem);
  CHECK(key.find('\n') == std::string::npos);
  CHECK(problem_key(Problem(problem)) == key);
  size_t num_different = 0;
  for (size_t i = 0; i < sizeof(Problem); ++i) {
    std::array<unsigned char, sizeof(Problem)> bytes;
    std::memcpy(bytes.data(), &problem, sizeof(Problem));
    bytes[i] ^= 1;
    Problem other = problem;
    std::memcpy(&other, bytes.data(), sizeof(Problem));
    if (other == problem) continue;
    ++num_different;
    INFO("byte " << i << " of " << key);
    CHECK(problem_key(other) != key);
  }
  CHECK(num_different > sizeof(Problem) / 2);
}

template <class Problem>
void check_each_other(const std::vector<Problem>& problems) {
  std::set<std::string> keys;
  for (const Problem& problem : problems) keys.insert(problem_key(problem));
  CHECK(keys.size() == problems.size());
}

TEST_CASE("problem keys: whatever differs makes another key") {
  check_every_byte(ConvProblem{.x_layout = ChannelLayout::channels_first});
  check_every_byte(FlashAttentionProblem{.kv_seq = 3, .scale = 0.5f});
  check_every_byte(AttentionProblem{.kv_seq = 3});
  check_every_byte(RecurrentProblem{});
  check_every_byte(PoolingProblem{});
  check_every_byte(InterpolateProblem{});
  check_every_byte(LinearProblem{.y_dtype = Dtype::fp32});
  check_every_byte(RoutedLinearProblem{});
  check_every_byte(SoftmaxProblem{});
  check_every_byte(RoutingProblem{});
  check_every_byte(TopKProblem{});
  check_every_byte(EnsembleProblem{});
  check_every_byte(DropoutProblem{});
  check_every_byte(BinaryProblem{});
  check_every_byte(PointwiseProblem{});
  check_every_byte(BatchnormProblem{});
  check_every_byte(GroupnormProblem{});
  check_every_byte(LayernormProblem{});
  check_every_byte(RmsnormProblem{});
  check_every_byte(ChainProblem{});
  check_every_byte(EmbeddingProblem{});
}

/// Each entry of `changes` changes one field.
template <class Problem>
void check_changes(const Problem& problem, std::initializer_list<void (*)(Problem&)> changes) {
  std::vector<Problem> all{problem};
  for (const auto& change : changes) change(all.emplace_back(problem));
  check_each_other(all);
}

TEST_CASE("problem keys: those of problems with lists") {
  using M = MlpProblem;
  check_changes<M>({.widths = {6, 4, 2}},
                   {[](M& p) { p.num_members = 2; }, [](M& p) { p.batch = 2; },
                    [](M& p) {
                      p.widths = {64, 2};
                    },
                    [](M& p) {
                      p.widths = {6, 4, 3};
                    },
                    [](M& p) { p.dtype = Dtype::fp16; }, [](M& p) { p.allow_tf32 = true; },
                    [](M& p) { p.shared_input = true; }, [](M& p) { p.has_bias = true; },
                    [](M& p) { p.activation = Activation::silu; },
                    [](M& p) { p.last_activation = Activation::silu; }, [](M& p) { p.x.row = 9; },
                    [](M& p) { p.x.member = 9; }, [](M& p) { p.y.row = 9; },
                    [](M& p) { p.y.member = 9; }, [](M& p) { p.weights_member_stride = 9; }});
  using Routed = RoutedMlpProblem;
  check_changes<Routed>(
      {.num_rows = 12, .widths = {6, 4, 2}, .gathers = true},
      {[](Routed& p) { p.num_members = 2; }, [](Routed& p) { p.num_rows = 6; },
       [](Routed& p) {
         p.widths = {64, 2};
       },
       [](Routed& p) { p.dtype = Dtype::fp16; }, [](Routed& p) { p.allow_tf32 = true; },
       [](Routed& p) { p.gathers = false; }, [](Routed& p) { p.scatters = true; },
       [](Routed& p) { p.choices = 2; }, [](Routed& p) { p.has_gates = true; },
       [](Routed& p) { p.has_bias = true; }, [](Routed& p) { p.activation = Activation::silu; },
       [](Routed& p) { p.last_activation = Activation::silu; },
       [](Routed& p) { p.x_row_stride = 9; }, [](Routed& p) { p.y_row_stride = 9; },
       [](Routed& p) { p.weights_member_stride = 9; }});
  using R = RaggedLinearProblem;
  check_changes<R>(
      {.members = {{1, 2, 3}, {4, 5, 6}}},
      {[](R& p) { p.members.pop_back(); }, [](R& p) { p.members[0].batch = 9; },
       [](R& p) { p.members[1].in_features = 9; }, [](R& p) { p.members[1].out_features = 9; },
       [](R& p) { p.members[1].x.offset = 9; }, [](R& p) { p.members[1].x.row = 9; },
       [](R& p) { p.members[1].weight.offset = 9; }, [](R& p) { p.members[1].weight.row = 9; },
       [](R& p) { p.members[1].y.offset = 9; }, [](R& p) { p.members[1].y.row = 9; },
       [](R& p) { p.members[1].bias_offset = 9; }, [](R& p) { p.dtype = Dtype::fp16; },
       [](R& p) { p.allow_tf32 = true; }, [](R& p) { p.epilogue.has_bias = true; },
       [](R& p) { p.epilogue.activation = Activation::silu; },
       [](R& p) { p.epilogue.scale = OutputScale::per_member; },
       [](R& p) { p.epilogue.residual = Residual::after_activation; },
       [](R& p) { p.epilogue.alpha = 0.999999f; }});
}

TEST_CASE("problem keys: they are plain words, and of completed problems") {
  const SoftmaxProblem p{.num_members = 2, .rows = 3, .features = 4};
  const TuningKey key = tuning_key(p);
  CHECK(key.primitive == "softmax");
  CHECK(key.problem ==
        "rows=3, features=4, dtype=fp32, stride of x={row 8, member 4}, stride of y={row 8, member "
        "4}, num_members=2, is_log=false");
  SoftmaxProblem given = p;
  given.x = given.y = {8, 4};
  CHECK(tuning_key(given) == key);
  CHECK(tuning_key(ConvProblem{.batch = 1, .in_channels = 1, .out_channels = 1}).primitive ==
        "conv");
  CHECK_THROWS_AS(tuning_key(SoftmaxProblem{.num_members = 0}), Error);
}

/// Odd cases, one word at a time off its default, and those of smallest sizes.
std::vector<catalog::Case> cases_of(const catalog::PrimitiveSpec& spec) {
  std::vector<catalog::Case> cases = edge_cases(spec);
  cases.push_back(odd_case(spec, 2, 5));
  cases.push_back(odd_case(spec, 1, 5));
  for (const catalog::AxisInfo& axis : spec.axes) {
    for (const std::string_view word : axis.words) {
      cases.push_back(odd_case(spec, 2, 5, {{std::string(axis.name), std::string(word)}}));
    }
  }
  return cases;
}

TEST_CASE("problem keys: a plan asks the cache for what the catalogue calls its case") {
  const Context context = Context::cpu();
  for (const catalog::PrimitiveSpec* spec : primitives_to_test()) {
    size_t num_checked = 0;
    for (const catalog::Case& point : cases_of(*spec)) {
      if (!spec->impossible_reason(point).empty()) continue;
      INFO(describe(*spec, point));
      const auto workload = spec->make_workload(context, point, {});
      if (workload->rows(0) * workload->row_length(0) == 0) continue;  // nothing is tuned, either
      if (!workload->unsupported_reason("sequential").empty()) continue;
      const TuningKey key = spec->tuning_key(point);
      TuningCache cache;
      cache.set(context.info(), key.primitive, key.problem, {"sequential", "", 5, 2, ""});
      const catalog::Prepared prepared = workload->prepare(PlanOptions{.tuning = &cache});
      CHECK(prepared.strategy == "sequential");
      CHECK_THAT(prepared.explain, StartsWith("sequential: tuned: 5 us on "));
      ++num_checked;
    }
    INFO(spec->name);
    CHECK(num_checked > 1);
  }
}

}  // namespace
}  // namespace wide::test
