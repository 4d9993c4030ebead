// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Compresses a gradient into a message whose segments each decode alone: what
// is lost costs exactly its own coordinates. The byte layout is in
// Documentation/networking/dblp-codec.rst.
//
//   using namespace dblp::compress;
//   auto codec = make_codec({.scheme = Scheme::kTopK, .value = Value::kF16},
//                           {.elements = n, .segment_bytes = 1024, .max_selected = n / 10});
//   std::vector<std::byte> workspace((*codec)->encode_workspace());
//   std::vector<std::byte> message((*codec)->max_message_bytes());
//   EncodeResult sent;
//   Status status = (*codec)->encode({.input = gradient.data(), .residual = residual.data(),
//                                     .selected = n / 100, .key = {seed, round},
//                                     .message = message, .workspace = workspace,
//                                     .result = &sent});
//
// Nothing is allocated by encode() and decode(): sizes are asked for once, and
// all memory is the caller's. On a CUDA codec every pointer is device memory
// and the calls are only queued on the stream; on a CPU codec they are done on
// return. The bytes are the same on both, and on every rerun: see "Determinism"
// in the layout document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dblp/compress/status.hpp"
#include "dblp/export.hpp"
#include "dblp/result.hpp"

namespace dblp::compress {

enum class Scheme : std::uint8_t {
  kDense = 1,     // every element; 64-byte groups striped over the segments
  kTopK = 2,      // the largest magnitudes, each with its index
  kHadamard = 3,  // dense, after a randomised Hadamard transform
};

enum class Value : std::uint8_t {
  kF32 = 1,
  kF16 = 2,   // round to nearest even; finite values saturate
  kBF16 = 3,  // the same
  kI8 = 4,    // one scale a segment, stochastic rounding
  kI4 = 5,    // the same, 15 levels
};

struct CodecOptions {
  Scheme scheme = Scheme::kDense;
  Value value = Value::kF16;
  bool prune = false;  // room in the workspace for EncodeArgs::weights

  friend bool operator==(const CodecOptions&, const CodecOptions&) = default;
};

inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 29;
inline constexpr std::uint32_t kMinSegmentBytes = 128;
inline constexpr std::uint32_t kMaxSegmentBytes = 65532;

struct Shape {
  std::uint64_t elements = 0;       // 1 to kMaxElements
  std::uint32_t segment_bytes = 0;  // payload of one segment, a multiple of 4
  std::uint64_t max_selected = 0;   // kTopK: the most that one message selects
};

// Both ends use the same. Randomness is a function of it and of the place in
// the message alone; a new round must have a new number.
struct Key {
  std::uint64_t seed = 0;
  std::uint64_t round = 0;
};

struct EncodeResult {
  std::uint64_t message_bytes = 0;
  std::uint64_t selected = 0;  // elements sent: fewer than asked for if the rest is zero
  std::uint32_t segments = 0;
  bool finite = true;  // false: a NaN or infinity was sent
};

struct EncodeArgs {
  const float* input = nullptr;  // shape().elements
  // In: what earlier rounds owe, added to the input. Out: what this message
  // does not carry. Null: nothing is owed and nothing kept.
  float* residual = nullptr;
  // Elements whose weight is smaller in magnitude are not sent (pruning); they
  // stay in the residual. Null: no pruning. Needs CodecOptions::prune.
  const float* weights = nullptr;
  float prune_below = 0.0F;
  std::uint64_t selected = 0;  // kTopK: how many, at most max_selected
  Key key;
  std::span<std::byte> message;    // max_message_bytes()
  std::span<std::byte> workspace;  // encode_workspace()
  EncodeResult* result = nullptr;  // required
};

struct DecodeResult {
  std::uint32_t decoded = 0;
  std::uint32_t missing = 0;
  std::uint32_t refused = 0;
  Status first_refusal = Status::kOk;
};

struct DecodeArgs {
  std::span<const std::byte> message;
  // Bit i % 64 of word i / 64 is set if segment i is missing; words that are
  // not there count as zero (as in dblp::Map).
  std::span<const std::uint64_t> missing;
  Key key;
  float* output = nullptr;  // shape().elements
  // false: what is not carried becomes zero. true: the message is added.
  bool accumulate = false;
  std::span<std::byte> workspace;  // decode_workspace()
  std::span<Status> segments;      // one each, or empty
  DecodeResult* result = nullptr;  // may be null
};

// A cudaStream_t; null is the device's default stream, and all that a CPU
// codec takes.
struct Stream {
  void* handle = nullptr;
};

class DBLP_EXPORT Codec {
 public:
  virtual ~Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  [[nodiscard]] const CodecOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t max_message_bytes() const noexcept { return max_message_bytes_; }
  [[nodiscard]] std::uint32_t max_segments() const noexcept { return max_segments_; }
  [[nodiscard]] virtual std::size_t encode_workspace() const noexcept = 0;
  [[nodiscard]] virtual std::size_t decode_workspace() const noexcept = 0;

  // One call at a time for each workspace; the codec itself has no state.
  virtual Status encode(const EncodeArgs& args, Stream stream = {}) const noexcept = 0;
  virtual Status decode(const DecodeArgs& args, Stream stream = {}) const noexcept = 0;

 protected:
  Codec(const CodecOptions& options, const Shape& shape, std::size_t max_message_bytes,
        std::uint32_t max_segments)
      : options_(options),
        shape_(shape),
        max_message_bytes_(max_message_bytes),
        max_segments_(max_segments) {}

 private:
  CodecOptions options_;
  Shape shape_;
  std::size_t max_message_bytes_;
  std::uint32_t max_segments_;
};

// The CPU codec. EINVAL: options or shape outside their limits. ENOTSUP: the
// environment's DBLP_ISA forces instructions (scalar, avx2, avx512) that this
// processor lacks.
[[nodiscard]] DBLP_EXPORT Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options,
                                                                    const Shape& shape);

// Adds 1 to counts[i] for each element i that the segments not missing carry.
// kUnsupported: with kTopK only the sender knows, with kHadamard every element
// is in every segment of its block.
DBLP_EXPORT Status count_carried(const Codec& codec, Key key,
                                 std::span<const std::uint64_t> missing,
                                 std::span<std::uint16_t> counts) noexcept;

// "scalar", "avx2" or "avx512": what make_codec() uses here, and why not more.
[[nodiscard]] DBLP_EXPORT Result<const char*> cpu_isa();

}  // namespace dblp::compress
