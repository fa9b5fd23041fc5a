// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp on every device at hand: a case worked out by hand, its layers put together by linear, widths
// around the kernel's strips, weights that stay and that pass by, weights that are packed and
// restored, layouts, the choice of a strategy, and what is refused.
#include "wide/mlp.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_reference.hpp"
#include "host/fused/mlp_strategy.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Message;
using Catch::Matchers::MessageMatches;
using test::download, test::uniform, test::upload;

namespace {

using Reals = std::vector<double>;

/// What runs without cuBLAS.
std::vector<std::string> strategies_for(const Context& context) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide"};
  return {"layerwise", "fused"};
}

template <class F>
void on_every_strategy(const F& f) {
  for (const Context& context : test::devices_at_hand()) {
    for (const std::string& strategy : strategies_for(context)) {
      INFO(to_string(context.device()) << " " << strategy);
      f(context, strategy);
    }
  }
}

void run(const Context& context, const MlpArguments& arguments, const MlpProblem& like,
         const std::string& strategy) {
  test::run_plan(context,
                 make_mlp_plan(context, describe_mlp(arguments, like), {.strategy = strategy}),
                 arguments);
}

int64_t in_of(const MlpProblem& p, size_t layer) {
  return p.widths[layer];
}
int64_t out_of(const MlpProblem& p, size_t layer) {
  return p.widths[layer + 1];
}

/// Members' parameters as a checkpoint has them, and packed.
struct Parameters {
  std::vector<std::vector<Tensor>> tensors;  ///< of each member: weight, bias, weight, ..
  std::vector<MlpMember> members;
  Tensor packed;

  Parameters(const Context& context, const MlpProblem& p, uint64_t seed)
      : packed(context, p.dtype, {p.num_members, mlp_member_elements(p)}) {
    const OwnedStream stream(context);
    for (int64_t n = 0; n < p.num_members; ++n) {
      auto& own = tensors.emplace_back();
      MlpMember& member = members.emplace_back();
      for (size_t l = 0; l + 1 < p.widths.size(); ++l) {
        const int64_t in = in_of(p, l), out = out_of(p, l);
        const double spread = std::sqrt(6.0 / static_cast<double>(in));
        own.push_back(
            upload(context, p.dtype, {out, in}, uniform(out * in, -spread, spread, ++seed)));
        BasicMlpLayer<ConstTensorView> layer{own.back(), {}};
        if (p.has_bias) {
          own.push_back(upload(context, p.dtype, {out}, uniform(out, -0.5, 0.5, ++seed)));
          layer.bias = own.back();
        }
        member.layers.push_back(layer);
      }
    }
    fill_bytes(packed, 0xff, stream.get());
    make_mlp_plan(context, p).prepare_weights(members, packed, stream.get());
    context.synchronize(stream.get());
  }
};

/// Error over tolerance, the worst of all members.
double worst_ratio(const MlpProblem& p, const Reals& x, const Reals& weights, const Reals& y) {
  const auto in = static_cast<size_t>(p.widths.front()), out = static_cast<size_t>(p.widths.back());
  const auto members = static_cast<size_t>(p.num_members);
  const size_t elements = weights.size() / members;
  Reals expected(out), tolerance(out);
  double worst = 0;
  for (size_t i = 0; i < static_cast<size_t>(p.batch) * members; ++i) {
    const size_t row = i / members, n = i % members;
    catalog::judge_mlp_row(p, std::span(x).subspan(p.shared_input ? row * in : i * in, in),
                           std::span(weights).subspan(n * elements, elements),
                           catalog::Fill::uniform, expected, tolerance);
    for (size_t o = 0; o < out; ++o) {
      worst = test::worse_ratio(worst, y[i * out + o], expected[o], tolerance[o]);
    }
  }
  return worst;
}

MlpProblem problem_of(std::vector<int64_t> widths, int64_t members, int64_t batch, Dtype dtype) {
  MlpProblem p;
  p.num_members = members;
  p.batch = batch;
  p.widths = std::move(widths);
  p.dtype = dtype;
  p.has_bias = true;
  return p;
}

