// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Compress, copy to the host, send: three messages at a time, each in another
// stage. Encoding runs on one stream, copies on another; what is copied is the
// compressed message only, into staging buffers that are registered with the
// device and may be registered with io_uring too.
//
//   auto pipeline = Pipeline::create(device, codec, 3).value();
//   pipeline.submit({.input = gradient, .selected = k, .key = key}, bucket);
//   while (pipeline.busy()) {
//     pipeline.poll([&](const Pipeline::Ready& ready) {
//       send(ready.message, [&, slot = ready.slot] { pipeline.release(slot); });
//     });
//   }
//
// One thread at a time; nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dblp/compress/device.hpp"

namespace dblp::compress {

class DBLP_EXPORT Pipeline {
 public:
  struct Ready {
    std::uint32_t slot;
    std::uint64_t tag;                   // of submit()
    std::span<const std::byte> message;  // until release(slot)
    EncodeResult result;
  };

  // device and codec (one of the device's) must outlive it.
  static Result<Pipeline> create(Device& device, const Codec& codec, std::uint32_t slots);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) = delete;

  // Queues one encode: message, workspace and result of args are the pipeline's
  // own. kTooMany: all slots are taken.
  Status submit(const EncodeArgs& args, std::uint64_t tag) noexcept;
  // Moves every message on as far as it is, and hands over those that are in
  // host memory, in the order of submit(). After another status than kOk the
  // device is not to be used any more.
  Status poll(const std::function<void(const Ready&)>& ready);
  // The message has been sent: its slot is free.
  void release(std::uint32_t slot) noexcept;

  // A message is under way to poll()'s callback.
  [[nodiscard]] bool busy() const noexcept;
  // All staging memory, for io_uring_register_buffers().
  [[nodiscard]] std::span<std::byte> staging() const noexcept;

 private:
  struct State;
  explicit Pipeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dblp::compress
