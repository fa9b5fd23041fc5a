// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// chain, and the residual of layernorm and rmsnorm, which are chains, too.
#include "wide/chain.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/norm/chain_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"
#include "wide/layernorm.hpp"
#include "wide/rmsnorm.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::uniform, test::upload;

namespace {

void run(const Context& context, const ChainArguments& arguments, const ChainProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context, make_chain_plan(context, describe_chain(arguments, like), {strategy}),
                 arguments);
}

/// Two rows of three members.
struct Operands {
  Tensor x, bias, residual, gamma, beta, y, sum;

  Operands(const Context& context, Dtype dtype, int64_t d, double offset = 0)
      : x(upload(context, dtype, {2, 3 * d}, uniform(6 * d, -2, 2, 1))),
        bias(upload(context, dtype, {3, d}, uniform(3 * d, -1, 1, 2))),
        residual(upload(context, dtype, {2, 3 * d}, uniform(6 * d, offset - 1, offset + 1, 3))),
        gamma(upload(context, dtype, {3, d}, uniform(3 * d, -1, 1, 4))),
        beta(upload(context, dtype, {3, d}, uniform(3 * d, -1, 1, 5))),
        y(context, dtype, {2, 3 * d}),
        sum(context, dtype, {2, 3 * d}) {}
  ChainArguments arguments(ChainNorm norm) {
    ChainArguments a{x, bias, residual, {}, {}, y, {}};
    if (norm != ChainNorm::none) a.gamma = gamma, a.sum = sum;
    if (norm == ChainNorm::layernorm) a.beta = beta;
    return a;
  }
};

/// Where small cases are wanted, each kernel once, and each norm and activation somewhere.
bool is_wanted(int64_t d, Dtype dtype, ChainNorm norm, Activation activation) {
  if (!test::wants_small_cases()) return d <= 1032 || activation != Activation::silu;
  if (d == 17000)
    return dtype == Dtype::fp16 && norm == ChainNorm::layernorm && activation == Activation::relu;
  if (d != 31 && d != 257 && d != 1032) return false;
  const auto index = static_cast<int64_t>(activation) + static_cast<int64_t>(dtype) + d;
  return index % 3 == static_cast<int64_t>(norm);
}

