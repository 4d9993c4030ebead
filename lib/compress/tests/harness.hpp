// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// A codec with its buffers, each exactly as large as the codec asks for, so
// that a sanitizer sees the first byte beyond.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compress/cpu/codec.hpp"
#include "compress/tests/random.hpp"

namespace dblp::compress::test {

struct Message {
  std::vector<std::byte> bytes;
  EncodeResult result;
};

class Harness {
 public:
  explicit Harness(std::unique_ptr<Codec> codec) : codec_(std::move(codec)) {
    encode_memory_.resize(codec_->encode_workspace());
    decode_memory_.resize(codec_->decode_workspace());
  }
  Harness(const CodecOptions& options, const Shape& shape)
      : Harness(std::move(make_codec(options, shape)).value()) {}
  Harness(const Kernels& kernels, const CodecOptions& options, const Shape& shape)
      : Harness(std::move(make_cpu_codec(kernels, options, shape)).value()) {}

  [[nodiscard]] const Codec& codec() const { return *codec_; }

  Message encode(const std::vector<float>& input, Key key, std::uint64_t selected = 0,
                 std::vector<float>* residual = nullptr) {
    Message message;
    message.bytes.resize(codec_->max_message_bytes(), std::byte{0xee});
    const Status status =
        codec_->encode({.input = input.data(),
                        .residual = residual != nullptr ? residual->data() : nullptr,
                        .selected = selected,
                        .key = key,
                        .message = message.bytes,
                        .workspace = encode_memory_,
                        .result = &message.result});
    EXPECT_EQ(status, Status::kOk) << status_name(status);
    message.bytes.resize(message.result.message_bytes);
    message.bytes.shrink_to_fit();
    return message;
  }

  std::vector<float> decode(const std::vector<std::byte>& message, Key key,
                            const std::vector<std::uint64_t>& missing = {},
                            std::vector<Status>* segments = nullptr,
                            DecodeResult* result = nullptr) {
    std::vector<float> output(codec_->shape().elements, std::nanf(""));
    const Status status = decode_into(output, message, key, missing, false, segments, result);
    EXPECT_EQ(status, Status::kOk) << status_name(status);
    return output;
  }

  Status decode_into(std::vector<float>& output, const std::vector<std::byte>& message, Key key,
                     const std::vector<std::uint64_t>& missing, bool accumulate,
                     std::vector<Status>* segments = nullptr, DecodeResult* result = nullptr) {
    if (segments != nullptr)
      segments->assign(segments_of(message.size(), codec_->shape().segment_bytes), Status::kOk);
    return codec_->decode(
        {.message = message,
         .missing = missing,
         .key = key,
         .output = output.data(),
         .accumulate = accumulate,
         .workspace = decode_memory_,
         .segments = segments != nullptr ? std::span<Status>(*segments) : std::span<Status>(),
         .result = result});
  }

 private:
  std::unique_ptr<Codec> codec_;
  std::vector<std::byte> encode_memory_;
  std::vector<std::byte> decode_memory_;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::string name_of(const CodecOptions& options) {
  static const char* const kSchemes[] = {"", "Dense", "TopK", "Hadamard"};
  static const char* const kValues[] = {"", "F32", "F16", "BF16", "I8", "I4"};
  return std::string(kSchemes[static_cast<int>(options.scheme)]) +
         kValues[static_cast<int>(options.value)];
}

inline std::vector<CodecOptions> all_codecs() {
  std::vector<CodecOptions> all;
  for (const Scheme scheme : {Scheme::kDense, Scheme::kTopK, Scheme::kHadamard})
    for (const Value value : {Value::kF32, Value::kF16, Value::kBF16, Value::kI8, Value::kI4})
      all.push_back({.scheme = scheme, .value = value});
  return all;
}

}  // namespace dblp::compress::test
