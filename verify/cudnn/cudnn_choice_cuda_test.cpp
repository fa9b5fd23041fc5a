// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What plans do with cuDNN from the choice to the call: "auto" takes it where our kernels are
// unverified, and stands in for it where operands are none of its own; by name it is cuDNN or an
// error. On the simulated GPU, as an A100 for want of evidence, with cuDNN's real plans for an
// H200; this program has the entry point that would start a kernel itself, and counts.
#include <cudnn_graph.h>
#include <cudnn_ops.h>
#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>

#include "host/attention/flash_attention_cudnn.hpp"
#include "host/core/verified.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/simulation.hpp"
#include "verify/support/tensors.hpp"
#include "wide/batchnorm.hpp"
#include "wide/conv.hpp"
#include "wide/error.hpp"
#include "wide/flash_attention.hpp"
#include "wide/groupnorm.hpp"
#include "wide/layernorm.hpp"
#include "wide/pooling.hpp"
#include "wide/softmax.hpp"

namespace {

int calls_of_cudnn = 0;

}  // namespace

extern "C" {
/// The library's own, but that the device at hand is an H200.
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  static const auto real = reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(
      dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  if (name != CUDNN_ATTR_DEVICEPROP_DEVICE_ID) return real(descriptor, name, type, count, values);
  const std::string& h200 = wide::test::kCudnnH200.properties;
  return real(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              static_cast<int64_t>(h200.size()), h200.data());
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = nullptr;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t,
                                  const void*, cudnnTensorDescriptor_t, const void*, const void*,
                                  cudnnTensorDescriptor_t, void*) {
  ++calls_of_cudnn;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t) {
  ++calls_of_cudnn;
  return CUDNN_STATUS_SUCCESS;
}
}

namespace wide::test {

namespace {

constexpr int64_t kGap = 4;  // elements in front of what is not aligned

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The simulated device, and all that a call needs.
struct Machine {
  Machine() : context(require_cuda()), stream(context) {}
  template <class Plan, class Arguments>
  void run(const Plan& plan, const Arguments& arguments) {
    Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
    calls_of_cudnn = 0;
    plan.run(arguments, {stream.get(), {scratch.data(), scratch.bytes()}, &handles});
    context.synchronize(stream.get());
  }
  template <class Plan, class Arguments>
  std::string refusal(const Plan& plan, const Arguments& arguments) {
    return message_of(ErrorCode::unsupported, [&] { run(plan, arguments); });
  }

