// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm, rmsnorm and chain of rows that ids route to members: each row is, bit for bit, what
// its member alone gives for it; rows of nobody become zeros.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/norm/row_norm.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/chain.hpp"
#include "wide/error.hpp"
#include "wide/layernorm.hpp"
#include "wide/rmsnorm.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::uniform, test::upload;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// As far from members' as an id gets.
constexpr double kLeastId = static_cast<double>(std::numeric_limits<int64_t>::min());

void run(const Context& context, const ChainArguments& arguments, const ChainProblem& like,
         const std::string& strategy) {
  test::run_plan(context, make_chain_plan(context, describe_chain(arguments, like), {strategy}),
                 arguments);
}

/// Rows as [R, D] among others: `padding` more elements a row, and the first at `offset`.
struct PlacedRows {
  Tensor storage;
  int64_t rows, features, stride, offset;

  PlacedRows(const Context& context, Dtype dtype, int64_t rows_, int64_t features_, bool is_odd,
             const std::vector<double>& values)
      : rows(rows_), features(features_), stride(features_ + (is_odd ? 3 : 0)), offset(is_odd) {
    std::vector<double> all(static_cast<size_t>(offset + rows * stride), 99);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < features; ++i) all[at(r, i)] = values[flat(r, i)];
    }
    storage = upload(context, dtype, {offset + rows * stride}, all);
  }
  size_t at(int64_t row, int64_t i) const { return static_cast<size_t>(offset + row * stride + i); }
  size_t flat(int64_t row, int64_t i) const { return static_cast<size_t>(row * features + i); }
  TensorView view() {
    auto* first = static_cast<std::byte*>(storage.data()) + offset * dtype_bytes(storage.dtype());
    return {first, storage.dtype(), {rows, features}, Strides{stride, 1}, storage.view().device};
  }
  /// Also that nothing lies between rows but what was there.
  std::vector<double> values(const Context& context) const {
    std::vector<double> all = download(context, storage), own;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < features; ++i) {
        own.push_back(all[at(r, i)]);
        all[at(r, i)] = 99;
      }
    }
    CHECK(all == std::vector<double>(all.size(), 99));
    return own;
  }
};

/// Eleven rows of three members, some of nobody, in whose rows x and residual are NaN.
class Routed {
 public:
  static constexpr int64_t kRows = 11, kMembers = 3;

  Routed(const Context& context, Dtype dtype, int64_t features, bool is_odd)
      : context_(context),
        features_(features),
        x_(rows(dtype, is_odd, true, 1)),
        residual_(rows(dtype, is_odd, true, 2)),
        y_(rows(dtype, is_odd, false, 3)),
        sum_(rows(dtype, is_odd, false, 4)),
        bias_(upload(context, dtype, {kMembers, features}, uniform(kMembers * features, -1, 1, 5))),
        gamma_(
            upload(context, dtype, {kMembers, features}, uniform(kMembers * features, -1, 1, 6))),
        beta_(
            upload(context, dtype, {kMembers, features}, uniform(kMembers * features, -1, 1, 7))) {}

  struct Results {
    std::vector<double> y, sum;
  };

  /// All rows in one call.
  Results routed(ChainProblem like, bool is_in_place, const std::string& strategy) {
    like.first_id = 5;
    Tensor ids = upload(context_, Dtype::int32, {kRows}, kIds);
    ChainArguments a = arguments(like, is_in_place);
    a.ids = ids;
    run(context_, a, like, strategy);
    return results(like, is_in_place);
  }

  /// All rows by each member in turn, of which those of that member count.
  Results one_by_one(ChainProblem like) {
    like.num_members = 1;
    Results all;
    all.y.assign(static_cast<size_t>(kRows * features_), 0);
    if (has_sum(like)) all.sum = all.y;
    for (int64_t member = 0; member < kMembers; ++member) {
      ChainArguments a = arguments(like, false);
      for (ConstTensorView* parameter : {&a.bias, &a.gamma, &a.beta}) {
        if (!parameter->is_absent()) *parameter = parameter->narrow(0, member, 1);
      }
      run(context_, a, like, "wide");
      const Results own = results(like, false);
      for (size_t i = 0; i < own.y.size(); ++i) {
        const double id = kIds[i / static_cast<size_t>(features_)];
        if (id != static_cast<double>(5 + member)) continue;
        all.y[i] = own.y[i];
        if (has_sum(like)) all.sum[i] = own.sum[i];
      }
    }
    return all;
  }

