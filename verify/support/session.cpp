// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Workspaces lie between guard bands of 0xFF, and are 0xFF (NaN) themselves before every run: a
// strategy that reads scratch it has not written, or writes beyond it, is seen. A simulated GPU's
// memory is NaN until it is written, and tells who reads it before: there it is new for every run.
#include "verify/support/session.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "verify/support/simulation.hpp"
#include "wide/convert.hpp"

namespace wide::test {

namespace {

constexpr int64_t kGuardBytes = 4096;

bool is_poison(const Context& context, const TensorView& band, Stream stream) {
  std::vector<std::byte> bytes(kGuardBytes);
  copy(band, TensorView(bytes.data(), band.dtype, band.shape, Device{}), stream);
  context.synchronize(stream);
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0xff}; });
}

}  // namespace

Session::Session(const Context& context) : context_(context), stream_(context), handles_(context) {}

template <class Call>
catalog::MemberOutputs Session::run_call(catalog::Workload& workload, catalog::OutputOf which,
                                         int64_t workspace_bytes, const Call& call) {
  const int64_t bytes = workspace_bytes + 2 * kGuardBytes;
  const bool is_simulated = context_.device().type == DeviceType::cuda && Simulation::is_present();
  if (scratch_.bytes() < bytes || is_simulated)
    scratch_ = Tensor(context_, Dtype::fp8_e4m3, {bytes});
  const TensorView scratch = scratch_.view().narrow(0, 0, bytes);
  const TensorView bands[] = {scratch.narrow(0, 0, kGuardBytes),
                              scratch.narrow(0, bytes - kGuardBytes, kGuardBytes)};
  if (is_simulated) {
    for (const TensorView& band : bands) fill_bytes(band, 0xff, stream());
  } else {
    fill_bytes(scratch, 0xff, stream());
  }
  Execution execution{stream()};
  execution.workspace = {static_cast<std::byte*>(scratch.data) + kGuardBytes, workspace_bytes};
  execution.handles = &handles_;
  workload.poison_outputs(which, stream());
  call(execution);
  catalog::MemberOutputs outputs = workload.read_outputs(which, stream());
  CHECK(workload.damage(stream()) == "");
  for (const TensorView& band : bands) CHECK(is_poison(context_, band, stream()));
  return outputs;
}

catalog::MemberOutputs Session::run(catalog::Workload& workload,
                                    const catalog::Prepared& prepared) {
  return run_call(workload, catalog::OutputOf::strategy, prepared.workspace_bytes, prepared.run);
}

catalog::MemberOutputs Session::run(catalog::Workload& workload, std::string_view strategy) {
  return run(workload, workload.prepare(strategy));
}

catalog::MemberOutputs Session::run_members(catalog::Workload& workload,
                                            const catalog::PreparedMembers& prepared) {
  const auto call = [&](const Execution& execution) {
    prepared.run_all(workload.num_members(), execution);
  };
  return run_call(workload, catalog::OutputOf::baseline, prepared.workspace_bytes, call);
}

std::string first_difference(const catalog::MemberOutputs& a, int64_t i,
                             const catalog::MemberOutputs& b, int64_t j) {
  const auto& left = a.members.at(static_cast<size_t>(i));
  const auto& right = b.members.at(static_cast<size_t>(j));
  if (a.dtype != b.dtype || left.rows != right.rows || left.row_length != right.row_length ||
      left.bytes.size() != right.bytes.size()) {
    return "the outputs have different shapes or types";
  }
  const auto at = std::mismatch(left.bytes.begin(), left.bytes.end(), right.bytes.begin()).first;
  if (at == left.bytes.end()) return "";
  const int64_t element = (at - left.bytes.begin()) / dtype_bytes(a.dtype);
  return "member " + std::to_string(i) + ", row " + std::to_string(element / left.row_length) +
         ", column " + std::to_string(element % left.row_length) + ": " +
         std::to_string(load_element(left.bytes.data(), a.dtype, element)) + " and " +
         std::to_string(load_element(right.bytes.data(), b.dtype, element));
}

std::string first_difference(const catalog::MemberOutputs& a, const catalog::MemberOutputs& b) {
  if (a.members.size() != b.members.size()) return "the outputs have different numbers of members";
  for (size_t m = 0; m < a.members.size(); ++m) {
    const auto index = static_cast<int64_t>(m);
    if (std::string found = first_difference(a, index, b, index); !found.empty()) return found;
  }
  return "";
}

}  // namespace wide::test
