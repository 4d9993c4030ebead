// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The CUDA codec: which kernels run, in which order, on which memory. Nothing
// here waits, allocates, or looks at device memory; the tests run it on the CPU
// together with the kernels.
#pragma once

#include <memory>
#include <new>

#include "compress/arena.hpp"
#include "compress/cuda/kernels.cuh"
#include "compress/shape.hpp"

#if defined(__CUDACC__)
#define DBLP_LAUNCH(kernel, grid, stream, ...) \
  kernel<<<(grid), kThreads, 0, static_cast<cudaStream_t>((stream).handle)>>>(__VA_ARGS__)
#else
#define DBLP_LAUNCH(kernel, grid, stream, ...) \
  ((void)(stream), ::simt::launch((grid), kThreads, [&] { kernel(__VA_ARGS__); }))
#endif

namespace dblp::compress::gpu {

// Whether the launches so far were accepted.
inline Status launch_status() {
#if defined(__CUDACC__)
  return cudaGetLastError() == cudaSuccess ? Status::kOk : Status::kDeviceFailed;
#else
  return Status::kOk;
#endif
}

class GpuCodec final : public Codec {
 public:
  GpuCodec(const CodecOptions& options, const Shape& shape, const Limits& limits)
      : Codec(options, shape, limits.message_bytes, limits.segments), slots_(limits.slots) {
    Arena encode = Arena::measure();
    take_encode(encode);
    encode_workspace_ = encode.needed();
    Arena decode = Arena::measure();
    take_decode(decode);
    decode_workspace_ = decode.needed();
  }

  [[nodiscard]] std::size_t encode_workspace() const noexcept override { return encode_workspace_; }
  [[nodiscard]] std::size_t decode_workspace() const noexcept override { return decode_workspace_; }

  Status encode(const EncodeArgs& args, Stream stream) const noexcept override {
    const Status status = check_encode(*this, args);
    if (status != Status::kOk) return status;
    Arena arena(args.workspace);
    const EncodeMemory m = take_encode(arena);
    const Random random = make_random(args.key.seed, args.key.round);
    u8* const message = reinterpret_cast<u8*>(args.message.data());
    DBLP_LAUNCH(reset_state, 1, stream, m.state);
    if (options().scheme == Scheme::kTopK)
      encode_selected(args, random, m, message, stream);
    else
      encode_all(args, random, m, message, stream);
    return launch_status();
  }

  Status decode(const DecodeArgs& args, Stream stream) const noexcept override {
    const Status status = check_decode(*this, args);
    if (status != Status::kOk) return status;
    Arena arena(args.workspace);
    const DecodeMemory m = take_decode(arena);
    const Random random = make_random(args.key.seed, args.key.round);
    const u8* const message = reinterpret_cast<const u8*>(args.message.data());
    const u64 bytes = args.message.size();
    const u64* const missing = args.missing.data();
    const u32 words = static_cast<u32>(args.missing.size());
    const u32 segments = segments_of(bytes, shape().segment_bytes);
    Status* const out = args.segments.empty() ? nullptr : args.segments.data();
    DBLP_LAUNCH(reset_state, 1, stream, m.state);
    if (options().scheme == Scheme::kTopK) {
      if (!args.accumulate)
        DBLP_LAUNCH(fill_zero, spread(elements()), stream, args.output, elements());
      DBLP_LAUNCH(check_topk_segments, segments, stream, message, bytes, missing, words,
                  options().value, shape().segment_bytes, elements(), segments, m.statuses, m.bases,
                  m.ends);
      DBLP_LAUNCH(judge_segments, 1, stream, segments, m.statuses, m.bases, m.ends, out, m.state);
      DBLP_LAUNCH(decode_topk, segments, stream, message, options().value, shape().segment_bytes,
                  m.statuses, args.output, args.accumulate);
    } else {
      const Dense d = dense(random);
      const bool rotated = d.scheme == Scheme::kHadamard;
      float* const to = rotated ? m.rotated : args.output;
      const bool add = !rotated && args.accumulate;
      DBLP_LAUNCH(decode_dense, segments, stream, d, random, message, bytes, missing, words, to,
                  add, m.statuses);
      DBLP_LAUNCH(judge_segments, 1, stream, segments, m.statuses, nullptr, nullptr, out, m.state);
      if (rotated)
        DBLP_LAUNCH(rotate_back, d.elements / kTransform, stream, m.rotated, elements(), random,
                    args.output, args.accumulate);
    }
    if (args.result != nullptr)
      DBLP_LAUNCH(finish_decode, 1, stream, m.state, m.statuses, args.result);
    return launch_status();
  }

 private:
  struct EncodeMemory {
    State* state;
    float* kept;     // pruning
    float* rotated;  // Hadamard
    u32* above;      // TopK: of each tile
    u32* equal;
    u32* index;
    u32* counts;
    u32* places;
  };
  struct DecodeMemory {
    State* state;
    Status* statuses;
    u32* bases;
    u32* ends;
    float* rotated;
  };

  [[nodiscard]] u32 elements() const { return static_cast<u32>(shape().elements); }
  [[nodiscard]] Dense dense(const Random& random) const {
    return make_dense(options().scheme, options().value, shape().segment_bytes, elements(), random);
  }
  static u32 tiles(u32 n) { return (n + kTile - 1) / kTile; }
  // Blocks for a loop over n elements that takes any number of them.
  static u32 spread(u32 n) { return min_u32(tiles(n), 4096); }

