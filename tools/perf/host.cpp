// SPDX-License-Identifier: GPL-2.0

#include "host.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <fstream>
#include <thread>

namespace perf {

std::string byte_order() { return std::endian::native == std::endian::little ? "little" : "big"; }

Json describe_host() {
  utsname name{};
  uname(&name);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::array<char, 64> time{};
  if (readlink("/proc/self/ns/time", time.data(), time.size() - 1) < 0) time[0] = '\0';
  return {{"name", name.nodename},
          {"kernel", name.release},
          {"machine", name.machine},
          {"cpus", std::thread::hardware_concurrency()},
          {"clock", boot + " " + time.data()}};
}

}  // namespace perf