 private:
  inline static const std::vector<double> kIds{7, 5, -1, 6, 7, 8, 5, 5, 0, 7, 4};

  static bool has_sum(const ChainProblem& like) {
    return like.has_residual && like.norm != ChainNorm::none;
  }
  PlacedRows rows(Dtype dtype, bool is_odd, bool is_input, uint64_t seed) const {
    std::vector<double> values = uniform(kRows * features_, -2, 2, seed);
    for (size_t i = 0; i < values.size() && is_input; ++i) {
      const double id = kIds[i / static_cast<size_t>(features_)];
      if (id < 5 || id > 7) values[i] = kNan;
    }
    return {context_, dtype, kRows, features_, is_odd, values};
  }
  ChainArguments arguments(const ChainProblem& like, bool is_in_place) {
    ChainArguments a;
    a.x = x_.view();
    a.y = is_in_place ? x_.view() : y_.view();
    if (like.has_bias) a.bias = bias_.view();
    if (like.norm != ChainNorm::none) a.gamma = gamma_.view();
    if (like.norm == ChainNorm::layernorm) a.beta = beta_.view();
    if (like.has_residual) a.residual = residual_.view();
    if (has_sum(like)) a.sum = is_in_place ? residual_.view() : sum_.view();
    return a;
  }
  Results results(const ChainProblem& like, bool is_in_place) const {
    Results found{(is_in_place ? x_ : y_).values(context_), {}};
    if (has_sum(like)) found.sum = (is_in_place ? residual_ : sum_).values(context_);
    return found;
  }

  Context context_;
  int64_t features_;
  PlacedRows x_, residual_, y_, sum_;
  Tensor bias_, gamma_, beta_;
};

/// Both norms, and chains of everything.
std::vector<ChainProblem> kinds() {
  std::vector<ChainProblem> all(5);
  all[0].norm = all[2].norm = ChainNorm::layernorm;
  all[1].norm = all[3].norm = ChainNorm::rmsnorm;
  for (size_t i = 2; i < 5; ++i) {
    all[i].has_bias = all[i].has_residual = true;
    all[i].activation = Activation::silu;
  }
  return all;
}

}  // namespace

TEST_CASE("routed norms: a case worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    // Rows (1, 3), of mean 2 and variance 1, for both members; others are nobody's.
    const Tensor x = upload(context, Dtype::fp32, {5, 2}, {1, 3, kNan, 3, 1, 3, kNan, kNan, 1, 3});
    const Tensor gamma = upload(context, Dtype::fp32, {2, 2}, {2, 4, 1, 1}),
                 beta = upload(context, Dtype::fp32, {2, 2}, {0.5, 0.5, 7, 8});
    for (const Dtype dtype : {Dtype::int32, Dtype::int64}) {
      for (const int64_t first_id : {0, 40}) {
        const auto first = static_cast<double>(first_id);
        const double far = dtype == Dtype::int64 ? kLeastId : -1;
        const Tensor ids =
            upload(context, dtype, {5}, {first + 1, first + 2, first, far, first + 1});
        Tensor y(context, Dtype::fp32, {5, 2});
        const LayernormArguments a{.x = x, .gamma = gamma, .beta = beta, .y = y, .ids = ids};
        const LayernormProblem p =
            describe_layernorm(a, {.epsilon = 0x1p-20f, .first_id = first_id});
        CHECK((p.num_members == 2 && p.rows == 5 && p.features == 2 && p.id_dtype == dtype));
        for (const char* strategy : {"sequential", "wide", "auto"}) {
          const LayernormPlan plan = make_layernorm_plan(context, p, {strategy});
          const OwnedStream stream(context);
          fill_bytes(y, 0xff, stream.get());
          context.synchronize(stream.get());
          CHECK(plan.workspace_bytes() == 0);
          test::run_plan(context, plan, a);
          const std::vector<double> want{6, 9, 0, 0, -1.5, 4.5, 0, 0, 6, 9};
          const std::vector<double> got = download(context, y);
          CHECK(test::worst_difference(got, want) < 1e-5);
          for (const size_t i : {2, 3, 6, 7}) CHECK((got[i] == 0 && !std::signbit(got[i])));
        }
        // (1, 3) / sqrt(5)
        const RmsnormArguments scaled{.x = x, .gamma = gamma, .y = y, .ids = ids};
        test::run_plan(
            context,
            make_rmsnorm_plan(context, describe_rmsnorm(scaled, {.first_id = first_id}), {"wide"}),
            scaled);
        const double s = 1 / std::sqrt(5.0);
        CHECK(test::worst_difference(download(context, y),
                                     {s, 3 * s, 0, 0, 2 * s, 12 * s, 0, 0, s, 3 * s}) < 1e-5);
      }
    }
  }
}

