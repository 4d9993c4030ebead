# SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
#
# Bits must not depend on where the compiler contracts a * b + c, and the loops
# are worth -O3. Each instruction set has a file of its own, chosen at run time:
# the rest of the library runs on any x86-64.

set(dblp_codec_flags -ffp-contract=off -O3)
set_source_files_properties(
  compress/cpu/codec.cpp compress/cpu/select.cpp compress/recovery.cpp compress/bucket.cpp
  PROPERTIES COMPILE_OPTIONS "${dblp_codec_flags}")

# What one set replaces of compress/cpu/generic.hpp is not used there.
list(APPEND dblp_codec_flags -Wno-unused-function)
set_source_files_properties(compress/cpu/scalar.cpp
  PROPERTIES COMPILE_OPTIONS "${dblp_codec_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # GCC 12 takes the undefined operands in its own intrinsics for ours.
  list(APPEND dblp_codec_flags -Wno-uninitialized)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND dblp_codec_flags -Wno-maybe-uninitialized)
  endif()
  set_source_files_properties(compress/cpu/avx2.cpp
    PROPERTIES COMPILE_OPTIONS "${dblp_codec_flags};-mavx2;-mfma;-mf16c;-mbmi")
  set_source_files_properties(compress/cpu/avx512.cpp
    PROPERTIES COMPILE_OPTIONS "${dblp_codec_flags};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;-mbmi;-mprefer-vector-width=512")
endif()
