// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every way to misuse linear, with the message that it gets.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <vector>

#include "verify/support/refusals.hpp"
#include "wide/wide.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Two members, three rows, four inputs, five outputs, all packed on the CPU.
struct Operands {
  std::vector<float> x = std::vector<float>(64), weight = std::vector<float>(64),
                     bias = std::vector<float>(64), y = std::vector<float>(64);
  LinearArguments arguments{
      ConstTensorView(x.data(), Dtype::fp32, {3, 8}, Device{}),
      ConstTensorView(weight.data(), Dtype::fp32, {2, 5, 4}, Device{}),
      ConstTensorView(bias.data(), Dtype::fp32, {2, 5}, Device{}),
      TensorView(y.data(), Dtype::fp32, {3, 10}, Device{}),
  };
  std::string describe(const LinearProblem& like = {}) const {
    return refusal_of([&] { (void)describe_linear(arguments, like); });
  }
};

TEST_CASE("describe_linear reads the problem off the operands") {
  const Operands operands;
  LinearProblem like;
  like.allow_tf32 = true;
  like.epilogue.activation = Activation::gelu;
  const LinearProblem problem = describe_linear(operands.arguments, like);
  CHECK(problem.num_members == 2);
  CHECK(problem.batch == 3);
  CHECK(problem.in_features == 4);
  CHECK(problem.out_features == 5);
  CHECK(problem.epilogue == Epilogue{true, Activation::gelu});
  CHECK(problem.allow_tf32);
  CHECK(problem.x == RowStrides{8, 4});
  CHECK(problem.weight == RowStrides{4, 20});
  CHECK(problem.bias_member_stride == 5);
  CHECK(problem.y == RowStrides{10, 5});
}

TEST_CASE("describe_linear names the wrong shape") {
  Operands o;
  const auto view = [&](const Shape& shape) {
    return ConstTensorView(o.x.data(), Dtype::fp32, shape, Device{});
  };
  SECTION("x has no member of that size") {
    o.arguments.x = view({3, 9});
    CHECK_THAT(o.describe(), ContainsSubstring("linear: x is [3, 9], expected") &&
                                 ContainsSubstring("= [.., 8]"));
  }
  SECTION("x of rank 1") {
    o.arguments.x = view({8});
    CHECK(o.describe() == "linear: x is [8], expected [B, N*in], [B, T, N*in] or [B, N, in]");
  }
  SECTION("x of rank 4") {
    o.arguments.x = view({1, 1, 3, 8});
    CHECK_THAT(o.describe(), ContainsSubstring("x is [1, 1, 3, 8], expected [B, N*in]"));
  }
  SECTION("x absent") {
    o.arguments.x = {};
    CHECK_THAT(o.describe(), ContainsSubstring("x is absent, expected [B, N*in]"));
  }
  SECTION("shared x is as wide as one member") {
    LinearProblem like;
    like.shared_input = true;
    CHECK_THAT(o.describe(like),
               ContainsSubstring("x is [3, 8], expected") && ContainsSubstring("= [.., 4]"));
  }
  SECTION("weight of rank 2") {
    o.arguments.weight = view({5, 4});
    CHECK(o.describe() == "linear: weight is [5, 4], expected [num_members, out, in]");
  }
  SECTION("weight of no member") {
    o.arguments.weight = view({0, 5, 4});
    CHECK(o.describe() == "linear: weight is [0, 5, 4], expected num_members >= 1 in front");
  }
  SECTION("bias of other members") {
    o.arguments.bias = view({3, 5});
    CHECK(o.describe() == "linear: bias is [3, 5], expected [num_members, out] = [2, 5]");
  }
  SECTION("y of other outputs") {
    o.arguments.y = TensorView(o.y.data(), Dtype::fp32, {3, 8}, Device{});
    CHECK_THAT(o.describe(), ContainsSubstring("linear: y is [3, 8], expected") &&
                                 ContainsSubstring("= [.., 10]"));
  }
  SECTION("y of other rows") {
    o.arguments.y = TensorView(o.y.data(), Dtype::fp32, {2, 10}, Device{});
    CHECK(o.describe() == "linear: y is [2, 10] with 2 rows per member, expected x's rows = 3");
  }
  SECTION("y absent") {
    o.arguments.y = {};
    CHECK_THAT(o.describe(), ContainsSubstring("y is absent"));
  }
}

