// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Where everything lies in a message: Documentation/networking/dblp-codec.rst
// in code, for the encoders, the decoders and the CUDA kernels alike.
#pragma once

#include "compress/ops.hpp"
#include "dblp/compress/codec.hpp"

namespace dblp::compress {

// 64 bytes of the tensor: one cache line is lost or kept as a whole.
constexpr u32 kGroup = 16;
// One block of the Hadamard transform. A power of 4, so that its normalisation
// is exact.
constexpr u32 kTransform = 1024;
constexpr float kTransformScale = 1.0F / 32;

constexpr u32 kWideFlag = 0x01;  // distances of 16 bits
constexpr u32 kHeaderBytes = 8;
constexpr u32 kScaledHeaderBytes = 12;

DBLP_HD u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
DBLP_HD u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }
DBLP_HD u32 round_up(u32 x, u32 to) { return (x + to - 1) / to * to; }

// Everything on the wire is little-endian and read by bytes: a peer aligns
// nothing for us.
DBLP_HD u32 get_u16(const u8* p) { return p[0] | u32{p[1]} << 8; }
DBLP_HD u32 get_u32(const u8* p) { return get_u16(p) | get_u16(p + 2) << 16; }
DBLP_HD void put_u16(u8* p, u32 x) {
  p[0] = static_cast<u8>(x);
  p[1] = static_cast<u8>(x >> 8);
}
DBLP_HD void put_u32(u8* p, u32 x) {
  put_u16(p, x);
  put_u16(p + 2, x >> 16);
}

DBLP_HD u32 value_bits(Value value) {
  switch (value) {
    case Value::kF32:
      return 32;
    case Value::kF16:
    case Value::kBF16:
      return 16;
    case Value::kI8:
      return 8;
    default:
      return 4;
  }
}

DBLP_HD bool is_scaled(Value value) { return value == Value::kI8 || value == Value::kI4; }
DBLP_HD i32 levels_of(Value value) { return value == Value::kI8 ? 127 : 7; }
DBLP_HD u32 header_bytes(Value value) {
  return is_scaled(value) ? kScaledHeaderBytes : kHeaderBytes;
}
DBLP_HD u32 format_byte(Scheme scheme, Value value) {
  return static_cast<u32>(scheme) << 4 | static_cast<u32>(value);
}
DBLP_HD u32 value_bytes(Value value, u32 count) { return (count * value_bits(value) + 7) / 8; }

struct Header {
  u32 format;
  u32 flags;
  u32 count;
  u32 base;
  u32 scale_bits;
};

DBLP_HD void put_header(u8* p, const Header& h, Value value) {
  p[0] = static_cast<u8>(h.format);
  p[1] = static_cast<u8>(h.flags);
  put_u16(p + 2, h.count);
  put_u32(p + 4, h.base);
  if (is_scaled(value)) put_u32(p + 8, h.scale_bits);
}

// A scale is finite and not negative, or the NaN that make_scale() gives.
DBLP_HD bool scale_is_good(u32 bits) { return bits < kInfBits || bits == kNanBits; }

// Dense. T groups of the tensor are laid out in rows of N, the number of
// segments; segment j has one group of each row, at place (c(j) + b(row)) mod N.
struct Dense {
  Scheme scheme;
  Value value;
  u32 segment_bytes;
  u32 elements;
  u32 groups;    // T
  u32 segments;  // N
  u32 rows;      // groups a segment has, or one more than it has
  u32 stride;    // c(j) = stride * j mod N; coprime to N
};

// Groups that fit into one segment.
DBLP_HD u32 groups_per_segment(Value value, u32 segment_bytes) {
  return (segment_bytes - header_bytes(value)) / (kGroup * value_bits(value) / 8);
}

DBLP_HD u32 stripe_offset(const Random& random, u32 row, u32 segments) {
  const Block block = random_block(random, kForStripe, row / 4);
  return static_cast<u32>(u64{block.w[row % 4]} * segments >> 32);
}

