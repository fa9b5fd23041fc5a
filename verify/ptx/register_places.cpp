// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/ptx/register_places.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

namespace wide::ptx {

namespace {

/// Calls f(lanes, is_read, is_written) for every register that an instruction names.
template <class Function>
void for_registers(Instruction& in, const Function& f) {
  if (in.has_guard) f(in.guard, true, false);
  for (size_t i = 0; i < in.arguments.size(); ++i) {
    Argument& a = in.arguments[i];
    const bool is_written = i == 0 && in.has_result;
    const bool is_read = !is_written || in.continues_product;  // accumulators are both
    for (Lanes& part : a.parts) {
      if (part.number >= 0) f(part, is_read, is_written);
    }
    if (a.has_second && a.second.number >= 0) f(a.second, is_read, is_written);
  }
}

/// Numbers up to a limit.
class NumberSet {
 public:
  explicit NumberSet(int32_t limit) : words_((static_cast<size_t>(limit) + 63) / 64) {}
  void insert(int32_t n) { words_[static_cast<size_t>(n) / 64] |= bit(n); }
  bool contains(int32_t n) const { return (words_[static_cast<size_t>(n) / 64] & bit(n)) != 0; }
  void unite(const NumberSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  /// What goes in with `read` and with those of `behind` that are not `written`; whether it is
  /// more.
  bool flow(const NumberSet& read, const NumberSet& written, const NumberSet& behind) {
    uint64_t more = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
      const uint64_t now = read.words_[w] | (behind.words_[w] & ~written.words_[w]);
      more |= now & ~words_[w];
      words_[w] |= now;
    }
    return more != 0;
  }
  template <class Function>
  void each(const Function& f) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t left = words_[w]; left != 0; left &= left - 1)
        f(static_cast<int32_t>(w * 64 + static_cast<size_t>(std::countr_zero(left))));
    }
  }

 private:
  static uint64_t bit(int32_t n) { return uint64_t{1} << (n % 64); }
  std::vector<uint64_t> words_;
};

/// Instructions that run one after another.
struct Run {
  int32_t begin = 0, end = 0;
  std::vector<int32_t> next;  ///< runs
  NumberSet read;             ///< before this run writes it
  NumberSet written;          ///< by every lane that goes through
  NumberSet live;             ///< where it begins
};

/// The runs of a kernel's code and of the functions that it calls, which lie behind it.
class Runs {
 public:
  Runs(std::vector<Instruction>& code, int32_t num_registers);
  std::vector<Run> all;

 private:
  std::vector<int32_t> begins() const;
  int32_t at(int32_t instruction) const { return run_of_[static_cast<size_t>(instruction)]; }
  int32_t function_of(int32_t instruction) const;
  void link(Run& run);

  std::vector<Instruction>& code_;
  std::vector<int32_t> run_of_;                     ///< by instruction
  std::vector<int32_t> functions_;                  ///< where they begin, in order
  std::vector<std::pair<int32_t, int32_t>> calls_;  ///< the function, and where its callers go on
};

Runs::Runs(std::vector<Instruction>& code, int32_t num_registers) : code_(code) {
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].flow != Flow::call) continue;
    functions_.push_back(code[i].target);
    calls_.emplace_back(code[i].target, static_cast<int32_t>(i) + 1);
  }
  std::sort(functions_.begin(), functions_.end());
  const std::vector<int32_t> starts = begins();
  run_of_.resize(code.size());
  const NumberSet none(num_registers);
  for (size_t r = 0; r + 1 < starts.size(); ++r) {
    all.push_back({starts[r], starts[r + 1], {}, none, none, none});
    std::fill(run_of_.begin() + starts[r], run_of_.begin() + starts[r + 1],
              static_cast<int32_t>(r));
  }
  for (Run& run : all) {
    link(run);
    for (int32_t i = run.begin; i < run.end; ++i) {
      Instruction& in = code[static_cast<size_t>(i)];
      for_registers(in, [&](const Lanes& lanes, bool is_read, bool) {
        if (is_read && !run.written.contains(lanes.number)) run.read.insert(lanes.number);
      });
      for_registers(in, [&](const Lanes& lanes, bool, bool is_written) {
        if (is_written && !in.has_guard) run.written.insert(lanes.number);
      });
    }
  }
}

std::vector<int32_t> Runs::begins() const {
  std::set<int32_t> starts{0, static_cast<int32_t>(code_.size())};
  for (size_t i = 0; i < code_.size(); ++i) {
    if (code_[i].flow == Flow::next) continue;
    starts.insert(static_cast<int32_t>(i) + 1);
    if (code_[i].target >= 0) starts.insert(code_[i].target);
  }
  return {starts.begin(), starts.end()};
}

