// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/ptx/kernel_decoder.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

#include "verify/ptx/register_places.hpp"
#include "verify/ptx/text.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::ptx {

namespace {

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

int64_t integer(std::string_view text) {
  int64_t value = 0;
  text = trim(text);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

constexpr int64_t kRegisters = 65536;   // of a multiprocessor
constexpr int kFirstWithoutHints = 90;  // of cp.async: kernels/arch/cp_async.cuh

/// A directive's numbers, such as ".maxntid 32, 4, 1"; none where it is absent.
std::vector<int64_t> numbers_in(const std::string& header, const std::string& name) {
  const size_t at = header.find(name + ' ');
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size(), end = header.find_first_of(".{", begin);
  std::vector<int64_t> numbers;
  for (const std::string& one : split(std::string_view(header).substr(begin, end - begin), ','))
    numbers.push_back(std::max<int64_t>(1, integer(one)));
  return numbers;
}

/// Their product; 0 where the directive is absent.
int64_t number_in(const std::string& header, const std::string& name) {
  const std::vector<int64_t> numbers = numbers_in(header, name);
  if (numbers.empty()) return 0;
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

/// ".shared .align 4 .b8 name[128]": what a declaration of an array says.
struct Array {
  std::string name;
  int64_t alignment = 1, bytes = 0;
};

Array parse_array(const std::string& declaration) {
  Array array;
  int64_t element = 1;
  const std::vector<std::string> all = words(declaration);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == ".align" && i + 1 < all.size()) array.alignment = integer(all[i + 1]);
    if (all[i][0] != '.') continue;
    if (const auto type = parse_type(std::string_view(all[i]).substr(1))) element = type->bits / 8;
  }
  const std::string& last = all.back();
  const size_t bracket = last.find('[');
  array.name = last.substr(0, bracket);
  array.bytes = element;
  if (bracket != std::string::npos)
    array.bytes *= integer(std::string_view(last).substr(bracket + 1));
  array.alignment = std::max(array.alignment, element);
  return array;
}

/// Which of two places a line of ".loc" is told by: helpers around single instructions are named by
/// their caller.
bool is_wrapper(const std::string& file) {
  return file.find("/arch/") != std::string::npos || file.find("/cuda") != std::string::npos;
}

/// The first argument of most; of these it is a number to be read.
bool begins_with_result(const Instruction& in, std::string_view opcode) {
  if (in.arguments.empty() || in.arguments[0].kind == Argument::Kind::memory) return false;
  if (opcode == "bar" || opcode == "barrier") return in.text.find(".red") != std::string::npos;
  return opcode != "nanosleep" && opcode != "setmaxnreg" && opcode != "pmevent";
}

}  // namespace

DecodedKernel::DecodedKernel(const KernelText& text, const Symbols& symbols) : name_(text.name) {
  KernelDecoder(*this, text, symbols).decode();
}

KernelDecoder::KernelDecoder(DecodedKernel& kernel, const KernelText& text, const Symbols& symbols)
    : kernel_(kernel), text_(text), symbols_(symbols) {}

void KernelDecoder::refuse(const std::string& why) const {
  throw simt::Unsupported("ptx: " + kernel_.name_ + " " + to_string(at_) + ": " + why);
}

void KernelDecoder::decode() {
  for (size_t s = 0; s < static_cast<size_t>(Special::count); ++s)
    registers_[std::string(name_of(static_cast<Special>(s)))] = new_register(false);
  read_header();
  place_shared();
  place_local();
  begin_scope();
  read_body(text_.body);
  read_functions();
  note_products();
  resolve_branches();
  place_registers();
}

void KernelDecoder::place_registers() {
  const auto count = static_cast<int32_t>(kernel_.register_bytes_ / kLanes4);
  const RegisterPlaces places = share_places(kernel_.code_, count, products_);
  kernel_.register_bytes_ = places.bytes;
  for (size_t s = 0; s < static_cast<size_t>(Special::count); ++s) {
    const int64_t offset = places.offsets[s];
    if (offset != RegisterPlaces::kNone)
      kernel_.specials_.emplace_back(static_cast<Special>(s), static_cast<size_t>(offset));
  }
}

