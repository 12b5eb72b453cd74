/** How this program starts itself: as a hook and as the scripted API. */

/** With these our own processes ignore the folder they are started in: its .env, bunfig.toml, tsconfig, packages. */
export const isolatedBunFlags = [
  '--no-env-file',
  '--config=/dev/null',
  '--tsconfig-override=/dev/null',
  '--no-install',
] as const;
