// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Data that every norm computes without a rounding, whatever the order of its sums: what is
// constant gives beta, and +1 and -1, as many of each, gamma / sqrt(1 + epsilon) on either side of
// beta.
#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/batchnorm.hpp"
#include "wide/chain.hpp"
#include "wide/groupnorm.hpp"
#include "wide/layernorm.hpp"
#include "wide/rmsnorm.hpp"

using namespace wide;
using test::download, test::upload;

namespace {

constexpr int64_t kMembers = 2;

/// One call's operands, x and y of one shape.
struct Operands {
  const Context& context;
  const Tensor& x;
  const Tensor &gamma, &beta;  ///< [N, D] or [N, C]
  Tensor& y;
  float epsilon;
  std::string strategy;
};

void run_layernorm(const Operands& o) {
  const LayernormArguments arguments{o.x, o.gamma, o.beta, o.y};
  const LayernormProblem p = describe_layernorm(arguments, {.epsilon = o.epsilon});
  test::run_plan(o.context, make_layernorm_plan(o.context, p, {o.strategy}), arguments);
}

/// It has no beta.
void run_rmsnorm(const Operands& o) {
  const RmsnormArguments arguments{o.x, o.gamma, o.y};
  const RmsnormProblem p = describe_rmsnorm(arguments, {.epsilon = o.epsilon});
  test::run_plan(o.context, make_rmsnorm_plan(o.context, p, {o.strategy}), arguments);
}

/// Of x + bias - bias, so that the parts in front of the norm take part.
void run_chain(const Operands& o, ChainNorm norm) {
  const auto filled = [&](const Shape& shape, double value) {
    return upload(o.context, o.x.dtype(), shape,
                  std::vector<double>(static_cast<size_t>(num_elements(shape)), value));
  };
  const Tensor bias = filled(o.gamma.shape(), 2), residual = filled(o.x.shape(), -2);
  ChainArguments arguments{o.x, bias, residual, o.gamma, {}, o.y};
  if (norm == ChainNorm::layernorm) arguments.beta = o.beta;
  const ChainProblem p = describe_chain(arguments, {.norm = norm, .epsilon = o.epsilon});
  test::run_plan(o.context, make_chain_plan(o.context, p, {o.strategy}), arguments);
}
void run_layernorm_chain(const Operands& o) {
  run_chain(o, ChainNorm::layernorm);
}
void run_rmsnorm_chain(const Operands& o) {
  run_chain(o, ChainNorm::rmsnorm);
}

void run_groups(const Operands& o, int64_t groups) {
  const GroupnormArguments arguments{o.x, o.gamma, o.beta, o.y};
  const GroupnormProblem p =
      describe_groupnorm(arguments, {.groups = groups, .epsilon = o.epsilon});
  test::run_plan(o.context, make_groupnorm_plan(o.context, p, {o.strategy}), arguments);
}
void run_groupnorm(const Operands& o) {
  run_groups(o, o.gamma.shape()[1] / 2);
}
void run_instancenorm(const Operands& o) {
  run_groups(o, o.gamma.shape()[1]);
}

void run_batchnorm(const Operands& o) {
  const std::vector<double> zeros(static_cast<size_t>(num_elements(o.gamma.shape())));
  Tensor mean = upload(o.context, Dtype::fp32, o.gamma.shape(), zeros),
         variance = upload(o.context, Dtype::fp32, o.gamma.shape(), zeros);
  const BatchnormArguments arguments{o.x, o.gamma, o.beta, mean, variance, o.y};
  const BatchnormProblem p =
      describe_batchnorm(arguments, {.mode = BatchnormMode::train, .epsilon = o.epsilon});
  test::run_plan(o.context, make_batchnorm_plan(o.context, p, {o.strategy}), arguments);
}

/// What is normalised together, of x [B, N, C, L].
enum class Set { row, group, instance, channel };

/// A norm, and how large x is where `count` values are normalised together.
struct Norm {
  const char* name;
  void (*run)(const Operands&);
  Set set;
  int64_t length;  ///< of batchnorm's channels
  bool is_centred = true;
  bool has_beta = true;
};
constexpr Norm kNorms[] = {{"layernorm", run_layernorm, Set::row, 1},
                           {"rmsnorm", run_rmsnorm, Set::row, 1, false, false},
                           {"chain with layernorm", run_layernorm_chain, Set::row, 1},
                           {"chain with rmsnorm", run_rmsnorm_chain, Set::row, 1, false, false},
                           {"groupnorm", run_groupnorm, Set::group, 1},
                           {"instancenorm", run_instancenorm, Set::instance, 1},
                           {"batchnorm of vectors", run_batchnorm, Set::channel, 1},
                           {"batchnorm of signals", run_batchnorm, Set::channel, 8},
                           {"batchnorm of images", run_batchnorm, Set::channel, 16}};

struct Sizes {
  int64_t batch, channels, length;

