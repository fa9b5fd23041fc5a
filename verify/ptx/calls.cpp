// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions that nvcc did not inline. Each is decoded once into its kernel's code, with registers
// of its own; parameters and results are slots of local memory that a call copies. Recursion would
// need registers for every depth: it is refused.
#include <algorithm>

#include "verify/ptx/kernel_decoder.hpp"
#include "verify/ptx/text.hpp"

namespace wide::ptx {

namespace {

/// ".param .align 8 .b8 name[16]" or ".param .b32 name".
struct Declaration {
  std::string name;
  int64_t bytes = 0, alignment = 1;
};

Declaration parse_declaration(std::string_view text) {
  Declaration d;
  const std::vector<std::string> all = words(text);
  int64_t element = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == ".align" && i + 1 < all.size()) d.alignment = std::stoll(all[i + 1]);
    if (all[i][0] != '.') continue;
    if (const auto type = parse_type(std::string_view(all[i]).substr(1))) element = type->bits / 8;
  }
  d.name = all.back();
  d.bytes = element;
  if (const size_t bracket = d.name.find('['); bracket != std::string::npos) {
    d.bytes *= std::stoll(d.name.substr(bracket + 1));
    d.name.resize(bracket);
  }
  d.alignment = std::max(d.alignment, element);
  return d;
}

/// Lane by lane, from one slot of local memory to another.
void copy_local(Step& step) {
  const size_t each = step.warp.local.size() / simt::kLanes;
  const auto to = static_cast<size_t>(step.in.numbers[0]),
             from = static_cast<size_t>(step.in.numbers[1]);
  for_lanes(step.mask, [&](int lane) {
    std::byte* base = step.warp.local.data() + static_cast<size_t>(lane) * each;
    std::memcpy(base + to, base + from, static_cast<size_t>(step.in.numbers[2]));
  });
}

void enter(Step& step) {
  step.warp.split(step.path, step.mask);  // the other lanes go on behind the call
  step.path.calls.push_back(step.path.pc);
  step.path.pc = step.in.target;
}

/// __assertfail ends the launch.
void fail(Step& step) {
  const std::string text =
      "assertion failed, " + to_string(step.warp.thread(std::countr_zero(step.mask)));
  step.launch().report(simt::FindingKind::launch, step.block(), text, step.in.at);
  throw simt::Fault(simt::Fault::Kind::trap, text + " " + to_string(step.in.at));
}

}  // namespace

KernelDecoder::Slot KernelDecoder::new_slot(int64_t bytes, int64_t alignment) {
  const int64_t at = (kernel_.local_bytes_ + alignment - 1) / alignment * alignment;
  kernel_.local_bytes_ = (at + bytes + 15) / 16 * 16;
  return {at, bytes};
}

void KernelDecoder::declare_parameter(std::string_view declaration) {
  const Declaration d = parse_declaration(declaration);
  const Slot slot = new_slot(d.bytes, d.alignment);
  slots_[d.name] = slot;
  local_symbols_[d.name] = kLocalWindow + static_cast<uint64_t>(slot.offset);
}

KernelDecoder::Function& KernelDecoder::function(const std::string& name) {
  const auto [found, is_new] = functions_.try_emplace(name);
  if (!is_new) return found->second;
  const auto text = symbols_.functions.find(name);
  if (text == symbols_.functions.end()) refuse("call of " + name + ", which has no body here");
  Function& f = found->second;
  f.text = &text->second;
  const std::string& header = f.text->header;
  const size_t at = header.find(name);
  const size_t open = header.find('(', at), close = header.find(')', at);
  for (const std::string& one :
       split(std::string_view(header).substr(open + 1, close - open - 1), ',')) {
    const Declaration d = parse_declaration(one);
    f.formals.push_back(new_slot(d.bytes, d.alignment));
    local_symbols_[d.name] = kLocalWindow + static_cast<uint64_t>(f.formals.back().offset);
  }
  if (const size_t result = header.find('('); result < at) {
    const Declaration d = parse_declaration(
        std::string_view(header).substr(result + 1, header.find(')') - result - 1));
    f.result = new_slot(d.bytes, d.alignment);
    f.has_result = true;
  }
  waiting_.push_back(name);
  return f;
}

void KernelDecoder::copy_slot(Slot to, Slot from) {
  Instruction in;
  in.execute = copy_local;
  in.kind = simt::InstructionClass::move;
  in.numbers = {to.offset, from.offset, std::min(to.bytes, from.bytes), 0};
  in.at = at_;
  in.text = "parameter of a call";
  kernel_.code_.push_back(std::move(in));
}

/// "(result), name, (a, b)", with or without result and arguments.
void KernelDecoder::call(std::string_view text) {
  std::vector<std::string> parts = split(text, ',');
  const bool has_result = !parts.empty() && parts.front().starts_with('(');
  const std::string name = parts.at(has_result ? 1 : 0);
  const size_t list = has_result ? 2 : 1;
  Instruction in;
  in.kind = simt::InstructionClass::control;
  in.at = at_;
  in.text = "call " + name;
  if (name == "__assertfail") {
    in.execute = fail;
    kernel_.code_.push_back(std::move(in));
    return;
  }
  if (name.starts_with('%')) refuse("call through a register");
  callees_[reading_].insert(name);
  const Function& f = function(name);
  const auto inner = [](const std::string& bracketed) {
    return split(std::string_view(bracketed).substr(1, bracketed.size() - 2), ',');
  };
  if (parts.size() > list) {
    const std::vector<std::string> actuals = inner(parts[list]);
    if (actuals.size() != f.formals.size())
      refuse("call of " + name + " with another number of arguments");
    for (size_t i = 0; i < actuals.size(); ++i) copy_slot(f.formals[i], slots_.at(actuals[i]));
  }
  in.execute = enter;
  in.flow = Flow::call;
  branches_.push_back({kernel_.code_.size(), name, {kEntries}});
  kernel_.code_.push_back(std::move(in));
  if (has_result) copy_slot(slots_.at(inner(parts[0]).at(0)), f.result);
}

void KernelDecoder::read_functions() {
  while (!waiting_.empty()) {
    reading_ = waiting_.back();
    waiting_.pop_back();
    const Function& f = functions_.at(reading_);
    if (f.has_result) {
      const std::string& header = f.text->header;
      const size_t open = header.find('(');
      const Declaration d =
          parse_declaration(std::string_view(header).substr(open + 1, header.find(')') - open - 1));
      local_symbols_[d.name] = kLocalWindow + static_cast<uint64_t>(f.result.offset);
    }
    labels_[{kEntries, reading_}] = static_cast<int32_t>(kernel_.code_.size());
    scopes_.clear();
    begin_scope();
    read_body(f.text->body);
  }
  require_no_recursion();
}

void KernelDecoder::require_no_recursion() const {
  for (const auto& [start, direct] : callees_) {
    std::set<std::string> reached;
    std::vector<std::string> open(direct.begin(), direct.end());
    while (!open.empty()) {
      const std::string next = open.back();
      open.pop_back();
      if (next == start) refuse("recursion of " + start);
      const auto more = callees_.find(next);
      if (!reached.insert(next).second || more == callees_.end()) continue;
      open.insert(open.end(), more->second.begin(), more->second.end());
    }
  }
}

}  // namespace wide::ptx
