// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// NumPy's files: one array (.npy) or named ones (.npz), to read and to write.
//
// Untrusted files may be opened: what a file says of itself is checked before anything is handed
// out. Arrays are mapped; deflated ones of an .npz are inflated when they are first asked for, into
// as many bytes as the file states and no more, which in turn is no more than deflate can yield
// from what is there. Refused are headers that are not a plain dictionary of descr, fortran_order
// and shape, structured types, more than kMaxRank axes, too many or too few bytes; archives with
// duplicate names, names that lead elsewhere or are not an array's, entries that overlap, misstate
// their sizes, are encrypted or packed by anything but deflate; and arrays whose checksum is wrong.
// Formats: numpy.lib.format's versions 1.0 to 3.0, and PKWARE's APPNOTE with zip64.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wide/safetensors.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// One array of a file.
struct NpyEntry {
  std::string name;            ///< in an .npz: without ".npy"; "" in an .npy
  std::string type;            ///< the file's name of the dtype: "<f4"
  std::optional<Dtype> dtype;  ///< none where tensors have no such dtype: "<f8", ">f4", "|b1", ..
  Shape shape;
  bool is_fortran_order = false;  ///< the first axis runs fastest
  bool is_deflated = false;       ///< view() has to inflate it
  int64_t bytes = 0;
};

/// Arrays of one file, mapped into memory until the last copy of this object dies. The file must
/// not be shortened or written to meanwhile, but another may take its name.
class Npy {
 public:
  /// An .npy or an .npz, by its first bytes. Throws io, or invalid_argument for what is neither.
  static Npy open(const std::string& path);
  /// A whole file in memory, which must outlive this object; errors call it `name`.
  static Npy parse(std::span<const std::byte> file, const std::string& name);

  /// In the order of the file.
  std::span<const NpyEntry> entries() const;
  /// nullptr where there is none of that name.
  const NpyEntry* find(std::string_view name) const;
  /// On the CPU, valid as long as the file is mapped, at any address; in Fortran order by strides.
  /// Safe from several threads. The first view of an array of an .npz reads all its bytes.
  /// Throws invalid_argument, with the nearest name, where there is none, and where its checksum is
  /// wrong; unsupported where tensors have no such dtype.
  ConstTensorView view(std::string_view name) const;

 private:
  struct State;
  explicit Npy(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Writes what numpy.load reads. A crash at any moment leaves the old file or the new one, and so
/// does writing over a file that is open. Throws invalid_argument (a tensor that is not dense or
/// not on the CPU, a dtype that NumPy lacks: bf16, fp8) and io.
void save_npy(const std::string& path, const ConstTensorView& tensor);
/// Likewise, stored and each aligned to 64 bytes in the file. Also throws for a duplicate name, or
/// one that Npy would refuse.
void save_npz(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace wide
