// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Regrouping and reordering axes that are not computed yet.
#include "host/import/onnx/view.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <string>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/onnx/axes.hpp"
#include "wide/graph.hpp"

namespace wide::onnx {

namespace {

/// An extent, or a multiple of the batch.
struct Extent {
  int64_t number = 1;
  bool has_batch = false;
};

Extent extent_of(const View::Axis& axis) {
  Extent all;
  for (const View::Part& part : axis) {
    if (part.extent == kBatch)
      all.has_batch = true;
    else
      all.number *= part.extent;
  }
  return all;
}

bool is_repeat(const View::Part& part) {
  return part.extent != kBatch && part.step == 0;
}

/// Elements of one sample as they are seen: no more than could be counted twice over.
int64_t seen_elements(const View& view) {
  int64_t all = 1;
  for (int i = 0; i < view.rank(); ++i) {
    const int64_t extent = extent_of(view.axis(i)).number;
    if (extent > (int64_t{1} << 40) / all)
      throw_unsupported("makes more elements than any device holds");
    all *= extent;
  }
  return all;
}

/// Merges contiguous parts.
View::Axis joined(const View::Axis& axis) {
  View::Axis out;
  for (const View::Part& part : axis) {
    if (part.extent == 1) continue;
    const bool lies_behind = !out.empty() && part.extent != kBatch && out.back().extent != kBatch &&
                             out.back().step == part.extent * part.step;
    if (lies_behind)
      out.back() = {out.back().extent * part.extent, part.step};
    else
      out.push_back(part);
  }
  return out;
}

/// Takes parts from the front of the rest until they make up an extent.
class Taker {
 public:
  Taker(std::deque<View::Part> left, int64_t batch) : left_(std::move(left)), batch_(batch) {}

  /// `next` is the extent after it, if any. None where the parts do not make it up.
  std::optional<View::Axis> take(Extent wanted, std::optional<Extent> next) {
    View::Axis axis;
    if (is_batch_next() && stands_for_batch(wanted)) {
      axis.push_back(pop());
      return axis;
    }
    while (wanted.number != 1 || wanted.has_batch) {
      if (left_.empty()) return std::nullopt;
      const View::Part part = left_.front();
      if (part.extent == kBatch) {
        if (wanted.has_batch)
          wanted.has_batch = false;
        else if (batch_ >= 1 && wanted.number % batch_ == 0)
          wanted.number /= batch_;
        else
          return std::nullopt;
        axis.push_back(pop());
      } else if (wanted.number % part.extent == 0) {
        wanted.number /= part.extent;
        axis.push_back(pop());
      } else if (part.extent % wanted.number == 0 && !wanted.has_batch) {
        const int64_t rest = part.extent / wanted.number;
        axis.push_back({wanted.number, part.step * rest});
        left_.front().extent = rest;
        wanted.number = 1;
      } else {
        return std::nullopt;
      }
    }
    // A batch of 1 belongs to either side: to this one where the rest is complete without it.
    const bool is_whole = next && left_.size() > 1 && !next->has_batch && batch_ == 1 &&
                          is_batch_next() && left_[1].extent == next->number && next->number != 1;
    if (is_whole) axis.push_back(pop());
    return axis;
  }
  bool is_done() const { return left_.empty(); }

