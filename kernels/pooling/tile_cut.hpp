// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cuts x and y into tiles for blocks, as a pure function of the problem: as many whole images as a
// block can keep, fewer where that would leave multiprocessors idle, else a band of one, else a
// piece of its rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "wide/channels.hpp"

namespace wide::kernels {

constexpr int kTileBytes = 16 * 1024;  // four 16-byte copies per thread: enough in flight
constexpr int kEnoughTiles = 1024;     // about eight times an H200's multiprocessors
constexpr int kMaxOutputs = 8192;      // per tile: there may be more than inputs
constexpr int kMaxRuns = 1024;
constexpr int kTileThreads = 256;

/// The contiguous part of x's inputs to a tile.
enum class Run : uint8_t { tile, image, row };

/// How x and y are cut for blocks. Images are numbered (batch, member, channel).
struct Cut {
  int images = 1, rows = 1, columns = 1;  ///< of a tile's outputs, at most
  int in_rows = 1, in_columns = 1;        ///< that one image's outputs need, at most
  int bands = 1, strips = 1;              ///< tiles along the rows and columns of an image
  Run run = Run::row;
  int runs = 1, pitch = 0;  ///< of a tile in shared memory, in elements
  int lanes_x = 1, lanes_y = 1;
  int unrolled = 0;               ///< kernel size with specialised code; 0: none
  int vector = 0;                 ///< elements of a row that a thread loads at once; 0: one by one
  int group = 1;                  ///< neighbouring outputs of a thread
  int across = 1;                 ///< groups of a row
  bool has_full_windows = false;  ///< all have the same divisor
  int whole_lanes = 0;            ///< of the team of an image that is one window; 0: no such window
  bool has_whole_vectors = false;                        ///< whose vectors are single accesses
  int step_images = 0, step_rows = 0, step_columns = 0;  ///< between a thread's groups
  int64_t num_images = 0;
  bool is_joined = false;  ///< all images are at multiples of the channel's stride
  Divisor by_channels, by_members;
  Divisor32 by_strips, by_bands, by_chunks, by_in_rows, by_rows, by_across;
  int lanes() const { return lanes_x * lanes_y; }
};

/// The largest number in [1, limit] that fits, or 1; beyond a number that does not fit none does.
template <class Fits>
int largest(int64_t limit, const Fits& fits) {
  int64_t low = 1, high = std::min<int64_t>(limit, 0x7fffffff);
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (fits(static_cast<int>(middle))) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<int>(low);
}

/// Finds tiles for parameters that have x_strides, y_strides, numbers of images, and rows and
/// columns of positions; in a dtype with `size` elements in 16 bytes.
template <class Params>
class TileCutter {
 public:
  using Axis = decltype(Params::rows);

 protected:
  TileCutter(const Params& p, int size) : p_(p), size_(size) {
    cut_.num_images = p.batch * p.num_members * p.channels;
    cut_.by_channels = Divisor(p.channels);
    cut_.by_members = Divisor(p.num_members);
    cut_.is_joined = is_joined(p.x_strides) && is_joined(p.y_strides);
    const bool has_whole_rows = p.rows.in == 1 || p.x_strides.row == p.columns.in;
    const bool has_whole_images =
        has_whole_rows && cut_.is_joined &&
        (cut_.num_images == 1 || p.x_strides.channel == int64_t{p.rows.in} * p.columns.in);
    cut_.run = has_whole_images ? Run::tile : has_whole_rows ? Run::image : Run::row;
  }
  ~TileCutter() = default;

  /// The most positions that `count` neighbouring outputs take along an axis.
  virtual int extent(const Axis& axis, int count) const = 0;
  /// Whether a tile's outputs are few enough.
  virtual bool allows(int images, int rows, int columns) const {
    return int64_t{images} * rows * columns <= kMaxOutputs;
  }

  void cut_tiles() {
    const int rows = p_.rows.out, columns = p_.columns.out;
    if (fits(cut_.run, 1, rows, columns)) {
      const int64_t limit = std::min(cut_.num_images, enough_images());
      set(largest(limit, [&](int n) { return fits(cut_.run, n, rows, columns); }), rows, columns);
      return;
    }
    // A band is rows of one image, and each piece of one row is a run.
    if (cut_.run == Run::tile) cut_.run = Run::image;
    if (!fits(cut_.run, 1, 1, columns)) cut_.run = Run::row;
    const int most =
        fits(cut_.run, 1, 1, columns) ? columns : unit_ * largest(columns / unit_, [&](int n) {
                                                    return fits(cut_.run, 1, 1, n * unit_);
                                                  });
    set(1, largest(rows, [&](int n) { return fits(cut_.run, 1, n, most); }), most);
  }
  /// Runs of a tile's inputs, and elements between them: a run may begin and end within 16
  /// bytes.
  int64_t runs_of(Run run, int64_t images, int rows) const {
    if (run == Run::tile) return 1;
    return run == Run::image ? images : images * extent(p_.rows, rows);
  }
  int64_t pitch_of(Run run, int64_t images, int rows, int columns) const {
    const int64_t in_rows = run == Run::tile ? p_.rows.in : extent(p_.rows, rows);
    const int64_t length = run == Run::row
                               ? extent(p_.columns, columns)
                               : in_rows * p_.columns.in * (run == Run::tile ? images : 1);
    return (length + 2 * size_ - 2) / size_ * size_;
  }
  bool fits(Run run, int images, int rows, int columns) const {
    const int64_t runs = runs_of(run, images, rows);
    return runs <= kMaxRuns && allows(images, rows, columns) &&
           runs * pitch_of(run, images, rows, columns) * 16 <= int64_t{kTileBytes + 16} * size_;
  }

  const Params& p_;
  int size_;
  int unit_ = 1;  ///< strips of an image are whole units of columns; divides these
  Cut cut_;

 private:
  bool is_joined(const ChannelStrides& s) const {
    return (p_.num_members == 1 || s.member == p_.channels * s.channel) &&
           (p_.batch == 1 || s.batch == p_.num_members * p_.channels * s.channel);
  }
  /// So many images a tile that there are enough tiles, if each thread of a block has a copy.
  int64_t enough_images() const {
    const int64_t least = int64_t{kTileThreads} * size_;
    return std::max(cut_.num_images / kEnoughTiles,
                    (least - 1) / (int64_t{p_.rows.in} * p_.columns.in) + 1);
  }
  void set(int images, int rows, int columns) {
    cut_.bands = (p_.rows.out + rows - 1) / rows;
    cut_.strips = (p_.columns.out + columns - 1) / columns;
    cut_.images = images;
    cut_.rows = (p_.rows.out + cut_.bands - 1) / cut_.bands;
    const int units = (p_.columns.out - 1) / unit_ + 1;
    cut_.columns = std::min(p_.columns.out, (units + cut_.strips - 1) / cut_.strips * unit_);
    cut_.in_rows = extent(p_.rows, cut_.rows);
    cut_.in_columns = extent(p_.columns, cut_.columns);
    cut_.runs = static_cast<int>(runs_of(cut_.run, images, cut_.rows));
    cut_.pitch = static_cast<int>(pitch_of(cut_.run, images, cut_.rows, cut_.columns));
    cut_.by_chunks = Divisor32(cut_.pitch / size_);
    cut_.by_in_rows = Divisor32(cut_.in_rows);
    cut_.by_rows = Divisor32(cut_.rows);
    cut_.by_strips = Divisor32(cut_.strips);
    cut_.by_bands = Divisor32(cut_.bands);
  }
};

}  // namespace wide::kernels
