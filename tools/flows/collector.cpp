// SPDX-License-Identifier: GPL-2.0

#include "collector.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <vector>

#include "dblp_flows.skel.h"
#include "flows/maps.hpp"
#include "tcp_flows.skel.h"

namespace flows {
namespace {

using dblp::Error;
using dblp::Fd;
using dblp::Result;

constexpr std::uint32_t kRingBytes = 256 * 1024;
// Attached to a tracepoint each of our links holds the module once.
constexpr int kLinks = 2;

std::string libbpf_said;

int keep_message(libbpf_print_level level, const char* format, va_list args) {
  if (level != LIBBPF_WARN) return 0;
  char text[512];
  std::vsnprintf(text, sizeof(text), format, args);
  libbpf_said += text;
  if (std::getenv("DBLP_FLOWS_DEBUG") != nullptr) std::fputs(text, stderr);
  return 0;
}

Error load_error(int code, const std::string& what) {
  // The first line says what; the verifier's log is for DBLP_FLOWS_DEBUG.
  return Error(code, what + " (" + libbpf_said.substr(0, libbpf_said.find('\n')) + ")");
}

template <class Skeleton>
struct Free {
  void operator()(Skeleton* s) const { Skeleton::destroy(s); }
};
using DblpObject = std::unique_ptr<dblp_flows_bpf, Free<dblp_flows_bpf>>;
using TcpObject = std::unique_ptr<tcp_flows_bpf, Free<tcp_flows_bpf>>;

Result<void> check_capabilities() {
  std::ifstream file("/proc/self/status");
  std::string line;
  std::uint64_t have = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("CapEff:")) have = std::stoull(line.substr(7), nullptr, 16);
  }
  const auto has = [have](int n) { return (have >> n & 1) != 0; };
  std::string missing;
  const auto want = [&](int n, const char* name) {
    if (!has(n)) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  // CAP_SYS_ADMIN contains the first two, but not CAP_NET_ADMIN.
  if (!has(21)) {
    want(38, "CAP_PERFMON");
    want(39, "CAP_BPF");
  }
  want(12, "CAP_NET_ADMIN");
  if (missing.empty()) return {};
  return Error(EPERM, "to measure flows this needs " + missing +
                          ": run it as root, or give the capabilities to the file with setcap");
}

Result<void> check_kernel(const std::string& folder) {
  if (auto ok = check_capabilities(); !ok) return ok.error();
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return Error(errno,
                 "/sys/kernel/btf/vmlinux: the kernel does not describe its types; it must be "
                 "built with CONFIG_DEBUG_INFO_BTF");
  }
  const std::string parent = folder.substr(0, folder.rfind('/'));
  struct statfs fs {};
  if (::statfs(parent.c_str(), &fs) != 0) return Error(errno, parent);
  if (static_cast<std::uint64_t>(fs.f_type) != BPF_FS_MAGIC) {
    return Error(ENODEV, parent + " is no BPF file system: mount -t bpf bpf " + parent);
  }
  return {};
}

Result<Fd> make_map(const std::string& folder, const dblp::MapKind& kind, std::uint32_t entries) {
  auto old = dblp::open_map(folder, kind);
  const std::string path = folder + "/" + kind.file;
  if (old) {
    auto limit = dblp::map_limit(*old);
    if (!limit) return limit.error();
    if (*limit == entries) return old;
    // Of a collector that is gone; its readers open the new one.
    if (::unlink(path.c_str()) != 0) return Error(errno, path);
  } else if (old.error().code() != ENOENT) {
    return old.error();
  }
  Fd map(bpf_map_create(static_cast<bpf_map_type>(kind.type), kind.name, kind.key_size,
                        kind.value_size, entries, nullptr));
  if (!map) return Error(errno, std::string("making the map ") + kind.name);
  if (bpf_obj_pin(map.get(), path.c_str()) != 0) return Error(errno, path);
  return map;
}

// Removes all flows, or those of one protocol; returns how many.
std::uint64_t clear(const Fd& map, std::uint32_t proto) {
  std::vector<dblp_flow_key> keys;
  dblp_flow_key key{};
  const dblp_flow_key* last = nullptr;
  while (bpf_map_get_next_key(map.get(), last, &key) == 0) {
    keys.push_back(key);
    last = &keys.back();
  }
  std::uint64_t removed = 0;
  for (const dblp_flow_key& k : keys) {
    if ((proto == 0 || k.proto == proto) && bpf_map_delete_elem(map.get(), &k) == 0) ++removed;
  }
  return removed;
}

// Uses of the module; negative if it is not loaded.
int module_users() {
  std::ifstream file("/sys/module/dblp/refcnt");
  int users = -1;
  file >> users;
  return file ? users : -1;
}

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(t.tv_nsec);
}

bool kernel_has(const char* name, std::uint32_t kind) {
  static btf* types = btf__load_vmlinux_btf();
  return types != nullptr && btf__find_by_name_kind(types, name, kind) > 0;
}

}  // namespace

