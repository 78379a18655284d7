import { execFile } from 'node:child_process';
import { access, constants, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../manifest.ts';

/** A Python of this machine, as it describes itself. */
export interface PythonInterpreter {
  /** `3.11` */
  version: string;
  /** The program itself, links resolved. */
  executable: string;
  /** Directories of the standard library; the same one twice where they are not split. */
  stdlib: string;
  platstdlib: string;
  /** The CA file that its OpenSSL was built to read. */
  caFile: string;
  /** Where its pip can be taken from: a bundled wheel, else the installed package. */
  pipWheel?: string;
  pipDirs: string[];
  /** Whether it looks for packages where Debian keeps them. */
  debian: boolean;
}

const TIMEOUT_MS = 10_000;

// Isolated and without site: nothing of the user's environment takes part in the answer.
const DESCRIBE = `
import sys, os, json, glob, sysconfig
def find_pip():
    wheels = []
    for d in (sysconfig.get_config_var('WHEEL_PKG_DIR') or '', os.path.join(sysconfig.get_path('stdlib'), 'ensurepip', '_bundled')):
        if d: wheels += sorted(glob.glob(os.path.join(d, 'pip-*.whl')))
    return wheels[-1] if wheels else None
def ca():
    try:
        import ssl
        return ssl.get_default_verify_paths().openssl_cafile
    except Exception:
        return ''
site = ['/usr/lib/python3/dist-packages'] if 'deb_system' in sysconfig.get_scheme_names() else [sysconfig.get_path('purelib')]
dirs = [d for s in site for p in ('pip', 'pip-*.dist-info') for d in glob.glob(os.path.join(s, p))]
print(json.dumps({'version': '%d.%d' % sys.version_info[:2], 'executable': os.path.realpath(sys.executable), 'stdlib': sysconfig.get_path('stdlib'),
  'platstdlib': sysconfig.get_path('platstdlib'), 'caFile': ca(), 'pipWheel': find_pip(), 'pipDirs': dirs,
  'debian': 'deb_system' in sysconfig.get_scheme_names(), 'implementation': sys.implementation.name}))
`;

/** Where Pythons live: the distribution's, locally built ones, and those of the usual version managers. */
export async function defaultPythonDirs(env: NodeJS.ProcessEnv = process.env): Promise<string[]> {
  const home = env.HOME ?? '';
  const managed = [env.PYENV_ROOT ?? join(home, '.pyenv'), join(home, '.local/share/uv/python')];
  const dirs = ['/usr/bin', '/usr/local/bin'];
  for (const [i, root] of managed.entries()) {
    if (!root.startsWith('/')) continue;
    const versions = i === 0 ? join(root, 'versions') : root;
    // Another user's, if the variable was inherited: one that cannot be looked into is as good as none.
    const names = await readdir(versions).catch(() => []);
    for (const name of names.sort()) dirs.push(join(versions, name, 'bin'));
  }
  return dirs;
}

/** The first working CPython of each wanted version (`3.11` …) in `dirs`. What does not run or lies about itself is passed over. */
export async function findPythons(
  dirs: readonly string[],
  versions: readonly string[],
): Promise<Map<string, PythonInterpreter>> {
  const found = new Map<string, PythonInterpreter>();
  await Promise.all(
    versions.map(async (version) => {
      for (const dir of dirs) {
        const path = join(dir, `python${version}`);
        const runs = await access(path, constants.X_OK).then(
          () => true,
          () => false,
        );
        const python = runs ? await describe(path) : undefined;
        if (python?.version !== version) continue;
        found.set(version, python);
        return;
      }
    }),
  );
  return found;
}

function describe(path: string): Promise<PythonInterpreter | undefined> {
  return new Promise((resolve) => {
    const options = { timeout: TIMEOUT_MS, env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' }, cwd: '/' };
    execFile(path, ['-I', '-S', '-c', DESCRIBE], options, (error, stdout) => resolve(error ? undefined : read(stdout)));
  });
}

function read(stdout: string): PythonInterpreter | undefined {
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.implementation !== 'cpython') return undefined;
  const { version, executable, stdlib, platstdlib, caFile, pipWheel, pipDirs, debian } = value;
  if (
    typeof version !== 'string' ||
    typeof executable !== 'string' ||
    typeof stdlib !== 'string' ||
    typeof platstdlib !== 'string'
  )
    return undefined;
  return {
    version,
    executable,
    stdlib,
    platstdlib,
    caFile: typeof caFile === 'string' ? caFile : '',
    pipWheel: typeof pipWheel === 'string' ? pipWheel : undefined,
    pipDirs: Array.isArray(pipDirs) ? pipDirs.filter((dir) => typeof dir === 'string') : [],
    debian: debian === true,
  };
}
