// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": for messages about names that do not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wide {

/// Up to three of `names` that look like `name`, best first: those that begin with it or contain
/// it, and those with an edit distance (letters added, dropped, replaced or swapped) of at most a
/// third of the longer one's length, rounded up.
std::vector<std::string> nearest_of(std::string_view name, std::span<const std::string_view> names);

/// ", did you mean wide, wide2?" of those, as `shown`, or as they are; "" where there are none.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names,
                         std::string (*shown)(std::string_view) = nullptr);

/// The same, and where none is near ", expected one of " all.
std::string expected_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace wide
