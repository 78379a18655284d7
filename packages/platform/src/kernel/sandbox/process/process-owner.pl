# The owner of one process without isolation: keeps its log bounded and writes down how it ended; see owner.pl.
#   perl process-owner.pl PTRACE WAIT4 DIR LOG_BYTES LEASE_FILE COMMAND...
# PTRACE and WAIT4 are the numbers of those system calls, below 0 where they are not known. Says `started PID` on descriptor 3 or `error MESSAGE`; the command gets a process group of its own.
use strict;
use warnings;

require(__FILE__ =~ s{[^/]*$}{../owner/owner-parts.pl}r);

my ($sys_ptrace, $sys_wait4, $dir, $log_bytes, $lease, @command) = @ARGV;
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

open_log($dir, $log_bytes);
# A descendant may hold the pipe after the first process has ended, so its end is what is waited for.
write_exit($dir, keep($pid, -$pid, $log_r, $lease, 0.1, $sys_ptrace, $sys_wait4));