void check(const Context& context, const std::string& strategy, const MlpProblem& p) {
  INFO(p.batch << " rows, widths " << p.widths.front() << ".. of " << p.widths.size() - 1
               << " layers, the second " << p.widths[1] << ", " << dtype_name(p.dtype)
               << (p.allow_tf32 ? " as tf32" : "") << ", activation "
               << activation_name(p.activation));
  if (strategy == "fused") {
    const std::string reason =
        mlp_unsupported_reason(MlpStrategy::fused, complete_mlp_problem(p), context.info());
    if (!reason.empty()) {  // the widest of fp32 do not fit everywhere
      CHECK_THAT(reason, ContainsSubstring("bytes of shared memory at the least"));
      CHECK(context.info().shared_bytes_per_block < test::kH200.shared_bytes_per_block);
      return;
    }
  }
  const Parameters parameters(context, p, 7);
  const Shape shape = p.shared_input ? Shape{p.batch, p.widths.front()}
                                     : Shape{p.batch, p.num_members * p.widths.front()};
  Tensor x = upload(context, p.dtype, shape, uniform(num_elements(shape), -1, 1, 3));
  Tensor y(context, p.dtype, {p.batch, p.num_members * p.widths.back()});
  run(context, {x, parameters.packed, y}, p, strategy);
  CHECK(worst_ratio(p, download(context, x), download(context, parameters.packed),
                    download(context, y)) <= 1);
}

}  // namespace

TEST_CASE("mlp: layers, biases and activations are where they should be, by hand") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    // 2-3-1, two members, two rows. Hidden of member 0: x0 + x1, x0 - x1, -x0 - 5; of member 1
    // twice x0, twice x1, 1 each time.
    MlpProblem p = problem_of({2, 3, 1}, 2, 2, Dtype::fp32);
    CHECK(mlp_member_elements(p) == 8 + 8 + 3 * 12 + 12);
    const std::vector<MlpLayerPlace> places = mlp_layer_places(p);
    CHECK((places[1].bias == 8 && places[0].weight == 16 && places[0].row == 12 &&
           places[1].weight == 52));
    Reals weights(2 * 64);
    const auto put = [&](size_t first, const Reals& values) {
      std::copy(values.begin(), values.end(), weights.begin() + static_cast<int64_t>(first));
    };
    put(2, {-5}), put(8, {0.5});
    put(16, {1, 1}), put(28, {1, -1}), put(40, {-1, 0}), put(52, {1, 10, 100});
    put(64 + 2, {1}), put(64 + 8, {-1});
    put(64 + 16, {2, 0}), put(64 + 28, {0, 2}), put(64 + 52, {1, 1, 1});
    Tensor blob = upload(context, Dtype::fp32, {2, 64}, weights);
    Tensor x = upload(context, Dtype::fp32, {2, 4}, {1, 2, 3, 4, -7, 1, -1, 5});
    Tensor y(context, Dtype::fp32, {2, 2});
    run(context, {x, blob, y}, p, strategy);
    // 3, -1, -6 -> 3 + 0.5; 6, 8, 1 -> 15 - 1; -6, -8, 2 -> 200.5; -2, 10, 1 -> 11 - 1.
    CHECK(download(context, y) == Reals{3.5, 14, 200.5, 10});
    p.activation = Activation::none;
    p.last_activation = Activation::relu;
    run(context, {x, blob, y}, p, strategy);
    CHECK(download(context, y) == Reals{0, 14, 114.5, 8});
  });
}

TEST_CASE("mlp: widths around strips, blocks and 32 bytes, all maths, all activations") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    const std::vector<std::vector<int64_t>> widths{
        {1, 1}, {5, 3}, {16, 64, 8}, {17, 65, 63, 9}, {64, 128, 64}, {33, 129, 2}, {130, 250, 193}};
    size_t turn = 0;
    for (const auto& of : widths) {
      // Linear's kernels have tests of their own.
      if (test::wants_small_cases() && strategy == "layerwise" && of.size() != 4) continue;
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        for (const bool allow_tf32 : {false, true}) {
          if (allow_tf32 && dtype != Dtype::fp32) continue;
          // The same code as bf16.
          if (test::wants_small_cases() && dtype == Dtype::fp16 && of.size() != 3) continue;
          MlpProblem p = problem_of(of, 2, 1 + static_cast<int64_t>(turn * 7 % 37), dtype);
          p.allow_tf32 = allow_tf32;
          p.activation = kAllActivations[turn % kAllActivations.size()];
          p.last_activation =
              kAllActivations[turn / kAllActivations.size() % kAllActivations.size()];
          p.has_bias = turn % 3 != 0;
          p.shared_input = turn % 7 == 0;
          ++turn;
          check(context, strategy, p);
        }
      }
    }
  });
}

