# Each command sets up what it needs first; tools/bootstrap.py has the logic, for Windows too.
# ARGS go to the program that the command runs: make test ARGS="tests/test_doctor.py -x"

ifeq ($(OS),Windows_NT)
PYTHON ?= python
else
PYTHON ?= python3
PRESENT = command -v $(PYTHON) >/dev/null 2>&1 || { \
  echo "There is no $(PYTHON) here: install Python 3.11 or newer (https://www.python.org/downloads/), or name yours: make $@ PYTHON=/its/path" >&2; \
  exit 1; };
endif

COMMANDS = help lab test doctor demo bench bench-views lint format clean

.DEFAULT_GOAL = help
.PHONY: $(COMMANDS)

$(COMMANDS):
	@$(PRESENT) $(PYTHON) tools/bootstrap.py $@ $(ARGS)
