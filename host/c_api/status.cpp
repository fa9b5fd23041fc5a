// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Statuses, versions and the last error of each thread.
#include <cstdio>
#include <new>
#include <stdexcept>

#include "host/c_api/guard.hpp"
#include "wide/error.hpp"
#include "wide/version.hpp"

namespace wide::c_api {

namespace {

thread_local char message_of_thread[2048] = "";

wide_status keep(wide_status status, const char* function, const char* message) noexcept {
  std::snprintf(message_of_thread, sizeof message_of_thread, "%s: %s", function, message);
  return status;
}

constexpr wide_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return WIDE_INVALID_ARGUMENT;
    case ErrorCode::unsupported:
      return WIDE_UNSUPPORTED;
    case ErrorCode::out_of_memory:
      return WIDE_OUT_OF_MEMORY;
    case ErrorCode::cuda:
      return WIDE_CUDA_ERROR;
    case ErrorCode::cublas:
      return WIDE_CUBLAS_ERROR;
    case ErrorCode::cudnn:
      return WIDE_CUDNN_ERROR;
    case ErrorCode::io:
      return WIDE_IO_ERROR;
  }
  return WIDE_INTERNAL_ERROR;
}

}  // namespace

wide_status failed(const char* function) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(status_of(error.code()), function, error.what());
  } catch (const std::bad_alloc&) {
    return keep(WIDE_OUT_OF_MEMORY, function, "the host has no memory left");
  } catch (const std::exception& error) {
    return keep(WIDE_INTERNAL_ERROR, function, error.what());
  } catch (...) {
    return keep(WIDE_INTERNAL_ERROR, function, "something was thrown that is no exception");
  }
}

std::exception_ptr prefixed(const std::exception_ptr& error, const std::string& words) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& own) {
    return std::make_exception_ptr(Error(own.code(), words + own.what()));
  } catch (const std::bad_alloc&) {
    return error;
  } catch (const std::exception& other) {
    return std::make_exception_ptr(std::runtime_error(words + other.what()));
  } catch (...) {
    return error;
  }
}

const char* last_error() noexcept {
  return message_of_thread;
}

}  // namespace wide::c_api

int32_t wide_api_version(void) {
  return WIDE_API_VERSION;
}
const char* wide_version(void) {
  return wide::version();
}
const char* wide_last_error(void) {
  return wide::c_api::last_error();
}

const char* wide_status_name(wide_status status) {
  switch (status) {
    case WIDE_OK:
      return "ok";
    case WIDE_INVALID_ARGUMENT:
      return "invalid_argument";
    case WIDE_UNSUPPORTED:
      return "unsupported";
    case WIDE_OUT_OF_MEMORY:
      return "out_of_memory";
    case WIDE_CUDA_ERROR:
      return "cuda";
    case WIDE_CUBLAS_ERROR:
      return "cublas";
    case WIDE_CUDNN_ERROR:
      return "cudnn";
    case WIDE_IO_ERROR:
      return "io";
    case WIDE_INTERNAL_ERROR:
      return "internal";
    default:
      return "?";
  }
}