TEST_CASE("mlp: weights that stay and that pass by, several rounds of rows, many layers") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    if (test::wants_small_cases() && strategy == "layerwise") return;
    for (const auto& [dtype, tf32] :
         {std::pair{Dtype::fp32, false}, {Dtype::fp32, true}, {Dtype::bf16, false}}) {
      const auto check_of = [&](std::vector<int64_t> widths, int64_t members, int64_t batch) {
        MlpProblem p = problem_of(std::move(widths), members, batch, dtype);
        p.allow_tf32 = tf32;
        check(context, strategy, p);
      };
      check_of({20, 256, 200, 9}, 1, 20);            // a ring
      check_of(std::vector<int64_t>(17, 12), 3, 5);  // as many layers as there may be
      // Several rounds of rows: on a device of one multiprocessor, and for so many members on any.
      check_of({24, 40, 9}, 2, 150);
      if (!test::wants_small_cases()) check_of({3, 8, 2}, 300, 130);
    }
  });
}

TEST_CASE("mlp: the kernel's layout follows from the problem and the device alone") {
  const DeviceInfo &h200 = test::kH200, &a100 = test::kA100;
  const auto shape = [](const MlpProblem& p, const DeviceInfo& device) {
    return choose_mlp_fused_shape(complete_mlp_problem(p), device);
  };
  const MlpProblem small = problem_of({64, 128, 64}, 100, 32, Dtype::bf16);
  CHECK(shape(small, h200).slots == 0);
  CHECK(shape(small, h200).warps == 4);
  CHECK(shape(small, h200).blocks_per_member == 1);
  MlpProblem tall = small;
  tall.batch = 4096;
  CHECK(shape(tall, h200).warps == 8);
  CHECK(shape(tall, h200).blocks_per_member == 1);  // two would take two turns on 132
  tall.num_members = 40;
  CHECK(shape(tall, h200).blocks_per_member == 3);
  tall.num_members = 1;
  CHECK(shape(tall, h200).blocks_per_member == 32);  // no more than there are rows for
  MlpProblem wide_ones = small;
  wide_ones.widths = {256, 256, 256};
  CHECK(shape(wide_ones, h200).slots == 4);
  wide_ones.dtype = Dtype::fp32;
  CHECK(shape(wide_ones, h200).slots == 2);
  CHECK(shape(wide_ones, a100).warps == 1);
  for (const DeviceInfo& device : {h200, a100}) {
    CHECK(shape(wide_ones, device).shared_bytes <= device.shared_bytes_per_block);
  }
}

TEST_CASE("mlp: auto takes what is verified and runs, and says why not the others") {
  const DeviceInfo& h200 = test::kH200;
  const VerifiedStrategy both[] = {{"mlp", "fused", 90}, {"mlp", "layerwise", 90}};
  const auto choose = [&](const MlpProblem& p, std::span<const VerifiedStrategy> verified) {
    return choose_mlp_strategy(complete_mlp_problem(p), h200, "auto", verified);
  };
  MlpProblem p = problem_of({64, 128, 64}, 100, 32, Dtype::bf16);
  CHECK(choose(p, both).strategy == MlpStrategy::fused);
  CHECK(choose(p, std::span(both).subspan(1)).strategy == MlpStrategy::layerwise);
  CHECK_THAT(choose(p, std::span(both).subspan(1)).explain,
             ContainsSubstring("; fused: unverified on compute capability 90"));
  CHECK(choose(p, {}).strategy == MlpStrategy::cublas_batched);
  p.widths = {64, 512, 64};
  CHECK(choose(p, both).strategy == MlpStrategy::layerwise);
  CHECK_THAT(choose(p, both).explain,
             ContainsSubstring("fused: it takes widths up to 256, widths is 64-512-64"));
}

TEST_CASE("mlp: fused refuses by name what does not fit") {
  const auto refusal = [](const MlpProblem& p, const DeviceInfo& device) {
    return mlp_unsupported_reason(MlpStrategy::fused, complete_mlp_problem(p), device);
  };
  MlpProblem p = problem_of(std::vector<int64_t>(18, 8), 1, 4, Dtype::bf16);
  CHECK(refusal(p, test::kH200) == "it takes up to 16 layers, there are 17");
  p.widths = {257, 8};
  CHECK(refusal(p, test::kH200) == "it takes widths up to 256, widths is 257-8");
  DeviceInfo old = test::kA100;
  old.compute_capability = 75;
  CHECK_THAT(refusal(p, old), ContainsSubstring("compute capability 8.0 and later"));
  DeviceInfo tight = test::kA100;
  tight.shared_bytes_per_block = 99 * 1024;
  p = problem_of({256, 256}, 1, 4, Dtype::fp32);
  CHECK_THAT(refusal(p, tight), ContainsSubstring("bytes of shared memory at the least"));
  CHECK(mlp_unsupported_reason(MlpStrategy::fused, complete_mlp_problem(p),
                               Context::cpu().info()) == "it runs on CUDA devices only");
}

