// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Seeded contents of operands. Counter-based: value number i of a stream needs no other value, so
// members can be permuted, repeated and filled by any thread, with the same contents.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <string_view>

#include "host/operand.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

/// SplitMix64: a step of the golden ratio, then its finaliser.
inline uint64_t random_bits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// One stream per seed, operand (name, and which of several of that name) and member id.
inline uint64_t stream_key(uint64_t seed, std::string_view name, int64_t occurrence, int64_t id) {
  uint64_t key = seed;
  for (const char c : name) key = random_bits(key, static_cast<unsigned char>(c));
  key = random_bits(key, static_cast<uint64_t>(occurrence));
  return random_bits(key, static_cast<uint64_t>(id));
}

/// In [0, 1), 53 bits.
inline double to_unit(uint64_t bits) {
  return static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53;
}

/// Puts NaN and the infinities in place of a share of the values.
inline void draw_specials(double share, uint64_t key, uint64_t first, std::span<double> out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kSpecials{std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = random_bits(~key, first + i);
    if (to_unit(bits) < share) out[i] = kSpecials[bits % kSpecials.size()];
  }
}

/// One id from a number in [0, 1). The logarithm of Zipf's ids is uniform: ids k to k + 1 have the
/// share log((k + 2) / (k + 1)) / log(vocab + 1), about 1 / (k + 1).
inline double draw_id(const Distribution& from, double unit) {
  const double vocab = from.high + 1;
  if (from.kind == Distribution::Kind::zipf_ids) {
    return std::min(std::floor(std::pow(vocab + 1, unit)) - 1, from.high);
  }
  const double distinct = std::min(vocab, 4.0);
  return std::floor(std::floor(distinct * unit) * vocab / distinct);
}

/// Value `index` of a kind of its own among floats, none of which is the uniform one.
inline double draw_float(const Distribution& from, uint64_t key, uint64_t index) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const double unit = to_unit(random_bits(key, index));
  switch (from.kind) {
    case Distribution::Kind::normal:  // Box and Muller's
      return from.high * std::sqrt(-2 * std::log1p(-unit)) *
             std::cos(kTurn * to_unit(random_bits(~key, index)));
    case Distribution::Kind::trig:
      return from.high * std::sin(static_cast<double>(index) + kTurn * to_unit(key));
    case Distribution::Kind::wide_range: {
      const double magnitude = std::exp2(from.high * (2 * unit - 1));
      return random_bits(~key, index) % 2 == 0 ? magnitude : -magnitude;
    }
    default: {
      const bool is_second = index % 2 == 1 && from.kind == Distribution::Kind::cancelling;
      const double value = from.high * (2 * to_unit(random_bits(key, index / 2)) - 1);
      return is_second ? -value * (1 - 0x1p-7) : value;
    }
  }
}

/// Values [first, first + out.size()) of a stream.
inline void draw_values(const Distribution& from, uint64_t key, int64_t first,
                        std::span<double> out) {
  const auto start = static_cast<uint64_t>(first);
  if (from.kind > Distribution::Kind::uniform && from.kind < Distribution::Kind::integers) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = draw_float(from, key, start + i);
    return;
  }
  const bool is_discrete = from.kind != Distribution::Kind::uniform;
  const double range = from.high - from.low + (is_discrete ? 1 : 0);
  if (!is_discrete) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = from.low + range * to_unit(random_bits(key, start + i));
    }
    if (from.specials > 0) draw_specials(from.specials, key, start, out);
    return;
  }
  const bool is_uneven =
      from.kind == Distribution::Kind::few_ids || from.kind == Distribution::Kind::zipf_ids;
  if (is_uneven) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = draw_id(from, to_unit(random_bits(key, start + i)));
    }
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const double step = range * to_unit(random_bits(key, start + i));
    out[i] = from.low + static_cast<double>(static_cast<int64_t>(step));
  }
  if (from.density >= 1) return;
  // The very first value always stays: an operand of zeros alone proves nothing.
  for (size_t i = start == 0 ? 1 : 0; i < out.size(); ++i) {
    if (!(to_unit(random_bits(~key, start + i)) < from.density)) out[i] = 0;
  }
}

/// Rounds to `dtype` via float: the exact rounding of a random value is irrelevant, and these
/// loops vectorise. Values of integer dtypes are whole already.
inline void store_values(std::span<const double> values, Dtype dtype, void* destination) {
  const auto each = [&](auto convert) {
    for (size_t i = 0; i < values.size(); ++i) {
      detail::store_at(destination, static_cast<int64_t>(i), convert(values[i]));
    }
  };
  const auto narrowed = [&](auto convert) {
    each([=](double value) { return convert(static_cast<float>(value)); });
  };
  switch (dtype) {
    case Dtype::fp32:
      return each([](double value) { return static_cast<float>(value); });
    case Dtype::fp16:
      return narrowed([](float value) { return float_to_fp16(value); });
    case Dtype::bf16:
      return narrowed([](float value) { return float_to_bf16(value); });
    case Dtype::fp8_e4m3:
      return narrowed([](float value) { return float_to_fp8_e4m3(value); });
    case Dtype::fp8_e5m2:
      return narrowed([](float value) { return float_to_fp8_e5m2(value); });
    case Dtype::int32:
      return each([](double value) { return static_cast<int32_t>(value); });
    case Dtype::int64:
      return each([](double value) { return static_cast<int64_t>(value); });
    case Dtype::uint8:
      return each([](double value) { return static_cast<uint8_t>(value); });
  }
}

/// Draws and stores a run, with `shift` added to every value.
inline void fill_run(const Distribution& from, uint64_t key, int64_t first, int64_t count,
                     double shift, Dtype dtype, std::byte* destination) {
  std::array<double, 512> chunk;  // stays in the first-level cache
  for (int64_t done = 0; done < count; done += static_cast<int64_t>(chunk.size())) {
    const auto size = std::min<size_t>(chunk.size(), static_cast<size_t>(count - done));
    const std::span values(chunk.data(), size);
    draw_values(from, key, first + done, values);
    if (shift != 0) {
      for (double& value : values) value += shift;
    }
    store_values(values, dtype, destination + done * dtype_bytes(dtype));
  }
}

}  // namespace wide::catalog