  Context context;
  OwnedStream stream;
  int engine = 0;  // stands for a library's handle: nobody looks into it
  VendorHandles handles = VendorHandles::borrow(nullptr, &engine);
};

/// Values on a device, with room to begin elsewhere than at 256 bytes.
struct Values {
  Values(const Context& on, Dtype dtype, Shape extents, uint64_t seed)
      : context(on), shape(std::move(extents)) {
    const int64_t count = num_elements(shape) + kGap;
    tensor = upload(on, dtype, {count}, uniform(count, -1, 1, seed));
  }
  TensorView at(int64_t element) {
    return {static_cast<std::byte*>(tensor.data()) + element * dtype_bytes(tensor.dtype()),
            tensor.dtype(), shape, context.device()};
  }
  Context context;
  Shape shape;
  Tensor tensor;
};

double worst_difference(const Values& a, const Values& b) {
  const auto left = download(a.context, a.tensor), right = download(b.context, b.tensor);
  double worst = 0;
  for (size_t i = kGap; i < left.size(); ++i) {
    worst = worse_ratio(worst, left[i], right[i], 1);
  }
  return worst;
}

/// Of two members: cuDNN's one call by itself, and where x is not aligned to 16 bytes ours, which
/// agrees with the CPU's; by cuDNN's name neither that nor another. The plan by itself.
template <class Problem, class Plan, class Operands>
Plan check_automatic(Machine& machine, const std::string& primitive,
                     Plan (*make)(const Context&, const Problem&, const PlanOptions&),
                     const Problem& problem, Operands& ours, Operands& theirs, double most) {
  const Plan automatic = make(machine.context, problem, {});
  INFO(automatic.explain());
  CHECK(automatic.strategy() == "cudnn");
  machine.run(automatic, theirs.at(0));
  CHECK(calls_of_cudnn == 1);
  machine.run(automatic, theirs.at(1));
  CHECK(calls_of_cudnn == 0);
  make(Context::cpu(), problem, {}).run(ours.at(1), {Stream::cpu()});
  CHECK(worst_difference(ours.y, theirs.y) < most);
  const Plan named = make(machine.context, problem, {.strategy = "cudnn"});
  CHECK_FALSE(has(named.explain(), "sequential"));
  CHECK(machine.refusal(named, theirs.at(1)) ==
        primitive + ": cudnn: x is aligned to 4 bytes, expected cuDNN's = 16");
  CHECK(calls_of_cudnn == 0);
  return automatic;
}

/// The same, member after member; after check_automatic(), whose results it compares with.
template <class Problem, class Plan, class Operands>
void check_sequential(Machine& machine,
                      Plan (*make)(const Context&, const Problem&, const PlanOptions&),
                      const Problem& problem, Operands& ours, Operands& theirs, double most) {
  const Plan sequential = make(machine.context, problem, {.strategy = "sequential"});
  INFO(sequential.explain());
  CHECK(has(sequential.explain(), "; engine "));
  machine.run(sequential, theirs.at(0));
  CHECK(calls_of_cudnn == 2);
  machine.run(sequential, theirs.at(1));
  CHECK(calls_of_cudnn == 0);
  CHECK(worst_difference(ours.y, theirs.y) < most);
}

}  // namespace

TEST_CASE("batchnorm: auto is cuDNN where ours is unverified, and never silently ours by name") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("batchnorm1d", "wide", 80)) SKIP("wide is verified");
  struct Operands {
    explicit Operands(const Context& on)
        : x(on, Dtype::fp32, {2, 16, 8, 8}, 1),
          y(on, Dtype::fp32, {2, 16, 8, 8}, 2),
          mean(upload(on, Dtype::fp32, {2, 8}, uniform(16, -1, 1, 3))),
          variance(upload(on, Dtype::fp32, {2, 8}, uniform(16, 0.5, 2, 4))) {}
    BatchnormArguments at(int64_t element) {
      return {x.at(element), {}, {}, mean, variance, y.at(element), {}, {}};
    }
    Values x, y;
    Tensor mean, variance;
  };
  Operands ours(Context::cpu()), theirs(machine.context);
  const BatchnormProblem problem = describe_batchnorm(theirs.at(0));
  const BatchnormPlan automatic =
      check_automatic(machine, "batchnorm", make_batchnorm_plan, problem, ours, theirs, 1e-5);
  CHECK(
      has(automatic.explain(), "; wide: unverified on compute capability 80; policy h0; engine "));
  CHECK(has(automatic.explain(), "sequential where operands are not aligned to 16 bytes"));

  // Member after member is cuDNN's, too, where it can be.
  check_sequential(machine, make_batchnorm_plan, problem, ours, theirs, 1e-5);
  const auto sequential = make_batchnorm_plan(machine.context, problem, {.strategy = "sequential"});
  CHECK(has(sequential.explain(), "; where operands are not aligned"));
  CHECK(has(sequential.explain(), " by our wide, which is unverified on compute capability 80"));
  BatchnormProblem odd = problem;
  odd.mean_member_stride = 9;
  CHECK(
      has(make_batchnorm_plan(machine.context, odd, {.strategy = "sequential"}).explain(),
          "by our wide, which is unverified on compute capability 80: members do not all begin at "
          "multiples of 16 bytes"));

  BatchnormProblem plain = problem;  // cuDNN trains with gamma and beta only
  plain.mode = BatchnormMode::train;
  const BatchnormPlan refused = make_batchnorm_plan(machine.context, plain);
  CHECK(refused.strategy() == "sequential");
  CHECK(has(refused.explain(), "mode train of cuDNN's wants gamma and beta"));
}

