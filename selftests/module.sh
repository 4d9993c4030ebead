#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The module stays while it is in use, and comes and goes cleanly otherwise.

. "$(dirname -- "$0")/lib.sh"

one='' two=''

# The file to load again: where the project builds it, else what is installed.
find_module()
{
	local release

	release=$(uname -r)
	for module in "${DBLP_MODULE:-}" \
		"$here/../build/module/$(cut -d. -f1,2 <<<"$release")/dblp.ko"; do
		[[ -f $module ]] && return
	done
	module=$(modinfo -n dblp 2>/dev/null)
	[[ -f $module ]]
}

unload()
{
	rmmod dblp 2>"$tmp/error" && return
	grep -q 'in use' "$tmp/error" || cat "$tmp/error"
	return 1
}

# Sockets go by and by after the last process.
unload_soon()
{
	wait_until unload
}

in_use()
{
	suffix=$$-$RANDOM
	ns_create one
	ip -n "$one" link set lo up
	receiver rx "$one" -l 127.0.0.1 || return 1
	expect "unload" "$(rmmod dblp 2>&1)" != ""
	expect "still there" "$(counter "$one" msgs_received)" = 0
	start tx "$one" "$xfer" send -d 127.0.0.1 -p "$port" -s 1000
	finish tx || return 1
	finish rx || return 1
}

# Loaded, used, unloaded, twenty times: with a namespace that lives through it all.
again_and_again()
{
	local i

	suffix=$$-$RANDOM
	ns_create one
	ip -n "$one" link set lo up
	for ((i = 1; i <= 20; i++)); do
		unload_soon || return 1
		[[ ! -e /proc/net/dblp ]] || return 1
		insmod "$module" || return 1
		((i % 5)) && continue
		receiver rx "$one" -l 127.0.0.1 || return 1
		start tx "$one" "$xfer" send -d 127.0.0.1 -p "$port" -s 100000
		finish tx || return 1
		finish rx || return 1
		expect "counters anew" "$(counter "$one" msgs_received)" = 1
	done
}

# A second instance, or a family that does not exist, is refused and does no harm.
refused()
{
	expect "twice" "$(insmod "$module" 2>&1)" != ""
	unload_soon || return 1
	expect "family 0" "$(insmod "$module" family=0 2>&1)" != ""
	expect "family 2 is IPv4" "$(insmod "$module" family=2 2>&1)" != ""
	expect "family 1000" "$(insmod "$module" family=1000 2>&1)" != ""
	expect "not loaded" "$(ls -d /sys/module/dblp 2>/dev/null)" = ""
	insmod "$module" family=27 || return 1
	ns_create two
	ip -n "$two" link set lo up
	receiver rx "$two" -l 127.0.0.1 || return 1
	start tx "$two" "$xfer" send -d 127.0.0.1 -p "$port" -s 1000
	finish tx || return 1
	finish rx || return 1
	unload_soon || return 1
	insmod "$module"
}

lib_init
find_module || skip_all "found no dblp.ko to load again (DBLP_MODULE)"
for tool in insmod rmmod; do
	type -P "$tool" >/dev/null || skip_all "there is no $tool"
done
subtest "not unloaded while in use" in_use
subtest "unloaded and loaded 20 times" again_and_again
subtest "wrong ways to load it" refused
lib_exit
