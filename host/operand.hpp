// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of a workload, and the half of Workload that is the same for every primitive: seeded
// contents, guard bands, poison, reading back. The index arithmetic here is plain loops over the
// documented layouts; it shares nothing with pack(), which it helps to test.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wide/catalog.hpp"
#include "wide/pack.hpp"

namespace wide::catalog {

/// Where an operand's values come from.
struct Distribution {
  enum class Kind : uint8_t {
    uniform,
    normal,
    trig,
    cancelling,
    paired,
    wide_range,
    integers,
    ids,
    few_ids,
    zipf_ids,
    none
  };
  Kind kind = Kind::uniform;
  double low = -1, high = 1;  ///< inclusive for integers and ids; normal's deviation is high
  double density = 1;         ///< integers: share of non-zeros
  double specials = 0;        ///< uniform: share of NaN and infinities
  bool stays_finite = false;  ///< has no specials, whatever the fill

  static Distribution uniform(double low = -1, double high = 1) {
    return {Kind::uniform, low, high, 1};
  }
  /// For values that a call may multiply by 0 although they are hidden.
  Distribution finite(bool is_so = true) const {
    Distribution same = *this;
    same.stays_finite = is_so;
    return same;
  }
  static Distribution integers(double low, double high, double density = 1) {
    return {Kind::integers, low, high, density};
  }
  static Distribution ids(int64_t vocab) {
    return {Kind::ids, 0, static_cast<double>(vocab - 1), 1};
  }
  /// Up to four different ids, spread over the table.
  static Distribution few_ids(int64_t vocab) {
    return {Kind::few_ids, 0, static_cast<double>(vocab - 1), 1};
  }
  /// Zipf's law: id k is drawn about 1 / (k + 1) as often as id 0.
  static Distribution zipf_ids(int64_t vocab) {
    return {Kind::zipf_ids, 0, static_cast<double>(vocab - 1), 1};
  }
  static Distribution none() { return {Kind::none, 0, 0, 0}; }  ///< an output
};

/// Applies a fill's rules to an operand's distribution; the first operand of a workload is the one
/// that others weigh. Does not handle integers and specials.
Distribution shaped(const Distribution& from, Fill fill, Dtype dtype, bool is_first);

/// Where a member's values lie in a stored tensor: a view of it, in elements, the last axis
/// contiguous.
struct MemberPlace {
  Shape shape;
  int64_t offset = 0;
  Strides strides;
  /// Which indices of the first axis are the member's, ascending; empty: 0, 1, 2, ...
  std::vector<int64_t> rows{};
};

/// One operand: its packed tensor on the device between guard bands, the same values on the host,
/// and one separate, densely packed tensor per member for the baseline (made when first asked for).
class Operand {
 public:
  struct Description {
    PackedOperand packing;
    Dtype dtype = Dtype::fp32;
    Shape member_shape;
    int64_t num_members = 1;
    bool is_shared = false;  ///< one tensor of member_shape, read by all members
    Distribution distribution{};
    int64_t occurrence = 0;  ///< which of a workload's operands of this name: contents differ
    /// Where members of different shapes lie in a tensor of one axis; `packing` then is a name
    /// only, and only the gaps between the places are padding. Empty: as `packing` says.
    std::vector<MemberPlace> ragged{};
    int64_t ragged_elements = 0;  ///< of that tensor, at least
    /// Instead of a distribution, for member tensors of rank 1: writes one's bytes. Depends on its
    /// arguments only; called by several threads at a time.
    std::function<void(int64_t id, bool is_poisoned, std::span<std::byte> bytes)> contents{};
    bool is_state = false;  ///< an input that calls may write to: its values are not checked
    int64_t granule = 1;    ///< contiguous elements: misalignment and padding are multiples
  };

  Operand(const Context& context, const Description& description, const WorkloadOptions& options);
  ~Operand();
  Operand(const Operand&) = delete;

  const Description& description() const;
  bool is_output() const;
  const Shape& member_shape(int64_t index) const;
  int64_t num_tensors() const;  ///< one for each member, or one for all
  /// The packed tensor (shared: the one tensor); strided where the options ask for padding.
  TensorView packed() const;
  /// Member i's own tensor for the baseline.
  TensorView member(int64_t index) const;
  /// Member i's values, decoded, in the order of a densely packed member tensor. Valid until
  /// those of another member are asked for; threads may ask for one member's at once.
  std::span<const double> values(int64_t member) const;
  int64_t bytes() const;  ///< of the packed tensor, without gaps

  /// Fills with 0xFF bytes, guard bands included: what damage() then finds is of later calls.
  void poison(OutputOf which, Stream stream);
  MemberOutputs read(OutputOf which, Stream stream) const;
  /// Reports forbidden writes: to guard bands, gaps and, for inputs, any byte; also of the
  /// members' own tensors, where there are any. Empty: none.
  std::string damage(Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Base of the primitives' workloads. A primitive adds its operands, output last, in its
/// constructor and implements the rest of Workload. Workloads with several outputs define what a
/// row is.
class PackedWorkload : public Workload {
 public:
  int64_t num_members() const final { return num_members_; }
  int64_t num_outputs() const override;
  int64_t footprint_bytes() const override;
  std::vector<WorkloadInput> input_views() const final;
  void poison_outputs(OutputOf which, Stream stream) override;
  MemberOutputs read_outputs(OutputOf which, Stream stream) override;
  std::string damage(Stream stream) final;
  int64_t rows(int64_t member) const override;
  int64_t row_length(int64_t member) const override;

 protected:
  PackedWorkload(const Context& context, int64_t num_members, const WorkloadOptions& options);
  /// The reference stays valid for the workload's life. The last axis of an output's member shape
  /// is its row.
  Operand& add_operand(const PackedOperand& packing, Dtype dtype, const Shape& member_shape,
                       const Distribution& distribution, bool is_shared = false);
  /// The same where the primitive may lack it; null where it does.
  Operand* add_operand_if(bool is_there, const PackedOperand& packing, Dtype dtype,
                          const Shape& member_shape, const Distribution& distribution,
                          bool is_shared = false);
  /// The same for members of different shapes, one place each, in `elements` at least.
  Operand& add_ragged_operand(std::string_view name, Dtype dtype, std::vector<MemberPlace> places,
                              const Distribution& distribution, int64_t elements = 0);
  /// The number of members and the occurrence are filled in.
  Operand& add_operand(Operand::Description description);
  const Context& context() const { return context_; }
  const WorkloadOptions& options() const { return options_; }
  /// Why no strategy that calls cuBLAS can run; empty where one can, and on the CPU, where none
  /// calls it. Asked once, when first needed: starting cuBLAS takes milliseconds.
  const std::string& cublas_unavailable_reason() const;

 private:
  Context context_;
  int64_t num_members_;
  WorkloadOptions options_;
  std::deque<Operand> operands_;
  mutable std::optional<std::string> cublas_reason_;
};

}  // namespace wide::catalog