TEST_CASE("describe_linear names the wrong dtype or device") {
  Operands o;
  SECTION("weight differs from x") {
    o.arguments.weight.dtype = Dtype::bf16;
    CHECK(o.describe() == "linear: weight is bf16, expected dtype = fp32");
  }
  SECTION("bias differs from x") {
    o.arguments.bias.dtype = Dtype::fp16;
    CHECK(o.describe() == "linear: bias is fp16, expected dtype = fp32");
  }
  SECTION("y differs from x") {
    o.arguments.y.dtype = Dtype::fp16;
    CHECK(o.describe() == "linear: y is fp16, expected dtype = fp32");
  }
  SECTION("all of a dtype that linear does not know") {
    o.arguments.x.dtype = o.arguments.weight.dtype = Dtype::int32;
    o.arguments.bias.dtype = o.arguments.y.dtype = Dtype::int32;
    CHECK(o.describe() ==
          "linear: dtype is int32, expected fp32, fp16, bf16, fp8_e4m3 or fp8_e5m2");
  }
  SECTION("weight elsewhere") {
    o.arguments.weight.device = {DeviceType::cuda, 0};
    CHECK(o.describe() == "linear: weight is on cuda:0, expected the plan's device = cpu");
  }
  SECTION("null where elements are expected") {
    o.arguments.bias.data = nullptr;
    CHECK_THAT(o.describe(), ContainsSubstring("linear: bias is a null pointer"));
  }
  SECTION("an address between two elements") {
    o.arguments.x.data = reinterpret_cast<const char*>(o.x.data()) + 2;
    CHECK_THAT(o.describe(), ContainsSubstring("linear: x is aligned to 2 bytes"));
  }
}

TEST_CASE("describe_linear names the wrong strides") {
  Operands o;
  SECTION("features of x apart") {
    o.arguments.x = ConstTensorView(o.x.data(), Dtype::fp32, {3, 8}, Strides{16, 2}, Device{});
    CHECK_THAT(o.describe(),
               ContainsSubstring("x has strides [16, 2], expected the last axis contiguous"));
  }
  SECTION("inputs of the weight apart") {
    o.arguments.weight =
        ConstTensorView(o.weight.data(), Dtype::fp32, {2, 5, 4}, Strides{20, 1, 5}, Device{});
    CHECK_THAT(o.describe(), ContainsSubstring("weight has strides [20, 1, 5]"));
  }
  SECTION("all outputs of the weight at one place") {
    o.arguments.weight =
        ConstTensorView(o.weight.data(), Dtype::fp32, {2, 5, 4}, Strides{0, 0, 1}, Device{});
    CHECK_THAT(o.describe(), ContainsSubstring("do not all start at one place"));
  }
  SECTION("one bias for all members") {
    o.arguments.bias = ConstTensorView(o.bias.data(), Dtype::fp32, {2, 5}, Strides{0, 1}, Device{});
    CHECK_THAT(o.describe(), ContainsSubstring("one vector per member"));
  }
  SECTION("outputs over each other") {
    o.arguments.y = TensorView(o.y.data(), Dtype::fp32, {3, 2, 5}, Strides{10, 4, 1}, Device{});
    CHECK(o.describe() ==
          "linear: y of [3, 2, 5] has strides {row 10, member 4}, expected elements that do not "
          "overlap each other");
  }
  SECTION("rows of y that do not fold") {
    o.arguments.x = ConstTensorView(o.x.data(), Dtype::fp32, {2, 2, 8}, Device{});
    o.arguments.y = TensorView(o.y.data(), Dtype::fp32, {2, 2, 10}, Strides{30, 10, 1}, Device{});
    CHECK_THAT(o.describe(), ContainsSubstring("y has shape [2, 2, 10]"));
  }
}

