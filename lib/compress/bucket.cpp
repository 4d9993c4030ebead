// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/compress/bucket.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "compress/shape.hpp"
#include "compress/sums.hpp"

namespace dblp::compress {
namespace {

// Parts of the message draw different numbers.
Key head_key(Key key) { return {~key.seed, key.round}; }

std::span<float> part(std::vector<float>& x, const Parameter& p) {
  return std::span(x).subspan(p.offset, p.length);
}

bool all_finite(std::span<const float> x) { return std::isfinite(energy_of(x.data(), x.size())); }

}  // namespace

// ---- both ends -------------------------------------------------------------

Result<BucketCodec> BucketCodec::create(const BucketOptions& options,
                                        std::span<const Parameter> parameters) {
  if (is_scaled(options.protected_value)) return Error(EINVAL, "format of protected parameters");
  BucketCodec bucket;
  bucket.options_ = options;
  bucket.parameters_.assign(parameters.begin(), parameters.end());
  std::uint64_t end = 0;
  std::uint64_t front = 0;
  for (const Parameter& p : parameters) {
    if (p.offset < end || p.offset > options.elements || p.length > options.elements - p.offset)
      return Error(EINVAL, "parameters of a bucket");
    end = p.offset + p.length;
    const std::uint64_t bytes = p.length * value_bits(options.codec.value) / 8;
    const bool small = p.dimensions <= 1 || bytes <= options.segment_bytes;
    bucket.protected_.push_back(options.protect_small && small);
    if (bucket.protected_.back()) front += p.length;
  }

  if (front > 0) {
    Result<std::unique_ptr<Codec>> head =
        make_codec({.scheme = Scheme::kDense, .value = options.protected_value},
                   {.elements = front, .segment_bytes = options.segment_bytes});
    if (!head) return head.error();
    bucket.head_ = std::move(*head);
    bucket.head_segments_ = bucket.head_->max_segments();
    bucket.front_.resize(front);
    bucket.front_residual_.resize(front);
  }
  if (front < options.elements) {
    Result<std::unique_ptr<Codec>> body =
        make_codec(options.codec, {.elements = options.elements,
                                   .segment_bytes = options.segment_bytes,
                                   .max_selected = options.max_selected});
    if (!body) return body.error();
    bucket.body_ = std::move(*body);
    bucket.body_missing_.resize((std::size_t{bucket.body_->max_segments()} + 63) / 64);
  }
  std::size_t workspace = 0;
  for (const Codec* codec : {bucket.head_.get(), bucket.body_.get()})
    if (codec != nullptr)
      workspace = std::max({workspace, codec->encode_workspace(), codec->decode_workspace()});
  bucket.workspace_.resize(workspace);
  return bucket;
}

std::size_t BucketCodec::max_message_bytes() const noexcept {
  return std::size_t{head_segments_} * options_.segment_bytes +
         (body_ != nullptr ? body_->max_message_bytes() : 0);
}

Status BucketCodec::encode(const EncodeArgs& args) noexcept {
  if (args.input == nullptr || args.residual == nullptr || args.result == nullptr ||
      args.message.size() < max_message_bytes())
    return Status::kSmallBuffer;
  const std::size_t split = std::size_t{head_segments_} * options_.segment_bytes;
  EncodeResult front{};
  if (head_ != nullptr) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!protected_[i]) continue;
      const Parameter& p = parameters_[i];
      for (std::uint64_t e = p.offset; e < p.offset + p.length; ++e, ++at) {
        front_[at] = args.input[e];
        front_residual_[at] = args.residual[e];
        // So that the body sees exactly zero there, without a copy of the input.
        args.residual[e] = -args.input[e];
      }
    }
    const Status status = head_->encode({.input = front_.data(),
                                         .residual = front_residual_.data(),
                                         .key = head_key(args.key),
                                         .message = args.message.first(split),
                                         .workspace = workspace_,
                                         .result = &front});
    if (status != Status::kOk) return status;
    std::fill(args.message.begin() + static_cast<std::ptrdiff_t>(front.message_bytes),
              args.message.begin() + static_cast<std::ptrdiff_t>(split), std::byte{0});
  }

  EncodeResult result = front;
  if (body_ != nullptr) {
    EncodeArgs body = args;
    body.message = args.message.subspan(split);
    body.workspace = workspace_;
    body.result = &result;
    const Status status = body_->encode(body);
    if (status != Status::kOk) return status;
    result.message_bytes += split;
    result.segments += head_segments_;
    result.finite = result.finite && front.finite;
  }
  if (head_ != nullptr) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!protected_[i]) continue;
      std::copy_n(front_residual_.data() + at, parameters_[i].length,
                  args.residual + parameters_[i].offset);
      at += parameters_[i].length;
    }
  }
  *args.result = result;
  return Status::kOk;
}