DBLP_HD u32 stripe_place(const Dense& dense, u32 segment) {
  return static_cast<u32>(u64{dense.stride} * segment % dense.segments);
}

// The group of `row` that segment with place c has; may be past the last one.
DBLP_HD u32 stripe_group(const Dense& dense, u32 place, u32 row, u32 offset) {
  u32 at = place + offset;
  if (at >= dense.segments) at -= dense.segments;
  return row * dense.segments + at;
}

// Only the last row may have no group for a segment.
DBLP_HD u32 stripe_count(const Dense& dense, u32 place, u32 last_offset) {
  return stripe_group(dense, place, dense.rows - 1, last_offset) < dense.groups ? dense.rows
                                                                                : dense.rows - 1;
}

DBLP_HD u32 dense_used(Value value, u32 groups) {
  return header_bytes(value) + groups * (kGroup * value_bits(value) / 8);
}

// The first rounding number of a segment, in blocks.
DBLP_HD u32 rounding_block(u32 segment, u32 slots) {
  return segment * (round_up(slots, kRoundingLanes) / kRoundingLanes);
}

DBLP_HD u32 gcd(u32 a, u32 b) {
  while (b != 0) {
    const u32 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Neighbours on the wire should be far apart in the tensor: a burst takes them.
DBLP_HD u32 stripe_stride(const Random& random, u32 segments) {
  if (segments <= 2) return 1;
  const u32 wanted =
      static_cast<u32>(u64{random_block(random, kForStride, 0).w[0]} * (segments / 2 + 1) >> 32);
  u32 stride = max_u32(1, segments / 4 + wanted);
  while (gcd(stride, segments) != 1) ++stride;  // ends at segments + 1 at the latest
  return stride % segments;
}

// stripe_stride() times this is 1 mod N: from places to segments.
DBLP_HD u32 inverse_stride(u32 stride, u32 segments) {
  std::int64_t a = stride % segments;
  std::int64_t b = segments;
  std::int64_t x = 1;
  std::int64_t y = 0;
  while (b != 0) {
    const std::int64_t q = a / b;
    const std::int64_t rest = a - q * b;
    a = b;
    b = rest;
    const std::int64_t next = x - q * y;
    x = y;
    y = next;
  }
  return static_cast<u32>(x < 0 ? x + segments : x) % segments;
}

DBLP_HD u32 padded_elements(Scheme scheme, u32 elements) {
  return scheme == Scheme::kHadamard ? round_up(elements, kTransform) : elements;
}

DBLP_HD Dense make_dense(Scheme scheme, Value value, u32 segment_bytes, u32 elements,
                         const Random& random) {
  Dense d{};
  d.scheme = scheme;
  d.value = value;
  d.segment_bytes = segment_bytes;
  d.elements = padded_elements(scheme, elements);
  d.groups = (d.elements + kGroup - 1) / kGroup;
  const u32 most = groups_per_segment(value, segment_bytes);
  d.segments = (d.groups + most - 1) / most;
  d.rows = (d.groups + d.segments - 1) / d.segments;
  d.stride = stripe_stride(random, d.segments);
  return d;
}

// TopK. The selected elements in ascending order, and between two that are
// further apart than a distance can say, steps: elements with the value zero.
// All of them are slots, and each segment has the same number of slots.
struct TopK {
  Value value;
  u32 segment_bytes;
  u32 elements;
  u32 wide;   // 1: distances of 16 bits
  u32 reach;  // the largest distance: 256 or 65536
  u32 slots;  // that a full segment has
};

DBLP_HD u32 slots_per_segment(Value value, u32 segment_bytes, u32 wide) {
  const u32 bits = value_bits(value) + (wide != 0 ? 16 : 8);
  return (segment_bytes - header_bytes(value)) * 8 / bits;
}

DBLP_HD u32 topk_used(Value value, u32 wide, u32 count) {
  return header_bytes(value) + value_bytes(value, count) + count * (wide != 0 ? 2 : 1);
}

// The mean distance from which 16 bits are cheaper than 8 bits with steps, for
// geometrically distributed distances.
DBLP_HD u32 wide_from(Value value) {
  switch (value) {
    case Value::kF32:
      return 143;
    case Value::kF16:
    case Value::kBF16:
      return 185;
    case Value::kI8:
      return 233;
    default:
      return 279;
  }
}

DBLP_HD TopK make_topk_as(Value value, u32 segment_bytes, u32 elements, u32 wide) {
  TopK t{};
  t.value = value;
  t.segment_bytes = segment_bytes;
  t.elements = elements;
  t.wide = wide;
  t.reach = wide != 0 ? 65536 : 256;
  t.slots = slots_per_segment(value, segment_bytes, wide);
  return t;
}

// For a message that selects `selected` elements.
DBLP_HD TopK make_topk(Value value, u32 segment_bytes, u32 elements, u32 selected) {
  const u32 wide = u64{selected} * wide_from(value) < elements ? 1 : 0;
  return make_topk_as(value, segment_bytes, elements, wide);
}

DBLP_HD u32 max_slots(const TopK& t, u32 selected) { return selected + t.elements / t.reach; }

// Steps between two selected elements.
DBLP_HD u32 steps_between(const TopK& t, u32 from, u32 to) { return (to - from - 1) / t.reach; }

// What a segment with the right header announces lies within it, and its
// numbers are within their limits. The distances are not looked at.
DBLP_HD Status check_topk(const u8* p, u32 bytes, Value value, u32 segment_bytes, u32 elements,
                          Header* h) {
  if (bytes < header_bytes(value)) return Status::kShort;
  h->format = p[0];
  h->flags = p[1];
  h->count = get_u16(p + 2);
  h->base = get_u32(p + 4);
  h->scale_bits = is_scaled(value) ? get_u32(p + 8) : 0;
  if (h->format != format_byte(Scheme::kTopK, value)) return Status::kWrongCodec;
  if ((h->flags & ~kWideFlag) != 0) return Status::kBadFlags;
  if (h->count > slots_per_segment(value, segment_bytes, h->flags & kWideFlag))
    return Status::kBadCount;
  if (topk_used(value, h->flags & kWideFlag, h->count) > bytes) return Status::kShort;
  if (h->base >= elements) return Status::kBadIndex;
  if (is_scaled(value) && !scale_is_good(h->scale_bits)) return Status::kBadScale;
  return Status::kOk;
}

DBLP_HD Status check_dense(const u8* p, u32 bytes, const Dense& dense, u32 segment, u32 groups,
                           Header* h) {
  const Value value = dense.value;
  if (bytes < header_bytes(value)) return Status::kShort;
  h->format = p[0];
  h->flags = p[1];
  h->count = get_u16(p + 2);
  h->base = get_u32(p + 4);
  h->scale_bits = is_scaled(value) ? get_u32(p + 8) : 0;
  if (h->format != format_byte(dense.scheme, value)) return Status::kWrongCodec;
  if (h->flags != 0) return Status::kBadFlags;
  if (h->count != groups) return Status::kBadCount;
  if (h->base != segment) return Status::kBadOrdinal;
  if (dense_used(value, groups) > bytes) return Status::kShort;
  if (is_scaled(value) && !scale_is_good(h->scale_bits)) return Status::kBadScale;
  return Status::kOk;
}

// Bytes of segment i of a message.
DBLP_HD u32 bytes_of_segment(u64 message_bytes, u32 segment_bytes, u32 segment) {
  const u64 begin = u64{segment} * segment_bytes;
  const u64 left = message_bytes - begin;
  return left < segment_bytes ? static_cast<u32>(left) : segment_bytes;
}

}  // namespace dblp::compress
