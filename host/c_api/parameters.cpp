// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A member's parameters: borrowed, mapped or owned; and those of all members in files.
#include <iterator>

#include "host/c_api/handles.hpp"
#include "host/core/nearest.hpp"
#include "host/model/prefixed.hpp"
#include "host/pack/member_copy.hpp"
#include "wide/checkpoint.hpp"
#include "wide/models.hpp"
#include "wide/safetensors.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

/// Expands numbers that a file repeats into memory of their own: only then can C see them, or a
/// file of them be written.
void write_out_repeated(wide_parameters& parameters) {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  for (auto& [name, view] : parameters.views) {
    if (!is_one_repeated(view)) continue;
    const auto whole = std::make_shared<Tensor>(cpu, view.dtype, view.shape);
    const MemberCopy copy{view, *whole};
    copy_members_cpu(std::span(&copy, 1));
    parameters.kept.push_back(whole);
    view = *whole;
  }
}

/// Adds a file's tensors, or replaces those of their names.
template <class Choose>
wide_status load(const char* function, wide_parameters* parameters, const char* path,
                 const Choose& choose) {
  return guarded(function, [&] {
    wide_parameters& own = required(parameters, "parameters");
    const auto file = std::make_shared<const Safetensors>(Safetensors::open(text(path, "path")));
    MemberParameters views = choose(*file);
    own.kept.push_back(file);
    // Nothing below fails. Names that were handed out stay where they are: merge() leaves in
    // `views` those that there were before.
    own.views.merge(views);
    for (const auto& [name, view] : views) own.views.find(name)->second = view;
  });
}

}  // namespace

wide_status wide_parameters_create(wide_parameters** out) {
  return created(__func__, out, [] { return wide_parameters{}; });
}
wide_status wide_parameters_create_random(const wide_graph* graph, uint64_t seed, int64_t member,
                                          wide_parameters** out) {
  return created(__func__, out, [&] {
    return parameters_of(random_parameters(required(graph, "graph").graph, seed, member));
  });
}
wide_status wide_parameters_create_perturbed(const wide_parameters* parameters, double spread,
                                             uint64_t seed, int64_t member, wide_parameters** out) {
  return created(__func__, out, [&] {
    return parameters_of(
        perturbed_parameters(required(parameters, "parameters").views, spread, seed, member));
  });
}
wide_status wide_parameters_create_equal(const wide_graph* graph,
                                         const wide_parameters* const* members, int64_t num_members,
                                         wide_parameters** out) {
  return created(__func__, out, [&] {
    const std::vector<std::string> names =
        equal_parameters(required(graph, "graph").graph, members_of(members, num_members));
    wide_parameters equal;
    for (const std::string& name : names) equal.views.emplace(name, members[0]->views.at(name));
    if (!names.empty()) equal.kept = members[0]->kept;
    return equal;
  });
}

wide_status wide_parameters_create_prefixed(const wide_parameters* parameters, const char* prefix,
                                            wide_parameters** out) {
  return created(__func__, out, [&] {
    const wide_parameters& all = required(parameters, "parameters");
    using Entry = MemberParameters::value_type;
    const auto view_of = [](const Entry& entry) { return entry.second; };
    return wide_parameters{prefixed(all.views, &Entry::first, view_of, text(prefix, "prefix")),
                           all.kept};
  });
}

wide_status wide_parameters_set(wide_parameters* parameters, const char* name,
                                const wide_view* view) {
  return guarded(__func__, [&] {
    wide_parameters& own = required(parameters, "parameters");
    const TensorView given = view_of(view, "view");
    WIDE_REQUIRE(given.data != nullptr || given.num_elements() == 0,
                 "view: data is null, expected " + to_string(given.shape) + " elements");
    own.views.insert_or_assign(text(name, "name"), given);
  });
}

wide_status wide_parameters_load(wide_parameters* parameters, const char* path) {
  return load(__func__, parameters, path,
              [](const Safetensors& file) { return parameters_of(file); });
}
wide_status wide_parameters_load_for(wide_parameters* parameters, const char* path,
                                     const char* prefix, const wide_graph* graph) {
  return load(__func__, parameters, path, [&](const Safetensors& file) {
    const std::string_view first = prefix == nullptr ? "" : prefix;
    return graph == nullptr ? parameters_of(file, first) : parameters_of(file, graph->graph, first);
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
      throw_invalid_argument("there is no parameter \"" + wanted + "\" among " +
                             std::to_string(names.size()) + did_you_mean(wanted, names));
    }
    const ConstTensorView& view = found->second;
    write_view(out, TensorView(const_cast<void*>(view.data), view.dtype, view.shape, view.strides,
                               view.device));
  });
}

const char* wide_parameters_name(const wide_parameters* parameters, int64_t index) {
  if (parameters == nullptr) return nullptr;
  const MemberParameters& views = parameters->views;
  if (index < 0 || index >= std::ssize(views)) return nullptr;
  Listing& listing = parameters->listing;
  if (listing.num_names != views.size() || index < listing.index) {
    listing.num_names = views.size();
    listing.index = 0;
    listing.at = views.begin();
  }
  std::advance(listing.at, index - listing.index);
  listing.index = index;
  return listing.at->first.c_str();
}
void wide_parameters_destroy(wide_parameters* parameters) {
  delete parameters;
}

wide_status wide_members_open(const char* path, wide_members** out) {
  return created(__func__, out, [&] {
    const auto file = std::make_shared<const MembersFile>(MembersFile::open(text(path, "path")));
    wide_members members{file->graph_name(), std::nullopt, {}};
    for (const MemberParameters& views : file->members())
      members.members.push_back({views, {file}});
    return members;
  });
}

wide_status wide_members_query(const wide_members* members, wide_members_info* out) {
  return guarded(__func__, [&] {
    const wide_members& own = required(members, "members");
    wide_members_info value{};
    value.graph = own.graph_name.c_str();
    value.num_members = std::ssize(own.members);
    write(out, value);
  });
}

wide_status wide_members_graph(const wide_members* members, wide_graph** out) {
  return created(__func__, out, [&] {
    const wide_members& own = required(members, "members");
    if (!own.graph) {
      throw_unsupported("the file holds parameters of \"" + own.graph_name +
                        "\" and no graph, expected ONNX files");
    }
    return wide_graph{*own.graph};
  });
}

wide_status wide_members_get(const wide_members* members, int64_t member, wide_parameters** out) {
  return created(__func__, out, [&] {
    wide_parameters own =
        element(std::span(required(members, "members").members), member, "member");
    write_out_repeated(own);
    return own;
  });
}
void wide_members_destroy(wide_members* members) {
  delete members;
}
