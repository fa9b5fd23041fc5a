// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/failure.hpp"

#include <exception>
#include <new>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// A sticky CUDA error is reported by whichever call comes next, of the runtime or of a library.
bool is_of_device(ErrorCode code) {
  return code == ErrorCode::cuda || code == ErrorCode::cublas || code == ErrorCode::cudnn;
}

/// After a sticky CUDA error the device's context is lost, and every further call fails.
bool is_lost(const Context& context) {
  try {
    const OwnedStream probe(context);
    context.synchronize(probe.get());
    return false;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

Failure current_failure(const Context& context) {
  try {
    throw;
  } catch (const Error& error) {
    const Status status = error.code() == ErrorCode::out_of_memory ? Status::oom
                          : error.code() == ErrorCode::unsupported ? Status::skipped
                                                                   : Status::failed;
    return {status, error.what(), is_of_device(error.code()) && is_lost(context)};
  } catch (const std::bad_alloc&) {
    return {Status::oom, "the host has no memory for this", false};
  } catch (const std::exception& error) {
    return {Status::failed, error.what(), false};
  } catch (...) {
    return {Status::failed, "an exception that is no std::exception", false};
  }
}

}  // namespace wide::bench
