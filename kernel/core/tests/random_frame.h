// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Valid frames and packets with random contents.
#ifndef DBLP_TESTS_RANDOM_FRAME_H
#define DBLP_TESTS_RANDOM_FRAME_H

#include <vector>

#include "seed.h"
#include "wire.h"

namespace dblp::test {

struct RandomFrame {
  dblp_frame frame{};
  std::vector<u8> list;  // what frame points at, for NEED and MAP
};

// Any type but PAD.
RandomFrame random_frame(Random& random);

// A packet of up to `frames` frames, DATA payload included.
std::vector<u8> random_packet(Random& random, unsigned frames);

}  // namespace dblp::test

#endif  // DBLP_TESTS_RANDOM_FRAME_H
