// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// A segment map with its memory, each leaf exactly as long as the interface asks for.
#ifndef DBLP_TESTS_OWNED_MAP_H
#define DBLP_TESTS_OWNED_MAP_H

#include <memory>
#include <vector>

#include "segmap.h"

namespace dblp::test {

class OwnedMap {
 public:
  explicit OwnedMap(u32 nbits) {
    map_.nbits = nbits;
    for (u32 i = 0; i < dblp_segmap_leaves(nbits); i++) {
      const u32 words = dblp_segmap_leaf_bytes(nbits, i) / 8;
      leaves_.push_back(std::make_unique<u64[]>(words));
      map_.leaf[i] = leaves_.back().get();
    }
  }
  OwnedMap(const OwnedMap&) = delete;
  OwnedMap& operator=(const OwnedMap&) = delete;

  dblp_segmap* get() { return &map_; }
  const dblp_segmap* get() const { return &map_; }
  dblp_segmap* operator->() { return &map_; }

  void set_run(u32 first, u32 count) {
    for (u32 i = 0; i < count; i++) dblp_segmap_set(&map_, first + i);
  }

 private:
  dblp_segmap map_{};
  std::vector<std::unique_ptr<u64[]>> leaves_;
};

}  // namespace dblp::test

#endif  // DBLP_TESTS_OWNED_MAP_H
