// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// Buckets and what becomes of undelivered gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "compress/sums.hpp"
#include "compress/tests/random.hpp"
#include "dblp/compress/bucket.hpp"

namespace dblp::compress::test {
namespace {

// A convolution, its bias, a matrix, a norm's weight, a small matrix.
std::vector<Parameter> model() {
  return {{.id = 10, .offset = 0, .length = 20000, .dimensions = 4},
          {.id = 11, .offset = 20000, .length = 64, .dimensions = 1},
          {.id = 12, .offset = 20064, .length = 30000, .dimensions = 2},
          {.id = 13, .offset = 50064, .length = 1200, .dimensions = 1},
          {.id = 14, .offset = 51264, .length = 100, .dimensions = 2}};
}
constexpr std::uint64_t kElements = 51364;
constexpr std::uint32_t kSegment = 1024;

BucketOptions options_for(Scheme scheme, Value value) {
  return {.codec = {.scheme = scheme, .value = value},
          .elements = kElements,
          .segment_bytes = kSegment,
          .max_selected = scheme == Scheme::kTopK ? kElements / 10 : 0};
}

class Worker {
 public:
  Worker(const BucketOptions& options, const RecoveryOptions& recovery)
      : codec(BucketCodec::create(options, model()).value()),
        sender(BucketSender::create(codec, memory, recovery).value()),
        message(codec.max_message_bytes()) {}

  void encode(const std::vector<float>& g, std::uint8_t phase = 0) {
    ++key.round;
    const Status status = sender.encode({.gradient = g,
                                         .selected = codec.options().max_selected,
                                         .key = key,
                                         .phase = phase,
                                         .message = message,
                                         .result = &result});
    ASSERT_EQ(status, Status::kOk) << status_name(status);
  }
  [[nodiscard]] std::span<const std::byte> sent() const {
    return std::span(message).first(result.message_bytes);
  }
  void settle(const std::vector<std::uint64_t>& missing) {
    ASSERT_EQ(sender.settle(sent(), key, missing), Status::kOk);
  }
  std::vector<float> received(const std::vector<std::uint64_t>& missing = {}) {
    std::vector<float> output(kElements);
    EXPECT_EQ(codec.decode({.message = sent(),
                            .missing = missing,
                            .key = key,
                            .output = output.data(),
                            .workspace = {},
                            .segments = {}}),
              Status::kOk);
    return output;
  }
  // Loses this share of the segments that are not protected; the last ones, or
  // any.
  std::vector<std::uint64_t> lose(double share, Rng* rng = nullptr) const {
    std::vector<std::uint64_t> missing((result.segments + 63) / 64);
    const auto first = static_cast<std::uint32_t>(codec.protect().length / kSegment);
    const auto from =
        result.segments - static_cast<std::uint32_t>(share * (result.segments - first));
    for (std::uint32_t i = first; i < result.segments; ++i)
      if (rng != nullptr ? rng->chance(share) : i >= from)
        missing[i / 64] |= std::uint64_t{1} << (i % 64);
    return missing;
  }

