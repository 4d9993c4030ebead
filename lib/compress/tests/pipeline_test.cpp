// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// The pipeline on a device whose streams run when the test says so, in seeded
// order, so that whatever is not ordered by an event comes in any order.

#include "dblp/compress/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "compress/tests/harness.hpp"

namespace dblp::compress::test {
namespace {

class LateDevice final : public Device {
 public:
  explicit LateDevice(Rng& rng) : rng_(rng) {}
  ~LateDevice() override {
    EXPECT_TRUE(memory_.empty());
    EXPECT_TRUE(streams_.empty());
    EXPECT_EQ(events_, 0);
    EXPECT_FALSE(registered_);
  }

  [[nodiscard]] const char* name() const noexcept override { return "late"; }
  [[nodiscard]] Result<std::unique_ptr<Codec>> make_codec(const CodecOptions&,
                                                          const Shape&) override {
    return Error(ENOTSUP, "not here");
  }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    if (fail_after_ == 0) return Error(ENOMEM, "allocate");
    --fail_after_;
    void* p = ::operator new(bytes);
    memory_.insert(p);
    return p;
  }
  void release(void* p) noexcept override {
    EXPECT_EQ(memory_.erase(p), 1U);
    ::operator delete(p);
  }
  Status register_host(std::span<std::byte>) noexcept override {
    registered_ = true;
    return Status::kOk;
  }
  void unregister_host(std::span<std::byte>) noexcept override { registered_ = false; }
  [[nodiscard]] Result<Stream> create_stream() override {
    auto* queue = new Queue;
    streams_.insert(queue);
    return Stream{queue};
  }
  void destroy_stream(Stream stream) noexcept override {
    streams_.erase(of(stream));
    delete of(stream);
  }
  [[nodiscard]] Result<Event> create_event() override {
    ++events_;
    return Event{new Mark};
  }
  void destroy_event(Event event) noexcept override {
    --events_;
    delete of(event);
  }
  Status copy_to_device(void* to, const void* from, std::size_t bytes,
                        Stream stream) noexcept override {
    of(stream)->push_back({[=] { std::memcpy(to, from, bytes); }, nullptr, 0, "copy"});
    return broken;
  }
  Status copy_to_host(void* to, const void* from, std::size_t bytes,
                      Stream stream) noexcept override {
    return copy_to_device(to, from, bytes, stream);
  }
  Status record(Event event, Stream stream) noexcept override {
    Mark* mark = of(event);
    const int number = ++mark->recorded;
    of(stream)->push_back({[=] { mark->done = number; }, nullptr, 0, "record"});
    return Status::kOk;
  }
  Status wait(Stream stream, Event event) noexcept override {
    of(stream)->push_back({[] {}, of(event), of(event)->recorded, "wait"});
    return Status::kOk;
  }
  Status reached(Event event) noexcept override {
    if (broken != Status::kOk) return broken;
    return of(event)->done == of(event)->recorded ? Status::kOk : Status::kMissing;
  }
  Status synchronize(Stream stream) noexcept override {
    while (!of(stream)->empty()) step();
    return Status::kOk;
  }

  void add(Stream stream, std::function<void()> work) {
    of(stream)->push_back({std::move(work), nullptr, 0, "encode"});
  }
  // Runs what is next on some stream.
  bool step() {
    std::vector<Queue*> ready;
    for (Queue* queue : streams_) {
      if (queue->empty()) continue;
      const Step& first = queue->front();
      if (first.after == nullptr || first.after->done >= first.number) ready.push_back(queue);
    }
    if (ready.empty()) return false;
    Queue* queue = ready[rng_.below(ready.size())];
    const Step first = std::move(queue->front());
    queue->pop_front();
    // Stages that overlap: an encode while a copy waits on the other stream.
    if (std::string_view(first.what) == "encode")
      for (const Queue* other : streams_)
        overlaps +=
            other != queue && !other->empty() && std::string_view(other->front().what) == "copy"
                ? 1
                : 0;
    first.work();
    return true;
  }
  void fail_allocation(int after) { fail_after_ = after; }

  Status broken = Status::kOk;
  int overlaps = 0;

 private:
  struct Mark {
    int recorded = 0;
    int done = 0;
  };
  struct Step {
    std::function<void()> work;
    const Mark* after;
    int number;
    const char* what;
  };
  using Queue = std::deque<Step>;
  static Queue* of(Stream stream) { return static_cast<Queue*>(stream.handle); }
  static Mark* of(Event event) { return static_cast<Mark*>(event.handle); }

  Rng& rng_;
  std::set<void*> memory_;
  std::set<Queue*> streams_;
  int events_ = 0;
  int fail_after_ = 1000;
  bool registered_ = false;
};

// Encodes on the CPU, but when its stream gets there.
class LateCodec final : public Codec {
 public:
  LateCodec(LateDevice& device, std::unique_ptr<Codec> real)
      : Codec(real->options(), real->shape(), real->max_message_bytes(), real->max_segments()),
        device_(device),
        real_(std::move(real)) {}
  [[nodiscard]] std::size_t encode_workspace() const noexcept override {
    return real_->encode_workspace();
  }
  [[nodiscard]] std::size_t decode_workspace() const noexcept override {
    return real_->decode_workspace();
  }
  Status encode(const EncodeArgs& args, Stream stream) const noexcept override {
    device_.add(stream, [this, args] { EXPECT_EQ(real_->encode(args), Status::kOk); });
    return Status::kOk;
  }
  Status decode(const DecodeArgs&, Stream) const noexcept override { return Status::kUnsupported; }

