// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// The fuzzer's entry point under any compiler: on its corpus, on mutated good
// messages, on noise. With DBLP_WRITE_CORPUS=FOLDER it writes the good messages
// there, which is how the corpus was made.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compress/tests/harness.hpp"
#include "dblp/compress/recovery.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace dblp::compress::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

// A good message behind the bytes that choose its codec, see codec_fuzz.cpp.
Bytes good_input(Rng& rng, const CodecOptions& options) {
  const std::uint64_t elements = 1 + rng.below(rng.chance(0.5) ? 300 : 4000);
  const std::uint32_t pick = static_cast<std::uint32_t>(rng.below(64));
  const bool topk = options.scheme == Scheme::kTopK;
  const std::uint8_t share = static_cast<std::uint8_t>(rng.below(64));
  const std::uint64_t selected = topk ? elements * share / 255 : 0;
  Harness harness(options, {.elements = elements,
                            .segment_bytes = kMinSegmentBytes + 4 * pick,
                            .max_selected = selected});
  const Message message = harness.encode(gradient(rng, elements), {1, 2}, selected);
  Bytes input{static_cast<std::uint8_t>(static_cast<int>(options.scheme) - 1),
              static_cast<std::uint8_t>(static_cast<int>(options.value) - 1),
              static_cast<std::uint8_t>(elements - 1),
              static_cast<std::uint8_t>((elements - 1) >> 8),
              static_cast<std::uint8_t>(pick),
              share,
              static_cast<std::uint8_t>(rng.below(2)),
              static_cast<std::uint8_t>(rng.chance(0.5) ? 0 : rng.below(256))};
  for (const std::byte b : message.bytes) input.push_back(static_cast<std::uint8_t>(b));
  return input;
}

Bytes good_file(Rng& rng) {
  Memory memory;
  std::shared_ptr<Memory::Arrays> arrays;
  const std::vector<Parameter> parameters{{.id = rng(), .offset = 0, .length = 1 + rng.below(9)},
                                          {.id = rng(), .offset = 10, .length = 1 + rng.below(5)}};
  EXPECT_EQ(memory.bind(parameters, 20, rng.chance(0.5), rng.chance(0.5), &arrays), Status::kOk);
  Bytes input{0, 0, 0, 0, 0, 0, 0x80, 0};
  for (const std::byte b : memory.save()) input.push_back(static_cast<std::uint8_t>(b));
  return input;
}

void mutate(Rng& rng, Bytes& bytes, std::size_t segment_bytes) {
  if (bytes.size() <= 8) return;
  const std::size_t at = 8 + rng.below(bytes.size() - 8);
  static constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  switch (rng.below(6)) {
    case 0:
      bytes[at] ^= static_cast<std::uint8_t>(1U << rng.below(8));
      break;
    case 1:
      bytes[at] = kEdges[rng.below(5)];
      break;
    case 2:
      bytes[at] = static_cast<std::uint8_t>(rng());
      break;
    case 3: {  // the header of some segment
      const std::size_t segments = (bytes.size() - 8 + segment_bytes - 1) / segment_bytes;
      const std::size_t near = 8 + rng.below(segments) * segment_bytes + rng.below(12);
      if (near < bytes.size()) bytes[near] = static_cast<std::uint8_t>(rng());
      break;
    }
    case 4:
      bytes.resize(at);
      break;
    default: {  // a piece elsewhere: segments swapped or repeated
      const std::size_t to = 8 + rng.below(bytes.size() - 8);
      const std::size_t n = std::min(
          {bytes.size() - at, bytes.size() - to, rng.chance(0.5) ? segment_bytes : rng.below(64)});
      const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
      std::copy(piece.begin(), piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
}

TEST(FuzzReplay, Corpus) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DBLP_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++files;
  }
  EXPECT_GE(files, 15);
}

TEST(FuzzReplay, MutatedMessages) {
  Rng rng(60);
  const char* folder = std::getenv("DBLP_WRITE_CORPUS");
  for (const CodecOptions& options : all_codecs()) {
    for (int i = 0; i < 60; ++i) {
      const Bytes good = good_input(rng, options);
      LLVMFuzzerTestOneInput(good.data(), good.size());
      if (folder != nullptr && good.size() < 3000) {
        std::ofstream file(std::filesystem::path(folder) / name_of(options), std::ios::binary);
        file.write(reinterpret_cast<const char*>(good.data()),
                   static_cast<std::streamsize>(good.size()));
      }
      for (int round = 0; round < 12; ++round) {
        Bytes bytes = good;
        for (std::uint64_t n = 1 + rng.below(4); n > 0; --n)
          mutate(rng, bytes, kMinSegmentBytes + 4 * (good[4] % 64U));
        bytes.shrink_to_fit();
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      }
    }
  }
}

TEST(FuzzReplay, MutatedFiles) {
  Rng rng(61);
  const char* folder = std::getenv("DBLP_WRITE_CORPUS");
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = good_file(rng);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    if (folder != nullptr && i == 0) {
      std::ofstream file(std::filesystem::path(folder) / "Memory", std::ios::binary);
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) mutate(rng, bytes, 32);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

TEST(FuzzReplay, Noise) {
  Rng rng(62);
  for (int i = 0; i < 3000; ++i) {
    Bytes bytes(rng.below(600));
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(rng());
    if (bytes.size() > 12 && rng.chance(0.7)) {  // past the first byte of the header
      bytes[6] &= 0x7f;
      bytes[8] = static_cast<std::uint8_t>((1 + bytes[0] % 3) << 4 | (1 + bytes[1] % 5));
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace
}  // namespace dblp::compress::test