  Memory memory;
  BucketCodec codec;
  BucketSender sender;
  std::vector<std::byte> message;
  EncodeResult result;
  Key key{99, 0};
};

double norm(const std::vector<float>& x, const Parameter& p) {
  return std::sqrt(energy_of(x.data() + p.offset, p.length));
}

std::vector<float> normal_gradient(Rng& rng) {
  std::vector<float> g(kElements);
  for (float& x : g) x = rng.normal();
  return g;
}

TEST(Bucket, SmallParametersAreInTheProtectedFront) {
  Rng rng(40);
  for (const Scheme scheme : {Scheme::kDense, Scheme::kTopK, Scheme::kHadamard}) {
    Worker worker(options_for(scheme, Value::kF16), {});
    EXPECT_FALSE(worker.codec.is_protected(0));
    EXPECT_TRUE(worker.codec.is_protected(1));  // one-dimensional
    EXPECT_FALSE(worker.codec.is_protected(2));
    EXPECT_TRUE(worker.codec.is_protected(3));  // larger than a segment, one-dimensional
    EXPECT_TRUE(worker.codec.is_protected(4));  // smaller than a segment
    // 1364 values of 2 bytes: three segments.
    EXPECT_EQ(worker.codec.protect(), (Range{0, 3 * kSegment}));
    const std::vector<float> g = normal_gradient(rng);
    worker.encode(g);
    // All else lost.
    std::vector<std::uint64_t> missing(20, ~std::uint64_t{0});
    missing[0] = ~std::uint64_t{7};
    const std::vector<float> got = worker.received(missing);
    for (const Parameter& p : model()) {
      const bool front = p.id != 10 && p.id != 12;
      for (std::uint64_t i = p.offset; i < p.offset + p.length; ++i) {
        if (front)
          ASSERT_NEAR(got[i], g[i], std::fabs(g[i]) * 0x1p-10) << i;
        else
          ASSERT_EQ(got[i], 0.0F) << i;
      }
    }
  }
}

TEST(Bucket, WithoutProtectionThereIsNoFront) {
  BucketOptions options = options_for(Scheme::kDense, Value::kF16);
  options.protect_small = false;
  Worker worker(options, {});
  EXPECT_EQ(worker.codec.protect().length, 0U);
}

TEST(Bucket, AllProtectedNeedsNoBody) {
  Rng rng(41);
  const std::vector<Parameter> parameters{{.id = 1, .offset = 0, .length = 50, .dimensions = 1}};
  BucketCodec codec =
      BucketCodec::create({.codec = {}, .elements = 50, .segment_bytes = 1024}, parameters).value();
  Memory memory;
  BucketSender sender = BucketSender::create(codec, memory, {}).value();
  std::vector<float> g(50);
  for (float& x : g) x = rng.normal();
  std::vector<std::byte> message(codec.max_message_bytes());
  EncodeResult result;
  ASSERT_EQ(sender.encode({.gradient = g, .key = {1, 1}, .message = message, .result = &result}),
            Status::kOk);
  std::vector<float> output(50);
  ASSERT_EQ(codec.decode({.message = std::span(message).first(result.message_bytes),
                          .missing = {},
                          .key = {1, 1},
                          .output = output.data(),
                          .workspace = {},
                          .segments = {}}),
            Status::kOk);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(output[i], g[i], 1e-2);
}

TEST(Bucket, ShortMessagesAreRefused) {
  Rng rng(42);
  Worker worker(options_for(Scheme::kDense, Value::kI8), {});
  worker.encode(normal_gradient(rng));
  std::vector<float> output(kElements);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{kSegment}, std::size_t{3 * kSegment},
        std::size_t{3 * kSegment + 1}, worker.sent().size() - 1}) {
    EXPECT_EQ(worker.codec.decode({.message = worker.sent().first(bytes),
                                   .missing = {},
                                   .key = worker.key,
                                   .output = output.data(),
                                   .workspace = {},
                                   .segments = {}}),
              Status::kBadLength)
        << bytes;
  }
}

TEST(Recovery, ExactAccountOfOneLoss) {
  Rng rng(43);
  for (const float beta : {0.0F, 0.5F, 1.0F}) {
    BucketOptions options = options_for(Scheme::kDense, Value::kF32);
    options.protected_value = Value::kF32;
    Worker worker(options, {.beta = beta, .clip = 1e9F});
    const std::vector<float> g = normal_gradient(rng);
    worker.encode(g);
    const std::vector<std::uint64_t> missing = worker.lose(0.3, &rng);
    const std::vector<float> all = worker.received();
    const std::vector<float> got = worker.received(missing);
    worker.settle(missing);
    double lost_energy = 0;
    for (std::size_t i = 0; i < kElements; ++i) {
      const double d = static_cast<double>(all[i]) - got[i];
      lost_energy += d * d;
    }
    double exported = 0;
    for (const LayerLoss& loss : worker.sender.losses()) {
      exported += loss.lost_energy;
      EXPECT_GT(loss.energy, 0.0);
    }
    EXPECT_NEAR(exported, lost_energy, lost_energy * 1e-12);
    EXPECT_EQ(worker.sender.losses()[1].lost_elements, 0U);
    EXPECT_GT(worker.sender.losses()[0].lost_elements, 4000U);

    // A round of nothing new: only what is owed comes. A gradient of zero has a
    // norm of zero, which would clip all: hence the tiny one.
    worker.encode(std::vector<float>(kElements, 1e-7F));
    const std::vector<float> again = worker.received();
    for (std::size_t i = 0; i < kElements; ++i)
      ASSERT_NEAR(again[i], beta * (all[i] - got[i]), 2e-6) << i << " beta " << beta;
    worker.encode(std::vector<float>(kElements, 0.0F));
    for (const float x : worker.received()) ASSERT_NEAR(x, 0.0F, 1e-3);
  }
}