void KernelDecoder::read_header() {
  const std::string& header = text_.header;
  kernel_.max_threads_ = static_cast<int>(number_in(header, ".maxntid"));
  const int64_t blocks = number_in(header, ".minnctapersm"), most = number_in(header, ".maxnreg");
  if (kernel_.max_threads_ > 0 && blocks > 0) {
    const int64_t share = kRegisters / (kernel_.max_threads_ * blocks);
    kernel_.registers_at_entry_ = static_cast<int>(std::min<int64_t>(share / 8 * 8, 255));
  } else {
    kernel_.registers_at_entry_ = static_cast<int>(most);
  }
  std::vector<int64_t> cluster = numbers_in(header, ".reqnctapercluster");
  if (!cluster.empty()) {
    cluster.resize(3, 1);
    kernel_.required_cluster_ = {static_cast<uint32_t>(cluster[0]),
                                 static_cast<uint32_t>(cluster[1]),
                                 static_cast<uint32_t>(cluster[2])};
  }
  const size_t open = header.find('('), close = header.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return;
  int64_t offset = 0;
  for (const std::string& one :
       split(std::string_view(header).substr(open + 1, close - open - 1), ',')) {
    const Array array = parse_array(one);
    offset = round_up(offset, array.alignment);
    kernel_.parameters_.push_back(
        {array.name, static_cast<int>(offset), static_cast<int>(array.bytes)});
    local_symbols_[array.name] = kParameterWindow + static_cast<uint64_t>(offset);
    offset += array.bytes;
  }
}

void KernelDecoder::place_one_shared(const std::string& declaration) {
  const Array array = parse_array(declaration);
  kernel_.static_shared_bytes_ = round_up(kernel_.static_shared_bytes_, array.alignment);
  local_symbols_[array.name] =
      simt::kSharedBase + static_cast<uint64_t>(kernel_.static_shared_bytes_);
  kernel_.static_shared_bytes_ += array.bytes;
}

/// Static shared memory comes first; the dynamic one, which has no size, begins behind all of it.
void KernelDecoder::place_shared() {
  const auto is_dynamic = [](const std::string& text) { return text.find(".extern") != text.npos; };
  const auto is_used = [&](const std::string& declaration) {
    return text_.body.find(parse_array(declaration).name) != std::string::npos;
  };
  for (const std::string& declaration : symbols_.shared) {
    if (!is_dynamic(declaration) && is_used(declaration)) place_one_shared(declaration);
  }
  size_t start = 0;
  while (start < text_.body.size()) {
    const size_t end = std::min(text_.body.find('\n', start), text_.body.size());
    const std::string_view line = trim(std::string_view(text_.body).substr(start, end - start));
    if (line.starts_with(".shared")) place_one_shared(std::string(line.substr(0, line.find(';'))));
    start = end + 1;
  }
  int64_t alignment = 16;
  for (const std::string& declaration : symbols_.shared) {
    if (is_dynamic(declaration) && is_used(declaration))
      alignment = std::max(alignment, parse_array(declaration).alignment);
  }
  kernel_.static_shared_bytes_ = round_up(kernel_.static_shared_bytes_, alignment);
  for (const std::string& declaration : symbols_.shared) {
    if (!is_dynamic(declaration)) continue;
    local_symbols_[parse_array(declaration).name] =
        simt::kSharedBase + static_cast<uint64_t>(kernel_.static_shared_bytes_);
  }
}

void KernelDecoder::place_local() {
  size_t at = text_.body.find(".local");
  for (; at != std::string::npos; at = text_.body.find(".local", at + 1)) {
    const size_t end = text_.body.find(';', at);
    const std::string declaration = text_.body.substr(at, end - at);
    if (declaration.find('[') == std::string::npos || declaration[6] != ' ') continue;
    const Array array = parse_array(declaration);
    kernel_.local_bytes_ = round_up(kernel_.local_bytes_, array.alignment);
    local_symbols_[array.name] = kLocalWindow + static_cast<uint64_t>(kernel_.local_bytes_);
    kernel_.local_bytes_ += array.bytes;
  }
  kernel_.local_bytes_ = round_up(kernel_.local_bytes_, 16);
}

