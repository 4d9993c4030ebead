// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// The CUDA codec against the CPU's, byte for byte: its kernels run on the CPU,
// with the order of threads and blocks drawn from a seed; and on a GPU where
// there is one, which is skipped visibly otherwise.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "compress/cuda/codec.cuh"
#include "compress/tests/harness.hpp"
#include "dblp/compress/device.hpp"

namespace dblp::compress::test {
namespace {

// Where a codec's memory is.
class Place {
 public:
  virtual ~Place() = default;
  virtual std::unique_ptr<Codec> codec(const CodecOptions& options, const Shape& shape) = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* p) = 0;
  virtual void to(void* device, const void* host, std::size_t bytes) = 0;
  virtual void from(void* host, const void* device, std::size_t bytes) = 0;
};

class Emulated final : public Place {
 public:
  std::unique_ptr<Codec> codec(const CodecOptions& options, const Shape& shape) override {
    std::unique_ptr<Codec> codec;
    EXPECT_EQ(gpu::make_gpu_codec(options, shape, &codec), Status::kOk);
    return codec;
  }
  void* allocate(std::size_t bytes) override {
    return ::operator new(std::max<std::size_t>(bytes, 1));
  }
  void release(void* p) override { ::operator delete(p); }
  void to(void* device, const void* host, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void from(void* host, const void* device, std::size_t bytes) override { to(host, device, bytes); }
};

class OnDevice final : public Place {
 public:
  explicit OnDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  std::unique_ptr<Codec> codec(const CodecOptions& options, const Shape& shape) override {
    return std::move(device_->make_codec(options, shape)).value();
  }
  void* allocate(std::size_t bytes) override { return device_->allocate(bytes).value(); }
  void release(void* p) override { device_->release(p); }
  void to(void* device, const void* host, std::size_t bytes) override {
    EXPECT_EQ(device_->copy_to_device(device, host, bytes, {}), Status::kOk);
    EXPECT_EQ(device_->synchronize({}), Status::kOk);
  }
  void from(void* host, const void* device, std::size_t bytes) override {
    EXPECT_EQ(device_->copy_to_host(host, device, bytes, {}), Status::kOk);
    EXPECT_EQ(device_->synchronize({}), Status::kOk);
  }

 private:
  std::unique_ptr<Device> device_;
};

template <class T>
class Remote {
 public:
  Remote(Place& place, std::size_t n) : place_(place), n_(n), p_(place.allocate(n * sizeof(T))) {}
  Remote(Place& place, const std::vector<T>& x) : Remote(place, x.size()) {
    place.to(p_, x.data(), n_ * sizeof(T));
  }
  ~Remote() { place_.release(p_); }
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  [[nodiscard]] T* get() const { return static_cast<T*>(p_); }
  [[nodiscard]] std::span<T> span() const { return {get(), n_}; }
  [[nodiscard]] std::vector<T> read(std::size_t n) const {
    std::vector<T> x(n);
    place_.from(x.data(), p_, n * sizeof(T));
    return x;
  }

