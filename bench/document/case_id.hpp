// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "wide/catalog.hpp"

namespace wide::bench {

/// 16 hexadecimal digits: FNV-1a, 64 bits, of "op=..;version=..;axis=value;.." with axes sorted.
/// Not sha256 of JSON, as was planned: users' files have these, and ids that nobody forges need no
/// more.
std::string case_id(const catalog::PrimitiveSpec& spec, const catalog::Case& point);

}  // namespace wide::bench