const char* source_name(std::uint32_t source) {
  switch (source) {
    case DBLP_FLOW_TP_BTF:
      return "tp_btf";
    case DBLP_FLOW_RAW_TP:
      return "raw_tp";
    case DBLP_FLOW_FEXIT:
      return "fexit";
    case DBLP_FLOW_SOCKOPS:
      return "sockops";
    case DBLP_FLOW_PROBE:
      return "tcp_probe";
    case DBLP_FLOW_SEED:
      return "iterator";
    default:
      return "none";
  }
}

struct Collector::Impl {
  CollectorOptions options;
  Fd lock, flows, changes, state;
  DblpObject dblp_object;
  TcpObject tcp_object;
  std::uint32_t dblp_source = 0, tcp_source = 0;
  std::uint64_t started_ns = 0, ended = 0;
  bool dblp_failed = false, module_seen = false, told_absent = false;

  ~Impl() {
    dblp_object.reset();
    tcp_object.reset();
    if (!lock) return;
    const std::string& dir = options.folder;
    for (const char* file : {"flows", "changes", "state"}) ::unlink((dir + "/" + file).c_str());
    ::rmdir((dir + "/subscriber").c_str());
    ::rmdir(dir.c_str());
  }

  Result<void> make_maps() {
    auto made = make_map(options.folder, dblp::flows_kind, options.max_flows);
    if (!made) return made.error();
    flows = std::move(*made);
    made = make_map(options.folder, dblp::changes_kind, kRingBytes);
    if (!made) return made.error();
    changes = std::move(*made);
    made = make_map(options.folder, dblp::state_kind, 2);
    if (!made) return made.error();
    state = std::move(*made);
    // What ended while nobody looked would stay for ever.
    clear(flows, 0);
    const std::uint32_t counters = 1;
    const dblp_flows_state none{};
    if (bpf_map_update_elem(state.get(), &counters, &none, BPF_ANY) != 0) {
      return Error(errno, "state");
    }
    started_ns = now_ns();
    write_state();
    return {};
  }

  void write_state() {
    const std::uint32_t zero = 0;
    dblp_flows_state s{};
    s.version = DBLP_FLOWS_VERSION;
    s.pid = static_cast<std::uint32_t>(::getpid());
    s.started_ns = started_ns;
    s.rtprop_window_ns = options.rtprop_window_ns;
    s.max_flows = options.max_flows;
    s.threshold_percent = options.threshold_percent;
    s.dblp_source = dblp_source;
    s.tcp_source = tcp_source;
    s.removed = ended;
    (void)bpf_map_update_elem(state.get(), &zero, &s, BPF_ANY);
  }

  template <class Skeleton>
  bool prepare(Skeleton* s) {
    s->rodata->rtprop_window_ns = options.rtprop_window_ns;
    s->rodata->threshold_percent = options.threshold_percent;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, s->obj) bpf_program__set_autoload(program, false);
    return bpf_map__reuse_fd(s->maps.flows, flows.get()) == 0 &&
           bpf_map__reuse_fd(s->maps.changes, changes.get()) == 0 &&
           bpf_map__reuse_fd(s->maps.state, state.get()) == 0;
  }

  Result<void> load_tcp(std::uint32_t source);
  Result<void> choose_tcp();
  void seed();
  Result<void> load_dblp();
};

Result<void> Collector::Impl::load_tcp(std::uint32_t source) {
  libbpf_said.clear();
  TcpObject object(tcp_flows_bpf::open());
  if (!object || !prepare(object.get())) return load_error(errno, "opening the TCP programs");
  switch (source) {
    case DBLP_FLOW_FEXIT:
      bpf_program__set_autoload(object->progs.tcp_fexit, true);
      break;
    case DBLP_FLOW_SOCKOPS:
      bpf_program__set_autoload(object->progs.tcp_ops, true);
      break;
    default:
      bpf_program__set_autoload(object->progs.tcp_probed, true);
      break;
  }
  bpf_program__set_autoload(object->progs.tcp_seed, true);
  if (source != DBLP_FLOW_SOCKOPS) bpf_program__set_autoload(object->progs.tcp_state, true);
  if (const int error = tcp_flows_bpf::load(object.get()); error != 0) {
    return load_error(-error, std::string("loading ") + source_name(source));
  }
  const auto attach = [](bpf_program* program, bpf_link** link) {
    *link = bpf_program__attach(program);
    return *link != nullptr;
  };
  bool ok = true;
  if (source == DBLP_FLOW_SOCKOPS) {
    const Fd cgroup(::open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup) return Error(errno, "/sys/fs/cgroup");
    object->links.tcp_ops = bpf_program__attach_cgroup(object->progs.tcp_ops, cgroup.get());
    ok = object->links.tcp_ops != nullptr;
  } else {
    // Ends first, so that no flow is missed that ends meanwhile.
    ok = attach(object->progs.tcp_state, &object->links.tcp_state);
    ok = ok &&
         (source == DBLP_FLOW_FEXIT ? attach(object->progs.tcp_fexit, &object->links.tcp_fexit)
                                    : attach(object->progs.tcp_probed, &object->links.tcp_probed));
  }
  if (!ok) return load_error(errno, std::string("attaching ") + source_name(source));
  tcp_object = std::move(object);
  tcp_source = source;
  return {};
}

