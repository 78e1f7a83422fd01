# Everything runs in .venv, which scripts/install.py makes and fills; nothing needs activating.
# All paths are relative, and modules run through .venv/bin/python -m: a path with a space in it
# breaks both make's own lists and the first line of installed scripts.

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
GOALS ?= run test lint

# A Python that the user names is used with its torch. Without one, an existing .venv stays as
# it is, whatever it was made from.
ifeq ($(origin PYTHON),file)
CHOSEN =
SETUP = $$(grep -qs maker .venv/jumar.json && test -x .venv/bin/python && echo .venv/bin/python || echo python3)
else
CHOSEN = --chosen
SETUP = $(PYTHON)
endif

define ready
@python="$(SETUP)"; \
"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
  echo "setup: '$$python' is no Python 3.10 or newer: install one, or name one: make PYTHON=/path/to/python3" >&2; \
  exit 2; }; \
"$$python" scripts/install.py $(1) $(CHOSEN)
endef

# The tests on this processor and, by fewer of its instructions, on others: kernels are chosen by
# them, and round otherwise.
PROCESSORS = default ONEDNN_MAX_CPU_ISA=AVX2 ONEDNN_MAX_CPU_ISA=AVX512_CORE ATEN_CPU_CAPABILITY=default
# A test that hangs fails by name, before whoever waits gives up without one; what a timer within
# its process cannot end, tests/stalled_workers.py does.
LIMITS = --timeout 600 --timeout-method thread
run_tests = OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(LIMITS) $(ARGS)

VARY = precision.mode=allow_mix_precision,must_keep_origin_dtype,allow_fp32_to_fp16,force_fp16

STORIES ?=

.PHONY: help demo stories test test-processors mutants lint install clean
.NOTPARALLEL:

help:
	@echo "make demo             train AlexNet on handwritten digits in every precision mode; table and report"
	@echo "make stories          run the four stories of docs/stories and write their page  (STORIES=\"table contest\")"
	@echo "make test             run the tests            (ARGS=\"tests/settings/test_settings.py -x\", WORKERS=2)"
	@echo "make test-processors  run them as other processors would round; the same ARGS and WORKERS"
	@echo "make mutants          plant defects and see which the tests notice, in two hours (ARGS=\"--seed 1\")"
	@echo "make lint             format check, lint and types"
	@echo "make install          fill .venv, and start nothing  (GOALS=\"run test lint\")"
	@echo "make clean            remove .venv and what tools leave behind; runs/ stays"
	@echo ""
	@echo "PYTHON=/path/to/python3 names another Python; its torch is used where it is 2.6 or newer."

demo:
	$(call ready,run)
	.venv/bin/python -m jumar sweep alexnet-demo --vary $(VARY) --to runs/demo

stories:
	$(call ready,run test)
	.venv/bin/python -m scripts.stories $(STORIES)

test:
	$(call ready,run test)
	$(run_tests)

test-processors:
	$(call ready,run test)
	@outcomes=; status=0; \
	for processor in $(PROCESSORS); do \
	  echo "== $$processor"; \
	  outcome=passed; \
	  (unset ONEDNN_MAX_CPU_ISA ATEN_CPU_CAPABILITY; \
	  test $$processor = default || export $$processor; \
	  $(run_tests)) || { outcome=FAILED; status=1; }; \
	  outcomes="$$outcomes$$outcome  $$processor\n"; \
	done; \
	printf "$$outcomes"; \
	exit $$status

mutants:
	$(call ready,run test mutants)
	.venv/bin/python -m scripts.mutants --jobs $(WORKERS) $(ARGS)

lint:
	$(call ready,run lint mutants)
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m ruff check .
	.venv/bin/python -m pyright --pythonpath .venv/bin/python
	.venv/bin/python -m pyright --pythonpath .venv/bin/python --project benchmarks

install:
	$(call ready,$(GOALS))

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
