// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Command lines, run in this process, for the tests of wbench.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace wide::bench {

struct Outcome {
  int code = 0;
  std::string out, err;
};

/// Runs a command line; the words are separated by spaces, '' is an empty one.
Outcome wbench(const std::string& line);
/// The same into these streams; its exit code.
int wbench(const std::string& line, std::ostream& out, std::ostream& err);

/// A run that takes a moment, on the CPU.
inline const std::string kShort =
    " --device cpu -q --warmup-time 0 --rounds 3 --min-samples 3 --max-samples 6 --color never ";
inline const std::string kTiny = "--op linear --n 2 --batch 2 --d 8" + kShort;

/// What files of tuned choices call it, with that many members.
std::string tiny_key(int64_t num_members = 2);

}  // namespace wide::bench
