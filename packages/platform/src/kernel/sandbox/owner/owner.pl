# The owner of one sandbox: makes its namespaces and file system, starts it through the OCI runtime, keeps its log bounded,
# and writes down how it ended. It is the parent of the sandbox's first process, so it learns the exit status, and it outlives
# the server, so nothing is lost when the server restarts. Everything it mounts lives in its own mount namespace (the server
# starts it through unshare(1)), and the namespaces are held by its open files: when it and the sandbox are gone, so are they.
# Perl because perl-base is essential on Debian and Ubuntu, starts in 3 ms and needs no compiler. No modules are loaded.
#
# Conversation, one line each, fields percent-encoded and separated by spaces:
#   it says      ready USERNS_FD NETNS_FD CNI_RESULT | error MESSAGE
#   it is told   mount DIR IMAGE_ROOT DISK_MOUNT ROOT_MOUNT DISK_BYTES DISK_TEMPLATE MAP_ROOT UID GID WORKDIR CHOWN FILES MOUNTS
#                COMMAND PATH PLACES ROOT_ID
#   it says      mounted | error MESSAGE
#   it is told   start LOG_BYTES LEASE_FILE RUNTIME...
#   it says      started PID | error MESSAGE
# End of input before `start` means that nobody wants the sandbox: it ends, and its mounts and namespaces with it. Between `mount`
# and `start` the server puts the network rules in force; the two go on side by side.
# System calls are made directly where a helper command would cost more than the rest of the work together.
use strict;
use warnings;

require(__FILE__ =~ s{[^/]*$}{$_}r) for 'owner-parts.pl', 'mapped-mount.pl', 'user-namespace.pl';

my ($sys_prctl, $sys_unshare, $sys_mount, $sys_ptrace, $sys_wait4, $first_id, $own_ids, $plugin, $conf) = @ARGV;
my ($CLONE_NEWUSER, $CLONE_NEWNET, $PR_SET_CHILD_SUBREAPER) = (0x10000000, 0x40000000, 36);

$| = 1;
$SIG{PIPE} = 'IGNORE';
$SIG{HUP} = 'IGNORE';
umask 022;

sub decode { my $s = shift; $s =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge; return $s }
sub encode { my $s = shift; $s =~ s/([^A-Za-z0-9_.\/:,-])/sprintf '%%%02X', ord $1/ge; return $s }
sub fail { print 'error ', encode(join '', @_), "\n"; exit 1 }

# Runs a command and returns its output (both streams) and status.
sub run {
  my ($input, @command) = @_;
  pipe my $out_r, my $out_w or fail "pipe: $!";
  pipe my $in_r, my $in_w or fail "pipe: $!";
  my $pid = fork // fail "fork: $!";
  if (!$pid) {
    open STDIN, '<&', $in_r; open STDOUT, '>&', $out_w; open STDERR, '>&', $out_w;
    exec { $command[0] } @command or print STDERR "$command[0]: $!\n";
    exit 127;
  }
  close $out_w; close $in_r;
  syswrite $in_w, $input; close $in_w;
  local $/; my $output = <$out_r> // '';
  waitpid $pid, 0;
  return ($output, $?);
}