TEST_CASE("instancenorm: auto is cuDNN where ours is unverified, and ours for groups of channels") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("groupnorm", "wide", 80)) SKIP("wide is verified");
  struct Operands {
    explicit Operands(const Context& on)
        : x(on, Dtype::fp32, {2, 16, 8, 8}, 1), y(on, Dtype::fp32, {2, 16, 8, 8}, 2) {}
    GroupnormArguments at(int64_t element) { return {x.at(element), {}, {}, y.at(element)}; }
    Values x, y;
  };
  Operands ours(Context::cpu()), theirs(machine.context);
  GroupnormProblem problem = describe_groupnorm(theirs.at(0), {.num_members = 2, .groups = 8});
  check_automatic(machine, "groupnorm", make_groupnorm_plan, problem, ours, theirs, 1e-5);
  check_sequential(machine, make_groupnorm_plan, problem, ours, theirs, 1e-5);

  problem.groups = 4;
  const GroupnormPlan grouped = make_groupnorm_plan(machine.context, problem);
  CHECK(grouped.strategy() == "sequential");
  CHECK(has(grouped.explain(), "cuDNN has no norm over groups of several channels"));
}

TEST_CASE("layernorm: auto is cuDNN where its rows and parameters are one member's") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("layernorm", "wide", 80)) SKIP("wide is verified");
  struct Operands {
    explicit Operands(const Context& on)
        : x(on, Dtype::fp32, {5, 2 * 20}, 1),
          y(on, Dtype::fp32, {5, 2 * 20}, 2),
          parameters(upload(on, Dtype::fp32, {2, 20}, uniform(40, -1, 1, 3))) {}
    LayernormArguments at(int64_t element) { return {x.at(element), {}, {}, y.at(element)}; }
    LayernormArguments affine() { return {x.at(0), parameters, parameters, y.at(0)}; }
    Values x, y;
    Tensor parameters;
  };
  Operands ours(Context::cpu()), theirs(machine.context);
  const LayernormProblem problem = describe_layernorm(theirs.at(0), {.num_members = 2});
  const LayernormPlan automatic =
      check_automatic(machine, "layernorm", make_layernorm_plan, problem, ours, theirs, 1e-5);
  CHECK(automatic.vendor_calls().cudnn);

  // Side by side, members' rows have gaps between them, and their parameters differ.
  const LayernormPlan affine =
      make_layernorm_plan(machine.context, describe_layernorm(theirs.affine()));
  CHECK(affine.strategy() == "sequential");
  CHECK_FALSE(affine.vendor_calls().cudnn);
  CHECK(has(affine.explain(), "members have their own"));
  CHECK(has(affine.explain(),
            "by our wide, which is unverified on compute capability 80: layernorm: cudnn: cuDNN's "
            "norms take rows without gaps between them"));
  machine.run(affine, theirs.affine());
  make_layernorm_plan(Context::cpu(), affine.problem()).run(ours.affine(), {Stream::cpu()});
  CHECK(worst_difference(ours.y, theirs.y) < 1e-5);
}

TEST_CASE("pooling: auto is cuDNN where ours is unverified, and ours for windows that differ") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("pooling", "wide", 80)) SKIP("wide is verified");
  struct Operands {
    explicit Operands(const Context& on)
        : x(on, Dtype::fp32, {2, 16, 8, 8}, 1), y(on, Dtype::fp32, {2, 16, 4, 4}, 2) {}
    PoolingArguments at(int64_t element) { return {x.at(element), y.at(element)}; }
    Values x, y;
  };
  Operands ours(Context::cpu()), theirs(machine.context);
  PoolingProblem like{.num_members = 2};
  like.rows = like.columns = {.kernel = 2};
  const PoolingProblem problem = describe_pooling(theirs.at(0), like);
  const PoolingPlan automatic =
      check_automatic(machine, "pooling", make_pooling_plan, problem, ours, theirs, 1e-6);
  CHECK(automatic.vendor_calls().cudnn);
  check_sequential(machine, make_pooling_plan, problem, ours, theirs, 1e-6);

  PoolingProblem parts = problem;
  parts.mode = PoolingMode::adaptive_average;
  parts.out_width = 3;
  parts.y = {};
  const PoolingPlan differing = make_pooling_plan(machine.context, parts);
  CHECK(differing.strategy() == "sequential");
  CHECK_FALSE(differing.vendor_calls().cudnn);
  CHECK(has(differing.explain(), "adaptive windows differ, and cuDNN's are all alike"));
}

