// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models, whole or in pieces, and replays.
#include "wide/model.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "host/c_api/handles.hpp"
#include "host/core/check.hpp"
#include "wide/checkpoint.hpp"
#include "wide/chunked_model.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

void require_count(int64_t got, size_t expected, const char* what) {
  WIDE_REQUIRE(got == static_cast<int64_t>(expected), "model: " + std::to_string(got) + " " + what +
                                                          ", expected " + std::to_string(expected));
}

/// Views of a call's operands, in vectors of the calling thread: nothing is allocated after its
/// first run with as many. Their numbers are checked first, so that nothing past the caller's
/// arrays is read.
ModelArguments arguments_of(const ModelPlan& plan, const wide_view* inputs, int64_t num_inputs,
                            const wide_view* outputs, int64_t num_outputs) {
  thread_local std::vector<ConstTensorView> own_inputs;
  thread_local std::vector<TensorView> own_outputs;
  own_inputs.clear();
  own_outputs.clear();
  require_count(num_inputs, plan.inputs().size(), "inputs");
  require_count(num_outputs, plan.outputs().size(), "outputs");
  require_array(inputs, num_inputs, "inputs");
  require_array(outputs, num_outputs, "outputs");
  for (int64_t i = 0; i < num_inputs; ++i) {
    own_inputs.push_back(view_of(element_of(inputs, i), "inputs", i));
  }
  for (int64_t i = 0; i < num_outputs; ++i) {
    own_outputs.push_back(view_of(element_of(outputs, i), "outputs", i));
  }
  return {own_inputs, own_outputs};
}

Execution execution_of(Device device, const wide_execution* execution) {
  const wide_execution given = sized(execution, "execution");
  return {stream_of(device, given.stream),
          {given.workspace, given.workspace_bytes},
          given.handles == nullptr ? nullptr : &given.handles->handles};
}

/// Changes a member: `change` gets the model and the stream.
template <class Change>
wide_status changed(const char* function, wide_model* model, void* stream,
                    const Change& change) noexcept {
  return guarded(function, [&] {
    const wide_model& own = required(model, "model");
    change(*own.model, stream_of(own.context.device(), stream));
  });
}

}  // namespace

wide_status wide_model_create(const wide_context* context, const wide_plan* plan,
                              const wide_parameters* const* members, int64_t num_members,
                              wide_model** out) {
  return created(__func__, out, [&] {
    const Context& own = required(context, "context").context;
    const ModelPlan& planned = required(plan, "plan").plan;
    require_count(num_members, static_cast<size_t>(planned.problem().num_members), "members");
    return wide_model{own, std::make_shared<Model>(own, planned, members_of(members, num_members))};
  });
}

wide_status wide_model_run(const wide_model* model, const wide_view* inputs, int64_t num_inputs,
                           const wide_view* outputs, int64_t num_outputs,
                           const wide_execution* execution) {
  return guarded(__func__, [&] {
    const wide_model& own = required(model, "model");
    own.model->run(arguments_of(own.model->plan(), inputs, num_inputs, outputs, num_outputs),
                   execution_of(own.context.device(), execution));
  });
}

wide_status wide_model_replace(wide_model* model, int64_t member, const wide_parameters* parameters,
                               void* stream) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) {
    own.replace(member, required(parameters, "parameters").views, on);
  });
}
wide_status wide_model_set_parameter(wide_model* model, int64_t member, const char* name,
                                     const wide_view* view, void* stream) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) {
    own.set(member, text(name, "name"), view_of(view, "view"), on);
  });
}
wide_status wide_model_clone(wide_model* model, int64_t from, int64_t to, void* stream) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) { own.clone(from, to, on); });
}
wide_status wide_model_mask(wide_model* model, int64_t member, void* stream) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) { own.mask(member, on); });
}
wide_status wide_model_unmask(wide_model* model, int64_t member, void* stream) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) { own.unmask(member, on); });
}
wide_status wide_model_seed_dropout(wide_model* model, uint64_t seed, uint64_t sequence,
                                    void* stream) {
  return changed(__func__, model, stream,
                 [&](Model& own, Stream on) { own.seed_dropout(seed, sequence, on); });
}
wide_status wide_model_seed_members(wide_model* model, const uint64_t* seeds, int64_t num_seeds,
                                    uint64_t sequence, void* stream) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) {
    require_array(seeds, num_seeds, "seeds");
    own.seed_dropout(std::span(seeds, static_cast<size_t>(num_seeds)), sequence, on);
  });
}
wide_status wide_model_advance_dropout(wide_model* model, void* stream) {
  return changed(__func__, model, stream, [](Model& own, Stream on) { own.advance_dropout(on); });
}