double worst_ratio(const Context& context, Operands& o, const ChainProblem& p) {
  const auto d = static_cast<size_t>(p.features);
  const auto x = download(context, o.x), residual = download(context, o.residual),
             bias = download(context, o.bias), gamma = download(context, o.gamma),
             beta = download(context, o.beta), y = download(context, o.y);
  std::vector<double> expected(d), tolerance(d);
  double worst = 0;
  for (size_t row = 0; row < 6; ++row) {
    const auto part = [&](const std::vector<double>& from, bool is_there, size_t index) {
      return is_there ? std::span(from).subspan(index * d, d) : std::span<const double>();
    };
    const size_t member = row % 3;
    catalog::chain_reference(
        p,
        {part(x, true, row), part(bias, p.has_bias, member), part(residual, p.has_residual, row),
         part(gamma, p.has_gamma, member), part(beta, p.has_beta, member)},
        expected, tolerance);
    for (size_t i = 0; i < d; ++i) {
      worst = test::worse_ratio(worst, y[row * d + i], expected[i], tolerance[i]);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("chain: a case worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    // Members (-3, 1) + (1, 1), then relu, (0, 2), and (1, 1): (1, 3); the other (0, 0), (7, 7).
    Tensor x = upload(context, Dtype::fp32, {1, 4}, {-3, 1, 0, 0});
    Tensor bias = upload(context, Dtype::fp32, {2, 2}, {1, 1, 0, 0});
    Tensor residual = upload(context, Dtype::fp32, {1, 4}, {1, 1, 7, 7});
    Tensor gamma = upload(context, Dtype::fp32, {2, 2}, {2, 4, 1, 1});
    Tensor beta = upload(context, Dtype::fp32, {2, 2}, {0.5, 0.5, 7, 8});
    Tensor y(context, Dtype::fp32, {1, 4}), sum(context, Dtype::fp32, {1, 4});
    const auto is_near = [&](const Tensor& tensor, const std::vector<double>& want) {
      const std::vector<double> got = download(context, tensor);
      for (size_t i = 0; i < 4; ++i) CHECK(std::fabs(got[i] - want[i]) < 1e-5);
    };
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      ChainProblem like{.activation = Activation::relu, .norm = ChainNorm::layernorm};
      like.epsilon = 0x1p-20f;
      run(context, {x, bias, residual, gamma, beta, y, sum}, like, strategy);
      is_near(y, {-1.5, 4.5, 7, 8});
      is_near(sum, {1, 3, 7, 7});
      like.norm = ChainNorm::none;
      run(context, {x, bias, residual, {}, {}, y, {}}, like, strategy);
      is_near(y, {1, 3, 7, 7});
      like.norm = ChainNorm::rmsnorm;
      run(context, {x, bias, residual, gamma, {}, y, {}}, like, strategy);
      is_near(y, {2 / std::sqrt(5.0), 12 / std::sqrt(5.0), 1, 1});
    }
  }
}

TEST_CASE("chain: every path, norm and activation stays within its bound") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1, 3, 31, 255, 256, 257, 1000, 1032, 8192, 8200, 17000}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        Operands o(context, dtype, d), same(context, dtype, d);
        for (const ChainNorm norm : kAllChainNorms) {
          for (const Activation activation : kAllActivations) {
            if (!is_wanted(d, dtype, norm, activation)) continue;
            const ChainProblem like{.activation = activation, .norm = norm};
            const ChainArguments a = o.arguments(norm);
            const ChainProblem p = describe_chain(a, like);
            INFO(to_string(context.device())
                 << " " << dtype_name(dtype) << " d " << d << " " << chain_norm_name(norm) << " "
                 << activation_name(activation));
            run(context, a, like);
            CHECK(worst_ratio(context, o, p) <= 1);
            run(context, same.arguments(norm), like, "sequential");
            CHECK(download(context, same.y) == download(context, o.y));
          }
        }
      }
    }
  }
}

TEST_CASE("chain: the bound of a smooth activation is of its result, however large") {
  std::vector<double> sum(1), tolerance(1);
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    const ChainProblem p{.activation = activation};
    const std::vector<double> x{1000};
    catalog::chain_reference(p, {x, {}, {}, {}, {}}, sum, tolerance);
    CHECK(sum[0] == 1000);
    CHECK((tolerance[0] > 16 * 1000 * 0x1p-24 && tolerance[0] < 32 * 1000 * 0x1p-24));
  }
}

TEST_CASE("chain: operands that lie differently within 16 bytes give the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {101, 104, 301, 1104}) {
      const ChainProblem like{.norm = ChainNorm::layernorm};
      Operands o(context, Dtype::fp16, d);
      const auto behind = [&](const Tensor& tensor, int64_t elements) {
        std::vector<double> values = download(context, tensor);
        values.insert(values.begin(), static_cast<size_t>(elements), 99);
        return values;
      };
      const auto stored = [&](const Tensor& tensor, int64_t elements) {
        return upload(context, Dtype::fp16, {elements + 6 * d}, behind(tensor, elements));
      };
      const auto view = [&](Tensor& storage, int64_t elements) {
        return TensorView(static_cast<char*>(storage.data()) + 2 * elements, Dtype::fp16,
                          {2, 3 * d}, context.device());
      };
      Tensor x = stored(o.x, 1), residual = stored(o.residual, 6), y = stored(o.x, 3),
             sum = stored(o.x, 4);
      run(context, o.arguments(ChainNorm::layernorm), like);
      run(context,
          {view(x, 1), o.bias, view(residual, 6), o.gamma, o.beta, view(y, 3), view(sum, 4)}, like);
      INFO(to_string(context.device()) << " d " << d);
      CHECK(download(context, y) == behind(o.y, 3));
      CHECK(download(context, sum) == behind(o.sum, 4));
    }
  }
}

