// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Samples of large results lie beside the document, in r.json.samples.f64le: all columns
// contiguous, doubles with the lowest byte first. The document names the file once, and has a slice
// of it in place of each column:
//   "samples_file": {"file": "r.json.samples.f64le", "dtype": "f64le", "bytes": 163840, "sha256":
//   ".."}, "samples": {"time_ns": {"offset": 0, "count": 5120}, "round": {"offset": 5120, ..}}
// Within a document, all samples are in it, or all beside it, or all nowhere.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bench/document/result.hpp"

namespace wide::bench {

/// Where the samples of a result are written to.
enum class SamplesIn : uint8_t { automatic, document, side_car, nowhere };
/// "auto", "inline", "sidecar" or "none".
std::optional<SamplesIn> samples_in(std::string_view name);

/// `automatic` uses a side-car for results with more samples than these.
inline constexpr int64_t kMaxInlineOfOne = 4096, kMaxInline = 65536;

/// The file that a document's samples are first written to, beside it.
std::string pending_side_car(const std::string& document);

/// Whether a result's samples go beside the document.
bool wants_side_car(const RunResult& result, SamplesIn where);

/// The result's document, as text; its samples are in it or nowhere.
std::string document_text(const RunResult& result, SamplesIn where = SamplesIn::document);

/// Writes the result and, before it, its side-car if it gets one; the side-car of an earlier result
/// with this name is removed. Throws io. A device or pipe cannot have a side-car: samples that were
/// not explicitly requested there go into the document.
void write_result(const RunResult& result, const std::string& path, SamplesIn where);

/// Replaces the samples of a document by slices of a file of that name; returns the file's bytes.
std::string take_samples(nlohmann::ordered_json& document, const std::string& file);

/// Restores the samples if there is a side-car in `folder`, the document's own.
/// Without the file the slices stay. Throws invalid_argument for a file other than the one that
/// was written, a name that leads out of the folder, and slices beyond the file.
void restore_samples(nlohmann::ordered_json& document, const std::string& folder);
/// The same with the file's bytes, each of which may be used at most once.
void place_samples(nlohmann::ordered_json& document, std::string bytes);

}  // namespace wide::bench