TEST_CASE("mlp: padded members, strided rows and unaligned ones change no bit") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    const MlpProblem p = problem_of({5, 70, 6}, 3, 9, Dtype::bf16);
    const Parameters parameters(context, p, 11);
    const int64_t elements = mlp_member_elements(p), padded = elements + 24;
    Tensor x = upload(context, p.dtype, {9, 15}, uniform(135, -1, 1, 3));
    Tensor y(context, p.dtype, {9, 18});
    run(context, {x, parameters.packed, y}, p, strategy);

    const Reals rows = download(context, x), weights = download(context, parameters.packed);
    Reals x_padded(9 * 21 + 1), weights_padded(static_cast<size_t>(3 * padded));
    for (size_t i = 0; i < 135; ++i) x_padded[1 + i / 15 * 21 + i % 15] = rows[i];
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto run_length = static_cast<size_t>(elements);
      weights_padded[i / run_length * static_cast<size_t>(padded) + i % run_length] = weights[i];
    }
    Tensor x_storage = upload(context, p.dtype, {9 * 21 + 1}, x_padded);
    const Tensor weights_storage = upload(context, p.dtype, {3, padded}, weights_padded);
    Tensor y_storage(context, p.dtype, {9 * 3 * 7 + 1});
    const TensorView x_view(static_cast<char*>(x_storage.data()) + 2, p.dtype, {9, 3, 5},
                            Strides{21, 5, 1}, context.device());
    const TensorView y_view(static_cast<char*>(y_storage.data()) + 2, p.dtype, {9, 3, 6},
                            Strides{21, 7, 1}, context.device());
    run(context, {x_view, weights_storage.view().narrow(1, 0, elements), y_view}, p, strategy);
    const Reals packed = download(context, y), strided = download(context, y_storage);
    int different = 0;
    for (size_t i = 0; i < packed.size(); ++i) {
      different += packed[i] == strided[1 + i / 18 * 21 + i / 6 % 3 * 7 + i % 6] ? 0 : 1;
    }
    CHECK(different == 0);
  });
}

