// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/where.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "bench/cases/value_spec.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Step = Where::Step;
using Code = Step::Code;

constexpr int kMaxDepth = 100;  // of parentheses and signs: more is generated, not handwritten

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "--where: \"" + std::string(text) + "\": " + why);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Words, numbers and signs; empty at the end.
std::string_view next_token(std::string_view& rest) {
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  size_t length = rest.empty() ? 0 : 1;
  if (!rest.empty() && is_word(rest.front())) {
    const bool is_number = is_digit(rest.front());
    const auto goes_on = [&](char c) { return is_word(c) || (is_number && c == '^'); };
    length =
        static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), goes_on) - rest.begin());
  } else if (rest.size() > 1 && rest[1] == '=' &&
             std::string_view("=!<>").find(rest[0]) != std::string_view::npos) {
    length = 2;
  }
  const std::string_view token = rest.substr(0, length);
  rest.remove_prefix(length);
  return token;
}

class Parser {
 public:
  Parser(std::string_view text, const catalog::PrimitiveSpec& spec)
      : text_(text), rest_(text), spec_(spec) {
    advance();
  }

  std::vector<Step> parse() {
    const Operand all = either();
    if (!token_.empty()) {
      refuse(text_, "\"" + std::string(token_) + "\" is where an operator or the end is expected" +
                        (token_ == "=" ? "; == compares" : ""));
    }
    require_condition(all);
    return std::move(steps_);
  }

 private:
  enum class Kind : uint8_t { number, word, condition };
  struct Operand {
    Kind kind = Kind::number;
    std::string_view text{};                  ///< as written, if it is one token
    const catalog::AxisInfo* axis = nullptr;  ///< the axis that it names
    size_t step = 0;                          ///< the step that it begins with
  };

  void advance() { token_ = next_token(rest_); }
  bool take(std::string_view token) {
    if (token_ != token) return false;
    advance();
    return true;
  }

  /// Left to right with short circuits.
  Operand joined(std::string_view word, Code end, Operand (Parser::*part)()) {
    Operand left = (this->*part)();
    while (token_ == word) {
      require_condition(left);
      advance();
      const size_t jump = steps_.size();
      steps_.push_back({end});
      require_condition((this->*part)());
      steps_[jump].target = steps_.size();
      left = {Kind::condition};
    }
    return left;
  }
  Operand either() { return joined("or", Code::end_if_true, &Parser::both); }
  Operand both() { return joined("and", Code::end_if_false, &Parser::negation); }

  Operand negation() {
    if (!take("not")) return comparison();
    const Nested nested(*this);
    require_condition(negation());
    steps_.push_back({Code::invert});
    return {Kind::condition};
  }

  Operand comparison() {
    const Operand left = sum();
    const std::optional<Code> code = code_of(token_, {{"==", Code::equal},
                                                      {"!=", Code::unequal},
                                                      {"<", Code::less},
                                                      {"<=", Code::less_equal},
                                                      {">", Code::greater},
                                                      {">=", Code::greater_equal}});
    if (!code) return left;
    const std::string sign(token_);
    advance();
    const Operand right = sum();
    const bool is_equality = code == Code::equal || code == Code::unequal;
    if (is_equality && (has_words(left) || has_words(right))) {
      match_words(left, right);
    } else {
      require_numbers(left, right, sign);
    }
    steps_.push_back({*code});
    return {Kind::condition};
  }

  /// Left to right.
  Operand chain(std::initializer_list<std::pair<std::string_view, Code>> signs,
                Operand (Parser::*part)()) {
    Operand left = (this->*part)();
    for (;;) {
      const std::optional<Code> code = code_of(token_, signs);
      if (!code) return left;
      const std::string sign(token_);
      advance();
      require_numbers(left, (this->*part)(), sign);
      steps_.push_back({*code});
      left = {};
    }
  }
  Operand sum() { return chain({{"+", Code::add}, {"-", Code::subtract}}, &Parser::term); }
  Operand term() {
    return chain({{"*", Code::multiply}, {"/", Code::divide}, {"%", Code::modulo}}, &Parser::sign);
  }

  Operand sign() {
    if (!take("-")) return primary();
    const Nested nested(*this);
    require_number(sign(), "-");
    steps_.push_back({Code::negate});
    return {};
  }

  Operand primary() {
    const std::string_view token = token_;
    if (token == "(") {
      const Nested nested(*this);
      advance();
      Operand inner = either();
      if (!take(")")) refuse(text_, "a parenthesis is not closed");
      return inner;
    }
    if (token.empty()) refuse(text_, "it ends where a number, an axis or a word is expected");
    const bool is_operator =
        token == "and" || token == "or" || token == "not" || !is_word(token.front());
    if (is_operator)
      refuse(text_,
             "\"" + std::string(token) + "\" is where a number, an axis or a word is expected");
    advance();
    Operand operand{Kind::number, token, nullptr, steps_.size()};
    if (is_digit(token.front())) {
      steps_.push_back({Code::constant, parse_integer("where", token)});
      return operand;
    }
    steps_.push_back({Code::constant, std::string(token)});
    operand.kind = Kind::word;
    for (size_t i = 0; i < spec_.axes.size(); ++i) {
      if (spec_.axes[i].name != token) continue;
      operand.axis = &spec_.axes[i];
      if (operand.axis->words.empty()) operand.kind = Kind::number;
      steps_.back() = {Code::axis, {}, i};
    }
    return operand;
  }

