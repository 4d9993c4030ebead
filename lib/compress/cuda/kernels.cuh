// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The kernels of the CUDA codec. nvcc compiles them for the GPU; the tests run
// the same text on the CPU (tests/simt). Sums are of integers or of fixed
// shape, so that no result depends on the order in which threads run; all that
// is rounded comes from ops.hpp.
#pragma once

#include "compress/layout.hpp"

#if !defined(__CUDACC__)
#include "compress/tests/simt/simt.hpp"
#endif

namespace dblp::compress::gpu {

constexpr u32 kThreads = 256;
constexpr u32 kWarps = kThreads / 32;
constexpr u32 kTileRounds = 8;
constexpr u32 kTile = kThreads * kTileRounds;  // elements of a block when selecting
constexpr u32 kDigits = 2048;
constexpr u32 kStep = 0x80000000;  // marks a slot that only bridges a distance
constexpr u32 kNone = 0xffffffff;

// What the kernels of one call hand on.
struct State {
  u32 histogram[kDigits];
  u32 zeros;
  u32 wanted;     // of the keys that equal the prefix so far
  u32 threshold;  // the prefix, in the end the smallest key that is selected
  u32 ties;       // how many that equal it
  u32 selected;
  u32 slots;
  u32 max_key;
  u32 decoded;
  u32 missing;
  u32 refused;
  u32 first_refused;  // segment
};

// Blocks after one another in a sum that all threads know; one value of shared
// memory for each warp. Two barriers.
__device__ static inline u32 block_rank(bool flag, u32* total) {
  __shared__ u32 warp_count[kWarps];
  const u32 lane = threadIdx.x % 32;
  const u32 warp = threadIdx.x / 32;
  const u32 bits = __ballot_sync(0xffffffff, flag);
  if (lane == 0) warp_count[warp] = static_cast<u32>(__popc(bits));
  __syncthreads();
  u32 before = static_cast<u32>(__popc(bits & ((1U << lane) - 1)));
  u32 sum = 0;
  for (u32 i = 0; i < kWarps; ++i) {
    before += i < warp ? warp_count[i] : 0;
    sum += warp_count[i];
  }
  __syncthreads();
  *total = sum;
  return before;
}

// The sum of the values of all threads before this one.
__device__ static inline u32 block_scan(u32 value, u32* total) {
  __shared__ u32 warp_sum[kWarps];
  const u32 lane = threadIdx.x % 32;
  const u32 warp = threadIdx.x / 32;
  u32 inclusive = value;
  for (u32 delta = 1; delta < 32; delta *= 2) {
    const u32 other = __shfl_up_sync(0xffffffff, inclusive, delta);
    if (lane >= delta) inclusive += other;
  }
  if (lane == 31) warp_sum[warp] = inclusive;
  __syncthreads();
  u32 before = inclusive - value;
  u32 sum = 0;
  for (u32 i = 0; i < kWarps; ++i) {
    before += i < warp ? warp_sum[i] : 0;
    sum += warp_sum[i];
  }
  __syncthreads();
  *total = sum;
  return before;
}

// The largest value of this thread and those before it.
__device__ static inline u32 block_scan_max(u32 value, u32* largest) {
  __shared__ u32 warp_max[kWarps];
  const u32 lane = threadIdx.x % 32;
  const u32 warp = threadIdx.x / 32;
  u32 inclusive = value;
  for (u32 delta = 1; delta < 32; delta *= 2) {
    const u32 other = __shfl_up_sync(0xffffffff, inclusive, delta);
    if (lane >= delta) inclusive = max_u32(inclusive, other);
  }
  if (lane == 31) warp_max[warp] = inclusive;
  __syncthreads();
  u32 all = 0;
  for (u32 i = 0; i < kWarps; ++i) {
    if (i < warp) inclusive = max_u32(inclusive, warp_max[i]);
    all = max_u32(all, warp_max[i]);
  }
  __syncthreads();
  *largest = all;
  return inclusive;
}

__device__ static inline u32 global_thread() { return blockIdx.x * kThreads + threadIdx.x; }
__device__ static inline u32 global_threads() { return gridDim.x * kThreads; }

// ---- both directions -------------------------------------------------------

__global__ void reset_state(State* state) {
  for (u32 i = threadIdx.x; i < kDigits; i += kThreads) state->histogram[i] = 0;
  if (threadIdx.x != 0) return;
  state->zeros = 0;
  state->wanted = 0;
  state->threshold = 0;
  state->ties = 0;
  state->selected = 0;
  state->slots = 0;
  state->max_key = 0;
  state->decoded = 0;
  state->missing = 0;
  state->refused = 0;
  state->first_refused = kNone;
}

__global__ void fill_zero(float* x, u32 n) {
  for (u32 i = global_thread(); i < n; i += global_threads()) x[i] = 0.0F;
}

__global__ void add_to(float* y, const float* x, u32 n) {
  for (u32 i = global_thread(); i < n; i += global_threads()) y[i] += x[i];
}

// u = input + owed where there is one. With weights, what is pruned is split
// off: `kept` has the rest, and `pruned` (if any) u or zero.
__global__ void prune(const float* input, const float* owed, const float* weights, float below,
                      u32 n, float* kept, float* pruned) {
  for (u32 i = global_thread(); i < n; i += global_threads()) {
    const float u = owed != nullptr ? input[i] + owed[i] : input[i];
    const bool small = float_of(bits_of(weights[i]) & 0x7fffffff) < below;
    kept[i] = small ? 0.0F : u;
    if (pruned != nullptr) pruned[i] = small ? u : 0.0F;
  }
}

// Values of up to 16 slots: one rounding block.
__device__ static inline void write_slots(Value value, const float* x, u32 first, u32 n,
                                          const Scale& scale, const Random& random, u32 block,
                                          float fine, u8* values, float* sent) {
  Block bits{};
  if (is_scaled(value)) bits = random_block(random, kForRounding, block);
  u32 low = 0;
  for (u32 i = 0; i < n; ++i) {
    const u32 slot = first + i;
    switch (value) {
      case Value::kF32: {
        put_u32(values + u64{4} * slot, f32_wire(x[i]));
        sent[i] = x[i];
        break;
      }
      case Value::kF16: {
        const u16 h = f16_of(x[i]);
        put_u16(values + u64{2} * slot, h);
        sent[i] = float_of_f16(h);
        break;
      }
      case Value::kBF16: {
        const u16 h = bf16_of(x[i]);
        put_u16(values + u64{2} * slot, h);
        sent[i] = float_of_bf16(h);
        break;
      }
      default: {
        const i32 q = quantise(x[i], scale.inverse, rounding_offset(rounding_bits(bits, i), fine),
                               levels_of(value));
        sent[i] = static_cast<float>(q) * scale.scale;
        if (value == Value::kI8) {
          values[slot] = static_cast<u8>(q);
        } else if (i % 2 == 0) {
          low = static_cast<u32>(q) & 0xf;
          if (i + 1 == n) values[slot / 2] = static_cast<u8>(low);
        } else {
          values[slot / 2] = static_cast<u8>(low | (static_cast<u32>(q) & 0xf) << 4);
        }
      }
    }
  }
}

__device__ static inline float read_slot(Value value, const u8* values, u32 slot, float scale) {
  switch (value) {
    case Value::kF32:
      return float_of(get_u32(values + u64{4} * slot));
    case Value::kF16:
      return float_of_f16(static_cast<u16>(get_u16(values + u64{2} * slot)));
    case Value::kBF16:
      return float_of_bf16(static_cast<u16>(get_u16(values + u64{2} * slot)));
    case Value::kI8:
      return static_cast<float>(static_cast<i8>(values[slot])) * scale;
    default:
      return static_cast<float>(nibble(values[slot / 2], slot % 2)) * scale;
  }
}

__device__ static inline bool is_lost(const u64* missing, u32 words, u32 segment) {
  return segment / 64 < words && (missing[segment / 64] >> (segment % 64) & 1) != 0;
}

// ---- selection -------------------------------------------------------------

// One digit of the keys that begin with the prefix found so far. Zero is never
// selected and not counted.
__global__ void histogram(const float* x, u32 n, u32 shift, u32 bits, State* state) {
  __shared__ u32 counts[kDigits];
  __shared__ u32 zeros;
  for (u32 i = threadIdx.x; i < kDigits; i += kThreads) counts[i] = 0;
  if (threadIdx.x == 0) zeros = 0;
  __syncthreads();
  const u32 above = shift + bits;
  const u32 prefix = state->threshold;
  for (u32 i = global_thread(); i < n; i += global_threads()) {
    const u32 key = magnitude_key(x[i]);
    if (key == 0) {
      if (above == 31) atomicAdd(&zeros, 1U);
      continue;
    }
    if (above < 31 && key >> above != prefix >> above) continue;
    atomicAdd(&counts[key >> shift & ((1U << bits) - 1)], 1U);
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < kDigits; i += kThreads)
    if (counts[i] != 0) atomicAdd(&state->histogram[i], counts[i]);
  if (threadIdx.x == 0 && zeros != 0) atomicAdd(&state->zeros, zeros);
}

// The digit of the k-th largest key; one block. Clears the histogram.
__global__ void pick_digit(u32 n, u32 k, u32 shift, u32 bits, State* state) {
  __shared__ u32 sums[kThreads];
  constexpr u32 kEach = kDigits / kThreads;
  const u32 top = kDigits - 1 - threadIdx.x * kEach;  // descending
  u32 sum = 0;
  for (u32 i = 0; i < kEach; ++i) sum += state->histogram[top - i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 wanted = state->wanted;
    if (shift + bits == 31) {
      wanted = min_u32(k, n - state->zeros);
      state->selected = wanted;
      if (wanted == 0) state->threshold = kNone;
    }
    if (state->selected > 0) {
      u32 chunk = 0;
      while (wanted > sums[chunk]) wanted -= sums[chunk++];
      u32 digit = kDigits - 1 - chunk * kEach;
      while (wanted > state->histogram[digit]) wanted -= state->histogram[digit--];
      state->threshold |= digit << shift;
    }
    state->wanted = wanted;
    if (shift == 0) state->ties = wanted;
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < kDigits; i += kThreads) state->histogram[i] = 0;
}

// Keys above the threshold, and equal to it, in each tile.
__global__ void count_tiles(const float* x, u32 n, const State* state, u32* above, u32* equal) {
  __shared__ u32 counts[2];
  if (threadIdx.x == 0) counts[0] = counts[1] = 0;
  __syncthreads();
  u32 more = 0;
  u32 same = 0;
  const u32 begin = blockIdx.x * kTile;
  for (u32 i = begin + threadIdx.x; i < begin + kTile && i < n; i += kThreads) {
    const u32 key = magnitude_key(x[i]);
    more += key > state->threshold ? 1 : 0;
    same += key == state->threshold ? 1 : 0;
  }
  if (more != 0) atomicAdd(&counts[0], more);
  if (same != 0) atomicAdd(&counts[1], same);
  __syncthreads();
  if (threadIdx.x == 0) {
    above[blockIdx.x] = counts[0];
    equal[blockIdx.x] = counts[1];
  }
}

// Sums before each; one block. The whole sum goes to *total, if there is one.
__global__ void scan_counts(u32* counts, u32 n, u32* total) {
  u32 before = 0;
  for (u32 begin = 0; begin < n; begin += kThreads) {
    const u32 i = begin + threadIdx.x;
    u32 sum = 0;
    const u32 rank = block_scan(i < n ? counts[i] : 0, &sum);
    if (i < n) counts[i] = before + rank;
    before += sum;
  }
  if (threadIdx.x == 0 && total != nullptr) *total = before;
}

// The indices of the selected, ascending; of ties the lowest.
__global__ void compact(const float* x, u32 n, const State* state, const u32* above,
                        const u32* equal, u32* index) {
  u32 more_before = above[blockIdx.x];
  u32 same_before = equal[blockIdx.x];
  const u32 threshold = state->threshold;
  const u32 ties = state->ties;
  for (u32 round = 0; round < kTileRounds; ++round) {
    const u32 i = blockIdx.x * kTile + round * kThreads + threadIdx.x;
    const u32 key = i < n ? magnitude_key(x[i]) : 0;
    const bool more = i < n && key > threshold;
    const bool same = i < n && key == threshold;
    u32 more_sum = 0;
    u32 same_sum = 0;
    const u32 more_rank = more_before + block_rank(more, &more_sum);
    const u32 same_rank = same_before + block_rank(same, &same_sum);
    if (more || (same && same_rank < ties)) index[more_rank + min_u32(same_rank, ties)] = i;
    more_before += more_sum;
    same_before += same_sum;
  }
}

// ---- TopK ------------------------------------------------------------------

// Slots that each tile of the selected takes: itself, and the steps before it.
__device__ static inline u32 slots_of(const TopK& t, const u32* index, u32 i) {
  return 1 + (i > 0 ? steps_between(t, index[i - 1], index[i]) : 0);
}

__global__ void count_slots(TopK t, const u32* index, const State* state, u32* counts) {
  __shared__ u32 sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  u32 mine = 0;
  const u32 begin = blockIdx.x * kTile;
  for (u32 i = begin + threadIdx.x; i < begin + kTile && i < state->selected; i += kThreads)
    mine += slots_of(t, index, i);
  if (mine != 0) atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}

__global__ void place_slots(TopK t, const u32* index, const State* state, const u32* before,
                            u32* places) {
  u32 at = before[blockIdx.x];
  for (u32 round = 0; round < kTileRounds; ++round) {
    const u32 i = blockIdx.x * kTile + round * kThreads + threadIdx.x;
    const u32 mine = i < state->selected ? slots_of(t, index, i) : 0;
    u32 sum = 0;
    const u32 first = at + block_scan(mine, &sum);
    for (u32 s = 0; s + 1 < mine; ++s)
      places[first + s] = (index[i - 1] + (s + 1) * t.reach) | kStep;
    if (mine > 0) places[first + mine - 1] = index[i];
    at += sum;
  }
}

// One block for each segment that there may be.
__global__ void encode_topk(TopK t, Random random, const float* source, float* residual,
                            const u32* places, State* state, u8* message) {
  __shared__ u32 max_key;
  const u32 segment = blockIdx.x;
  const u32 slots = state->slots;
  if (segment > 0 && segment * t.slots >= slots) return;
  const u32 count = min_u32(t.slots, slots - segment * t.slots);
  const bool last = (segment + 1) * t.slots >= slots;
  places += u64{segment} * t.slots;
  if (threadIdx.x == 0) max_key = 0;
  __syncthreads();
  u32 mine = 0;
  for (u32 slot = threadIdx.x; slot < count; slot += kThreads)
    if ((places[slot] & kStep) == 0) mine = max_u32(mine, magnitude_key(source[places[slot]]));
  atomicMax(&max_key, mine);
  __syncthreads();

  u8* const out = message + u64{segment} * t.segment_bytes;
  u8* const values = out + header_bytes(t.value);
  u8* const deltas = values + value_bytes(t.value, count);
  const Scale scale = is_scaled(t.value)
                          ? make_scale(max_key, static_cast<float>(levels_of(t.value)))
                          : Scale{0.0F, 0.0F};
  const float fine = is_scaled(t.value) ? fine_rounding(random, segment) : 0.0F;
  const u32 block = rounding_block(segment, t.slots);
  for (u32 first = threadIdx.x * kRoundingLanes; first < count;
       first += kThreads * kRoundingLanes) {
    const u32 n = min_u32(kRoundingLanes, count - first);
    float x[kRoundingLanes];
    float sent[kRoundingLanes];
    for (u32 i = 0; i < n; ++i) {
      const u32 place = places[first + i];
      x[i] = (place & kStep) != 0 ? 0.0F : source[place];
      const u32 delta =
          first + i == 0 ? 0 : (place & ~kStep) - (places[first + i - 1] & ~kStep) - 1;
      if (t.wide != 0)
        put_u16(deltas + u64{2} * (first + i), delta);
      else
        deltas[first + i] = static_cast<u8>(delta);
    }
    write_slots(t.value, x, first, n, scale, random, block + first / kRoundingLanes, fine, values,
                sent);
    if (residual == nullptr) continue;
    for (u32 i = 0; i < n; ++i) residual[places[first + i] & ~kStep] -= sent[i];
  }
  if (threadIdx.x == 0) {
    const u32 base = count > 0 ? places[0] & ~kStep : 0;
    put_header(
        out, Header{format_byte(Scheme::kTopK, t.value), t.wide, count, base, bits_of(scale.scale)},
        t.value);
    atomicMax(&state->max_key, max_key);
  }
  const u32 used = topk_used(t.value, t.wide, count);
  if (last) return;
  for (u32 i = used + threadIdx.x; i < t.segment_bytes; i += kThreads) out[i] = 0;
}

__global__ void finish_topk(TopK t, const State* state, EncodeResult* result) {
  if (threadIdx.x != 0) return;
  const u32 slots = state->slots;
  const u32 segments = max_u32(1, (slots + t.slots - 1) / t.slots);
  const u32 in_last = slots - (segments - 1) * t.slots;
  result->message_bytes = u64{segments - 1} * t.segment_bytes + topk_used(t.value, t.wide, in_last);
  result->selected = state->selected;
  result->segments = segments;
  result->finite = state->max_key < kInfBits;
}

__device__ static inline u32 delta_at(const u8* deltas, u32 wide, u32 slot) {
  return wide != 0 ? get_u16(deltas + u64{2} * slot) : deltas[slot];
}

// Each segment by itself: statuses, and where each begins and ends.
__global__ void check_topk_segments(const u8* message, u64 message_bytes, const u64* missing,
                                    u32 missing_words, Value value, u32 segment_bytes, u32 elements,
                                    u32 segments, Status* statuses, u32* bases, u32* ends) {
  __shared__ Header h;
  __shared__ Status status;
  __shared__ u32 sum;
  __shared__ u32 dirty;
  const u32 segment = blockIdx.x;
  const u8* const in = message + u64{segment} * segment_bytes;
  const u32 bytes = bytes_of_segment(message_bytes, segment_bytes, segment);
  if (threadIdx.x == 0) {
    sum = 0;
    dirty = 0;
    status = is_lost(missing, missing_words, segment)
                 ? Status::kMissing
                 : check_topk(in, bytes, value, segment_bytes, elements, &h);
    if (status == Status::kOk) {
      const u32 full = slots_per_segment(value, segment_bytes, h.flags & kWideFlag);
      if (segment + 1 < segments)
        status = h.count == full ? Status::kOk : Status::kBadCount;
      else if (h.count == 0)
        status = segments > 1 ? Status::kBadCount : h.base == 0 ? Status::kOk : Status::kBadIndex;
    }
    bases[segment] = 0;
    ends[segment] = 0;
  }
  __syncthreads();
  if (status != Status::kOk) {
    if (threadIdx.x == 0) statuses[segment] = status;
    return;
  }
  const u32 wide = h.flags & kWideFlag;
  const u8* const deltas = in + header_bytes(value) + value_bytes(value, h.count);
  u32 mine = 0;  // of all threads: at most 43680 * 65535
  for (u32 slot = threadIdx.x; slot < h.count; slot += kThreads)
    mine += delta_at(deltas, wide, slot);
  atomicAdd(&sum, mine);
  u32 any = 0;
  for (u32 i = topk_used(value, wide, h.count) + threadIdx.x; i < bytes; i += kThreads)
    any |= in[i];
  if (any != 0) atomicMax(&dirty, 1U);
  __syncthreads();
  if (threadIdx.x != 0) return;
  const u64 end = u64{h.base} + h.count + sum;
  if (h.count > 0 && delta_at(deltas, wide, 0) != 0)
    status = Status::kBadDelta;
  else if (end > elements)
    status = Status::kBadIndex;
  else if (dirty != 0)
    status = Status::kBadPadding;
  else if (value == Value::kI4 && h.count % 2 != 0 &&
           in[header_bytes(value) + h.count / 2] >> 4 != 0)
    status = Status::kBadPadding;
  statuses[segment] = status;
  if (status != Status::kOk) return;
  bases[segment] = h.base;
  ends[segment] = static_cast<u32>(end);
}

// Refuses what begins before an earlier segment's end, and counts; one block.
__global__ void judge_segments(u32 segments, Status* statuses, const u32* bases, const u32* ends,
                               Status* out, State* state) {
  u32 behind = 0;
  u32 decoded = 0;
  u32 lost = 0;
  u32 refused = 0;
  u32 first = kNone;
  for (u32 begin = 0; begin < segments; begin += kThreads) {
    const u32 i = begin + threadIdx.x;
    if (bases != nullptr) {
      // Ends of the segments before this one: shifted by one.
      const u32 end = i > begin && i - 1 < segments ? ends[i - 1] : 0;
      u32 largest = 0;
      const u32 before = max_u32(behind, block_scan_max(end, &largest));
      if (i < segments && statuses[i] == Status::kOk && bases[i] < before)
        statuses[i] = Status::kOverlap;
      behind = max_u32(behind, largest);
      const u32 last = begin + kThreads - 1;
      if (last < segments) behind = max_u32(behind, ends[last]);
    }
    if (i >= segments) continue;
    const Status status = statuses[i];
    if (out != nullptr) out[i] = status;
    if (status == Status::kOk) {
      ++decoded;
    } else if (status == Status::kMissing) {
      ++lost;
    } else {
      ++refused;
      first = min_u32(first, i);
    }
  }
  if (decoded != 0) atomicAdd(&state->decoded, decoded);
  if (lost != 0) atomicAdd(&state->missing, lost);
  if (refused != 0) atomicAdd(&state->refused, refused);
  if (first != kNone) atomicMin(&state->first_refused, first);
}

__global__ void finish_decode(const State* state, const Status* statuses, DecodeResult* result) {
  if (threadIdx.x != 0) return;
  result->decoded = state->decoded;
  result->missing = state->missing;
  result->refused = state->refused;
  result->first_refusal =
      state->first_refused == kNone ? Status::kOk : statuses[state->first_refused];
}

__global__ void decode_topk(const u8* message, Value value, u32 segment_bytes,
                            const Status* statuses, float* output, bool accumulate) {
  const u32 segment = blockIdx.x;
  if (statuses[segment] != Status::kOk) return;
  const u8* const in = message + u64{segment} * segment_bytes;
  const u32 wide = in[1] & kWideFlag;
  const u32 count = get_u16(in + 2);
  const float scale = is_scaled(value) ? float_of(get_u32(in + 8)) : 0.0F;
  const u8* const values = in + header_bytes(value);
  const u8* const deltas = values + value_bytes(value, count);
  u32 at = get_u32(in + 4);
  for (u32 begin = 0; begin < count; begin += kThreads) {
    const u32 slot = begin + threadIdx.x;
    const u32 advance = slot < count ? delta_at(deltas, wide, slot) + 1 : 0;
    u32 sum = 0;
    const u32 before = block_scan(advance, &sum);
    if (slot < count) {
      const float x = read_slot(value, values, slot, scale);
      float* const to = output + at + before + advance - 1;
      *to = accumulate ? *to + x : x;
    }
    at += sum;
  }
}

// ---- dense -----------------------------------------------------------------

// One block for each segment, one thread for a group at a time.
__global__ void encode_dense(Dense dense, Random random, const float* input, const float* owed,
                             float* rest, State* state, u8* message) {
  __shared__ u32 max_key;
  const u32 segment = blockIdx.x;
  const u32 place = stripe_place(dense, segment);
  const u32 count =
      stripe_count(dense, place, stripe_offset(random, dense.rows - 1, dense.segments));
  if (threadIdx.x == 0) max_key = 0;
  __syncthreads();
  u32 mine = 0;
  for (u32 row = threadIdx.x; row < count; row += kThreads) {
    const u32 from =
        stripe_group(dense, place, row, stripe_offset(random, row, dense.segments)) * kGroup;
    for (u32 i = from; i < from + kGroup && i < dense.elements; ++i)
      mine = max_u32(mine, magnitude_key(owed != nullptr ? input[i] + owed[i] : input[i]));
  }
  atomicMax(&max_key, mine);
  __syncthreads();

  u8* const out = message + u64{segment} * dense.segment_bytes;
  const bool scaled = is_scaled(dense.value);
  const Scale scale =
      scaled ? make_scale(max_key, static_cast<float>(levels_of(dense.value))) : Scale{0.0F, 0.0F};
  const float fine = scaled ? fine_rounding(random, segment) : 0.0F;
  const u32 block =
      rounding_block(segment, groups_per_segment(dense.value, dense.segment_bytes) * kGroup);
  static_assert(kRoundingLanes == kGroup, "a group has one rounding block");
  for (u32 row = threadIdx.x; row < count; row += kThreads) {
    const u32 from =
        stripe_group(dense, place, row, stripe_offset(random, row, dense.segments)) * kGroup;
    float x[kGroup];
    float sent[kGroup];
    for (u32 i = 0; i < kGroup; ++i) {
      x[i] = 0.0F;
      if (from + i < dense.elements)
        x[i] = owed != nullptr ? input[from + i] + owed[from + i] : input[from + i];
    }
    write_slots(dense.value, x, row * kGroup, kGroup, scale, random, block + row, fine,
                out + header_bytes(dense.value), sent);
    if (rest == nullptr) continue;
    for (u32 i = 0; i < kGroup && from + i < dense.elements; ++i) rest[from + i] = x[i] - sent[i];
  }
  if (threadIdx.x == 0) {
    put_header(
        out,
        Header{format_byte(dense.scheme, dense.value), 0, count, segment, bits_of(scale.scale)},
        dense.value);
    atomicMax(&state->max_key, max_key);
  }
  if (segment + 1 == dense.segments) return;
  for (u32 i = dense_used(dense.value, count) + threadIdx.x; i < dense.segment_bytes; i += kThreads)
    out[i] = 0;
}

__global__ void finish_dense(const State* state, u64 message_bytes, u64 elements, u32 segments,
                             EncodeResult* result) {
  if (threadIdx.x != 0) return;
  result->message_bytes = message_bytes;
  result->selected = elements;
  result->segments = segments;
  result->finite = state->max_key < kInfBits;
}

__global__ void decode_dense(Dense dense, Random random, const u8* message, u64 message_bytes,
                             const u64* missing, u32 missing_words, float* output, bool accumulate,
                             Status* statuses) {
  __shared__ Header h;
  __shared__ Status status;
  __shared__ u32 dirty;
  const u32 segment = blockIdx.x;
  const u32 place = stripe_place(dense, segment);
  const u32 count =
      stripe_count(dense, place, stripe_offset(random, dense.rows - 1, dense.segments));
  const u8* const in = message + u64{segment} * dense.segment_bytes;
  const u32 bytes = bytes_of_segment(message_bytes, dense.segment_bytes, segment);
  if (threadIdx.x == 0) {
    dirty = 0;
    status = is_lost(missing, missing_words, segment)
                 ? Status::kMissing
                 : check_dense(in, bytes, dense, segment, count, &h);
  }
  __syncthreads();
  if (status == Status::kOk) {
    u32 any = 0;
    for (u32 i = dense_used(dense.value, count) + threadIdx.x; i < bytes; i += kThreads)
      any |= in[i];
    if (any != 0) atomicMax(&dirty, 1U);
  }
  __syncthreads();
  const bool good = status == Status::kOk && dirty == 0;
  if (threadIdx.x == 0)
    statuses[segment] = status == Status::kOk && dirty != 0 ? Status::kBadPadding : status;
  if (!good && accumulate) return;
  const float scale = good && is_scaled(dense.value) ? float_of(h.scale_bits) : 0.0F;
  const u8* const values = in + header_bytes(dense.value);
  for (u32 row = threadIdx.x; row < count; row += kThreads) {
    const u32 from =
        stripe_group(dense, place, row, stripe_offset(random, row, dense.segments)) * kGroup;
    for (u32 i = 0; i < kGroup && from + i < dense.elements; ++i) {
      const float x = good ? read_slot(dense.value, values, row * kGroup + i, scale) : 0.0F;
      output[from + i] = accumulate ? output[from + i] + x : x;
    }
  }
}

// ---- Hadamard --------------------------------------------------------------

__device__ static inline float flip_sign(const Random& random, u32 block, u32 i, float x) {
  const Block signs = random_block(random, kForSigns, block * (kTransform / 128) + i / 128);
  return float_of(bits_of(x) ^ (signs.w[i % 128 / 32] >> (i % 32) & 1) << 31);
}

__device__ static inline void transform(float* x) {
  for (u32 half = 1; half < kTransform; half *= 2) {
    for (u32 pair = threadIdx.x; pair < kTransform / 2; pair += kThreads) {
      const u32 at = pair / half * 2 * half + pair % half;
      const float a = x[at];
      const float b = x[at + half];
      x[at] = a + b;
      x[at + half] = a - b;
    }
    __syncthreads();
  }
}

// One block for each block of the transform; elements from n on are zero.
__global__ void rotate_forward(const float* input, const float* owed, u32 n, Random random,
                               float* rotated) {
  __shared__ float x[kTransform];
  const u32 begin = blockIdx.x * kTransform;
  for (u32 i = threadIdx.x; i < kTransform; i += kThreads) {
    float u = 0.0F;
    if (begin + i < n) u = owed != nullptr ? input[begin + i] + owed[begin + i] : input[begin + i];
    x[i] = flip_sign(random, blockIdx.x, i, u);
  }
  __syncthreads();
  transform(x);
  for (u32 i = threadIdx.x; i < kTransform; i += kThreads)
    rotated[begin + i] = x[i] * kTransformScale;
}

__global__ void rotate_back(const float* rotated, u32 n, Random random, float* output,
                            bool accumulate) {
  __shared__ float x[kTransform];
  const u32 begin = blockIdx.x * kTransform;
  for (u32 i = threadIdx.x; i < kTransform; i += kThreads) x[i] = rotated[begin + i];
  __syncthreads();
  transform(x);
  for (u32 i = threadIdx.x; i < kTransform && begin + i < n; i += kThreads) {
    const float v = flip_sign(random, blockIdx.x, i, x[i] * kTransformScale);
    output[begin + i] = accumulate ? output[begin + i] + v : v;
  }
}

}  // namespace dblp::compress::gpu
