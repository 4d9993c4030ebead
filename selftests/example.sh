#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The example of the documentation does what the documentation says.

. "$(dirname -- "$0")/lib.sh"

example()
{
	netem to2 loss 2%
	receiver rx "$h2" -l 10.9.2.2 -u || return 1
	start example "$h1" "$bin/bounded_send" 10.9.2.2 "$port"
	finish example || return 1
	finish rx || return 1
	sed 's/^/# /' "$tmp/example"
	parse_last rx rx
	expect "within 5 %" "${rx[missing]}" -le $((rx[len] / 20))
	expect "outcome" "$(count_lines example 'outcome 0, ')" = 1
	expect "bytes missing" "$(sed -n 's/.* \([0-9]*\) bytes missing.*/\1/p' "$tmp/example")" \
		= "${rx[missing]}"
	# A line for each segment that is missing.
	expect "segments missing" "$(count_lines example 'missing: ')" = "${rx[missing_segs]}"
}

lib_init
[[ -x $bin/bounded_send ]] || skip_all "the example is not built"
path_create
subtest "bounded_send" example
lib_exit
