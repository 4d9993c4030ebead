// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compress/cpu/kernels.hpp"
#include "dblp/compress/codec.hpp"

namespace dblp::compress {
namespace {

#if defined(__x86_64__)
// Not every compiler has a name for it.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

bool supports(const Kernels& kernels) {
  if (&kernels == &scalar_kernels()) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (&kernels == avx2_kernels())
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
           has_f16c() && __builtin_cpu_supports("bmi") != 0;
  if (&kernels == avx512_kernels())
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("bmi") != 0;
#endif
  return false;
}

Result<const Kernels*> choose_kernels() {
  const Kernels* const all[] = {avx512_kernels(), avx2_kernels(), &scalar_kernels()};
  const char* forced = std::getenv("DBLP_ISA");
  for (const Kernels* kernels : all) {
    if (kernels == nullptr) continue;
    if (forced != nullptr && std::string_view(forced) != kernels->name) continue;
    if (supports(*kernels)) return kernels;
    if (forced != nullptr)
      return Error(ENOTSUP, std::string("DBLP_ISA=") + forced + " on this processor");
  }
  // Only a forced name gets here: scalar always runs.
  return Error(ENOTSUP, std::string("DBLP_ISA=") + forced + " in this build");
}

Result<const char*> cpu_isa() {
  Result<const Kernels*> kernels = choose_kernels();
  if (!kernels) return kernels.error();
  return (*kernels)->name;
}

}  // namespace dblp::compress
