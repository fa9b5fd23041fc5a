// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How rows are divided over ensemble's blocks, for launchers and for plans. `vector`: elements in
// 16 bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wide::kernels {

/// Threads of a row that is too short for more.
constexpr int kShortLanes = 8;
/// Threads of a block of several rows, and the most of any other.
constexpr int kShortThreads = 128, kMaxThreads = 256;
/// For votes: threads, and features of all rows of a block that are counted at a time.
constexpr int kVoteThreads = 256, kVoteCounts = 2048;

/// Threads per row, or per piece of it.
constexpr int ensemble_lanes(int64_t features, int64_t vector) {
  const int64_t vectors = (features + vector - 1) / vector;
  return vectors <= kShortLanes ? kShortLanes
         : vectors <= 16
             ? 16
             : static_cast<int>(std::min<int64_t>((vectors + 31) / 32 * 32, kMaxThreads));
}
/// Pieces per block.
constexpr int ensemble_pieces(int lanes) {
  return lanes <= 32 ? kShortThreads / lanes : 1;
}
constexpr int64_t ensemble_pieces_per_row(int64_t features, int64_t vector) {
  const int64_t length = std::min(features, ensemble_lanes(features, vector) * vector);
  return (features + length - 1) / length;
}
/// Blocks for non-empty rows.
constexpr int64_t ensemble_blocks(int64_t rows, int64_t features, int64_t vector) {
  const int pieces = ensemble_pieces(ensemble_lanes(features, vector));
  return (rows * ensemble_pieces_per_row(features, vector) + pieces - 1) / pieces;
}

/// Threads per member's row of votes: for four vectors each.
constexpr int vote_lanes(int64_t features, int64_t vector) {
  int lanes = 4;
  while (lanes < 32 && 4 * lanes * vector < features) lanes *= 2;
  return lanes;
}
/// Rows per block: a (row, member) pair per team, where there are few members.
constexpr int vote_rows(int64_t members, int64_t features, int64_t vector) {
  if (features > kVoteCounts) return 1;
  const int64_t at_once = kVoteThreads / vote_lanes(features, vector) / members;
  return static_cast<int>(std::clamp<int64_t>(std::min(at_once, kVoteCounts / features), 1, 16));
}
constexpr int64_t vote_blocks(int64_t members, int64_t rows, int64_t features, int64_t vector) {
  return (rows - 1) / vote_rows(members, features, vector) + 1;
}

}  // namespace wide::kernels