TEST_CASE("describe_linear reads blobs of quantised weights, and names what is wrong with them") {
  Operands o;
  LinearProblem like{.in_features = 4, .out_features = 5};
  like.weight_format = WeightFormat::int8;
  const int64_t bytes = linear_member_bytes(like);
  CHECK(bytes == 32 + 1024);
  alignas(16) static uint8_t blobs[4096];
  const auto view = [&](const Shape& shape, int64_t skip = 0) {
    return ConstTensorView(blobs + skip, Dtype::uint8, shape, Device{});
  };
  o.arguments.weight = view({2, bytes});
  const LinearProblem problem = describe_linear(o.arguments, like);
  CHECK((problem.num_members == 2 && problem.in_features == 4 && problem.out_features == 5));
  CHECK((problem.weight_format == WeightFormat::int8 && problem.group_size == 128));
  CHECK(problem.weight == RowStrides{bytes, bytes});
  SECTION("a blob too short") {
    o.arguments.weight = view({2, bytes - 1});
    CHECK(o.describe(like) ==
          "linear: weight is [2, 1055], expected [num_members, member_bytes] = [2, 1056]");
  }
  SECTION("a packed weight") {
    o.arguments.weight = view({2, 5, 4});
    CHECK(o.describe(like) == "linear: weight is [2, 5, 4], expected [num_members, member_bytes]");
  }
  SECTION("bytes that are called something else") {
    o.arguments.weight.dtype = Dtype::fp8_e4m3;
    CHECK(o.describe(like) == "linear: weight is fp8_e4m3, expected dtype = uint8");
  }
  SECTION("an odd address") {
    o.arguments.weight = view({2, bytes}, 8);
    CHECK(o.describe(like) == "linear: weight is aligned to 8 bytes, expected 16: quantised");
  }
  SECTION("an odd member stride") {
    o.arguments.weight =
        ConstTensorView(blobs, Dtype::uint8, {2, bytes}, Strides{bytes + 8, 1}, Device{});
    CHECK(o.describe(like) ==
          "linear: weight has member stride 1064 bytes, expected a multiple of 16, at least 1056");
  }
  SECTION("one blob for all members") {
    o.arguments.weight = ConstTensorView(blobs, Dtype::uint8, {2, bytes}, Strides{0, 1}, Device{});
    CHECK_THAT(o.describe(like), ContainsSubstring("weight has strides [0, 1], expected rows"));
  }
  SECTION("a group of another size") {
    like.group_size = 48;
    CHECK_THAT(o.describe(like), ContainsSubstring("group_size is 48, expected 64 or 128"));
  }
  SECTION("another in") {
    like.in_features = 200;
    CHECK_THAT(o.describe(like), ContainsSubstring("= [2, 4160]"));
  }
}

TEST_CASE("describe_linear refuses an output that overlaps an input") {
  Operands o;
  SECTION("x") {
    o.arguments.x = ConstTensorView(o.y.data() + 29, Dtype::fp32, {3, 8}, Device{});
    CHECK(o.describe() == "linear: y overlaps x, expected memory of its own");
  }
  SECTION("weight") {
    o.arguments.weight = ConstTensorView(o.y.data(), Dtype::fp32, {2, 5, 4}, Device{});
    CHECK(o.describe() == "linear: y overlaps weight, expected memory of its own");
  }
  SECTION("bias") {
    o.arguments.bias = ConstTensorView(o.y.data() + 4, Dtype::fp32, {2, 5}, Device{});
    CHECK(o.describe() == "linear: y overlaps bias, expected memory of its own");
  }
}