void KernelDecoder::read_body(const std::string& body) {
  std::string pending;
  size_t start = 0;
  while (start < body.size()) {
    const size_t end = std::min(body.find('\n', start), body.size());
    const std::string_view line = trim(std::string_view(body).substr(start, end - start));
    start = end + 1;
    if (line.starts_with(".loc ") || line.starts_with(".loc\t")) {
      location(line);
      continue;
    }
    if (line.starts_with(".shared") || line.starts_with(".pragma")) continue;
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      // ".shared::cta" has no label.
      const bool is_single =
          (i == 0 || line[i - 1] != ':') && (i + 1 == line.size() || line[i + 1] != ':');
      const bool is_empty = trim(pending).empty();
      if (c == ';') {
        statement(trim(pending));
        pending.clear();
      } else if (c == '{' && is_empty) {
        begin_scope();
      } else if (c == '}' && is_empty) {
        end_scope();
      } else if (c == ':' && is_single &&
                 trim(pending).find_first_of(" \t{[%") == std::string_view::npos) {
        set_label(std::string(trim(pending)));
        pending.clear();
      } else {
        pending += c;
      }
    }
    if (!pending.empty()) pending += ' ';
  }
}

void KernelDecoder::begin_scope() {
  scopes_.push_back({num_scopes_++, {}});
}

void KernelDecoder::end_scope() {
  if (scopes_.size() == 1) refuse("a brace that nothing opened");
  for (const Shadowed& shadowed : scopes_.back().declared) {
    if (shadowed.existed) {
      registers_[shadowed.name] = shadowed.lanes;
    } else {
      registers_.erase(shadowed.name);
    }
  }
  scopes_.pop_back();
}

void KernelDecoder::set_label(std::string name) {
  const auto here = static_cast<int32_t>(kernel_.code_.size());
  if (!labels_.emplace(Label{scopes_.back().id, name}, here).second)
    refuse("label " + name + " twice in one scope");
}

void KernelDecoder::branch_to(std::string label) {
  Branch branch{kernel_.code_.size(), std::move(label), {}};
  for (const Scope& scope : scopes_) branch.scopes.push_back(scope.id);
  branches_.push_back(std::move(branch));
}

void KernelDecoder::resolve_branches() {
  for (Branch& branch : branches_) {
    auto found = labels_.end();
    for (; found == labels_.end() && !branch.scopes.empty(); branch.scopes.pop_back())
      found = labels_.find({branch.scopes.back(), branch.label});
    if (found == labels_.end()) refuse("no label " + branch.label);
    kernel_.code_[branch.instruction].target = found->second;
  }
}

void KernelDecoder::location(std::string_view line) {
  const std::vector<std::string> own = words(line);
  const auto file_of = [&](int64_t id) -> const std::string& {
    static const std::string none = "?";
    const auto found = symbols_.files.find(static_cast<int>(id));
    return found == symbols_.files.end() ? none : found->second;
  };
  int64_t file = integer(own.at(1)), number = integer(own.at(2));
  if (const size_t inlined = line.find("inlined_at");
      inlined != line.npos && is_wrapper(file_of(file))) {
    const std::vector<std::string> caller = words(line.substr(inlined));
    file = integer(caller.at(1));
    number = integer(caller.at(2));
  }
  if (number == 0) return;  // no line of its own: what was before still names the place
  at_ = {file_of(file).c_str(), static_cast<int>(number)};
}

Lanes KernelDecoder::new_register(bool is_wide) {
  Lanes lanes;
  lanes.offset = static_cast<uint32_t>(kernel_.register_bytes_);
  lanes.is_wide = is_wide;
  lanes.number = static_cast<int32_t>(kernel_.register_bytes_ / (simt::kLanes * 4));
  kernel_.register_bytes_ += simt::kLanes * (is_wide ? 8 : 4);
  return lanes;
}

