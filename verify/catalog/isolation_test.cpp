// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// N members that run as one must stay N members: what one computes depends, bit for bit, on its own
// operands only. No reference and no tolerance is needed to say so, hence none can hide a leak.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>

#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/session.hpp"
#include "wide/convert.hpp"

namespace wide::test {

namespace {

using catalog::Case;
using catalog::MemberOutputs;
using catalog::PrimitiveSpec;
using catalog::WorkloadOptions;

constexpr int64_t kMembers = 5;

/// Output of one strategy for one way to lay out and fill the operands.
struct Run {
  std::function<MemberOutputs(int64_t num_members, const WorkloadOptions& options)> of;
  std::string name;
  bool is_vendors = false;

  MemberOutputs operator()(int64_t num_members, const WorkloadOptions& options) const {
    return of(num_members, options);
  }
  /// kMembers as they come. Every property compares with these: run by the first alone.
  const MemberOutputs& plain() const {
    static std::map<std::string, MemberOutputs> all;
    const auto known = all.find(name);
    return known != all.end() ? known->second : all.emplace(name, of(kMembers, {})).first->second;
  }
};
/// A property of one strategy on one problem.
using Property = std::function<void(const Run& run)>;

WorkloadOptions with_ids(std::vector<int64_t> ids) {
  WorkloadOptions options;
  options.member_ids = std::move(ids);
  return options;
}

/// One strategy on one problem.
struct Subject {
  const PrimitiveSpec* spec = nullptr;
  std::string strategy;
  bool is_vendors = false;  ///< a vendor's library computes it, or may: `sequential` has a choice
  int64_t size = 0;
  Values words;
  bool has_vectors = false;  ///< features of whole 16 bytes

