// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A file's nodes as nodes of a graph, one after another. A name of the file maps to a
// Term: a value of the graph, a tensor of the file, or known numbers.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "host/import/onnx/axes.hpp"
#include "host/import/onnx/view.hpp"
#include "wide/graph.hpp"
#include "wide/onnx.hpp"

namespace wide::onnx {

struct Lowered {
  Graph graph;
  std::vector<const Initializer*> parameters;  ///< as graph.parameters()
  std::deque<Initializer> made;                ///< those that are not the file's
};

/// What is known of an activation's elements, each including the previous ones: that they are
/// finite, whole numbers, or 0 and 1. Masks are computed from these: a graph has numbers only.
enum class Range : uint8_t { any, finite, whole, truth };

/// An activation whose axes may differ from those of the value that has its elements.
struct Moved {
  Value value{};
  std::optional<View> view{};  ///< none: as it lies
  double factor = 1;           ///< of all elements, not applied yet
  Range range = Range::any;
};

/// The product of two activations that is expected to be an attention's, and the operations on it.
struct Scores {
  const OnnxNode* product = nullptr;
  Moved q, k;
  int64_t repeats = 1;  ///< queries' heads that read one of k's
  double scale = 1;
  std::optional<double> scale_inside{};  ///< of q k^T where `scale` is that of a tanh of it
  bool is_causal = false, is_normalised = false;
  /// The highest number that hides a later key where they are causal, and the highest that
  /// constants add anywhere.
  double hidden = -std::numeric_limits<double>::infinity(), added = 0;
  Moved bias{};  ///< added to them: a parameter [heads or 1, rows or 1, columns], or computed
};

/// Thrown where a product turns out not to be an attention's: all is lowered anew, this one as it
/// stands.
struct NoAttention {
  const OnnxNode* product;
};

/// An axis of a constant that has a row for each sample in the file, all alike: one is kept.
struct Rows {
  int axis = 0;
  long double extent = 0;  ///< in the file: the batch, or a multiple of it
  friend bool operator==(const Rows&, const Rows&) = default;
};

struct Term {
  Moved activation{};
  const Initializer* tensor = nullptr;
  std::optional<Numbers> numbers{};
  std::optional<Rows> rows{};              ///< of a constant
  std::shared_ptr<const Scores> scores{};  ///< then `activation` is its q

  bool is_constant() const { return activation.value.is_absent(); }
};

class Lowering {
 public:
  /// `plain`: products that are no attention's.
  Lowering(OnnxFile& file, const OnnxOptions& options, const std::set<const OnnxNode*>& plain);
  Lowered run() &&;

  // For the operators' functions: the node that is lowered, by the indices of its operands.
  const OnnxNode& node() const { return *node_; }
  int64_t opset() const { return file_.opset; }
  [[noreturn]] void refuse(const std::string& why) const;       ///< invalid_argument
  [[noreturn]] void unsupported(const std::string& why) const;  ///< likewise
  void require(bool holds, const std::string& why) const {
    if (!holds) refuse(why);
  }
  void support(bool holds, const std::string& why) const {
    if (!holds) unsupported(why);
  }

  /// Throws for other attributes.
  void only(std::initializer_list<std::string_view> attributes) const;
  int64_t integer(std::string_view attribute, int64_t usual) const;
  float number(std::string_view attribute, float usual) const;
  std::string_view text(std::string_view attribute, std::string_view usual) const;
  std::vector<int64_t> integers(std::string_view attribute) const;
  std::vector<std::string_view> texts(std::string_view attribute) const;
  /// From an input if present, else from an attribute.
  std::vector<int64_t> integers(size_t input, std::string_view attribute);

