// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A primitive for tests of the runner: doubles a row per member on the CPU, and misbehaves on
// request. Everything it is asked to run is written down.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wide/catalog.hpp"

namespace wide::test {

struct FakeStrategy {
  std::string name = "";
  std::string unsupported = "";           ///< reason
  std::function<void()> on_prepare = {};  ///< may throw
  std::function<void()> on_run = {};      ///< runs before the outputs are written; may throw
  double factor = 2;                      ///< 2 is right
  bool writes = true;                     ///< false: leaves the output as it was
};

/// Lives as long as the spec made of it.
struct FakePrimitive {
  std::vector<FakeStrategy> strategies;
  FakeStrategy member{"member"};  ///< what the baseline calls
  std::string impossible, no_baseline;
  std::function<void()> on_make = {};
  catalog::Cost cost{1, 1, 1};
  int64_t footprint_bytes = 1;
  std::function<std::string()> damage = {};
  std::vector<std::string> log = {};  ///< names of strategies, "member", "poison"

  catalog::PrimitiveSpec spec();
};

/// A case of the fake primitive with that many members.
catalog::Case fake_case(int64_t num_members);

}  // namespace wide::test
