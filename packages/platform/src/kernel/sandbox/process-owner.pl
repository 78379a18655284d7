# The owner of one process without isolation: keeps its log bounded and writes down how it ended; see owner.pl.
#   perl process-owner.pl DIR LOG_BYTES LEASE_FILE COMMAND...
# Says `started PID` on descriptor 3 or `error MESSAGE`; the command gets a process group of its own.
use strict;
use warnings;

my ($dir, $log_bytes, $lease, @command) = @ARGV;
my $EINTR = 4;
$SIG{PIPE} = 'IGNORE';
$SIG{HUP} = 'IGNORE';
open my $server, '>&=', 3 or exit 1;
{ my $old = select $server; $| = 1; select $old }

pipe my $log_r, my $log_w or exit 1;
pipe my $exec_r, my $exec_w or exit 1;
my $pid = fork // exit 1;
if (!$pid) {
  setpgrp 0, 0;
  close $server;
  $SIG{PIPE} = $SIG{HUP} = 'DEFAULT';
  open STDIN, '<', '/dev/null'; open STDOUT, '>&', $log_w; open STDERR, '>&', $log_w;
  exec { $command[0] } @command or syswrite $exec_w, "$command[0]: $!";
  exit 127;
}
close $log_w;
close $exec_w;
# Closed by the exec that succeeds.
if (sysread $exec_r, my $why, 4096) { print $server "error $why\n"; exit 1 }
# Told to the next server as well, which finds nothing else when this one is killed now; a directory that is gone was swept by it.
if (open my $pids, '>', "$dir/pids") { print $pids "$$ $pid\n"; close $pids }
else { kill 'KILL', -$pid; exit 1 }
print $server "started $pid\n";
close $server;

my ($log, $written);
sub open_log { open $log, '>', "$dir/log" or undef $log; $written = 0 }
# The server renews its lease by changing the first word of this file; the second is for how long the sandbox may go on without that, in
# ms. Measured by the time since boot, which no setting of the clock moves.
sub uptime { open my $file, '<', '/proc/uptime' or return 0; my ($seconds) = split / /, <$file>; return $seconds }
my ($beat, $seen, $looked, $pause) = ('', 0, 0, 2);
sub lapsed {
  my $now = uptime();
  return 0 if $now - $looked < $pause;
  $looked = $now;
  open my $file, '<', $lease or return 0;
  sysread $file, my $text, 256;
  my ($word, $held) = ($text // '') =~ /^(\S+) +([0-9]+)/ or return 0;
  $held /= 1000;
  $pause = $held / 32 < 2 ? $held / 32 : 2;
  ($beat, $seen) = ($word, $now) if $word ne $beat;
  return $now - $seen >= $held;
}
my $leased = -e $lease;
open_log();
# A descendant may hold the pipe after the first process has ended, so its end is what is waited for.
my $ended = 0;
my $status;
local $SIG{CHLD} = sub { $ended = 1 };
while (1) {
  if (waitpid($pid, 1) == $pid) { $status = $?; last }
  if ($leased && lapsed()) { kill 'KILL', -$pid; $leased = 0 }
  my $ready = '';
  vec($ready, fileno $log_r, 1) = 1;
  next unless select($ready, undef, undef, 0.1) > 0;
  last unless take();
}
if (!defined $status) { 1 while waitpid($pid, 0) == -1 && $! == $EINTR; $status = $? }
# What it wrote before its end is in the pipe already.
while (1) {
  my $ready = '';
  vec($ready, fileno $log_r, 1) = 1;
  last unless select($ready, undef, undef, 0) > 0 && take();
}
my $code = $status & 127 ? 128 + ($status & 127) : $status >> 8;
if (open my $exit, '>', "$dir/exit.new") {
  print $exit "$code\n";
  close $exit;
  rename "$dir/exit.new", "$dir/exit";
}

sub take {
  my $got = sysread $log_r, my $chunk, 65536;
  return defined $got ? 0 : $! == $EINTR unless $got;
  if ($written >= $log_bytes / 2) { close $log if $log; rename "$dir/log", "$dir/log.1"; open_log() }
  syswrite $log, $chunk if $log;
  $written += $got;
  return 1;
}
