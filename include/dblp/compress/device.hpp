// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Where compression runs: the CPU, or a CUDA device. The CUDA part is a shared
// object of its own that is loaded on the first open_cuda_device(), so that one
// program runs with and without a GPU or a driver.
//
//   auto device = open_cuda_device();
//   if (!device) device = open_cpu_device();   // device.error() says why
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "dblp/compress/codec.hpp"

namespace dblp::compress {

// A point in a stream.
struct Event {
  void* handle = nullptr;
};

class DBLP_EXPORT Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] virtual const char* name() const noexcept = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options,
                                                                  const Shape& shape) = 0;

  // Memory that its codecs work on.
  [[nodiscard]] virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  // Makes host memory, such as io_uring's registered buffers, a fast end of
  // copies. The memory stays the caller's and must outlive the registration.
  virtual Status register_host(std::span<std::byte> memory) noexcept = 0;
  virtual void unregister_host(std::span<std::byte> memory) noexcept = 0;

  [[nodiscard]] virtual Result<Stream> create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  [[nodiscard]] virtual Result<Event> create_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;

  // Queued; nothing below waits but synchronize().
  virtual Status copy_to_device(void* device, const void* host, std::size_t bytes,
                                Stream stream) noexcept = 0;
  virtual Status copy_to_host(void* host, const void* device, std::size_t bytes,
                              Stream stream) noexcept = 0;
  virtual Status record(Event event, Stream stream) noexcept = 0;
  virtual Status wait(Stream stream, Event event) noexcept = 0;
  // kOk: reached; kMissing: not yet.
  virtual Status reached(Event event) noexcept = 0;
  virtual Status synchronize(Stream stream) noexcept = 0;

 protected:
  Device() = default;
};

// Streams of the CPU do all at once.
[[nodiscard]] DBLP_EXPORT Result<std::unique_ptr<Device>> open_cpu_device();

// ENOENT: the CUDA part is not installed (libdblp_cuda.so, looked for beside
// libdblp and as the linker does; DBLP_CUDA_LIBRARY names another). EPROTO: it
// is of another version. ENODEV: there is no driver, or no such device.
[[nodiscard]] DBLP_EXPORT Result<std::unique_ptr<Device>> open_cuda_device(int ordinal = 0);

}  // namespace dblp::compress