TEST_CASE("describe_linear: scale and residual") {
  Operands o;
  LinearProblem like;
  const Context context = Context::cpu();
  const LinearProblem plain = describe_linear(o.arguments);
  const int64_t n = plain.num_members, out = plain.out_features, batch = plain.batch;
  const Tensor factors(context, Dtype::fp32, {n, out}), one_each(context, Dtype::fp32, {n, 1});
  const Tensor residual(context, plain.dtype, {batch, n * out});
  const auto message = [&] {
    return refusal_of([&] { (void)describe_linear(o.arguments, like); });
  };
  SECTION("what they are is read off") {
    o.arguments.scale = factors.view();
    o.arguments.residual = residual.view();
    like.epilogue.residual = Residual::before_activation;
    like.epilogue.alpha = 3;
    const LinearProblem problem = describe_linear(o.arguments, like);
    CHECK(problem.epilogue.scale == OutputScale::per_output);
    CHECK(problem.scale_member_stride == out);
    CHECK(problem.epilogue.residual == Residual::before_activation);
    CHECK(problem.residual == RowStrides{n * out, out});
    CHECK(problem.epilogue.alpha == 3);
    o.arguments.scale = one_each.view();
    CHECK(describe_linear(o.arguments, like).epilogue.scale == OutputScale::per_member);
  }
  SECTION("the residual may be y itself, and nothing else that overlaps it") {
    like.epilogue.residual = Residual::after_activation;
    o.arguments.residual = o.arguments.y;
    CHECK(describe_linear(o.arguments, like).epilogue.residual == Residual::after_activation);
    Tensor joint(context, plain.dtype, {batch + 1, n * out});
    o.arguments.y = TensorView(joint.data(), plain.dtype, {batch, n * out}, context.device());
    void* next = static_cast<std::byte*>(joint.data()) + n * out * dtype_bytes(plain.dtype);
    o.arguments.residual = TensorView(next, plain.dtype, {batch, n * out}, context.device());
    CHECK(message() == "linear: y overlaps residual, expected memory of its own");
  }
  SECTION("a residual that nobody placed") {
    o.arguments.residual = residual.view();
    CHECK_THAT(message(), ContainsSubstring("does not say where it is added"));
  }
  SECTION("a residual that is missing") {
    like.epilogue.residual = Residual::before_activation;
    CHECK(message() == "linear: residual is absent, expected one: the problem adds it");
  }
  SECTION("a residual of other rows") {
    like.epilogue.residual = Residual::after_activation;
    const Tensor longer(context, plain.dtype, {batch + 1, n * out});
    o.arguments.residual = longer.view();
    CHECK_THAT(message(), ContainsSubstring("linear: residual is ["));
  }
  SECTION("scale of another dtype") {
    const Tensor halves(context, Dtype::fp16, {n, out});
    o.arguments.scale = halves.view();
    CHECK(message() == "linear: scale is fp16, expected dtype = fp32");
  }
  SECTION("scale of another shape") {
    const Tensor wrong(context, Dtype::fp32, {n, out + 1});
    o.arguments.scale = wrong.view();
    CHECK_THAT(message(), ContainsSubstring("[num_members, 1] or [num_members, out]"));
  }
}