  size_t num_inputs() const { return node_->inputs.size(); }
  bool has(size_t input) const;
  bool is_computed(size_t input);  ///< an activation, else something constant
  bool is_plain() const { return plain_.contains(node_); }  ///< the node's product
  Value x(size_t input);  ///< throws for constants and where axes were moved
  /// Whatever its axes; throws for constants and scores.
  Moved moved(size_t input);
  /// The same, every element as it is to be read.
  Moved elements(size_t input);
  /// The same with its last axis in place, where it must be by a copy: the value has all of a row
  /// in its last axis.
  Moved rows(size_t input);
  /// nullptr where the input is something else.
  const Scores* scores(size_t input);
  View view(const Moved& moved) const;
  /// The value's elements as the view has them: reshaped, or copied and repeated where that is not
  /// enough.
  /// Absent where a copy is not enough, either.
  Value laid_out(Value value, const View& view);
  /// The elements in the order of their view, but the batch in front of them: where it is merged
  /// with other axes. Nothing where a copy is not enough.
  Moved batch_first(const Moved& own);
  /// A part along an axis.
  Moved part(const Moved& of, int axis, int64_t first, int64_t count);
  /// Joined along an axis, where all have the same layout.
  std::optional<Moved> joined(const std::vector<Moved>& parts, int axis);
  Value multiplied(Value value, double factor);
  /// Both repeated to the axes of both, of which there must be as many, after the batch.
  std::pair<Value, Value> broadcast(Value x, Value other);
  const Shape& shape(Value value) const { return builder_.type(value).shape; }
  Dtype dtype(Value value) const { return builder_.type(value).dtype; }
  const Shape& constant_shape(size_t input);
  /// That of a constant of fp32, fp16 or bf16; else fp32.
  Dtype constant_dtype(size_t input);
  /// Numbers of a constant. Throws where there are too many.
  const Numbers& numbers(size_t input);
  double scalar(size_t input);
  /// Refuses a constant of more axes than what it is broadcast to: the result would have as many,
  /// and its batch elsewhere than in front.
  void support_rank(size_t input, int most);
  /// The same of the constants of nodes that were joined to this one, on x as its first input.
  void support_joined_rank();
  /// The one value of all elements of a constant, however many.
  double uniform(size_t input);
  /// The same of a constant that lengthens none of an activation's axes.
  double uniform(size_t input, const Moved& of);
  /// Whether a constant has one row per sample of a file with a numeric batch, all rows equal.
  bool repeats_rows(size_t input);
  /// The range of an activation, or of a constant that is one number, combined with that dtype.
  Range range(size_t input, Dtype dtype);
  /// States the range of the first output, an activation.
  void claim(Range range);
  /// ONNX's number of the type of an operand that has integers in the file, which a graph has as
  /// numbers; 0 where it has others.
  int integer_type(size_t input) const;
  bool is_integer(size_t input) const { return integer_type(input) != 0; }
  /// Elements of a constant of any size, in row-major order.
  std::function<double(int64_t)> reader(size_t input);
  /// A constant as a parameter of that dtype, shaped as in the file.
  Value parameter(size_t input, Dtype dtype);
  /// A constant with `change` applied, as a parameter of its own.
  Value changed(size_t input, Dtype dtype, const Shape& shape,
                const std::function<double(const Initializer&, int64_t)>& change);
  Value scaled(size_t input, Dtype dtype, double factor);
  /// One number as a parameter [1].
  Value constant(double number, Dtype dtype);
  /// Numbers as a parameter of that shape.
  Value constants(const Shape& shape, Dtype dtype, const std::function<double(int64_t)>& number);
  Value reshaped(Value value, const Shape& shape);
  Value transposed(Value parameter);

  Value append(const Operation& operation, std::vector<Operand> operands);
  /// The same, for an operation with writes_cell: its y, then the cell state.
  std::pair<Value, Value> append_two(const Operation& operation, std::vector<Operand> operands);
  void set(size_t output, Value value);
  void set(Value value) { set(0, value); }
  void set(size_t output, Moved moved);
  /// Sets a result that was computed from each element or row of `like`.
  void set_like(const Moved& like, Value y);
  void set_scores(Scores scores);
  void set_numbers(size_t output, Numbers numbers);
  bool is_used(size_t output) const;  ///< by another node, or an output of the graph
  /// The only reader of the first output, which is not an output of the graph; else nullptr.
  const OnnxNode* only_reader() const;
  /// `reader` was lowered with the current node, too.
  void absorb(const OnnxNode& reader) { absorbed_.insert(&reader); }
  const Term& term(std::string_view name) const;
  bool is_constant(std::string_view name) const;  ///< known by now, and not an activation
  /// Runs `action` as if the other node were lowered.
  template <class Do>
  void visit(const OnnxNode& other, const Do& action) {
    const OnnxNode* own = std::exchange(node_, &other);
    action();
    node_ = own;
  }
  /// The batch's number in the file; -1 where it has none.
  int64_t batch() const { return batch_; }

