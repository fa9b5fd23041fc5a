// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Einsum of one or two inputs: axes by letters. Those that both have and the result keeps lie in
// front of matrices, those of one are rows or columns, those that the result lacks are summed.
#include <algorithm>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

/// The axes of each input and of the result. An ellipsis is as many characters below ' '.
struct Equation {
  std::vector<std::string> inputs;
  std::string result;
};

int rank_of(Lowering& at, size_t input) {
  const Scores* scores = at.scores(input);
  return scores != nullptr       ? at.view(scores->q).rank()
         : at.is_computed(input) ? at.view(at.moved(input)).rank()
                                 : at.constant_shape(input).rank();
}

/// With an ellipsis spelled out, the last axes of the longest: those that broadcast align.
std::string spelled_out(Lowering& at, std::string term, size_t axes) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  at.support(axes < 8, "has an ellipsis of " + counted(axes, "axis", "axes"));
  std::string hidden;
  for (size_t i = axes; i-- > 0;) hidden += static_cast<char>(i + 1);
  return term.replace(dots, 3, hidden);
}

/// The letters that appear once, in their order: the result where an equation names none.
std::string implied_result(const std::string& all) {
  std::string letters;
  for (const char letter : all)
    if (letter != '.' && std::ranges::count(all, letter) == 1) letters += letter;
  std::ranges::sort(letters);
  return (has(all, '.') ? "..." : "") + letters;
}

Equation equation_of(Lowering& at) {
  std::string text(at.text("equation", ""));
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::string result = arrow == std::string::npos ? implied_result(left) : text.substr(arrow + 2);
  Equation all;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    all.inputs.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  at.require(all.inputs.size() == at.num_inputs(), "has the equation \"" + text + "\" and " +
                                                       counted(at.num_inputs(), "input") +
                                                       ", expected an operand for each");
  size_t most = 0;
  for (size_t i = 0; i < all.inputs.size(); ++i) {
    std::string& term = all.inputs[i];
    const size_t named = term.size() - (term.find("...") == std::string::npos ? 0 : 3);
    const auto rank = static_cast<size_t>(rank_of(at, i));
    const bool has_dots = named != term.size();
    at.require(has_dots ? rank >= named : rank == named, "names " + counted(named, "axis", "axes") +
                                                             " of input " + std::to_string(i) +
                                                             ", which has " + std::to_string(rank));
    most = std::max(most, rank - named);
    term = spelled_out(at, term, rank - named);
    for (const char letter : term)
      at.support(std::ranges::count(term, letter) == 1, "takes a diagonal");
  }
  all.result = spelled_out(at, result, most);
  for (const char letter : all.result) {
    const bool is_known =
        std::ranges::any_of(all.inputs, [&](const std::string& term) { return has(term, letter); });
    at.require(is_known && std::ranges::count(all.result, letter) == 1,
               "has the equation \"" + text +
                   "\", whose result has an axis that no input has, or "
                   "one twice");
  }
  return all;
}

/// What becomes of the letters of two inputs, each in the order of the result, or of the first.
struct Roles {
  std::string leads, rows, columns, summed;
};

Roles roles_of(Lowering& at, const std::string& left, const std::string& right,
               const std::string& result) {
  Roles all;
  for (const char letter : result) {
    const bool in_left = has(left, letter), in_right = has(right, letter);
    (in_left && in_right ? all.leads : in_left ? all.rows : all.columns) += letter;
  }
  for (const char letter : left)
    if (!has(result, letter)) all.summed += letter;
  for (const char letter : left + right)
    at.support(has(result, letter) || (has(left, letter) && has(right, letter)),
               "sums over an axis of one input alone");
  return all;
}

/// Axes by their letters, each by itself.
View arranged(const View& view, const std::string& own, const std::string& letters) {
  std::vector<View::Axis> axes;
  for (const char letter : letters) axes.push_back(view.axis(static_cast<int>(own.find(letter))));
  return View::of(axes);
}
/// The same, and then two more that are of several letters.
View arranged(const View& view, const std::string& own, const std::string& letters,
              const std::string& last_but_one, const std::string& last) {
  std::vector<View::Axis> axes;
  for (const char letter : letters) axes.push_back(view.axis(static_cast<int>(own.find(letter))));
  for (const std::string* joined : {&last_but_one, &last}) {
    View::Axis axis;
    for (const char letter : *joined) {
      const View::Axis& parts = view.axis(static_cast<int>(own.find(letter)));
      axis.insert(axis.end(), parts.begin(), parts.end());
    }
    axes.push_back(axis);
  }
  return View::of(axes);
}

/// The extent of each letter, from the input that has it.
Numbers extents_of_letters(const View& left, const std::string& own, const View& right,
                           const std::string& other, const std::string& letters) {
  Numbers all{{static_cast<int64_t>(letters.size())}, kInt64, {}};
  for (const char letter : letters) {
    const bool is_own = has(own, letter);
    const size_t place = (is_own ? own : other).find(letter);
    all.values.push_back((is_own ? left : right).extents().values[place]);
  }
  return all;
}