TEST_CASE("make_linear_plan refuses impossible problems") {
  const Context context = Context::cpu();
  LinearProblem problem;
  problem.batch = problem.in_features = problem.out_features = 4;
  problem.num_members = 2;
  PlanOptions options;
  ErrorCode code = ErrorCode::invalid_argument;
  std::string expected;
  SECTION("no member") {
    problem.num_members = 0;
    expected = "linear: num_members is 0, expected >= 1";
  }
  SECTION("negative batch") {
    problem.batch = -1;
    expected = "linear: batch is -1, expected >= 0";
  }
  SECTION("negative in") {
    problem.in_features = -4;
    expected = "linear: in_features is -4, expected >= 0";
  }
  SECTION("negative out") {
    problem.out_features = INT64_MIN;
    expected = "linear: out_features is -9223372036854775808, expected >= 0";
  }
  SECTION("dtype") {
    problem.dtype = Dtype::int32;
    expected = "linear: dtype is int32, expected fp32, fp16, bf16, fp8_e4m3 or fp8_e5m2";
  }
  SECTION("fp8 that nobody says what becomes of") {
    problem.dtype = Dtype::fp8_e4m3;
    expected = "linear: y_dtype is fp8_e4m3, expected fp16 or bf16 for x of fp8";
  }
  SECTION("an output of another dtype") {
    problem.y_dtype = Dtype::fp16;
    expected = "linear: y_dtype is fp16, expected x's = fp32";
  }
  SECTION("groups of 48") {
    problem.weight_format = WeightFormat::int4;
    problem.group_size = 48;
    expected = "linear: group_size is 48, expected 64 or 128";
  }
  SECTION("blobs over each other") {
    problem.weight_format = WeightFormat::int4;
    problem.weight.member = 32;
    expected = "linear: weight has member stride 32 bytes, expected a multiple of 16, at least 544";
  }
  SECTION("a weight beyond 64 bits") {
    problem.out_features = problem.in_features = int64_t{1} << 32;
    expected = "64";
  }
  SECTION("a weight beyond 64 bits behind an empty batch") {
    problem.batch = 0;
    problem.out_features = problem.in_features = int64_t{1} << 32;
    expected = "64";
  }
  SECTION("an extent beyond 64 bits") {
    problem.x = {INT64_MAX / 2, 4};
    expected = "linear: x of [4, 2, 4] with strides";
  }
  SECTION("negative stride") {
    problem.y = {8, -4};
    expected = "linear: y has strides {row 8, member -4}, expected none below 0";
  }
  SECTION("overlapping y") {
    problem.y = {4, 4};
    expected = "do not overlap each other";
  }
  SECTION("shared x with a member stride") {
    problem.shared_input = true;
    problem.x = {4, 16};
    expected = "linear: x has member stride 16, expected 0: shared_input";
  }
  SECTION("a factor that is none") {
    problem.epilogue.alpha = std::numeric_limits<float>::infinity();
    expected = "linear: alpha is inf, expected a finite factor";
  }
  SECTION("a strategy that nobody knows") {
    options.strategy = "wde";
    expected = "linear: strategy is \"wde\", did you mean wide";
  }
  SECTION("a strategy of another device") {
    options.strategy = "simt";
    code = ErrorCode::unsupported;
    expected =
        "linear: strategy is \"simt\", which runs on CUDA devices only, expected one of auto";
  }
  CHECK_THAT(message_of(code, [&] { (void)make_linear_plan(context, problem, options); }),
             ContainsSubstring(expected));
}

TEST_CASE("LinearPlan::run names the first difference from its problem") {
  const Context context = Context::cpu();
  Operands o;
  LinearProblem problem = describe_linear(o.arguments);
  const auto message = [&] {
    const LinearPlan plan = make_linear_plan(context, problem);
    return refusal_of([&] { plan.run(o.arguments, {Stream::cpu()}); });
  };
  SECTION("batch") {
    problem.batch = 2;
    CHECK(message() == "linear: x is [3, 8] with 3 rows, expected the plan's batch = 2");
  }
  SECTION("weight of other features") {
    o.arguments.weight = {o.arguments.weight.data, Dtype::fp32, {2, 5, 3}, Device{}};
    CHECK(message() == "linear: weight is [2, 5, 3], expected [num_members, out, in] = [2, 5, 4]");
  }
  SECTION("bias missing") {
    o.arguments.bias = {};
    CHECK_THAT(message(), ContainsSubstring("linear: bias is absent, expected"));
  }
  SECTION("bias too many") {
    problem.epilogue.has_bias = false;
    problem.bias_member_stride = 0;
    CHECK_THAT(message(), ContainsSubstring("linear: bias is present, expected none"));
  }
  SECTION("strides") {
    problem.x = {4, 12};
    CHECK(message() ==
          "linear: the operands' stride of x is {row 8, member 4}, expected the plan's = {row 4, "
          "member 12}");
  }
  SECTION("device") {
    o.arguments.x.device = {DeviceType::cuda, 0};
    CHECK_THAT(message(), ContainsSubstring("linear: x is on cuda:0, expected"));
  }
}

}  // namespace
}  // namespace wide::test