TEST(Recovery, DefaultsByScheme) {
  EXPECT_EQ(Worker(options_for(Scheme::kDense, Value::kI8), {}).sender.beta(), 0.5F);
  EXPECT_EQ(Worker(options_for(Scheme::kHadamard, Value::kI4), {}).sender.beta(), 0.5F);
  EXPECT_EQ(Worker(options_for(Scheme::kTopK, Value::kF16), {}).sender.beta(), 0.0F);
}

TEST(Recovery, CodecResidualBringsAllInTheEnd) {
  Rng rng(44);
  Worker worker(options_for(Scheme::kTopK, Value::kF16), {});
  const std::vector<float> g = normal_gradient(rng);
  std::vector<double> sum(kElements);
  worker.encode(g);
  for (int round = 0; round < 24; ++round) {
    const std::vector<float> got = worker.received();
    for (std::size_t i = 0; i < kElements; ++i) sum[i] += got[i];
    worker.encode(std::vector<float>(kElements, 0.0F));
  }
  for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(sum[i], g[i], 1e-5) << i;
}

// beta = 1, eager in order: the last segments never arrive and what they owe
// grows from round to round; then a critical phase delivers it all at once.
TEST(Recovery, ClipHoldsWhenACriticalPhaseFollowsEagerInOrder) {
  for (const bool clip : {true, false}) {
    Rng rng(45);
    Worker worker(options_for(Scheme::kDense, Value::kF32),
                  {.beta = 1.0F, .clip = clip ? 1.0F : 1e30F, .drop_on_phase_change = false});
    // A steady direction, as gradients have early in training.
    const std::vector<float> direction = normal_gradient(rng);
    // The same key each round, so that the same coordinates are lost: the worst
    // case, which a striped layout otherwise avoids.
    for (int round = 0; round < 30; ++round) {
      worker.key.round = 0;
      worker.encode(direction, 0);
      worker.settle(worker.lose(0.4));
    }
    worker.key.round = 0;
    worker.encode(direction, 1);
    const std::vector<float> got = worker.received();
    double worst = 0;
    for (const Parameter& p : model()) worst = std::max(worst, norm(got, p) / norm(direction, p));
    if (clip) {
      EXPECT_LE(worst, 2.0 + 1e-5);
      EXPECT_GT(worker.sender.clipped(), 20U);
    } else {
      // What the clip is for: this must fail without it.
      EXPECT_GT(worst, 10.0);
    }
  }
}

TEST(Recovery, PhaseChangeDropsWhatTheNetworkLostOnly) {
  Rng rng(46);
  Worker worker(options_for(Scheme::kDense, Value::kF32), {.beta = 1.0F});
  const std::vector<float> g = normal_gradient(rng);
  worker.encode(g, 0);
  worker.settle(worker.lose(0.4));
  worker.encode(g, 1);
  EXPECT_EQ(worker.sender.dropped_phase(), 1U);
  const std::vector<float> got = worker.received();
  for (std::size_t i = 0; i < 20000; ++i) ASSERT_EQ(got[i], g[i]) << i;

  Worker top(options_for(Scheme::kTopK, Value::kF16), {.beta = 1.0F});
  top.encode(g, 0);
  top.encode(std::vector<float>(kElements, 0.0F), 1);
  double energy = 0;
  for (const float x : top.received()) energy += static_cast<double>(x) * x;
  EXPECT_GT(energy, 1000.0);
}

TEST(Recovery, NanAndInfinityDropTheParametersState) {
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    for (const Scheme scheme : {Scheme::kDense, Scheme::kTopK, Scheme::kHadamard}) {
      for (const std::size_t at : {std::size_t{5}, std::size_t{20001}, std::size_t{30000}}) {
        Rng rng(47);
        Worker worker(options_for(scheme, Value::kI8), {.beta = 0.5F, .momentum = 0.9F});
        std::vector<float> g = normal_gradient(rng);
        worker.encode(g);
        worker.settle(worker.lose(0.4));
        g[at] = bad;
        worker.encode(g);
        EXPECT_FALSE(std::isfinite(worker.received()[at]));
        worker.settle(worker.lose(0.4));
        EXPECT_GT(worker.sender.dropped_nonfinite(), 0U);
        g[at] = 0.0F;
        for (int round = 0; round < 2; ++round) {
          worker.encode(g);
          for (const float x : worker.received()) ASSERT_TRUE(std::isfinite(x));
        }
      }
    }
  }
}

