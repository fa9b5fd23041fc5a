// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace wide::bench {

/// SHA-256 (FIPS 180-4) of the bytes, as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace wide::bench
