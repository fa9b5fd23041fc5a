// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers. ONNX has steps before the batch, directions on an axis of their own and gates
// in another order: the first two are views of a graph's values, weights are rewritten.
#include <algorithm>
#include <string>
#include <tuple>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"
#include "wide/recurrent.hpp"

namespace wide::onnx {

namespace {

// A node's inputs and outputs by their numbers.
constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kHidden = 5, kCell = 6,
                 kPeepholes = 7;
constexpr size_t kY = 0, kLastHidden = 1, kLastCell = 2;

/// Shared by the directions of a node.
struct Layer {
  RecurrentCell cell = RecurrentCell::lstm;
  std::vector<bool> is_reversed;  ///< one for each direction
  bool is_batch_first = false;    ///< layout 1: before steps, and before directions
  bool has_states = false;        ///< has computed states; else sequences begin with zeros
  Value x;                        ///< [B, T, in]
  int64_t steps = 0, in = 0, hidden = 0;

  bool is_lstm() const { return cell == RecurrentCell::lstm; }
  int64_t directions() const { return std::ssize(is_reversed); }
  int64_t rows() const { return recurrent_gates(cell) * hidden; }
};

/// The results of one direction.
struct Direction {
  Value y;                       ///< [B, T, H]
  Value last_hidden, last_cell;  ///< [B, H], where a node reads them
};

/// The number of a gate of ours in ONNX's order. Input, forget, candidate, output are input,
/// output, forget, candidate there; reset, update, candidate are update, reset, candidate.
int64_t gate_in_file(RecurrentCell cell, int64_t gate) {
  constexpr int64_t kLstm[] = {0, 2, 3, 1}, kGru[] = {1, 0, 2};
  return cell == RecurrentCell::lstm ? kLstm[gate] : kGru[gate];
}

std::vector<bool> directions_of(Lowering& at) {
  const std::string_view direction = at.text("direction", "forward");
  if (direction == "bidirectional") return {false, true};
  at.require(
      direction == "forward" || direction == "reverse",
      "has direction " + std::string(direction) + ", expected forward, reverse or bidirectional");
  return {direction == "reverse"};
}

bool is_same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

void check_function(Lowering& at, RecurrentCell cell) {
  const bool is_lstm = cell == RecurrentCell::lstm;
  if (is_lstm)
    at.only({"activations", "direction", "hidden_size", "input_forget", "layout"});
  else
    at.only({"activations", "direction", "hidden_size", "layout", "linear_before_reset"});
  const std::vector<std::string_view> activations = at.texts("activations");
  const size_t per_direction = is_lstm ? 3 : 2;
  bool is_usual = activations.size() % per_direction == 0;
  for (size_t i = 0; is_usual && i < activations.size(); ++i)
    is_usual = is_same_word(activations[i], i % per_direction == 0 ? "Sigmoid" : "Tanh");
  at.support(is_usual,
             std::string("has other activations than its usual ones, expected Sigmoid, ") +
                 (is_lstm ? "Tanh, Tanh" : "Tanh"));
  at.support(at.integer("input_forget", 0) == 0,
             "has one gate for input and forget, expected two: input_forget 0");
  at.support(is_lstm || at.integer("linear_before_reset", 0) != 0,
             "has linear_before_reset 0, expected 1: a reset gate after the product");
  at.support(!at.has(kPeepholes), "has peepholes, expected gates that read no cell state");
}

/// [B, T, in]
Value sequences(Lowering& at, bool is_batch_first) {
  const Moved x = at.elements(kX);
  const View view = at.view(x);
  at.require(view.rank() == 3,
             "reads " + counted(view.rank(), "axis", "axes") + ", expected sequences of 3");
  const Value value = at.laid_out(x.value, is_batch_first ? view : view.transposed(Dims{1, 0, 2}));
  at.support(!value.is_absent(),
             std::string("reads sequences with the batch elsewhere than on axis ") +
                 (is_batch_first ? "0" : "1, where it is by layout 0"));
  return value;
}

/// Whether sequences begin with a computed state, else with zeros.
bool has_state(Lowering& at, size_t input) {
  if (!at.has(input)) return false;
  if (at.is_computed(input)) return true;
  at.support(at.uniform(input) == 0, "begins with a constant other than 0 as input " +
                                         std::to_string(input) +
                                         ", expected zeros or what depends on the graph's inputs");
  return false;
}

/// The same for all states, which are all computed or none.
bool has_states(Lowering& at, RecurrentCell cell) {
  const bool has_hidden = has_state(at, kHidden);
  at.support(cell == RecurrentCell::gru || has_hidden == has_state(at, kCell),
             "begins with one state that is computed and one that is not, expected both or none");
  return has_hidden;
}

void check_lengths(Lowering& at, int64_t steps) {
  if (!at.has(kLengths)) return;
  at.support(!at.is_computed(kLengths),
             "reads lengths of sequences that are computed, expected as many steps of all");
  at.support(at.uniform(kLengths) == static_cast<double>(steps),
             "has sequences of other lengths than its " + counted(steps, "step") +
                 ", expected as many of all");
}

Layer layer_of(Lowering& at, RecurrentCell cell) {
  Layer layer;
  layer.cell = cell;
  layer.is_reversed = directions_of(at);
  layer.is_batch_first = at.integer("layout", 0) != 0;
  layer.has_states = has_states(at, cell);
  layer.x = sequences(at, layer.is_batch_first);
  layer.steps = at.shape(layer.x)[1];
  layer.in = at.shape(layer.x)[2];
  const auto require_shape = [&](size_t input, const char* name, bool holds,
                                 const std::string& expected) {
    at.require(holds, std::string("has ") + name + " " + to_string(at.constant_shape(input)) +
                          ", expected " + expected);
  };
  const Shape r = at.constant_shape(kR), w = at.constant_shape(kW);
  const int64_t directions = layer.directions(), gates = recurrent_gates(cell);
  const bool fits =
      r.rank() == 3 && r[0] == directions && r[2] >= 1 && r[1] % r[2] == 0 && r[1] / r[2] == gates;
  require_shape(kR, "R", fits,
                "[" + std::to_string(directions) + ", " + std::to_string(gates) + " H, H]");
  layer.hidden = r[2];
  const Shape wanted{directions, layer.rows(), layer.in}, bias{directions, 2 * layer.rows()};
  require_shape(kW, "W", w == wanted, to_string(wanted));
  if (at.has(kB)) require_shape(kB, "B", at.constant_shape(kB) == bias, to_string(bias));
  const int64_t said = at.integer("hidden_size", layer.hidden);
  at.require(said == layer.hidden, "has hidden_size " + std::to_string(said) + ", expected R's " +
                                       std::to_string(layer.hidden));
  check_lengths(at, layer.steps);
  return layer;
}

/// Part number `place` of a constant that consists of parts of this shape, with its gates in our
/// order.
Value gates_of(Lowering& at, const Layer& layer, size_t input, const Shape& shape, int64_t place) {
  const RecurrentCell cell = layer.cell;
  const int64_t size = num_elements(shape), gate = size / recurrent_gates(cell);
  return at.changed(input, at.dtype(layer.x), shape, [=](const Initializer& t, int64_t i) {
    return element_of(t, place * size + gate_in_file(cell, i / gate) * gate + i % gate);
  });
}

/// [B, H] of one direction.
Value first_state(Lowering& at, const Layer& layer, size_t input, int64_t direction) {
  const Moved all = at.elements(input);
  const View view = at.view(all);
  const Numbers extents = view.extents();
  const int axis = layer.is_batch_first ? 1 : 0;  // of directions
  const auto is_extent = [&](int i, int64_t extent) {
    return extents.values[static_cast<size_t>(i)] == static_cast<long double>(extent);
  };
  const bool fits = view.rank() == 3 && view.axis(1 - axis) == View::Axis{{kBatch, 0}} &&
                    is_extent(axis, layer.directions()) && is_extent(2, layer.hidden);
  const std::string directions = std::to_string(layer.directions());
  at.support(fits, "begins with an input " + std::to_string(input) + " that is not [" +
                       (axis == 1 ? "batch, " + directions : directions + ", batch") + ", " +
                       std::to_string(layer.hidden) + "]");
  const Moved own = at.part(all, axis, direction, 1);
  const Value state = at.laid_out(own.value, at.view(own).without(axis));
  at.support(!state.is_absent(),
             "begins with an input " + std::to_string(input) + " whose axes no copy puts in order");
  return state;
}

Direction run_direction(Lowering& at, const Layer& layer, int64_t direction) {
  const int64_t rows = layer.rows(), hidden = layer.hidden;
  std::vector<Operand> operands{
      {"x", layer.x},
      {"input_weight", gates_of(at, layer, kW, {rows, layer.in}, direction)},
      {"hidden_weight", gates_of(at, layer, kR, {rows, hidden}, direction)}};
  if (at.has(kB)) {
    operands.push_back({"input_bias", gates_of(at, layer, kB, {rows}, 2 * direction)});
    operands.push_back({"hidden_bias", gates_of(at, layer, kB, {rows}, 2 * direction + 1)});
  }
  if (layer.has_states) {
    operands.push_back({"first_hidden", first_state(at, layer, kHidden, direction)});
    if (layer.is_lstm())
      operands.push_back({"first_cell", first_state(at, layer, kCell, direction)});
  }

  Direction own;
  const bool is_reversed = layer.is_reversed[static_cast<size_t>(direction)];
  const RecurrentOp op{layer.cell, is_reversed, layer.is_lstm() && at.is_used(kLastCell)};
  if (op.writes_cell)
    std::tie(own.y, own.last_cell) = at.append_two(op, operands);
  else
    own.y = at.append(op, operands);
  if (at.is_used(kLastHidden)) {
    const int64_t last = is_reversed ? 0 : layer.steps - 1;
    own.last_hidden = at.reshaped(at.part({own.y}, 1, last, 1).value, {kBatch, hidden});
  }
  return own;
}

/// The directions' features, one after another.
Value joined(Lowering& at, const std::vector<Value>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Operand> operands;
  for (const Value part : parts)
    operands.push_back({"part" + std::to_string(operands.size()), part});
  return at.append(ConcatOp{at.shape(parts[0]).rank() - 1}, operands);
}

template <RecurrentCell kKind>
void lower_recurrent(Lowering& at) {
  check_function(at, kKind);
  const Layer layer = layer_of(at, kKind);
  const Dtype dtype = at.dtype(layer.x);
  const bool has_cell = layer.is_lstm() && (at.is_used(kLastCell) || layer.has_states);
  at.support(!has_cell || dtype == Dtype::fp32, "reads or writes cell states of " +
                                                    std::string(dtype_name(dtype)) +
                                                    ", expected fp32, which they are in any case");
  std::vector<Value> y, hidden, cell;
  for (int64_t direction = 0; direction < layer.directions(); ++direction) {
    const Direction own = run_direction(at, layer, direction);
    y.push_back(own.y);
    hidden.push_back(own.last_hidden);
    cell.push_back(own.last_cell);
  }
  if (at.is_used(kY)) {
    const View view = View::of({kBatch, layer.steps, layer.directions(), layer.hidden});
    at.set(kY, {joined(at, y), layer.is_batch_first ? view : view.transposed(Dims{1, 2, 0, 3})});
  }
  const auto set_states = [&](size_t output, const std::vector<Value>& states) {
    if (!at.is_used(output)) return;
    const View view = View::of({kBatch, layer.directions(), layer.hidden});
    at.set(output,
           {joined(at, states), layer.is_batch_first ? view : view.transposed(Dims{1, 0, 2})});
  };
  set_states(kLastHidden, hidden);
  if (layer.is_lstm()) set_states(kLastCell, cell);
}

}  // namespace

void add_recurrent_operators(std::map<std::string_view, Lower>& table) {
  table["LSTM"] = lower_recurrent<RecurrentCell::lstm>;
  table["GRU"] = lower_recurrent<RecurrentCell::gru>;
}

}  // namespace wide::onnx
