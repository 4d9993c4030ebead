// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// Any bytes as a message for any decoder, and as a file for Memory::restore().
//
// The first 8 bytes choose: scheme, value, elements (2), segment size, selected,
// flags, missing segments; the rest is the message. What is refused must leave
// its coordinates zero; what is decoded must be the same again, alone, and by
// every instruction set.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "compress/cpu/codec.hpp"
#include "dblp/compress/recovery.hpp"

namespace {

using namespace dblp::compress;

void expect(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "codec_fuzz: %s\n", what);
  std::abort();
}

struct Decoded {
  Status status = Status::kOk;
  DecodeResult result;
  std::vector<Status> segments;
  std::vector<float> output;
};

Decoded decode(const Codec& codec, const std::vector<std::byte>& message,
               const std::vector<u64>& missing, bool accumulate) {
  Decoded d;
  std::vector<std::byte> workspace(codec.decode_workspace());
  d.segments.assign(segments_of(message.size(), codec.shape().segment_bytes), Status::kOk);
  d.output.assign(codec.shape().elements, accumulate ? 0.0F : 7.0F);
  d.status = codec.decode({.message = message,
                           .missing = missing,
                           .key = {1, 2},
                           .output = d.output.data(),
                           .accumulate = accumulate,
                           .workspace = workspace,
                           .segments = d.segments,
                           .result = &d.result});
  return d;
}

bool same(const Decoded& a, const Decoded& b) {
  if (a.status != b.status || a.segments != b.segments) return false;
  for (std::size_t i = 0; i < a.output.size(); ++i) {
    const float x = a.output[i];
    const float y = b.output[i];
    if (x != y && (x == x || y == y)) return false;
  }
  return true;
}

void check_codec(const u8* data, std::size_t size) {
  CodecOptions options{.scheme = static_cast<Scheme>(1 + data[0] % 3),
                       .value = static_cast<Value>(1 + data[1] % 5)};
  Shape shape{.elements = 1 + (data[2] | u64{data[3]} << 8) % 6000,
              .segment_bytes = kMinSegmentBytes + 4 * (data[4] % 64U)};
  if (options.scheme == Scheme::kTopK) shape.max_selected = shape.elements * data[5] / 255;
  const bool accumulate = (data[6] & 1) != 0;
  auto codec = make_cpu_codec(scalar_kernels(), options, shape);
  expect(codec.has_value(), "a shape within the limits is refused");
  const std::vector<u64> missing{data[7] * u64{0x0101010101010101}};

  std::vector<std::byte> message(size - 8);
  if (!message.empty()) std::memcpy(message.data(), data + 8, message.size());
  message.shrink_to_fit();
  // A dense message has one length; most inputs would end there.
  if (options.scheme != Scheme::kTopK && (data[6] & 2) != 0) {
    const Random random = make_random(1, 2);
    message.resize(
        dense_message_bytes(make_dense(options.scheme, options.value, shape.segment_bytes,
                                       static_cast<u32>(shape.elements), random),
                            random));
  }

  const Decoded all = decode(**codec, message, missing, accumulate);
  expect(all.status == Status::kOk || all.status == Status::kBadLength, "another status");
  for (const Kernels* kernels : {avx2_kernels(), avx512_kernels()}) {
    if (kernels == nullptr || !supports(*kernels)) continue;
    auto other = make_cpu_codec(*kernels, options, shape);
    expect(same(all, decode(**other, message, missing, accumulate)), "instruction sets differ");
  }
  if (all.status != Status::kOk) return;
  u32 decoded = 0;
  u32 lost = 0;
  for (const Status s : all.segments) {
    decoded += s == Status::kOk ? 1 : 0;
    lost += s == Status::kMissing ? 1 : 0;
    expect(s < Status::kBadLength, "a segment's status is not a segment's");
  }
  expect(all.result.decoded == decoded && all.result.missing == lost &&
             all.result.refused == all.segments.size() - decoded - lost,
         "the result does not add up");
  expect((all.result.refused == 0) == (all.result.first_refusal == Status::kOk),
         "a refusal without a reason");

  // With what was refused named as missing, all the same comes out.
  std::vector<u64> holes((all.segments.size() + 63) / 64);
  for (std::size_t i = 0; i < all.segments.size(); ++i)
    if (all.segments[i] != Status::kOk) holes[i / 64] |= u64{1} << (i % 64);
  const Decoded again = decode(**codec, message, holes, accumulate);
  expect(again.result.refused == 0 && again.result.decoded == decoded, "refused alone");
  for (std::size_t i = 0; i < all.output.size(); ++i)
    expect(bits_of(all.output[i]) == bits_of(again.output[i]), "a refused segment left something");
}

void check_file(const u8* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  Memory memory;
  if (memory.restore(bytes) != Status::kOk) {
    expect(memory.parameters() == 0, "a refused file left something");
    return;
  }
  expect(memory.save() == bytes, "a file is not what it was saved from");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  if (data[6] >= 0x80)
    check_file(data + 8, size - 8);
  else
    check_codec(data, size);
  return 0;
}