  static std::optional<Code> code_of(
      std::string_view token, std::initializer_list<std::pair<std::string_view, Code>> signs) {
    for (const auto& [sign, code] : signs) {
      if (sign == token) return code;
    }
    return std::nullopt;
  }

  static bool has_words(const Operand& operand) {
    return operand.axis != nullptr && operand.kind == Kind::word;
  }

  /// An axis with one of its words, which may be digits, or with another axis.
  void match_words(const Operand& left, const Operand& right) {
    if (has_words(left) && has_words(right)) return;
    const Operand& axis = has_words(left) ? left : right;
    const Operand& word = has_words(left) ? right : left;
    const auto& words = axis.axis->words;
    if (word.text.empty() || std::find(words.begin(), words.end(), word.text) == words.end()) {
      const std::string got = word.text.empty() ? "an expression" : std::string(word.text);
      refuse(text_, catalog::unknown_name_message(axis.axis->name, got, words));
    }
    steps_[word.step] = {Code::constant, std::string(word.text)};
  }

  void require_numbers(const Operand& left, const Operand& right, const std::string& sign) {
    require_number(left, sign);
    require_number(right, sign);
  }
  void require_number(const Operand& operand, const std::string& sign) {
    if (operand.kind == Kind::number) return;
    if (operand.kind == Kind::condition) refuse(text_, sign + " of a condition, expected numbers");
    require_axis(operand);
    refuse(text_, sign + " of " + std::string(operand.text) + ", which has words, expected " +
                      std::string(operand.text) + " == or != one of them");
  }
  void require_condition(const Operand& operand) {
    if (operand.kind == Kind::condition) return;
    if (operand.kind == Kind::word) require_axis(operand);
    refuse(text_, (operand.text.empty() ? "a number" : "\"" + std::string(operand.text) + "\"") +
                      " is no condition, expected a comparison such as n <= 8");
  }
  /// A word that stands alone must be an axis.
  void require_axis(const Operand& operand) {
    if (operand.axis != nullptr) return;
    std::vector<std::string_view> names;
    for (const catalog::AxisInfo& axis : spec_.axes) names.push_back(axis.name);
    refuse(text_, std::string(spec_.name) + ": " +
                      catalog::unknown_name_message("axis", operand.text, names));
  }

  /// Each level of nested parentheses and signs is a recursive call.
  struct Nested {
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth)
        refuse(parser_.text_, "nested more deeply than " + std::to_string(kMaxDepth));
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    Parser& parser_;
  };

  std::string_view text_, rest_, token_;
  const catalog::PrimitiveSpec& spec_;
  std::vector<Step> steps_;
  int depth_ = 0;
};

/// Why there is no result; empty if there is one.
std::string compute(Code code, int64_t a, int64_t b, int64_t& result) {
  if (code == Code::divide || code == Code::modulo) {
    if (b == 0) return "a division by zero";
    // The only quotient that overflows.
    if (a == std::numeric_limits<int64_t>::min() && b == -1) return "a number beyond 64 bits";
    result = code == Code::divide ? a / b : a % b;
    return "";
  }
  const bool overflows = code == Code::add        ? __builtin_add_overflow(a, b, &result)
                         : code == Code::subtract ? __builtin_sub_overflow(a, b, &result)
                                                  : __builtin_mul_overflow(a, b, &result);
  return overflows ? "a number beyond 64 bits" : "";
}

bool compares(Code code, const catalog::AxisValue& a, const catalog::AxisValue& b) {
  switch (code) {
    case Code::equal:
      return a == b;
    case Code::unequal:
      return a != b;
    case Code::less:
      return a < b;
    case Code::less_equal:
      return a <= b;
    case Code::greater:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

Where::Where(std::string_view text, const catalog::PrimitiveSpec& spec) : text_(text) {
  if (!text.empty()) steps_ = Parser(text, spec).parse();
}

bool Where::holds(const catalog::Case& point) const {
  std::vector<catalog::AxisValue> stack;
  const auto pop = [&] {
    catalog::AxisValue value = std::move(stack.back());
    stack.pop_back();
    return value;
  };
  const auto push_computed = [&](Code code, int64_t a, int64_t b) {
    int64_t result = 0;
    const std::string fault = compute(code, a, b, result);
    if (!fault.empty()) refuse(text_, fault + " in " + point.op() + " " + point.to_string());
    stack.emplace_back(result);
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.code == Code::constant) {
      stack.push_back(step.value);
    } else if (step.code == Code::axis) {
      stack.push_back(point.entries()[step.target].value);
    } else if (step.code == Code::end_if_false || step.code == Code::end_if_true) {
      const bool ends_at = step.code == Code::end_if_true;
      if ((std::get<int64_t>(stack.back()) != 0) == ends_at) {
        i = step.target - 1;
      } else {
        stack.pop_back();
      }
    } else if (step.code == Code::invert) {
      stack.back() = int64_t{std::get<int64_t>(stack.back()) == 0};
    } else if (step.code == Code::negate) {
      push_computed(Code::subtract, 0, std::get<int64_t>(pop()));
    } else {
      const catalog::AxisValue right = pop(), left = pop();
      if (step.code >= Code::equal) {
        stack.emplace_back(int64_t{compares(step.code, left, right)});
      } else {
        push_computed(step.code, std::get<int64_t>(left), std::get<int64_t>(right));
      }
    }
  }
  return stack.empty() || std::get<int64_t>(stack.back()) != 0;
}

}  // namespace wide::bench