 private:
  bool is_batch_next() const { return !left_.empty() && left_.front().extent == kBatch; }
  bool stands_for_batch(const Extent& wanted) const {
    return wanted.has_batch ? wanted.number == 1 : wanted.number == batch_;
  }
  View::Part pop() {
    const View::Part part = left_.front();
    left_.pop_front();
    return part;
  }
  std::deque<View::Part> left_;
  int64_t batch_;
};

/// The wanted extents, of which one may be left open.
std::vector<Extent> resolve(const View& view, const Numbers& wanted, bool copies_zero,
                            int64_t batch) {
  WIDE_REQUIRE(wanted.shape.rank() == 1 && !wanted.values.empty(),
               "has a shape " + to_string(wanted.shape) + ", expected a list of extents");
  std::vector<Extent> extents;
  Extent known;
  int open = -1;
  for (size_t i = 0; i < wanted.values.size(); ++i) {
    Extent extent;
    if (is_batch(wanted, i)) {
      extent = {batch_multiple(wanted, i), true};
    } else if (to_integer(wanted, i) == 0 && copies_zero && static_cast<int>(i) < view.rank()) {
      extent = extent_of(view.axis(static_cast<int>(i)));
    } else {
      extent.number = to_integer(wanted, i);
    }
    const bool is_open = extent.number == -1 && open < 0;
    if (extent.number < 1 && !is_open)
      throw_unsupported("has extent " + std::to_string(extent.number) +
                        ", expected at least 1, or -1 once");
    if (is_open) open = static_cast<int>(i);
    WIDE_REQUIRE(is_open || known.number <= INT64_MAX / extent.number,
                 "makes more elements than can be counted");
    if (!is_open) known.number *= extent.number;
    known.has_batch = known.has_batch || (!is_open && extent.has_batch);
    extents.push_back(extent);
  }
  if (open < 0) return extents;
  // In a file whose batch has a number, literal extents may contain it, too.
  const int64_t seen = seen_elements(view);
  const bool is_literal = !known.has_batch && batch >= 1 && batch <= INT64_MAX / seen;
  const int64_t all = is_literal ? seen * batch : seen;
  if (all % known.number != 0) throw_unsupported("leaves an extent open that is not whole");
  extents[static_cast<size_t>(open)] = {all / known.number, !known.has_batch && !is_literal};
  return extents;
}

/// Neighbours that stay neighbours, as one: how many elements, and their place in the end.
struct Block {
  int64_t extent = 1;
  int place = 0;
};

void join_neighbours(std::vector<Block>& blocks) {
  std::vector<Block> joined;
  for (const Block& block : blocks) {
    const bool continues = !joined.empty() && block.place == joined.back().place + 1;
    if (!continues) {
      joined.push_back(block);
      continue;
    }
    joined.back().extent *= block.extent;
    for (std::vector<Block>* all : {&joined, &blocks})
      for (Block& other : *all) other.place -= other.place > joined.back().place ? 1 : 0;
  }
  blocks = std::move(joined);
}

/// Parts as they lie, each with its place in the wanted order.
std::vector<Block> blocks_of(const View::Axis& parts) {
  std::vector<std::pair<View::Part, int>> lying;
  for (const View::Part& part : parts) lying.emplace_back(part, static_cast<int>(lying.size()));
  std::sort(lying.begin(), lying.end(),
            [](const auto& a, const auto& b) { return a.first.step > b.first.step; });
  std::vector<Block> blocks;
  for (const auto& [part, place] : lying) blocks.push_back({part.extent, place});
  join_neighbours(blocks);
  return blocks;
}

View::Copy in_order(const std::vector<Block>& lying) {
  std::vector<int64_t> from{kBatch}, order(lying.size() + 1);
  for (size_t i = 0; i < lying.size(); ++i) {
    from.push_back(lying[i].extent);
    order[static_cast<size_t>(lying[i].place) + 1] = static_cast<int64_t>(i) + 1;
  }
  return {Shape(from), Dims(order)};
}

/// Exchanges two neighbouring runs of blocks such that the fewest blocks are left, at least one
/// fewer: some block always lies in front of the one that it is to follow, or behind it.
View::Copy brought_nearer(std::vector<Block>& lying) {
  std::vector<Block> best = lying;
  std::array<size_t, 3> cuts{};
  for (size_t i = 0; i < lying.size(); ++i)
    for (size_t k = i + 1; k < lying.size(); ++k)
      for (size_t end = k + 1; end <= lying.size(); ++end) {
        std::vector<Block> tried = lying;
        const auto place = [&](size_t of) { return tried.begin() + static_cast<int64_t>(of); };
        std::rotate(place(i), place(k), place(end));
        join_neighbours(tried);
        if (tried.size() < best.size()) best = tried, cuts = {i, k, end};
      }
  std::vector<int64_t> from{kBatch}, order{0};
  const std::array<size_t, 5> bounds{0, cuts[0], cuts[1], cuts[2], lying.size()};
  std::array<int64_t, 4> axis{};
  for (size_t run = 0; run < 4; ++run) {
    int64_t extent = 1;
    for (size_t i = bounds[run]; i < bounds[run + 1]; ++i) extent *= lying[i].extent;
    axis[run] = static_cast<int64_t>(from.size());
    from.push_back(extent);
  }
  for (const size_t run : {0, 2, 1, 3}) order.push_back(axis[run]);
  lying = best;
  return {Shape(from), Dims(order)};
}

}  // namespace

View View::of(std::vector<Axis> axes) {
  View view;
  for (Axis& axis : axes) {
    axis = joined(axis);
    for (const Part& part : axis) view.elements_ *= part.step == 0 ? 1 : part.extent;
  }
  view.axes_ = std::move(axes);
  return view;
}

View View::of(const Shape& shape) {
  View view;
  int64_t step = 1;
  for (int i = shape.rank(); i-- > 0;) {
    Axis axis;
    if (shape[i] == kBatch)
      axis.push_back({kBatch, 0});
    else if (shape[i] != 1)
      axis.push_back({shape[i], step});
    step *= shape[i] == kBatch ? 1 : shape[i];
    view.axes_.insert(view.axes_.begin(), std::move(axis));
  }
  view.elements_ = step;
  return view;
}

Numbers View::extents() const {
  Numbers out{{rank()}, kInt64, {}};
  for (const Axis& axis : axes_) {
    const Extent extent = extent_of(axis);
    out.values.push_back(extent.has_batch ? batch_number(extent.number)
                                          : static_cast<long double>(extent.number));
  }
  return out;
}

std::optional<Shape> View::in_place() const {
  if (rank() < 1 || rank() >= kMaxRank || axes_[0] != Axis{{kBatch, 0}}) return std::nullopt;
  std::vector<int64_t> extents{kBatch};
  int64_t behind = elements_;
  for (int i = 1; i < rank(); ++i) {
    const Extent extent = extent_of(axis(i));
    for (const Part& part : axis(i)) {
      if (is_repeat(part)) return std::nullopt;
      behind /= part.extent;
      if (part.step != behind) return std::nullopt;
    }
    extents.push_back(extent.number);
  }
  return Shape(extents);
}

std::optional<View::Copies> View::copies() const {
  if (rank() < 1 || rank() >= kMaxRank || axes_[0] != Axis{{kBatch, 0}}) return std::nullopt;
  Axis parts;
  std::vector<int64_t> to{kBatch};
  for (int i = 1; i < rank(); ++i) {
    parts.insert(parts.end(), axis(i).begin(), axis(i).end());
    to.push_back(extent_of(axis(i)).number);
  }
  if (std::any_of(parts.begin(), parts.end(), is_repeat)) return std::nullopt;
  Copies all{{}, Shape(to)};
  std::vector<Block> lying = blocks_of(parts);
  constexpr size_t kMostBlocks = 16;  // more than any network moves; each takes a copy
  if (lying.size() > kMostBlocks) return std::nullopt;
  while (lying.size() + 1 >= kMaxRank) all.steps.push_back(brought_nearer(lying));
  all.steps.push_back(in_order(lying));
  return all;
}

View View::transposed(const Dims& order) const {
  View out = *this;
  for (int i = 0; i < order.rank(); ++i)
    out.axes_[static_cast<size_t>(i)] = axis(static_cast<int>(order[i]));
  return out;
}

View View::reshaped(const Numbers& wanted, bool copies_zero, int64_t batch) const {
  const std::vector<Extent> extents = resolve(*this, wanted, copies_zero, batch);
  Axis all;
  for (const Axis& axis : axes_) all.insert(all.end(), axis.begin(), axis.end());
  all = joined(all);
  Taker taker({all.begin(), all.end()}, batch);
  View out;
  out.elements_ = elements_;
  for (size_t i = 0; i < extents.size(); ++i) {
    const auto next = i + 1 < extents.size() ? std::optional(extents[i + 1]) : std::nullopt;
    std::optional<Axis> axis = taker.take(extents[i], next);
    if (!axis) throw_unsupported("mixes axes with one another or with the batch");
    out.axes_.push_back(joined(*axis));
  }
  if (!taker.is_done()) throw_unsupported("leaves elements over");
  return out;
}

View View::squeezed(const std::vector<int64_t>& axes, int64_t batch) const {
  const std::vector<bool> marked = marked_axes(axes, rank());
  View out;
  out.elements_ = elements_;
  for (int i = 0; i < rank(); ++i) {
    const Extent extent = extent_of(axis(i));
    const bool is_one = axis(i).empty() || (extent.has_batch && extent.number * batch == 1);
    const bool is_squeezed = axes.empty() ? is_one : marked[static_cast<size_t>(i)];
    if (!is_squeezed) {
      out.axes_.push_back(axis(i));
      continue;
    }
    if (extent.has_batch) throw_unsupported("squeezes the batch");
    WIDE_REQUIRE(axis(i).empty(),
                 "squeezes axis " + std::to_string(i) + ", expected an extent of 1");
  }
  return out;
}

View View::unsqueezed(const std::vector<int64_t>& axes) const {
  const int to = rank() + static_cast<int>(axes.size());
  WIDE_REQUIRE(to <= 2 * kMaxRank, "makes " + counted(to, "axis", "axes"));
  const std::vector<bool> marked = marked_axes(axes, to);
  View out;
  out.elements_ = elements_;
  for (int i = 0, from = 0; i < to; ++i)
    out.axes_.push_back(marked[static_cast<size_t>(i)] ? Axis{} : axis(from++));
  return out;
}

View View::without(int axis) const {
  View out = *this;
  out.axes_.erase(out.axes_.begin() + axis);
  return out;
}

View View::repeated(const Numbers& wanted, int64_t batch) const {
  const int count = static_cast<int>(wanted.values.size());
  WIDE_REQUIRE(count <= 2 * kMaxRank, "makes " + counted(count, "axis", "axes"));
  View out = *this;
  while (out.rank() < count) out.axes_.insert(out.axes_.begin(), Axis{});
  for (int i = 0; i < count; ++i) {
    Axis& own = out.axes_[static_cast<size_t>(i + out.rank() - count)];
    const auto place = static_cast<size_t>(i);
    const Extent extent = extent_of(own);
    if (is_batch(wanted, place)) {
      const bool is_same = extent.has_batch && extent.number == batch_multiple(wanted, place);
      if (!is_same) throw_unsupported("repeats elements for each sample");
      continue;
    }
    const int64_t number = to_integer(wanted, place);
    const bool is_same =
        extent.has_batch ? number == batch * extent.number : number == extent.number;
    if (number == 1 || is_same) continue;
    if (!own.empty() || number < 1)
      throw_unsupported("makes an extent of " + std::to_string(number) + " of another than 1");
    own.push_back({number, 0});
    (void)seen_elements(out);
  }
  return out;
}

View View::once() const {
  View out = *this;
  for (Axis& parts : out.axes_) {
    std::erase_if(parts, is_repeat);
    parts = joined(parts);
  }
  return out;
}

std::optional<View::Cut> View::cut(int axis) const {
  const Axis& parts = this->axis(axis);
  if (parts.size() != 1 || parts[0].step == 0) return std::nullopt;
  const auto [extent, step] = parts[0];
  return Cut{elements_ / (extent * step), extent, step};
}

View View::resized(int axis, int64_t extent) const {
  View out = *this;
  const Part own = this->axis(axis)[0];
  for (Axis& parts : out.axes_) {
    for (Part& part : parts) {
      if (part.extent != kBatch && part.step > own.step)
        part.step = part.step / own.extent * extent;
    }
  }
  out.axes_[static_cast<size_t>(axis)][0].extent = extent;
  out.elements_ = elements_ / own.extent * extent;
  for (Axis& parts : out.axes_) parts = joined(parts);
  return out;
}

View View::opened(int axis) const {
  View out = *this;
  out.axes_[static_cast<size_t>(axis)] = {{1, elements_}};
  return out;
}

}  // namespace wide::onnx
