// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a result besides its table: files, documents on standard output, the history.
#pragma once

#include <iosfwd>
#include <string>

#include "bench/commands.hpp"

namespace wide::bench {

/// At most one document goes to standard output, which is then nothing else. Throws
/// invalid_argument for more.
bool goes_to_stdout(const OutputOptions& output);

/// Throws io for a file whose folder is not there: what is measured would be lost.
void require_folders(const OutputOptions& output);

/// The outputs of one of several runs: `number` goes in front of the files' extensions and behind
/// the tag. Throws invalid_argument where a document is to go to standard output, which is one.
OutputOptions numbered(OutputOptions output, int64_t number);

/// results/<id>-<ops>.json: no other run has it, not even one of the same second. What is no good
/// in a file name, as the colons of times and models, goes. Empty where nothing is to be saved.
std::string saved_path(const OutputOptions& output, const Selection& selection, std::string id);

/// Writes every format asked for, to `saved` too, unless that is empty. A file that cannot be
/// written is reported and makes it false; the other outputs are written all the same.
bool write_outputs(const RunResult& result, const OutputOptions& output, const std::string& saved,
                   std::ostream& out, std::ostream& err);

/// Writes a document to each file, once to `out` for "-"; whether it did that.
bool write_documents(const std::string& text, const std::vector<std::string>& files,
                     std::ostream& out);

}  // namespace wide::bench
