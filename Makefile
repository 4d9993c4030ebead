# SPDX-License-Identifier: GPL-2.0
#
# One door to all builds: the module by Kbuild, everything else by CMake. All
# that is built goes to build/. "make help" lists the targets.

# Kbuild reads a file named Kbuild before one named Makefile, so this one is
# never taken for the module's.

VM_KERNELS := 6.1 6.12
MODULES    := $(addprefix module-,$(VM_KERNELS))
SPARSE     := $(addprefix sparse-,$(VM_KERNELS))
CACHE      := $(or $(DBLP_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dblp)
BUILD      := $(CURDIR)/build
PREFIX     ?= /usr/local
DESTDIR    ?=
HOST_BUILD := /lib/modules/$(shell uname -r)/build
JOBS       ?= $(shell nproc)
KSELFTEST  := $(BUILD)/kselftest
MODULE_ARGS ?=

.DEFAULT_GOAL := all

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z.0-9A-Z_$$()% -]+:.*## / { \
		sub(/^\$$\(MODULES\)/, "module-6.1 module-6.12", $$1); \
		printf "  %-24s %s\n", $$1, $$2 }' Makefile

.PHONY: all
all: $(MODULES) core selftests ## the module for both kernels, and all of user space

.PHONY: setup
setup: ## install what the project needs (tools/setup)
	tools/setup

.PHONY: $(MODULES)
$(MODULES): ## build/module/VERSION/dblp.ko
	tools/module $(@:module-%=%) -j$(JOBS) $(MODULE_ARGS)

# Debian's headers of 6.1 have no types of the kernel, so its module gets none when it is
# built. Those of the kernel image will do: the result is a copy beside the module.
.PHONY: btf
btf: module-6.1 ## build/module/6.1/btf/dblp.ko: with BTF, for typed BPF programs
	tools/module-btf 6.1

# With KERNEL=, for another kernel; without, for the tested ones.
.PHONY: module
ifdef KERNEL
module:
	tools/module $(KERNEL) -j$(JOBS) $(MODULE_ARGS)
else
module: $(MODULES) ## both of them; with KERNEL=HEADERS for that kernel only
endif

.PHONY: sparse $(SPARSE)
sparse: $(SPARSE) ## the module, checked by sparse
$(SPARSE):
	tools/module $(@:sparse-%=%) -j$(JOBS) C=2 $(MODULE_ARGS)

.PHONY: core asan
core: ## library, tools, and their tests, in build/cmake
	cmake -G Ninja -S . -B $(BUILD)/cmake -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build $(BUILD)/cmake -j $(JOBS)
asan: ## the same with AddressSanitizer and UBSan, in build/asan
	cmake -G Ninja -S . -B $(BUILD)/asan -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DDBLP_SANITIZE=address,undefined
	cmake --build $(BUILD)/asan -j $(JOBS)

.PHONY: test
test: core asan ## build and run the tests of user space, plain and sanitized
	ctest --test-dir $(BUILD)/cmake -j $(JOBS) --output-on-failure
	ctest --test-dir $(BUILD)/asan -j $(JOBS) --output-on-failure

.PHONY: bench-codecs
bench-codecs: core ## speed of the codecs, in build/bench/codecs.json
	lib/compress/bench/run $(BUILD)/cmake/lib/compress/bench/codecs_bench \
		$(BUILD)/bench/codecs.json

# They find the kernel's harness in build/kselftest: a copy, because a guest of
# tools/vm/run sees build/ whatever the cache is called there.
.PHONY: selftests
selftests: ## the selftests, in build/selftests
	@test -e $(CACHE)/kselftest-6.1/complete || \
		{ echo "the kernel's test harness is missing: run tools/setup selftests" >&2; exit 1; }
	@mkdir -p $(KSELFTEST) $(BUILD)/selftests
	@cp -rpu $(CACHE)/kselftest-6.1/. $(KSELFTEST)/
	$(MAKE) -C selftests -j$(JOBS) KSFT=$(KSELFTEST) OUTPUT=$(BUILD)/selftests

.PHONY: style
style: ## checkpatch, kernel-doc, clang-format, shellcheck
	tools/check style

.PHONY: demo
demo: ## train over a lossy link, DBLP beside TCP
	tools/demo/run

.PHONY: check
check: ## everything that must pass before a change lands
	tools/check

.PHONY: install install-module
install: core install-module ## library, headers, tools, module (PREFIX, DESTDIR)
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)/cmake --prefix $(PREFIX)

ifneq ($(wildcard $(HOST_BUILD)/Makefile),)
install-module:
	tools/module $(HOST_BUILD) -j$(JOBS)
	$(MAKE) -C $(HOST_BUILD) M=$(BUILD)/module/$(shell uname -r) \
		INSTALL_MOD_PATH=$(DESTDIR) modules_install
else
install-module:
	@echo "no headers of the running kernel $(shell uname -r): the module is not installed"
endif

.PHONY: clean distclean
clean: ## remove what was built
	rm -rf build
distclean: clean ## also remove the kernels that tools/setup unpacked
	rm -rf $(addprefix $(CACHE)/,kernel kselftest-6.1 scripts-6.1 host-probe lock)
