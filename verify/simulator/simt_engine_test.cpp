// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's checks by small kernels, in both directions: what is right runs silently and
// computes what it should, what is wrong in one way is reported, in every order of warps and with
// every delivery of asynchronous copies. The kernels are in simt_kernels/, by subject.
#include <catch2/catch_test_macros.hpp>

#include "verify/support/simt_cases.hpp"

namespace wide::test {
namespace {

using enum simt::FindingKind;

constexpr const char* kUnordered = "without synchronisation in between";

}  // namespace

TEST_CASE("barriers of a block") {
  KernelCase counts_differ =
      wrong("named_barrier_counts_differ", barrier, "barrier 1: thread counts differ", 128);
  counts_differ.may_end_otherwise = true;
  check_cases(
      kernel_ptx("barriers_sm80"),
      {
          {"barrier_right", 256},
          wrong("barrier_missing", race, kUnordered),
          {"barrier_before_reuse", 256},
          wrong("barrier_missing_before_reuse", race, "over what"),
          {"barrier_needless", 96},
          {"barrier_after_exit", 128},
          {"barrier_reductions", 96},
          {"named_barrier_right", 128},
          wrong("named_barrier_same_for_both", race, kUnordered, 128),
          counts_differ,
          wrong("named_barrier_ragged_count", barrier, "48 threads, expected a multiple"),
          wrong("named_barrier_count_too_large", deadlock, "barrier barriers_sm80.cu", 128),
          {"named_barrier_arrive_right", 128},
          wrong("named_barrier_arrive_for_nobody", barrier, "64 of 128 arrivals on barrier 2", 128),
          wrong("named_barrier_arrive_after_write", race, kUnordered, 128),
          wrong("barrier_divergent", barrier, "came without the rest"),
      });
}

TEST_CASE("lanes of a warp") {
  check_cases(
      kernel_ptx("warps_sm80"),
      {
          {"warp_right", 32},
          wrong("warp_missing", race, kUnordered, 32),
          wrong("warp_only_shuffled", race, kUnordered, 32),
          wrong("warp_half_mask", race, kUnordered, 32),
          {"shuffle_right", 32},
          {"shuffle_half_right", 32},
          wrong("shuffle_full_mask_in_half", deadlock, "shfl.sync warps_sm80.cu", 32),
          wrong("shuffle_from_outside", warp, "which does not take part", 32),
          wrong("shuffle_caller_outside", warp, "a calling lane of warp 0 is not in the mask", 32),
          {"vote_right", 32},
          wrong("vote_caller_outside", warp, "is not in the mask", 32),
          {"vote_after_divergence", 32},
          {"matrix_after_long_way", 32},
          {"shared_atomic_right", 32},
          wrong("shared_atomic_and_plain", race, kUnordered, 32),
      });
}

TEST_CASE("single accesses") {
  std::vector<KernelCase> cases{
      {"global_right", 64, 3},
      wrong("global_read_past_end", out_of_bounds, "4 bytes past the end of buffer in"),
      wrong("global_read_before", out_of_bounds, "4 bytes before"),
      wrong("global_write_past_end", out_of_bounds, "4 bytes past the end of buffer out"),
      wrong("global_vector_past_end", out_of_bounds, "16 bytes past the end of buffer in"),
      wrong("global_misaligned", misaligned, "expected a multiple of 8"),
      wrong("global_uninitialised", uninitialised_read, "out"),
      wrong("global_read_only_write", read_only_write, "in"),
      wrong("global_exchange", race, kUnordered),
      {"global_exchange_ordered", 64},
      {"shared_dynamic", 64, 1, 256},
      wrong("shared_before", out_of_bounds, "bytes before the block's"),
      wrong("shared_misaligned", misaligned, "expected a multiple of 8"),
      wrong("shared_uninitialised", uninitialised_read, "which nothing has written"),
      wrong("shared_off_by_one", uninitialised_read, "which nothing has written"),
  };
  for (KernelCase& one : cases) {
    if (std::string(one.kernel).starts_with("shared_")) one.dynamic_shared_bytes = 256;
  }
  KernelCase too_little = wrong("shared_dynamic", out_of_bounds, "bytes past the end of the block");
  too_little.dynamic_shared_bytes = 252;
  cases.push_back(too_little);
  check_cases(kernel_ptx("bounds_sm80"), cases);
}

TEST_CASE("blocks") {
  check_cases(kernel_ptx("blocks_sm80"),
              {
                  {"blocks_apart", 64, 5},
                  wrong("blocks_write_the_same", race, "out", 64, 3),
                  wrong("blocks_read_what_others_write", race, "state", 64, 2),
                  {"blocks_add_atomically", 64, 5},
                  {"blocks_hand_over", 64, 2},
                  wrong("blocks_hand_over_without_writers_fence", race, "of block (0,0,0)", 64, 2),
                  wrong("blocks_hand_over_without_readers_fence", race, "of block (0,0,0)", 64, 2),
                  {"blocks_acquire_release", 64, 2},
                  wrong("blocks_release_without_barrier", race, "of block (0,0,0)", 64, 2),
                  {"blocks_last_one", 64, 4},
                  wrong("blocks_last_one_without_fence", race, "state", 64, 4),
                  {"blocks_in_turn", 64, 4},
                  wrong("blocks_in_turn_without_acquire", race, "state", 64, 4),
              });
}

TEST_CASE("copies that bypass registers") {
  KernelCase too_much = wrong("copy_takes_too_much", out_of_bounds, "takes 17 from its source");
  too_much.fault = simt::Fault::Kind::illegal_instruction;
  check_cases(kernel_ptx("copies_sm80"),
              {
                  {"copy_right"},
                  {"copy_by_toolkit"},
                  {"copy_first_of_two"},
                  wrong("copy_waits_for_too_few", in_flight, "has not been waited for"),
                  wrong("copy_never_waits", unfinished, "never waited for"),
                  wrong("copy_never_commits", in_flight, "has not been waited for"),
                  wrong("copy_never_commits", unfinished, "never committed to a group"),
                  wrong("copy_reads_own_early", in_flight, "has not been waited for"),
                  {"copy_reads_own"},
                  wrong("copy_without_barrier", race, kUnordered),
                  wrong("copy_overwritten", in_flight, "writes"),
                  wrong("copy_over_readers", race, "over what"),
                  {"copy_fills_zeros"},
                  too_much,
                  wrong("copy_misaligned", misaligned, "cp.async source"),
                  wrong("copy_past_end", out_of_bounds, "past the end of buffer in"),
              });
}

}  // namespace wide::test
