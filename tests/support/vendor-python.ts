import { fetchedOnce } from '../../scripts/test/fetched-once.ts';
import { pipInstall } from '../../scripts/test/python-packages.ts';

const PACKAGE = 'bedrock-agentcore==1.25.0';

/**
 * A folder for PYTHONPATH that holds the vendor's own Python SDK with what it depends on, apart from the other tests'
 * packages, whose boto3 is an older one. Undefined where it cannot be had (said on stderr): its tests are skipped then.
 */
export function vendorPython(): Promise<string | undefined> {
  return fetchedOnce({
    name: `python-${PACKAGE.replace('==', '-')}`,
    what: `the vendor's Python SDK (${PACKAGE})`,
    fill: (folder) => pipInstall(folder, PACKAGE),
  });
}
