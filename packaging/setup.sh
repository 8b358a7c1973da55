#!/usr/bin/env bash
# Sets Papilio up in .venv, with the system libraries it needs. Safe to run again: it only adds what is missing.
#
#   packaging/setup.sh demo      what it takes to run workflows and to open the designer
#   packaging/setup.sh test      that, and what it takes to test and change Papilio
#   packaging/setup.sh system    the system packages of both, and nothing else
#
# PYTHON=/path/to/python3.12 chooses the Python that .venv is made with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LOG=build/setup.log
PACKAGES=packaging/system-packages.txt

say() { printf '• %s\n' "$*"; }
detail() { printf '  %s\n' "$*"; }
fail() {
    printf '✗ %s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
    exit 1
}

# Runs a command with its output in the log; a person sees the seconds go by and where it is.
quietly() {
    local start=$SECONDS next_word=60 last
    "$@" >>"$LOG" 2>&1 &
    local job=$!
    # The set-up may be interrupted while it waits; what it started ends with it.
    trap 'kill "$job" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$job" 2>/dev/null; do
        if [ -t 1 ]; then
            last=$(grep -aE '^ *(Collecting|Downloading|Building|Installing|Setting up) ' "$LOG" | tail -n 1 | cut -c 1-60 || true)
            printf '\r\033[K  %d s %s' "$((SECONDS - start))" "$last"
        elif [ $((SECONDS - start)) -ge "$next_word" ]; then
            detail "$next_word s"
            next_word=$((next_word + 60))
        fi
        sleep 0.2
    done
    if [ -t 1 ]; then printf '\r\033[K'; fi
    trap - INT TERM
    wait "$job"
}

is_new_enough() { # python
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Prints a Python to make .venv with: the one asked for, or the first new enough.
find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" >/dev/null || fail "PYTHON=$PYTHON is not a program."
        is_new_enough "$PYTHON" || fail "PYTHON=$PYTHON is $("$PYTHON" --version 2>&1 || true), and Papilio needs Python 3.11 or newer."
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11 python3.14 python; do
        if command -v "$candidate" >/dev/null && is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "Papilio needs Python 3.11 or newer; here is $(python3 --version 2>&1 || echo none)." \
        "Install one (on Debian or Ubuntu: apt-get install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3.12"
}

# Prints how to run apt-get as root, or fails where that may not be done without asking.
root_command() {
    if [ "$(id -u)" -eq 0 ]; then
        echo env
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        echo sudo -n env
    else
        return 1
    fi
}

# Installs Debian packages where it may. Otherwise says what to install and goes on: a missing library
# keeps a window or a test from opening, not a workflow from running.
install_system() { # package...
    local become
    if ! command -v apt-get >/dev/null; then
        detail "There is no apt-get here. Please install what this system calls these Debian packages, where they are missing:"
        detail "  $*"
        return
    fi
    if ! become=$(root_command); then
        detail "Installing system packages takes root, and sudo would ask for a password. Please run:"
        detail "  sudo apt-get install $*"
        return
    fi
    local apt=($become DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=120)
    detail "installing $*"
    quietly "${apt[@]}" install --no-install-recommends "$@" && return
    # Package lists that are missing or old are the usual reason.
    quietly "${apt[@]}" update || true
    quietly "${apt[@]}" install --no-install-recommends "$@" && return
    detail "apt-get could not install them (see $LOG). Going on without; to try again, run:"
    detail "  sudo apt-get update && sudo apt-get install $*"
}