TEST_CASE("softmax: auto is cuDNN where ours is unverified, and ours in place") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("softmax", "wide", 80)) SKIP("wide is verified");
  struct Operands {
    explicit Operands(const Context& on)
        : x(on, Dtype::fp32, {5, 12}, 1), y(on, Dtype::fp32, {5, 12}, 1) {}
    SoftmaxArguments apart() { return {x.at(0), y.at(0)}; }
    SoftmaxArguments in_place() { return {y.at(0), y.at(0)}; }
    Values x, y;
  };
  Operands ours(Context::cpu()), theirs(machine.context);
  const SoftmaxProblem problem = describe_softmax(theirs.apart(), {.num_members = 2});
  const SoftmaxPlan automatic = make_softmax_plan(machine.context, problem);
  INFO(automatic.explain());
  CHECK(automatic.strategy() == "cudnn");
  CHECK(automatic.vendor_calls().cudnn);
  CHECK(has(automatic.explain(), "; cudnnSoftmaxForward; sequential where y is x"));
  machine.run(automatic, theirs.apart());
  CHECK(calls_of_cudnn == 1);
  machine.run(automatic, theirs.in_place());
  CHECK(calls_of_cudnn == 0);
  make_softmax_plan(Context::cpu(), problem).run(ours.in_place(), {Stream::cpu()});
  CHECK(worst_difference(ours.y, theirs.y) < 1e-6);
  const auto named = make_softmax_plan(machine.context, problem, {.strategy = "cudnn"});
  CHECK(machine.refusal(named, theirs.in_place()) ==
        "softmax: cudnn: y is x itself, which cuDNN's documentation does not allow");
  const auto sequential = make_softmax_plan(machine.context, problem, {.strategy = "sequential"});
  machine.run(sequential, theirs.apart());
  CHECK(calls_of_cudnn == 2);
}

TEST_CASE("flash_attention: auto is cuDNN where ours is unverified, and by name cuDNN or none") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("flash_attention", "tensor_core", 80)) SKIP("tensor_core is verified");
  const Shape shape{1, 20, 2 * 2 * 16};
  struct Operands {
    Operands(const Context& on, const Shape& shape)
        : q(on, Dtype::fp16, shape, 1),
          k(on, Dtype::fp16, shape, 2),
          v(on, Dtype::fp16, shape, 3),
          y(on, Dtype::fp16, shape, 4) {}
    FlashAttentionArguments at(int64_t element) {
      return {q.at(0), k.at(0), v.at(element), {}, {}, y.at(element)};
    }
    Values q, k, v, y;
  };
  Operands ours(Context::cpu(), shape), theirs(machine.context, shape);
  const FlashAttentionProblem problem =
      describe_flash_attention(theirs.at(0), {.num_members = 2, .heads = 2});
  const FlashAttentionPlan automatic = make_flash_attention_plan(machine.context, problem);
  INFO(automatic.explain());
  CHECK(automatic.strategy() == "cudnn");
  CHECK(has(automatic.explain(), "tensor_core: unverified on compute capability 80"));
  CHECK(has(automatic.explain(), "sequential where operands are not aligned to 16 bytes"));
  machine.run(automatic, theirs.at(0));
  CHECK(calls_of_cudnn == 1);
  machine.run(automatic, theirs.at(1));
  CHECK(calls_of_cudnn == 0);
  make_flash_attention_plan(Context::cpu(), problem).run(ours.at(1), {Stream::cpu()});
  CHECK(worst_difference(ours.y, theirs.y) < 4e-3);

  const auto named = make_flash_attention_plan(machine.context, problem, {.strategy = "cudnn"});
  CHECK(machine.refusal(named, theirs.at(1)) ==
        "flash_attention: cudnn: v is aligned to 2 bytes, expected cuDNN's = 16");
  CHECK(calls_of_cudnn == 0);

  // Member after member is cuDNN's, too, where it can be.
  const auto sequential =
      make_flash_attention_plan(machine.context, problem, {.strategy = "sequential"});
  CHECK(has(sequential.explain(), "; engine "));
  CHECK(
      has(sequential.explain(),
          "; where operands are not aligned to 16 bytes by our tensor_core, which is unverified"));
  machine.run(sequential, theirs.at(0));
  CHECK(calls_of_cudnn == 2);
  machine.run(sequential, theirs.at(1));
  CHECK(calls_of_cudnn == 0);
  CHECK(worst_difference(ours.y, theirs.y) < 4e-3);
  FlashAttentionProblem masked = problem;
  masked.window = 3;
  CHECK(
      has(make_flash_attention_plan(machine.context, masked, {.strategy = "sequential"}).explain(),
          "by our tensor_core, which is unverified on compute capability 80: it is asked for no "
          "window, soft cap, slopes or bias"));
  FlashAttentionProblem odd = problem;
  odd.k.member = 36;
  CHECK(flash_attention_cudnn_member_reason(odd) ==
        "members are 36 elements apart, expected a multiple of 8");
}

