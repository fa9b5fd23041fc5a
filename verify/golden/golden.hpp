// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Golden vectors: what a device makes of fixed inputs, instruction by instruction. A real GPU
// writes them once (fixtures/<case>.bin, the raw results); from then on the simulated GPU must make
// the same of the same inputs. That is the only proof that descriptors, swizzles and fragments were
// read right, and not twice wrong in the same way.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "verify/support/tolerance.hpp"

namespace wide::golden {

/// Memory of the current device that goes away by itself.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes);  ///< zeros
  explicit DeviceBytes(const std::vector<std::byte>& contents);
  ~DeviceBytes();
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::vector<std::byte> download() const;

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

/// How a result is compared with its fixture: floats within that; without one bit for bit, whatever
/// the result's type.
using Tolerance = std::optional<test::Tolerance>;

struct Case {
  std::string name;  ///< the fixture's
  int min_capability = 80;
  bool is_sm90a = false;  ///< runs on compute capability 9.0 and no other
  Tolerance tolerance{};
  std::function<std::vector<std::byte>()> run{};  ///< on the current device
};

/// All of them, by name; those of tensor maps that step over elements last: where these copy fewer
/// bytes than their barriers expect, they hang.
std::vector<Case> all_cases();

/// Runs a case and writes NAME.bin to a folder, which is whole if it exists. Meanwhile NAME.part
/// says that the case has begun: what a process that hung or lost its device leaves so, is
/// unfinished, and the next one passes over it.
void write_fixture(const std::filesystem::path& folder, const Case& one);
bool is_unfinished(const std::filesystem::path& folder, const Case& one);

// One function for each file of cases.
std::vector<Case> matrix_cases();  ///< ldmatrix, stmatrix, mma
std::vector<Case> number_cases();  ///< conversions, approximations, warp operations
std::vector<Case> tile_cases();    ///< bulk copies
std::vector<Case> wgmma_cases();

/// What cudaFuncSetAttribute says to so much dynamic shared memory for a kernel that has
/// kOwnSharedBytes of its own, and its launch with so much.
constexpr int kOwnSharedBytes = 1024;
cudaError_t allow_shared(int bytes);
cudaError_t launch_with_shared(int bytes);

/// The i-th input: a whole number in [-8, 8), so that sums of products are exact.
float small_integer(int64_t i);
/// The same times a power of two between 2^-10 and 2^10, and a bit that only fp32 holds: what sums
/// of their products lose says how they are added.
float mixed_magnitude(int64_t i);
/// `count` inputs in the format T (__half, __nv_bfloat16, float, ..), as bytes.
template <class T>
std::vector<std::byte> inputs(int64_t count, float (*input)(int64_t) = small_integer) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(T));
  auto* values = reinterpret_cast<T*>(bytes.data());
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(input(i));
  return bytes;
}
/// Element i is i.
std::vector<std::byte> counting_halves(int64_t count);

/// Throws std::runtime_error with the call's error.
void check(cudaError_t status);
/// After a launch: waits, and throws what went wrong.
void finish();

}  // namespace wide::golden
