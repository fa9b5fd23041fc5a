// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every call to cuBLAS and cuDNN fails once, in every strategy that makes any: what comes out is a
// wide::Error, or another way to the same result; the handle is as it was, nothing leaks, and the
// next run is right. Needs the simulated vendors' libraries, which can be told to fail.
#include <cublas_v2.h>
#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/compare.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"
#include "wide/error.hpp"
#include "wide/linear.hpp"

namespace wide::test {
namespace {

using catalog::Case;
using catalog::MemberOutputs;
using catalog::OutputOf;
using catalog::PrimitiveSpec;
using Catch::Matchers::ContainsSubstring;

/// A function of the libraries that are in front, which the program does not link.
template <class Function>
Function* vendors(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

void require_vendors() {
  require_simulation();
  if (vendors<void(int64_t)>("wide_simvendors_fail_at") == nullptr) {
    SKIP("runs with the simulated cuBLAS and cuDNN only");
  }
}

void fail_at(int64_t k) {
  vendors<void(int64_t)>("wide_simvendors_fail_at")(k);
}
std::string failed_call() {
  return vendors<const char*()>("wide_simvendors_failed_call")();
}

struct Subject {
  const PrimitiveSpec* spec;
  std::string strategy;
  Case point;
};

/// The first case that a vendor's strategy runs; nothing where the build lacks its library.
std::optional<Case> case_of(const Context& context, const PrimitiveSpec& spec,
                            const std::string& strategy) {
  for (const auto& all_words : {word_combinations(spec), word_pairs(spec)}) {
    for (const Values& words : all_words) {
      for (const auto make : {odd_case, vector_case}) {
        const Case point = make(spec, 3, 3, words);
        if (!spec.impossible_reason(point).empty()) continue;
        const auto workload = spec.make_workload(context, point, {});
        if (workload->unsupported_reason(strategy).empty()) return point;
      }
    }
  }
  return {};
}

std::vector<Subject> subjects(const Context& context) {
  std::vector<Subject> all;
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    for (const catalog::StrategyInfo& info : spec->strategies) {
      if (info.device != DeviceType::cuda || info.kind != catalog::StrategyKind::vendor) continue;
      const std::string strategy(info.name);
      if (auto point = case_of(context, *spec, strategy)) all.push_back({spec, strategy, *point});
    }
  }
  return all;
}

/// An engine's handles: whatever runs, their stream and modes are the engine's.
class Engine {
 public:
  Engine() : context_(require_cuda()), stream_(context_), own_(context_), handles_(context_) {
    set_modes();
  }
  void set_modes() const {
    const auto handle = static_cast<cublasHandle_t>(handles_.cublas());
    REQUIRE(vendors<decltype(cublasSetStream)>("cublasSetStream_v2")(handle, native(own_)) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(vendors<decltype(cublasSetPointerMode)>("cublasSetPointerMode_v2")(
                handle, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(vendors<decltype(cublasSetMathMode)>("cublasSetMathMode")(
                handle, CUBLAS_PEDANTIC_MATH) == CUBLAS_STATUS_SUCCESS);
  }
  const Context& context() const { return context_; }

  /// Plans and runs; throws what they throw.
  MemberOutputs run(const Subject& subject) const {
    const auto workload = subject.spec->make_workload(context_, subject.point, {});
    const catalog::Prepared prepared = workload->prepare(subject.strategy);
    Tensor scratch(context_, Dtype::uint8, {prepared.workspace_bytes});
    workload->poison_outputs(OutputOf::strategy, stream_.get());
    prepared.run({stream_.get(), {scratch.data(), scratch.bytes()}, &handles_});
    return workload->read_outputs(OutputOf::strategy, stream_.get());
  }

  bool finds_its_modes() const {
    const auto handle = static_cast<cublasHandle_t>(handles_.cublas());
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointer_mode{};
    cublasMath_t math_mode{};
    (void)vendors<decltype(cublasGetStream)>("cublasGetStream_v2")(handle, &stream);
    (void)vendors<decltype(cublasGetPointerMode)>("cublasGetPointerMode_v2")(handle, &pointer_mode);
    (void)vendors<decltype(cublasGetMathMode)>("cublasGetMathMode")(handle, &math_mode);
    return stream == native(own_) && pointer_mode == CUBLAS_POINTER_MODE_DEVICE &&
           math_mode == CUBLAS_PEDANTIC_MATH;
  }

 private:
  static cudaStream_t native(const OwnedStream& stream) {
    return static_cast<cudaStream_t>(stream.get().native());
  }
  Context context_;
  OwnedStream stream_, own_;
  VendorHandles handles_;
};

/// What a run came to.
struct Outcome {
  std::optional<ErrorCode> code{};
  std::string message{};
  MemberOutputs outputs{};
};

Outcome attempt(const Engine& engine, const Subject& subject) {
  Outcome outcome;
  try {
    outcome.outputs = engine.run(subject);
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.message = error.what();
  }
  return outcome;
}

}  // namespace

TEST_CASE("every call to a vendor's library may fail: an error, and the next run is right") {
  require_vendors();
  const Engine engine;
  int64_t num_errors = 0, num_calls = 0;
  const std::vector<Subject> all = subjects(engine.context());
  REQUIRE(all.size() >= 5);
  for (const Subject& subject : all) {
    INFO(describe(*subject.spec, subject.point) << " --strategy " << subject.strategy);
    const auto workload = subject.spec->make_workload(engine.context(), subject.point, {});
    const catalog::ReferenceSample reference(*workload);
    const MemberOutputs expected = engine.run(subject);
    const std::string live = Simulation::leaks();
    for (int64_t k = 1;; ++k) {
      fail_at(k);
      const Outcome outcome = attempt(engine, subject);
      const std::string failed = failed_call();
      fail_at(0);
      if (failed.empty()) break;
      INFO("call " << k << ", " << failed << ": " << outcome.message);
      ++num_calls;
      num_errors += outcome.code ? 1 : 0;
      if (outcome.code) {
        const bool is_cublas = failed.starts_with("cublas");
        const ErrorCode of_call = is_cublas ? ErrorCode::cublas : ErrorCode::cudnn;
        CHECK((outcome.code == of_call || outcome.code == ErrorCode::unsupported));
        CHECK_THAT(outcome.message,
                   ContainsSubstring(is_cublas ? "cublas" : "cudnn", Catch::CaseSensitive::No));
        CHECK(engine.finds_its_modes());
      } else {  // another algorithm, or what could not be set back behind the work
        CHECK(catalog::compare(reference, outcome.outputs).message == "");
        engine.set_modes();
      }
      REQUIRE(first_difference(expected, engine.run(subject)) == "");
      CHECK(engine.finds_its_modes());
      CHECK(Simulation::leaks() == live);
    }
  }
  WARN(all.size() << " strategies, " << num_calls << " calls that failed, " << num_errors
                  << " errors");
  CHECK(num_errors >= 5 * static_cast<int64_t>(all.size()));
  CHECK(Simulation::findings() == "");
}

TEST_CASE("handles that cannot be created say why, and the other one is there") {
  require_vendors();
  const Context context = require_cuda();
  for (const int64_t k : {1, 2}) {
    fail_at(k);
    const VendorHandles handles(context);
    const std::string failed = failed_call();
    fail_at(0);
    INFO(failed);
    if (failed.empty()) continue;  // a build without cuDNN
    const bool is_cublas = failed.starts_with("cublas");
    CHECK((handles.cublas() == nullptr) == is_cublas);
    CHECK((handles.cudnn() == nullptr) == !is_cublas);
    const std::string& reason =
        is_cublas ? handles.cublas_unavailable_reason() : handles.cudnn_unavailable_reason();
    CHECK_THAT(reason, ContainsSubstring(is_cublas ? "cublasCreate: CUBLAS_STATUS_ALLOC_FAILED"
                                                   : "cudnnCreate: CUDNN_STATUS_INTERNAL_ERROR"));
  }
}

TEST_CASE("a plan without cuBLASLt's handle says why, and the next one has it") {
  require_vendors();
  const Context context = require_cuda();
  const LinearProblem problem{.num_members = 2, .batch = 4, .in_features = 8, .out_features = 8};
  fail_at(1);
  CHECK(message_of(ErrorCode::unsupported, [&] {
          make_linear_plan(context, problem, {.strategy = "cublaslt"});
        }) == "linear: cuBLASLt cannot start: cublasLtCreate: CUBLAS_STATUS_ALLOC_FAILED");
  fail_at(0);
  CHECK_NOTHROW(make_linear_plan(context, problem, {.strategy = "cublaslt"}));
}

}  // namespace wide::test
