// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How commands refer to a result: by its file, or by its name in the history.
#pragma once

#include <string>
#include <vector>

#include "bench/document/result_json.hpp"
#include "bench/history/history.hpp"

namespace wide::bench {

/// What --store gives, else WBENCH_HISTORY, else "results".
std::string store_or_default(const std::string& store);

/// The id of the run that is meant by
///   @last, @last~K   the newest run, or the K-th before it
///   @NAME            a tag, an id, or an unambiguous beginning of an id
///   git:REF          the newest run of a clean build of this commit: a hash, or what git in the
///                    current folder resolves REF to
/// Throws invalid_argument if there is none, or if several ids begin so.
std::string find_run(const HistoryStore& store, const std::string& name);

/// Throws invalid_argument if a run cannot have this tag.
void require_tag(const std::string& tag);

/// Whether a name refers to the history, not to a file: "./@x" is a file.
bool is_history_name(const std::string& name);

/// The result in a file, on standard input ("-"), or in the history at store_or_default(store).
RunResult load_named_result(const std::string& name, const std::string& store, Samples samples);

/// The same, or all results in a folder, ordered by file name, with the samples that are
/// available. Throws invalid_argument for a folder without any.
std::vector<RunResult> load_named_results(const std::string& name, const std::string& store);

}  // namespace wide::bench
