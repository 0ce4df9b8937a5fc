# shellcheck shell=bash
# Sourced by the scripts beside it: where things are, how a script speaks, and how it calls Bazel.
#   root   the checkout
#   made   what the scripts make there (.farandole, which git ignores)
root=$(cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.." && pwd -P)
made=$root/.farandole
me=tools/$(basename "$0")

# What a script says goes to standard error: standard output belongs to the program that it runs.
say() { printf '%s: %s\n' "$me" "$*" >&2; }

fail() {
  printf '%s: error: %s\n' "$me" "$*" >&2
  exit 1
}

# The comment at the top of the script is its help.
show_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$(realpath "$0")"; }

# The folder of what is made is there and can be written; otherwise one sentence says whose it is.
need_made() {
  mkdir -p "$made" 2>/dev/null ||
    fail "$made cannot be made: the checkout belongs to $(stat -c %U "$root") and you are $(id -un)."
  [[ -w $made ]] || fail "$made belongs to $(stat -c %U "$made") and you are $(id -un): sudo chown -R $(id -un) $made"
}

# only_one NAME: until this script ends, no other one is inside its only_one NAME. Children that outlive the script
# must not inherit descriptor 9.
only_one() {
  exec 9>"$made/$1.lock"
  flock -n 9 && return
  say "waiting for another $me in this checkout"
  flock 9
}

# run_bazel COMMAND ARGUMENT...: in the checkout. Progress is shown as the terminal allows; elsewhere as a line now and then,
# without those that say nothing.
run_bazel() {
  local command=$1
  shift
  (
    cd "$root" || exit
    exec 9>&-
    if [[ -t 2 ]]; then exec bazel "$command" --noshow_loading_progress --curses=yes --color=yes "$@"; fi
    { bazel "$command" --noshow_loading_progress --curses=no --color=no --show_progress_rate_limit=30 "$@" 2>&1 >&3 |
      sed -u -E '/^(Loading:|Analyzing:|INFO: (Build completed|Analyzed|Found|Build Event)|\[0 \/ )/d' >&2; } 3>&1
  )
}