 private:
  LateDevice& device_;
  std::unique_ptr<Codec> real_;
};

constexpr std::size_t kElements = 3000;
const CodecOptions kOptions{.scheme = Scheme::kTopK, .value = Value::kF16};
const Shape kShape{.elements = kElements, .segment_bytes = 256, .max_selected = 300};

TEST(Pipeline, MessagesComeWholeAndInOrder) {
  Rng rng(80);
  int overlaps = 0;
  for (int round = 0; round < 200; ++round) {
    LateDevice device(rng);
    LateCodec codec(device, std::move(make_codec(kOptions, kShape)).value());
    Harness plain(kOptions, kShape);
    Pipeline pipeline = Pipeline::create(device, codec, 3).value();
    std::vector<std::vector<float>> gradients;
    for (int i = 0; i < 8; ++i) gradients.push_back(gradient(rng, kElements));
    std::uint64_t submitted = 0;
    std::uint64_t done = 0;
    std::map<std::uint32_t, std::pair<std::span<const std::byte>, std::vector<std::byte>>> sending;
    while (done < gradients.size()) {
      switch (rng.below(4)) {
        case 0:
          if (submitted == gradients.size()) break;
          {
            const Status status = pipeline.submit({.input = gradients[submitted].data(),
                                                   .selected = 30 * (submitted + 1),
                                                   .key = {1, submitted}},
                                                  submitted);
            if (status == Status::kTooMany)
              EXPECT_GE(submitted - done, 3U);
            else
              ++submitted;
          }
          break;
        case 1:
          device.step();
          break;
        case 2:
          ASSERT_EQ(pipeline.poll([&](const Pipeline::Ready& ready) {
            const std::uint64_t tag = ready.tag;
            EXPECT_EQ(tag, done + sending.size());
            const Message want = plain.encode(gradients[tag], {1, tag}, 30 * (tag + 1));
            EXPECT_EQ(ready.result.message_bytes, want.bytes.size());
            EXPECT_TRUE(std::ranges::equal(ready.message, want.bytes));
            sending[ready.slot] = {ready.message, want.bytes};
          }),
                    Status::kOk);
          break;
        default:
          // Whatever else went on, what is being sent has not changed.
          for (const auto& [slot, message] : sending)
            ASSERT_TRUE(std::ranges::equal(message.first, message.second));
          if (!sending.empty() && rng.chance(0.5)) {
            pipeline.release(sending.begin()->first);
            sending.erase(sending.begin());
            ++done;
          }
      }
    }
    EXPECT_FALSE(pipeline.busy());
    overlaps += device.overlaps;
  }
  EXPECT_GT(overlaps, 100);
}

TEST(Pipeline, NothingLeaksWhereverCreationFails) {
  Rng rng(81);
  for (int after = 0; after < 10; ++after) {
    LateDevice device(rng);
    LateCodec codec(device, std::move(make_codec(kOptions, kShape)).value());
    device.fail_allocation(after);
    const Result<Pipeline> pipeline = Pipeline::create(device, codec, 4);
    EXPECT_EQ(pipeline.has_value(), after >= 9);
  }
  LateDevice device(rng);
  LateCodec codec(device, std::move(make_codec(kOptions, kShape)).value());
  EXPECT_FALSE(Pipeline::create(device, codec, 0));
}

TEST(Pipeline, GoesAwayWithWorkUnderWay) {
  Rng rng(82);
  LateDevice device(rng);
  LateCodec codec(device, std::move(make_codec(kOptions, kShape)).value());
  const std::vector<float> g = gradient(rng, kElements);
  Pipeline pipeline = Pipeline::create(device, codec, 2).value();
  ASSERT_EQ(pipeline.submit({.input = g.data(), .selected = 10, .key = {}}, 0), Status::kOk);
  device.step();
}

TEST(Pipeline, AFailedDeviceIsReported) {
  Rng rng(83);
  LateDevice device(rng);
  LateCodec codec(device, std::move(make_codec(kOptions, kShape)).value());
  const std::vector<float> g = gradient(rng, kElements);
  Pipeline pipeline = Pipeline::create(device, codec, 2).value();
  ASSERT_EQ(pipeline.submit({.input = g.data(), .selected = 10, .key = {}}, 0), Status::kOk);
  device.broken = Status::kDeviceFailed;
  EXPECT_EQ(pipeline.poll([](const Pipeline::Ready&) {}), Status::kDeviceFailed);
  EXPECT_EQ(pipeline.submit({.input = g.data(), .selected = 10, .key = {}}, 0),
            Status::kDeviceFailed);
}

TEST(Pipeline, OnTheCpu) {
  Rng rng(84);
  std::unique_ptr<Device> device = std::move(open_cpu_device()).value();
  std::unique_ptr<Codec> codec = std::move(device->make_codec(kOptions, kShape)).value();
  Pipeline pipeline = Pipeline::create(*device, *codec, 2).value();
  EXPECT_GE(pipeline.staging().size(), 2 * codec->max_message_bytes());
  const std::vector<float> g = gradient(rng, kElements);
  ASSERT_EQ(pipeline.submit({.input = g.data(), .selected = 100, .key = {1, 2}}, 7), Status::kOk);
  int messages = 0;
  ASSERT_EQ(pipeline.poll([&](const Pipeline::Ready& ready) {
    EXPECT_EQ(ready.tag, 7U);
    ++messages;
    pipeline.release(ready.slot);
  }),
            Status::kOk);
  EXPECT_EQ(messages, 1);
}

}  // namespace
}  // namespace dblp::compress::test
