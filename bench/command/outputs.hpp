// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is done with a result besides its table: files, documents on standard output, the history.
#pragma once

#include <iosfwd>
#include <string>

#include "bench/command/options.hpp"

namespace wide::bench {

/// At most one document goes to standard output, and then nothing else does. Throws
/// invalid_argument for more.
bool goes_to_stdout(const OutputOptions& output);

/// The outputs of one of several runs: inserts `number` before the files' extensions and appends it
/// to the tag. Throws invalid_argument if a document is to go to standard output.
OutputOptions numbered(OutputOptions output, int64_t number);

/// results/<id>-<ops>.json: unique, even among runs of the same second. Characters that are invalid
/// in a file name, such as the colons of times and models, are removed; of ops that are too long
/// for one, the first and the number of the others are left: "linear+27". Empty if nothing is
/// saved.
std::string saved_path(const OutputOptions& output, const Selection& selection, std::string id);

/// Writes every requested format, and to `saved` unless that is empty. Returns false if a file
/// could not be written, which is reported; the other outputs are written all the same.
bool write_outputs(const RunResult& result, const OutputOptions& output, const std::string& saved,
                   std::ostream& out, std::ostream& err);

/// Writes to the file; "-" is `out`.
void write_document(const std::string& text, const std::string& file, std::ostream& out);
/// Writes a document to each file, and once to `out` for "-"; returns whether it wrote to `out`.
bool write_documents(const std::string& text, const std::vector<std::string>& files,
                     std::ostream& out);

}  // namespace wide::bench
