import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { lacksGvisor, RUNSC } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';

/** What a platform needs to make sandboxes in one way. */
export interface Engine {
  /** Arguments of the platform. */
  args: string[];
  stop(): Promise<void>;
}

/** A way of isolating, for `describe.each`. */
export interface EngineKind {
  name: 'oci' | 'oci with gVisor' | 'docker';
  /** Why it cannot be had on this machine. */
  lacking: string | undefined;
  /** Rejects where it is lacking. */
  open(): Promise<Engine>;
}

const nothing = async (): Promise<void> => undefined;

/** All that isolate; a Docker daemon is the test's own. */
export const ENGINES: readonly EngineKind[] = [
  { name: 'oci', lacking: undefined, open: async () => ({ args: ['--sandbox', 'oci'], stop: nothing }) },
  {
    name: 'oci with gVisor',
    lacking: lacksGvisor(),
    open: async () => ({ args: ['--sandbox', 'oci', '--sandbox-oci-runtime', RUNSC], stop: nothing }),
  },
  {
    name: 'docker',
    lacking: undefined,
    async open() {
      const daemon = await DockerDaemon.start();
      return {
        args: ['--sandbox', 'docker', '--sandbox-docker-socket', daemon.socketPath],
        stop: () => daemon.stop(),
      };
    },
  },
];
