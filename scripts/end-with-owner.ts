/**
 * Ends this process in its usual way (SIGTERM) when the process that started it is gone, however it went. The channel
 * between them is what the kernel closes then; it does not keep this process alive.
 */
export function endWithOwner(): void {
  if (!process.channel) return;
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}