TEST_CASE("chain: a fused sum is the stored one, bit for bit, and so is its norm") {
  for (const Context& context : test::devices_at_hand()) {
    const OwnedStream stream(context);
    for (const int64_t d : {7, 300, 1100, 17000}) {
      if (test::wants_small_cases() && d > 300) continue;
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        for (const double offset : {0.0, 300.0}) {
          Operands o(context, dtype, d, offset);
          Tensor again(context, dtype, {2, 3 * d});
          INFO(to_string(context.device()) << " " << dtype_name(dtype) << " d " << d);
          // x + residual, rounded.
          run(context, {o.x, {}, o.residual, {}, {}, again, {}}, {.num_members = 3});
          const LayernormArguments fused{o.x, o.gamma, o.beta, o.y, o.residual, o.sum};
          make_layernorm_plan(context, describe_layernorm(fused), {"wide"})
              .run(fused, {stream.get()});
          context.synchronize(stream.get());
          CHECK(download(context, o.sum) == download(context, again));
          const std::vector<double> want = download(context, o.y);
          const LayernormArguments apart{o.sum, o.gamma, o.beta, again};
          make_layernorm_plan(context, describe_layernorm(apart), {"wide"})
              .run(apart, {stream.get()});
          context.synchronize(stream.get());
          CHECK(download(context, again) == want);
          // The same of rmsnorm, in place: the sum over the residual, y over x.
          const RmsnormArguments plain{o.sum, o.gamma, again};
          make_rmsnorm_plan(context, describe_rmsnorm(plain), {"wide"}).run(plain, {stream.get()});
          const RmsnormArguments in_place{o.x, o.gamma, o.x, o.residual, o.residual};
          make_rmsnorm_plan(context, describe_rmsnorm(in_place), {"wide"})
              .run(in_place, {stream.get()});
          context.synchronize(stream.get());
          CHECK(download(context, o.residual) == download(context, o.sum));
          CHECK(download(context, o.x) == download(context, again));
        }
      }
    }
  }
}

TEST_CASE("chain: strided and misaligned operands give the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t d = 40, stride = 133;
    Operands o(context, Dtype::bf16, d);
    const ChainProblem like{.activation = Activation::gelu, .norm = ChainNorm::layernorm};
    run(context, o.arguments(like.norm), like);
    const auto moved = [&](const Tensor& tensor, int64_t offset) {
      std::vector<double> padded(static_cast<size_t>(2 * stride + offset),
                                 std::numeric_limits<double>::quiet_NaN());
      const std::vector<double> dense = download(context, tensor);
      for (int64_t i = 0; i < 6 * d; ++i) {
        padded[static_cast<size_t>(offset + i / (3 * d) * stride + i % (3 * d))] =
            dense[static_cast<size_t>(i)];
      }
      return upload(context, Dtype::bf16, {static_cast<int64_t>(padded.size())}, padded);
    };
    const auto view = [&](Tensor& storage, int64_t offset) {
      return TensorView(static_cast<std::byte*>(storage.data()) + 2 * offset, Dtype::bf16,
                        {2, 3 * d}, Strides{stride, 1}, context.device());
    };
    Tensor x = moved(o.x, 1), residual = moved(o.residual, 2), y = moved(o.x, 3),
           sum = moved(o.x, 5);
    run(context, {view(x, 1), o.bias, view(residual, 2), o.gamma, o.beta, view(y, 3), view(sum, 5)},
        like);
    const auto got = download(context, y), sums = download(context, sum);
    const auto want = download(context, o.y), stored = download(context, o.sum);
    for (int64_t i = 0; i < 6 * d; ++i) {
      const int64_t at = i / (3 * d) * stride + i % (3 * d);
      CHECK(got[static_cast<size_t>(3 + at)] == want[static_cast<size_t>(i)]);
      CHECK(sums[static_cast<size_t>(5 + at)] == stored[static_cast<size_t>(i)]);
    }
    CHECK((std::isnan(got[2]) && std::isnan(got[3 + 3 * d])));  // the gaps are as they were
  }
}