 private:
  void check_extents() const;
  Value repeated(Value value, const View& view);
  [[noreturn]] void refuse_input(const ValueInfo& input, const std::string& why) const;
  Shape shape_of_input(const ValueInfo& input) const;
  Numbers fixed_input(const ValueInfo& input, Shape row, double number) const;
  void declare_inputs();
  void find_needed();
  static bool is_small(const Shape& shape);  ///< a row of the batch fits on some device
  std::optional<Dtype> mask_dtype(const ValueInfo& input) const;
  std::optional<Dtype> only_float() const;
  void lower_node(const OnnxNode& node);
  void note_integers(const OnnxNode& node);
  int integer_type(std::string_view name) const;
  std::optional<Rows> sample_rows(size_t input) const;
  /// Those of a result of constants. Refuses nodes that are wrong with one row for all.
  std::optional<Rows> rows_of_result();
  std::optional<Rows> rows_of_shape(const Numbers& wanted) const;
  std::optional<Rows> rows_beside(const Rows& rows, int64_t extent) const;
  std::optional<Rows> expanded_rows();
  std::optional<Rows> common_rows();
  std::optional<Rows> moved_rows();
  bool fold_reshaped_rows();
  bool fold_node();
  bool fold_tensor();
  Initializer picked(const Initializer& from, int axis, const std::vector<int64_t>& which);
  Initializer picked_by_node(Initializer from);
  Initializer joined_tensors();
  bool is_expanded(const Shape& shape);
  void set_tensor(size_t output, const Initializer& tensor);
  void fold_shape();
  void fold_constant();
  void fold_filled();
  std::string shown(size_t input) const;
  std::string free_name(const std::string& wanted);
  template <class Append>
  auto built(const Append& append);
  Value checked(Value value) const;  ///< throws where no device holds it
  Value settle(Term& term, const std::string& what);
  bool counts_with(size_t input) const;
  const Initializer& whole_numbers(size_t input, Dtype dtype);
  const Initializer& tensor(size_t input, Dtype dtype);
  Value declare(const Initializer& tensor, Dtype dtype, const std::string& name);
  void spend(int64_t numbers);
  void allow(int64_t bytes);

  OnnxFile& file_;
  const OnnxOptions& options_;
  const std::set<const OnnxNode*>& plain_;
  GraphBuilder builder_;
  Lowered lowered_;
  const OnnxNode* node_ = nullptr;
  std::map<std::string_view, Term, std::less<>> terms_;
  std::map<std::string_view, std::vector<const OnnxNode*>, std::less<>> readers_;
  std::vector<bool> needed_;  ///< of the file's nodes
  std::set<const OnnxNode*> absorbed_;
  std::map<std::string_view, int> integers_;  ///< activations of integers, with their type
  std::map<const Initializer*, Value> declared_;
  std::map<std::string, int64_t, std::less<>> taken_;  ///< with the next number to try
  std::vector<std::string_view> outputs_;
  int64_t spent_ = 0, made_bytes_ = 0;
  int64_t batch_ = -1;
};

/// The function that lowers an operator; nullptr for those that are not supported.
using Lower = void (*)(Lowering&);
Lower find_lower(std::string_view op);
void add_dense_operators(std::map<std::string_view, Lower>& table);
void add_einsum_operator(std::map<std::string_view, Lower>& table);
void add_elementwise_operators(std::map<std::string_view, Lower>& table);
void add_mask_operators(std::map<std::string_view, Lower>& table);
void add_recurrent_operators(std::map<std::string_view, Lower>& table);
void add_shape_operators(std::map<std::string_view, Lower>& table);
void add_window_operators(std::map<std::string_view, Lower>& table);
void add_upsampling_operators(std::map<std::string_view, Lower>& table);

/// Handle operators on scores; false where no input is one.
bool lower_scores_arithmetic(Lowering& at);
bool lower_scores_unchanged(Lowering& at);
bool lower_scores_softmax(Lowering& at);
bool lower_scores_tanh(Lowering& at);
bool lower_scores_where(Lowering& at);
/// One of two numbers, by the first input, which is Boolean.
Moved choose(Lowering& at, double if_true, double if_false);
/// left [.., M, K] times right [.., P, K], transposed, of activations whose axes in front are the
/// same or broadcast: [.., M, P].
Moved product(Lowering& at, const Moved& left, const Moved& right);
/// The same as the beginning of an attention; none where it cannot be one.
std::optional<Scores> begin_attention(Lowering& at, const Moved& left, const Moved& right);
/// softmax(scale q k^T + bias) v, the scaled product capped or not; v [.., K, P].
Moved finish_attention(Lowering& at, const Scores& scores, const Moved& v);
/// Sets the node's result, as it lies where nothing moved.
void set_product(Lowering& at, const Moved& y);
/// Sets that of left and right, which is an attention's where it can be.
void lower_factors(Lowering& at, const Moved& left, const Moved& right);
/// MatMul of two activations, or of a constant matrix by one.
void lower_products(Lowering& at);

/// Merges operators that exporters spell out into one: gelu, layernorm.
void join_patterns(OnnxFile& file);

}  // namespace wide::onnx
