// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "maps.hpp"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "dblp/flows_abi.h"

namespace dblp {

const MapKind flows_kind = {"flows",
                            DBLP_FLOWS_PREFIX,
                            DBLP_FLOWS_MAP,
                            BPF_MAP_TYPE_LRU_HASH,
                            sizeof(dblp_flow_key),
                            sizeof(dblp_flow)};
const MapKind changes_kind = {
    "changes", "dblp_changes_", DBLP_FLOWS_CHANGES, BPF_MAP_TYPE_RINGBUF, 0, 0};
const MapKind state_kind = {"state",
                            "dblp_state_",
                            DBLP_FLOWS_STATE,
                            BPF_MAP_TYPE_ARRAY,
                            sizeof(std::uint32_t),
                            sizeof(dblp_flows_state)};

Result<Fd> open_map(const std::string& folder, const MapKind& kind) {
  const std::string path = folder + "/" + kind.file;
  Fd fd(bpf_obj_get(path.c_str()));
  // A pinned program or a file of another file system is not a map either.
  if (!fd && errno != EINVAL) return Error(errno, path);

  bpf_map_info info{};
  std::uint32_t size = sizeof(info);
  if (!fd || bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0 || info.type != kind.type ||
      std::strncmp(info.name, kind.prefix, std::strlen(kind.prefix)) != 0) {
    return Error(EMEDIUMTYPE, path + " is not a map of dblp-flows; remove it if nothing needs it");
  }
  if (std::strcmp(info.name, kind.name) != 0 || info.key_size != kind.key_size ||
      info.value_size != kind.value_size) {
    return Error(EPROTO, path + " has version " + (info.name + std::strlen(kind.prefix)) +
                             ", expected " + std::to_string(DBLP_FLOWS_VERSION) +
                             "; stop the other dblp-flows and remove " + folder);
  }
  return fd;
}

Result<Fd> lock_folder(const std::string& folder, bool exclusive) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Error(errno, folder);
  if (::flock(fd.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    return Error(errno == EWOULDBLOCK ? EBUSY : errno, folder);
  }
  return fd;
}

Result<std::uint32_t> map_limit(const Fd& map) {
  bpf_map_info info{};
  std::uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(map.get(), &info, &size) != 0) return Error(errno, "map");
  return info.max_entries;
}

}  // namespace dblp
