// Builds wasm/policy_engine.wasm anew from rust/, with its hash and the licences of all that is in it:
//   npm run build --workspace @agentplatform/policy-engine
// It needs rustup, which rust/rust-toolchain.toml tells the compiler and the target. The lock file pins every crate. Paths of the machine
// are overwritten with as many other letters, so two builds are alike where the paths of Cargo's home are of one length (/root/.cargo).
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const rust = join(here, 'rust');
const target = process.env.CARGO_TARGET_DIR ?? join(rust, 'target');
const triple = 'wasm32-unknown-unknown';

function cargo(args, options = {}) {
  return execFileSync('cargo', args, {
    cwd: rust,
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
}

cargo(['fetch', '--locked', '--target', triple], { stdio: 'inherit' });
const registry = join(process.env.CARGO_HOME ?? join(homedir(), '.cargo'), 'registry', 'src');
const flags = ['--cfg', 'getrandom_backend="custom"', '-C', 'link-arg=-zstack-size=4194304'];
cargo(['build', '--release', '--locked', '--target', triple], {
  stdio: 'inherit',
  env: { ...process.env, CARGO_TARGET_DIR: target, CARGO_ENCODED_RUSTFLAGS: flags.join('\u001f') },
});

const built = join(target, triple, 'release', 'policy_engine.wasm');
const kept = join(here, 'wasm', 'policy_engine.wasm');
const bytes = readFileSync(built);
for (const index of readdirSync(registry)) overwrite(bytes, `${join(registry, index)}/`, '/crates');
overwrite(bytes, `${rust}/`, '/policy-engine');
writeFileSync(kept, bytes);
const hash = createHash('sha256').update(bytes).digest('hex');
writeFileSync(`${kept}.sha256`, `${hash}  policy_engine.wasm\n`);
writeFileSync(join(here, 'wasm', 'LICENSES.txt'), licences());
process.stdout.write(`${kept}\nsha256 ${hash}\n`);

function overwrite(bytes, path, name) {
  const other = name.padEnd(path.length, '/').slice(0, path.length);
  for (let at = bytes.indexOf(path); at >= 0; at = bytes.indexOf(path, at)) bytes.write(other, at);
}

/** Every crate that is linked in, with the licence it names and the texts it brings. */
function licences() {
  const meta = JSON.parse(
    cargo(['metadata', '--format-version', '1', '--locked', '--filter-platform', triple]).toString(),
  );
  const tree = cargo([
    'tree',
    '--locked',
    '--target',
    triple,
    '--edges',
    'normal',
    '--prefix',
    'none',
    '--format',
    '{p}',
  ]).toString();
  const linked = new Set(tree.split('\n').map((line) => line.replace(/^(\S+) v(\S+).*$/, '$1 $2')));
  const crates = meta.packages
    .filter(({ name, version, source }) => source && linked.has(`${name} ${version}`))
    .sort((a, b) => `${a.name} ${a.version}`.localeCompare(`${b.name} ${b.version}`));
  const texts = new Map();
  for (const { name, version, license, manifest_path: manifest } of crates) {
    const folder = dirname(manifest);
    const files = readdirSync(folder).filter(
      (file) => /^(licen[cs]e|copying|notice)/i.test(file) && existsSync(join(folder, file)),
    );
    for (const file of files.sort()) {
      let text;
      try {
        text = readFileSync(join(folder, file), 'utf8').trim();
      } catch {
        continue;
      }
      texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${license}): ${file}`]);
    }
    if (files.length === 0)
      texts.set(`${license}: the crate brings no text`, [
        ...(texts.get(`${license}: the crate brings no text`) ?? []),
        `${name} ${version}`,
      ]);
  }
  const list = crates.map(({ name, version, license }) => `${name} ${version}: ${license}`).join('\n');
  const parts = [...texts].map(([text, owners]) => `${'─'.repeat(100)}\n${owners.join('\n')}\n\n${text}`);
  return `policy_engine.wasm holds these crates.\n\n${list}\n\n${parts.join('\n\n')}\n`;
}
