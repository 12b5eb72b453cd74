/** Lockfiles: which packages go back to an older version, come from elsewhere, or have other contents. */

interface Locked {
  /** Name of a package → its versions. */
  readonly versions: Map<string, Set<string>>;
  /** `name@version` → checksums. */
  readonly sums: Map<string, Set<string>>;
  readonly hosts: Set<string>;
}

export interface LockFindings {
  /** `lodash 4.17.21 to 4.17.15`. */
  readonly downgrades: readonly string[];
  /** `lodash@4.17.21`. */
  readonly otherContents: readonly string[];
  readonly newHosts: readonly string[];
}

/** Compares two texts of a lockfile, JSON with one property a line; of an unknown kind nothing is found. */
export function compareLocks(before: string, after: string): LockFindings {
  const [old, now] = [readLock(before), readLock(after)];
  const downgrades = [...now.versions].flatMap(([name, versions]) => {
    const [highest, former] = [highestOf(versions), highestOf(old.versions.get(name) ?? [])];
    if (highest === null || former === null) return [];
    if (comparePackageVersions(highest, former) < 0) return [`${name} ${former} to ${highest}`];
    // One of several copies may go back as well.
    const [came] = [...versions].filter((version) => !old.versions.get(name)?.has(version));
    const [went] = [...(old.versions.get(name) ?? [])].filter((version) => !versions.has(version));
    return came !== undefined && went !== undefined && comparePackageVersions(came, went) < 0
      ? [`${name} ${went} to ${came}`]
      : [];
  });
  const otherContents = [...now.sums].flatMap(([key, sums]) => {
    const former = old.sums.get(key);
    return former?.isDisjointFrom(sums) ? [key] : [];
  });
  const newHosts = old.hosts.size === 0 ? [] : [...now.hosts.difference(old.hosts)];
  return { downgrades, otherContents, newHosts };
}

/** Less than 0: the first one is older. Only numbers count, and a pre-release is older than its release. */
export function comparePackageVersions(one: string, other: string): number {
  const parts = (text: string) => (/\d+(?:\.\d+)*/.exec(text)?.[0] ?? '0').split('.').map(Number);
  const [a, b] = [parts(one), parts(other)];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return Number(/\d-/.test(other)) - Number(/\d-/.test(one));
}

function highestOf(versions: Iterable<string>): string | null {
  return [...versions].reduce<string | null>(
    (best, one) => (best === null || comparePackageVersions(one, best) > 0 ? one : best),
    null,
  );
}

/** A line that begins a package: its name, and the version where that stands there as well. */
const beginnings = [
  /^\s*"(?:[^"]*node_modules\/)?((?:@[^/"]+\/)?[^/"]+)": \{$/,
  /^\s*"name": "([^"]+)",$/,
  /^"?((?:@[^/@"]+\/)?[^@"\s]+)@.*:$/,
  /^ {2}'?\/?((?:@[^/@']+\/)?[^@'\s]+)@([^:'(\s]+).*:$/,
  /^\s+"[^"]+": \["((?:@[^/@"]+\/)?[^@"]+)@([^"]+)"/,
  /^name = "(.+)"$/,
  /^ {4}([\w.-]+) \(([^)\s]+)\)$/,
  /^(\S+) (v\d[^\s/]*) h1:/,
];

function readLock(text: string): Locked {
  const locked: Locked = { versions: new Map(), sums: new Map(), hosts: new Set() };
  let name: string | undefined;
  let version: string | undefined;
  for (const line of text.split('\n')) {
    const begun = beginnings.map((form) => form.exec(line)).find((found) => found !== null);
    if (begun) [name, version] = [begun[1], begun[2]?.replace(/^v/, '')];
    const own = /^\s*"?version"?(?:: | = | )"?v?(\d[^",\s]*)/.exec(line)?.[1];
    version = own ?? version;
    const host = /(?:https?|git|ssh)(?:\+[a-z]+)?:\/\/(?:[^@/\s"']*@)?([^/\s"',}:)]+)/.exec(line)?.[1];
    const isSource = /resol|tarball|source|registry|remote|url|\["/.test(line);
    if (host !== undefined && isSource) locked.hosts.add(host);
    if (name === undefined || version === undefined) continue;
    if (begun || own !== undefined) noteIn(locked.versions, name, version);
    const sum = /sha\d+-[\w+/=]+|h1:\S+|(?:checksum|hash)\W+[\w/:]{20,}/.exec(line)?.[0];
    if (sum !== undefined) noteIn(locked.sums, `${name}@${version}`, sum);
  }
  return locked;
}

function noteIn(map: Map<string, Set<string>>, key: string, value: string): void {
  map.set(key, (map.get(key) ?? new Set()).add(value));
}