TEST(Recovery, MomentumIsSent) {
  Rng rng(48);
  BucketOptions options = options_for(Scheme::kDense, Value::kF32);
  options.protected_value = Value::kF32;
  Worker worker(options, {.beta = 0.0F, .momentum = 0.9F});
  std::vector<float> m(kElements, 0.0F);
  for (int round = 0; round < 4; ++round) {
    const std::vector<float> g = normal_gradient(rng);
    for (std::size_t i = 0; i < kElements; ++i) m[i] = std::fma(0.9F, m[i], g[i]);
    worker.encode(g);
    ASSERT_EQ(worker.received(), m);
  }
}

TEST(Recovery, StateSurvivesOtherBuckets) {
  Rng rng(49);
  Memory memory;
  BucketOptions options = options_for(Scheme::kTopK, Value::kF16);
  BucketCodec one = BucketCodec::create(options, model()).value();
  std::vector<float> g = normal_gradient(rng);
  std::shared_ptr<Memory::Arrays> before;
  {
    BucketSender sender = BucketSender::create(one, memory, {.momentum = 0.5F}).value();
    std::vector<std::byte> message(one.max_message_bytes());
    EncodeResult result;
    ASSERT_EQ(
        sender.encode(
            {.gradient = g, .selected = 100, .key = {1, 1}, .message = message, .result = &result}),
        Status::kOk);
  }
  ASSERT_EQ(memory.bind(model(), kElements, true, true, &before), Status::kOk);
  // Re-bucketed: other order, other offsets; one has changed its size.
  const std::vector<Parameter> first{{.id = 12, .offset = 0, .length = 30000, .dimensions = 2}};
  const std::vector<Parameter> second{{.id = 14, .offset = 7, .length = 100, .dimensions = 2},
                                      {.id = 10, .offset = 200, .length = 20000, .dimensions = 4},
                                      {.id = 11, .offset = 20200, .length = 63, .dimensions = 1}};
  std::shared_ptr<Memory::Arrays> a;
  std::shared_ptr<Memory::Arrays> b;
  ASSERT_EQ(memory.bind(first, 30000, true, true, &a), Status::kOk);
  ASSERT_EQ(memory.bind(second, 21000, true, true, &b), Status::kOk);
  EXPECT_EQ(memory.dropped(), 1U);
  EXPECT_TRUE(std::equal(a->residual.begin(), a->residual.end(), before->residual.begin() + 20064));
  EXPECT_TRUE(std::equal(a->momentum.begin(), a->momentum.end(), before->momentum.begin() + 20064));
  EXPECT_TRUE(std::equal(before->residual.begin(), before->residual.begin() + 20000,
                         b->residual.begin() + 200));
  EXPECT_TRUE(std::equal(before->residual.begin() + 51264, before->residual.end(),
                         b->residual.begin() + 7));
  EXPECT_EQ(std::count(b->residual.begin() + 20200, b->residual.begin() + 20263, 0.0F), 63);

  // Saved and restored.
  const std::vector<std::byte> file = memory.save();
  Memory other;
  ASSERT_EQ(other.restore(file), Status::kOk);
  EXPECT_EQ(other.save(), file);
  std::shared_ptr<Memory::Arrays> c;
  ASSERT_EQ(other.bind(first, 30000, true, true, &c), Status::kOk);
  EXPECT_EQ(c->residual, a->residual);
  EXPECT_EQ(c->momentum, a->momentum);
}

TEST(Recovery, BadFilesChangeNothing) {
  Rng rng(50);
  Memory memory;
  const std::vector<Parameter> parameters{{.id = 1, .offset = 0, .length = 10, .dimensions = 1},
                                          {.id = 2, .offset = 10, .length = 5, .dimensions = 1}};
  std::shared_ptr<Memory::Arrays> arrays;
  ASSERT_EQ(memory.bind(parameters, 15, true, false, &arrays), Status::kOk);
  for (float& x : arrays->residual) x = rng.normal();
  const std::vector<std::byte> file = memory.save();
  const auto with = [&](std::size_t at, int value) {
    std::vector<std::byte> bytes = file;
    bytes[at] = static_cast<std::byte>(value);
    return bytes;
  };
  EXPECT_EQ(memory.restore(with(0, 0)), Status::kBadMagic);
  EXPECT_EQ(memory.restore(with(8, 9)), Status::kBadVersion);
  EXPECT_EQ(memory.restore(with(32, 0xff)), Status::kBadRecord);  // flags
  EXPECT_EQ(memory.restore(with(36, 1)), Status::kBadRecord);     // reserved
  EXPECT_EQ(memory.restore(with(60, 0xaa)), Status::kBadChecksum);
  EXPECT_EQ(memory.restore(with(31, 0xff)), Status::kBadRecord);  // length
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    const Status status = memory.restore(std::span(file).first(bytes));
    EXPECT_TRUE(status == Status::kTruncated) << bytes << " " << status_name(status);
  }
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  EXPECT_EQ(memory.restore(longer), Status::kBadRecord);
  EXPECT_EQ(memory.save(), file);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = file;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
      bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng());
    if (rng.chance(0.3)) bytes.resize(rng.below(bytes.size()));
    if (bytes != file) {
      ASSERT_NE(memory.restore(bytes), Status::kOk);
    }
  }
}

