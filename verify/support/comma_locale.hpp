// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A locale in which 1234.5 is "1.234,5", as that of Germany, the program's while this object lives.
// It is made here, since a machine may have none such.
#pragma once

#include <cstdlib>
#include <fstream>
#include <locale>

#include "verify/support/folder.hpp"
#include "verify/support/sanitizers.hpp"

namespace wide::test {

class CommaLocale {
 public:
  CommaLocale() {
    std::ofstream("commas.txt") << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                   "grouping 3;3\nEND LC_NUMERIC\n";
    // It warns of all that the locale lacks beside numbers; charmaps are of Debian's package
    // locales.
    (void)std::system("localedef --quiet --force --inputfile=commas.txt ./commas 2> warnings.txt");
    ::setenv("LOCPATH", std::filesystem::current_path().c_str(), 1);
    const AllowedLeaks leaks;  // glibc never frees what it makes of LOCPATH
    old_ = std::locale::global(std::locale("commas"));  // throws where there is none
  }
  ~CommaLocale() {
    std::locale::global(old_);
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;

 private:
  TemporaryFolder folder_;
  std::locale old_;
};

}  // namespace wide::test
