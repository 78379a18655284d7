#!/bin/bash
# Runs a command in a fresh clone of this checkout's last commit on a bare Debian 12: minbase with Debian's own nodejs 18, npm and
# git, and nothing else. This is how docs/first-run.md was made.
#
#   scripts/bare-machine.sh 'npm start -- --once'
#   scripts/bare-machine.sh 'npm test' 2>&1 | tee npm-test.log
#
# Needs root, debootstrap and 6 GB of disk. The bare system is made once in DIR (BARE_DIR, /var/tmp/agentplatform-bare when not set);
# each run begins with a copy of it, which is removed at the end unless BARE_KEEP is set. It has mounts, processes and a host name of
# its own, but this machine's kernel and network. DEBIAN_MIRROR names another mirror than deb.debian.org.
set -euo pipefail

command=${1:?usage: scripts/bare-machine.sh COMMAND}
checkout=$(cd "$(dirname "$0")/.." && pwd)
dir=${BARE_DIR:-/var/tmp/agentplatform-bare}
[ "$(id -u)" = 0 ] || { echo 'bare-machine.sh must be run as root.' >&2; exit 1; }
command -v debootstrap >/dev/null || { echo 'debootstrap is missing: apt-get install debootstrap' >&2; exit 1; }

mkdir -p "$dir"
exec 9>"$dir/lock"
flock --nonblock 9 || { echo "Another run uses $dir." >&2; exit 1; }
if [ ! -d "$dir/pristine" ]; then
  rm -rf "$dir/making"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$dir/making" \
    "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2
  # A machine that trusts more than Debian does, or asks others for names, does so in here too.
  cp /etc/ssl/certs/ca-certificates.crt "$dir/making/etc/ssl/certs/ca-certificates.crt"
  cp -L /etc/resolv.conf "$dir/making/etc/resolv.conf"
  # debootstrap itself cannot resolve what npm depends on.
  chroot "$dir/making" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive bash -euc '
    apt-get update -q
    apt-get install -y -q --no-install-recommends git nodejs npm
    apt-get clean
    rm -rf /var/lib/apt/lists/*' >&2
  mv "$dir/making" "$dir/pristine"
fi

root=$dir/root
rm -rf --one-file-system "$root"
[ -n "${BARE_KEEP:-}" ] || trap 'rm -rf --one-file-system "$root"' EXIT
cp -a --reflink=auto "$dir/pristine" "$root"
git clone -q "$checkout" "$root/root/agentplatform"

# What names certificates and proxies goes along; nothing else of the caller's environment does.
passed=()
while IFS='=' read -r name value; do
  case $name in
    *_proxy | *_PROXY) passed+=("$name=$value") ;;
    NODE_EXTRA_CA_CERTS | PIP_CERT | REQUESTS_CA_BUNDLE | SSL_CERT_FILE) passed+=("$name=/etc/ssl/certs/ca-certificates.crt") ;;
  esac
done < <(env)

export ROOT=$root COMMAND=$command
unshare --mount --pid --fork --uts --kill-child bash -euc '
  mount --make-rprivate /
  mount --bind "$ROOT" "$ROOT"
  cd "$ROOT"
  mkdir -p old dev/pts
  mount -t proc proc proc
  mount --rbind /sys sys
  mount -t devtmpfs dev dev
  mkdir -p dev/pts
  mount -t devpts devpts dev/pts
  mount -t tmpfs tmpfs run
  mount -t tmpfs tmpfs tmp
  hostname bare
  pivot_root . old
  cd /root/agentplatform
  umount -l /old
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@" bash -c "$COMMAND"
' bare "${passed[@]}"