  Case with(int64_t num_members) const {
    return has_vectors ? vector_case(*spec, num_members, size, words)
                       : odd_case(*spec, num_members, size, words);
  }
};

/// Every word that is no default, by itself; the first entry has none.
std::vector<Values> single_words(const PrimitiveSpec& spec) {
  std::vector<Values> variants{{}};
  for (const auto& axis : spec.axes) {
    for (const std::string_view word : axis.words) {
      const catalog::AxisValue value = std::string(word);
      if (value != axis.default_value) variants.push_back({{std::string(axis.name), value}});
    }
  }
  return variants;
}

/// Two words of different axes: dtypes come with all others, some of which go with 16 bits only.
std::vector<Values> word_pairs(const PrimitiveSpec& spec, bool all) {
  const std::vector<Values> singles = single_words(spec);
  std::vector<Values> pairs;
  for (const Values& first : singles) {
    for (const Values& second : singles) {
      const bool is_pair =
          !first.empty() && !second.empty() && first.front().first != second.front().first;
      if (is_pair && (all || first.front().first == "dtype")) {
        pairs.push_back({first.front(), second.front()});
      }
    }
  }
  return pairs;
}

/// A pair with a dtype and a third word: what is quantised, and may be rounded.
std::vector<Values> word_triples(const PrimitiveSpec& spec) {
  std::vector<Values> triples;
  for (const Values& pair : word_pairs(spec, false)) {
    for (const Values& third : single_words(spec)) {
      const bool is_new = !third.empty() && third.front().first > pair.back().first &&
                          third.front().first != pair.front().first;
      if (!is_new) continue;
      triples.push_back({pair.front(), pair.back(), third.front()});
    }
  }
  return triples;
}

/// What the strategy can run of the variants, in two sizes: one below and one above the tiles and
/// vectors of kernels. Where large cases are too many values, the smaller only.
std::vector<Subject> subjects_of(const Context& context, const PrimitiveSpec& spec,
                                 const catalog::StrategyInfo& strategy,
                                 const std::vector<Values>& variants, bool has_vectors = false) {
  const std::string name(strategy.name);
  const auto is_a_vendors = [](const catalog::StrategyInfo& other) {
    return other.kind == catalog::StrategyKind::vendor;
  };
  const bool is_vendors = strategy.device == DeviceType::cuda &&
                          strategy.kind != catalog::StrategyKind::hand_written &&
                          std::any_of(spec.strategies.begin(), spec.strategies.end(), is_a_vendors);
  std::vector<Subject> result;
  for (const Values& words : variants) {
    result.push_back({&spec, name, is_vendors, has_vectors ? 3 : 7, words, has_vectors});
    if (affords_large_cases(spec)) {
      result.push_back({&spec, name, is_vendors, 67, words, has_vectors});
    }
  }
  std::erase_if(result, [&](const Subject& subject) {
    const Case point = subject.with(kMembers);
    if (!spec.impossible_reason(point).empty()) return true;
    const auto workload = spec.make_workload(context, point, {});
    return !workload->unsupported_reason(subject.strategy).empty();
  });
  return result;
}

/// Whose strategies a property is of. Where members become one result they meet by definition.
enum class Of : uint8_t { all, separate, joined };

/// Every strategy with every word; a kernel that no single word lets run, with a dtype and a word,
/// with features of whole 16 bytes besides, or with one word more.
std::vector<Subject> subjects(const Context& context, Of which) {
  std::vector<Subject> result;
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    if (which != Of::all && spec->joins_members != (which == Of::joined)) continue;
    for (const auto& strategy : spec->strategies) {
      if (strategy.device != context.device().type) continue;
      auto found = subjects_of(context, *spec, strategy, single_words(*spec));
      if (found.empty() && strategy.kind == catalog::StrategyKind::hand_written) {
        found = subjects_of(context, *spec, strategy, word_pairs(*spec, false));
        if (found.empty()) {
          found = subjects_of(context, *spec, strategy, word_pairs(*spec, true), true);
          found.resize(std::min<size_t>(found.size(), 4));  // of hundreds
        }
        if (found.empty()) found = subjects_of(context, *spec, strategy, word_triples(*spec));
        INFO(spec->name << " " << strategy.name << " is run by no case");
        CHECK((!found.empty() || context.info().compute_capability != 90));  // wgmma's alone
      }
      result.insert(result.end(), found.begin(), found.end());
    }
  }
  return result;
}

Run run_of(const Context& context, Session& session, const Subject& subject) {
  const auto run = [&](int64_t num_members, const WorkloadOptions& options) {
    WorkloadOptions placed = options;
    if (subject.has_vectors) {  // another kernel stands in where places are not whole, too
      placed.misalign_elements *= kVectorElements;
      placed.row_padding *= kVectorElements;
    }
    const auto workload = subject.spec->make_workload(context, subject.with(num_members), placed);
    return session.run(*workload, subject.strategy);
  };
  return {run,
          to_string(context.device()) + " " + describe(*subject.spec, subject.with(kMembers)) +
              " --strategy " + subject.strategy,
          subject.is_vendors};
}

void for_every_strategy(const Context& context, const Property& property, Of which) {
  Session session(context);
  const std::vector<Subject> all = subjects(context, which);
  const size_t num_primitives = primitives_to_test().size();
  if (num_primitives > 1) {
    CHECK(all.size() >= (which == Of::joined ? 2 : 2 * (num_primitives - 1)));
  } else if (which == Of::all) {
    CHECK(!all.empty());
  }
  for (const Subject& subject : all) {
    const Run run = run_of(context, session, subject);
    INFO(run.name);
    property(run);
  }
}

void poison_stays_where_it_is(const Run& run) {
  const MemberOutputs& clean = run.plain();
  std::vector<int64_t> members{2};
  if (!wants_small_cases()) members.insert(members.end(), {0, kMembers - 1});
  for (const int64_t poisoned : members) {
    WorkloadOptions options;
    options.poisoned_member = poisoned;
    const MemberOutputs dirty = run(kMembers, options);
    for (int64_t m = 0; m < kMembers; ++m) {
      if (m != poisoned) CHECK(first_difference(clean, m, dirty, m) == "");
    }
    // Poison that reached nothing would prove nothing.
    const auto& member = dirty.members[static_cast<size_t>(poisoned)];
    int64_t num_finite = 0;
    for (int64_t i = 0; i < member.num_elements(); ++i) {
      num_finite += std::isnan(load_element(member.bytes.data(), dirty.dtype, i)) ? 0 : 1;
    }
    CHECK(num_finite == 0);
  }
}

void permuting_members_permutes_outputs(const Run& run) {
  const std::vector<int64_t> order{3, 0, 4, 2, 1};
  const MemberOutputs& straight = run.plain();
  const MemberOutputs permuted = run(kMembers, with_ids(order));
  for (int64_t m = 0; m < kMembers; ++m) {
    CHECK(first_difference(permuted, m, straight, order[static_cast<size_t>(m)]) == "");
  }
}

void copies_of_one_member_agree(const Run& run) {
  const MemberOutputs copies = run(kMembers, with_ids({7, 7, 7, 7, 7}));
  for (int64_t m = 1; m < kMembers; ++m) CHECK(first_difference(copies, 0, copies, m) == "");
}

/// Of our kernels: which of its own a library takes for another count of members is its business.
void one_member_alone_equals_itself_among_others(const Run& run) {
  if (run.is_vendors) return;
  const MemberOutputs& together = run.plain();
  for (int64_t m = 0; m < kMembers; m += wants_small_cases() ? kMembers - 1 : 1) {
    CHECK(first_difference(run(1, with_ids({m})), 0, together, m) == "");
  }
}

/// Likewise: a library may take another kernel at other addresses, or none.
void layout_changes_no_bit(const Run& run) {
  if (run.is_vendors) return;
  const MemberOutputs& contiguous = run.plain();
  // Addresses within 16 bytes, of a tensor and of its rows.
  std::vector<std::pair<int64_t, int64_t>> layouts{{1, 8}, {0, 1}};
  if (!wants_small_cases()) layouts.insert(layouts.end(), {{3, 8}, {8, 0}, {2, 1}, {0, 8}});
  for (const auto& [misalign, padding] : layouts) {
    INFO("misalign " << misalign << ", row padding " << padding);
    WorkloadOptions options;
    options.misalign_elements = misalign;
    options.row_padding = padding;
    CHECK(first_difference(contiguous, run(kMembers, options)) == "");
  }
}

void seeds_and_members_differ(const Run& run) {
  const MemberOutputs& first = run.plain();
  WorkloadOptions other_seed;
  other_seed.seed = 43;
  const MemberOutputs second = run(kMembers, other_seed);
  for (int64_t m = 0; m < kMembers; ++m) {
    CHECK(first_difference(first, m, second, m) != "");
    for (int64_t other = 0; other < m; ++other) {
      CHECK(first_difference(first, m, first, other) != "");
    }
  }
}

void one_result_differs_by_seed(const Run& run) {
  WorkloadOptions other_seed;
  other_seed.seed = 43;
  const MemberOutputs& first = run.plain();
  CHECK(first.members.size() == 1);
  CHECK(first_difference(first, run(kMembers, other_seed)) != "");
}

/// Where the workload masks a member, that one's poison changes nothing; the first it never masks.
void poison_of_masked_members_reaches_nothing(const Run& run) {
  const MemberOutputs& clean = run.plain();
  const auto with_poison = [&](int64_t member) {
    WorkloadOptions options;
    options.poisoned_member = member;
    return run(kMembers, options);
  };
  CHECK(first_difference(clean, with_poison(0)) != "");
  CHECK(first_difference(clean, with_poison(1)) == "");
}

const Values kMasked{{"mask", std::string("some")}};

bool has_masks(const PrimitiveSpec& spec) {
  return std::any_of(spec.axes.begin(), spec.axes.end(),
                     [](const catalog::AxisInfo& axis) { return axis.name == "mask"; });
}

/// Every primitive whose members become one but for those that a mask leaves out, in every mode
/// and dtype.
void for_every_masked_ensemble(const Context& context) {
  Session session(context);
  int64_t runs = 0;
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    if (!spec->joins_members || !has_masks(*spec)) continue;
    std::vector<Values> variants;
    for (const Values& word : single_words(*spec)) {
      if (!word.empty() && word.front().first == "mask") continue;
      variants.push_back(kMasked);
      variants.back().insert(variants.back().end(), word.begin(), word.end());
    }
    for (const auto& strategy : spec->strategies) {
      if (strategy.device != context.device().type) continue;
      for (const Subject& subject : subjects_of(context, *spec, strategy, variants)) {
        const Run run = run_of(context, session, subject);
        INFO(run.name);
        poison_of_masked_members_reaches_nothing(run);
        ++runs;
      }
    }
  }
  CHECK((runs > 0 || primitives_to_test().size() == 1));
}

}  // namespace

