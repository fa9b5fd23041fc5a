// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From a kernel's text to instructions: registers and their scopes, symbols, labels, source lines.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "verify/ptx/kernel.hpp"

namespace wide::ptx {

class KernelDecoder {
 public:
  KernelDecoder(DecodedKernel& kernel, const KernelText& text, const Symbols& symbols);
  void decode();

 private:
  struct Shadowed {
    std::string name;
    bool existed = false;
    Lanes lanes;
  };
  /// A pair of braces, or a function's body. Of inlined assembly there are many, each with labels
  /// and registers of the same names.
  struct Scope {
    int64_t id = 0;
    std::vector<Shadowed> declared;
  };
  /// What a label is known by: its scope and its name. Functions begin at labels of their names.
  using Label = std::pair<int64_t, std::string>;
  static constexpr int64_t kEntries = -1;
  struct Branch {
    size_t instruction = 0;
    std::string label;
    std::vector<int64_t> scopes;  ///< those around it, the innermost last
  };

  void read_header();
  // Calls, in calls.cpp.
  struct Slot {
    int64_t offset = 0, bytes = 0;  ///< in local memory
  };
  struct Function {
    const KernelText* text = nullptr;
    std::vector<Slot> formals;
    Slot result;
    bool has_result = false;
  };
  Slot new_slot(int64_t bytes, int64_t alignment);
  void declare_parameter(std::string_view declaration);
  void call(std::string_view text);
  void copy_slot(Slot to, Slot from);
  Function& function(const std::string& name);
  void read_functions();
  void require_no_recursion() const;

  void place_shared();
  void place_one_shared(const std::string& declaration);
  void place_local();
  void read_body(const std::string& body);
  void begin_scope();
  void end_scope();
  void set_label(std::string name);
  void branch_to(std::string label);
  void resolve_branches();
  void location(std::string_view line);
  void statement(std::string_view text);
  void directive(std::string_view text);
  void declare(const std::string& name, bool is_wide);
  Lanes new_register(bool is_wide);
  Lanes constant(uint64_t value);
  Argument argument(std::string_view text);
  Lanes lanes(std::string_view text);
  uint64_t symbol(const std::string& name) const;
  void note_registers(Instruction& in) const;
  void note_products();
  void place_registers();
  [[noreturn]] void refuse(const std::string& why) const;

  DecodedKernel& kernel_;
  const KernelText& text_;
  const Symbols& symbols_;
  std::unordered_map<std::string, Lanes> registers_;
  std::vector<Scope> scopes_;
  int64_t num_scopes_ = 0;
  std::unordered_map<std::string, uint64_t> local_symbols_;  ///< shared, local, parameters
  std::unordered_map<uint64_t, Lanes> constants_;
  std::set<int32_t> products_;  ///< registers of some wgmma's D or A
  std::map<Label, int32_t> labels_;
  std::vector<Branch> branches_;
  std::unordered_map<std::string, Slot> slots_;  ///< of parameters, by name
  std::map<std::string, Function> functions_;
  std::vector<std::string> waiting_;  ///< functions to be decoded
  std::map<std::string, std::set<std::string>> callees_;
  std::string reading_;  ///< the function that is decoded; empty: the kernel
  simt::Location at_;
};

}  // namespace wide::ptx