void KernelDecoder::declare(const std::string& name, bool is_wide) {
  const auto outer = registers_.find(name);
  scopes_.back().declared.push_back(
      {name, outer != registers_.end(), outer != registers_.end() ? outer->second : Lanes{}});
  registers_[name] = new_register(is_wide);
}

void KernelDecoder::directive(std::string_view text) {
  const std::vector<std::string> all = words(text);
  if (all[0] == ".local" || all[0] == ".shared" || all[0] == ".pragma") return;
  if (all[0] == ".param") return declare_parameter(text);
  if (all[0] != ".reg") refuse("directive " + std::string(text));
  const auto type = parse_type(std::string_view(all.at(1)).substr(1));
  if (!type || type->bits > 64) refuse("registers of type " + all.at(1));
  const size_t names = text.find(all[1]) + all[1].size();
  for (const std::string& name : split(text.substr(names), ',')) {
    const size_t bracket = name.find('<');
    if (bracket == std::string::npos) {
      declare(name, type->bits == 64);
      continue;
    }
    const int64_t count = integer(std::string_view(name).substr(bracket + 1));
    for (int64_t i = 0; i < count; ++i)
      declare(name.substr(0, bracket) + std::to_string(i), type->bits == 64);
  }
}

/// Both widths beside each other: what reads it knows which it needs.
Lanes KernelDecoder::constant(uint64_t value) {
  const auto [found, is_new] = constants_.try_emplace(value);
  if (is_new) {
    found->second = {.offset = static_cast<uint32_t>(kernel_.constants_.size()),
                     .is_constant = true,
                     .is_wide = true};
    kernel_.constants_.resize(kernel_.constants_.size() + simt::kLanes * 12);
    std::byte* at = kernel_.constants_.data() + found->second.offset;
    for (int lane = 0; lane < simt::kLanes; ++lane) {
      const auto narrow = static_cast<uint32_t>(value);
      std::memcpy(at + lane * 4, &narrow, 4);
      std::memcpy(at + simt::kLanes * 4 + lane * 8, &value, 8);
    }
  }
  return found->second;
}

uint64_t KernelDecoder::symbol(const std::string& name) const {
  if (const auto local = local_symbols_.find(name); local != local_symbols_.end())
    return local->second;
  if (const auto global = symbols_.variables.find(name); global != symbols_.variables.end())
    return global->second.address;
  refuse("unknown name " + name);
}

Lanes KernelDecoder::lanes(std::string_view text) {
  const std::string name(trim(text));
  if (const auto found = registers_.find(name); found != registers_.end()) return found->second;
  // Clocks are no lanes' values: what moves one reads it (move.cpp).
  if (name == "%clock" || name == "%clock64" || name == "%globaltimer") return constant(0);
  if (name.starts_with('%')) refuse("register " + name);
  return constant(is_number(name) ? parse_number(name) : symbol(name));
}

Argument KernelDecoder::argument(std::string_view text) {
  Argument a;
  text = trim(text);
  if (text == "_") return a;
  if (text.starts_with('!')) {
    a = argument(text.substr(1));
    a.is_negated = true;
    return a;
  }
  if (text.starts_with('{')) {
    a.kind = Argument::Kind::list;
    for (const std::string& part : split(text.substr(1, text.rfind('}') - 1), ','))
      a.parts.push_back(part == "_" ? Lanes{} : lanes(part));
    return a;
  }
  if (text.starts_with('[')) {
    a.kind = Argument::Kind::memory;
    const std::vector<std::string> parts = split(text.substr(1, text.rfind(']') - 1), ',');
    const std::string& base = parts.at(0);
    const size_t plus = base.find('+');
    if (plus != std::string::npos)
      a.displacement =
          static_cast<int64_t>(parse_number(trim(std::string_view(base).substr(plus + 1))));
    a.parts.push_back(lanes(std::string_view(base).substr(0, plus)));
    for (size_t i = 1; i < parts.size(); ++i) {
      const Argument more = argument(parts[i]);
      a.parts.insert(a.parts.end(), more.parts.begin(), more.parts.end());
    }
    return a;
  }
  a.kind = Argument::Kind::lanes;
  const size_t bar = text.find('|');
  const std::string_view first = trim(text.substr(0, bar));
  a.parts.push_back(first == "_" ? Lanes{} : lanes(first));
  if (bar != text.npos && trim(text.substr(bar + 1)) != "_") {
    a.second = lanes(text.substr(bar + 1));
    a.has_second = true;
  }
  return a;
}