wide_status wide_model_is_masked(const wide_model* model, int64_t member, int32_t* out) {
  return guarded(__func__, [&] {
    int32_t& place = required(out, "out");
    place = required(model, "model").model->is_masked(member) ? 1 : 0;
  });
}

wide_status wide_model_get(const wide_model* model, int64_t member, void* stream,
                           wide_parameters** out) {
  return created(__func__, out, [&] {
    const wide_model& own = required(model, "model");
    return parameters_of(own.model->get(member, stream_of(own.context.device(), stream)));
  });
}

wide_status wide_model_get_parameter(const wide_model* model, int64_t member, const char* name,
                                     const wide_view* destination, void* stream) {
  return guarded(__func__, [&] {
    const wide_model& own = required(model, "model");
    own.model->get(member, text(name, "name"), view_of(destination, "destination"),
                   stream_of(own.context.device(), stream));
  });
}

wide_status wide_model_compact(wide_model* model, void* stream, int64_t* was, int64_t* out) {
  return changed(__func__, model, stream, [&](Model& own, Stream on) {
    int64_t& place = required(out, "out");
    const std::vector<int64_t> from = own.compact(on);
    if (was != nullptr) std::copy(from.begin(), from.end(), was);
    place = std::ssize(from);
  });
}

wide_status wide_model_save(const wide_model* model, const char* path, void* stream) {
  return guarded(__func__, [&] {
    const wide_model& own = required(model, "model");
    save_members(text(path, "path"), *own.model, stream_of(own.context.device(), stream));
  });
}
wide_status wide_model_plan(const wide_model* model, wide_plan** out) {
  return created(__func__, out, [&] {
    const ModelPlan& plan = required(model, "model").model->plan();
    return wide_plan{plan, plan.explain()};
  });
}
wide_status wide_model_with_batch(const wide_model* model, int64_t batch, wide_model** out) {
  return created(__func__, out, [&] {
    const wide_model& own = required(model, "model");
    return wide_model{own.context, std::make_shared<Model>(own.model->with_batch(batch))};
  });
}
wide_status wide_model_with_num_members(const wide_model* model, int64_t num_members,
                                        wide_model** out) {
  return created(__func__, out, [&] {
    const wide_model& own = required(model, "model");
    return wide_model{own.context,
                      std::make_shared<Model>(own.model->with_num_members(num_members))};
  });
}
wide_status wide_model_with_batches(const wide_model* model, const int64_t* batches,
                                    int64_t num_batches, wide_model** out) {
  return created(__func__, out, [&] {
    const wide_model& own = required(model, "model");
    return wide_model{own.context, std::make_shared<Model>(own.model->with_batches(
                                       batches_of(batches, num_batches, "batches")))};
  });
}
void wide_model_destroy(wide_model* model) {
  delete model;
}

wide_status wide_chunked_create(const wide_model* model, int64_t batch, wide_chunked** out) {
  return created(__func__, out, [&] {
    const wide_model& own = required(model, "model");
    return wide_chunked{own.model->plan(), own.context.device(), ChunkedModel(*own.model, batch)};
  });
}
wide_status wide_chunked_workspace_bytes(const wide_chunked* chunked, int64_t* out) {
  return guarded(__func__, [&] {
    int64_t& place = required(out, "out");
    place = required(chunked, "chunked").model.workspace_bytes();
  });
}
wide_status wide_chunked_run(const wide_chunked* chunked, const wide_view* inputs,
                             int64_t num_inputs, const wide_view* outputs, int64_t num_outputs,
                             const wide_execution* execution) {
  return guarded(__func__, [&] {
    const wide_chunked& own = required(chunked, "chunked");
    own.model.run(arguments_of(own.plan, inputs, num_inputs, outputs, num_outputs),
                  execution_of(own.device, execution));
  });
}
void wide_chunked_destroy(wide_chunked* chunked) {
  delete chunked;
}

wide_status wide_replay_create(const wide_model* model, const wide_view* inputs, int64_t num_inputs,
                               const wide_view* outputs, int64_t num_outputs,
                               const wide_execution* execution, const wide_replay_options* options,
                               wide_replay** out) {
  return created(__func__, out, [&] {
    const wide_model& own = required(model, "model");
    const Device device = own.context.device();
    const wide_replay_options given = options_or_default(options, "options");
    return wide_replay{
        device, own.model,
        ModelReplay(own.context, *own.model,
                    arguments_of(own.model->plan(), inputs, num_inputs, outputs, num_outputs),
                    execution_of(device, execution),
                    {.advances_dropout = given.advances_dropout != 0})};
  });
}
wide_status wide_replay_run(const wide_replay* replay, void* stream) {
  return guarded(__func__, [&] {
    const wide_replay& own = required(replay, "replay");
    own.replay.run(stream_of(own.device, stream));
  });
}
void wide_replay_destroy(wide_replay* replay) {
  delete replay;
}