TEST_CASE("NaN in a masked member reaches no ensemble on the CPU") {
  for_every_masked_ensemble(Context::cpu());
}
TEST_CASE("NaN in a masked member reaches no ensemble on CUDA", "[gpu]") {
  for_every_masked_ensemble(require_cuda());
}

#define WIDE_ISOLATION_TEST(sentence, property, which)   \
  TEST_CASE(sentence " on the CPU") {                    \
    for_every_strategy(Context::cpu(), property, which); \
  }                                                      \
  TEST_CASE(sentence " on CUDA", "[gpu]") {              \
    for_every_strategy(require_cuda(), property, which); \
  }

WIDE_ISOLATION_TEST("NaN in one member reaches no other", poison_stays_where_it_is, Of::separate)
WIDE_ISOLATION_TEST("permuting members permutes outputs", permuting_members_permutes_outputs,
                    Of::separate)
WIDE_ISOLATION_TEST("copies of one member agree", copies_of_one_member_agree, Of::separate)
WIDE_ISOLATION_TEST("a member alone equals itself among others",
                    one_member_alone_equals_itself_among_others, Of::separate)
WIDE_ISOLATION_TEST("padding and alignment change no bit", layout_changes_no_bit, Of::all)
WIDE_ISOLATION_TEST("members and seeds differ in content", seeds_and_members_differ, Of::separate)
WIDE_ISOLATION_TEST("one result of all members differs by seed", one_result_differs_by_seed,
                    Of::joined)

}  // namespace wide::test