  Sizes(const Norm& norm, int64_t count) : batch(3), channels(4), length(count) {
    if (norm.set == Set::row) channels = count, length = 1;
    if (norm.set == Set::group) length = std::max<int64_t>(count / 2, 1);
    if (norm.set != Set::channel) return;
    length = norm.length;
    batch = std::max<int64_t>(count / length, 1);
  }
  Shape shape(const Norm& norm) const {
    if (length == 1) return {batch, kMembers * channels};
    if (norm.length == 16) return {batch, kMembers * channels, 4, length / 4};
    return {batch, kMembers * channels, length};
  }
  int64_t elements() const { return batch * kMembers * channels * length; }
};

/// Element i of x: which set it belongs to, its number in it, and its parameters' number.
struct Place {
  int64_t set, number, parameter;

  Place(const Norm& norm, const Sizes& s, int64_t i) {
    const int64_t l = i % s.length, channel = i / s.length;
    parameter = channel % (kMembers * s.channels);
    switch (norm.set) {
      case Set::row:
        set = channel / s.channels, number = channel % s.channels;
        break;
      case Set::group:
        set = channel / 2, number = channel % 2 * s.length + l;
        break;
      case Set::instance:
        set = channel, number = l;
        break;
      case Set::channel:
        set = parameter, number = channel / (kMembers * s.channels) * s.length + l;
        break;
    }
  }
};

/// The signs of Thue and Morse, other ones in every second set: of 2^k neighbours half are
/// negative.
double sign_of(const Place& place) {
  const int bits = std::popcount(static_cast<uint64_t>(place.number));
  return (bits + place.set) % 2 == 0 ? 1 : -1;
}

/// Small whole numbers, 0 among them.
std::vector<double> whole_numbers(int64_t count, int64_t step) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * step % 9 - 4));
  return values;
}

/// What one norm makes of x, whose parameters are small whole numbers.
class Run {
 public:
  Run(const Context& context, const Norm& norm, int64_t count, Dtype dtype)
      : context_(context), norm_(norm), sizes_(norm, count), dtype_(dtype) {}

