// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tables of small kernels, each right (it must be silent and compute what it should) or wrong in
// one way (a finding must say so). All have the parameters (int* out, const int* in, int* state),
// each with as many elements as the grid has threads: in counts up and is only read, state is
// zeros, out is not initialised. A right kernel mirrors: out[i] = in[threads - 1 - i].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/support/simt_launch.hpp"

namespace wide::test {

struct KernelCase {
  const char* kernel;
  uint32_t threads = 64, blocks = 1;
  int64_t dynamic_shared_bytes = 0;
  std::optional<simt::FindingKind> kind{};  ///< none: right
  const char* text = "";                    ///< part of the finding's
  std::optional<simt::Fault::Kind> fault{};
  bool may_end_otherwise = false;  ///< how the launch ends depends on who is first
};

/// The fault that follows from the kind; another one is set in the case itself.
KernelCase wrong(const char* kernel, simt::FindingKind kind, const char* text,
                 uint32_t threads = 64, uint32_t blocks = 1);

/// Runs every case with all_options(). A wrong one must be found with each of them.
void check_cases(const std::string& ptx, const std::vector<KernelCase>& cases);

}  // namespace wide::test
