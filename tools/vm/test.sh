#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of tools/vm/run: what it must let through, and above all what it must
# not. TAP on standard output; the output of a case that fails follows it.
#
# Usage: tools/vm/test.sh [KERNEL]

set -euo pipefail

tree=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
# shellcheck source=tools/vm/lib.sh
source "$tree/tools/vm/lib.sh"

kernel=${1:-6.1}
mkdir -p "$tree/build"
work=$(mktemp -d "$tree/build/vm-test.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

total=0 failed=0

vm()
{
	"$tree/tools/vm/run" --kernel "$kernel" --timeout 300 --out "$work" "$@"
}

report()
{
	local result=$1 name=$2

	total=$((total + 1))
	if [[ $result != ok ]]; then
		failed=$((failed + 1))
	fi
	echo "$result $total - $name"
	if [[ $result != ok ]]; then
		sed 's/^/# /' "$work/stdout" "$work/stderr"
	fi
}

# expect NAME STATUS STDOUT STDERR COMMAND...: STDOUT must be the whole of the
# standard output (or is "*"), STDERR a part of standard error.
expect()
{
	local name=$1 want=$2 stdout=$3 stderr=$4 status=0
	shift 4

	"$@" >"$work/stdout" 2>"$work/stderr" || status=$?
	if [[ $status != "$want" ]]; then
		echo "status $status, expected $want" >>"$work/stderr"
	elif [[ $stdout != '*' && $(<"$work/stdout") != "$stdout" ]]; then
		echo "standard output should be: $stdout" >>"$work/stderr"
	elif [[ $(<"$work/stderr") != *"$stderr"* ]]; then
		echo "standard error should have: $stderr" >>"$work/stderr"
	else
		report ok "$name"
		return
	fi
	report 'not ok' "$name"
}

# Interrupted, the runner must stop its guest and leave nothing behind.
interrupted()
{
	local pid qemu status=0 line='' name='an interrupted run leaves nothing behind'

	mkdir "$work/tmp"
	mkfifo "$work/fifo"
	exec {fifo}<>"$work/fifo"
	TMPDIR=$work/tmp "$tree/tools/vm/run" --kernel "$kernel" \
		--timeout 300 --out "$work" -- \
		bash -c 'echo up; exec tail -f /dev/null' \
		>"$work/fifo" 2>"$work/stderr" &
	pid=$!
	read -r -t 120 line <&"$fifo" || true
	echo "$line" >"$work/stdout"
	qemu=$(pgrep -P "$pid" -f qemu-system) || qemu=''
	kill -TERM "$pid"
	wait "$pid" || status=$?
	if [[ $line == up && $status == 143 && -n $qemu && ! -e /proc/$qemu &&
		-z $(ls "$work/tmp") ]]; then
		report ok "$name"
	else
		echo "status $status, qemu '$qemu'" >>"$work/stderr"
		report 'not ok' "$name"
	fi
}

usage_cases()
{
	expect 'unknown kernel' 125 '' "unknown kernel '5.4'" \
		"$tree/tools/vm/run" --kernel 5.4 -- true
	expect 'unknown option' 125 '' 'unknown option --frob' \
		"$tree/tools/vm/run" --frob -- true
	expect 'no command' 125 '' 'no command' "$tree/tools/vm/run"
	expect 'kernel not unpacked' 125 '' 'run tools/setup vm' \
		env DBLP_CACHE="$work/empty" "$tree/tools/vm/run" -- true
}

guest_cases()
{
	expect 'status 0 and standard output' 0 'to out' 'to err' \
		vm -- bash -c 'echo to out; echo to err >&2'
	expect 'status 7' 7 '' '' vm -- bash -c 'exit 7'
	expect 'death by signal' 139 '' '' vm -- bash -c 'kill -SEGV $$'
	expect 'command not found' 127 '' 'no-such-command' \
		vm -- no-such-command
	# shellcheck disable=SC2016 # expanded in the guest
	expect 'arguments, environment and folder' 0 "a b|x y|$tree/tools" '' \
		env DBLP_TEST='x y' "$tree/tools/vm/run" --kernel "$kernel" \
		--cwd "$tree/tools" --out "$work" -- \
		bash -c 'echo "$1|$DBLP_TEST|$PWD"' - 'a b'
	expect 'large output is whole' 0 '1000000' '' \
		bash -c '"$@" | wc -c' - "$tree/tools/vm/run" \
		--kernel "$kernel" --out "$work" -- head -c 1000000 /dev/zero
	# shellcheck disable=SC2016 # expanded in the guest
	expect 'results come out, the root stays as it is' 0 '' '' vm -- \
		bash -c 'echo 42 >"$1/result"; touch "$2/tools/vm/stray"' \
		- "$work" "$tree"
	expect 'the result is there' 0 42 '' cat "$work/result"
	expect 'the stray file is not' 1 '' '' test -e "$tree/tools/vm/stray"
	# shellcheck disable=SC2016 # expanded in the guest
	expect 'what a guest has' 0 '*' '' vm -- bash -ec '
		[[ -w /tmp && -w /dev/shm && -z $(ls -A /tmp) ]]
		mountpoint -q /sys/fs/bpf
		ls /sys/kernel/tracing/events/net /sys/kernel/debug/tracing
		ip -o link show lo | grep -q UP
		modprobe dummy
		ip netns add a; ip netns exec a true; ip netns del a
		echo through a path >/dev/stdout'
	expect 'a process left behind does not hold the run up' 0 over '' \
		vm -- bash -c 'tail -f /dev/null & echo over'

	expect 'WARNING in the kernel log' 120 '' 'WARNING: from a test' \
		vm -- bash -c 'echo "WARNING: from a test" >/dev/kmsg'
	expect 'the status of the command is told as well' 120 '' 'status was 3' \
		vm -- bash -c 'echo "BUG: x" >/dev/kmsg; exit 3'
	expect 'a harmless line in the kernel log' 0 '' '' \
		vm -- bash -c 'echo "debug: all is well" >/dev/kmsg'
	expect 'power-off' 121 '' 'without a verdict' \
		vm -- bash -c 'echo o >/proc/sysrq-trigger; tail -f /dev/null'
	expect 'panic' 121 '' 'Kernel panic' \
		vm -- bash -c 'echo c >/proc/sysrq-trigger'
	expect 'wrong number of CPUs' 122 '' 'has 1 CPUs and should have 2' \
		vm --append maxcpus=1 -- true
	expect 'four CPUs' 0 4 '' vm --smp 4 -- nproc
	expect 'timeout' 124 '' 'stopped after 25 s' \
		vm --timeout 25 -- tail -f /dev/null
	interrupted
}

# Modules of three lines, so that these cases need no dblp.ko.
build_module()
{
	local name=$1 init=$2 dir=$work/$1

	mkdir "$dir"
	echo "obj-m := $name.o" >"$dir/Kbuild"
	cat >"$dir/$name.c" <<-END
	#include <linux/module.h>
	static int __init test_init(void) { $init; }
	static void __exit test_exit(void) { pr_info("unloaded\n"); }
	module_init(test_init);
	module_exit(test_exit);
	MODULE_LICENSE("GPL");
	END
	make -s -C "$headers" M="$dir" modules >"$work/build.log" 2>&1 || {
		cat "$work/build.log" >&2
		exit 1
	}
	module=$dir/$name.ko
}

module_cases()
{
	local headers module

	headers=$(dblp_kernel_headers "$(dblp_kernel_dir "$kernel")")
	build_module t_good 'return 0'
	expect 'a module is loaded' 0 '' '' \
		vm --module="$module" -- test -d /sys/module/t_good
	build_module t_warns 'pr_warn("WARNING: at init\n"); return 0'
	expect 'a module that warns when loaded' 120 '' 'WARNING: at init' \
		vm --module="$module" -- true
	build_module t_fails 'return -EPERM'
	expect 'a module that cannot be loaded' 123 '' 'cannot load' \
		vm --module="$module" -- true
	build_module t_stays '__module_get(THIS_MODULE); return 0'
	expect 'a module that cannot be unloaded' 123 '' 'cannot be unloaded' \
		vm --module="$module" -- true
}

echo 'TAP version 13'
usage_cases
guest_cases
module_cases
echo "1..$total"
((failed == 0))
