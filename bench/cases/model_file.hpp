// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models read from files, named by their paths.
#pragma once

#include <string>
#include <vector>

namespace wide::bench {

/// Whether "model:NAME", or NAME, is a path: it has a slash, or ends as model files do.
bool is_model_file(const std::string& name);

/// What a file leaves open, as given on the command line.
struct ModelFileOptions {
  std::vector<std::string> extents;       ///< NAME=NUMBER for symbolic extents
  std::vector<std::string> fixed_inputs;  ///< NAME=NUMBER: fills an input with one number
  std::string output;                     ///< the one to compute; empty: the only one
  bool empty() const { return extents.empty() && fixed_inputs.empty() && output.empty(); }
  /// The options again, each preceded by a space.
  std::string words() const;
};

/// Reads the file of "model:PATH" into the catalogue, once. Throws invalid_argument for options
/// without a valid number, whatever the importer throws, and unsupported if the build has none.
void load_model_file(const std::string& op, const ModelFileOptions& options = {});

}  // namespace wide::bench
