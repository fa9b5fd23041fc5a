// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The text of a module: files, variables, and where each kernel's text is. Kernels are decoded when
// they are asked for.
#include "verify/ptx/module.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "verify/ptx/kernel.hpp"
#include "verify/ptx/text.hpp"

namespace wide::ptx {

namespace {

bool has_word(std::string_view line, std::string_view word) {
  const size_t at = line.find(word);
  if (at == line.npos) return false;
  const size_t end = at + word.size();
  return end == line.size() || line[end] == ' ' || line[end] == '\t';
}

std::string_view without_comment(std::string_view line) {
  return trim(line.substr(0, line.find("//")));
}

}  // namespace

struct Module::State {
  Symbols symbols;
  std::map<std::string, KernelText> texts;
  std::map<std::string, std::unique_ptr<DecodedKernel>> kernels;

  State(std::string_view text, simt::GlobalMemory& memory) : memory_(memory) { read(text); }

 private:
  void read(std::string_view text);
  void top_level(std::string_view line);
  void add_text();
  void variable(const std::string& declaration);
  void initialise(std::byte* data, int64_t element, const std::string& values);

  simt::GlobalMemory& memory_;
  std::string header_, declaration_;
  bool in_header_ = false, is_entry_ = false;
  int depth_ = 0;
  std::string body_;
};

void Module::State::read(std::string_view text) {
  if (text.find(".version") == text.npos) throw simt::Unsupported("ptx: not a PTX module");
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = without_comment(text.substr(start, end - start));
    start = end + 1;
    if (line.empty()) continue;
    if (depth_ > 0) {
      if (!line.starts_with(".loc")) {
        for (const char c : line) depth_ += (c == '{') - (c == '}');
      }
      if (depth_ > 0) {
        body_.append(line).append("\n");
        continue;
      }
      add_text();
      header_.clear();
      body_.clear();
      in_header_ = false;
      continue;
    }
    top_level(line);
  }
}

/// ".visible .entry name(" or ".func (.param .b32 result) name(".
void Module::State::add_text() {
  const std::string_view mark = is_entry_ ? ".entry" : ".func";
  std::string_view rest = trim(std::string_view(header_).substr(header_.find(mark) + mark.size()));
  if (rest.starts_with('(')) rest = trim(rest.substr(rest.find(')') + 1));
  KernelText text{std::string(rest.substr(0, rest.find_first_of(" (\t"))), header_, body_};
  std::string name = text.name;
  (is_entry_ ? texts : symbols.functions)[name] = std::move(text);
}

void Module::State::top_level(std::string_view line) {
  if (!in_header_ && (has_word(line, ".entry") || has_word(line, ".func"))) {
    in_header_ = true;
    is_entry_ = has_word(line, ".entry");
  }
  if (in_header_) {
    if (line == "{") {
      depth_ = 1;
    } else if (line.ends_with(";")) {  // a prototype
      in_header_ = false;
      header_.clear();
    } else {
      header_.append(line).append(" ");
    }
    return;
  }
  if (line.starts_with(".file")) {
    const size_t quote = line.find('"');
    const int id = std::atoi(words(line).at(1).c_str());
    symbols.files[id] = std::string(line.substr(quote + 1, line.rfind('"') - quote - 1));
    return;
  }
  if (const size_t sm = line.find("sm_"); line.starts_with(".target") && sm != line.npos)
    symbols.target = std::atoi(std::string(line.substr(sm + 3)).c_str());
  const bool continues = !declaration_.empty();
  if (!continues && !has_word(line, ".global") && !has_word(line, ".const") &&
      !has_word(line, ".shared")) {
    return;  // .version, sections
  }
  declaration_.append(line).append(" ");
  if (!line.ends_with(";")) return;
  const std::string declaration(
      trim(std::string_view(declaration_).substr(0, declaration_.rfind(';'))));
  declaration_.clear();
  if (has_word(declaration, ".shared")) {
    symbols.shared.push_back(declaration);
  } else {
    variable(declaration);
  }
}

void Module::State::variable(const std::string& declaration) {
  const size_t equals = declaration.find('=');
  const std::string head(trim(std::string_view(declaration).substr(0, equals)));
  int64_t element = 1;
  std::string name;
  for (const std::string& word : words(head)) {
    if (word[0] == '.') {
      if (const auto type = parse_type(std::string_view(word).substr(1))) element = type->bits / 8;
    }
    name = word;
  }
  int64_t bytes = element;
  if (const size_t bracket = name.find('['); bracket != std::string::npos) {
    bytes *= std::atoll(name.c_str() + bracket + 1);
    name.resize(bracket);
  }
  const bool is_constant = has_word(head, ".const");
  const uint64_t address = memory_.allocate(
      bytes, name, is_constant ? simt::BufferKind::constant : simt::BufferKind::device, true,
      is_constant, true);
  if (address == 0) throw simt::Unsupported("ptx: no memory for variable " + name);
  std::byte* data = memory_.data(address);
  std::memset(data, 0, static_cast<size_t>(bytes));
  if (equals != std::string::npos) initialise(data, element, declaration.substr(equals + 1));
  symbols.variables[name] = {address, bytes};
}

void Module::State::initialise(std::byte* data, int64_t element, const std::string& values) {
  const size_t open = values.find('{');
  const std::string_view inner =
      open == std::string::npos
          ? trim(values)
          : trim(std::string_view(values).substr(open + 1, values.rfind('}') - open - 1));
  for (const std::string& one : split(inner, ',')) {
    const uint64_t value = is_number(one) ? parse_number(one) : 0;
    if (!is_number(one)) throw simt::Unsupported("ptx: initialiser " + one);
    std::memcpy(data, &value, static_cast<size_t>(element));
    data += element;
  }
}

Module::Module(std::string_view text, simt::GlobalMemory& memory)
    : state_(std::make_unique<State>(text, memory)) {}
Module::~Module() = default;

std::vector<std::string> Module::kernel_names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : state_->texts) names.push_back(name);
  return names;
}

const Kernel& Module::kernel(const std::string& name) const {
  const auto text = state_->texts.find(name);
  if (text == state_->texts.end()) throw std::out_of_range("no kernel " + name);
  auto& decoded = state_->kernels[name];
  if (!decoded) decoded = std::make_unique<DecodedKernel>(text->second, state_->symbols);
  return *decoded;
}

std::optional<Variable> Module::variable(const std::string& name) const {
  const auto found = state_->symbols.variables.find(name);
  if (found == state_->symbols.variables.end()) return std::nullopt;
  return found->second;
}

}  // namespace wide::ptx
