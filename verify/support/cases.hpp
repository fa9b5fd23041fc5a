// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cases made from a primitive's axes alone, so that a primitive is tested the day it is in the
// catalogue. Sizes that an axis accepts are its business; what no such problem exists for is left
// out by impossible_reason.
#pragma once

#include <string>
#include <vector>

#include "wide/catalog.hpp"

namespace wide::test {

using Values = std::vector<std::pair<std::string, catalog::AxisValue>>;

/// All primitives, or the one that WIDE_TEST_PRIMITIVE names: a share for what watches every
/// access, or takes its time.
std::vector<const catalog::PrimitiveSpec*> primitives_to_test();
/// The primitive by the name that its plans, tuning caches and models' options have: "conv" of
/// conv1d, conv2d and conv3d.
std::string plan_name(const catalog::PrimitiveSpec& spec);
/// What a device has, and "auto".
std::vector<std::string> strategies_of(const catalog::PrimitiveSpec& spec, DeviceType device);

/// The product of the sweep "ci" and all dtypes. Where small cases are wanted, integers above 5 are
/// cut to odd ones below 20.
std::vector<catalog::Case> ci_cases(const catalog::PrimitiveSpec& spec);

/// Integer axes at primes that differ from axis to axis (a transposed operand must not fit) and lie
/// around `size`, at least, or at the axis's own odd sizes; n is `num_members`. Words are the
/// defaults where `words` has no other.
catalog::Case odd_case(const catalog::PrimitiveSpec& spec, int64_t num_members, int64_t size,
                       const Values& words = {});
/// Of 16 bytes or more, of any dtype.
inline constexpr int64_t kVectorElements = 16;
/// The same with features of whole 16 bytes in one group, for kernels that take no others.
catalog::Case vector_case(const catalog::PrimitiveSpec& spec, int64_t num_members, int64_t size,
                          const Values& words = {});

/// Whether odd cases of a size above the tiles of kernels are small enough to be run many times:
/// not where more than four sizes multiply.
bool affords_large_cases(const catalog::PrimitiveSpec& spec);

/// Every combination of the words of all word axes (dtype, bias, activation, ...); every pair of
/// words with every dtype where combinations are too many to be run; where small cases are wanted,
/// every word once, and once with the last dtype.
std::vector<Values> word_combinations(const catalog::PrimitiveSpec& spec);

/// Every word with every other one of another axis, with every dtype, the rest at their defaults;
/// impossible ones, too.
std::vector<Values> word_pairs(const catalog::PrimitiveSpec& spec);

/// Odd cases with each integer axis in turn at its smallest legal value, 0 or 1.
std::vector<catalog::Case> edge_cases(const catalog::PrimitiveSpec& spec);

/// "wbench run --op linear --n 4 --batch 16 ...": what repeats a case.
std::string describe(const catalog::PrimitiveSpec& spec, const catalog::Case& point);

}  // namespace wide::test