/// The rows and columns of a product taken apart, all in the order of the result.
void set_by_letters(Lowering& at, Moved y, const Numbers& extents, const std::string& letters,
                    const std::string& result) {
  y.view = arranged(at.view(y).reshaped(extents, false, at.batch()), letters, result);
  set_product(at, y);
}

void multiply(Lowering& at, const Equation& equation) {
  const std::string &own = equation.inputs[0], &other = equation.inputs[1];
  const Roles roles = roles_of(at, own, other, equation.result);
  const std::string all = roles.leads + roles.rows + roles.columns;
  const bool is_one_each = roles.rows.size() == 1 && roles.columns.size() == 1;
  if (const Scores* scores = at.scores(0)) {
    const bool is_product =
        is_one_each && roles.summed.size() == 1 && own == roles.leads + roles.rows + roles.summed;
    if (!is_product) throw NoAttention{scores->product};
    Moved v = at.moved(1);
    v.view = arranged(at.view(v), other, roles.leads, roles.summed, roles.columns);
    Moved y = finish_attention(at, *scores, v);
    y.view = arranged(at.view(y), all, equation.result);
    return set_product(at, y);
  }
  Moved a = at.moved(0), b = at.moved(1);
  const View left = at.view(a), right = at.view(b);
  a.view = arranged(left, own, roles.leads, roles.rows, roles.summed);
  b.view = arranged(right, other, roles.leads, roles.columns, roles.summed);
  if (all == equation.result && is_one_each) return lower_factors(at, a, b);
  set_by_letters(at, product(at, a, b), extents_of_letters(left, own, right, other, all), all,
                 equation.result);
}

/// Rows of an activation by a constant: linear, whose weight is the constant, its axes in order.
void multiply_by_constant(Lowering& at, const Equation& equation, size_t constant) {
  const std::string &own = equation.inputs[1 - constant], &other = equation.inputs[constant];
  Roles roles = roles_of(at, own, other, equation.result);
  at.support(roles.leads.empty(),
             "has an axis of an activation and of a constant that is not summed: no primitive has "
             "weights for each of its positions");
  const Moved x = at.elements(1 - constant);
  const View view = at.view(x), from = View::of(at.constant_shape(constant));
  const auto has_batch = [&](char letter) {
    const View::Axis& axis = view.axis(static_cast<int>(own.find(letter)));
    return !axis.empty() && axis[0].extent == kBatch;
  };
  std::ranges::stable_partition(roles.rows, has_batch);
  at.support(!roles.rows.empty() && has_batch(roles.rows[0]), "sums over the batch");
  const Value rows = at.laid_out(
      x.value, arranged(view, own, roles.rows.substr(0, 1), roles.rows.substr(1), roles.summed));
  at.support(!rows.is_absent(), "has its batch merged with other axes");
  const View by_columns = arranged(from, other, "", roles.columns, roles.summed);
  View::Axis parts = by_columns.axis(0);
  parts.insert(parts.end(), by_columns.axis(1).begin(), by_columns.axis(1).end());
  const Numbers sizes = by_columns.extents();
  const int64_t columns = to_integer(sizes, 0), summed = to_integer(sizes, 1);
  at.require(at.shape(rows).back() == summed, "sums over " + std::to_string(at.shape(rows).back()) +
                                                  " elements of the activation and " +
                                                  std::to_string(summed) +
                                                  " of the constant, expected as many");
  const Value weight = at.changed(constant, at.dtype(rows), {columns, summed},
                                  [parts](const Initializer& t, int64_t i) {
                                    int64_t place = 0;
                                    for (size_t part = parts.size(); part-- > 0;) {
                                      place += i % parts[part].extent * parts[part].step;
                                      i /= parts[part].extent;
                                    }
                                    return element_of(t, place);
                                  });
  const std::string all = roles.rows + roles.columns;
  set_by_letters(at, {at.append(LinearOp{}, {{"x", rows}, {"weight", weight}})},
                 extents_of_letters(view, own, from, other, all), all, equation.result);
}

void lower_einsum(Lowering& at) {
  at.only({"equation"});
  const size_t inputs = at.num_inputs();
  at.support(inputs == 1 || inputs == 2,
             "has " + counted(inputs, "input") + ", expected one or two");
  const Equation equation = equation_of(at);
  if (inputs == 1) {
    Moved x = at.moved(0);
    at.support(equation.result.size() == equation.inputs[0].size(),
               "sums over an axis of one input alone");
    x.view = arranged(at.view(x), equation.inputs[0], equation.result);
    return set_product(at, x);
  }
  if (at.is_computed(0) && at.is_computed(1)) return multiply(at, equation);
  multiply_by_constant(at, equation, at.is_computed(0) ? 1 : 0);
}

}  // namespace

void add_einsum_operator(std::map<std::string_view, Lower>& table) {
  table["Einsum"] = lower_einsum;
}

}  // namespace wide::onnx
