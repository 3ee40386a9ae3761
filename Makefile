.PHONY: run test golden lint docs bench fuzz fuzz-webgpu clean
PY := .venv/bin/python

# The environment is made anew whenever pyproject.toml changes.
.venv/made: pyproject.toml
	python3 -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch .venv/made

run: .venv/made
	$(PY) examples/tour.py

lint: .venv/made
	.venv/bin/ruff format --check src tests examples benchmarks tools
	.venv/bin/ruff check src tests examples benchmarks tools
	.venv/bin/mypy
	.venv/bin/lint-imports

# Kernels and random programs are tried for every level that this machine can execute; whole plans
# once more for each lesser level.
test: lint
	$(PY) -m pytest -n 2
	$(PY) tests/levels.py -m pytest -q -n 2 --ignore tests/backends/cpu/run/test_random.py \
		tests/backends/cpu/run tests/backends/cpu/loop tests/backends/cpu/test_product.py \
		tests/plan/test_kernels.py tests/plan/test_products.py

# Writes golden files anew: what is meant to change shows in their difference.
golden: .venv/made
	$(PY) -m pytest -q tests/golden --update
	git diff --stat tests/golden

# The API as pages, from the docstrings, into site/.
docs: .venv/made
	$(PY) -m pip install --quiet --disable-pip-version-check pdoc
	.venv/bin/pdoc --output-directory site tenfold

# Random programs, compiled for every level and compared with the evaluator; damaged plan files;
# threads and forks: about an hour a level.
fuzz: .venv/made
	$(PY) tests/fuzz.py 20000 --level all
	$(PY) tests/fuzz_files.py 200000
	TENFOLD_HAMMER=200 $(PY) -m pytest tests/backends/cpu/run/test_threads.py tests/test_locks.py

# The op table and random programs on the first adapter, against the CPU's bits.
fuzz-webgpu: .venv/made
	$(PY) tests/fuzz_device.py webgpu table
	$(PY) tests/fuzz_device.py webgpu 5000

# Each prints its own table; those of peers that are not installed are left out. What `peers` finds
# goes to benchmarks/results.
bench: .venv/made
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	for threads in 1 2; do for level in x86-64-v3 x86-64-v4; do \
		$(PY) benchmarks/peers/run.py --threads $$threads --level $$level || exit 1; done; done
	$(PY) benchmarks/peers/report.py
	for name in trace call kernels accuracy maths rollout sizes decode warm background parity prover; do \
		echo "── $$name"; $(PY) benchmarks/$$name.py || exit 1; done

clean:
	rm -rf .venv build dist
