// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models of files, by their paths.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wide::bench {

/// Whether "model:NAME", or NAME, is a path: it has a slash, or ends as model files do.
bool is_model_file(const std::string& name);

/// Reads the file of "model:PATH" into the catalogue, once, with numbers for its symbolic extents.
/// Throws what the importer throws, and unsupported where the build has none.
void load_model_file(const std::string& op, const std::map<std::string, int64_t>& extents = {});

}  // namespace wide::bench