Result<void> Collector::Impl::choose_tcp() {
  if (options.tcp_source != 0) return load_tcp(options.tcp_source);
  Result<void> result;
  if (kernel_has("tcp_rate_gen", BTF_KIND_FUNC)) {
    result = load_tcp(DBLP_FLOW_FEXIT);
    if (result) return result;
  }
  result = load_tcp(DBLP_FLOW_SOCKOPS);
  if (result) return result;
  return load_tcp(DBLP_FLOW_PROBE);
}

// Connections of this network namespace that are there already; those of others come with
// their next ACK.
void Collector::Impl::seed() {
  const std::unique_ptr<bpf_link, int (*)(bpf_link*)> link(
      bpf_program__attach_iter(tcp_object->progs.tcp_seed, nullptr), bpf_link__destroy);
  if (!link) return;
  const Fd iterator(bpf_iter_create(bpf_link__fd(link.get())));
  char buffer[256];
  while (iterator && ::read(iterator.get(), buffer, sizeof(buffer)) > 0) {
  }
}

Result<void> Collector::Impl::load_dblp() {
  libbpf_said.clear();
  std::uint32_t source = options.dblp_source;
  if (source == 0) {
    source = ::access("/sys/kernel/btf/dblp", R_OK) == 0 ? DBLP_FLOW_TP_BTF : DBLP_FLOW_RAW_TP;
  }
  DblpObject object(dblp_flows_bpf::open());
  if (!object || !prepare(object.get())) return load_error(errno, "opening the DBLP programs");
  const bool typed = source == DBLP_FLOW_TP_BTF;
  bpf_program* sample = typed ? object->progs.sample_typed : object->progs.sample_raw;
  bpf_program* end = typed ? object->progs.end_typed : object->progs.end_raw;
  bpf_program__set_autoload(sample, true);
  bpf_program__set_autoload(end, true);
  if (const int error = dblp_flows_bpf::load(object.get()); error != 0) {
    return load_error(-error, std::string("loading ") + source_name(source));
  }
  bpf_link** end_link = typed ? &object->links.end_typed : &object->links.end_raw;
  bpf_link** sample_link = typed ? &object->links.sample_typed : &object->links.sample_raw;
  *end_link = bpf_program__attach(end);
  if (*end_link != nullptr) *sample_link = bpf_program__attach(sample);
  if (*sample_link == nullptr) {
    return load_error(errno, std::string("attaching ") + source_name(source));
  }
  dblp_object = std::move(object);
  dblp_source = source;
  return {};
}

Collector::Collector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Collector::Collector(Collector&&) noexcept = default;
Collector& Collector::operator=(Collector&&) noexcept = default;
Collector::~Collector() = default;

Result<Collector> Collector::start(const CollectorOptions& options) {
  libbpf_set_print(keep_message);
  if (auto ok = check_kernel(options.folder); !ok) return ok.error();
  if (::mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error(errno, options.folder);
  }
  auto lock = dblp::lock_folder(options.folder, true);
  if (!lock) return lock.error();

  auto impl = std::make_unique<Impl>();
  impl->options = options;
  const std::string subscriber = options.folder + "/subscriber";
  if (::mkdir(subscriber.c_str(), 0700) != 0 && errno != EEXIST) return Error(errno, subscriber);
  if (auto ok = impl->make_maps(); !ok) return ok.error();
  // From here on the maps are ours to remove.
  impl->lock = std::move(*lock);
  if (auto ok = impl->choose_tcp(); !ok) return ok.error();
  impl->seed();
  impl->write_state();
  return Collector(std::move(impl));
}

void Collector::tick(const std::function<void(const std::string&)>& say) {
  const int users = module_users();
  Impl& s = *impl_;

  if (users < 0) {
    if (s.module_seen || !s.told_absent) {
      say(s.module_seen ? "dblp.ko was unloaded: waiting for it"
                        : "dblp.ko is not loaded: TCP only, until it is");
    }
    s.module_seen = false;
    s.told_absent = true;
    s.dblp_failed = false;
    return;
  }
  if (!s.module_seen) {
    if (s.told_absent) say("dblp.ko was loaded");
    s.module_seen = true;
  }
  if (s.dblp_object && users <= kLinks) {
    // Nobody but this tool uses the module: it must not be what keeps it loaded.
    s.dblp_object.reset();
    s.dblp_source = 0;
    // Of a flow whose end was not seen, as it came while this was being decided.
    s.ended += clear(s.flows, DBLP_FLOW_DBLP);
    s.write_state();
  } else if (!s.dblp_object && users > 0 && !s.dblp_failed) {
    if (auto ok = s.load_dblp(); !ok) {
      s.dblp_failed = true;
      say("no DBLP flows: " + ok.error().message());
    }
    s.write_state();
  }
}

std::string Collector::sources() const {
  return std::string("tcp=") + source_name(impl_->tcp_source) +
         " dblp=" + (impl_->dblp_object ? source_name(impl_->dblp_source) : "waiting");
}

}  // namespace flows