void KernelDecoder::note_registers(Instruction& in) const {
  for (size_t i = in.continues_product ? 1 : 0; i < in.arguments.size(); ++i) {
    const Argument& a = in.arguments[i];
    for (const Lanes& part : a.parts) {
      if (part.number < 0) continue;
      (i == 0 && in.has_result ? in.writes : in.reads).push_back(part.number);
    }
  }
}

/// Who writes registers that some wgmma has as D or as A. A copy hands on when its source was
/// written, so those of its source count as well.
void KernelDecoder::note_products() {
  std::set<int32_t> registers;
  for (const Instruction& in : kernel_.code_) {
    if (!in.continues_product) continue;
    kernel_.has_products_ = true;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (in.arguments[i].kind != Argument::Kind::list) continue;
      for (const Lanes& part : in.arguments[i].parts) registers.insert(part.number);
    }
  }
  registers.erase(-1);  // constants
  products_ = registers;
  for (size_t before = registers.size() + 1; before != registers.size();) {
    before = registers.size();
    for (const Instruction& in : kernel_.code_) {
      if (in.is_copy && registers.contains(in.writes[0])) registers.insert(in.reads[0]);
    }
  }
  for (Instruction& in : kernel_.code_) {
    in.writes_product = std::any_of(in.writes.begin(), in.writes.end(),
                                    [&](int32_t number) { return registers.contains(number); });
  }
}

void KernelDecoder::statement(std::string_view text) {
  if (text.empty()) return;
  if (text.starts_with('.')) return directive(text);
  Instruction in;
  in.at = at_;
  in.text = std::string(text);
  if (text.starts_with('@')) {
    const size_t blank = text.find_first_of(" \t");
    std::string_view guard = text.substr(1, blank - 1);
    in.has_guard = true;
    in.guard_is_negated = guard.starts_with('!');
    if (in.guard_is_negated) guard.remove_prefix(1);
    in.guard = lanes(guard);
    text = trim(text.substr(blank));
  }
  const size_t end = std::min(text.find_first_of(" \t["), text.size());
  const std::string_view mnemonic = text.substr(0, end);
  const std::string_view rest = trim(text.substr(end));
  const std::string opcode(mnemonic.substr(0, mnemonic.find('.')));
  if (opcode == "call") {
    if (in.has_guard) refuse("a call under a predicate");
    return call(rest);
  }
  if (opcode == "bra") {
    in.execute = execute_branch;
    in.flow = Flow::branch;
    in.kind = simt::InstructionClass::control;
    branch_to(std::string(rest));
    kernel_.code_.push_back(std::move(in));
    return;
  }
  const Decode decode_one = find_decoder(opcode);
  if (decode_one == nullptr) refuse("no execution for " + in.text);
  for (const std::string& one : split(rest, ',')) in.arguments.push_back(argument(one));
  if (symbols_.target >= kFirstWithoutHints && mnemonic.starts_with("cp.async.c") &&
      mnemonic.ends_with("L2::cache_hint")) {
    refuse("from sm_90 on ptxas takes address and hint from unwritten registers: " + in.text);
  }
  Decoder decoder(in, mnemonic);
  decode_one(decoder);
  decoder.finish();
  in.has_result = begins_with_result(in, opcode);
  note_registers(in);
  in.is_copy = opcode == "mov" && in.writes.size() == 1 && in.reads.size() == 1;
  kernel_.code_.push_back(std::move(in));
}

}  // namespace wide::ptx