Status BucketCodec::decode(const DecodeArgs& args) noexcept {
  if (args.output == nullptr) return Status::kSmallBuffer;
  const std::size_t split = std::size_t{head_segments_} * options_.segment_bytes;
  DecodeResult front{};
  DecodeResult rest{};
  if (body_ != nullptr) {
    if (args.message.size() <= split) return Status::kBadLength;
    // The body's map begins at segment head_segments_ of the message's.
    for (std::size_t i = 0; i < body_missing_.size(); ++i) {
      const std::size_t bit = i * 64 + head_segments_;
      const auto word = [&](std::size_t w) {
        return w < args.missing.size() ? args.missing[w] : std::uint64_t{0};
      };
      body_missing_[i] = word(bit / 64) >> (bit % 64);
      if (bit % 64 != 0) body_missing_[i] |= word(bit / 64 + 1) << (64 - bit % 64);
    }
    DecodeArgs body = args;
    body.message = args.message.subspan(split);
    body.missing = body_missing_;
    body.workspace = workspace_;
    body.result = &rest;
    if (!args.segments.empty()) {
      if (args.segments.size() < segments_of(args.message.size(), options_.segment_bytes))
        return Status::kSmallBuffer;
      body.segments = args.segments.subspan(head_segments_);
    }
    const Status status = body_->decode(body);
    if (status != Status::kOk) return status;
  }
  if (head_ != nullptr) {
    const Key key = head_key(args.key);
    const Random random = make_random(key.seed, key.round);
    const std::size_t bytes = dense_message_bytes(
        make_dense(Scheme::kDense, options_.protected_value, options_.segment_bytes,
                   static_cast<u32>(front_.size()), random),
        random);
    const std::size_t there = std::min(args.message.size(), split);
    if (there < bytes) return Status::kBadLength;
    const Status status = head_->decode(
        {.message = args.message.first(bytes),
         .missing = args.missing,
         .key = key,
         .output = front_.data(),
         .workspace = workspace_,
         .segments = args.segments.empty() ? args.segments : args.segments.first(head_segments_),
         .result = &front});
    if (status != Status::kOk) return status;
    std::size_t at = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!protected_[i]) continue;
      const Parameter& p = parameters_[i];
      for (std::uint64_t e = p.offset; e < p.offset + p.length; ++e, ++at) {
        if (args.accumulate)
          args.output[e] += front_[at];
        else
          args.output[e] = front_[at];
      }
    }
  }
  if (args.result != nullptr)
    *args.result = {front.decoded + rest.decoded, front.missing + rest.missing,
                    front.refused + rest.refused,
                    front.refused > 0 ? front.first_refusal : rest.first_refusal};
  return Status::kOk;
}

// ---- the worker --------------------------------------------------------------

Result<BucketSender> BucketSender::create(BucketCodec& codec, Memory& memory,
                                          const RecoveryOptions& options) {
  const bool topk = codec.options().codec.scheme == Scheme::kTopK;
  const float beta = options.beta.value_or(topk ? 0.0F : 0.5F);
  if (!(beta >= 0.0F && beta <= 1.0F) || !(options.clip >= 0.0F) ||
      !(options.momentum >= 0.0F && options.momentum < 1.0F))
    return Error(EINVAL, "recovery options");
  BucketSender sender(codec, options, beta);
  const std::uint64_t elements = codec.options().elements;
  if (memory.bind(codec.parameters(), elements, beta > 0.0F, options.momentum > 0.0F,
                  &sender.arrays_) != Status::kOk)
    return Error(EINVAL, "parameters of a bucket");
  sender.owes_ = beta > 0.0F;  // what an earlier bucket or a file brought
  if (beta == 0.0F) sender.scratch_.resize(elements);
  sender.lost_map_.resize(codec.max_message_bytes() / codec.options().segment_bytes / 64 + 1);
  for (const Parameter& p : codec.parameters()) sender.losses_.push_back({.id = p.id});
  return sender;
}

