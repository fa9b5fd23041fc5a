// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The exception type of the C++ API. The code is the kind of error; the message says what was
// wrong, what was got and what was expected. Only where the host has no memory for what the library
// itself keeps, it throws std::bad_alloc.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace wide {

enum class ErrorCode {
  invalid_argument,  ///< a shape, dtype, stride, device or option that contradicts the
                     ///< documentation
  unsupported,    ///< valid, but this strategy, device or build cannot run it; the message says why
  out_of_memory,  ///< an allocation failed; nothing was changed
  cuda,           ///< a CUDA runtime call failed
  cublas,         ///< a cuBLAS call failed
  cudnn,          ///< a cuDNN call failed
  io,             ///< a file could not be read or written
};

constexpr std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::cuda:
      return "cuda";
    case ErrorCode::cublas:
      return "cublas";
    case ErrorCode::cudnn:
      return "cudnn";
    case ErrorCode::io:
      return "io";
  }
  return "?";
}

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace wide
