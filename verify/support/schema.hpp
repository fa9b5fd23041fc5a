// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether a document fits a JSON Schema of ours. Compiled once: the validator takes long.
#pragma once

#include <string>

namespace wide::test {

/// "" where the document fits the schema of this file below the root of the sources, else the first
/// complaint.
std::string schema_complaint(const std::string& schema, const std::string& document);

}  // namespace wide::test
