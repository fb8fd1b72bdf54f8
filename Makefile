# SPDX-License-Identifier: Apache-2.0
# Short commands that call CMake. `make demo` and `make check` install what is missing, build and run.
#   make            the library and the command, in build/release
#   make demo       the whole pipeline on the images inside the program
#   make check      all tests; check-scalar, check-asan, check-tsan, check-aarch64: the same under other conditions
#   make check-long what is too long for every change: all of that, PyTorch and make torture; an hour or two
#   make interop    against onnx and ONNX Runtime, in a virtual environment; check-torch: against PyTorch too
#   make torture    damage, faults, kills, full disks, limits: minutes; SCALE=0.1, ONLY=kills, DOCS=1: docs/explain/robustness.md
#   make bench      kernels, search and the whole pipeline, against the last time; QUICK=1, RECORD=1: bench/README.md
#   make compare    against ONNX Runtime, OpenVINO and DeepSparse: 75 minutes; ARGS="--only resnet50", DOCS=1, RECORD=1
#   make docs       the C API as pages in build/docs/html, from the headers' comments
#   make coverage   which lines the unit tests run: build/coverage/html; a table on standard output
#   make wheel      the Python package as a wheel in build/wheel; check-wheel: installed and tried in a fresh environment
#   make dist       a release in build/dist: sources, a bill of materials, notes and sums; the same bytes for a commit
#   make install    PREFIX=/usr/local, DESTDIR=
PREFIX ?= /usr/local
export DESTDIR

.PHONY: all demo check check-scalar check-asan check-tsan check-aarch64 check-long interop check-torch format \
  lint docs coverage bench torture compare install clean update-golden wheel check-wheel dist

all: build-release

# build-PRESET: configured once; afterwards ninja knows when to do it again.
configure-%:
	@tools/setup build check
	@test -f build/$*/build.ninja || cmake --preset $*

build-%: configure-%
	@cmake --build build/$*

demo: configure-release
	@cmake --build build/release --target lacuna
	@build/release/lacuna demo --force lacuna-demo

check: build-release
	@tools/suite build/release

check-scalar: build-release
	@LAC_CPU=scalar tools/suite build/release

check-asan: build-asan
	@tools/suite build/asan

check-tsan: build-tsan
	@tools/suite build/tsan --label-regex unit

check-aarch64: build-release
	@tools/setup aarch64
	@tools/check_aarch64

check-long:
	@tools/check_long

interop: build-release
	@tools/setup interop
	@tools/interop build/release -m "not torch"

check-torch: build-release
	@tools/setup interop
	@tools/interop --torch build/release

torture: build-release build-asan build-clang-asan
	@tests/torture/run.py --build build/release --asan build/asan --clang build/clang-asan $(if $(SCALE),--scale $(SCALE)) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(DOCS),--docs)

wheel:
	@tools/setup build interop
	@tools/wheel

check-wheel: wheel
	@tools/check_wheel

update-golden: build-release
	@tests/cli/run.py --lacuna build/release/lacuna --update

format:
	@tools/setup lint
	@tools/format

lint: configure-release
	@tools/setup lint
	@tools/format --check
	@tools/check_commits
	@tools/check_root
	@tools/check_rooms
	@tools/check_size
	@tools/check_includes
	@tools/check_options
	@tools/check_words
	@tools/check_ops
	@tools/tidy build/release

docs:
	@tools/setup docs
	@tools/docs

# Texts that are compiled once for each instruction set are left out: gcovr cannot merge their static functions.
coverage: build-coverage
	@tools/setup coverage
	@find build/coverage -name '*.gcda' -delete
	@LAC_RANDOM_GRAPHS=40 tools/suite build/coverage -L unit -LE long
	@mkdir -p build/coverage/html
	@gcovr --root . --filter src/ --filter cli/ --exclude '.*_isa\.c' --exclude-throw-branches --gcov-ignore-parse-errors \
	  --html-details build/coverage/html/index.html --print-summary build/coverage

# QUICK=1: a short run; RECORD=1: what comes out becomes an entry of bench/ledger.json.
bench: build-release
	@bench/kernels.py $(if $(QUICK),--ms 5) $(if $(RECORD),--record)
	@bench/search.py $(if $(QUICK),--quick) $(if $(RECORD),--record)
	@bench/pipeline.py $(if $(QUICK),--runs 1 resnet50_ts) $(if $(RECORD),--record)

# Goes on where an interrupted run was; `rm build/compare.json` or ARGS=--again for a new one. docs/explain/speed.md.
compare: build-release
	@tools/setup interop
	@bench/environment
	@bench/compare.py --json build/compare.json $(if $(DOCS),--docs) $(if $(RECORD),--record) $(ARGS)

dist:
	@tools/dist

# Configured again, since the pkg-config file names the prefix.
install: configure-release
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) > build/release/configure.log
	@cmake --build build/release
	@cmake --install build/release

clean:
	@rm -rf build
