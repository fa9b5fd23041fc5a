// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Turns status codes of the CUDA libraries into errors that say what was called where.
#include "host/core/cuda_check.hpp"

#include <string>

#include "wide/error.hpp"

namespace wide {

namespace {

std::string place(const char* expression, const char* file, int line) {
  return std::string(" (") + expression + " at " + file + ":" + std::to_string(line) + ")";
}

}  // namespace

void throw_cuda(cudaError_t status, const char* expression, const char* file, int line) {
  (void)cudaGetLastError();
  const auto code =
      status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::cuda;
  throw Error(code, std::string("cuda: ") + cudaGetErrorName(status) + ": " +
                        cudaGetErrorString(status) + place(expression, file, line));
}

void throw_cublas(cublasStatus_t status, const char* expression, const char* file, int line) {
  (void)cudaGetLastError();
  const auto code =
      status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::cublas;
  throw Error(code, std::string("cublas: ") + cublasGetStatusName(status) + ": " +
                        cublasGetStatusString(status) + place(expression, file, line));
}

}  // namespace wide
