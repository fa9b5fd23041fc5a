// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/sanitizers.hpp"

#include <dlfcn.h>

namespace wide::test {

namespace {

/// Calls LeakSanitizer's function of that name, where there is one.
void tell(const char* name) {
  if (void* function = ::dlsym(RTLD_DEFAULT, name)) reinterpret_cast<void (*)()>(function)();
}

}  // namespace

bool is_watched() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr ||
         ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

AllowedLeaks::AllowedLeaks() {
  tell("__lsan_disable");
}
AllowedLeaks::~AllowedLeaks() {
  tell("__lsan_enable");
}

}  // namespace wide::test
