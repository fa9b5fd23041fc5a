// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Joins of vector clocks. A barrier of a thousand threads joins a thousand clocks that mostly share
// one vector, and a wait joins the same vector into many equal ones: both are recognised by the
// vectors' addresses, so that only what differs is computed.
#include "verify/simt/clock.hpp"

#include <algorithm>

namespace wide::simt {

namespace {

using Times = Knowledge::Times;

bool holds(const Times& times, const Times& other) {
  // Whole vectors without an early end: the compiler turns it into vector instructions.
  unsigned exceeds = times.size() < other.size();
  const size_t size = std::min(times.size(), other.size());
  for (size_t i = 0; i < size; ++i) exceeds |= other[i] > times[i];
  return exceeds == 0;
}

void maximise(Times& times, const Times& other) {
  if (times.size() < other.size()) times.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) times[i] = std::max(times[i], other[i]);
}

/// The last join that made a new vector: the next lane's is the same.
struct Remembered {
  std::shared_ptr<Times> a, b, joined;
};

}  // namespace

void Knowledge::join(SharedTimes& times, const SharedTimes& other) {
  if (other == nullptr || other == times) return;
  if (times == nullptr) {
    times = other;
    return;
  }
  if (times.use_count() == 1) {
    maximise(*times, *other);
    return;
  }
  thread_local Remembered last;
  if (last.a == times && last.b == other) {
    times = last.joined;
    return;
  }
  if (holds(*times, *other)) return;
  SharedTimes joined = other;
  if (!holds(*other, *times)) {
    joined = std::make_shared<Times>(*times);
    maximise(*joined, *other);
  }
  last = {times, other, joined};
  times = std::move(joined);
}

bool Knowledge::includes(int64_t block, Epoch epoch) const {
  if (epoch.slot < 0) return true;
  if (others_ == nullptr) return false;
  const auto entry =
      std::lower_bound(others_->begin(), others_->end(), block,
                       [](const auto& other, int64_t wanted) { return other.first < wanted; });
  return entry != others_->end() && entry->first == block &&
         (*entry->second)[static_cast<size_t>(epoch.slot)] >= epoch.time;
}

void Knowledge::join(const Knowledge& other) {
  if (other.times_ != joined_ || joined_ == nullptr) {
    join(times_, other.times_);
    joined_ = other.times_;
  }
  join_others(other.others_);
}

void Knowledge::join(Epoch epoch, int num_slots) {
  if (epoch.slot < 0) return;
  const auto slot = static_cast<size_t>(epoch.slot);
  if (times_ == nullptr) {
    times_ = std::make_shared<Times>(static_cast<size_t>(num_slots));
  } else if ((*times_)[slot] >= epoch.time) {
    return;
  } else if (times_.use_count() > 1) {
    times_ = std::make_shared<Times>(*times_);
  }
  (*times_)[slot] = std::max((*times_)[slot], epoch.time);
}

Knowledge::Others& Knowledge::own_others() {
  if (others_ == nullptr) {
    others_ = std::make_shared<Others>();
  } else if (others_.use_count() > 1) {
    others_ = std::make_shared<Others>(*others_);
  }
  return *others_;
}

void Knowledge::join_others(const std::shared_ptr<Others>& others) {
  if (others == nullptr || others == others_) return;
  if (others_ == nullptr) {
    others_ = others;
    return;
  }
  Others merged;
  merged.reserve(others_->size() + others->size());
  auto mine = others_->begin();
  for (const auto& entry : *others) {
    while (mine != others_->end() && mine->first < entry.first) merged.push_back(*mine++);
    merged.push_back(entry);
    if (mine != others_->end() && mine->first == entry.first) {
      join(merged.back().second, (mine++)->second);
    }
  }
  merged.insert(merged.end(), mine, others_->end());
  others_ = std::make_shared<Others>(std::move(merged));
}

Knowledge Knowledge::exported(int64_t own_block) const {
  Knowledge result;
  result.others_ = others_;
  if (times_ == nullptr) return result;
  Others& others = result.own_others();
  const auto place =
      std::lower_bound(others.begin(), others.end(), own_block,
                       [](const auto& entry, int64_t wanted) { return entry.first < wanted; });
  if (place != others.end() && place->first == own_block) {
    join(place->second, times_);
  } else {
    others.insert(place, {own_block, times_});
  }
  return result;
}

void Knowledge::import(const Knowledge& exported, int64_t own_block) {
  join_others(exported.others_);
  if (others_ == nullptr) return;
  const auto own = std::find_if(others_->begin(), others_->end(),
                                [&](const auto& entry) { return entry.first == own_block; });
  if (own == others_->end()) return;
  // One's own block stays among one's times, so that nothing grows by passing round.
  const SharedTimes times = own->second;
  const auto index = own - others_->begin();
  Others& others = own_others();
  others.erase(others.begin() + index);
  join(times_, times);
}

}  // namespace wide::simt
