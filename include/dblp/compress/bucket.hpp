// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// A bucket of parameters as one message: small and one-dimensional parameters
// exact enough and in front, where the transport protects them; the rest
// through a codec.
//
//   BucketCodec codec = BucketCodec::create({...}, parameters).value();
//   BucketSender sender(codec, memory, {});            // at the worker
//   sender.encode({.gradient = g, .key = {seed, round}, .message = m, .result = &r});
//   options.protect = {codec.protect()};               // dblp::SendOptions
//   ... completion with its delivery map ...
//   sender.settle(m, {seed, round}, map_words);
//   codec.decode(...);                                 // at the owner
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dblp/compress/codec.hpp"
#include "dblp/compress/recovery.hpp"
#include "dblp/map.hpp"

namespace dblp::compress {

struct BucketOptions {
  CodecOptions codec;
  // Of protected parameters. One of kF32, kF16, kBF16.
  Value protected_value = Value::kF16;
  bool protect_small = true;  // one-dimensional ones, and those smaller than a segment
  std::uint64_t elements = 0;
  std::uint32_t segment_bytes = 0;
  std::uint64_t max_selected = 0;  // kTopK
};

// Both ends create it with the same arguments. On the CPU.
class DBLP_EXPORT BucketCodec {
 public:
  // EINVAL: as make_codec(), or parameters that overlap or are out of order.
  static Result<BucketCodec> create(const BucketOptions& options,
                                    std::span<const Parameter> parameters);

  [[nodiscard]] const BucketOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  [[nodiscard]] std::size_t max_message_bytes() const noexcept;
  // Bytes of the message that must arrive: whole segments from its beginning.
  [[nodiscard]] Range protect() const noexcept {
    return {0, std::uint64_t{head_segments_} * options_.segment_bytes};
  }
  [[nodiscard]] bool is_protected(std::size_t parameter) const noexcept {
    return protected_[parameter];
  }

  // residual (required): as EncodeArgs. Where a parameter is protected, input
  // and residual go into the front part.
  Status encode(const EncodeArgs& args) noexcept;
  // missing: over the whole message. segments as well.
  Status decode(const DecodeArgs& args) noexcept;

 private:
  BucketCodec() = default;

  BucketOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<bool> protected_;
  std::uint32_t head_segments_ = 0;
  std::unique_ptr<Codec> head_;  // null: nothing is protected
  std::unique_ptr<Codec> body_;  // null: all is
  // Owned here so that one object is all a bucket needs; sized once.
  std::vector<std::byte> workspace_;
  std::vector<float> front_;
  std::vector<float> front_residual_;
  std::vector<std::uint64_t> body_missing_;

  friend class BucketSender;
};

// A worker's side of a bucket: codec residual, network losses, momentum.
class DBLP_EXPORT BucketSender {
 public:
  struct Round {
    std::span<const float> gradient;
    std::uint64_t selected = 0;  // kTopK
    Key key;
    std::uint8_t phase = 0;
    std::span<std::byte> message;
    EncodeResult* result = nullptr;
  };

  // EINVAL: parameters that the memory refuses.
  static Result<BucketSender> create(BucketCodec& codec, Memory& memory,
                                     const RecoveryOptions& options);

  Status encode(const Round& round) noexcept;
  // When the transport has judged the message of the last encode(): `message`
  // as it was encoded, `missing` the words of its delivery map. Without it what
  // was lost is lost.
  Status settle(std::span<const std::byte> message, Key key,
                std::span<const std::uint64_t> missing) noexcept;

  // Of the last round; lost_* after settle().
  [[nodiscard]] std::span<const LayerLoss> losses() const noexcept { return losses_; }
  [[nodiscard]] float beta() const noexcept { return beta_; }
  // Times a parameter's residual was dropped for NaN or infinity, shortened by
  // the clip, or dropped at a change of phase.
  [[nodiscard]] std::uint64_t dropped_nonfinite() const noexcept { return dropped_nonfinite_; }
  [[nodiscard]] std::uint64_t clipped() const noexcept { return clipped_; }
  [[nodiscard]] std::uint64_t dropped_phase() const noexcept { return dropped_phase_; }

 private:
  BucketSender(BucketCodec& codec, const RecoveryOptions& options, float beta)
      : codec_(&codec), options_(options), beta_(beta) {}
  void take_up_lost() noexcept;
  void drop_nonfinite() noexcept;

  BucketCodec* codec_;
  RecoveryOptions options_;
  float beta_;
  std::shared_ptr<Memory::Arrays> arrays_;
  std::vector<float> scratch_;  // of settle() where beta is 0
  std::vector<std::uint64_t> lost_map_;
  std::vector<LayerLoss> losses_;
  bool owes_ = false;  // arrays_->lost holds something
  bool started_ = false;
  std::uint8_t phase_ = 0;
  std::uint64_t dropped_nonfinite_ = 0;
  std::uint64_t clipped_ = 0;
  std::uint64_t dropped_phase_ = 0;
};

}  // namespace dblp::compress