TEST_CASE("routed norms: a row has the bits that its member alone gives, whatever the layout") {
  const bool is_small = test::wants_small_cases();
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1, 7, 64, 130, 260, 1000, 1030, 17000}) {
      if (is_small && (d == 7 || d == 260)) continue;
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        if (is_small && dtype == Dtype::fp32 && d > 1000) continue;
        for (const bool is_odd : {false, true}) {
          Routed rows(context, dtype, d, is_odd);
          for (const ChainProblem& like : kinds()) {
            if (is_small && d == 17000 && like.norm != ChainNorm::layernorm) continue;
            const Routed::Results want = rows.one_by_one(like);
            for (const char* strategy : {"sequential", "wide"}) {
              INFO(to_string(context.device())
                   << " " << strategy << " " << dtype_name(dtype) << " d " << d << " odd " << is_odd
                   << " " << chain_norm_name(like.norm));
              const Routed::Results got = rows.routed(like, false, strategy);
              CHECK(got.y == want.y);
              CHECK(got.sum == want.sum);
              Routed fresh(context, dtype, d, is_odd);
              const Routed::Results in_place = fresh.routed(like, true, strategy);
              CHECK(in_place.y == want.y);
              CHECK(in_place.sum == want.sum);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("routed norms: a row of nobody is zeros without an epsilon, too") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {5, 64, 1030, 17000}) {
      const Tensor x = upload(context, Dtype::fp32, {2, d}, uniform(2 * d, -1, 1, 1)),
                   ids = upload(context, Dtype::int64, {2}, {-1, -1});
      for (const ChainNorm norm : {ChainNorm::layernorm, ChainNorm::rmsnorm}) {
        Tensor y = upload(context, Dtype::fp32, {2, d}, uniform(2 * d, -1, 1, 2));
        for (const char* strategy : {"sequential", "wide"}) {
          run(context, {.x = x, .y = y, .ids = ids},
              {.num_members = 2, .features = d, .norm = norm, .epsilon = 0}, strategy);
          CHECK(download(context, y) == std::vector<double>(static_cast<size_t>(2 * d), 0));
        }
      }
    }
  }
}

TEST_CASE("routed norms: many members, few rows, and none") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t members = 300, d = 16;
    std::vector<double> factors;
    for (int64_t n = 0; n < members; ++n) {
      factors.insert(factors.end(), static_cast<size_t>(d), static_cast<double>(n));
    }
    const Tensor gamma = upload(context, Dtype::fp32, {members, d}, factors);
    for (const int64_t rows : {0, 1, 70}) {
      std::vector<double> ids, want;
      for (int64_t r = 0; r < rows; ++r) {
        ids.push_back(static_cast<double>((r * 97 + 299) % members));
        want.insert(want.end(), static_cast<size_t>(d), ids.back());
      }
      const Tensor x = upload(context, Dtype::fp32, {rows, d},
                              std::vector<double>(static_cast<size_t>(rows * d), 1)),
                   owners = upload(context, Dtype::int32, {rows}, ids);
      Tensor y(context, Dtype::fp32, {rows, d});
      for (const char* strategy : {"sequential", "wide"}) {
        run(context, {.x = x, .gamma = gamma, .y = y, .ids = owners},
            {.norm = ChainNorm::rmsnorm, .epsilon = 0}, strategy);
        CHECK(download(context, y) == want);
      }
    }
  }
}

