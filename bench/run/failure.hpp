// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Translates exceptions to the words of results.
#pragma once

#include <string>

#include "bench/document/result.hpp"
#include "wide/context.hpp"

namespace wide::bench {

struct Failure {
  Status status = Status::failed;
  std::string reason;
  bool is_device_lost = false;  ///< every further call on the device fails
};

/// The current exception; to be called in a catch block. After a CUDA error the device is tested.
Failure current_failure(const Context& context);

}  // namespace wide::bench