is_installed() { # package
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints a group's lines without comments, one package (or "a | b") a line.
group() { # name
    sed -n "/^\[$1\]/,/^\[/p" "$PACKAGES" | sed -e '/^\[/d' -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d'
}

# Prints the packages of a group that this machine lacks.
missing_of() { # name
    local line package choice
    while read -r line; do
        choice=
        for package in ${line//|/ }; do
            if command -v dpkg-query >/dev/null && is_installed "$package"; then
                continue 2
            fi
            if [ -z "$choice" ] && command -v apt-cache >/dev/null && apt-cache show "$package" >/dev/null 2>&1; then
                choice=$package
            fi
        done
        # A machine without package lists knows none of them; the old name is understood everywhere.
        echo "${choice:-$package}"
    done < <(group "$1")
}

install_groups() { # group...
    local missing=() name
    for name in "$@"; do
        mapfile -t -O "${#missing[@]}" missing < <(missing_of "$name")
    done
    if [ "${#missing[@]}" -eq 0 ]; then
        return
    fi
    say "System packages"
    install_system "${missing[@]}"
}

# Succeeds where there is a Java that Spark can use.
has_java() {
    local java version
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
        [ -x "$java" ] || continue
        version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
        if [ "${version:-0}" -ge 17 ]; then return 0; fi
    done
    return 1
}

make_venv() {
    local python
    if [ -x .venv/bin/python ] && is_new_enough .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; then
        [ -z "${PYTHON:-}" ] || detail "keeping .venv as it is; to make it anew with $PYTHON, remove it first"
        return
    fi
    python=$(find_python)
    say "Virtual environment in .venv, with $("$python" --version) ($(command -v "$python"))"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        # Debian keeps this part of Python in a package of its own.
        install_system "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "This Python cannot make virtual environments." "Install the package named above, then run make again."
    fi
    # A folder that an interrupted set-up left behind, or whose Python has gone, is made anew.
    "$python" -m venv --clear .venv
}

# Prints the requirements of the given extras. As constraints they keep pip from fetching Spark twice: it meets Papilio's
# own wider range first, takes the newest release, and only then reads that an extra wants an older one.
constraints() { # extra...
    .venv/bin/python - "$@" <<'EOF'
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
lines = [line for extra in dict.fromkeys(sys.argv[1:]) for line in extras[extra]]
print("\n".join(line for line in lines if "[" not in line))  # a constraint may not name extras
EOF
}

install_python_packages() { # extra...
    local extras start=$SECONDS
    extras=$(IFS=,; echo "$*")
    say "Python packages ($extras). The first time takes minutes: Spark alone is 450 MB."
    # The demo runs on the very Spark that the tests run on.
    constraints dev "$@" >.venv/constraints.txt
    # They are compiled afterwards: pip would do it on one processor, and also what nobody here imports.
    quietly .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off --no-compile \
        --constraint .venv/constraints.txt --editable ".[$extras]" || {
        grep -av '^WARNING' "$LOG" | tail -n 15 >&2
        fail "pip could not install the Python packages; the whole log is $LOG." \
            "With no network or a full disk, mend that and run make again: it goes on from here."
    }
    detail "done in $((SECONDS - start)) s"
}

# Compiles the packages and Papilio itself, for whoever may not write beside them later or has told Python not to
# (PYTHONDONTWRITEBYTECODE): each command would otherwise spend most of its time on compiling them anew.
compile_modules() {
    local packages
    packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    say "Python modules, compiled: commands answer at once"
    quietly .venv/bin/python -m compileall -q -j 0 -x '/(pip|setuptools|mypy|mypyc|deploy_lib|tests)/' \
        "$packages" engine designer resources workflows || detail "not all of them (see $LOG); those only load more slowly"
}

mkdir -p build
: >"$LOG"
case "${1:-}" in
    demo)
        make_venv
        install_groups qt
        if has_java; then
            install_python_packages designer
        else
            detail "No Java 17 or newer here, so a bundled one comes along."
            install_python_packages designer java
        fi
        compile_modules
        ;;
    test)
        make_venv
        install_groups qt test
        install_python_packages designer java postgresql sail dev
        compile_modules
        say "Spark's classes, ready-made: the tests start Spark many times"
        quietly .venv/bin/papilio warm || detail "that did not work; Spark only starts more slowly (see $LOG)"
        ;;
    system)
        install_groups qt test
        ;;
    *)
        fail "usage: packaging/setup.sh demo|test|system"
        ;;
esac
