/** How this program starts itself: as a hook and as the scripted API. */

/** The flags with which our own processes ignore the folder they are started in: its .env, bunfig.toml, packages. */
export const isolatedBunFlags = ['--no-env-file', '--config=/dev/null', '--no-install'] as const;
