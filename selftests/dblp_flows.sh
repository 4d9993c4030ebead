#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dblp-flows from its start to its end: what it says where something is missing, who takes
# over, what is left behind, and that ends of flows are seen.
#
# DBLP_FLOWS_TESTS chooses; "many" (DBLP_FLOWS_COUNT flows, 5000) takes minutes and is not among
# those that run by default.

. "$(dirname -- "$0")/lib.sh"

flows=${DBLP_FLOWS:-$here/../build/cmake/tools/flows/dblp-flows}
folder=/sys/fs/bpf/dblp
module=${DBLP_MODULE:-$here/../build/module/$(uname -r | sed -E 's/^([0-9]+\.[0-9]+).*/\1/')/dblp.ko}

# complains WORDS COMMAND: fails with status 1 and one line that has WORDS.
complains()
{
	local words=$1 status
	shift

	"$@" >"$tmp/said" 2>&1 </dev/null
	status=$?
	sed 's/^/# /' "$tmp/said"
	expect "status" "$status" = 1
	expect "lines" "$(wc -l <"$tmp/said")" = 1
	grep -qF -- "$words" "$tmp/said" || expect "said" "$(cat "$tmp/said")" = "$words"
}

# collect NAME ARGUMENT...: in the background, until it is ready.
collect()
{
	local name=$1
	shift

	"$flows" --collect --max-flows 1024 "$@" >"$tmp/$name" 2>"$tmp/$name.err" &
	pids+=($!)
	declare -g "pid_$name=$!"
	wait_until grep -q ready "$tmp/$name" || sed 's/^/# /' "$tmp/$name.err"
}

stop()
{
	local pid=pid_$1

	kill -TERM "${!pid}"
	wait "${!pid}"
	expect "status of $1" $? = 0
	forget "${!pid}"
}

# Number FIELD of the table as it is.
table()
{
	value=$("$flows" --once --json --read-only 2>/dev/null |
		sed -nE "s/^  \"$1\": ([0-9a-z]+),?$/\1/p")
	echo "${value:-none}"
}

entries()
{
	"$flows" --once --json --read-only 2>/dev/null | grep -c '"id"'
}

nothing_pinned()
{
	[[ ! -e $folder ]]
}

table_is_empty()
{
	(($(entries) == 0))
}

messages()
{
	complains "no BPF file system" "$flows" --once --folder /tmp/dblp
	complains "CAP_BPF" setpriv --bounding-set -all --inh-caps -all "$flows" --once
	complains "nobody fills a table" "$flows" --once --read-only
	mkdir -p "$folder"
	bpftool map create "$folder/flows" type hash key 16 value 8 entries 4 name other
	complains "not a map of dblp-flows" "$flows" --once
	rm "$folder/flows"
	bpftool map create "$folder/flows" type lru_hash key 16 value 8 entries 4 \
		name dblp_flows_99
	complains "version 99" "$flows" --once
	rm "$folder/flows"
	rmdir "$folder"
	"$flows" --no-such-flag >/dev/null 2>&1
	expect "status of wrong usage" $? = 2
	nothing_pinned
}

takeover()
{
	collect first
	complains "collects already" "$flows" --collect
	expect "live" "$(table live)" = true
	crash first
	expect "live after a kill" "$(table live)" = false
	"$flows" --json --interval 0.2 >"$tmp/json" 2>"$tmp/json.err" &
	pids+=($!)
	# shellcheck disable=SC2034 # by its name, in stop()
	pid_json=$!
	wait_until test -s "$tmp/json"
	expect "live after a restart" "$(table live)" = true
	stop json
	wait_until nothing_pinned
	# One that reads takes over from one that is killed.
	collect first
	rm -f "$tmp/json"
	"$flows" --json --interval 0.2 >"$tmp/json" 2>"$tmp/json.err" &
	pids+=($!)
	# shellcheck disable=SC2034 # by its name, in stop()
	pid_json=$!
	wait_until test -s "$tmp/json"
	crash first
	wait_until grep -q "took over" "$tmp/json.err"
	expect "live after taking over" "$(table live)" = true
	stop json
	nothing_pinned
}

looking()
{
	[[ $(dblp_source) != none ]]
}

dblp_source()
{
	"$flows" --once --json --read-only 2>/dev/null | sed -nE 's/.*"dblp_source": "(.*)",/\1/p'
}

# Flows in and out of a table that is smaller than their number.
many()
{
	local count=${DBLP_FLOWS_COUNT:-5000} i

	collect all
	# While somebody has a socket the tool looks at all of them.
	receiver keep "$h2" -l 10.9.2.2 -n 1000000 -u || return 1
	wait_until looking || return 1
	start server "$h2" python3 "$here/tcp_flow.py" recv 10.9.2.2
	wait_until has_lines server ready || return 1
	port=${found[0]#*=}
	start client "$h1" python3 "$here/tcp_flow.py" many 10.9.2.2 "$port" $((count / 2))
	for ((i = 0; i < count / 2; i += 250)); do
		receiver rx "$h2" -l 10.9.2.2 -n 250 -u || return 1
		send_to 10.9.2.2 -n 250 -S 250 -s 2000 || return 1
		value=$(entries)
		echo "# $value entries"
		expect "entries" "$value" -le 1024
	done
	finish client || return 1
	crash server
	crash keep
	wait_until table_is_empty
	table made >/dev/null && expect "flows that came" "$value" -ge "$count"
	echo "# $value flows came, $(table removed) went, $(table refused) refused"
	expect "flows that went" "$(table removed)" = "$value"
	stop all
	nothing_pinned
}

module_gone()
{
	rmmod dblp 2>/dev/null
	[[ ! -d /sys/module/dblp ]]
}

dblp_entry()
{
	"$flows" --once --json --read-only 2>/dev/null | grep -q '"proto": "dblp"'
}

reload()
{
	[[ -e $module ]] || { echo "# no $module"; return 1; }
	collect all
	receiver rx "$h2" -l 10.9.2.2 -n 1000000 -u || return 1
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -n 1000000 -s 100000 -w 4
	wait_until dblp_entry || return 1
	crash tx
	crash rx
	# The tool holds the module for as long as somebody uses it, and no longer.
	wait_until module_gone || return 1
	wait_until grep -q "was unloaded" "$tmp/all.err"
	insmod "$module" || return 1
	wait_until grep -q "was loaded" "$tmp/all.err"
	receiver rx "$h2" -l 10.9.2.2 -n 1000000 -u || return 1
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -n 1000000 -s 100000 -w 4
	wait_until dblp_entry || return 1
	crash tx
	crash rx
	sed 's/^/# /' "$tmp/all.err"
	stop all
	nothing_pinned
}

lib_init
[[ -x $flows ]] || skip_all "dblp-flows is not built"
[[ -e /sys/kernel/btf/vmlinux ]] || skip_all "the kernel has no BTF"
path_create
for name in ${DBLP_FLOWS_TESTS:-messages takeover reload}; do
	subtest "$name" "$name"
done
lib_exit
