// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models of files, by their paths.
#pragma once

#include <string>
#include <vector>

namespace wide::bench {

/// Whether "model:NAME", or NAME, is a path: it has a slash, or ends as model files do.
bool is_model_file(const std::string& name);

/// What a file leaves open, as it is given on the command line.
struct ModelFileOptions {
  std::vector<std::string> extents;       ///< NAME=NUMBER of symbolic extents
  std::vector<std::string> fixed_inputs;  ///< NAME=NUMBER of which all of an input is
  std::string output;                     ///< the one that is looked at; empty: the only one
  bool empty() const { return extents.empty() && fixed_inputs.empty() && output.empty(); }
  /// The options again, each with a space in front.
  std::string words() const;
};

/// Reads the file of "model:PATH" into the catalogue, once. Throws invalid_argument for options
/// that say no number, what the importer throws, and unsupported where the build has none.
void load_model_file(const std::string& op, const ModelFileOptions& options = {});

}  // namespace wide::bench
