#!/bin/sh
# Installs Plexus from a release: the program, its manual pages and its completions.
#
#   curl -fsSL ADDRESS/install.sh | sh
#
# PLEXUS_PREFIX         the folder with bin and share, by default ~/.local
# PLEXUS_VERSION        the version, by default the newest
# PLEXUS_DOWNLOAD_URL   the folder with the archives and SHA256SUMS, by default that of the release
#
# Nothing is installed unless the archive has the checksum of SHA256SUMS.
set -eu

repository=https://github.com/plexus-mcp/plexus

main() {
  prefix=${PLEXUS_PREFIX:-}
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set: set PLEXUS_PREFIX to the folder to install to"
    prefix=$HOME/.local
  fi
  target=$(find_target)
  archive=plexus-$target.tar.gz
  source=$(find_source)

  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 1' HUP INT TERM
  download "$source/SHA256SUMS" "$folder/SHA256SUMS"
  download "$source/$archive" "$folder/$archive"
  verify
  mkdir "$folder/content"
  tar -xzf "$folder/$archive" -C "$folder/content" || fail "$archive cannot be unpacked"
  content=$(echo "$folder"/content/plexus-*)
  said=$("$content/plexus" --version) || fail "the program for $target does not run on this machine"

  install_all
  echo "$said is installed: $prefix/bin/plexus"
  case :${PATH:-}: in
    *:"$prefix/bin":*) ;;
    *) echo "Add $prefix/bin to your PATH to call it plexus." ;;
  esac
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

find_target() {
  case $(uname -m) in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
    *) fail "there is no package for the processor $(uname -m): build Plexus from source" ;;
  esac
  case $(uname -s) in
    Linux) echo "$cpu-unknown-linux-$(find_libc)" ;;
    Darwin) echo "$cpu-apple-darwin" ;;
    *) fail "there is no package for $(uname -s): build Plexus from source" ;;
  esac
}

# The program for musl is static, so it runs with any libc.
find_libc() {
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || glibc=
  case $glibc in
    "glibc 2."*)
      minor=${glibc#glibc 2.}
      minor=${minor%%.*}
      if [ "$minor" -ge 17 ]; then
        echo gnu
        return
      fi
      ;;
  esac
  echo musl
}

find_source() {
  if [ -n "${PLEXUS_DOWNLOAD_URL:-}" ]; then
    echo "${PLEXUS_DOWNLOAD_URL%/}"
  elif [ -n "${PLEXUS_VERSION:-}" ]; then
    echo "$repository/releases/download/v${PLEXUS_VERSION#v}"
  else
    echo "$repository/releases/latest/download"
  fi
}

# download URL FILE
download() {
  if command -v curl >/dev/null 2>&1; then
    # A redirect must not lead away from HTTPS.
    case $1 in
      https:*) curl -fsSL --proto '=https' --tlsv1.2 --output "$2" "$1" ;;
      *) curl -fsSL --output "$2" "$1" ;;
    esac || fail "$1 cannot be downloaded"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1" || fail "$1 cannot be downloaded"
  else
    fail "curl or wget is needed"
  fi
}

verify() {
  # A name in the list follows two spaces, or a space and a star.
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$archive\$/\1/p" "$folder/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS has no checksum of $archive"
  if command -v sha256sum >/dev/null 2>&1; then
    found=$(sha256sum "$folder/$archive")
  elif command -v shasum >/dev/null 2>&1; then
    found=$(shasum -a 256 "$folder/$archive")
  else
    fail "sha256sum or shasum is needed to verify the download"
  fi
  found=${found%% *}
  [ "$found" = "$wanted" ] ||
    fail "$archive has the checksum $found instead of $wanted: nothing was installed"
}

install_all() {
  copy 755 "$content/plexus" "$prefix/bin/plexus"
  for page in "$content"/man/man1/*; do
    copy 644 "$page" "$prefix/share/man/man1/${page##*/}"
  done
  copy 644 "$content/completions/plexus.bash" "$prefix/share/bash-completion/completions/plexus"
  copy 644 "$content/completions/plexus.fish" "$prefix/share/fish/vendor_completions.d/plexus.fish"
  copy 644 "$content/completions/_plexus" "$prefix/share/zsh/site-functions/_plexus"
}

# copy MODE FROM TO: a program that runs is replaced, not overwritten.
copy() {
  mkdir -p "${3%/*}" || fail "${3%/*} cannot be created"
  cp "$2" "$3.new" && chmod "$1" "$3.new" && mv -f "$3.new" "$3" || fail "$3 cannot be written"
}

# The last line: a script that was cut off does nothing.
main "$@"
