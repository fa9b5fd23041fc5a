// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// safetensors: named tensors in a file, to read and to write.
//
//   const Safetensors file = Safetensors::open("member3.safetensors");
//   const MemberParameters member = parameters_of(file);  // for a Model, which copies them
//   const MemberParameters first = parameters_of(all, "member0.");  // of several in a file
//
// parameters_of() and files of all members: checkpoint.hpp.
//
// A file is eight bytes with the header's length (little endian), the header (JSON), and the
// tensors' bytes. Untrusted files may be opened: lengths, offsets, shapes, dtypes and names are
// checked before anything is handed out, and what is read costs memory in proportion to the header.
// Refused are headers above 100,000,000 bytes; tensors that overlap, leave gaps, reach beyond the
// file or do not fill it; duplicate names; unknown dtypes; more than kMaxRank axes; keys that the
// format does not have. White space around the header's object is taken, as the format's own
// library does. Format: https://github.com/huggingface/safetensors
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wide/tensor.hpp"

namespace wide {

/// One tensor of a file.
struct SafetensorsEntry {
  std::string name;
  std::string_view type;       ///< the file's name of the dtype: "BF16"
  std::optional<Dtype> dtype;  ///< none where tensors have no such dtype: "F64", "BOOL", ..
  Shape shape;
  const void* data = nullptr;  ///< dense, row-major, at any address: formats below it align nothing
  int64_t bytes = 0;
};

/// Tensors of one file or of several, mapped into memory until the last copy of this object dies.
/// A file must not be shortened or written to meanwhile, but another may take its name.
class Safetensors {
 public:
  /// `path`: a file, or an index of several (`*.index.json`), whose parts must lie beside it and
  /// hold exactly the tensors that it says. Throws io, or invalid_argument for any other
  /// file.
  static Safetensors open(const std::string& path);
  /// A whole file in memory, which must outlive this object; errors call it `name`.
  static Safetensors parse(std::span<const std::byte> file, const std::string& name);

  /// In the order of bytes, file after file.
  std::span<const SafetensorsEntry> entries() const;
  /// nullptr where there is none of that name.
  const SafetensorsEntry* find(std::string_view name) const;
  /// On the CPU, valid as long as the file is mapped. Throws invalid_argument, with the nearest
  /// name, where there is none; unsupported where tensors have no such dtype.
  ConstTensorView view(std::string_view name) const;
  /// The header's `__metadata__`; of several files, the first that has a key decides.
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct State;
  explicit Safetensors(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

struct NamedTensor {
  std::string name;
  ConstTensorView tensor;  ///< densely packed, on the CPU
};

/// Writes a file that this and other readers open: tensors by falling element size, then by name,
/// each aligned to its element size. A crash at any moment leaves the old file or the new one, and
/// so does writing over a file that is open. Throws invalid_argument (a duplicate name, a tensor
/// that is not dense or not on the CPU, text that is not UTF-8) and io.
void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata = {});
/// The same for entries with the types of files, also those that tensors lack ("F64"), such as
/// entries that were read. `dtype` is ignored. Also throws invalid_argument where type, shape and
/// bytes contradict each other.
void save_safetensors(const std::string& path, std::span<const SafetensorsEntry> entries,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace wide