  bool is_cuda() const { return context_.device().type == DeviceType::cuda; }
  /// x has the value that `of` gives its place.
  template <class Of>
  std::vector<double> values(const Of& of) const {
    std::vector<double> values;
    for (int64_t i = 0; i < sizes_.elements(); ++i) values.push_back(of(Place(norm_, sizes_, i)));
    return values;
  }
  /// How many of y differ from factor * the sign of x * gamma + beta by more than |gamma| *
  /// allowed.
  int64_t wrong(const std::vector<double>& values, float epsilon, double factor,
                const char* strategy, double allowed = 0) const {
    const Shape own{kMembers, sizes_.channels}, shape = sizes_.shape(norm_);
    const std::vector<double> gammas = whole_numbers(num_elements(own), 5),
                              betas = whole_numbers(num_elements(own), 2);
    const Tensor x = upload(context_, dtype_, shape, values),
                 gamma = upload(context_, dtype_, own, gammas),
                 beta = upload(context_, dtype_, own, betas);
    Tensor y(context_, dtype_, shape);
    norm_.run({context_, x, gamma, beta, y, epsilon, strategy});
    const std::vector<double> got = download(context_, y);
    int64_t wrong = 0;
    for (int64_t i = 0; i < sizes_.elements(); ++i) {
      const Place place(norm_, sizes_, i);
      const auto p = static_cast<size_t>(place.parameter);
      const double expected = factor * sign_of(place) * gammas[p] + (norm_.has_beta ? betas[p] : 0);
      const double error = std::fabs(got[static_cast<size_t>(i)] - expected);
      wrong += !(error <= allowed * std::fabs(gammas[p]));
    }
    return wrong;
  }

 private:
  const Context& context_;
  const Norm& norm_;
  Sizes sizes_;
  Dtype dtype_;
};

/// f(run, norm, strategy) for all norms, dtypes and strategies.
template <class F>
void for_each_norm(const std::vector<int64_t>& counts, const F& f) {
  for (const Context& context : test::devices_at_hand()) {
    for (const Norm& norm : kNorms) {
      for (const int64_t count : counts) {
        if (test::wants_small_cases() && count > 8192 && norm.set != Set::row) continue;
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          if (test::wants_small_cases() && count > 1024 && dtype == Dtype::bf16) continue;
          for (const char* strategy : {"sequential", "wide"}) {
            INFO(to_string(context.device()) << " " << norm.name << " of " << count << " "
                                             << dtype_name(dtype) << " " << strategy);
            f(Run(context, norm, count, dtype), norm, strategy);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("norms: what is constant gives beta exactly") {
  for_each_norm(
      {2, 16, 64, 1024, 8192, 32768}, [](const Run& run, const Norm& norm, const char* strategy) {
        if (!norm.is_centred) return;
        for (const double value : {10.0, -100.0}) {
          INFO("constants from " << value << " on");
          const auto x = run.values(
              [&](const Place& place) { return value + static_cast<double>(place.set % 3); });
          CHECK(run.wrong(x, 1e-5f, 0, strategy) == 0);
        }
      });
}

TEST_CASE("norms: what is constant gives beta where sums and 1 / count are rounded, too") {
  for_each_norm(
      {3, 33, 49, 1000, 3001, 8200}, [](const Run& run, const Norm& norm, const char* strategy) {
        if (!norm.is_centred) return;
        for (const double value : {10.0, 0.1, -1000.7}) {
          // Rows on CUDA are multiplied by a rounded 1 / count and scaled before the mean is
          // subtracted: what is left of the constant are roundings of a rounding. Elsewhere nothing
          // is.
          const bool is_left = run.is_cuda() && norm.set == Set::row;
          const double allowed = is_left ? (std::fabs(value) + 2) * 0x1p-40 / std::sqrt(1e-5) : 0;
          INFO("constants from " << value << " on");
          const auto x = run.values(
              [&](const Place& place) { return value + static_cast<double>(place.set % 3); });
          CHECK(run.wrong(x, 1e-5f, 0, strategy, allowed) == 0);
        }
      });
}

TEST_CASE("norms: as many of +1 as of -1 give gamma / sqrt(1 + epsilon) and beta exactly") {
  for_each_norm(
      {16, 64, 1024, 8192, 32768}, [](const Run& run, const Norm& norm, const char* strategy) {
        for (const double offset : {0.0, 100.0}) {
          if (!norm.is_centred && offset != 0) continue;
          const auto x = run.values([&](const Place& place) { return offset + sign_of(place); });
          INFO("around " << offset);
          CHECK(run.wrong(x, 0, 1, strategy) == 0);
          CHECK(run.wrong(x, 3, 0.5, strategy) == 0);
        }
      });
}
