// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// PTX as text: trimming, splitting at commas outside of brackets, numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wide::ptx {

std::string_view trim(std::string_view text);
/// Parts between separators that are in no bracket, trimmed.
std::vector<std::string> split(std::string_view text, char separator);
/// Words between blanks.
std::vector<std::string> words(std::string_view text);
/// 12, -3, 0x1f, 0f3F800000, 0d3FF0000000000000, as bits. Throws simt::Unsupported.
uint64_t parse_number(std::string_view text);
bool is_number(std::string_view text);

}  // namespace wide::ptx