TEST_CASE("mlp: preparing weights leaves what lies between members alone") {
  for (const Context& context : test::devices_at_hand()) {
    const OwnedStream stream(context);
    const MlpProblem p = problem_of({5, 3, 17}, 3, 1, Dtype::fp16);
    const Parameters parameters(context, p, 5);
    const auto elements = static_cast<size_t>(mlp_member_elements(p)), padded = elements + 24;
    Tensor storage(context, p.dtype, {3, static_cast<int64_t>(padded)});
    fill_bytes(storage, 0x3c, stream.get());
    context.synchronize(stream.get());
    const Reals before = download(context, storage);
    make_mlp_plan(context, p)
        .prepare_weights(parameters.members, storage.view().narrow(1, 0, mlp_member_elements(p)),
                         stream.get());
    context.synchronize(stream.get());
    const Reals after = download(context, storage), weights = download(context, parameters.packed);
    int different = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      const size_t n = i / padded, at = i % padded;
      different += after[i] == (at < elements ? weights[n * elements + at] : before[i]) ? 0 : 1;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("mlp: prepared weights have zeros between, and come back bit for bit") {
  for (const Context& context : test::devices_at_hand()) {
    const OwnedStream stream(context);
    const MlpProblem p = problem_of({5, 3, 17}, 2, 1, Dtype::fp16);
    const Parameters parameters(context, p, 5);
    const MlpPlan plan = make_mlp_plan(context, p);
    const Reals packed = download(context, parameters.packed);
    Reals expected(packed.size());
    const auto elements = static_cast<size_t>(mlp_member_elements(p));
    const std::vector<MlpLayerPlace> places = mlp_layer_places(p);
    for (size_t n = 0; n < 2; ++n) {
      for (size_t l = 0; l < 2; ++l) {
        const Reals weight = download(context, parameters.tensors[n][2 * l]);
        const Reals bias = download(context, parameters.tensors[n][2 * l + 1]);
        const auto in = static_cast<size_t>(in_of(p, l));
        for (size_t i = 0; i < weight.size(); ++i) {
          expected[n * elements + static_cast<size_t>(places[l].weight) +
                   i / in * static_cast<size_t>(places[l].row) + i % in] = weight[i];
        }
        for (size_t o = 0; o < bias.size(); ++o) {
          expected[n * elements + static_cast<size_t>(places[l].bias) + o] = bias[o];
        }
      }
    }
    CHECK(packed == expected);

    std::vector<std::vector<Tensor>> restored(2);
    std::vector<BasicMlpMember<TensorView>> members(2);
    for (size_t n = 0; n < 2; ++n) {
      for (const Tensor& own : parameters.tensors[n]) {
        restored[n].emplace_back(context, p.dtype, own.shape());
      }
      for (size_t l = 0; l < 2; ++l) {
        members[n].layers.push_back({restored[n][2 * l], restored[n][2 * l + 1]});
      }
    }
    plan.restore_weights(parameters.packed, members, stream.get());
    context.synchronize(stream.get());
    for (size_t n = 0; n < 2; ++n) {
      for (size_t i = 0; i < 4; ++i) {
        CHECK(download(context, restored[n][i]) == download(context, parameters.tensors[n][i]));
      }
    }
    members[1].layers.pop_back();
    CHECK_THROWS_MATCHES(plan.restore_weights(parameters.packed, members, stream.get()), Error,
                         Message("mlp: layers of member 1 has 1 entry, expected 2: widths is "
                                 "5-3-17"));
  }
}

TEST_CASE("mlp: bad problems and operands are refused, each with its message") {
  const Context context = Context::cpu();
  const auto refuses = [&](const MlpProblem& p, const std::string& message) {
    CHECK_THROWS_MATCHES(make_mlp_plan(context, p), Error, Message(message));
  };
  MlpProblem p = problem_of({4, 3}, 2, 2, Dtype::fp32);
  MlpProblem bad = p;
  bad.widths = {4};
  refuses(bad, "mlp: widths has 1 entry, expected in and out at least: 2");
  bad.widths = {4, 0, 3};
  refuses(bad, "mlp: widths[1] is 0, expected >= 1");
  bad = p, bad.batch = -1;
  refuses(bad, "mlp: batch is -1, expected >= 0");
  bad = p, bad.dtype = Dtype::fp8_e4m3;
  refuses(bad, "mlp: dtype is fp8_e4m3, expected fp32, fp16 or bf16");
  bad = p, bad.weights_member_stride = 45;
  refuses(bad, "mlp: weights has member stride 45, expected a multiple of 4, at least 44");
  bad = p, bad.widths = {int64_t{1} << 62, int64_t{1} << 62};
  CHECK_THROWS_AS(make_mlp_plan(context, bad), Error);
  constexpr int64_t kHalf = int64_t{1} << 30;  // two layers' results are 2^63 bytes together
  bad = MlpProblem{.num_members = 1, .batch = kHalf, .widths = {1, kHalf, kHalf, 1}};
  CHECK_THROWS_MATCHES(make_mlp_plan(context, bad), Error,
                       MessageMatches(ContainsSubstring("do not fit in 64 bits together")));

  Tensor x(context, Dtype::fp32, {2, 8}), weights(context, Dtype::fp32, {2, 44}),
      y(context, Dtype::fp32, {2, 6}), odd(context, Dtype::fp32, {2 * 44 + 1}),
      halves(context, Dtype::fp16, {2, 44});
  const auto refuses_operands = [&](const MlpArguments& arguments, const std::string& message) {
    CHECK_THROWS_MATCHES(describe_mlp(arguments, p), Error,
                         MessageMatches(ContainsSubstring(message)));
  };
  CHECK(describe_mlp({x, weights, y}, p) == complete_mlp_problem(p));
  refuses_operands({x, {}, y}, "weights is absent, expected [num_members, elements]");
  refuses_operands({x, halves, y}, "weights is fp16, expected dtype = fp32");
  refuses_operands({x, x, y}, "weights is [2, 8], expected [num_members, elements] of widths 4-3");
  refuses_operands({weights, weights, y}, "x is [2, 44], expected [.., num_members * features]");
  refuses_operands({x, weights, {}}, "y is absent");
  const ConstTensorView shifted(static_cast<const char*>(odd.data()) + 4, Dtype::fp32, {2, 44},
                                context.device());
  refuses_operands({x, shifted, y}, "weights is aligned to 4 bytes, expected 16");
  const TensorView over_x(x.data(), Dtype::fp32, {2, 6}, context.device());
  refuses_operands({x, weights, over_x}, "y overlaps x");

  const MlpPlan plan = make_mlp_plan(context, p);
  Tensor more_x(context, Dtype::fp32, {3, 8}), more_y(context, Dtype::fp32, {3, 6});
  CHECK_THROWS_MATCHES(plan.run({more_x, weights, more_y}, {Stream::cpu()}), Error,
                       Message("mlp: the operands' batch is 3, expected the plan's = 2"));
  CHECK_THROWS_MATCHES(plan.prepare_weights({}, weights, Stream::cpu()), Error,
                       Message("mlp: members has 0 entries, expected num_members = 2"));
}
