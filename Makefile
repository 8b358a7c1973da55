# The two commands to know are `make demo` and `make test`; `make` alone lists them all.

BIN    := .venv/bin
SETUP  := packaging/setup.sh
INPUTS := pyproject.toml packaging/system-packages.txt $(SETUP)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow results pictures lint format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.test-ready ## set up everything: virtual environment, packages, system libraries
	@echo "Papilio is set up in .venv"

demo: .venv/.demo-ready ## generate data, run the Fig. 1 butterfly on Spark, open the designer
	@$(BIN)/papilio data tpch --scale 0.01 --to data/tpch
	@$(BIN)/papilio run workflows/fig1.butterfly.yaml
	@if [ -z "$$DISPLAY$$WAYLAND_DISPLAY" ]; then \
		echo "No display here, so the designer stays closed."; \
	elif $(BIN)/papilio design --help >/dev/null 2>&1; then \
		$(BIN)/papilio design workflows/fig1.butterfly.yaml; \
	fi

test: .venv/.test-ready ## check style, types and imports, then run all tests but the slow ones
	@$(MAKE) --no-print-directory lint
	@$(BIN)/python -m compileall -q engine designer resources workflows # where Python may not do so itself
	QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen} $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder # what a file makes once, one worker makes

test-slow: .venv/.test-ready ## run the slow tests
	QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen} $(BIN)/pytest -m slow

results: .venv/.test-ready ## run every benchmark and experiment, then write resources/help/results.md (takes hours)
	@$(BIN)/papilio results --list
	QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen} $(BIN)/papilio results --run

pictures: .venv/.test-ready ## take the README's pictures of the program as it is now
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m designer.pictures resources/pictures

lint: .venv/.test-ready ## check style, types and imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/.test-ready ## put the code into the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove caches and build leftovers; keeps .venv, data and runs
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find engine designer resources workflows tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than all that the set-up reads, or the set-up runs again.
# The tests need all that the demo needs, so their stamp stands for both.
.venv/.test-ready: $(INPUTS)
	@$(SETUP) test
	@touch $@ .venv/.demo-ready

.venv/.demo-ready: $(INPUTS)
	@$(SETUP) demo
	@touch $@
