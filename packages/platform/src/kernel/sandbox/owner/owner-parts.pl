# What the owners of sandboxes and of plain processes do alike: owner.pl and process-owner.pl load this file from beside them.
use strict;
use warnings;

# The server renews its lease by changing the first word of this file; the second is for how long the sandbox may go on without that, in
# ms. Measured by the time since boot, which no setting of the clock moves.
sub uptime { open my $file, '<', '/proc/uptime' or return 0; my ($seconds) = split / /, <$file>; return $seconds }
my ($beat, $seen, $looked, $pause) = ('', 0, 0, 2);
sub lease_pause { return $pause }
sub lapsed {
  my $lease = shift;
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

# The log is two files of half the bound each, the newer one `log`. Beside each is a file of times: first the log's inode, then, for each second in
# which something was written, at which byte that second began. So the log itself is what was written, and a flood costs one line a second.
my ($log_dir, $log_bytes, $log, $times, $written, $second);
sub open_log {
  ($log_dir, $log_bytes) = @_ if @_;
  open $log, '>', "$log_dir/log" or undef $log;
  open $times, '>', "$log_dir/log.times" or undef $times;
  syswrite $times, (stat $log)[1] . "\n" if $log && $times;
  ($written, $second) = (0, 0);
}
sub rotate_log {
  close $log if $log;
  close $times if $times;
  rename "$log_dir/log.times", "$log_dir/log.1.times";
  rename "$log_dir/log", "$log_dir/log.1";
  open_log();
}
sub write_log {
  my $chunk = shift;
  rotate_log() if $written >= $log_bytes / 2;
  if ($times && time != $second) { $second = time; syswrite $times, "$written $second\n" }
  syswrite $log, $chunk if $log;
  $written += length $chunk;
}

# Whoever calls PTRACE_TRACEME makes his parent his tracer, unasked: a first process, or a thread of it, this one. A tracer is told of each
# stop, and alone can reap. So what stops is let go, with the signal that stopped it, and what has ended is reaped, whoever it is. Returns
# the status of the child WANTED if it has ended, and -1 if there is no such child any more. Numbers below 0: not known here.
sub reap {
  my ($wanted, $sys_ptrace, $sys_wait4) = @_;
  my ($PTRACE_DETACH, $WNOHANG, $WALL, $SIGTRAP, $ECHILD) = (17, 1, 0x40000000, 5, 10);
  return waitpid($wanted, $WNOHANG) == $wanted ? $? : undef if $sys_wait4 < 0;
  my ($pid, $word) = (0, pack 'l', 0);
  # Not waitpid, by which a stop looks like an end.
  while (($pid = syscall $sys_wait4, -1, $word, $WNOHANG | $WALL, 0) > 0) {
    my $status = unpack 'l', $word;
    return $status if $pid == $wanted && ($status & 0xff) != 0x7f;
    next if ($status & 0xff) != 0x7f;
    my $signal = $status >> 8 & 0xff;
    # That of an exec is for tracers alone.
    $signal = 0 if $signal == $SIGTRAP;
    syscall($sys_ptrace, $PTRACE_DETACH, $pid, 0, $signal) == 0 or kill 'KILL', $pid;
  }
  return $pid < 0 && $! == $ECHILD ? -1 : undef;
}

# Keeps the log of the child PID, which it writes to the pipe LOG, until it has ended; returns its status. When the lease lapses TARGET is
# killed, a process or a group. Looks up every PAUSE seconds at the latest. CALLS as for `reap`.
sub keep {
  my ($pid, $target, $log_r, $lease, $pause, @calls) = @_;
  my $leased = -e $lease;
  my ($open, $nap, $status) = (1, 0.002, undef);
  # Ends a select.
  local $SIG{CHLD} = sub { };
  while (!defined($status = reap($pid, @calls))) {
    if ($leased && lapsed($lease)) { kill 'KILL', $target; $leased = 0 }
    if ($open) {
      my $wait = $leased && lease_pause() < $pause ? lease_pause() : $pause;
      $open = 0 if readable($log_r, $wait) && !take($log_r);
    } else {
      # The pipe ends with its last writer: normally the child, whose end is near then.
      select undef, undef, undef, $nap;
      $nap *= 2 if $nap < 0.1;
    }
  }
  # What it wrote before its end is in the pipe already; others may hold the pipe for longer.
  1 while $open && readable($log_r, 0) && take($log_r);
  return $status;
}
sub readable {
  my ($file, $wait) = @_;
  my $ready = '';
  vec($ready, fileno $file, 1) = 1;
  return select($ready, undef, undef, $wait) > 0;
}
sub take {
  my $got = sysread shift, my $chunk, 65536;
  my $EINTR = 4;
  return defined $got ? 0 : $! == $EINTR unless $got;
  write_log($chunk);
  return 1;
}

# Writes down how the first process ended, from the status that waitpid gave, as a shell would say it.
sub write_exit {
  my ($dir, $status) = @_;
  return if $status < 0;
  my $code = $status & 127 ? 128 + ($status & 127) : $status >> 8;
  open my $exit, '>', "$dir/exit.new" or return;
  print $exit "$code\n";
  close $exit;
  rename "$dir/exit.new", "$dir/exit";
}

1;
