// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "compress/shape.hpp"

#include <algorithm>

namespace dblp::compress {
namespace {

// A message is at most what the protocol carries.
constexpr u64 kMaxMessageBytes = u64{1} << 29;

u64 topk_segments(const TopK& t, u32 selected) {
  return (u64{max_slots(t, selected)} + t.slots - 1) / t.slots;
}

Limits topk_limits(const CodecOptions& options, const Shape& shape) {
  const u32 n = static_cast<u32>(shape.elements);
  const u32 most = static_cast<u32>(shape.max_selected);
  u64 segments = 1;
  u32 slots = 0;
  // The width of distances depends on how many are selected: the larger of the
  // worst of each width.
  for (const u32 wide : {0U, 1U}) {
    const TopK t = make_topk_as(options.value, shape.segment_bytes, n, wide);
    const u32 selected = wide != 0 ? std::min<u32>(most, n / wide_from(options.value) + 1) : most;
    segments = std::max(segments, topk_segments(t, selected));
    slots = std::max(slots, max_slots(t, selected));
  }
  return {segments * shape.segment_bytes, static_cast<u32>(segments), slots};
}

}  // namespace

Status find_limits(const CodecOptions& options, const Shape& shape, Limits* limits) {
  if (shape.elements < 1 || shape.elements > kMaxElements) return Status::kBadOption;
  if (shape.segment_bytes < kMinSegmentBytes || shape.segment_bytes > kMaxSegmentBytes ||
      shape.segment_bytes % 4 != 0)
    return Status::kBadOption;
  if (shape.max_selected > shape.elements) return Status::kBadOption;
  const u32 value = static_cast<u32>(options.value);
  if (value < static_cast<u32>(Value::kF32) || value > static_cast<u32>(Value::kI4))
    return Status::kBadOption;
  switch (options.scheme) {
    case Scheme::kTopK:
      *limits = topk_limits(options, shape);
      break;
    case Scheme::kDense:
    case Scheme::kHadamard: {
      const Dense d = make_dense(options.scheme, options.value, shape.segment_bytes,
                                 static_cast<u32>(shape.elements), Random{});
      *limits = {u64{d.segments} * shape.segment_bytes, d.segments, 0};
      break;
    }
    default:
      return Status::kBadOption;
  }
  return limits->message_bytes <= kMaxMessageBytes ? Status::kOk : Status::kBadOption;
}

u64 dense_message_bytes(const Dense& dense, const Random& random) {
  const u32 last = dense.segments - 1;
  const u32 count = stripe_count(dense, stripe_place(dense, last),
                                 stripe_offset(random, dense.rows - 1, dense.segments));
  return u64{last} * dense.segment_bytes + dense_used(dense.value, count);
}

Status check_encode(const Codec& codec, const EncodeArgs& args) {
  if (args.input == nullptr || args.result == nullptr) return Status::kSmallBuffer;
  if (args.message.size() < codec.max_message_bytes()) return Status::kSmallBuffer;
  if (args.workspace.size() < codec.encode_workspace()) return Status::kSmallWorkspace;
  if (args.weights != nullptr && !codec.options().prune) return Status::kBadOption;
  if (args.selected > codec.shape().max_selected) return Status::kTooMany;
  return Status::kOk;
}

Status check_decode(const Codec& codec, const DecodeArgs& args) {
  if (args.output == nullptr) return Status::kSmallBuffer;
  if (args.workspace.size() < codec.decode_workspace()) return Status::kSmallWorkspace;
  const Shape& shape = codec.shape();
  const CodecOptions& options = codec.options();
  if (args.message.empty() || args.message.size() > codec.max_message_bytes())
    return Status::kBadLength;
  if (options.scheme != Scheme::kTopK) {
    const Random random = make_random(args.key.seed, args.key.round);
    const Dense dense = make_dense(options.scheme, options.value, shape.segment_bytes,
                                   static_cast<u32>(shape.elements), random);
    if (args.message.size() != dense_message_bytes(dense, random)) return Status::kBadLength;
  }
  if (!args.segments.empty() &&
      args.segments.size() < segments_of(args.message.size(), shape.segment_bytes))
    return Status::kSmallBuffer;
  return Status::kOk;
}

Status count_carried(const Codec& codec, Key key, std::span<const std::uint64_t> missing,
                     std::span<std::uint16_t> counts) noexcept {
  const Shape& shape = codec.shape();
  if (codec.options().scheme != Scheme::kDense) return Status::kUnsupported;
  if (counts.size() < shape.elements) return Status::kSmallBuffer;
  const Random random = make_random(key.seed, key.round);
  const Dense dense = make_dense(Scheme::kDense, codec.options().value, shape.segment_bytes,
                                 static_cast<u32>(shape.elements), random);
  for (u32 row = 0; row < dense.rows; ++row) {
    const u32 offset = stripe_offset(random, row, dense.segments);
    for (u32 segment = 0; segment < dense.segments; ++segment) {
      if (is_missing(missing, segment)) continue;
      const u64 from = u64{stripe_group(dense, stripe_place(dense, segment), row, offset)} * kGroup;
      for (u64 i = from; i < std::min<u64>(from + kGroup, shape.elements); ++i) ++counts[i];
    }
  }
  return Status::kOk;
}

const char* status_name(Status status) noexcept {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kMissing:
      return "missing";
    case Status::kShort:
      return "short";
    case Status::kWrongCodec:
      return "wrong_codec";
    case Status::kBadFlags:
      return "bad_flags";
    case Status::kBadCount:
      return "bad_count";
    case Status::kBadOrdinal:
      return "bad_ordinal";
    case Status::kBadIndex:
      return "bad_index";
    case Status::kBadDelta:
      return "bad_delta";
    case Status::kBadScale:
      return "bad_scale";
    case Status::kBadPadding:
      return "bad_padding";
    case Status::kOverlap:
      return "overlap";
    case Status::kBadLength:
      return "bad_length";
    case Status::kBadOption:
      return "bad_option";
    case Status::kTooMany:
      return "too_many";
    case Status::kSmallWorkspace:
      return "small_workspace";
    case Status::kSmallBuffer:
      return "small_buffer";
    case Status::kUnknownParameter:
      return "unknown_parameter";
    case Status::kTooMuchLoss:
      return "too_much_loss";
    case Status::kUnsupported:
      return "unsupported";
    case Status::kBadMagic:
      return "bad_magic";
    case Status::kBadVersion:
      return "bad_version";
    case Status::kTruncated:
      return "truncated";
    case Status::kBadChecksum:
      return "bad_checksum";
    case Status::kBadRecord:
      return "bad_record";
    case Status::kNoDevice:
      return "no_device";
    case Status::kDeviceFailed:
      return "device_failed";
  }
  return "unknown";
}

}  // namespace dblp::compress
