// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/case_id.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace wide::bench {

std::string case_id(const catalog::PrimitiveSpec& spec, const catalog::Case& point) {
  std::vector<std::string> axes;
  for (const auto& entry : point.entries())
    axes.push_back(entry.name + "=" + catalog::to_string(entry.value) + ";");
  std::sort(axes.begin(), axes.end());
  std::string text = "op=" + point.op() + ";version=" + std::to_string(spec.version) + ";";
  for (const std::string& axis : axes) text += axis;
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

}  // namespace wide::bench
