// The rules of the house (docs/architecture.md): contract <- kernel <- services <- platform.ts.
const platform = '^packages/platform/src';
const hostStage = `${platform}/kernel/sandbox/host-stage[.]ts$`;
const tests = '[.]test[.]ts$|/testing/|/test/';

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'contract-stands-alone',
      comment: 'The contract knows nobody; everybody knows the contract.',
      severity: 'error',
      from: { path: '^packages/contract/src', pathNot: tests },
      to: { path: '^packages/(?!contract/)' },
    },
    {
      name: 'policy-engine-stands-alone',
      comment: 'The policy engine knows nobody; the server and the command line know its index.ts.',
      severity: 'error',
      from: { path: '^packages/policy-engine/src', pathNot: tests },
      to: { path: '^packages/(?!policy-engine/)' },
    },
    {
      name: 'kernel-knows-no-service',
      comment:
        'What a service needs of the kernel is there for every service; what it needs of a service comes as a parameter.',
      severity: 'error',
      from: { path: `${platform}/kernel/`, pathNot: tests },
      to: { path: `${platform}/(services/|platform[.]ts|serve[.]ts|main[.]ts)` },
    },
    {
      name: 'services-meet-through-ports',
      comment:
        'A service is handed the port of another by platform.ts; it imports at most the types that the other index.ts exports.',
      severity: 'error',
      from: { path: `${platform}/services/([^/]+)/`, pathNot: tests },
      to: {
        path: `${platform}/services/([^/]+)/`,
        pathNot: [`${platform}/services/$1/`, `${platform}/services/[^/]+/index[.]ts$`],
      },
    },
    {
      name: 'ports-are-types',
      comment: 'From the index.ts of another service only types may come; making a service is the work of platform.ts.',
      severity: 'error',
      from: { path: `${platform}/services/([^/]+)/`, pathNot: tests },
      to: {
        path: `${platform}/services/[^/]+/index[.]ts$`,
        pathNot: `${platform}/services/$1/`,
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'rooms-have-one-door',
      comment:
        "What others use of a room of the kernel stands in the room's index.ts (host-stage.ts is the door for providers).",
      severity: 'error',
      from: { path: `${platform}/kernel/([^/]+)/`, pathNot: tests },
      to: {
        path: `${platform}/kernel/[^/]+/`,
        pathNot: [`${platform}/kernel/$1/`, `${platform}/kernel/[^/]+/index[.]ts$`, hostStage, tests],
      },
    },
    {
      name: 'rooms-have-one-door-for-services',
      comment: "What services and the composition use of a room of the kernel stands in the room's index.ts.",
      severity: 'error',
      from: { path: '^(packages|scripts)/', pathNot: [`${platform}/kernel/`, tests] },
      to: {
        path: `${platform}/kernel/[^/]+/`,
        pathNot: [`${platform}/kernel/[^/]+/index[.]ts$`, hostStage, tests],
      },
    },
    {
      name: 'only-providers-know-paths',
      comment:
        'What makes and watches sandboxes names images and volumes; where they are on this machine is between providers and the rooms that have them.',
      severity: 'error',
      from: { path: `${platform}/(services|kernel/sessions)/`, pathNot: tests },
      to: { path: hostStage },
    },
    {
      name: 'nothing-imports-a-composition-root',
      comment:
        'platform.ts, serve.ts and main.ts are where everything is put together; who imports them turns the house upside down.',
      severity: 'error',
      from: { path: '^packages/', pathNot: [`${platform}/(main|serve)[.]ts$`, tests] },
      to: { path: `${platform}/(platform|serve|main)[.]ts$|^packages/cli/src/main[.]ts$` },
    },
    {
      name: 'clients-know-no-server',
      comment: 'The SDK and the CLI speak the wire like everybody else.',
      severity: 'error',
      from: { path: '^packages/(sdk|cli)/', pathNot: tests },
      to: { path: '^packages/platform/' },
    },
    {
      name: 'packages-know-no-scripts',
      comment: 'scripts/, tests/, bench/ and examples/ use the packages, never the other way.',
      severity: 'error',
      from: { path: '^packages/', pathNot: tests },
      to: { path: '^(scripts|tests|bench|examples)/' },
    },
    {
      name: 'no-test-code-in-the-product',
      comment: 'What only tests need does not ship.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src', pathNot: tests },
      to: { path: [tests, `${platform}/kernel/fake-clock[.]ts$`] },
    },
    {
      name: 'no-circle',
      comment: 'Two files that need each other are one thing, or a third is missing.',
      severity: 'error',
      from: { pathNot: 'generated' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'not-to-unresolvable',
      comment: 'An import that nobody can resolve.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: ['node_modules', '/scaffold/', '/fixtures/', '/dist/', '[.]d[.]ts$'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] },
    progress: { type: 'none' },
  },
};