TEST_CASE("routed norms: rows lie as one member's, and ids as rows do") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {3, 2, 4}), y(cpu, Dtype::fp32, {3, 2, 4}),
      gamma(cpu, Dtype::fp32, {5, 4}), ids(cpu, Dtype::int64, {3, 2});
  const RmsnormProblem p =
      describe_rmsnorm({.x = x, .gamma = gamma, .y = y, .ids = ids}, {.first_id = 7});
  CHECK((p.num_members == 5 && p.rows == 6 && p.features == 4 && p.first_id == 7));
  CHECK((p.x == RowStrides{4, 4} && p.id_dtype == Dtype::int64));
  const RmsnormProblem none = describe_rmsnorm({.x = x, .y = y, .ids = ids}, {.num_members = 5});
  CHECK((none.num_members == 5 && none.features == 4 && none.rows == 6));
  RmsnormProblem given{.num_members = 5, .rows = 6, .features = 4, .first_id = 7};
  given.id_dtype = Dtype::int64;
  CHECK(make_rmsnorm_plan(cpu, given).problem() == p);
  CHECK(tuning_key(p) == tuning_key(given));
}

TEST_CASE("routed norms: what does not fit is named") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {6, 8}), y(cpu, Dtype::fp32, {6, 8}), gamma(cpu, Dtype::fp32, {2, 8}),
      ids(cpu, Dtype::int32, {6}), few(cpu, Dtype::int32, {5}), floats(cpu, Dtype::fp32, {6}),
      pairs(cpu, Dtype::int32, {6, 2}), wide_gamma(cpu, Dtype::fp32, {2, 4});
  const auto refuses = [&](const LayernormArguments& a, const LayernormProblem& like,
                           const char* message) {
    CHECK_THROWS_MATCHES(describe_layernorm(a, like), Error, Message(message));
  };
  const LayernormArguments good{.x = x, .gamma = gamma, .y = y, .ids = ids};
  CHECK_NOTHROW(describe_layernorm(good));
  LayernormArguments bad = good;
  bad.ids = few;
  refuses(bad, {}, "layernorm: ids is [5], expected one for each row of x = [6, 8]");
  bad.ids = floats;
  refuses(bad, {}, "layernorm: ids is fp32, expected int32 or int64");
  bad.ids = pairs.view().narrow(1, 0, 1);
  refuses(bad, {}, "layernorm: ids has strides [2, 1], expected contiguous ones");
  bad.ids = ConstTensorView(ids.data(), Dtype::int32, {6}, Device{DeviceType::cuda, 0});
  refuses(bad, {}, "layernorm: ids is on cuda:0, expected the plan's device = cpu");
  bad.ids = ConstTensorView(y.data(), Dtype::int32, {6}, cpu.device());
  refuses(bad, {}, "layernorm: y overlaps ids, expected memory of its own");
  refuses(good, {.first_id = -1}, "layernorm: first_id is -1, expected >= 0");
  refuses(good, {.first_id = INT64_MAX},
          "layernorm: first_id is 9223372036854775807, expected first_id + num_members in 64 bits, "
          "num_members is 2");
  bad = good;
  bad.gamma = wide_gamma;
  CHECK_THROWS_AS(describe_layernorm(bad), Error);
  bad = good;
  bad.ids = {};
  CHECK_THROWS_AS(describe_layernorm(bad), Error);  // two members of four features
  refuses({.x = x, .y = y}, {.num_members = 2, .first_id = 3},
          "layernorm: first_id is 3, expected 0 without ids");

  const LayernormPlan plan = make_layernorm_plan(cpu, describe_layernorm(good));
  Tensor more(cpu, Dtype::int64, {6});
  bad = good;
  bad.ids = more;
  CHECK_THROWS_MATCHES(
      plan.run(bad, {Stream::cpu()}), Error,
      Message("layernorm: the operands' id_dtype is int64, expected the plan's = int32"));
  const LayernormPlan plain =
      make_layernorm_plan(cpu, {.num_members = 1, .rows = 6, .features = 8, .has_beta = false});
  bad.gamma = gamma.view().narrow(0, 0, 1);
  CHECK_THROWS_MATCHES(
      plain.run(bad, {Stream::cpu()}), Error,
      Message("layernorm: ids is present, expected none as in the plan's problem"));
}
