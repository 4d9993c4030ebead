// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "compress/cuda/plugin.hpp"

namespace dblp::compress {
namespace {

constexpr const char* kLibrary = "libdblp_cuda.so";

// The folder of the object that this code is in, with a slash.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// Stays loaded: codecs made by it may be anywhere.
void* load() {
  const char* forced = std::getenv("DBLP_CUDA_LIBRARY");
  if (forced != nullptr) return dlopen(forced, RTLD_NOW | RTLD_LOCAL);
  void* library = dlopen((own_folder() + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? library : dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(int ordinal) {
  static void* const library = load();
  if (library == nullptr) return Error(ENOENT, "libdblp_cuda.so");
  const auto open = reinterpret_cast<CudaOpen>(dlsym(library, "dblp_cuda_open"));
  if (open == nullptr) return Error(EPROTO, "libdblp_cuda.so");
  std::unique_ptr<Device> device;
  const Status status = open(kCudaPluginVersion, ordinal, &device);
  if (status == Status::kBadVersion) return Error(EPROTO, "libdblp_cuda.so");
  if (status != Status::kOk) return Error(ENODEV, "CUDA device " + std::to_string(ordinal));
  return device;
}

}  // namespace dblp::compress