int32_t Runs::function_of(int32_t instruction) const {
  const auto above = std::upper_bound(functions_.begin(), functions_.end(), instruction);
  return above == functions_.begin() ? -1 : *std::prev(above);
}

/// A function goes on behind every call of it, whoever called: more than what happens, never less.
void Runs::link(Run& run) {
  const Instruction& last = code_[static_cast<size_t>(run.end) - 1];
  const auto go_on = [&](int32_t instruction) {
    if (instruction < static_cast<int32_t>(code_.size())) run.next.push_back(at(instruction));
  };
  if (last.flow == Flow::branch || last.flow == Flow::call) go_on(last.target);
  if (last.flow == Flow::back) {
    for (const auto& [function, behind] : calls_) {
      if (function == function_of(run.end - 1)) go_on(behind);
    }
  }
  if (last.flow == Flow::next || last.has_guard) go_on(run.end);
}

void find_live(std::vector<Run>& runs, int32_t num_registers) {
  for (bool is_more = true; is_more;) {
    is_more = false;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      NumberSet behind(num_registers);
      for (const int32_t next : run->next) behind.unite(runs[static_cast<size_t>(next)].live);
      is_more |= run->live.flow(run->read, run->written, behind);
    }
  }
}

/// The first and the last instruction of a register's life, with all between them.
struct Life {
  int32_t number = 0, first = -1, last = -1;
  bool is_wide = false;
  void reach(int32_t instruction) {
    first = last < 0 ? instruction : std::min(first, instruction);
    last = std::max(last, instruction);
  }
};

std::vector<Life> lives(std::vector<Instruction>& code, std::vector<Run>& runs,
                        int32_t num_registers, const std::set<int32_t>& kept) {
  std::vector<Life> all(static_cast<size_t>(num_registers));
  const auto life = [&](int32_t number) -> Life& { return all[static_cast<size_t>(number)]; };
  for (Run& run : runs) {
    run.live.each([&](int32_t n) { life(n).reach(run.begin); });
    for (const int32_t next : run.next)
      runs[static_cast<size_t>(next)].live.each([&](int32_t n) { life(n).reach(run.end - 1); });
    for (int32_t i = run.begin; i < run.end; ++i) {
      Instruction& in = code[static_cast<size_t>(i)];
      for_registers(in, [&](const Lanes& lanes, bool, bool) {
        Life& one = life(lanes.number);
        one.is_wide = lanes.is_wide;
        one.reach(i);
      });
    }
  }
  for (const int32_t number : kept) {
    life(number).reach(0);
    life(number).reach(static_cast<int32_t>(code.size()) - 1);
  }
  for (int32_t n = 0; n < num_registers; ++n) life(n).number = n;
  std::erase_if(all, [](const Life& one) { return one.last < 0; });
  std::sort(all.begin(), all.end(), [](const Life& a, const Life& b) { return a.first < b.first; });
  return all;
}

/// One after another, into the place that has been free for longest. Wide registers and others have
/// places of their own, so that two are the same or apart, which the execution's loops count on;
/// and an instruction's results are apart from what it reads last: its operands live as it runs.
RegisterPlaces assign(const std::vector<Life>& lives, int32_t num_registers) {
  struct Taken {
    int32_t last = 0;
    int64_t offset = 0;
    bool operator>(const Taken& other) const { return last > other.last; }
  };
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken[2];
  RegisterPlaces places{
      0, std::vector<int64_t>(static_cast<size_t>(num_registers), RegisterPlaces::kNone)};
  for (const Life& life : lives) {
    auto& queue = taken[life.is_wide];
    int64_t& offset = places.offsets[static_cast<size_t>(life.number)];
    if (!queue.empty() && queue.top().last < life.first) {
      offset = queue.top().offset;
      queue.pop();
    } else {
      offset = places.bytes;
      places.bytes += simt::kLanes * (life.is_wide ? 8 : 4);
    }
    queue.push({life.last, offset});
  }
  return places;
}

}  // namespace

RegisterPlaces share_places(std::vector<Instruction>& code, int32_t num_registers,
                            const std::set<int32_t>& kept) {
  Runs runs(code, num_registers);
  find_live(runs.all, num_registers);
  RegisterPlaces places = assign(lives(code, runs.all, num_registers, kept), num_registers);
  const auto number_of = [&](int32_t before) {
    return static_cast<int32_t>(places.offsets[static_cast<size_t>(before)] / kLanes4);
  };
  for (Instruction& in : code) {
    for_registers(in, [&](Lanes& lanes, bool, bool) {
      lanes.offset = static_cast<uint32_t>(places.offsets[static_cast<size_t>(lanes.number)]);
      lanes.number = number_of(lanes.number);
    });
    for (int32_t& number : in.reads) number = number_of(number);
    for (int32_t& number : in.writes) number = number_of(number);
  }
  return places;
}

}  // namespace wide::ptx