// residual += lost, as far as the clip lets it; losses_ has the norms.
void BucketSender::take_up_lost() noexcept {
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const std::span<float> lost = part(arrays_->lost, codec_->parameters_[i]);
    const double owed = energy_of(lost.data(), lost.size());
    if (owed == 0.0) continue;
    const double limit = static_cast<double>(options_.clip) * std::sqrt(losses_[i].energy);
    const double norm = std::sqrt(owed);
    // Also where one of them is not finite.
    if (!std::isfinite(norm) || !std::isfinite(limit)) {
      ++dropped_nonfinite_;
      continue;
    }
    float factor = 1.0F;
    if (norm > limit) {
      factor = static_cast<float>(limit / norm);
      ++clipped_;
    }
    const std::span<float> residual = part(arrays_->residual, codec_->parameters_[i]);
    for (std::size_t e = 0; e < lost.size(); ++e)
      residual[e] = std::fma(factor, lost[e], residual[e]);
  }
}

void BucketSender::drop_nonfinite() noexcept {
  for (const Parameter& p : codec_->parameters_) {
    const std::span<float> residual = part(arrays_->residual, p);
    bool dropped = !all_finite(residual);
    if (dropped) std::ranges::fill(residual, 0.0F);
    if (!arrays_->momentum.empty()) {
      const std::span<float> momentum = part(arrays_->momentum, p);
      if (!all_finite(momentum)) {
        std::ranges::fill(momentum, 0.0F);
        dropped = true;
      }
    }
    dropped_nonfinite_ += dropped ? 1 : 0;
  }
}

Status BucketSender::encode(const Round& round) noexcept {
  const std::uint64_t elements = codec_->options().elements;
  if (round.gradient.size() != elements || round.result == nullptr ||
      round.message.size() < codec_->max_message_bytes())
    return Status::kSmallBuffer;
  if (codec_->body_ != nullptr && round.selected > codec_->options().max_selected)
    return Status::kTooMany;

  const float* source = round.gradient.data();
  if (options_.momentum > 0.0F) {
    std::vector<float>& m = arrays_->momentum;
    for (std::uint64_t i = 0; i < elements; ++i)
      m[i] = std::fma(options_.momentum, m[i], round.gradient[i]);
    source = m.data();
  }
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const Parameter& p = codec_->parameters_[i];
    losses_[i] = {.id = p.id, .energy = energy_of(source + p.offset, p.length)};
  }

  const bool changed = started_ && round.phase != phase_;
  started_ = true;
  phase_ = round.phase;
  if (owes_) {
    if (changed && options_.drop_on_phase_change)
      ++dropped_phase_;
    else
      take_up_lost();
    std::ranges::fill(arrays_->lost, 0.0F);
    owes_ = false;
  }

  const Status status = codec_->encode({.input = source,
                                        .residual = arrays_->residual.data(),
                                        .selected = round.selected,
                                        .key = round.key,
                                        .message = round.message,
                                        .result = round.result});
  if (status == Status::kOk && !round.result->finite) drop_nonfinite();
  return status;
}

Status BucketSender::settle(std::span<const std::byte> message, Key key,
                            std::span<const std::uint64_t> missing) noexcept {
  // The lost segments alone are decoded: what they carried is what was lost.
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < lost_map_.size(); ++i) {
    const std::uint64_t word = i < missing.size() ? missing[i] : 0;
    any |= word;
    lost_map_[i] = ~word;
  }
  if (any == 0) return Status::kOk;
  std::vector<float>& lost = beta_ > 0.0F ? arrays_->lost : scratch_;
  const Status status = codec_->decode({.message = message,
                                        .missing = lost_map_,
                                        .key = key,
                                        .output = lost.data(),
                                        .workspace = {},
                                        .segments = {}});
  if (status != Status::kOk) return status;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const std::span<float> values = part(lost, codec_->parameters_[i]);
    losses_[i].lost_energy = energy_of(values.data(), values.size());
    losses_[i].lost_elements =
        values.size() - static_cast<std::uint64_t>(std::ranges::count(values, 0.0F));
  }
  if (beta_ == 0.0F) return Status::kOk;
  for (float& x : lost) x *= beta_;
  owes_ = true;
  return Status::kOk;
}

}  // namespace dblp::compress
