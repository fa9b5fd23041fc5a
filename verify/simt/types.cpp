// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Source lines as text.
#include "verify/simt/types.hpp"

#include <cstring>

namespace wide::simt {

std::string to_string(const Location& location) {
  if (location.file == nullptr) return "";
  const char* slash = std::strrchr(location.file, '/');
  const char* name = slash == nullptr ? location.file : slash + 1;
  return std::string(name) + ":" + std::to_string(location.line);
}

}  // namespace wide::simt
