// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// One segment's values in any format, to and from the wire.
#pragma once

#include <cstddef>
#include <cstring>

#include "compress/cpu/kernels.hpp"
#include "compress/layout.hpp"

namespace dblp::compress {

struct ValueScratch {
  i8* q;        // as many as a segment has values
  float* sent;  // the same; what the receiver will see
};

// Writes n values to the wire and returns the bits of their scale. With `want`
// also what the receiver will see, to scratch.sent. max_key is the largest
// magnitude_key() of them; `slots` as many as a full segment has.
inline u32 write_values(const Kernels& kernels, Value value, const float* x, u32 n, u32 max_key,
                        const Random& random, u32 segment, u32 slots, const ValueScratch& scratch,
                        bool want, const Ahead& ahead, u8* out) {
  if (!is_scaled(value)) fetch(ahead, 0, ahead.count);
  switch (value) {
    case Value::kF32:
      for (u32 i = 0; i < n; ++i) put_u32(out + std::size_t{4} * i, f32_wire(x[i]));
      if (want) std::memcpy(scratch.sent, x, std::size_t{4} * n);
      return 0;
    case Value::kF16:
      kernels.to_f16(x, n, out);
      if (want) kernels.from_f16(out, n, scratch.sent);
      return 0;
    case Value::kBF16:
      kernels.to_bf16(x, n, out);
      if (want) kernels.from_bf16(out, n, scratch.sent);
      return 0;
    default:
      break;
  }
  const i32 levels = levels_of(value);
  const Scale scale = make_scale(max_key, static_cast<float>(levels));
  i8* const q = value == Value::kI8 ? reinterpret_cast<i8*>(out) : scratch.q;
  kernels.quantise(x, n, scale.inverse, levels, random, rounding_block(segment, slots),
                   fine_rounding(random, segment), ahead, q);
  if (value == Value::kI4) kernels.pack_i4(q, n, out);
  if (want) kernels.dequantise(q, n, scale.scale, scratch.sent);
  return bits_of(scale.scale);
}

inline void read_values(const Kernels& kernels, Value value, const u8* in, u32 n, u32 scale_bits,
                        i8* q, float* out) {
  switch (value) {
    case Value::kF32:
      for (u32 i = 0; i < n; ++i) out[i] = float_of(get_u32(in + std::size_t{4} * i));
      return;
    case Value::kF16:
      kernels.from_f16(in, n, out);
      return;
    case Value::kBF16:
      kernels.from_bf16(in, n, out);
      return;
    case Value::kI8:
      kernels.dequantise(reinterpret_cast<const i8*>(in), n, float_of(scale_bits), out);
      return;
    default:
      kernels.unpack_i4(in, n, q);
      kernels.dequantise(q, n, float_of(scale_bits), out);
  }
}

// Nothing but zero from `used` on; of a last byte that holds one 4-bit value,
// the other half counts too.
inline bool padding_is_zero(const u8* p, u32 used, u32 bytes) {
  u32 any = 0;
  for (u32 i = used; i < bytes; ++i) any |= p[i];
  return any == 0;
}

}  // namespace dblp::compress
