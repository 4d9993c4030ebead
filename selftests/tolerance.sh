#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The bound: what may be missing is missing only where the network lost it, never more,
# never what is protected, and both ends know which.

. "$(dirname -- "$0")/lib.sh"

size=$((16 << 20))

# one_message ARGUMENT...: 16 MiB over IPv4
one_message()
{
	receiver rx "$h2" -l 10.9.2.2 || return 1
	snapshot "$h1"
	send_to 10.9.2.2 -s "$size" "$@" || return 1
	agree
	parse_last rx rx
	parse_last tx tx
	expect "length" "${rx[len]}" = "$size"
	echo "# missing ${rx[missing]} of $size, allowed ${rx[allowed]}, sent ${tx[sent]}," \
		"again ${tx[retransmitted]}, rounds ${tx[rounds]}, ${tx[duration_us]} us"
}

# 10 % of packets are lost. The number lost of 11 000 is within 0.9 to 1.1 of that
# but for a chance of 1 in 1000.
lossy()
{
	netem to2 loss 10%
	one_message "$@" || return 1
	expect "packets lost" "$(netem_dropped to2)" -gt $((size * 9 / 100 / 1500))
}

enough()
{
	lossy -T 120000 || return 1
	expect "within 12 %" "${rx[missing]}" -le $((size * 12 / 100))
	expect "losses within the bound stay" "${rx[missing]}" -gt $((size * 8 / 100))
	# What is sent again has to be less than what was lost.
	expect "little is sent again" "${tx[retransmitted]}" -lt $((size * 5 / 100))
}

protected()
{
	lossy -T 120000 -R 0:100000 -R 5000001:65536 -R $((size - 4096)):4096 || return 1
	expect "protected bytes missing" "${tx[protected_missing]}" = 0
	expect "others missing" "${rx[missing]}" -gt $((size * 8 / 100))
}

too_little()
{
	lossy -T 50000 || return 1
	expect "within 5 %" "${rx[missing]}" -le $((size * 5 / 100))
	expect "not for nothing" "${rx[missing]}" -gt 0
	expect "repaired" "${tx[retransmitted]}" -gt $((size * 3 / 100))
}

none()
{
	lossy || return 1
	expect "missing" "${rx[missing]}" = 0
	expect "map" "${rx[map]}" = 0000000000000000
	expect "repaired" "${tx[retransmitted]}" -gt $((size * 8 / 100))
}

clean()
{
	netem_off to2
	one_message -T 400000 || return 1
	expect "missing" "${rx[missing]}" = 0
	expect "segments sent again" "$(delta "$h1" segs_retransmitted)" = 0
	expect "bytes sent" "${tx[sent]}" = "$size"
}

eager()
{
	# The queue of a real link, or all is sent before the answer is back.
	netem to2 rate 200mbit delay 1ms
	one_message -T 400000 -E || return 1
	expect "within 40 %" "${rx[missing]}" -le $((size * 40 / 100))
	expect "stopped early" "${tx[sent]}" -lt "$size"
}

lib_init
path_create
subtest "10 % loss, tolerance 12 %" enough
subtest "10 % loss, tolerance 12 %, protected ranges" protected
subtest "10 % loss, tolerance 5 %" too_little
subtest "10 % loss, tolerance 0" none
subtest "no loss, tolerance 40 %, pressure" clean
subtest "no loss, tolerance 40 %, eager" eager
lib_exit