TEST_CASE("chain: parameters are packed and restored") {
  const Context cpu = Context::cpu();
  ChainProblem p{.num_members = 2, .rows = 1, .features = 3, .norm = ChainNorm::layernorm};
  p.has_bias = p.has_gamma = p.has_beta = true;
  const ChainPlan plan = make_chain_plan(cpu, p);
  std::vector<Tensor> own, back;
  for (uint64_t i = 0; i < 6; ++i) {
    own.push_back(upload(cpu, Dtype::fp32, {3}, uniform(3, 0, 1, i)));
    back.emplace_back(cpu, Dtype::fp32, Shape{3});
  }
  Tensor bias(cpu, Dtype::fp32, {2, 3}), gamma(cpu, Dtype::fp32, {2, 3}),
      beta(cpu, Dtype::fp32, {2, 3});
  const std::vector<ChainMember> members{{own[0], own[1], own[2]}, {own[3], own[4], own[5]}};
  plan.prepare_weights(members, {bias, gamma, beta}, Stream::cpu());
  CHECK(download(cpu, gamma)[4] == download(cpu, own[4])[1]);
  const std::vector<ChainParameters> restored{{back[0], back[1], back[2]},
                                              {back[3], back[4], back[5]}};
  plan.restore_weights({bias, gamma, beta}, restored, Stream::cpu());
  for (size_t i = 0; i < 6; ++i) CHECK(download(cpu, back[i]) == download(cpu, own[i]));
}

TEST_CASE("chain: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6}), y(cpu, Dtype::fp32, {2, 6}), few(cpu, Dtype::fp32, {1, 6}),
      gamma(cpu, Dtype::fp32, {2, 3}), half(cpu, Dtype::fp16, {2, 3}),
      sum(cpu, Dtype::fp32, {2, 6});
  const auto refuses = [&](const ChainArguments& a, const ChainProblem& like, const char* message) {
    CHECK_THROWS_MATCHES(describe_chain(a, like), Error, Message(message));
  };
  const ChainProblem none{.num_members = 2}, layernorm{.norm = ChainNorm::layernorm},
      rmsnorm{.norm = ChainNorm::rmsnorm};
  refuses({x, {}, {}, gamma, {}, y, {}}, none,
          "chain: gamma is present, expected none with norm = none");
  refuses({x, {}, {}, {}, gamma, y, {}}, rmsnorm,
          "chain: beta is present, expected none with norm = rmsnorm");
  refuses({x, {}, {}, {}, {}, y, sum}, none,
          "chain: sum is present, expected none with norm = none");
  refuses({x, {}, few, gamma, {}, y, {}}, layernorm,
          "chain: residual is [1, 6], expected the rows of x = [2, 6]");
  refuses({x, {}, {}, gamma, {}, y, y}, layernorm,
          "chain: sum overlaps y, expected memory of its own");
  refuses({x, {}, {}, gamma, {}, few, {}}, layernorm,
          "chain: y is [1, 6], expected the rows of x = [2, 6]");
  const TensorView shifted(static_cast<float*>(x.data()) + 3, Dtype::fp32, {1, 6}, cpu.device());
  refuses({few, {}, x.view().narrow(0, 0, 1), gamma, {}, shifted, {}}, layernorm,
          "chain: y overlaps residual, expected residual itself or memory of its own");
  refuses({x, half, {}, {}, {}, y, {}}, none, "chain: bias is fp16, expected dtype = fp32");
}
