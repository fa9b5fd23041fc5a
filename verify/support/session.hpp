// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What tests need to run workloads: a stream of one's own, scratch memory that is poisoned before
// every run, and a comparison of bits that says where they differ.
#pragma once

#include <string>
#include <string_view>

#include "wide/catalog.hpp"
#include "wide/context.hpp"
#include "wide/tensor.hpp"

namespace wide::test {

/// Runs prepared calls the way an engine does: on a stream that is not the default one, with a
/// workspace of exactly the bytes asked for, between guard bands.
class Session {
 public:
  explicit Session(const Context& context);

  const Context& context() const { return context_; }
  Stream stream() const { return stream_.get(); }
  /// Poisons outputs and workspace, runs once, and fails the test for any damage.
  catalog::MemberOutputs run(catalog::Workload& workload, const catalog::Prepared& prepared);
  catalog::MemberOutputs run(catalog::Workload& workload, std::string_view strategy);
  catalog::MemberOutputs run_members(catalog::Workload& workload,
                                     const catalog::PreparedMembers& prepared);

 private:
  template <class Call>
  catalog::MemberOutputs run_call(catalog::Workload& workload, catalog::OutputOf which,
                                  int64_t workspace_bytes, const Call& call);

  Context context_;
  OwnedStream stream_;
  VendorHandles handles_;
  Tensor scratch_;  ///< the workspace between its guard bands; kept, as memory is slow while fresh
};

/// Where two outputs differ bit for bit, "member 1, row 2, column 3: 0.5 and 0.25"; empty where
/// they do not.
std::string first_difference(const catalog::MemberOutputs& a, const catalog::MemberOutputs& b);
/// The same for member `i` of one and member `j` of the other.
std::string first_difference(const catalog::MemberOutputs& a, int64_t i,
                             const catalog::MemberOutputs& b, int64_t j);

}  // namespace wide::test
