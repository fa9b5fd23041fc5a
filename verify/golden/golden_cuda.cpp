// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/golden/golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <tuple>

namespace wide::golden {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

void finish() {
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

DeviceBytes::DeviceBytes(size_t bytes) : bytes_(bytes) {
  check(cudaMalloc(&data_, bytes));
  check(cudaMemset(data_, 0, bytes));
}

DeviceBytes::DeviceBytes(const std::vector<std::byte>& contents) : DeviceBytes(contents.size()) {
  check(cudaMemcpy(data_, contents.data(), bytes_, cudaMemcpyHostToDevice));
}

DeviceBytes::~DeviceBytes() {
  (void)cudaFree(data_);
}

std::vector<std::byte> DeviceBytes::download() const {
  std::vector<std::byte> contents(bytes_);
  check(cudaMemcpy(contents.data(), data_, bytes_, cudaMemcpyDeviceToHost));
  return contents;
}

float small_integer(int64_t i) {
  const auto mixed = static_cast<uint32_t>(i) * 2654435761u + 12345u;
  return static_cast<float>(static_cast<int>(mixed >> 20 & 15) - 8);
}

float mixed_magnitude(int64_t i) {
  const auto mixed = static_cast<uint32_t>(i) * 2246822519u + 54321u;
  return std::ldexp(small_integer(i) * (1 + 0x1p-12f), static_cast<int>(mixed >> 20) % 21 - 10);
}

std::vector<std::byte> counting_halves(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * 2);
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<uint16_t>(i);
    std::memcpy(bytes.data() + 2 * i, &value, 2);
  }
  return bytes;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto&& some : {matrix_cases(), number_cases(), tile_cases(), wgmma_cases()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  const auto place = [](const Case& one) {
    return std::tuple(one.name.find("_steps") != std::string::npos, one.name);
  };
  std::sort(all.begin(), all.end(),
            [&](const Case& a, const Case& b) { return place(a) < place(b); });
  return all;
}

bool is_unfinished(const std::filesystem::path& folder, const Case& one) {
  return std::filesystem::exists(folder / (one.name + ".part"));
}

void write_fixture(const std::filesystem::path& folder, const Case& one) {
  const std::filesystem::path whole = folder / (one.name + ".bin"),
                              part = folder / (one.name + ".part");
  if (std::filesystem::exists(whole) || is_unfinished(folder, one)) return;
  std::ofstream file(part, std::ios::binary);
  const std::vector<std::byte> got = one.run();
  file.write(reinterpret_cast<const char*>(got.data()), static_cast<std::streamsize>(got.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + part.string());
  std::filesystem::rename(part, whole);
}

}  // namespace wide::golden
