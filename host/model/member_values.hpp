// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One member's parameters on the host, and what is computed from them before anything runs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "wide/model.hpp"

namespace wide {

/// A dense tensor on the host.
struct HostValue {
  ValueType type;
  std::vector<std::byte> bytes;
  friend bool operator==(const HostValue&, const HostValue&) = default;
};

ConstTensorView view_of(const HostValue& value);

using HostValues = std::map<std::string, HostValue, std::less<>>;

/// Throws invalid_argument, with `member`, for missing or unknown parameters and those that
/// require_parameter() refuses.
void require_parameters(const Context& context, const Graph& source, int64_t member,
                        const MemberParameters& parameters);
/// A member's parameters as the graph expects them: on the host, dense, of its dtype. Throws as
/// require_parameters().
HostValues checked_parameters(const Context& context, const Graph& source, int64_t member,
                              const MemberParameters& parameters, Stream stream);

/// One of the parameters. Throws invalid_argument where there is none of that name.
Value known_parameter(const Graph& source, std::string_view parameter);
/// Throws invalid_argument where a parameter of `source` can be neither read from nor written to
/// the view: another shape, a dtype that is not converted, a null pointer, another device than the
/// CPU and the context's. `role` is what the message says in front of its name.
void require_parameter(const Context& context, const Graph& source, int64_t member, Value parameter,
                       const ConstTensorView& view, std::string_view role = {});
HostValue checked_parameter(const Context& context, const Graph& source, int64_t member,
                            Value parameter, const ConstTensorView& view, Stream stream);

/// Rounded to nearest where the dtype is another one: fp32, fp16 or bf16, both.
HostValue converted(const Context& context, HostValue value, Dtype dtype);

/// The threads that compute values: a model's own where it is on the CPU, else threads that start
/// when first needed, once for all members that are loaded together.
class HostContext {
 public:
  explicit HostContext(const Context& model);
  const Context& get();

 private:
  std::optional<Context> context_;
};

/// A parameter, or a value that depends on parameters only, of the graph after the passes. Throws
/// unsupported with the node's name where nothing computes it on the host.
HostValue evaluate(const Graph& graph, Value value, const HostValues& parameters,
                   HostContext& host);

/// Names of the parameters that a value is, or is computed from.
std::set<std::string> parameters_in(const Graph& graph, Value value);

/// Axes in another order: axis i of the result is axis order[i]; rank 0: as they are.
HostValue permuted(HostValue value, const Dims& order);

/// A transposed convolution's weight, or bias, as `type`, which infer_types() has for the
/// operation.
HostValue conv_phases(const ConvPhasesOp& op, const HostValue& from, const ValueType& type);
/// The order that undoes it.
Dims inverse(const Dims& order);

}  // namespace wide
