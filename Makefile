# Every target does its own set-up; see scripts/setup.sh.
# What `sudo make` installs is what its user has built.
# Each clone has a target folder of its own.
export CARGO_TARGET_DIR ?= $(shell python3 scripts/target.py)
KYMO = $(CARGO_TARGET_DIR)/ci/kymo

.PHONY: demo test dist api web libkymo install-libkymo wheel wheel-sql python check conformance peers mutants sanitize cross bench bench-filter bench-analyses bench-imports bench-machine bench-objects bench-python bench-tracer bench-view

demo:
	@scripts/setup.sh build
	@scripts/setup.sh web && scripts/web.sh build || echo "kymo view has no pages: it will say how to build them" >&2
	@cargo build --quiet --profile ci --package kymo-cli
	@cargo build --quiet --profile libkymo --package kymo-libkymo
	@scripts/demo.sh $(KYMO) $(CARGO_TARGET_DIR)/libkymo

# Every test. A stage that passed runs again only when one of its inputs has changed; ALL=1 runs every stage.
test:
	@scripts/setup.sh build
	@cargo xtask test $(if $(ALL),--all)

# Packages: a Debian package, tarballs, wheels. TWICE=1 builds them a second time elsewhere, and compares: docs/release.md.
dist:
	@scripts/setup.sh build
	@scripts/setup.sh web
	@scripts/setup.sh packages
	@python3 scripts/dist.py $(if $(TWICE),--twice)

# What `kymo view` serves: whatever its description allows and does not; many viewers at a time; tiles against a count of every event.
api:
	@scripts/setup.sh build
	cargo build --profile ci --package kymo-cli
	python3 scripts/api.py $(KYMO) "$$(scripts/setup.sh api)/bin/schemathesis"
	python3 scripts/viewers.py $(KYMO)
	@scripts/setup.sh oracles
	python3 scripts/tiles.py $(KYMO)

# The pages of `kymo view`, in web/dist: whatever is built afterwards has them in it.
web:
	@scripts/setup.sh web
	scripts/web.sh build

# libkymo.so and libkymo.a, for programs in C and C++: $(CARGO_TARGET_DIR)/libkymo
libkymo:
	@scripts/setup.sh build
	cargo build --quiet --profile libkymo --package kymo-libkymo
	@ls $(CARGO_TARGET_DIR)/libkymo/libkymo.*

# The same with headers and kymo.pc, below $(DESTDIR)$(PREFIX).
PREFIX ?= /usr/local
LIBKYMO := $(CARGO_TARGET_DIR)/libkymo
install-libkymo: $(if $(SUDO_USER),,libkymo)
	@test -e $(LIBKYMO)/libkymo.so || { echo "\`make libkymo\` makes what is installed, as the user who has Rust" >&2; exit 2; }
	install -d $(DESTDIR)$(PREFIX)/include/kymo $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 include/kymo/*.h $(DESTDIR)$(PREFIX)/include/kymo
	install -m 755 $(LIBKYMO)/libkymo.so $(DESTDIR)$(PREFIX)/lib/libkymo.so.0
	ln -sf libkymo.so.0 $(DESTDIR)$(PREFIX)/lib/libkymo.so
	install -m 644 $(LIBKYMO)/libkymo.a $(DESTDIR)$(PREFIX)/lib
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)|' include/kymo.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/kymo.pc
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || case $(PREFIX) in /usr|/usr/local) ldconfig;; esac

# A wheel to hand out: $(CARGO_TARGET_DIR)/wheels/release
wheel:
	@scripts/setup.sh build
	@scripts/wheel.sh release >/dev/null
	@ls $(CARGO_TARGET_DIR)/wheels/release/kymograph-*.whl

# The wheel kymograph-sql, which goes beside that: the same library with SQL in it.
wheel-sql:
	@scripts/setup.sh build
	@scripts/wheel.sh release sql >/dev/null
	@ls $(CARGO_TARGET_DIR)/wheels/release/kymograph_sql-*.whl

# The tests of the Python package, in an environment with the wheel; kymograph.compat.bt2 is compared with bt2. Then, with the
# wheel that has SQL too, those of SQL, and some of what is now in another library. ALL=1 also where nothing has changed.
python:
	@scripts/setup.sh build
	@cargo xtask test $(if $(ALL),--all) python bt2

check:
	cargo xtask check

conformance:
	@scripts/setup.sh build
	@cargo xtask test $(if $(ALL),--all) conformance yactfr 'machine formats' filters analyses

# Tests of other trace readers, on kymo. SOURCES names a folder that has their source packages; otherwise apt fetches them.
peers:
	@scripts/setup.sh build
	cargo build --profile ci --package kymo-cli
	python="$$(scripts/wheel.sh ci)/bin/python" && python3 scripts/peers.py $(KYMO) --python $$python $(if $(SOURCES),--sources $(SOURCES))

mutants:
	cargo build --profile ci --package kymo-cli
	python3 scripts/mutants.py $(KYMO) --count 10000

sanitize:
	cargo build --profile ci --package kymo-cli
	python3 scripts/sanitize.py $(KYMO)

cross:
	cargo xtask cross

bench:
	cargo build --release --package kymo-cli --features export
	python3 bench/run.py $(CARGO_TARGET_DIR)/release/kymo

bench-filter:
	cargo build --release --package kymo-cli
	python3 bench/filter.py --pipeline --kymo $(CARGO_TARGET_DIR)/release/kymo

bench-analyses:
	cargo build --release --package kymo-cli
	python3 bench/analyses.py --peer --kymo $(CARGO_TARGET_DIR)/release/kymo

bench-imports:
	cargo build --release --package kymo-cli
	python3 bench/imports.py --kymo $(CARGO_TARGET_DIR)/release/kymo

bench-machine:
	python3 bench/machine.py

bench-objects: libkymo
	cargo build --release --package kymo-cli
	python3 bench/objects.py --kymo $(CARGO_TARGET_DIR)/release/kymo --library $(LIBKYMO)

bench-python:
	cargo build --release --package kymo-cli --features export,sql
	python="$$(scripts/wheel.sh release)/bin/python" && $$python bench/python.py --python $$python --peer --kymo $(CARGO_TARGET_DIR)/release/kymo

bench-view:
	@scripts/setup.sh web && scripts/web.sh build
	cargo build --release --package kymo-cli
	python3 bench/view.py $(CARGO_TARGET_DIR)/release/kymo --traces $(or $(TRACES),k400,k1400)

# What an event costs in a program in C, without contexts and with each of them. Stacks are found by frames.
bench-tracer: libkymo
	$(CC) -std=gnu11 -O2 -fno-omit-frame-pointer -I include bench/tracer/event_speed.c -o $(LIBKYMO)/event_speed $(LIBKYMO)/libkymo.a -lpthread
	$(LIBKYMO)/event_speed
	for context in cpu pid tid procname ip stack own; do echo "$$context:"; $(LIBKYMO)/event_speed $$context; done
