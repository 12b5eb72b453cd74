/**
 * zod, on first use: loading it takes as long as the rest of a short command, and most commands read no YAML. Import
 * zod only through this module, so that it is loaded once and never too early.
 */
import type { z } from 'zod';

type Zod = typeof z;

export function zod(): Zod {
  return (require('zod') as { readonly z: Zod }).z;
}

/** A schema that is created on first use. */
export function schema<T extends z.ZodType>(make: (z: Zod) => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make(zod());
    return made;
  };
}
