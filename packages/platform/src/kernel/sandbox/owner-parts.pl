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

# The log is two files of half the bound each, the newer one `log`.
my ($log_dir, $log_bytes, $log, $written);
sub open_log {
  ($log_dir, $log_bytes) = @_ if @_;
  open $log, '>', "$log_dir/log" or undef $log;
  $written = 0;
}
sub write_log {
  my $chunk = shift;
  if ($written >= $log_bytes / 2) { close $log if $log; rename "$log_dir/log", "$log_dir/log.1"; open_log() }
  syswrite $log, $chunk if $log;
  $written += length $chunk;
}

# Writes down how the first process ended, from the status that waitpid gave, as a shell would say it.
sub write_exit {
  my ($dir, $status) = @_;
  my $code = $status & 127 ? 128 + ($status & 127) : $status >> 8;
  open my $exit, '>', "$dir/exit.new" or return;
  print $exit "$code\n";
  close $exit;
  rename "$dir/exit.new", "$dir/exit";
}

1;
