// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/simt_cases.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>

namespace wide::test {

namespace {

using simt::Fault;
using simt::FindingKind;

std::optional<Fault::Kind> fault_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds:
    case FindingKind::use_after_free:
      return Fault::Kind::illegal_address;
    case FindingKind::misaligned:
      return Fault::Kind::misaligned;
    case FindingKind::deadlock:
      return Fault::Kind::launch_timeout;
    case FindingKind::tma:
      return Fault::Kind::illegal_instruction;
    default:
      return std::nullopt;
  }
}

/// Where out is not the mirrored input; -1: nowhere.
int64_t first_difference(const std::vector<int>& out) {
  const auto count = static_cast<int64_t>(out.size());
  for (int64_t i = 0; i < count; ++i) {
    if (out[static_cast<size_t>(i)] != count - 1 - i) return i;
  }
  return -1;
}

void check_case(const std::string& ptx, const KernelCase& one, const simt::Options& options) {
  SimtDevice device(ptx);
  const int64_t count = int64_t{one.threads} * one.blocks;
  std::vector<int> in(static_cast<size_t>(count));
  std::iota(in.begin(), in.end(), 0);
  const std::vector<int> zeros(in.size());
  const uint64_t out = device.allocate<int>("out", count);
  const uint64_t from = device.input("in", in);
  const uint64_t state = device.upload<int>("state", zeros, false);
  const SimtShape shape{{one.blocks, 1, 1}, {one.threads, 1, 1}, one.dynamic_shared_bytes};
  const SimtOutcome outcome = device.launch(one.kernel, shape, options, out, from, state);
  INFO(one.kernel << ", " << to_string(options) << ": " << outcome.text());
  CHECK(outcome.refused.empty());
  if (one.kind) {
    CHECK(outcome.reports(*one.kind, one.text));
    if (!one.may_end_otherwise) CHECK(outcome.fault == one.fault);
    return;
  }
  CHECK(outcome.is_silent());
  CHECK(first_difference(device.download<int>(out, count)) == -1);
}

}  // namespace

KernelCase wrong(const char* kernel, FindingKind kind, const char* text, uint32_t threads,
                 uint32_t blocks) {
  KernelCase one{kernel, threads, blocks};
  one.kind = kind;
  one.text = text;
  one.fault = fault_of(kind);
  return one;
}

void check_cases(const std::string& ptx, const std::vector<KernelCase>& cases) {
  for (const KernelCase& one : cases) {
    for (const simt::Options& options : all_options()) check_case(ptx, one, options);
  }
}

}  // namespace wide::test
