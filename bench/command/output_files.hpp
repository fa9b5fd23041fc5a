// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The files that a command line names, judged before any work: what is measured must not be lost,
// nor what is there.
#pragma once

#include <string>
#include <vector>
#include "bench/command/options.hpp"

namespace wide::bench {

struct OutputOptions;
struct RunOptions;

struct NamedFile {
  std::string option;  ///< or the argument that names it, for messages
  std::string path;    ///< "" and "-" are no files
};
using NamedFiles = std::vector<NamedFile>;

/// The documents and events of these options.
NamedFiles files_of(const OutputOptions& output);

/// Adds what load_named_results() reads for this name: a file, or those of a folder.
void add_results(NamedFiles& files, const std::string& option, const std::string& name);

/// Throws invalid_argument where two outputs are one file, of which one document would be left, or
/// where an output is an input: devices and pipes take several. Throws io for what evidently cannot
/// be written: what is measured would be lost.
void require_outputs(const NamedFiles& outputs, const NamedFiles& inputs = {});
/// The same for a run.
void require_outputs(const RunOptions& options);

/// Throws io where a result cannot be saved to `file`, whose folders are made, or to the history at
/// `store`, which is made if there is none.
void require_saving(const std::string& file, const std::string& store);

}  // namespace wide::bench
