// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// What becomes of the part of a gradient that was not delivered.
//
// What the codec dropped always stays in a residual and is sent later. What the
// network dropped is known from the delivery map; a share beta of it is sent
// again, never more than `clip` times the gradient's own norm: stale gradients
// hurt more than zeros (Documentation/design/compression.rst has the figures).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dblp/compress/codec.hpp"

namespace dblp::compress {

using ParameterId = std::uint64_t;

// A parameter's place in a bucket.
struct Parameter {
  ParameterId id = 0;
  std::uint64_t offset = 0;  // elements
  std::uint64_t length = 0;  // at least 1
  std::uint32_t dimensions = 1;
};

struct RecoveryOptions {
  // Share of what the network lost that is sent again. Default: 0.5, and 0 for
  // kTopK, where it does harm. 0 is "zero": what is lost is lost.
  std::optional<float> beta;
  // Per parameter, in norms of the gradient of the round that takes it up.
  float clip = 1.0F;
  // A residual of another phase is another model's gradient.
  bool drop_on_phase_change = true;
  // Above 0: momentum is kept here, m = momentum * m + gradient, and m is sent.
  // The optimizer's own must then be 0. Recommended for SGD.
  float momentum = 0.0F;
};

// One parameter in one round.
struct LayerLoss {
  ParameterId id = 0;
  double energy = 0;       // sum of squares of the gradient, or of the momentum
  double lost_energy = 0;  // of what the network lost of the message
  std::uint64_t lost_elements = 0;
};

// The state of all parameters of a sender. It is keyed by parameter, so that it
// survives when they are put into other buckets.
class DBLP_EXPORT Memory {
 public:
  // Arrays over a bucket; those not asked for are empty.
  struct Arrays {
    std::vector<float> residual;  // what the codec owes
    std::vector<float> lost;      // what the network lost, times beta
    std::vector<float> momentum;
  };

  // The state of these parameters, side by side as in the bucket. Buckets bound
  // earlier with any of them must not be used any more. A parameter whose length
  // has changed starts anew. kBadOption: parameters overlap, are out of order,
  // or occur twice.
  Status bind(std::span<const Parameter> parameters, std::uint64_t elements, bool lost,
              bool momentum, std::shared_ptr<Arrays>* arrays);

  [[nodiscard]] std::size_t parameters() const noexcept { return entries_.size(); }
  // Parameters whose state was given up because their length changed.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

  // A file's contents, the same for the same state.
  [[nodiscard]] std::vector<std::byte> save() const;
  // Replaces the state, or says why not and changes nothing. Bind after it.
  Status restore(std::span<const std::byte> bytes);

 private:
  struct Entry {
    std::shared_ptr<Arrays> arrays;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  std::map<ParameterId, Entry> entries_;
  std::uint64_t dropped_ = 0;
};

// ---- the owner's side, for comparison ----------------------------------------

// These two are refused above this share of lost elements: there they are worse
// than zeros by a wide margin.
inline constexpr double kMaxReplacedShare = 0.20;

// sum[i] *= workers / counts[i]; counts as count_carried() over all workers.
DBLP_EXPORT Status rescale_by_count(std::span<float> sum, std::span<const std::uint16_t> counts,
                                    std::uint32_t workers) noexcept;
// Where counts[i] is 0, sum[i] = previous[i].
DBLP_EXPORT Status keep_stale(std::span<float> sum, std::span<const float> previous,
                              std::span<const std::uint16_t> counts) noexcept;

}  // namespace dblp::compress