 private:
  Place& place_;
  std::size_t n_;
  void* p_;
};

bool same_values(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (bits_of(a[i]) != bits_of(b[i]) && (a[i] == a[i] || b[i] == b[i])) return false;
  return a.size() == b.size();
}

struct Job {
  CodecOptions options;
  Shape shape;
  std::uint64_t selected = 0;
  std::vector<float> input;
  std::vector<float> residual;  // empty: none
  std::vector<float> weights;   // empty: none
  Key key{11, 12};
};

void compare(Place& place, const Job& job, Rng& rng) {
  Harness cpu(job.options, job.shape);
  const std::unique_ptr<Codec> codec = place.codec(job.options, job.shape);
  ASSERT_EQ(codec->max_message_bytes(), cpu.codec().max_message_bytes());

  // Encode.
  std::vector<float> rest = job.residual;
  std::vector<std::byte> workspace(cpu.codec().encode_workspace());
  std::vector<std::byte> message(cpu.codec().max_message_bytes());
  EncodeResult want;
  EncodeArgs args{.input = job.input.data(),
                  .residual = rest.empty() ? nullptr : rest.data(),
                  .weights = job.weights.empty() ? nullptr : job.weights.data(),
                  .prune_below = 0.1F,
                  .selected = job.selected,
                  .key = job.key,
                  .message = message,
                  .workspace = workspace,
                  .result = &want};
  ASSERT_EQ(cpu.codec().encode(args), Status::kOk);
  message.resize(want.message_bytes);

  Remote<float> input(place, job.input);
  Remote<float> residual(place, job.residual);
  Remote<float> weights(place, job.weights);
  Remote<std::byte> gpu_message(place, codec->max_message_bytes());
  Remote<std::byte> gpu_workspace(place, codec->encode_workspace());
  Remote<EncodeResult> gpu_result(place, 1);
  args.input = input.get();
  args.residual = job.residual.empty() ? nullptr : residual.get();
  args.weights = job.weights.empty() ? nullptr : weights.get();
  args.message = gpu_message.span();
  args.workspace = gpu_workspace.span();
  args.result = gpu_result.get();
  ASSERT_EQ(codec->encode(args), Status::kOk);
  const EncodeResult got = gpu_result.read(1)[0];
  ASSERT_EQ(got.message_bytes, want.message_bytes) << name_of(job.options);
  ASSERT_EQ(got.selected, want.selected);
  ASSERT_EQ(got.segments, want.segments);
  ASSERT_EQ(got.finite, want.finite);
  ASSERT_EQ(gpu_message.read(want.message_bytes), message) << name_of(job.options);
  ASSERT_TRUE(same_values(residual.read(rest.size()), rest)) << name_of(job.options);

  // Decode: whole, with holes, damaged.
  Remote<std::byte> decode_workspace(place, codec->decode_workspace());
  for (const int kind : {0, 1, 2, 3}) {
    std::vector<std::byte> bytes = message;
    std::vector<std::uint64_t> missing((want.segments + 63) / 64);
    if (kind >= 1)
      for (std::uint32_t i = 0; i < want.segments; ++i)
        if (rng.chance(0.3)) missing[i / 64] |= std::uint64_t{1} << (i % 64);
    if (kind >= 2)
      for (int n = 0; n < 6; ++n) {
        const std::size_t at = rng.below(bytes.size());
        bytes[rng.chance(0.5)
                  ? at
                  : at / job.shape.segment_bytes * job.shape.segment_bytes +
                        std::min<std::size_t>(rng.below(12), at % job.shape.segment_bytes)] =
            static_cast<std::byte>(rng());
      }
    const bool accumulate = kind % 2 == 1;
    std::vector<float> output = job.input;
    std::vector<Status> segments;
    DecodeResult result;
    ASSERT_EQ(cpu.decode_into(output, bytes, job.key, missing, accumulate, &segments, &result),
              Status::kOk);
    Remote<std::byte> in(place, bytes);
    Remote<std::uint64_t> map(place, missing);
    Remote<float> out(place, job.input);
    Remote<Status> statuses(place, segments.size());
    Remote<DecodeResult> report(place, 1);
    ASSERT_EQ(codec->decode({.message = in.span(),
                             .missing = map.span(),
                             .key = job.key,
                             .output = out.get(),
                             .accumulate = accumulate,
                             .workspace = decode_workspace.span(),
                             .segments = statuses.span(),
                             .result = report.get()}),
              Status::kOk);
    ASSERT_EQ(statuses.read(segments.size()), segments) << name_of(job.options) << kind;
    const DecodeResult r = report.read(1)[0];
    ASSERT_EQ(r.decoded, result.decoded);
    ASSERT_EQ(r.missing, result.missing);
    ASSERT_EQ(r.refused, result.refused);
    ASSERT_EQ(r.first_refusal, result.first_refusal);
    ASSERT_TRUE(same_values(out.read(output.size()), output)) << name_of(job.options) << kind;
  }
}

Job make_job(Rng& rng, CodecOptions options, std::size_t n, std::uint32_t segment_bytes) {
  const bool topk = options.scheme == Scheme::kTopK;
  options.prune = rng.chance(0.3);
  Job job{.options = options,
          .shape = {.elements = n, .segment_bytes = segment_bytes},
          .input = gradient(rng, n),
          .residual = {},
          .weights = {}};
  if (topk) {
    job.shape.max_selected = std::max<std::uint64_t>(1, n / 4);
    static constexpr std::uint64_t kParts[] = {4, 10, 150, 1000};
    job.selected = std::min<std::uint64_t>(n / kParts[rng.below(4)], job.shape.max_selected);
  }
  if (rng.chance(0.7)) job.residual = gradient(rng, n);
  if (options.prune) job.weights = gradient(rng, n);
  if (rng.chance(0.2)) job.input[rng.below(n)] = rng.chance(0.5) ? HUGE_VALF : std::nanf("");
  // Many ties at the edge.
  if (rng.chance(0.3))
    for (float& x : job.input) x = std::round(x * 4) / 4;
  job.key = {rng(), rng()};
  return job;
}

class GpuCodecs : public testing::TestWithParam<CodecOptions> {};

TEST_P(GpuCodecs, KernelsOnTheCpuMatch) {
  Emulated place;
  const std::uint64_t before = simt::switches();
  Rng rng(70);
#if defined(__SANITIZE_ADDRESS__)
  // The sanitizer tells of each switch of stacks: what is larger takes minutes.
  const std::size_t sizes[] = {1, 17, 700};
  const std::uint64_t switches = 1000;
#else
  const std::size_t sizes[] = {1, 17, 1000, 2049, 4500};
  const std::uint64_t switches = 10000;
#endif
  for (const std::size_t n : sizes) {
    for (int round = 0; round < (n > 2000 ? 1 : 2); ++round) {
      simt::set_seed(rng());
      compare(place, make_job(rng, GetParam(), n, n > 2000 ? 512 : 128), rng);
      if (HasFatalFailure()) FAIL() << "n " << n << ", " << seed_note();
    }
  }
  EXPECT_GT(simt::switches() - before, switches);
}

INSTANTIATE_TEST_SUITE_P(Codecs, GpuCodecs, testing::ValuesIn(all_codecs()),
                         [](const auto& info) { return name_of(info.param); });

TEST(Gpu, MatchesTheCpu) {
  Result<std::unique_ptr<Device>> device = open_cuda_device();
  if (!device) GTEST_SKIP() << "no GPU: " << device.error().message();
  OnDevice place(std::move(*device));
  Rng rng(71);
  for (const CodecOptions& options : all_codecs())
    for (const std::size_t n : {1U, 17U, 1000U, 7000U, 300000U, 3000001U})
      for (int round = 0; round < 3; ++round)
        compare(place, make_job(rng, options, n, n > 2000 ? 1024 : 128), rng);
}

// The emulator itself: it must see what it is for.
void racing_sum(std::uint32_t* sum) {
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t seen = *sum;
    simt::maybe_yield();
    *sum = seen + 1;
  }
}

TEST(Simt, ShowsARace) {
  std::uint32_t sum = 0;
  simt::set_seed(1);
  simt::launch(4, 64, [&] { racing_sum(&sum); });
  EXPECT_LT(sum, 4U * 64 * 4);
  sum = 0;
  simt::launch(4, 64, [&] {
    for (int i = 0; i < 4; ++i) atomicAdd(&sum, 1U);
  });
  EXPECT_EQ(sum, 4U * 64 * 4);
}

TEST(SimtDeathTest, ABarrierThatNotAllReach) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(simt::launch(1, 32,
                            [] {
                              if (simt::thread_index.x < 16) __syncthreads();
                            }),
               "not all threads reach");
}

}  // namespace
}  // namespace dblp::compress::test
