#!/usr/bin/env bash
# Installs what is missing: system packages first, then .venv with emu and its development tools.
# With the argument `tests`: what only the test suite needs, too, as far as it can be had.
# Does nothing, at once, where all is there. PYTHON=/path/to/python3 chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C.UTF-8

readonly packages_file=scripts/debian-packages.txt
readonly stamp=.venv/installed-from   # holds the checkout's path: a copied or moved .venv is made anew
readonly identity='import sys; print(sys.base_prefix, sys.version)'
readonly new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

die() {
    printf 'install: %s\n' "$*" >&2
    exit 3
}

# The interpreter to use: $PYTHON, else the distribution's own, else another on PATH, if 3.11 or later.
find_python() {
    local candidate
    if [[ -n ${PYTHON:-} ]]; then
        "$PYTHON" -c "$new_enough" 2>/dev/null || die "PYTHON=$PYTHON is no Python 3.11 or later"
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c "$new_enough" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Prints the packages of the list whose command fails here: those all need, or with `tests` those the tests need.
missing_packages() {
    local package check purpose
    while read -r package check; do
        [[ -z $package || $package == \#* ]] && continue
        purpose=all
        [[ $check == *'# tests' ]] && purpose=tests
        [[ $purpose == "$1" ]] || continue
        bash -c "$check" >/dev/null 2>&1 || printf '%s\n' "$package"
    done <"$packages_file"
}

# apt-get without questions, as root; waits for another apt-get to end.
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

install_packages() {
    local -a missing as_root=()
    mapfile -t missing < <(missing_packages all)
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null ||
        die "this is not Debian or Ubuntu: install what these Debian packages hold, then try again: ${missing[*]}"
    if ((EUID)); then
        command -v sudo >/dev/null ||
            die "as root, run: apt-get install --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    printf 'install: system packages: %s\n' "${missing[*]}"
    # Package lists may be absent (a fresh image) or out of date: only then are they fetched.
    apt install --no-install-recommends "${missing[@]}" 2>/dev/null && return
    apt update || die "apt-get update failed"
    apt install --no-install-recommends "${missing[@]}" || die "apt-get could not install: ${missing[*]}"
}

# What only tests need; without it they are skipped.
install_test_packages() {
    local -a missing as_root=()
    mapfile -t missing < <(missing_packages tests)
    ((${#missing[@]})) || return 0
    ((EUID == 0)) || as_root=(sudo -n)
    printf 'install: for the tests: %s\n' "${missing[*]}"
    if command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }; then
        apt install --no-install-recommends "${missing[@]}" 2>/dev/null && return
        apt update && apt install --no-install-recommends "${missing[@]}" && return
    fi
    printf 'install: not to be had here, so some tests are skipped: %s\n' "${missing[*]}"
}

# Whether .venv was made here, for this checkout, and with $PYTHON where that was asked for.
usable() {
    [[ -x .venv/bin/python && $(cat "$stamp" 2>/dev/null) == "$PWD" ]] || return
    [[ -z $asked_for || $(.venv/bin/python -c "$identity") == "$("$asked_for" -c "$identity")" ]]
}

make_venv() {
    local python
    python=$(find_python) || die "Python 3.11 or later is needed and none was found: install one, or set PYTHON to it"
    [[ -w . && (! -e .venv || -w .venv) ]] ||
        die "cannot write $PWD/.venv: run 'make install' once as the owner of this checkout, or clone your own"
    printf 'install: .venv with %s (%s)\n' "$("$python" -V)" "$python"
    usable || rm -rf .venv
    "$python" -m venv .venv || die "$python could not make .venv"
    .venv/bin/python -m pip --disable-pip-version-check install -qq --editable '.[dev]' </dev/null ||
        die "pip could not install emu and what it needs into .venv (its own words are above)"
    printf '%s\n' "$PWD" >"$stamp"
}

asked_for=${PYTHON:-}
PYTHON=$(find_python) || { [[ -z $asked_for ]] || exit 3; PYTHON=python3; }   # none yet: the packages bring one
export PYTHON
install_packages
[[ ${1:-} != tests ]] || install_test_packages
PYTHON=$asked_for
if ! usable || [[ pyproject.toml -nt $stamp ]]; then
    make_venv
fi