syscall($sys_prctl, $PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 or fail "become subreaper: $!";

# A user namespace, and a network namespace that belongs to it. Made as an id of the sandbox's own: the kernel counts what is used inside for
# whoever made it as well, up to a bound.
sub become {
  my $id = shift;
  my ($PR_SET_SECUREBITS, $NO_SETUID_FIXUP) = (28, 4);
  # With the capabilities of root, which machines ask for that let nobody else make namespaces.
  syscall($sys_prctl, $PR_SET_SECUREBITS, $NO_SETUID_FIXUP, 0, 0, 0);
  ($<, $>) = ($id, $id);
  return $> == $id;
}
pipe my $made_r, my $made_w or fail "pipe: $!";
pipe my $hold_r, my $hold_w or fail "pipe: $!";
my $holder = fork // fail "fork: $!";
if (!$holder) {
  close $hold_w;
  my ($SIOCSIFFLAGS, $IFF_UP, $AF_INET, $SOCK_DGRAM) = (0x8914, 1, 2, 2);
  my $any;
  my $loopback = pack 'a16 s x22', 'lo', $IFF_UP;
  my $ok = (!$first_id || become($first_id))
    && syscall($sys_unshare, $CLONE_NEWUSER | $CLONE_NEWNET) == 0
    && socket($any, $AF_INET, $SOCK_DGRAM, 0)
    && ioctl $any, $SIOCSIFFLAGS, $loopback;
  syswrite $made_w, $ok ? 'y' : 'n';
  sysread $hold_r, my $bye, 1;
  exit 0;
}
close $made_w;
my $answer = '';
sysread $made_r, $answer, 1;
$answer eq 'y' or fail 'a user and network namespace could not be made';
for my $kind ('uid', 'gid') {
  # All ids inside are nobody's outside. Where files of the image could not keep their owners so, it is root alone, and others are themselves.
  open my $map, '>', "/proc/$holder/${kind}_map" or fail "${kind}_map: $!";
  syswrite($map, $own_ids ? "0 $first_id 65536\n" : "0 $first_id 1\n1 1 65535\n") // fail "${kind}_map: $!";
  close $map;
}
open my $userns, '<', "/proc/$holder/ns/user" or fail "user namespace: $!";
open my $netns, '<', "/proc/$holder/ns/net" or fail "network namespace: $!";
close $hold_w;
waitpid $holder, 0;

my $result = '';
if ($plugin) {
  $ENV{CNI_NETNS} = "/proc/$$/fd/" . fileno $netns;
  my ($output, $status) = run($conf, $plugin);
  fail "$plugin: $output" if $status;
  $result = $output;
}
print join(' ', 'ready', fileno $userns, fileno $netns, encode $result), "\n";

# The fields of the next request, which must be WORD.
sub request {
  my $word = shift;
  my $line = <STDIN> // exit 0;
  chomp $line;
  my ($first, @fields) = map { decode $_ } split / /, $line, -1;
  fail 'unexpected request' unless $first eq $word;
  return @fields;
}

my ($MS_NOSUID, $MS_NODEV, $MS_NOATIME) = (2, 4, 1024);
sub mount { my ($source, $target, $type, $flags, $data) = @_; return syscall($sys_mount, $source, $target, $type, $flags, $data) == 0 }

# Copies a file without its holes.
sub copy_sparse {
  my ($from, $to) = @_;
  my ($SEEK_DATA, $SEEK_HOLE) = (3, 4);
  my $size = -s $from;
  truncate $to, $size or return 0;
  for (my $end = 0; defined(my $at = sysseek $from, $end, $SEEK_DATA); ) {
    $end = sysseek $from, $at, $SEEK_HOLE;
    sysseek $from, $at, 0;
    sysseek $to, $at, 0;
    while ($at < $end) {
      my $want = $end - $at < 1 << 20 ? $end - $at : 1 << 20;
      my $got = sysread $from, my $bytes, $want or return 0;
      defined syswrite $to, $bytes or return 0;
      $at += $got;
    }
  }
  return 1;
}

# A loop device for an open file, gone with its last user. Undefined where the kernel cannot do it in one step (before Linux 5.8).
sub loop_device {
  my $file = shift;
  my ($LOOP_CTL_GET_FREE, $LOOP_CONFIGURE, $AUTOCLEAR, $EBUSY) = (0x4C82, 0x4C0A, 4, 16);
  open my $control, '+<', '/dev/loop-control' or return;
  for (1 .. 64) {
    my $number = ioctl $control, $LOOP_CTL_GET_FREE, 0;
    return unless defined $number;
    $number += 0;
    open my $device, '+<', "/dev/loop$number" or return;
    # struct loop_config: file, block size, loop_info64 with its flags 52 bytes in, reserved.
    my $config = pack 'L L x52 L x240', fileno $file, 0, $AUTOCLEAR;
    return ("/dev/loop$number", $device) if ioctl $device, $LOOP_CONFIGURE, $config;
    return unless $! == $EBUSY;
  }
  return;
}

# What the server asks how much the disk holds: freed space inside is not free outside, so the file alone knows.
my $held_disk;
my ($dir, $image, $disk, $root, $bytes, $template, $map_root, $uid, $gid, $workdir, $chown, $files, $mounts, $command, $path, $places, $root_id) = request('mount');

# The writable layer: bounded, and its own; the image below it is shared and never written.
if ($template) {
  if (!-e $template) {
    my $draft = "$template.$$";
    open my $new, '>', $draft or fail "$draft: $!";
    truncate $new, $bytes or fail "$draft: $!";
    close $new;
    my ($said, $status) = run('', 'mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-m', '0', '-E', 'lazy_itable_init=1,nodiscard', $draft);
    fail "mkfs.ext4: $said" if $status;
    rename $draft, $template;
  }
  my $file = "$dir/disk.img";
  open my $from, '<', $template or fail "$template: $!";
  open my $to, '+>', $file or fail "$file: $!";
  copy_sparse($from, $to) or fail "$file: $!";
  my ($device, $held) = loop_device($to);
  if ($device) {
    mount($device, $disk, 'ext4', $MS_NOSUID | $MS_NODEV | $MS_NOATIME, 'noinit_itable') or fail "mount $device: $!";
  } else {
    my ($said, $status) = run('', 'mount', '-t', 'ext4', '-o', 'loop,nosuid,nodev,noatime,noinit_itable', $file, $disk);
    fail "mount: $said" if $status;
  }
  # The mount holds the file from here on; with its end the space is free, whoever ends it. Where the mount outlives this process, so does the name.
  if ($plugin) {
    unlink $file;
    $held_disk = $to;
    symlink "/proc/$$/fd/" . fileno $held_disk, "$dir/disk" or fail "$dir/disk: $!";
  } else {
    rename $file, "$dir/disk" or fail "$dir/disk: $!";
  }
} else {
  mount('tmpfs', $disk, 'tmpfs', $MS_NOSUID | $MS_NODEV, "size=$bytes,mode=755") or fail "mount tmpfs: $!";
}
mkdir "$disk/upper", 0755;
# One that is the copy of an earlier disk has that one's, which the overlay took for itself alone.
my $work = 'work';
$work .= '-' while !mkdir("$disk/$work", 0755) && $!{EEXIST};

# Mounts the root file system over the image as it is seen at LOWER. A relative lower directory needs no escaping, whatever it is called.
sub overlay {
  my $lower = shift;
  chdir $lower or fail "$lower: $!";
  my $layers = "lowerdir=.,upperdir=$disk/upper,workdir=$disk/$work";
  # The directory `/` is in both layers, and shown as it is in the upper one.
  chown((stat '.')[4, 5], "$disk/upper");
  # Nothing in the upper layer outlives the sandbox, so nothing needs to reach the disk; kernels before 5.10 do not know the word.
  return mount('overlay', $root, 'overlay', $MS_NOSUID | $MS_NODEV, "$layers,volatile")
    || mount('overlay', $root, 'overlay', $MS_NOSUID | $MS_NODEV, $layers);
}
# What the image's root owns belongs to root inside, so that it can be changed there, on the layer above. Where the kernel (overlays: before
# Linux 5.19) or the file system cannot show it so, it is nobody's.
my $MOUNT_ATTR_RDONLY = 1;
$map_root && mount_mapped($image, $root, $MOUNT_ATTR_RDONLY, fileno $userns) && overlay($root)
  or overlay($image)
  or fail "mount overlay: $!";

# What must exist inside, and is root's. An image may hold links that point anywhere, so this is done where `/` is the image.
sub outside { my $id = shift; return !$map_root || ($id && !$own_ids) ? $id : $first_id + $id }
my @as_root = (outside(0), outside(0));
sub mkpath {
  my $path = '';
  for my $part (grep { length } split m{/}, shift) { $path .= "/$part"; -d $path or mkdir $path, 0755 and chown @as_root, $path }
  return -d $path || $path eq '';
}
sub put {
  my ($path, $text) = @_;
  unlink $path;
  open my $file, '>', $path or return 0;
  chown @as_root, $file;
  print $file $text;
  return close $file;
}
sub prepare {
  for my $needed (qw(/proc /sys /dev /etc /tmp)) { mkpath($needed) or return "the directory $needed" }
  chmod 01777, '/tmp';
  for my $pair (split /\n/, $files) {
    my ($path, $text) = map { decode $_ } split / /, $pair, -1;
    put($path, $text) or return "the file $path";
  }
  for my $mount (split /\n/, $mounts) {
    my ($what, $target) = map { decode $_ } split / /, $mount, -1;
    if ($what eq 'dir') { mkpath($target) or return "the mount target $target"; next }
    mkpath($1) if $target =~ m{^(.*)/[^/]+$};
    -e $target or put($target, '') or return "the mount target $target";
  }
  mkpath($workdir) or return "the working directory $workdir";
  chown outside($uid), outside($gid), $workdir if $chown;
  return '';
}
# Why the command cannot be run, in the runtime's words: it starts an init, which could say so only when the sandbox has been made. What
# stands below a mount is not there yet.
sub unrunnable {
  my @later = map { (map { decode $_ } split / /)[1] } split /\n/, $mounts;
  my $has_directory = $command =~ m{/};
  chdir $workdir;
  for my $file ($has_directory ? $command : map { "$_/$command" } split /\n/, $path) {
    my $place = $file =~ m{^/} ? $file : "$workdir/$file";
    return '' if (-f $file && -x _) || grep { index($place, "$_/") == 0 || $place eq $_ } @later;
  }
  chdir '/';
  return "exec: \"$command\": executable file not found in \$PATH" unless $has_directory;
  return "exec: \"$command\": " . (-e $command ? 'permission denied' : 'no such file or directory');
}
opendir my $outside, '/' or fail "/: $!";
chroot $root or fail "chroot: $!";
chdir '/';
my $unprepared = prepare();
my $unrunnable = $unprepared ? '' : unrunnable();
chdir $outside;
chroot '.' or exit 1;
closedir $outside;
fail "the root file system could not be prepared: $unprepared" if $unprepared;
fail $unrunnable if $unrunnable;

# What of the host is to be seen inside with the owners that it has outside, each on a number below PLACES. Root is no more than ROOT_ID there: a
# file that it makes must not be one of the host's root.
if ($places) {
  my ($beyond, $after) = ($first_id + 65536, $root_id + 1);
  # Everybody else is nobody inside, as is the host's root; without a line for them nothing of theirs could be written to, however open it is.
  my @lines = (
    [0, $root_id, 1],
    [1, $first_id + 1, 65535],
    [65536, 65536, $root_id - 65536],
    [$root_id, $first_id, 1],
    [$after, $after, $first_id - $after],
    [$beyond, $beyond, 4294967295 - $beyond],
  );
  my $shown = user_namespace($sys_unshare, join '', map { "@$_\n" } @lines) or fail 'a user namespace for mounts could not be made';
  mount('tmpfs', $places, 'tmpfs', $MS_NOSUID | $MS_NODEV, 'size=64k,mode=711') or fail "mount tmpfs: $!";
  my $number = 0;
  for my $mount (split /\n/, $mounts) {
    my ($what, $target, $source) = map { decode $_ } split / /, $mount, -1;
    my $place = "$places/" . $number++;
    next if $source eq '';
    if ($what eq 'dir') { mkdir $place } else { open my $file, '>', $place }
    mount_mapped($source, $place, 0, fileno $shown) or fail "mount $target with other owners: $!";
  }
}
print "mounted\n";

my ($log_bytes, $lease, @runtime) = request('start');
# Standard output and error are one pipe, read here: a slow disk slows the writer, and the log never grows past its bound.
pipe my $log_r, my $log_w or fail "pipe: $!";
my $runtime = fork // fail "fork: $!";
if (!$runtime) {
  open STDIN, '<', '/dev/null'; open STDOUT, '>&', $log_w; open STDERR, '>&', $log_w;
  exec { $runtime[0] } @runtime or exit 127;
}
close $log_w;
waitpid $runtime, 0;
if ($?) {
  sysread $log_r, my $why, 4096;
  fail $why || "the runtime ended with status $?";
}
open my $pid_file, '<', "$dir/init.pid" or fail "init.pid: $!";
my $init = <$pid_file>;
chomp $init;
close $pid_file;
print "started $init\n";
close STDIN;

open_log($dir, $log_bytes);
write_exit($dir, keep($init, $init, $log_r, $lease, 2, $sys_ptrace, $sys_wait4));
