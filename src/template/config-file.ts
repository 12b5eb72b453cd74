/** One file of a config template. */

export interface ConfigFile {
  /** Relative to the template's folder, with "/". `.mcp.json` is called `mcp.json`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** UTF-8 without a NUL: variables in it are filled in. */
  readonly isText: boolean;
}

/** What describes the template itself. */
export const aboutFile = 'config.yaml';