TEST(Recovery, BadLayoutsAreRefused) {
  Memory memory;
  std::shared_ptr<Memory::Arrays> arrays;
  const std::vector<std::vector<Parameter>> bad{
      {{.id = 1, .offset = 0, .length = 11}},
      {{.id = 1, .offset = 3, .length = 0}},
      {{.id = 1, .offset = 11, .length = 1}},
      {{.id = 1, .offset = 1, .length = ~std::uint64_t{0}}},
      {{.id = 1, .offset = 0, .length = 5}, {.id = 2, .offset = 4, .length = 2}},
      {{.id = 1, .offset = 0, .length = 5}, {.id = 1, .offset = 5, .length = 2}}};
  for (const std::vector<Parameter>& parameters : bad)
    EXPECT_EQ(memory.bind(parameters, 10, false, false, &arrays), Status::kBadOption);
  EXPECT_EQ(memory.parameters(), 0U);
}

TEST(Owner, RescaledAndStaleAreRefusedAboveTwentyPercent) {
  std::vector<float> sum(100, 4.0F);
  std::vector<std::uint16_t> counts(100, 8);
  for (std::size_t i = 0; i < 40; ++i) counts[i] = 4;  // 20 % of all contributions
  ASSERT_EQ(rescale_by_count(sum, counts, 8), Status::kOk);
  EXPECT_EQ(sum[0], 8.0F);
  EXPECT_EQ(sum[40], 4.0F);
  counts[40] = 7;
  const std::vector<float> before = sum;
  EXPECT_EQ(rescale_by_count(sum, counts, 8), Status::kTooMuchLoss);
  EXPECT_EQ(sum, before);
  counts[0] = 9;
  EXPECT_EQ(rescale_by_count(sum, counts, 8), Status::kBadOption);

  const std::vector<float> previous(100, -1.0F);
  std::fill(counts.begin(), counts.begin() + 20, 0);
  ASSERT_EQ(keep_stale(sum, previous, counts), Status::kOk);
  EXPECT_EQ(sum[19], -1.0F);
  EXPECT_EQ(sum[40], 4.0F);
  counts[20] = 0;
  EXPECT_EQ(keep_stale(sum, previous, counts), Status::kTooMuchLoss);
}

TEST(Owner, CountsAreOfWhatWasDecoded) {
  Rng rng(51);
  const auto codec = make_codec({.scheme = Scheme::kDense, .value = Value::kI8},
                                {.elements = 5003, .segment_bytes = 256});
  std::vector<std::byte> workspace((*codec)->encode_workspace() + (*codec)->decode_workspace());
  std::vector<std::byte> message((*codec)->max_message_bytes());
  const std::vector<float> ones(5003, 1.0F);
  EncodeResult result;
  ASSERT_EQ((*codec)->encode({.input = ones.data(),
                              .key = {3, 4},
                              .message = message,
                              .workspace = workspace,
                              .result = &result}),
            Status::kOk);
  const std::vector<std::uint64_t> missing{rng() & rng()};
  std::vector<float> output(5003);
  ASSERT_EQ((*codec)->decode({.message = std::span(message).first(result.message_bytes),
                              .missing = missing,
                              .key = {3, 4},
                              .output = output.data(),
                              .workspace = workspace,
                              .segments = {}}),
            Status::kOk);
  std::vector<std::uint16_t> counts(5003);
  ASSERT_EQ(count_carried(**codec, {3, 4}, missing, counts), Status::kOk);
  for (std::size_t i = 0; i < 5003; ++i) ASSERT_EQ(counts[i], output[i] == 0.0F ? 0 : 1) << i;
}

}  // namespace
}  // namespace dblp::compress::test
