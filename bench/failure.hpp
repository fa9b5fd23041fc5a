// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is thrown, in a result's words.
#pragma once

#include <string>

#include "bench/result.hpp"
#include "wide/context.hpp"

namespace wide::bench {

struct Failure {
  Status status = Status::failed;
  std::string reason;
  bool is_device_lost = false;  ///< every further call on the device fails
};

/// What is being thrown: to be called in a catch block. After a CUDA error the device is tried.
Failure current_failure(const Context& context);

}  // namespace wide::bench
