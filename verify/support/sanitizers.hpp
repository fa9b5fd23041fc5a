// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a test asks about sanitizers, when it runs: the same program runs with them and without.
#pragma once

namespace wide::test {

/// Whether AddressSanitizer or ThreadSanitizer watches this process, whose library then is not
/// optimised.
bool is_watched();

/// What is allocated while this object lives may never be freed.
class AllowedLeaks {
 public:
  AllowedLeaks();
  ~AllowedLeaks();
  AllowedLeaks(const AllowedLeaks&) = delete;
};

}  // namespace wide::test