TEST_CASE("conv: auto is cuDNN's grouped call, which by name is cuDNN or none") {
  require_simulation();
  require_cudnn_planning();
  Machine machine;
  if (is_verified("conv1d", "direct", 80)) SKIP("direct is verified");
  struct Operands {
    explicit Operands(const Context& on)
        : x(on, Dtype::fp32, {2, 8, 8, 8}, 1),
          weight(on, Dtype::fp32, {8, 4, 3, 3}, 2),
          y(on, Dtype::fp32, {2, 8, 6, 6}, 3) {}
    ConvArguments at(int64_t element) {
      return {x.at(element), weight.at(0), {}, y.at(element), {}};
    }
    Values x, weight, y;
  };
  Operands ours(Context::cpu()), theirs(machine.context);
  const ConvProblem problem = describe_conv(theirs.at(0), {.num_members = 2});
  const ConvPlan automatic = make_conv_plan(machine.context, problem);
  INFO(automatic.explain());
  CHECK(automatic.strategy() == "grouped");
  CHECK(has(automatic.explain(), "direct: unverified on compute capability 80"));
  CHECK(has(automatic.explain(), "a launch per member of our direct, which is unverified"));
  machine.run(automatic, theirs.at(0));
  CHECK(calls_of_cudnn == 1);
  machine.run(automatic, theirs.at(1));
  CHECK(calls_of_cudnn == 0);
  const Context cpu = Context::cpu();
  run_plan(cpu, make_conv_plan(cpu, problem), ours.at(1));
  CHECK(worst_difference(ours.y, theirs.y) < 1e-5);

  const ConvPlan named = make_conv_plan(machine.context, problem, {.strategy = "grouped"});
  CHECK(machine.refusal(named, theirs.at(1)) ==
        "conv: grouped: x is aligned to 4 bytes, expected cuDNN's = 16");
  CHECK(calls_of_cudnn == 0);

  const ConvPlan sequential = make_conv_plan(machine.context, problem, {.strategy = "sequential"});
  CHECK(has(sequential.explain(), "; engine "));
  CHECK(has(sequential.explain(),
            "; where operands are not aligned to 16 bytes by our direct, which is"));
  machine.run(sequential, theirs.at(0));
  CHECK(calls_of_cudnn == 2);
  machine.run(sequential, theirs.at(1));
  CHECK(calls_of_cudnn == 0);
  ConvProblem odd = problem;
  odd.weight.member += 1;
  CHECK(
      has(make_conv_plan(machine.context, odd, {.strategy = "sequential"}).explain(),
          "by our direct, which is unverified on compute capability 80: members of weight lie 580 "
          "bytes apart"));
}

}  // namespace wide::test