  EncodeMemory take_encode(Arena& arena) const {
    EncodeMemory m{};
    m.state = arena.take<State>(1).data();
    if (options().prune) m.kept = arena.take<float>(elements()).data();
    if (options().scheme == Scheme::kHadamard)
      m.rotated = arena.take<float>(padded_elements(Scheme::kHadamard, elements())).data();
    if (options().scheme != Scheme::kTopK) return m;
    const u32 most = static_cast<u32>(shape().max_selected);
    m.above = arena.take<u32>(tiles(elements())).data();
    m.equal = arena.take<u32>(tiles(elements())).data();
    m.index = arena.take<u32>(most).data();
    m.counts = arena.take<u32>(tiles(most)).data();
    m.places = arena.take<u32>(slots_).data();
    return m;
  }

  DecodeMemory take_decode(Arena& arena) const {
    DecodeMemory m{};
    m.state = arena.take<State>(1).data();
    m.statuses = arena.take<Status>(max_segments()).data();
    if (options().scheme == Scheme::kTopK) {
      m.bases = arena.take<u32>(max_segments()).data();
      m.ends = arena.take<u32>(max_segments()).data();
    }
    if (options().scheme == Scheme::kHadamard)
      m.rotated = arena.take<float>(padded_elements(Scheme::kHadamard, elements())).data();
    return m;
  }

  void select(const float* values, u32 k, const EncodeMemory& m, Stream stream) const {
    const u32 n = elements();
    constexpr u32 kShifts[] = {20, 9, 0};
    for (const u32 shift : kShifts) {
      const u32 bits = shift == 0 ? 9 : 11;
      DBLP_LAUNCH(histogram, spread(n), stream, values, n, shift, bits, m.state);
      DBLP_LAUNCH(pick_digit, 1, stream, n, k, shift, bits, m.state);
    }
    DBLP_LAUNCH(count_tiles, tiles(n), stream, values, n, m.state, m.above, m.equal);
    DBLP_LAUNCH(scan_counts, 1, stream, m.above, tiles(n), nullptr);
    DBLP_LAUNCH(scan_counts, 1, stream, m.equal, tiles(n), nullptr);
    DBLP_LAUNCH(compact, tiles(n), stream, values, n, m.state, m.above, m.equal, m.index);
  }

  void encode_selected(const EncodeArgs& args, const Random& random, const EncodeMemory& m,
                       u8* message, Stream stream) const {
    const u32 n = elements();
    const u32 k = static_cast<u32>(args.selected);
    const TopK t = make_topk(options().value, shape().segment_bytes, n, k);
    const float* source = args.input;
    if (args.residual != nullptr) {
      DBLP_LAUNCH(add_to, spread(n), stream, args.residual, args.input, n);
      source = args.residual;
    }
    const float* values = source;
    if (args.weights != nullptr) {
      DBLP_LAUNCH(prune, spread(n), stream, source, nullptr, args.weights, args.prune_below, n,
                  m.kept, nullptr);
      values = m.kept;
    }
    u32 segments = 1;
    if (k > 0) {
      select(values, k, m, stream);
      DBLP_LAUNCH(count_slots, tiles(k), stream, t, m.index, m.state, m.counts);
      DBLP_LAUNCH(scan_counts, 1, stream, m.counts, tiles(k), &m.state->slots);
      DBLP_LAUNCH(place_slots, tiles(k), stream, t, m.index, m.state, m.counts, m.places);
      segments = (max_slots(t, k) + t.slots - 1) / t.slots;
    }
    DBLP_LAUNCH(encode_topk, segments, stream, t, random, source, args.residual, m.places, m.state,
                message);
    DBLP_LAUNCH(finish_topk, 1, stream, t, m.state, args.result);
  }

  void encode_all(const EncodeArgs& args, const Random& random, const EncodeMemory& m, u8* message,
                  Stream stream) const {
    const u32 n = elements();
    const Dense d = dense(random);
    const float* input = args.input;
    const float* owed = args.residual;
    float* rest = args.residual;
    if (args.weights != nullptr) {
      // What is pruned waits in the residual; the rest of what goes on is added.
      DBLP_LAUNCH(prune, spread(n), stream, input, owed, args.weights, args.prune_below, n, m.kept,
                  args.residual);
      input = m.kept;
      owed = nullptr;
      rest = args.residual != nullptr ? m.kept : nullptr;
    }
    if (d.scheme == Scheme::kHadamard) {
      const u32 blocks = d.elements / kTransform;
      DBLP_LAUNCH(rotate_forward, blocks, stream, input, owed, n, random, m.rotated);
      float* const kept = args.residual != nullptr ? m.rotated : nullptr;
      DBLP_LAUNCH(encode_dense, d.segments, stream, d, random, m.rotated, nullptr, kept, m.state,
                  message);
      if (kept != nullptr)
        DBLP_LAUNCH(rotate_back, blocks, stream, m.rotated, n, random, args.residual,
                    args.weights != nullptr);
    } else {
      DBLP_LAUNCH(encode_dense, d.segments, stream, d, random, input, owed, rest, m.state, message);
      if (rest != nullptr && rest != args.residual)
        DBLP_LAUNCH(add_to, spread(n), stream, args.residual, rest, n);
    }
    DBLP_LAUNCH(finish_dense, 1, stream, m.state, dense_message_bytes(d, random), shape().elements,
                d.segments, args.result);
  }

  u32 slots_;
  std::size_t encode_workspace_ = 0;
  std::size_t decode_workspace_ = 0;
};

// kBadOption as find_limits().
inline Status make_gpu_codec(const CodecOptions& options, const Shape& shape,
                             std::unique_ptr<Codec>* codec) {
  Limits limits{};
  const Status status = find_limits(options, shape, &limits);
  if (status == Status::kOk) *codec = std::make_unique<GpuCodec>(options, shape, limits);
  return status;
}

}  // namespace dblp::compress::gpu
