// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// checkpoint: members' parameters in files: all in one, or a member in each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wide/model.hpp"
#include "wide/npy.hpp"
#include "wide/safetensors.hpp"

namespace wide {

/// The tensors of any file whose names begin with `prefix`, by the rest of their names: one member
/// of several in a file, "member0.", or one network of many, "policy.". Views, valid as long as the
/// file is mapped. Throws invalid_argument where no name begins with a prefix that is not empty; as
/// view() where one of these has no view.
MemberParameters parameters_of(const Safetensors& file, std::string_view prefix = {});
MemberParameters parameters_of(const Npy& file, std::string_view prefix = {});
/// The parameters of a graph from a file that may have more, of any types: name NAME is the tensor
/// prefix + NAME. Throws as view() where one is missing or has no view.
MemberParameters parameters_of(const Safetensors& file, const Graph& graph,
                               std::string_view prefix = {});
MemberParameters parameters_of(const Safetensors&& file, const Graph& graph,
                               std::string_view prefix = {}) = delete;
MemberParameters parameters_of(const Safetensors&& file, std::string_view prefix = {}) = delete;
MemberParameters parameters_of(const Npy&& file, std::string_view prefix = {}) = delete;

/// All members' parameters in one safetensors file: "3/fc1.weight" is member 3's; the metadata has
/// the number of members and the graph's name. Waits for `stream`.
void save_members(const std::string& path, const Model& model, Stream stream);
/// One member's, under the graph's own names.
void save_member(const std::string& path, const Model& model, int64_t member, Stream stream);

/// The members of a file that save_members wrote, as long as this object lives.
class MembersFile {
 public:
  /// Throws io, and invalid_argument for any other file.
  static MembersFile open(const std::string& path);
  int64_t num_members() const { return static_cast<int64_t>(members_.size()); }
  const std::string& graph_name() const { return graph_name_; }
  std::span<const MemberParameters> members() const& { return members_; }
  std::span<const MemberParameters> members() const&& = delete;

 private:
  MembersFile(std::shared_ptr<const void> file, std::string graph_name,
              std::vector<MemberParameters> members);
  std::shared_ptr<const void> file_;
  std::string graph_name_;
  std::vector<MemberParameters> members_;
};

}  // namespace wide
