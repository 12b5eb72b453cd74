/** Where the workflow configurations and documents are that come with this program. */
import { join } from 'node:path';

export const shippedFaber = join(import.meta.dir, '..', '..', '..', 'templates', 'faber');
