// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A member's parameters: lent, mapped or owned.
#include <iterator>

#include "host/c_api/handles.hpp"
#include "host/core/nearest.hpp"
#include "wide/models.hpp"

using namespace wide;
using namespace wide::c_api;

wide_status wide_parameters_create(wide_parameters** out) {
  return created(__func__, out, [] { return wide_parameters{}; });
}
wide_status wide_parameters_create_random(const wide_graph* graph, uint64_t seed, int64_t member,
                                          wide_parameters** out) {
  return created(__func__, out, [&] {
    wide_parameters parameters;
    parameters.owned = random_parameters(required(graph, "graph").graph, seed, member);
    for (const auto& [name, tensor] : parameters.owned) parameters.views.emplace(name, tensor);
    return parameters;
  });
}

wide_status wide_parameters_set(wide_parameters* parameters, const char* name,
                                const wide_view* view) {
  return guarded(__func__, [&] {
    wide_parameters& own = required(parameters, "parameters");
    own.views.insert_or_assign(text(name, "name"), view_of(view, "view"));
  });
}

wide_status wide_parameters_load(wide_parameters* parameters, const char* path) {
  return guarded(__func__, [&] {
    wide_parameters& own = required(parameters, "parameters");
    const Safetensors file = Safetensors::open(text(path, "path"));
    MemberParameters views = own.views;
    for (const SafetensorsEntry& entry : file.entries()) {
      views.insert_or_assign(entry.name, file.view(entry.name));
    }
    own.files.push_back(file);
    own.views.swap(views);
  });
}

wide_status wide_parameters_save(const wide_parameters* parameters, const char* path) {
  return guarded(__func__, [&] {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, view] : required(parameters, "parameters").views) {
      tensors.push_back({name, view});
    }
    save_safetensors(text(path, "path"), tensors);
  });
}

wide_status wide_parameters_get(const wide_parameters* parameters, const char* name,
                                wide_view* out) {
  return guarded(__func__, [&] {
    const MemberParameters& views = required(parameters, "parameters").views;
    const std::string wanted = text(name, "name");
    const auto found = views.find(wanted);
    if (found == views.end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, view] : views) names.push_back(known);
      std::string near;
      for (const std::string& known : nearest_of(wanted, names)) near += " " + known;
      throw_invalid_argument("there is no parameter \"" + wanted + "\" among " +
                             std::to_string(names.size()) +
                             (near.empty() ? "" : ", expected one such as" + near));
    }
    const ConstTensorView& view = found->second;
    write_view(out, TensorView(const_cast<void*>(view.data), view.dtype, view.shape, view.strides,
                               view.device));
  });
}

const char* wide_parameters_name(const wide_parameters* parameters, int64_t index) {
  const auto count = parameters == nullptr ? 0 : static_cast<int64_t>(parameters->views.size());
  if (index < 0 || index >= count) return nullptr;
  return std::next(parameters->views.begin(), index)->first.c_str();
}
void wide_parameters_destroy(wide_parameters* parameters) {
  delete parameters;
}
